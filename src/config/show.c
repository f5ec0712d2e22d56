#include <stdio.h>

#include "codec/json/json.h"
#include "config/doc.h"
#include "config/keys.h"
#include "config/reference.h"

#define KEY_COLUMN   28
#define VALUE_COLUMN 34

/* --- masking ------------------------------------------------------------- */

/* The offset of the query or fragment; negative if there is none. */
static ptrdiff_t find_query(struct mo_span url)
{
    ptrdiff_t query = mo_span_find(url, '?');
    ptrdiff_t part = mo_span_find(url, '#');

    return query < 0 || (part >= 0 && part < query) ? part : query;
}

/* "redis://user:***@host", "https://host/path?***": a URL keeps what helps
 * and loses what may be secret. */
void mo_config_put_url(struct mo_buf *b, const char *url)
{
    struct mo_span s = mo_span_cstr(url);
    ptrdiff_t scheme = mo_span_search(s, MO_SPAN("://"));
    ptrdiff_t query = find_query(s);
    struct mo_span rest = mo_span_skip(s, scheme < 0 ? 0 : (size_t)scheme + 3);
    struct mo_span host = rest;
    struct mo_span auth = mo_span_cut(&host, '/');
    ptrdiff_t at = -1;

    for (size_t i = 0; i < auth.n; i++) {
        if (auth.p[i] == '@')
            at = (ptrdiff_t)i;
    }
    if (query >= 0)
        s.n = (size_t)query;
    mo_buf_put(b, s.p, (size_t)(rest.p - s.p));
    if (at >= 0) {
        mo_buf_puts(b, "***");
        rest = mo_span_skip(rest, (size_t)at);
    }
    if (s.p + s.n > rest.p)
        mo_buf_put(b, rest.p, (size_t)(s.p + s.n - rest.p));
    if (query >= 0)
        mo_buf_printf(b, "%c***", url[query]);
}

void mo_config_put_where(struct mo_buf *b, const struct mo_config_mcp *m)
{
    if (m->url && !m->command)
        mo_config_put_url(b, m->url);
    else
        mo_buf_puts(b, m->command ? m->command : m->image);
}

void mo_config_put_target(struct mo_buf *b, const struct mo_config_mcp *m)
{
    if (m->url) {
        mo_config_put_url(b, m->url);
        return;
    }
    mo_buf_puts(b, m->image ? m->image : m->command);
    for (size_t i = 0; i < m->args.n; i++)
        mo_buf_printf(b, " %s", m->args.v[i]);
}

static void put_str(struct mo_buf *b, const struct mo_key *k, const char *s)
{
    if (k->flags & MO_KEY_SECRET)
        mo_reference_mask(mo_span_cstr(s), b);
    else if (k->flags & MO_KEY_URL)
        mo_config_put_url(b, s);
    else
        mo_buf_puts(b, s);
}

static void jw_masked(struct mo_jw *w, const struct mo_key *k, const char *s)
{
    struct mo_buf text;

    mo_buf_init(&text, MO_KEY_TEXT_MAX * 2);
    put_str(&text, k, s);
    if (mo_buf_err(&text))
        w->b->err = mo_buf_err(&text);
    mo_jw_str(w, mo_buf_view(&text));
    mo_buf_fini(&text);
}

/* --- one value as JSON --------------------------------------------------- */

static void show_value(struct mo_jw *w, const struct mo_key *k,
                       const void *field)
{
    const struct mo_config_list *list = field;
    const struct mo_config_map *map = field;
    const char *s = NULL;

    switch (k->type) {
    case MO_KEY_BOOL:
        mo_jw_bool(w, *(const bool *)field);
        break;
    case MO_KEY_INT:
        mo_jw_i64(w, *(const int64_t *)field);
        break;
    case MO_KEY_NUM:
        mo_jw_f64(w, *(const double *)field);
        break;
    case MO_KEY_WORD:
        mo_jw_cstr(w, mo_key_word(k, *(const int *)field));
        break;
    case MO_KEY_STR:
        s = *(const char *const *)field;
        if (s)
            jw_masked(w, k, s);
        else
            mo_jw_null(w);
        break;
    case MO_KEY_LIST:
        mo_jw_arr(w);
        for (size_t i = 0; i < list->n; i++)
            jw_masked(w, k, list->v[i]);
        mo_jw_end(w);
        break;
    case MO_KEY_MAP:
        mo_jw_obj(w);
        for (size_t i = 0; i < map->n; i++) {
            mo_jw_key(w, map->v[i].name);
            jw_masked(w, k, map->v[i].value);
        }
        mo_jw_end(w);
        break;
    default:
        mo_jw_null(w);
    }
}

/* --- all values ---------------------------------------------------------- */

/* Called for every leaf that is to be shown. */
typedef void leaf_fn(void *ctx, const char *path, const struct mo_key *k,
                     const void *field, const struct mo_config_origin *o);

struct tour {
    const struct mo_config *cfg;
    bool all;
    leaf_fn *fn;
    void *ctx;
};

static void tour_struct(const struct tour *t, const struct mo_keys *keys,
                        const char *base, const char *path);

