/* catalog_find.c - finds items and servers by exposed name, and back. */
#include "gateway/catalog/catalog_priv.h"

size_t mo_catalog_count(const struct mo_catalog *c, enum mo_cat_kind kind)
{
    return c->view[kind]->n;
}

const struct mo_cat_item *mo_catalog_at(const struct mo_catalog *c,
                                        enum mo_cat_kind kind, size_t i)
{
    return i < c->view[kind]->n ? &c->view[kind]->at[i]->pub : NULL;
}

size_t mo_catalog_server_count(const struct mo_catalog *c)
{
    return c->n;
}

struct mo_cat_about mo_catalog_about(const struct mo_catalog *c,
                                     unsigned server)
{
    const struct cat_server *s = &c->v[server];

    MO_BUG_ON(server >= c->n);
    return (struct mo_cat_about){s->name, s->description, s->keywords,
                                 s->categories, s->off};
}

const struct server_overrides *mo_catalog_overrides(const struct mo_catalog *c,
                                                    unsigned server)
{
    return c->v[server].overrides;
}

const struct mo_cat_item *mo_catalog_unoffered_tool(const struct mo_catalog *c,
                                                    size_t i)
{
    const struct cat_view *w = c->view[MO_CAT_TOOLS];

    return i < w->noff ? &w->off[i]->pub : NULL;
}

static const struct cat_entry *find_listed(const struct mo_catalog *c,
                                           enum mo_cat_kind kind,
                                           struct mo_span name)
{
    return mo_map_get(&c->view[kind]->names, name);
}

const struct mo_cat_item *mo_catalog_find(const struct mo_catalog *c,
                                          enum mo_cat_kind kind,
                                          struct mo_span name)
{
    const struct cat_entry *en = find_listed(c, kind, name);

    if (en == NULL && kind == MO_CAT_RESOURCES)
        en = mo_catalog_view_match(c->view[MO_CAT_TEMPLATES], name);
    return en ? &en->pub : NULL;
}

const struct mo_cat_item *mo_catalog_tool(const struct mo_catalog *c,
                                          unsigned server, struct mo_span own)
{
    const struct cat_view *w = c->view[MO_CAT_TOOLS];

    for (size_t i = 0; i < w->n; i++) {
        const struct mo_cat_item *it = &w->at[i]->pub;

        if (it->server == server && mo_span_eq(it->own, own))
            return it;
    }
    return NULL;
}

/* --- resources ----------------------------------------------------------- */

static bool may_prefix(const struct mo_catalog *c, size_t server)
{
    return c->prefix != MO_GW_PREFIX_NEVER && !c->v[server].never_prefix &&
           !c->v[server].off && is_shown(c, server);
}

static int find_by_label(const struct mo_catalog *c, struct mo_span uri,
                         unsigned *server, struct mo_span *own)
{
    struct mo_span label, rest;

    if (!mo_gw_uri_split(uri, &label, &rest))
        return MO_ENOTFOUND;
    for (size_t i = 0; i < c->n; i++) {
        if (!may_prefix(c, i) || !mo_span_is(label, c->v[i].label))
            continue;
        *server = (unsigned)i;
        *own = rest;
        return 0;
    }
    return MO_ENOTFOUND;
}

static bool has_resources(const struct server_lists *s)
{
    struct mo_span caps = mo_buf_view(&s->caps);

    if (s->list[MO_CAT_RESOURCES] || s->list[MO_CAT_TEMPLATES])
        return true;
    return caps.n > 0 &&
           mo_json_get((struct mo_json){caps.p, caps.n}, "resources").p;
}

/* Never guesses: a server that was not read yet might have the resource too. */
static int find_only_server(const struct mo_catalog *c, unsigned *server)
{
    size_t found = 0;

    for (size_t i = 0; i < c->n; i++) {
        if (c->v[i].off || !is_shown(c, i))
            continue;
        if (!c->v[i].lists->known)
            return MO_ENOTFOUND;
        if (!has_resources(c->v[i].lists))
            continue;
        *server = (unsigned)i;
        found++;
    }
    return found == 1 ? 0 : MO_ENOTFOUND;
}

