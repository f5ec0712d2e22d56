/* catalog_list.c - one list of one server, and all lists of a server.
 *
 * An item keeps its bytes. Only an item with raw newlines between its tokens
 * is compacted, since a newline would end a line of stdio. */
#include "gateway/catalog/catalog_priv.h"
#include "mcp/app.h"
#include "mcp/era.h"

const struct mo_cat_kind_info mo_catalog_kinds[MO_CAT_KINDS] = {
    [MO_CAT_TOOLS] = {"tools", "name", "tools", "tools/list", "tools", NULL,
                      false},
    [MO_CAT_RESOURCES] = {"resources", "uri", "resources", "resources/list",
                          "resources", NULL, true},
    [MO_CAT_TEMPLATES] = {"resourceTemplates", "uriTemplate",
                          "resource templates", "resources/templates/list",
                          "resources", NULL, true},
    [MO_CAT_PROMPTS] = {"prompts", "name", "prompts", "prompts/list", "prompts",
                        NULL, false},
    [MO_CAT_SKILLS] = {"skills", "uri", "skills", "skills/list", "resources",
                       MO_MCP_EXT_SKILLS, true},
};

/* --- list ---------------------------------------------------------------- */

/* Finds the URIs of a tool's app, and whether it is for apps only. */
static void read_app(struct mo_json meta, struct cat_item *it)
{
    struct mo_json v[] = {
        mo_json_get(mo_json_get(meta, "ui"), "resourceUri"),
        mo_json_get(meta, "ui/resourceUri"),
    };

    for (size_t i = 0; i < MO_COUNT(v); i++)
        if (mo_json_is(v[i], MO_JSON_STRING) && v[i].n <= MO_CAT_NAME_MAX)
            it->link[i] = v[i];
    it->app_only = mo_app_meta_is_only(meta);
}

/* Finds the members that every call needs once, here. The last of a repeated
 * key counts, as in JSON.parse. */
static void find_id(struct mo_span key, struct mo_json_iter *iter,
                    struct cat_item *it)
{
    struct mo_json k, v;

    while (mo_json_next(iter, &k, &v)) {
        if (mo_json_str_eq(k, MO_SPAN("execution")))
            it->execution = v;
        else if (mo_json_str_eq(k, MO_SPAN("outputSchema")))
            it->has_output_schema = true;
        else if (mo_json_str_eq(k, MO_SPAN("_meta")))
            read_app(v, it);
        if (!mo_json_str_eq(k, key))
            continue;
        it->id_repeated = it->id.p != NULL;
        it->id = v;
    }
}

int mo_catalog_item_parse(struct mo_json text, const char *id,
                          struct cat_item *out)
{
    struct mo_json_iter iter;

    out->text = text;
    out->id = (struct mo_json){NULL, 0};
    mo_json_iter(&iter, text);
    find_id(mo_span_cstr(id), &iter, out);
    return out->id.p ? 0 : MO_EPROTO;
}

/* 0, MO_EPROTO (no usable name), MO_ENOMEM. */
static int read_name(struct cat_list *l, struct cat_item *it)
{
    l->has_links |= it->link[0].p || it->link[1].p;
    if (!mo_json_is(it->id, MO_JSON_STRING))
        return MO_EPROTO;
    if (mo_json_str(it->id, &l->arena, &it->own) < 0)
        return MO_ENOMEM;
    return it->own.n == 0 || it->own.n > MO_CAT_NAME_MAX ? MO_EPROTO : 0;
}

/* Grows on demand: counting first would be another pass over the text. */
static struct cat_item *next_item(struct cat_list *l)
{
    size_t cap = l->cap ? 2 * l->cap : 16;
    struct cat_item *v = NULL;

    if (l->n < l->cap)
        return &l->v[l->n];
    v = mo_realloc(l->v, cap * sizeof(*v));
    if (v == NULL)
        return NULL;
    l->v = v;
    l->cap = cap;
    return &v[l->n];
}

/* Returns like read_name(). */
static int read_item(struct cat_list *l, struct mo_span key,
                     struct mo_json text)
{
    struct cat_item *it = next_item(l);
    struct mo_json_iter iter;

    if (it == NULL)
        return MO_ENOMEM;
    *it = (struct cat_item){.text = text};
    if (!mo_json_is(text, MO_JSON_OBJECT))
        return MO_EPROTO;
    mo_json_iter(&iter, text);
    find_id(key, &iter, it);
    return read_name(l, it);
}

/* Copies first: the item's spans point into our own text. The buffer has its
 * full size from the start and never moves. */
static int add_item(struct cat_list *l, struct mo_span key, struct mo_json item)
{
    struct mo_buf *b = &l->text;
    size_t before = b->len, at = 0;
    int rc = 0;

    if (l->n)
        mo_buf_putc(b, ',');
    at = b->len;
    if (mo_json_has_nl(item))
        mo_json_compact(item, b);
    else
        mo_buf_span(b, mo_json_text(item));
    if (mo_buf_err(b))
        return mo_buf_err(b);
    rc = read_item(l, key, (struct mo_json){b->p + at, b->len - at});
    if (rc == 0) {
        l->n++;
        return 0;
    }
    b->len = before;
    l->unnamed += rc == MO_EPROTO;
    return rc == MO_EPROTO ? 0 : rc;
}

