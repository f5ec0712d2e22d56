/* router_query.c - which tools the router would choose, and which it rules
 * out and why, for people.
 *
 * One index covers everything configured (mo_router_index_new_like), so that
 * tools that cannot be used are ranked together with the others. A tool is
 * ruled out if its server is disabled, failing, needs a sign-in or was never
 * read, if the tool is hidden, or if its definition changed and was not
 * accepted (quarantined). Each result has the words it shares with the
 * request, its scores, and what was learnt. */
#include "gateway/router/router.h"
#include "gateway/router/router_index.h"
#include "gateway/router/router_learning.h"
#include "gateway/router/unavailable_reason.h"
#include "route/words.h"

#define LIMIT     5
#define LEAST     0.01 /* least confidence of a result */
#define OUT_LEAST 0.2  /* and of a tool that is ruled out */

/* --- shared words --------------------------------------------------------
 *
 * Words are compared as the index compares them (route/words.h): folded,
 * stemmed, without common words. The vector score has no words to show.
 * Further words than EXPLAIN_WORDS_MAX, and further terms of one than
 * EXPLAIN_TERMS_MAX, are not shown. */

#define EXPLAIN_WORDS_MAX 32
#define EXPLAIN_TERMS_MAX 8
#define TEXT_MAX          ((size_t)64 * 1024) /* of a description */

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
    return c >= 0x80 || mo_is_digit((char)c) || mo_is_alpha((char)c);
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

static struct router_explain *explain_new(struct mo_span request)
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

static void explain_free(struct router_explain *y)
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
    mo_json_each (m, all)
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

/* Writes the member "shared":[{"word":"logo","in":["tool","description"]}].
 * item NULL: only the server's texts. */
