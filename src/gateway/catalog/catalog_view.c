/* catalog_view.c - merges all servers' lists of one kind and names the
 * items.
 *
 * Names are assigned in two rounds: first the items that keep their own
 * names, then the prefixed ones, which take what is left. Within a round the
 * order of the servers decides. An item that finds no name is hidden. */
#include "gateway/catalog/catalog_priv.h"
#include "mcp/edit.h"
#include "mcp/skill.h"

#define MATCH_WORK_MAX                                                         \
    ((size_t)16 * 1024 * 1024) /* bytes of template times bytes of URI */

struct view_builder {
    struct cat_view *w;
    enum mo_cat_kind kind;
    enum mo_gw_prefix rule;
    const struct cat_server *servers;
    const struct mo_catalog *c;
    struct cat_entry *v; /* including hidden ones */
    size_t n;
    struct mo_map given_names; /* given name -> last entry that shows it */
    struct mo_buf b;           /* scratch for names and texts */
};

/* --- items --------------------------------------------------------------- */

static const struct cat_list *list_of(const struct cat_server *s,
                                      enum mo_cat_kind kind)
{
    return s->lists ? s->lists->list[kind] : NULL;
}

/* Detects names that occur twice. The items of a server are adjacent: a
 * second one of the same server directly follows the first, which stays in
 * the map of given names. */
static int note_same_name(struct view_builder *m, struct cat_entry *en)
{
    void *old = NULL;
    int rc = mo_map_put(&m->given_names, en->pub.given, en, &old);
    struct cat_entry *was = old;

    if (rc < 0 || was == NULL)
        return rc;
    if (was->pub.server == en->pub.server) {
        m->w->omitted[en->pub.server].duplicates++;
        en->hidden = true;
        return mo_map_put(&m->given_names, was->pub.given, was, NULL);
    }
    was->shared = en->shared = true;
    en->never_prefix_before = was->never_prefix || was->never_prefix_before;
    return 0;
}

static const struct mo_config_tool *
tool_override(const struct view_builder *m, size_t server, struct mo_span own)
{
    bool tool = m->kind == MO_CAT_TOOLS;

    return mo_overrides_tool(tool ? m->servers[server].overrides : NULL, own);
}

static int collect_items(struct view_builder *m, size_t server)
{
    const struct cat_list *l = list_of(&m->servers[server], m->kind);

    for (size_t i = 0; l && i < l->n; i++) {
        const struct mo_config_tool *t = tool_override(m, server, l->v[i].own);
        struct cat_entry *en = NULL;

        if (m->c->of && !mo_catalog_part_takes(m->c, server, m->kind, &l->v[i]))
            continue;
        en = &m->v[m->n++];
        en->off = en->hidden = t->hide || m->servers[server].off;
        en->item = &l->v[i];
        en->describe = t->describe;
        en->pub.own = en->item->own;
        en->pub.given = t->rename ? mo_span_cstr(t->rename) : en->item->own;
        en->pub.item = en->item->text;
        en->pub.execution = en->item->execution;
        en->pub.has_output_schema = en->item->has_output_schema;
        en->pub.app_only = m->kind == MO_CAT_TOOLS && en->item->app_only;
        en->pub.server = (unsigned)server;
        en->never_prefix =
            m->rule == MO_GW_PREFIX_NEVER || m->servers[server].never_prefix;
        if (!en->off && note_same_name(m, en) < 0)
            return MO_ENOMEM;
        if (m->kind == MO_CAT_RESOURCES || m->kind == MO_CAT_SKILLS)
            en->shared |= mo_catalog_is_claimed(m->c->claims, en->pub.server,
                                                en->pub.own);
    }
    return 0;
}

/* --- names --------------------------------------------------------------- */

static void hide_entry(struct view_builder *m, struct cat_entry *en)
{
    en->hidden = true;
    m->w->omitted[en->pub.server].hidden++;
}

static int make_name(struct view_builder *m, const struct cat_entry *en,
                     bool taken)
{
    const struct cat_server *s = &m->servers[en->pub.server];
    char name[MO_GW_NAME_MAX];

    mo_buf_reset(&m->b);
    if (!mo_catalog_kinds[m->kind].uri) {
        mo_gw_name(mo_span_cstr(s->prefix), en->pub.given, en->prefixed, taken,
                   name);
        return mo_buf_puts(&m->b, name);
    }
    if (en->prefixed)
        return mo_gw_uri(s->label, en->pub.own, &m->b);
    return mo_buf_span(&m->b, en->pub.own);
}