static int fill_one_by_one(struct cat_list *l, struct mo_span key,
                           struct mo_json items, size_t room_items,
                           size_t room_bytes)
{
    mo_buf_reset(&l->text);
    l->n = 0;
    mo_buf_putc(&l->text, '[');
    mo_json_each (m, items) {
        int rc = 0;

        if (l->n >= room_items || l->text.len + m.val.n + 2 > room_bytes)
            l->over_limit++;
        else
            rc = add_item(l, key, m.val);
        if (rc < 0)
            return rc;
    }
    return mo_buf_putc(&l->text, ']');
}

/* Reads one item of the list's own text in a single pass. */
static int enter_item(struct cat_list *l, struct mo_span key,
                      struct mo_json_iter *items)
{
    struct cat_item *it = next_item(l);
    struct mo_json_iter inner;

    if (it == NULL)
        return MO_ENOMEM;
    *it = (struct cat_item){.id_repeated = false};
    if (!mo_json_enter(items, &inner) || !inner.object)
        return MO_EPROTO;
    find_id(key, &inner, it);
    it->text = mo_json_leave(items, &inner);
    return read_name(l, it);
}

/* Fast path for a list without newlines, with only valid items and within
 * the limits, as all cached lists are. MO_EPROTO: use the slow path. */
static int fill_at_once(struct cat_list *l, struct mo_span key,
                        struct mo_json items, size_t room_items,
                        size_t room_bytes)
{
    struct mo_json_iter it;

    if (items.n > room_bytes || mo_json_has_nl(items))
        return MO_EPROTO;
    mo_buf_span(&l->text, mo_json_text(items));
    mo_json_iter(&it, (struct mo_json){l->text.p, l->text.len});
    while (mo_json_more(&it)) {
        int rc = l->n < room_items ? enter_item(l, key, &it) : MO_EPROTO;

        if (rc < 0)
            return rc;
        l->n++;
    }
    return 0;
}

static int fill_list(struct cat_list *l, const char *id, struct mo_json items,
                     size_t room_items, size_t room_bytes)
{
    struct mo_span key = mo_span_cstr(id);
    int rc = fill_at_once(l, key, items, room_items, room_bytes);

    if (rc == MO_EPROTO)
        rc = fill_one_by_one(l, key, items, room_items, room_bytes);
    return rc;
}

/* room: how many more items and bytes the server may have. NULL: out of
 * memory. */
static struct cat_list *list_new(enum mo_cat_kind kind, struct mo_json items,
                                 size_t room_items, size_t room_bytes)
{
    struct cat_list *l = mo_new(struct cat_list);
    size_t bytes = items.n + 2 < room_bytes ? items.n + 2 : room_bytes;

    if (l == NULL)
        return NULL;
    mo_buf_init(&l->text, bytes + 2);
    /* For names with escapes, each shorter than its text except for
     * rounding. */
    mo_arena_init(&l->arena, 4 * bytes + 65536);
    if (mo_buf_room(&l->text, bytes + 2) &&
        fill_list(l, mo_catalog_kinds[kind].id, items, room_items,
                  room_bytes) == 0)
        return l;
    mo_catalog_list_free(l);
    return NULL;
}

void mo_catalog_list_free(struct cat_list *l)
{
    if (l == NULL)
        return;
    mo_free(l->v);
    mo_arena_fini(&l->arena);
    mo_buf_fini(&l->text);
    mo_free(l);
}

/* --- server_lists -------------------------------------------------------- */

struct server_lists *mo_catalog_lists_new(void)
{
    struct server_lists *s = mo_new(struct server_lists);

    if (s == NULL)
        return NULL;
    mo_buf_init(&s->caps, CAT_EXTRA_MAX);
    mo_buf_init(&s->info, CAT_EXTRA_MAX);
    s->dirty = true;
    return s;
}

void mo_catalog_lists_free(struct server_lists *s)
{
    if (s == NULL)
        return;
    for (size_t k = 0; k < MO_CAT_KINDS; k++) {
        mo_catalog_list_free(s->list[k]);
        mo_free(s->faults[k]);
    }
    mo_buf_fini(&s->caps);
    mo_buf_fini(&s->info);
    mo_free(s);
}

const struct list_faults *mo_catalog_lists_faults(const struct server_lists *s,
                                                  size_t kind)
{
    static const struct list_faults none;

    return s->faults[kind] ? s->faults[kind] : &none;
}

struct list_faults *mo_catalog_lists_own_faults(struct server_lists *s,
                                                size_t kind)
{
    if (!s->faults[kind])
        s->faults[kind] = mo_new(struct list_faults);
    return s->faults[kind];
}

struct cat_list *mo_catalog_lists_parse(const struct server_lists *s,
                                        enum mo_cat_kind kind,
                                        struct mo_json items)
{
    size_t n = MO_CAT_ITEMS_MAX, bytes = MO_CAT_BYTES_MAX;

    for (size_t k = 0; k < MO_CAT_KINDS; k++) {
        const struct cat_list *l = s->list[k];

        if (l == NULL || k == kind)
            continue;
        n -= l->n < n ? l->n : n;
        bytes -= l->text.len < bytes ? l->text.len : bytes;
    }
    return list_new(kind, items, n, bytes);
}
