/* seek.c - what the router would choose, and what it cannot choose and why.
 *
 * One index over everything that is configured (guide_new_all), so that what
 * cannot be used is measured against what can. A tool is ruled out when its
 * server is off, its circuit open or a sign-in missing, when it is hidden, or
 * when nobody knows yet what its server has. */
#include <stdio.h>

#include "gateway/guide.h"

#define LIMIT     5
#define WHY_MAX   400
#define LEAST     0.01 /* confidence of what is worth naming */
#define OUT_LEAST 0.2  /* and of what is worth ruling out */

struct verdict {
    const char *code; /* NULL: it can be used */
    char why[WHY_MAX];
};

struct hit {
    const struct mo_route_hit *h;
    const struct mo_cat_item *item; /* NULL: its server was never read */
    unsigned server;
    bool off;
};

/* --- what was hit -------------------------------------------------------- */

static bool is_of(const struct mo_catalog *c, const struct mo_cat_item *it,
                  const struct mo_route_hit *h)
{
    return mo_span_eq(it->given, h->tool) &&
           mo_span_is(h->server, mo_catalog_about(c, it->server).name);
}

static void look_up(const struct mo_catalog *c, struct hit *x)
{
    size_t n = mo_catalog_count(c, MO_CAT_TOOLS);
    const struct mo_cat_item *it = NULL;

    for (size_t i = 0; i < n && !x->item; i++) {
        it = mo_catalog_at(c, MO_CAT_TOOLS, i);
        x->item = is_of(c, it, x->h) ? it : NULL;
    }
    it = x->item ? NULL : mo_catalog_off(c, 0);
    for (size_t i = 0; it && !x->item; it = mo_catalog_off(c, ++i)) {
        x->item = is_of(c, it, x->h) ? it : NULL;
        x->off = x->item != NULL;
    }
    for (unsigned i = 0; i < mo_catalog_all(c); i++)
        if (mo_span_is(x->h->server, mo_catalog_about(c, i).name))
            x->server = i;
}

static void say(struct verdict *v, const char *code, const char *what,
                const char *rest)
{
    v->code = code;
    (void)snprintf(v->why, sizeof(v->why), "%s%s", what, rest);
}

/* What its server is like just now. */
static void judge_server(const struct mo_gateway *g, const struct hit *x,
                         struct verdict *v)
{
    const struct mo_up *u = g->v[x->server]->up;
    struct mo_up_status s;

    mo_up_status(u, &s);
    if (s.state == MO_UP_SIGN_IN)
        say(v, "sign-in", "a person must sign in first: mcp test ",
            mo_up_server(u)->name);
    if (s.state != MO_UP_BROKEN)
        return;
    v->code = "circuit-open";
    (void)snprintf(v->why, sizeof(v->why),
                   "it fails again and again; tried again in %llu s: %s",
                   (unsigned long long)(s.retry_ms + 999) / 1000, s.why.msg);
}

static void judge(const struct mo_gateway *g, const struct hit *x,
                  struct verdict *v)
{
    struct mo_cat_about s = mo_catalog_about(g->cat, x->server);
    const char *why = mo_catalog_why(g->cat, x->server);

    v->code = NULL;
    if (s.off)
        say(v, "disabled", "it is disabled in the configuration: mcp enable ",
            s.name);
    else if (x->off)
        say(v, "hidden", "it is hidden in the configuration, by `tools` of ",
            s.name);
    else if (!x->item && why)
        say(v, "unlisted", "it could not be asked what it has: ", why);
    else if (!x->item)
        say(v, "unlisted",
            "nobody knows yet what it has; find --refresh, or mcp test ",
            s.name);
    else
        judge_server(g, x, v);
}

/* --- what is said -------------------------------------------------------- */

static void put_number(struct mo_jw *w, const char *key, float v)
{
    mo_jw_key(w, key);
    mo_jw_f64(w, (double)(int)(v * 1000 + (v < 0 ? -0.5f : 0.5f)) / 1000);
}

static void put_hit(const struct hit *x, const struct verdict *v,
                    struct mo_jw *w)
{
    struct mo_json text = {NULL, 0};

    mo_jw_obj(w);
    mo_jw_key(w, "server");
    mo_jw_str(w, x->h->server);
    if (x->item) {
        mo_jw_key(w, "tool");
        mo_jw_str(w, x->h->tool);
        text = mo_json_get(x->item->item, "description");
    }
    if (x->item && x->item->name.p) {
        mo_jw_key(w, "name");
        mo_jw_str(w, x->item->name);
    }
    put_number(w, "confidence", x->h->confidence);
    put_number(w, "score", x->h->score);
    put_number(w, "words", x->h->words);
    put_number(w, "meaning", x->h->meaning);
    if (x->h->equal) {
        mo_jw_key(w, "equivalent");
        mo_jw_bool(w, true);
    }
    if (mo_json_is(text, MO_JSON_STRING)) {
        mo_jw_key(w, "description");
        mo_jw_raw(w, mo_json_text(text));
    }
    if (v->code) {
        mo_jw_key(w, "reason");
        mo_jw_cstr(w, v->code);
        mo_jw_key(w, "why");
        mo_jw_cstr(w, v->why);
    }
    mo_jw_end(w);
}

/* Those that can be used, or those that cannot. */
static void put_list(const struct mo_gateway *g, const struct mo_gw_find *f,
                     const struct mo_route_answer *a, bool ruled_out,
                     struct mo_jw *w)
{
    size_t most = f->limit ? f->limit : LIMIT, n = 0;

    mo_jw_key(w, ruled_out ? "ruledOut" : "results");
    mo_jw_arr(w);
    for (size_t i = 0; i < a->n && n < most; i++) {
        struct hit x = {.h = &a->hits[i]};
        double sure = (double)x.h->confidence;
        struct verdict v;

        if (sure < f->threshold || sure < (ruled_out ? OUT_LEAST : LEAST))
            continue;
        look_up(g->cat, &x);
        judge(g, &x, &v);
        if ((v.code != NULL) != ruled_out)
            continue;
        put_hit(&x, &v, w);
        n++;
    }
    mo_jw_end(w);
}

int mo_gateway_find(struct mo_gateway *g, const struct mo_gw_find *f,
                    struct mo_buf *out)
{
    struct mo_route_answer *a = mo_new(struct mo_route_answer);
    struct mo_jw w;
    int rc = a ? 0 : MO_ENOMEM;

    if (rc == 0 && !g->seek)
        g->seek = guide_new_all(g->guide);
    if (rc == 0)
        rc = g->seek ? guide_find(g->seek, g, f->words, MO_ROUTE_HITS_MAX, a)
                     : MO_ENOMEM;
    if (rc == 0) {
        mo_jw_init(&w, out);
        mo_jw_obj(&w);
        mo_jw_key(&w, "query");
        mo_jw_str(&w, f->words);
        put_list(g, f, a, false, &w);
        put_list(g, f, a, true, &w);
        mo_jw_end(&w);
        rc = mo_buf_err(out);
    }
    mo_free(a);
    return rc;
}

void mo_gateway_refresh(struct mo_gateway *g)
{
    refresh_all(g, MO_SPAN("c:find"), MO_SPAN("{}"));
}

bool mo_gateway_busy(const struct mo_gateway *g)
{
    return refresh_busy(g);
}