/* Copies the text in the scratch buffer into the arena. */
static struct mo_span keep_text(struct view_builder *m)
{
    struct mo_span s = mo_buf_view(&m->b);

    s.p = mo_buf_err(&m->b) ? NULL : mo_arena_strndup(&m->w->arena, s.p, s.n);
    return s;
}

/* Copies a new name with quotes around it. Names of tools and prompts
 * contain no characters that need escapes. */
static struct mo_span keep_quoted(struct view_builder *m, struct cat_entry *en)
{
    struct mo_span s = mo_buf_view(&m->b);
    char *p = mo_buf_err(&m->b) ? NULL : mo_arena_alloc(&m->w->arena, s.n + 2);

    if (p == NULL)
        return mo_span(NULL, 0);
    p[0] = p[s.n + 1] = '"';
    memcpy(p + 1, s.p, s.n);
    en->piece[1] = mo_span(p, s.n + 2);
    return mo_span(p + 1, s.n);
}

static struct mo_span new_name(struct view_builder *m, struct cat_entry *en)
{
    if (mo_span_eq(mo_buf_view(&m->b), en->pub.given))
        return en->pub.given;
    return mo_catalog_kinds[m->kind].uri ? keep_text(m) : keep_quoted(m, en);
}

/* Assigns the name in the scratch buffer. MO_EEXISTS: it is taken. */
static int claim_name(struct view_builder *m, struct cat_entry *en)
{
    struct mo_span name = new_name(m, en);
    int rc = name.p ? mo_map_add(&m->w->names, name, en) : MO_ENOMEM;

    if (rc == 0)
        en->pub.name = name;
    return rc;
}

static int name_entry(struct view_builder *m, struct cat_entry *en)
{
    int rc = make_name(m, en, en->prefixed && en->taken);

    rc = rc < 0 ? rc : claim_name(m, en);
    if (rc != MO_EEXISTS || !en->prefixed || mo_catalog_kinds[m->kind].uri)
        return rc;
    rc = make_name(m, en, true);
    return rc < 0 ? rc : claim_name(m, en);
}

/* Marks an item of another server that has that made name as its own. */
static bool note_owner(struct view_builder *m, const struct cat_entry *en,
                       const char *made)
{
    struct cat_entry *by = mo_map_get(&m->given_names, mo_span_cstr(made));
    bool other = by && by->pub.server != en->pub.server;

    if (other)
        by->shared = true;
    return other;
}

/* A tool's own name may be the one that another server's tool has, or would
 * have, with its prefix. Neither gets it: clients may know the other tool by
 * it. The one gets its own prefix, the other, if prefixed, a hash. */
static void note_made_names(struct view_builder *m)
{
    if (m->rule != MO_GW_PREFIX_COLLISION || mo_catalog_kinds[m->kind].uri)
        return;
    for (size_t i = 0; i < m->n; i++) {
        struct cat_entry *en = &m->v[i];
        struct mo_span prefix = mo_span_cstr(m->servers[en->pub.server].prefix);
        char name[MO_GW_NAME_MAX];

        if (en->hidden || en->never_prefix)
            continue;
        mo_gw_name(prefix, en->pub.given, true, false, name);
        en->taken = note_owner(m, en, name);
        if (!en->taken)
            continue;
        mo_gw_name(prefix, en->pub.given, true, true, name);
        (void)note_owner(m, en, name);
    }
}

/* First round: unprefixed names. An item that may not be prefixed and finds
 * its name taken is hidden. */
static int name_unprefixed(struct view_builder *m)
{
    for (size_t i = 0; i < m->n; i++) {
        struct cat_entry *en = &m->v[i];
        int rc = 0;

        if (en->hidden)
            continue;
        en->prefixed =
            !en->never_prefix && (m->rule == MO_GW_PREFIX_ALWAYS || en->shared);
        if (en->prefixed)
            continue;
        rc = en->never_prefix && en->never_prefix_before ? MO_EEXISTS
                                                         : name_entry(m, en);
        if (rc == MO_EEXISTS && en->never_prefix)
            hide_entry(m, en);
        else if (rc == MO_EEXISTS)
            en->prefixed = true;
        else if (rc < 0)
            return rc;
    }
    return 0;
}

