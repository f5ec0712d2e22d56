/* read.c - reads the JSON file by the key table; see read.h. */
#include "config/read.h"

#include <stdio.h>

#include "base/nearest.h"
#include "config/reference.h"

struct reader {
    struct mo_config_load *l;
    char path[MO_KEY_PATH_MAX]; /* of the current object, for messages */
    size_t len;
    /* Keys come in the order of the text, so lines are counted from the last
     * key on: calling mo_json_where() for each would be quadratic. */
    const char *seen;       /* counted up to here */
    const char *line_start; /* of the line that contains seen */
    unsigned line;
};

static void find_place(struct reader *r, const char *at, unsigned *line,
                       unsigned *col)
{
    const char *nl;

    while (r->seen < at) {
        nl = memchr(r->seen, '\n', (size_t)(at - r->seen));
        if (!nl)
            break;
        r->line++;
        r->seen = nl + 1;
        r->line_start = r->seen;
    }
    if (r->seen < at)
        r->seen = at;
    *line = r->line;
    *col = (unsigned)(at - r->line_start) + 1;
}

static void record_origin(struct reader *r, const void *field, const char *at)
{
    unsigned line, col;

    find_place(r, at, &line, &col);
    mo_config_note(r->l, field, MO_LAYER_FILE, r->l->file, line, col);
}

/* Appends a member's name to the path. Control characters become '?'. */
static size_t push_name(struct reader *r, struct mo_span name)
{
    size_t old = r->len;
    int n = snprintf(r->path + old, sizeof(r->path) - old, "%s%.*s",
                     old ? "." : "", (int)mo_span_head(name, 80).n, name.p);

    r->len = old + (size_t)n;
    if (r->len >= sizeof(r->path))
        r->len = sizeof(r->path) - 1;
    for (size_t i = old; i < r->len; i++) {
        unsigned char c = (unsigned char)r->path[i];

        if (c < 0x20 || c == 0x7f)
            r->path[i] = '?';
    }
    return old;
}

static void pop_name(struct reader *r, size_t old)
{
    r->len = old;
    r->path[old] = '\0';
}

/* --- unknown keys -------------------------------------------------------- */

struct elsewhere {
    struct mo_span name;
    char path[MO_KEY_PATH_MAX];
};

static void match_key_name(void *ctx, const char *path, const struct mo_key *k,
                           void *field)
{
    struct elsewhere *w = ctx;

    (void)field;
    if (!w->path[0] && mo_span_ieq(w->name, mo_span_cstr(k->name)))
        (void)snprintf(w->path, sizeof(w->path), "%s", path);
}

/* r->path is the path of the unknown key. The message suggests a similar key
 * of this section, else the same key in another section. */
static void report_unknown_key(struct reader *r, const struct mo_keys *keys,
                               struct mo_span name, const char *at)
{
    struct elsewhere w = {.name = name};
    struct mo_nearest near;

    mo_nearest_init(&near, name);
    for (size_t i = 0; i < keys->n; i++)
        mo_nearest_offer(&near, keys->v[i].name);
    if (!near.best)
        mo_keys_walk(&mo_config_keys, r->l->cfg, match_key_name, &w);
    if (near.best || w.path[0])
        mo_config_error_at(r->l, at, "unknown key '%s'; did you mean '%s'?",
                           r->path, near.best ? near.best : w.path);
    else
        mo_config_error_at(r->l, at, "unknown key '%s'", r->path);
}

/* --- values by type ------------------------------------------------------ */

static void read_section(struct reader *r, const struct mo_keys *keys,
                         void *base, struct mo_json v);

static bool expect_type(struct reader *r, struct mo_json v,
                        enum mo_json_type type)
{
    if (mo_json_is(v, type))
        return true;
    mo_config_error_at(r->l, v.p, "'%s' must be %s", r->path,
                       type == MO_JSON_OBJECT ? "an object: { ... }"
                                              : "a list: [ ... ]");
    return false;
}

static char *new_items(struct reader *r, const struct mo_key *k, void *field,
                       struct mo_json v)
{
    size_t n = mo_json_len(v);
    char *items;

    if (n > k->max_items) {
        mo_config_error_at(r->l, v.p, "'%s' has more than %zu entries", r->path,
                           k->max_items);
        return NULL;
    }
    items = mo_arena_zalloc(r->l->arena, n * k->sub->size);
    if (!items)
        r->l->no_memory = true;
    mo_key_set_items(field, items, items ? n : 0);
    if (items && n)
        mo_config_defaults(r->l, k->sub, items);
    for (size_t i = 1; items && i < n; i++) /* all have the same */
        memcpy(items + i * k->sub->size, items, k->sub->size);
    return items;
}

