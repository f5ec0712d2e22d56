/* router_explain.c - see router_explain.h. */
#include "gateway/router/router_explain.h"

#include "base/map.h"
#include "base/mem.h"
#include "route/words.h"

#define TEXT_MAX ((size_t)64 * 1024) /* of a description */

enum field { TOOL, DESCRIPTION, ARGUMENTS, SERVER, FIELDS };

static const char *const names[FIELDS] = {
    [TOOL] = "tool",
    [DESCRIPTION] = "description",
    [ARGUMENTS] = "arguments",
    [SERVER] = "server",
};

struct word {
    struct mo_span text;
    uint64_t terms[EXPLAIN_TERMS_MAX];
    size_t n;
    unsigned in; /* fields that have it, as bits */
};

struct router_explain {
    struct mo_words *words;
    struct word v[EXPLAIN_WORDS_MAX];
    size_t n;
    enum field field; /* being read */
};

static uint64_t hash_term(struct mo_span term)
{
    return mo_siphash(0x7365656b2d776879, 0x7368617265642d31, term);
}

/* --- the request --------------------------------------------------------- */

static void on_asked(void *ctx, struct mo_span term, bool extra)
{
    struct word *w = ctx;

    (void)extra;
    if (w->n < EXPLAIN_TERMS_MAX)
        w->terms[w->n++] = hash_term(term);
}

static bool is_letter(unsigned char c)
{
    return c >= 0x80 || (c >= '0' && c <= '9') ||
           ((c | 32) >= 'a' && (c | 32) <= 'z');
}

static bool has_word(const struct router_explain *y, struct mo_span text)
{
    for (size_t i = 0; i < y->n; i++)
        if (mo_span_eq(y->v[i].text, text))
            return true;
    return false;
}

static void add_word(struct router_explain *y, struct mo_span text)
{
    struct word *w = &y->v[y->n];

    if (has_word(y, text))
        return;
    *w = (struct word){.text = text};
    mo_words_each(y->words, text, on_asked, w);
    y->n += w->n > 0;
}

struct router_explain *mo_router_explain_new(struct mo_span request)
{
    struct router_explain *y = mo_new(struct router_explain);
    size_t i = 0;

    if (!y)
        return NULL;
    y->words = mo_words_new();
    if (!y->words) {
        mo_free(y);
        return NULL;
    }
    while (i < request.n && y->n < EXPLAIN_WORDS_MAX) {
        size_t from = i;

        while (i < request.n && is_letter((unsigned char)request.p[i]))
            i++;
        if (i > from)
            add_word(y, mo_span(request.p + from, i - from));
        else
            i++;
    }
    return y;
}

void mo_router_explain_free(struct router_explain *y)
{
    if (!y)
        return;
    mo_words_free(y->words);
    mo_free(y);
}

/* --- a tool -------------------------------------------------------------- */

static bool has_term(const struct word *w, uint64_t term)
{
    for (size_t i = 0; i < w->n; i++)
        if (w->terms[i] == term)
            return true;
    return false;
}

static void on_term(void *ctx, struct mo_span term, bool extra)
{
    struct router_explain *y = ctx;
    uint64_t n = hash_term(term);

    (void)extra;
    for (size_t i = 0; i < y->n; i++)
        if (has_term(&y->v[i], n))
            y->v[i].in |= 1u << y->field;
}

static void read_text(struct router_explain *y, enum field f,
                      struct mo_span text)
{
    y->field = f;
    mo_words_each(y->words, text, on_term, y);
}

static void read_json(struct router_explain *y, enum field f, struct mo_json v)
{
    mo_autobuf struct mo_buf b = {.max = TEXT_MAX};

    if (mo_json_is(v, MO_JSON_STRING) && mo_json_str_buf(v, &b) == 0)
        read_text(y, f, mo_buf_view(&b));
}

static void read_item(struct router_explain *y, const struct mo_cat_item *item)
{
    struct mo_json all =
        mo_json_get(mo_json_get(item->item, "inputSchema"), "properties");

    read_text(y, TOOL, item->given);
    read_json(y, DESCRIPTION, mo_json_get(item->item, "description"));
    if (!mo_json_is(all, MO_JSON_OBJECT))
        return;
    for (struct mo_json_walk m = mo_json_walk(all); mo_json_step(&m);)
        read_json(y, ARGUMENTS, m.key);
}

static void put_word(const struct word *x, struct mo_jw *w)
{
    mo_jw_obj(w);
    mo_jw_member(w, "word", x->text);
    mo_jw_member_arr(w, "in");
    for (int f = 0; f < FIELDS; f++)
        if (x->in & (1u << f))
            mo_jw_cstr(w, names[f]);
    mo_jw_end(w);
    mo_jw_end(w);
}

void mo_router_explain_put(struct router_explain *y,
                           const struct mo_cat_item *item,
                           const struct mo_cat_about *server, struct mo_jw *w)
{
    const char *const texts[] = {server->name, server->description,
                                 server->keywords};

    for (size_t i = 0; i < y->n; i++)
        y->v[i].in = 0;
    if (item)
        read_item(y, item);
    for (size_t i = 0; i < MO_COUNT(texts); i++)
        if (texts[i])
            read_text(y, SERVER, mo_span_cstr(texts[i]));
    mo_jw_member_arr(w, "shared");
    for (size_t i = 0; i < y->n; i++)
        if (y->v[i].in)
            put_word(&y->v[i], w);
    mo_jw_end(w);
}