static int name_prefixed(struct view_builder *m)
{
    for (size_t i = 0; i < m->n; i++) {
        struct cat_entry *en = &m->v[i];
        int rc = en->hidden || !en->prefixed ? 0 : name_entry(m, en);

        if (rc == MO_EEXISTS)
            hide_entry(m, en);
        else if (rc < 0)
            return rc;
    }
    return 0;
}

/* --- apps ---------------------------------------------------------------- */

/* Appends the exposed URI of an app; the own one if there is no other. */
static int put_link(struct view_builder *m, const struct cat_entry *en,
                    struct mo_json own, struct mo_buf *out)
{
    mo_autobuf struct mo_buf uri = {.max = MO_GW_URI_MAX};
    mo_autobuf struct mo_buf to = {.max = 2 * MO_GW_URI_MAX};
    int rc = mo_json_str_buf(own, &uri);

    if (rc == 0)
        rc = mo_catalog_expose(m->c, en->pub.server, mo_buf_view(&uri), &to);
    if (rc == MO_ENOTFOUND || rc == MO_ETOOBIG)
        return mo_buf_span(out, mo_buf_view(&uri));
    return rc < 0 ? rc : mo_buf_span(out, mo_buf_view(&to));
}

/* Writes the tool's text with the new URIs into the scratch buffer. The two
 * places may be in either order. */
static int replace_links(struct view_builder *m, const struct cat_entry *en)
{
    struct mo_json text = en->item->text;
    const struct mo_json *link = en->item->link;
    size_t first = link[1].p && (!link[0].p || link[1].p < link[0].p);
    const char *from = text.p;

    mo_buf_reset(&m->b);
    for (size_t i = 0; i < MO_COUNT(en->item->link); i++) {
        struct mo_json at = link[i ^ first];
        mo_autobuf struct mo_buf uri = {.max = 2 * MO_GW_URI_MAX};

        if (!at.p)
            continue;
        if (put_link(m, en, at, &uri) < 0)
            return MO_ENOMEM;
        mo_buf_put(&m->b, from, (size_t)(at.p - from));
        mo_json_quote(&m->b, mo_buf_view(&uri));
        from = at.p + at.n;
    }
    return mo_buf_put(&m->b, from, (size_t)(text.p + text.n - from));
}

static bool has_link(const struct cat_item *it)
{
    return it->link[0].p || it->link[1].p;
}

/* True if the app of a tool keeps its URI, as a rule. */
static bool keeps_links(struct view_builder *m, const struct cat_entry *en)
{
    for (size_t i = 0; i < MO_COUNT(en->item->link); i++) {
        mo_autobuf struct mo_buf uri = {.max = 2 * MO_GW_URI_MAX};

        if (en->item->link[i].p &&
            (put_link(m, en, en->item->link[i], &uri) < 0 ||
             !mo_json_str_eq(en->item->link[i], mo_buf_view(&uri))))
            return false;
    }
    return true;
}

/* A tool whose app is exposed under another URI is given out with that one.
 * pub.item stays as listed: it is what people approve. */
static int rename_links(struct view_builder *m, struct cat_entry *en)
{
    const char *id = mo_catalog_kinds[m->kind].id;
    struct cat_item *it = NULL;

    if (!has_link(en->item) || keeps_links(m, en))
        return 0;
    it = mo_arena_alloc(&m->w->arena, sizeof(*it));
    if (it == NULL || replace_links(m, en) < 0)
        return MO_ENOMEM;
    *it = *en->item;
    en->link = keep_text(m);
    if (en->link.p == NULL)
        return MO_ENOMEM;
    en->item = it;
    return mo_catalog_item_parse((struct mo_json){en->link.p, en->link.n}, id,
                                 it);
}

/* --- output -------------------------------------------------------------- */

/* The key occurs more than once: each gets the new value, so that all
 * parsers find the same name. */
static int replace_all_ids(struct view_builder *m, struct cat_entry *en)
{
    struct mo_json text = en->item->text;
    struct mo_span id = mo_span_cstr(mo_catalog_kinds[m->kind].id);
    const char *from = text.p;

    mo_buf_reset(&m->b);
    mo_json_each (x, text) {
        if (!mo_json_str_eq(x.key, id))
            continue;
        mo_buf_put(&m->b, from, (size_t)(x.val.p - from));
        mo_json_quote(&m->b, en->pub.name);
        from = x.val.p + x.val.n;
    }
    mo_buf_put(&m->b, from, (size_t)(text.p + text.n - from));
    en->piece[0] = keep_text(m);
    return en->piece[0].p ? 0 : MO_ENOMEM;
}