/* Any name of a tool without control characters. */
static bool is_valid_tool(struct mo_span s)
{
    for (size_t i = 0; i < s.n; i++) {
        unsigned char c = (unsigned char)s.p[i];

        if (c < 0x20 || c == 0x7f)
            return false;
    }
    return s.n > 0 && s.n <= MO_KEY_TOOL_MAX;
}

static bool is_name_taken(const struct mo_key *k, const char *items, size_t n,
                          struct mo_span name)
{
    for (size_t i = 0; i < n; i++) {
        const char *other;

        memcpy(&other, items + i * k->sub->size, sizeof(other));
        if (other && mo_span_is(name, other))
            return true;
    }
    return false;
}

/* Reads the fields of one element. */
static void read_item(struct reader *r, const struct mo_key *k, char *item,
                      const char *at, struct mo_json val)
{
    const struct mo_key *only = mo_key_only(k);
    struct mo_err e = {0};

    record_origin(r, item, at);
    if (!only) {
        read_section(r, k->sub, item, val);
        return;
    }
    record_origin(r, item + only->off, at);
    if (mo_config_set_json(r->l, only, item + only->off, val, &e) < 0)
        mo_config_error_at(r->l, r->l->at, "'%s' %s", r->path, e.msg);
}

/* Names are used in tool names, URLs and logs. The name is the first member of
 * the element's struct. */
static void read_named(struct reader *r, const struct mo_key *k, char *items,
                       size_t i, struct mo_json key, struct mo_json val)
{
    char *item = items + i * k->sub->size;
    struct mo_span name;
    const char *copy;
    size_t old;

    if (mo_json_str(key, r->l->arena, &name) < 0) {
        r->l->no_memory = true;
        return;
    }
    old = push_name(r, name);
    if (k->flags & MO_KEY_TOOL && !is_valid_tool(name))
        mo_config_error_at(r->l, key.p,
                           "'%s': a tool's name has 1 to %zu bytes", r->path,
                           MO_KEY_TOOL_MAX);
    else if (k->flags & MO_KEY_ANY && !is_valid_tool(name))
        mo_config_error_at(r->l, key.p, "'%s': a name has 1 to %zu bytes",
                           r->path, MO_KEY_TOOL_MAX);
    else if (!(k->flags & (MO_KEY_TOOL | MO_KEY_HOST | MO_KEY_ANY)) &&
             !mo_reference_is_name(name, MO_KEY_NAME_MAX))
        mo_config_error_at(r->l, key.p,
                           "'%s': a name has 1 to %zu letters, digits, '-', "
                           "'_' and '.'",
                           r->path, MO_KEY_NAME_MAX);
    else if (is_name_taken(k, items, i, name))
        mo_config_error_at(r->l, key.p, "'%s' is given twice", r->path);
    copy = mo_arena_strndup(r->l->arena, name.p, name.n);
    if (!copy)
        r->l->no_memory = true;
    memcpy(item, &copy, sizeof(copy));
    read_item(r, k, item, key.p, val);
    pop_name(r, old);
}

static void read_numbered(struct reader *r, const struct mo_key *k, char *items,
                          size_t i, struct mo_json val)
{
    char index[24];
    size_t old;

    (void)snprintf(index, sizeof(index), "%zu", i + 1);
    old = push_name(r, mo_span_cstr(index));
    read_item(r, k, items + i * k->sub->size, val.p, val);
    pop_name(r, old);
}

/* A dictionary or an array. */
static void read_items(struct reader *r, const struct mo_key *k, void *field,
                       struct mo_json v)
{
    bool named = k->type == MO_KEY_DICT;
    struct mo_json_iter it;
    struct mo_json key, val;
    char *items;

    if (!expect_type(r, v, named ? MO_JSON_OBJECT : MO_JSON_ARRAY))
        return;
    items = new_items(r, k, field, v);
    mo_json_iter(&it, v);
    for (size_t i = 0; items && mo_json_next(&it, &key, &val); i++) {
        if (named)
            read_named(r, k, items, i, key, val);
        else
            read_numbered(r, k, items, i, val);
    }
}

/* "network" */
static void read_section_or_none(struct reader *r, const struct mo_keys *keys,
                                 void *base, struct mo_json v)
{
    if (mo_json_is(v, MO_JSON_OBJECT))
        read_section(r, keys, base, v);
    else if (!mo_json_str_eq(v, MO_SPAN("none")))
        mo_config_error_at(r->l, v.p,
                           "'%s' must be \"none\" or an object: "
                           "{ \"allow\": [ \"HOST\", ... ] }",
                           r->path);
}

static void read_value(struct reader *r, const struct mo_key *k, char *base,
                       struct mo_json key, struct mo_json val)
{
    void *field = base + k->off;
    struct mo_err e = {0};

