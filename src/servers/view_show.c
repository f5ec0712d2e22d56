#include "servers/view_show.h"

#include "config/keys.h"
#include "gateway/catalog/catalog.h"

/* --- settings ------------------------------------------------------------ */

static void put_texts(struct mo_jw *w, const char *key,
                      const struct mo_config_list *l)
{
    if (l->n == 0)
        return;
    mo_jw_member_arr(w, key);
    for (size_t i = 0; i < l->n; i++)
        mo_jw_cstr(w, l->v[i]);
    mo_jw_end(w);
}

/* The word of an enumeration, by the table of keys. */
static const char *word_of(const char *key, int value)
{
    const struct mo_key *views = mo_key_get(&mo_config_keys, MO_SPAN("views"));

    return mo_key_word(mo_key_get(views->sub, mo_span_cstr(key)), value);
}

void mo_view_put_settings(struct mo_jw *w, const struct mo_config_view *c)
{
    mo_jw_member_cstr(w, "name", c->name);
    if (c->description)
        mo_jw_member_cstr(w, "description", c->description);
    put_texts(w, "onlyServers", &c->servers);
    put_texts(w, "patterns", &c->tools);
    mo_jw_member_bool(w, "readOnly", c->read_only);
    mo_jw_member_cstr(w, "expose", word_of("expose", c->expose));
    mo_jw_member_cstr(w, "role", word_of("role", c->role));
    put_texts(w, "people", &c->people);
    mo_jw_member_u64(w, "rules", c->rules.n);
}

/* --- what is seen -------------------------------------------------------- */

static size_t count_tools(const struct mo_catalog *cat, size_t server)
{
    size_t n = 0;

    for (size_t i = 0; i < mo_catalog_count(cat, MO_CAT_TOOLS); i++)
        n += mo_catalog_at(cat, MO_CAT_TOOLS, i)->server == server;
    return n;
}

static void put_servers(struct mo_jw *w, const struct mo_gateway *g,
                        const struct mo_catalog *cat)
{
    mo_jw_member_arr(w, "servers");
    for (unsigned i = 0; i < mo_gateway_count(g); i++) {
        if (!mo_catalog_shows(cat, i))
            continue;
        mo_jw_obj(w);
        mo_jw_member_cstr(w, "name", mo_catalog_about(cat, i).name);
        mo_jw_member_bool(w, "known", mo_catalog_known(cat, i));
        mo_jw_member_u64(w, "tools", count_tools(cat, i));
        mo_jw_end(w);
    }
    mo_jw_end(w);
}

static void put_items(struct mo_jw *w, const struct mo_catalog *cat,
                      enum mo_cat_kind kind)
{
    mo_jw_member_arr(w, kind == MO_CAT_TEMPLATES ? "templates"
                                                 : mo_catalog_kinds[kind].list);
    for (size_t i = 0; i < mo_catalog_count(cat, kind); i++) {
        const struct mo_cat_item *it = mo_catalog_at(cat, kind, i);
        struct mo_json hints = mo_json_get(it->item, "annotations");

        mo_jw_obj(w);
        mo_jw_member(w, "name", it->name);
        mo_jw_member_cstr(w, "server", mo_catalog_about(cat, it->server).name);
        mo_jw_copy(w,
                   kind == MO_CAT_SKILLS ? mo_json_get(it->item, "frontmatter")
                                         : it->item,
                   "description");
        if (kind == MO_CAT_TOOLS) {
            mo_jw_member(w, "tool", it->own);
            mo_jw_member_bool(w, "readOnly",
                              mo_json_flag(hints, "readOnlyHint"));
        }
        mo_jw_end(w);
    }
    mo_jw_end(w);
}

void mo_view_put_counts(struct mo_jw *w, const struct mo_gw_view *v)
{
    static const char *const keys[MO_CAT_KINDS] = {
        [MO_CAT_TOOLS] = "tools",         [MO_CAT_RESOURCES] = "resources",
        [MO_CAT_TEMPLATES] = "templates", [MO_CAT_PROMPTS] = "prompts",
        [MO_CAT_SKILLS] = "skills",
    };
    const struct mo_catalog *cat = v ? mo_gateway_view_catalog(v) : NULL;

    if (!v)
        return;
    mo_jw_member_cstr(w, "shows",
                      mo_gateway_view_searches(v) ? "search" : "all");
    mo_jw_member_obj(w, "counts");
    for (enum mo_cat_kind k = 0; k < MO_CAT_KINDS; k++)
        mo_jw_member_u64(w, keys[k], mo_catalog_count(cat, k));
    mo_jw_end(w);
}

void mo_view_put_seen(struct mo_jw *w, const struct mo_gateway *g,
                      const struct mo_gw_view *v)
{
    const struct mo_catalog *cat = mo_gateway_view_catalog(v);

    mo_view_put_counts(w, v);
    put_servers(w, g, cat);
    for (enum mo_cat_kind k = 0; k < MO_CAT_KINDS; k++)
        put_items(w, cat, k);
}
