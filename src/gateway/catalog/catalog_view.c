/* catalog_view.c - merges all servers' lists of one kind and names the
 * items.
 *
 * Names are assigned in two rounds: first the items that keep their own
 * names, then the prefixed ones, which take what is left. Within a round the
 * order of the servers decides. An item that finds no name is hidden. */
#include "gateway/catalog/catalog_priv.h"
#include "mcp/edit.h"

#define MATCH_WORK_MAX                                                         \
    ((size_t)16 * 1024 * 1024) /* bytes of template times bytes of URI */

struct view_builder {
    struct cat_view *w;
    enum mo_cat_kind kind;
    enum mo_gw_prefix rule;
    const struct cat_server *servers;
    const struct mo_catalog *part; /* takes only some items; NULL: all */
    struct cat_entry *v;           /* including hidden ones */
    size_t n;
    struct mo_map given_names; /* given name -> last entry that has it */
    struct mo_buf b;           /* scratch for names and texts */
};

/* --- items --------------------------------------------------------------- */

static const struct cat_list *list_of(const struct cat_server *s,
                                      enum mo_cat_kind kind)
{
    return s->lists ? s->lists->list[kind] : NULL;
}

/* Detects names that occur twice. The items of a server are adjacent: a
 * second one of the same server directly follows the first in the map of
 * given names. */
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
        en->never_prefix_before = was->never_prefix_before;
        en->shared = was->shared;
        return 0;
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

        if (m->part &&
            !mo_catalog_part_takes(m->part, server, m->kind, &l->v[i]))
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
        en->pub.server = (unsigned)server;
        en->never_prefix =
            m->rule == MO_GW_PREFIX_NEVER || m->servers[server].never_prefix;
        if (!en->off && note_same_name(m, en) < 0)
            return MO_ENOMEM;
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
    int rc = make_name(m, en, false);

    rc = rc < 0 ? rc : claim_name(m, en);
    if (rc != MO_EEXISTS || !en->prefixed || mo_catalog_kinds[m->kind].uri)
        return rc;
    rc = make_name(m, en, true);
    return rc < 0 ? rc : claim_name(m, en);
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

static int make_pieces(struct view_builder *m, struct cat_entry *en)
{
    struct mo_json text = en->item->text, id = en->item->id;
    struct mo_span quoted = en->piece[1];
    const char *after = id.p + id.n;

    en->piece[1] = mo_span(NULL, 0);
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
    return name_unprefixed(m) < 0 || name_prefixed(m) < 0 || finish_view(m) < 0
               ? MO_ENOMEM
               : 0;
}

struct cat_view *mo_catalog_view_new(enum mo_cat_kind kind,
                                     enum mo_gw_prefix prefix,
                                     const struct cat_server *v, size_t n,
                                     const struct mo_catalog *part)
{
    struct cat_view *w = mo_new(struct cat_view);
    struct view_builder m = {
        .w = w, .kind = kind, .rule = prefix, .servers = v, .part = part};
    int rc = 0;

    if (w == NULL)
        return NULL;
    mo_arena_init(&w->arena, CAT_VIEW_MAX);
    mo_map_init_lent(&w->names, (size_t)MO_GW_SERVERS_MAX * MO_CAT_ITEMS_MAX);
    mo_map_init_lent(&m.given_names,
                     (size_t)MO_GW_SERVERS_MAX * MO_CAT_ITEMS_MAX);
    mo_buf_init(&m.b, 2 * MO_CAT_BYTES_MAX);
    rc = build_view(&m, n);
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
    if (a->n != b->n)
        return false;
    for (size_t i = 0; i < a->n; i++) {
        const struct mo_cat_item *x = &a->at[i]->pub, *y = &b->at[i]->pub;

        if (!mo_span_eq(x->name, y->name) ||
            !mo_span_eq(mo_json_text(x->item), mo_json_text(y->item)))
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