    if (k->flags & MO_KEY_NONE)
        record_origin(r, field, key.p);
    if (k->type == MO_KEY_SECTION) {
        if (!(k->flags & MO_KEY_NONE))
            read_section(r, k->sub, field, val);
        else
            read_section_or_none(r, k->sub, field, val);
        return;
    }
    record_origin(r, field, key.p);
    if (k->type == MO_KEY_DICT || k->type == MO_KEY_ARRAY)
        read_items(r, k, field, val);
    else if (mo_config_set_json(r->l, k, field, val, &e) < 0)
        mo_config_error_at(r->l, r->l->at, "'%s' %s", r->path, e.msg);
}

/* --- objects ------------------------------------------------------------- */

/* Rows of the same struct member (aliases) share the bit of the first row. */
static uint64_t key_bit(const struct mo_keys *keys, const struct mo_key *k)
{
    size_t i = 0;

    MO_BUG_ON(keys->n > 64);
    while (keys->v[i].off != k->off)
        i++;
    return UINT64_C(1) << i;
}

static void read_member(struct reader *r, const struct mo_keys *keys,
                        char *base, struct mo_json key, struct mo_json val,
                        uint64_t *seen)
{
    const struct mo_key *k;
    struct mo_span name;
    size_t old;

    if (mo_json_str(key, r->l->arena, &name) < 0) {
        r->l->no_memory = true;
        return;
    }
    if (r->len == 0 && mo_span_is(name, "$schema"))
        return; /* for editors */
    k = mo_key_get(keys, name);
    old = push_name(r, name);
    if (!k)
        report_unknown_key(r, keys, name, key.p);
    else if (*seen & key_bit(keys, k))
        mo_config_error_at(r->l, key.p, "'%s' is given twice", r->path);
    else
        read_value(r, k, base, key, val);
    if (k)
        *seen |= key_bit(keys, k);
    pop_name(r, old);
}

static void read_section(struct reader *r, const struct mo_keys *keys,
                         void *base, struct mo_json v)
{
    uint64_t seen = 0;

    if (!expect_type(r, v, MO_JSON_OBJECT))
        return;
    mo_json_each (it, v)
        read_member(r, keys, base, it.key, it.val, &seen);
}

/* --- the file ------------------------------------------------------------ */

/* Advice about common mistakes in JSON. */
static const char *syntax_hint(struct mo_span text, size_t at)
{
    struct mo_span rest = mo_span_skip(text, at);
    size_t before = at;

    if (before == text.n && mo_span_only(text, " \t\r\n"))
        return "; the file is empty: write at least {}";
    if (mo_span_starts(text, MO_SPAN("\xef\xbb\xbf")))
        return "; save the file as UTF-8 without a byte order mark";
    if (mo_span_starts(rest, MO_SPAN("//")) ||
        mo_span_starts(rest, MO_SPAN("/*")) ||
        mo_span_starts(rest, MO_SPAN("#")))
        return "; JSON has no comments: remove it (\"description\" keys "
               "can hold notes)";
    if (rest.n && rest.p[0] == '\'')
        return "; JSON strings need double quotes";
    while (before > 0 && strchr(" \t\r\n", text.p[before - 1]))
        before--;
    if (rest.n && before > 0 && text.p[before - 1] == ',' &&
        (rest.p[0] == '}' || rest.p[0] == ']'))
        return "; JSON allows no comma after the last entry";
    return "";
}

int mo_config_read(struct mo_config_load *l, struct mo_err *e)
{
    struct reader r = {
        .l = l, .seen = l->text.p, .line_start = l->text.p, .line = 1};
    struct mo_json_doc doc = {.bad_at = 0};
    struct mo_err why = {0};

    if (mo_json_parse(l->text, MO_CONFIG_DEPTH_MAX, &doc, &why) < 0) {
        /* Skips the line and column, which mo_config_error_at() adds. */
        const char *what = strstr(why.msg, ": ");

        mo_config_error_at(l, l->text.p + doc.bad_at, "not JSON: %s%s",
                           what ? what + 2 : why.msg,
                           syntax_hint(l->text, doc.bad_at));
        return mo_fail(e, MO_EINVAL, "%s is not JSON", l->file);
    }
    if (!mo_json_is(doc.root, MO_JSON_OBJECT)) {
        mo_config_error_at(l, doc.root.p,
                           "the configuration must be an object: { ... }");
        return mo_fail(e, MO_EINVAL, "%s is not an object", l->file);
    }
    read_section(&r, &mo_config_keys, l->cfg, doc.root);
    return l->no_memory ? mo_fail(e, MO_ENOMEM, "%s: out of memory", l->file)
                        : 0;
}