static void explain_put(struct router_explain *y,
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

/* --- the query ----------------------------------------------------------- */

struct query {
    struct mo_gateway *g;
    const struct mo_gw_find *f;
    struct mo_route_answer *a;
    struct router_explain *why;
};

struct hit {
    const struct mo_route_hit *h;
    const struct mo_cat_item *item; /* NULL: its server was never read */
    unsigned server;
    bool off;
};

/* --- hits ---------------------------------------------------------------- */

static bool is_hit(const struct mo_catalog *c, const struct mo_cat_item *it,
                   const struct mo_route_hit *h)
{
    return mo_span_eq(it->given, h->tool) &&
           mo_span_is(h->server, mo_catalog_about(c, it->server).name);
}

static void find_hit(const struct mo_catalog *c, struct hit *x)
{
    size_t n = mo_catalog_count(c, MO_CAT_TOOLS);
    const struct mo_cat_item *it = NULL;

    for (size_t i = 0; i < n && !x->item; i++) {
        it = mo_catalog_at(c, MO_CAT_TOOLS, i);
        x->item = is_hit(c, it, x->h) ? it : NULL;
    }
    it = x->item ? NULL : mo_catalog_unoffered_tool(c, 0);
    for (size_t i = 0; it && !x->item; it = mo_catalog_unoffered_tool(c, ++i)) {
        x->item = is_hit(c, it, x->h) ? it : NULL;
        x->off = x->item != NULL;
    }
    for (unsigned i = 0; i < mo_catalog_server_count(c); i++)
        if (mo_span_is(x->h->server, mo_catalog_about(c, i).name))
            x->server = i;
}

/* Checks whether the tool differs from its pinned definition. */
static void check_changed(const struct mo_gateway *g,
                          const struct mo_gw_find *f, const struct hit *x,
                          struct unavailable_reason *v)
{
    if (!f->changed ||
        !f->changed(f->ctx, x->h->server, x->item->own, x->item->item))
        return;
    mo_unavailable_changed(mo_catalog_about(g->cat, x->server).name,
                           x->item->own, v);
}

static void find_reason(const struct query *k, const struct hit *x,
                        struct unavailable_reason *v)
{
    const struct mo_gateway *g = k->g;
    struct mo_cat_about s = mo_catalog_about(g->cat, x->server);
    const char *why = mo_catalog_why(g->cat, x->server);

    v->code = NULL;
    if (s.off)
        mo_unavailable_set(
            v, "disabled",
            "its server is disabled; enable it with: mcp enable %s", s.name);
    else if (x->off)
        mo_unavailable_set(v, "hidden",
                           "it is hidden by `tools` in the configuration of %s",
                           s.name);
    else if (!x->item && why)
        mo_unavailable_set(v, "unlisted",
                           "the lists of its server could not be read: %s",
                           why);
    else if (!x->item)
        mo_unavailable_set(
            v, "unlisted",
            "its server was never read; run find --refresh or mcp test %s",
            s.name);
    else
        mo_unavailable_server(g, x->server, v);
    if (!v->code && x->item)
        check_changed(g, k->f, x, v);
}

/* --- output -------------------------------------------------------------- */

static void put_number(struct mo_jw *w, const char *key, float v)
{
    mo_jw_member_f64(w, key,
                     (double)(int)(v * 1000 + (v < 0 ? -0.5f : 0.5f)) / 1000);
}

/* Writes shared words and what was learnt. */
static void put_why(const struct query *k, const struct hit *x, struct mo_jw *w)
{
    struct mo_cat_about s = mo_catalog_about(k->g->cat, x->server);
    float lean = mo_router_learning_lean(k->g->learning, k->f->words,
                                         x->h->server, x->h->tool);

    explain_put(k->why, x->item, &s, w);
    if (lean > 0 || lean < 0)
        put_number(w, "learnt", lean);
}

static void put_hit(const struct query *k, const struct hit *x,
                    const struct unavailable_reason *v, struct mo_jw *w)
{
    struct mo_json text = {NULL, 0};

    mo_jw_obj(w);
    mo_jw_member(w, "server", x->h->server);
    if (x->item) {
        mo_jw_member(w, "tool", x->h->tool);
        text = mo_json_get(x->item->item, "description");
    }
    if (x->item && !mo_span_eq(x->item->own, x->h->tool))
        mo_jw_member(w, "own", x->item->own);
    if (x->item)
        mo_jw_member_opt(w, "name", x->item->name);
    put_number(w, "confidence", x->h->confidence);
    put_number(w, "score", x->h->score);
    put_number(w, "words", x->h->words);
    put_number(w, "meaning", x->h->meaning);
    if (x->h->equal)
        mo_jw_member_bool(w, "equivalent", true);
    if (mo_json_is(text, MO_JSON_STRING))
        mo_jw_member_raw(w, "description", mo_json_text(text));
    put_why(k, x, w);
    mo_unavailable_put(v, w);
    mo_jw_end(w);
}

/* Writes the tools that can be used, or those that are ruled out. */
static void put_list(const struct query *k, bool ruled_out, struct mo_jw *w)
{
    const struct mo_route_answer *a = k->a;
    size_t most = k->f->limit ? k->f->limit : LIMIT, n = 0;

    mo_jw_member_arr(w, ruled_out ? "ruledOut" : "results");
    for (size_t i = 0; i < a->n && n < most; i++) {
        struct hit x = {.h = &a->hits[i]};
        double sure = (double)x.h->confidence;
        struct unavailable_reason v;

        if (sure < k->f->threshold || sure < (ruled_out ? OUT_LEAST : LEAST))
            continue;
        find_hit(k->g->cat, &x);
        find_reason(k, &x, &v);
        if ((v.code != NULL) != ruled_out)
            continue;
        put_hit(k, &x, &v, w);
        n++;
    }
    mo_jw_end(w);
}

static void put_answer(const struct query *k, struct mo_buf *out)
{
    struct mo_jw w = mo_jw_object(out);

    mo_jw_member(&w, "query", k->f->words);
    mo_jw_member_u64(&w, "learnt", mo_router_learning_count(k->g->learning));
    put_list(k, false, &w);
    put_list(k, true, &w);
    mo_jw_end(&w);
}

int mo_gateway_find(struct mo_gateway *g, const struct mo_gw_find *f,
                    struct mo_buf *out)
{
    struct query k = {.g = g,
                      .f = f,
                      .a = mo_new(struct mo_route_answer),
                      .why = explain_new(f->words)};
    int rc = k.a && k.why ? 0 : MO_ENOMEM;

    if (rc == 0 && !g->query_index)
        g->query_index = mo_router_index_new_like(g->router_index, true);
    if (rc == 0)
        rc = g->query_index
                 ? mo_router_index_find(g->query_index, g, g->cat, f->words,
                                        MO_ROUTE_HITS_MAX, k.a)
                 : MO_ENOMEM;
    if (rc == 0) {
        put_answer(&k, out);
        rc = mo_buf_err(out);
    }
    explain_free(k.why);
    mo_free(k.a);
    return rc;
}

/* --- lessons ------------------------------------------------------------- */

bool mo_gateway_teach(struct mo_gateway *g, const struct mo_gw_lesson *l)
{
    const struct mo_route_hit h = {.server = l->server, .tool = l->tool};
    struct hit x = {.h = &h};

    find_hit(g->cat, &x);
    if (!x.item)
        return false;
    mo_router_learning_teach(g->learning, l->words, l->server, l->tool,
                             l->right);
    return true;
}

void mo_gateway_forget_learning(struct mo_gateway *g)
{
    mo_router_learning_forget(g->learning);
}