/* Replaces name and description; pub.item has the new text, too. */
static int replace_description(struct view_builder *m, struct cat_entry *en)
{
    struct mo_edit v[] = {{mo_catalog_kinds[m->kind].id, {NULL, 0}},
                          {"description", {NULL, 0}}};
    mo_autobuf struct mo_buf name = {.max = MO_CAT_BYTES_MAX};
    mo_autobuf struct mo_buf words = {.max = MO_CAT_BYTES_MAX};
    int rc = 0;

    mo_buf_reset(&m->b);
    rc = mo_json_quote(&name, en->pub.name);
    rc = rc < 0 ? rc : mo_json_quote(&words, mo_span_cstr(en->describe));
    v[0].to = mo_buf_view(&name);
    v[1].to = mo_buf_view(&words);
    if (rc == 0)
        rc = mo_edit(&m->b, en->item->text, v, MO_COUNT(v));
    if (rc == 0)
        en->piece[0] = keep_text(m);
    if (rc < 0 || en->piece[0].p == NULL)
        return MO_ENOMEM;
    en->pub.item = (struct mo_json){en->piece[0].p, en->piece[0].n};
    return 0;
}

/* A URI that is too long is kept. */
static int put_prefixed(void *ctx, struct mo_json uri, struct mo_buf *out)
{
    mo_autobuf struct mo_buf own = {.max = MO_GW_URI_MAX};
    mo_autobuf struct mo_buf to = {.max = 2 * MO_GW_URI_MAX};
    int rc = mo_json_str_buf(uri, &own);

    if (rc == 0)
        rc = mo_gw_uri(ctx, mo_buf_view(&own), &to);
    if (rc == MO_ETOOBIG)
        return mo_buf_span(out, mo_json_text(uri));
    return rc < 0 ? rc : mo_json_quote(out, mo_buf_view(&to));
}

/* Every file of a prefixed skill gets the prefix. */
static int prefix_skill(struct view_builder *m, struct cat_entry *en)
{
    char label[MO_GW_LABEL_MAX];

    memcpy(label, m->servers[en->pub.server].label, sizeof(label));
    mo_buf_reset(&m->b);
    if (mo_skill_replace_uris(en->item->text, true, "resources", put_prefixed,
                              label, &m->b) < 0)
        return MO_ENOMEM;
    en->piece[0] = keep_text(m);
    return en->piece[0].p ? 0 : MO_ENOMEM;
}

static int make_pieces(struct view_builder *m, struct cat_entry *en)
{
    struct mo_json text, id;
    struct mo_span quoted = en->piece[1];
    const char *after;

    if (m->kind == MO_CAT_TOOLS && rename_links(m, en) < 0)
        return MO_ENOMEM;
    text = en->item->text;
    id = en->item->id;
    after = id.p + id.n;
    en->piece[1] = mo_span(NULL, 0);
    if (m->kind == MO_CAT_SKILLS && en->prefixed)
        return prefix_skill(m, en);
    if (en->describe)
        return replace_description(m, en);
    if (mo_span_eq(en->pub.name, en->pub.own)) {
        en->piece[0] = mo_json_text(text);
        return 0;
    }
    if (en->item->id_repeated)
        return replace_all_ids(m, en);
    if (quoted.p == NULL) {
        mo_buf_reset(&m->b);
        mo_json_quote(&m->b, en->pub.name);
        quoted = keep_text(m);
    }
    en->piece[0] = mo_span(text.p, (size_t)(id.p - text.p));
    en->piece[1] = quoted;
    en->piece[2] = mo_span(after, (size_t)(text.p + text.n - after));
    return en->piece[1].p ? 0 : MO_ENOMEM;
}

/* Adds a tool that is not offered: without an exposed name, but with its
 * configured description. */
static int add_unoffered(struct view_builder *m, struct cat_entry *en)
{
    static const struct mo_span none = {NULL, 0};
    int rc = 0;

    m->w->off[m->w->noff++] = en;
    if (en->describe == NULL)
        return 0;
    en->pub.name = en->pub.given;
    rc = replace_description(m, en);
    en->pub.name = none;
    return rc;
}

