#include "peer/others.h"

#include <stdio.h>

#include "peer/priv.h"

struct asked {
    struct mo_peers *p;
    mo_others_fn *found;
    void *ctx;
    bool all;
};

/* NAME.peer becomes NAME.http. */
static void set_near(struct mo_other *o, const char *peer_path)
{
    struct mo_span path = mo_span_cstr(peer_path);
    size_t suffix = sizeof(MO_INSTANCE_PEER) - 1;

    if (mo_span_ends(path, MO_SPAN(MO_INSTANCE_PEER)) && path.n < PEER_PATH_MAX)
        (void)snprintf(o->path, sizeof(o->path), "%.*s" MO_OTHER_SUFFIX,
                       (int)(path.n - suffix), path.p);
}

static bool read_other(const struct asked *a, const struct mo_row *row,
                       struct mo_other *o)
{
    struct mo_span name = row->id;
    struct peer_address at;
    struct mo_err e;

    if (!mo_span_strip(&name, MO_SPAN(PEER_MARK)) || name.n == 0 ||
        name.n >= sizeof(o->instance) ||
        mo_peer_address_read(a->p, row->doc, &at, &e) < 0)
        return false;
    o->path[0] = '\0';
    (void)snprintf(o->instance, sizeof(o->instance), "%.*s", (int)name.n,
                   name.p);
    if (at.version == 0)
        (void)mo_peer_no_version(a->p, o->instance, &at, &e);
    else if (at.is_far)
        (void)snprintf(o->path, sizeof(o->path), "%.*s@%s", (int)name.n, name.p,
                       at.far);
    else if (at.is_near)
        set_near(o, at.path);
    return !a->all || (o->path[0] && strcmp(o->instance, a->p->instance) != 0);
}

static void on_rows(void *ctx, const struct mo_rows *rows,
                    const struct mo_err *why)
{
    struct asked *a = ctx;
    struct mo_peers *p = a->p;
    struct mo_other v[MO_OTHERS_MAX];
    size_t n = 0;

    for (size_t i = 0; !why && i < rows->n && n < MO_OTHERS_MAX; i++)
        n += read_other(a, &rows->v[i], &v[n]);
    a->found(a->ctx, v, n, why);
    mo_free(a);
    p->pending--;
    mo_peers_settle(p);
}

static int ask(struct mo_peers *p, const struct mo_read *r,
               const struct asked *how, struct mo_err *e)
{
    struct asked *a = mo_new(struct asked);
    int rc;

    if (!a)
        return mo_fail(e, MO_ENOMEM, "other processes");
    *a = *how;
    rc = mo_store_read(p->store, r, on_rows, a, e);
    if (rc < 0)
        mo_free(a);
    else
        p->pending++;
    return rc;
}

int mo_others_find(struct mo_peers *p, const char *instance,
                   mo_others_fn *found, void *ctx, struct mo_err *e)
{
    char id[sizeof(PEER_MARK) + MO_INSTANCE_MAX];
    const struct asked how = {.p = p, .found = found, .ctx = ctx};
    struct mo_read r = {.kind = MO_READ_MARK};

    (void)snprintf(id, sizeof(id), PEER_MARK "%s", instance);
    r.id = mo_span_cstr(id);
    return ask(p, &r, &how, e);
}

int mo_others_list(struct mo_peers *p, mo_others_fn *found, void *ctx,
                   struct mo_err *e)
{
    const struct asked how = {.p = p, .found = found, .ctx = ctx, .all = true};
    const struct mo_read r = {.kind = MO_READ_MARKS,
                              .text = MO_SPAN(PEER_MARK),
                              .limit = MO_OTHERS_MAX + 1};

    return ask(p, &r, &how, e);
}