static void tour_items(const struct tour *t, const struct mo_key *k,
                       const char *field, const char *path)
{
    struct mo_key_items items = mo_key_items(field);

    for (size_t i = 0; i < items.n; i++) {
        const char *item = items.v + i * k->sub->size;
        char longer[MO_KEY_PATH_MAX];
        char index[24];

        (void)snprintf(index, sizeof(index), "%zu", i + 1);
        mo_key_join(longer, path,
                    k->type == MO_KEY_DICT
                        ? *(const char *const *)(const void *)item
                        : index);
        tour_struct(t, k->sub, item, longer);
    }
}

/* Inside dictionaries defaults are noise unless all was asked for. */
static bool wanted(const struct tour *t, const struct mo_config_origin *o,
                   const char *field)
{
    const char *start = (const char *)t->cfg;
    bool inside = field < start || field >= start + sizeof(*t->cfg);

    if (t->all)
        return true;
    return o && !(inside && o->layer == MO_LAYER_DEFAULT);
}

static void tour_struct(const struct tour *t, const struct mo_keys *keys,
                        const char *base, const char *path)
{
    for (size_t i = 0; i < keys->n; i++) {
        const struct mo_key *k = &keys->v[i];
        const char *field = base + k->off;
        const struct mo_config_origin *o = mo_config_origin(t->cfg, field);
        char longer[MO_KEY_PATH_MAX];

        mo_key_join(longer, path, k->name);
        if (k->flags & MO_KEY_ALIAS)
            continue;
        if (k->type == MO_KEY_SECTION)
            tour_struct(t, k->sub, field, longer);
        else if (k->type == MO_KEY_DICT || k->type == MO_KEY_ARRAY)
            tour_items(t, k, field, longer);
        else if (wanted(t, o, field))
            t->fn(t->ctx, longer, k, field, o);
    }
}

/* --- for a person -------------------------------------------------------- */

static void put_origin(struct mo_buf *b, const struct mo_config_origin *o)
{
    static const char *const words[] = {
        [MO_LAYER_DEFAULT] = "",       [MO_LAYER_FILE] = "",
        [MO_LAYER_DOTENV] = "",        [MO_LAYER_ENV] = "environment ",
        [MO_LAYER_FLAG] = "option --",
    };

    if (!o) {
        mo_buf_puts(b, "not set");
        return;
    }
    mo_buf_printf(b, "%s%s", words[o->layer], o->name);
    if (o->line)
        mo_buf_printf(b, ":%u", o->line);
}

static void show_line(void *ctx, const char *path, const struct mo_key *k,
                      const void *field, const struct mo_config_origin *o)
{
    struct mo_buf *b = ctx, value;
    struct mo_jw w;

    mo_buf_init(&value, MO_CONFIG_FILE_MAX);
    mo_jw_init(&w, &value);
    show_value(&w, k, field);
    mo_buf_printf(b, "%-*s  %-*s  ", KEY_COLUMN, path, VALUE_COLUMN,
                  mo_buf_cstr(&value));
    put_origin(b, o);
    mo_buf_putc(b, '\n');
    if (mo_buf_err(&value))
        b->err = mo_buf_err(&value);
    mo_buf_fini(&value);
}

void mo_config_show(const struct mo_config *c, bool all, struct mo_buf *b)
{
    struct tour t = {c, all, show_line, b};

    mo_buf_printf(b, "# config file: %s\n",
                  c->file ? c->file : "none found, defaults are used");
    tour_struct(&t, &mo_config_keys, (const char *)c, "");
}

/* --- for a machine ------------------------------------------------------- */

static void show_object(void *ctx, const char *path, const struct mo_key *k,
                        const void *field, const struct mo_config_origin *o)
{
    static const char *const layers[] = {
        [MO_LAYER_DEFAULT] = "default", [MO_LAYER_FILE] = "file",
        [MO_LAYER_DOTENV] = "dotenv",   [MO_LAYER_ENV] = "environment",
        [MO_LAYER_FLAG] = "flag",
    };
    struct mo_jw *w = ctx;

    mo_jw_obj(w);
    mo_jw_key(w, "key");
    mo_jw_cstr(w, path);
    mo_jw_key(w, "value");
    show_value(w, k, field);
    mo_jw_key(w, "source");
    mo_jw_cstr(w, o ? layers[o->layer] : NULL);
    if (o && o->layer != MO_LAYER_DEFAULT) {
        mo_jw_key(w, "name");
        mo_jw_cstr(w, o->name);
    }
    if (o && o->line) {
        mo_jw_key(w, "line");
        mo_jw_u64(w, o->line);
    }
    mo_jw_end(w);
}

void mo_config_show_json(const struct mo_config *c, bool all, struct mo_buf *b)
{
    struct mo_jw w;
    struct tour t = {c, all, show_object, &w};

    mo_jw_init(&w, b);
    mo_jw_obj(&w);
    mo_jw_key(&w, "file");
    mo_jw_cstr(&w, c->file);
    mo_jw_key(&w, "values");
    mo_jw_arr(&w);
    tour_struct(&t, &mo_config_keys, (const char *)c, "");
    mo_jw_end(&w);
    mo_jw_end(&w);
}