static int finish_view(struct view_builder *m)
{
    struct cat_view *w = m->w;
    size_t end = 0;

    for (size_t i = 0; i < m->n; i++) {
        struct cat_entry *en = &m->v[i];

        if (en->off && add_unoffered(m, en) < 0)
            return MO_ENOMEM;
        if (en->hidden)
            continue;
        if (make_pieces(m, en) < 0)
            return MO_ENOMEM;
        end += en->piece[0].n + en->piece[1].n + en->piece[2].n + 1;
        en->end = end;
        w->at[w->n++] = en;
    }
    return 0;
}

/* --- life ---------------------------------------------------------------- */

static int build_view(struct view_builder *m, size_t nservers)
{
    struct mo_arena *a = &m->w->arena;
    size_t n = 0;

    for (size_t i = 0; i < nservers; i++) {
        const struct cat_list *l = list_of(&m->servers[i], m->kind);

        n += l ? l->n : 0;
    }
    m->w->omitted = mo_arena_zalloc(a, (nservers + 1) * sizeof(*m->w->omitted));
    m->v = mo_arena_zalloc(a, (n + 1) * sizeof(*m->v));
    m->w->at = mo_arena_alloc(a, (n + 1) * sizeof(struct cat_entry *));
    m->w->off = mo_arena_alloc(a, (n + 1) * sizeof(struct cat_entry *));
    if (m->w->omitted == NULL || m->v == NULL || m->w->at == NULL ||
        m->w->off == NULL || mo_map_reserve(&m->given_names, n) < 0 ||
        mo_map_reserve(&m->w->names, n) < 0)
        return MO_ENOMEM;
    for (size_t i = 0; i < nservers; i++)
        if (collect_items(m, i) < 0)
            return MO_ENOMEM;
    note_made_names(m);
    return name_unprefixed(m) < 0 || name_prefixed(m) < 0 || finish_view(m) < 0
               ? MO_ENOMEM
               : 0;
}

struct cat_view *mo_catalog_view_new(const struct mo_catalog *c,
                                     enum mo_cat_kind kind)
{
    struct cat_view *w = mo_new(struct cat_view);
    struct view_builder m = {
        .w = w, .kind = kind, .rule = c->prefix, .servers = c->v, .c = c};
    int rc = 0;

    if (w == NULL)
        return NULL;
    mo_arena_init(&w->arena, CAT_VIEW_MAX);
    mo_map_init_lent(&w->names, (size_t)MO_GW_SERVERS_MAX * MO_CAT_ITEMS_MAX);
    mo_map_init_lent(&m.given_names,
                     (size_t)MO_GW_SERVERS_MAX * MO_CAT_ITEMS_MAX);
    mo_buf_init(&m.b, 2 * MO_CAT_BYTES_MAX);
    rc = build_view(&m, c->n);
    mo_buf_fini(&m.b);
    mo_map_fini(&m.given_names);
    if (rc == 0)
        return w;
    mo_catalog_view_free(w);
    return NULL;
}

void mo_catalog_view_free(struct cat_view *w)
{
    if (w == NULL)
        return;
    mo_map_fini(&w->names);
    mo_arena_fini(&w->arena);
    mo_free(w);
}

bool mo_catalog_view_same(const struct cat_view *a, const struct cat_view *b)
{
    if (a == b || a->n != b->n)
        return a == b;
    for (size_t i = 0; i < a->n; i++) {
        const struct mo_cat_item *x = &a->at[i]->pub, *y = &b->at[i]->pub;

        if (!mo_span_eq(x->name, y->name) ||
            !mo_span_eq(mo_json_text(x->item), mo_json_text(y->item)) ||
            !mo_span_eq(a->at[i]->link, b->at[i]->link))
            return false;
    }
    return true;
}

const struct cat_entry *mo_catalog_view_match(const struct cat_view *w,
                                              struct mo_span uri)
{
    size_t work = 0;

    for (size_t i = 0; i < w->n && work < MATCH_WORK_MAX; i++) {
        struct mo_span t = w->at[i]->pub.name;

        if (mo_gw_template_match(t, uri))
            return w->at[i];
        work += t.n * uri.n;
    }
    return NULL;
}
