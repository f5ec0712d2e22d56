/* watch_others.c - subscriptions of other processes of the store. See
 * gateway.h.
 *
 * Each process has servers of its own, and a server tells of a change only
 * where it happened: in the process whose client caused it. So each process
 * also subscribes its running servers to what clients of others have subscribed
 * to, and tells those of updates. It starts no server for that. Servers of one
 * session or one person are left out: their changes are nobody else's affair.
 *
 * URIs are those of the whole gateway, which all processes of a store share. A
 * process that gets an update tells its own clients, and no further process. */
#include <stdio.h>

#include "gateway/gw_priv.h"

/* A process, and what its clients have subscribed to. */
struct watch_source {
    struct mo_list node;
    char name[MO_EP_INSTANCE_MAX];
    struct mo_map uris;
};

static struct watch_source *find_source(const struct mo_gateway *g,
                                        const char *name)
{
    mo_list_each_entry (x, &g->watch_sources, struct watch_source, node)
        if (strcmp(x->name, name) == 0)
            return x;
    return NULL;
}

static struct watch_source *source_new(struct mo_gateway *g, const char *name)
{
    struct watch_source *x = mo_new(struct watch_source);

    if (!x)
        return NULL;
    (void)snprintf(x->name, sizeof(x->name), "%s", name);
    mo_map_init(&x->uris, GW_WATCHED_MAX);
    mo_list_push(&g->watch_sources, &x->node);
    return x;
}

static void source_free(struct watch_source *x)
{
    mo_list_del(&x->node);
    mo_map_fini(&x->uris);
    mo_free(x);
}

/* Calls what() with each text that ends with a NUL. */
static void each_uri(struct mo_span uris, void (*what)(void *, struct mo_span),
                     void *ctx)
{
    while (uris.n) {
        struct mo_span uri = mo_span_cut(&uris, '\0');

        if (uri.n)
            what(ctx, uri);
        if (!uris.p)
            break;
    }
}

struct change {
    struct mo_gateway *g;
    struct watch_source *from;
    struct mo_map now; /* all, if they replace those of before */
};

static void add(void *ctx, struct mo_span uri)
{
    struct change *x = ctx;

    if (mo_map_add(&x->from->uris, uri, x->g) == 0)
        mo_gw_watch_other(x->g, uri, true);
}

static void note(void *ctx, struct mo_span uri)
{
    struct change *x = ctx;

    (void)mo_map_put(&x->now, uri, x->g, NULL);
}

/* Ends the subscriptions that are not in x->now. */
static void drop_missing(struct change *x)
{
    struct mo_map kept;

    mo_map_init(&kept, GW_WATCHED_MAX);
    mo_map_each (en, &x->from->uris)
        if (!mo_map_get(&x->now, mo_map_key(en)) ||
            mo_map_put(&kept, mo_map_key(en), x->g, NULL) < 0)
            mo_gw_watch_other(x->g, mo_map_key(en), false);
    mo_map_fini(&x->from->uris);
    x->from->uris = kept;
}

void mo_gateway_others_watch(struct mo_gateway *g, const char *from,
                             struct mo_span uris, bool anew)
{
    struct change x = {.g = g, .from = find_source(g, from)};

    if (g->closing || (!x.from && !uris.n))
        return;
    if (!x.from)
        x.from = source_new(g, from);
    if (!x.from)
        return;
    mo_gw_watch_batch(g, true);
    if (anew) {
        mo_map_init(&x.now, GW_WATCHED_MAX);
        each_uri(uris, note, &x);
        drop_missing(&x);
        mo_map_fini(&x.now);
    }
    each_uri(uris, add, &x);
    mo_gw_watch_batch(g, false);
    if (!x.from->uris.len)
        source_free(x.from);
}

void mo_gw_tell_others(struct mo_gateway *g, struct mo_span uri)
{
    mo_list_each_entry (x, &g->watch_sources, struct watch_source, node)
        if (mo_map_get(&x->uris, uri))
            g->watching.updated(g->watching.ctx, x->name, uri);
}

void mo_gateway_share_watching(struct mo_gateway *g,
                               const struct mo_gw_watching *w)
{
    g->watching = *w;
}

void mo_gateway_put_watched(const struct mo_gateway *g, struct mo_buf *out)
{
    mo_map_each (en, &g->watched) {
        const struct watched_resource *x = en->value;
        struct mo_span uri = mo_map_key(en);

        if (!x->n || mo_span_find(uri, '\0') >= 0)
            continue;
        if (out->len + uri.n + 1 > out->max)
            return;
        (void)mo_buf_span(out, uri);
        (void)mo_buf_putc(out, '\0');
    }
}

void mo_gw_watch_others_fini(struct mo_gateway *g)
{
    mo_list_each_entry_safe (x, &g->watch_sources, struct watch_source, node)
        source_free(x);
}