int mo_catalog_resource(const struct mo_catalog *c, struct mo_span uri,
                        unsigned *server, struct mo_span *own)
{
    const struct cat_entry *en = find_listed(c, MO_CAT_RESOURCES, uri);
    const struct cat_claim *claim;
    struct mo_span label;

    if (en) {
        *server = en->pub.server;
        *own = en->pub.own;
        return 0;
    }
    *own = uri;
    claim = mo_catalog_claim(c->claims, uri);
    if (claim && !claim->many) {
        *server = claim->server;
        return 0;
    }
    en = mo_catalog_view_match(c->view[MO_CAT_TEMPLATES], uri);
    if (en) {
        *server = en->pub.server;
        if (en->prefixed)
            (void)mo_gw_uri_split(uri, &label, own);
        return 0;
    }
    if (find_by_label(c, uri, server, own) == 0)
        return 0;
    return find_only_server(c, server);
}

/* True if the exposed URI leads to this server's `own`. by_list: only if it
 * is listed under that URI. */
static bool resolves_to(const struct mo_catalog *c, struct mo_span exposed,
                        unsigned server, struct mo_span own, bool by_list)
{
    const struct cat_entry *en = find_listed(c, MO_CAT_RESOURCES, exposed);
    struct mo_span to;
    unsigned whose = 0;

    if (by_list)
        return en && en->pub.server == server && mo_span_eq(en->pub.own, own);
    return mo_catalog_resource(c, exposed, &whose, &to) == 0 &&
           whose == server && mo_span_eq(to, own);
}

/* True if a prefixed template of that server matches. */
static bool fits_prefixed_template(const struct mo_catalog *c, unsigned server,
                                   struct mo_span prefixed)
{
    const struct cat_entry *en =
        mo_catalog_view_match(c->view[MO_CAT_TEMPLATES], prefixed);

    return en && en->prefixed && en->pub.server == server;
}

static bool wants_prefix(const struct mo_catalog *c, unsigned server,
                         struct mo_span own, struct mo_span prefixed)
{
    const struct cat_claim *claim = mo_catalog_claim(c->claims, own);

    if (!may_prefix(c, server) || resolves_to(c, own, server, own, true))
        return false;
    if (claim && !claim->many && claim->server == server)
        return c->prefix == MO_GW_PREFIX_ALWAYS;
    return c->prefix == MO_GW_PREFIX_ALWAYS ||
           resolves_to(c, prefixed, server, own, true) ||
           fits_prefixed_template(c, server, prefixed) ||
           !resolves_to(c, own, server, own, false);
}

int mo_catalog_expose(const struct mo_catalog *c, unsigned server,
                      struct mo_span own, struct mo_buf *out)
{
    size_t at = out->len;
    struct mo_span prefixed;
    int rc = 0;

    if (server >= c->n)
        return MO_ENOTFOUND;
    rc = mo_gw_uri(c->v[server].label, own, out);
    if (rc < 0)
        return rc;
    prefixed = mo_span_skip(mo_buf_view(out), at);
    if (wants_prefix(c, server, own, prefixed))
        return 0;
    out->len = at;
    if (!resolves_to(c, own, server, own, false))
        return MO_ENOTFOUND;
    return mo_buf_span(out, own);
}

/* True if the URI, as it is, leads to another server. */
static bool is_of_another(const struct mo_catalog *c, unsigned server,
                          struct mo_span uri)
{
    const struct cat_entry *en = find_listed(c, MO_CAT_RESOURCES, uri);
    const struct cat_claim *claim = mo_catalog_claim(c->claims, uri);

    if (en || claim)
        return en ? en->pub.server != server
                  : claim->many || claim->server != server;
    en = mo_catalog_view_match(c->view[MO_CAT_TEMPLATES], uri);
    return en && en->pub.server != server;
}

int mo_catalog_link(const struct mo_catalog *c, unsigned server,
                    struct mo_span own, struct mo_buf *out)
{
    size_t at = out->len;
    struct mo_span prefixed;
    int rc = 0;

    if (server >= c->n || !may_prefix(c, server) ||
        mo_span_search(own, MO_SPAN(":")) <= 0)
        return MO_ENOTFOUND;
    rc = mo_gw_uri(c->v[server].label, own, out);
    if (rc < 0)
        return rc;
    prefixed = mo_span_skip(mo_buf_view(out), at);
    if (resolves_to(c, prefixed, server, own, true) ||
        fits_prefixed_template(c, server, prefixed) ||
        is_of_another(c, server, own))
        return 0;
    out->len = at;
    return MO_ENOTFOUND;
}
