/* show.c - shows the effective values, secrets masked; see doc.h. */
#include "codec/json/json.h"
#include "codec/money.h"
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

/* User and password, query and fragment become "***". */
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

static void mask_text(struct mo_buf *b, const struct mo_key *k, const char *s)
{
    if (k->flags & MO_KEY_SECRET)
        mo_reference_mask(mo_span_cstr(s), b);
    else if (k->flags & MO_KEY_URL)
        mo_config_put_url(b, s);
    else
        mo_buf_puts(b, s);
}

static void put_masked(struct mo_jw *w, const struct mo_key *k, const char *s)
{
    mo_autobuf struct mo_buf text = {.max = MO_KEY_TEXT_MAX * 2};

    mask_text(&text, k, s);
    if (mo_buf_err(&text))
        w->b->err = mo_buf_err(&text);
    mo_jw_str(w, mo_buf_view(&text));
}

/* --- one value as JSON --------------------------------------------------- */

static void put_money(struct mo_jw *w, int64_t amount)
{
    mo_autobuf struct mo_buf b = {.max = 64};

    mo_money_put(&b, amount);
    mo_jw_raw(w, mo_buf_view(&b));
}

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
    case MO_KEY_MONEY:
        put_money(w, *(const int64_t *)field);
        break;
    case MO_KEY_WORD:
        mo_jw_cstr(w, mo_key_word(k, *(const int *)field));
        break;
    case MO_KEY_STR:
        s = *(const char *const *)field;
        if (s)
            put_masked(w, k, s);
        else
            mo_jw_null(w);
        break;
    case MO_KEY_LIST:
        mo_jw_arr(w);
        for (size_t i = 0; i < list->n; i++)
            put_masked(w, k, list->v[i]);
        mo_jw_end(w);
        break;
    case MO_KEY_MAP:
        mo_jw_obj(w);
        for (size_t i = 0; i < map->n; i++) {
            mo_jw_key(w, map->v[i].name);
            put_masked(w, k, map->v[i].value);
        }
        mo_jw_end(w);
        break;
    default:
        mo_jw_null(w);
    }
}

/* --- all values ---------------------------------------------------------- */

/* Called for every value that is shown. */
typedef void show_fn(void *ctx, const char *path, const struct mo_key *k,
                     const void *field, const struct mo_config_origin *o);

struct show {
    const struct mo_config *cfg;
    bool all;
    show_fn *fn;
    void *ctx;
};

/* Defaults inside dictionaries and arrays are shown only with `all`. */
static bool is_shown(const struct show *t, const struct mo_config_origin *o,
                     const char *field)
{
    const char *start = (const char *)t->cfg;
    bool inside = field < start || field >= start + sizeof(*t->cfg);

    if (t->all)
        return true;
    return o && !(inside && o->layer == MO_LAYER_DEFAULT);
}

static void visit_value(void *ctx, const char *path, const struct mo_key *k,
                        const void *field)
{
    static const struct mo_config_origin by_default = {
        .layer = MO_LAYER_DEFAULT, .name = "default"};
    const struct show *s = ctx;
    const struct mo_config_origin *o = mo_config_origin(s->cfg, field);

    if (!o && k->def)
        o = &by_default;
    if (!(k->flags & MO_KEY_ALIAS) && is_shown(s, o, field))
        s->fn(s->ctx, path, k, field, o);
}

/* --- as text ------------------------------------------------------------- */

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
    struct mo_buf *b = ctx;
    mo_autobuf struct mo_buf value = {.max = MO_CONFIG_FILE_MAX};
    struct mo_jw w;

    mo_jw_init(&w, &value);
    show_value(&w, k, field);
    mo_buf_printf(b, "%-*s  %-*s  ", KEY_COLUMN, path, VALUE_COLUMN,
                  mo_buf_cstr(&value));
    put_origin(b, o);
    mo_buf_putc(b, '\n');
    if (mo_buf_err(&value))
        b->err = mo_buf_err(&value);
}

void mo_config_show(const struct mo_config *c, bool all, struct mo_buf *b)
{
    struct show t = {c, all, show_line, b};

    mo_buf_printf(b, "# config file: %s\n",
                  c->file ? c->file : "none found, defaults are used");
    mo_keys_values(&mo_config_keys, c, visit_value, &t);
}

/* --- as JSON ------------------------------------------------------------- */

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
    mo_jw_member_cstr(w, "key", path);
    mo_jw_key(w, "value");
    show_value(w, k, field);
    mo_jw_member_cstr(w, "source", o ? layers[o->layer] : NULL);
    if (o && o->layer != MO_LAYER_DEFAULT)
        mo_jw_member_cstr(w, "name", o->name);
    if (o && o->line)
        mo_jw_member_u64(w, "line", o->line);
    mo_jw_end(w);
}

void mo_config_show_json(const struct mo_config *c, bool all, struct mo_buf *b)
{
    struct mo_jw w = mo_jw_object(b);
    struct show t = {c, all, show_object, &w};

    mo_jw_member_cstr(&w, "file", c->file);
    mo_jw_member_arr(&w, "values");
    mo_keys_values(&mo_config_keys, c, visit_value, &t);
    mo_jw_end(&w);
    mo_jw_end(&w);
}
