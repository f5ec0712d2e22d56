/* catalog_part.c - the part of a catalogue that a filter takes.
 *
 * A part has views of its own, with copies of the entries that it takes. Texts,
 * servers and what is known of them are borrowed from the whole; `version` says
 * for which state of the whole that is valid. */
#include "base/rand.h"
#include "gateway/catalog/catalog_priv.h"

/* --- one kind ------------------------------------------------------------ */

static void empty_view(struct cat_view *w)
{
    mo_map_fini(&w->names);
    mo_map_init_lent(&w->names, (size_t)MO_GW_SERVERS_MAX * MO_CAT_ITEMS_MAX);
    mo_arena_reset(&w->arena);
    w->at = w->off = NULL;
    w->omitted = NULL;
    w->n = w->noff = 0;
}

static bool takes(const struct mo_catalog *c, enum mo_cat_kind kind,
                  const struct mo_cat_item *it)
{
    return c->shown[it->server] &&
           (kind != MO_CAT_TOOLS ||
            mo_filter_tool(c->filter, mo_span_cstr(c->v[it->server].name),
                           it->own, it->item));
}

static int fill_view(struct mo_catalog *c, enum mo_cat_kind kind)
{
    const struct cat_view *from = c->of->view[kind];
    struct cat_view *w = c->view[kind];
    size_t end = 0;

    w->at = mo_arena_alloc(&w->arena, (from->n + 1) * sizeof(*w->at));
    w->omitted = from->omitted;
    for (size_t i = 0; w->at && i < from->n; i++) {
        struct cat_entry *en;

        if (!takes(c, kind, &from->at[i]->pub))
            continue;
        en = mo_arena_new(&w->arena, struct cat_entry);
        if (en == NULL)
            return MO_ENOMEM;
        *en = *from->at[i];
        end += en->piece[0].n + en->piece[1].n + en->piece[2].n + 1;
        en->end = end;
        if (mo_map_add(&w->names, en->pub.name, en) < 0)
            return MO_ENOMEM;
        w->at[w->n++] = en;
    }
    return w->at ? 0 : MO_ENOMEM;
}

/* The key is constant: sums are compared within this process only. */
static uint64_t sum_view(const struct cat_view *w)
{
    uint64_t sum = 1;

    for (size_t i = 0; i < w->n; i++) {
        sum = mo_siphash(sum, 1, w->at[i]->pub.name);
        sum = mo_siphash(sum, 2, mo_json_text(w->at[i]->pub.item));
    }
    return sum;
}

/* --- the part ------------------------------------------------------------ */

static void empty_part(struct mo_catalog *c)
{
    for (size_t k = 0; k < MO_CAT_KINDS; k++)
        empty_view(c->view[k]);
    mo_free(mo_take_ptr(&c->shown));
    c->v = NULL;
    c->n = 0;
    c->version = 0;
}

static int fill_part(struct mo_catalog *c)
{
    c->shown = mo_zalloc(c->of->n + 1);
    if (c->shown == NULL)
        return MO_ENOMEM;
    c->v = c->of->v;
    c->n = c->of->n;
    for (size_t i = 0; i < c->n; i++)
        c->shown[i] = mo_filter_server(c->filter, mo_span_cstr(c->v[i].name));
    for (size_t k = 0; k < MO_CAT_KINDS; k++) {
        if (fill_view(c, (enum mo_cat_kind)k) < 0)
            return MO_ENOMEM;
        c->sums[k] = sum_view(c->view[k]);
    }
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
