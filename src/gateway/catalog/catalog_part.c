/* catalog_part.c - the part of a catalogue that a filter takes.
 *
 * A part has views of its own. Lists, servers and what is known of them are
 * borrowed from the whole; `version` says for which state of the whole that is
 * valid. */
#include "base/rand.h"
#include "gateway/catalog/catalog_priv.h"

/* --- one kind ------------------------------------------------------------ */

bool mo_catalog_part_takes(const struct mo_catalog *c, size_t server,
                           enum mo_cat_kind kind, const struct cat_item *it)
{
    return c->shown[server] &&
           (kind != MO_CAT_TOOLS ||
            mo_filter_tool(c->filter, mo_span_cstr(c->of->v[server].name),
                           it->own, it->text));
}

static void empty_view(struct cat_view *w)
{
    mo_map_fini(&w->names);
    mo_map_init_lent(&w->names, (size_t)MO_GW_SERVERS_MAX * MO_CAT_ITEMS_MAX);
    mo_arena_reset(&w->arena);
    w->at = w->off = NULL;
    w->omitted = NULL;
    w->n = w->noff = 0;
}

static void empty_claims(struct cat_claims *cl)
{
    mo_map_fini(&cl->map);
    mo_map_init_lent(&cl->map, (size_t)MO_GW_SERVERS_MAX * MO_CAT_ITEMS_MAX);
    mo_arena_reset(&cl->arena);
}

/* The key is constant: sums are compared within this process only. */
static uint64_t sum_view(const struct cat_view *w)
{
    uint64_t sum = 1;

    for (size_t i = 0; i < w->n; i++) {
        sum = mo_siphash(sum, 1, w->at[i]->pub.name);
        sum = mo_siphash(sum, 2, mo_json_text(w->at[i]->pub.item));
        sum = mo_siphash(sum, 3, w->at[i]->link);
    }
    return sum;
}

/* --- the part ------------------------------------------------------------ */

static void empty_part(struct mo_catalog *c)
{
    for (size_t k = 0; k < MO_CAT_KINDS; k++)
        empty_view(c->view[k]);
    empty_claims(c->claims);
    mo_free(mo_take_ptr(&c->shown));
    c->v = NULL;
    c->n = 0;
    c->version = 0;
}

static int fill_part(struct mo_catalog *c)
{
    const struct mo_catalog *of = c->of;
    struct mo_catalog next = *c;

    c->shown = next.shown = mo_zalloc(of->n + 1);
    if (c->shown == NULL)
        return MO_ENOMEM;
    for (size_t i = 0; i < of->n; i++)
        c->shown[i] = mo_filter_server(c->filter, mo_span_cstr(of->v[i].name));
    next.v = of->v;
    next.n = of->n;
    if (mo_catalog_build(&next) < 0)
        return MO_ENOMEM;
    mo_catalog_unbuild(c);
    *c = next;
    for (size_t k = 0; k < MO_CAT_KINDS; k++)
        c->sums[k] = sum_view(c->view[k]);
    return 0;
}

const struct mo_catalog *mo_catalog_part_now(struct mo_catalog *c)
{
    if (c->version == c->of->version + 1)
        return c;
    empty_part(c);
    if (fill_part(c) == 0)
        c->version = c->of->version + 1; /* never 0 */
    else
        empty_part(c);
    return c;
}

uint64_t mo_catalog_part_sum(struct mo_catalog *c, enum mo_cat_kind kind)
{
    return mo_catalog_part_now(c)->sums[kind];
}

struct mo_catalog *mo_catalog_part_new(const struct mo_catalog *of,
                                       struct mo_filter *f)
{
    struct mo_catalog *c = f ? mo_catalog_new(of->prefix, NULL, NULL) : NULL;

    if (c == NULL) {
        mo_filter_free(f);
        return NULL;
    }
    c->of = of;
    c->filter = f;
    return c;
}

void mo_catalog_part_filter(struct mo_catalog *c, struct mo_filter *f)
{
    mo_filter_free(c->filter);
    c->filter = f;
    c->version = 0;
}

const struct mo_filter *mo_catalog_part_filter_now(const struct mo_catalog *c)
{
    return c->filter;
}

bool mo_catalog_shows(const struct mo_catalog *c, unsigned server)
{
    return server < c->n && is_shown(c, server);
}

bool mo_catalog_may_have(const struct mo_catalog *c, unsigned server,
                         struct mo_span own)
{
    static const struct mo_json unknown = {NULL, 0};

    return mo_catalog_shows(c, server) && !mo_catalog_known(c, server) &&
           (c->of == NULL ||
            mo_filter_tool(c->filter, mo_span_cstr(c->v[server].name), own,
                           unknown));
}
