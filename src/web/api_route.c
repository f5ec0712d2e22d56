#include "web/api_route.h"

#include <stdlib.h>

#include "base/mem.h"
#include "codec/http/url.h"
#include "codec/json/json.h"

#define WORDS_MAX  ((size_t)4096)
#define NUMBER_MAX ((size_t)32)
#define ANSWER_MAX ((size_t)4 * 1024 * 1024)
#define BODY_MAX   ((size_t)16 * 1024)

/* 0 also when it is not there; MO_EINVAL: no number from 0 to most. */
static int number(struct mo_req *rq, const char *key, double most, double *out)
{
    mo_autobuf struct mo_buf b = {.max = NUMBER_MAX};
    bool there = mo_query_get(rq->query, key, &b) == 0 && b.len;
    char *end = NULL;

    *out = there ? strtod(mo_buf_cstr(&b), &end) : 0;
    if (mo_buf_err(&b) || (there && *end) || !(*out >= 0 && *out <= most))
        return MO_EINVAL;
    return 0;
}

static void answer(const struct mo_api_route *r, struct mo_req *rq,
                   const struct mo_api_route_ask *a)
{
    mo_autobuf struct mo_buf b = {.max = ANSWER_MAX};

    if (r->find(r->ctx, a, &b) < 0)
        mo_req_problem(rq, 503, "no_memory", "out of memory");
    else
        mo_req_reply(rq, 200, "application/json", mo_buf_view(&b));
}

static bool is_there(const struct mo_api_route *r, struct mo_req *rq)
{
    if (!r->ctx)
        mo_req_problem(rq, 503, "not_ready", "the gateway is not there");
    return r->ctx != NULL;
}

static void on_route(void *ctx, struct mo_req *rq)
{
    const struct mo_api_route *r = ctx;
    struct mo_api_route_ask a = {.who = mo_req_peer(rq)};
    mo_autobuf struct mo_buf words = {.max = WORDS_MAX};
    double limit = 0;

    if (!is_there(r, rq))
        return;
    (void)mo_query_get(rq->query, "q", &words);
    a.words = mo_buf_view(&words);
    if (mo_buf_err(&words) || a.words.n == 0)
        mo_req_problem(rq, 400, "bad_request",
                       "?q= says in plain words what is to be done");
    else if (number(rq, "limit", MO_API_ROUTE_LIMIT, &limit) < 0 ||
             number(rq, "threshold", 1, &a.threshold) < 0)
        mo_req_problem(rq, 400, "bad_request",
                       "limit is at most 50, threshold from 0 to 1");
    else {
        a.limit = (size_t)limit;
        answer(r, rq, &a);
    }
}

/* --- lessons ------------------------------------------------------------- */

static int text(struct mo_json from, const char *key, struct mo_arena *a,
                struct mo_span *out)
{
    struct mo_json v = mo_json_get(from, key);

    if (!mo_json_is(v, MO_JSON_STRING) || mo_json_str(v, a, out) < 0)
        return MO_EINVAL;
    return out->n ? 0 : MO_EINVAL;
}

static int read_lesson(struct mo_span body, struct mo_arena *a,
                       struct mo_api_lesson *l)
{
    struct mo_json_doc doc;

    if (mo_json_parse(body, 0, &doc, NULL) < 0 ||
        text(doc.root, "words", a, &l->words) < 0 ||
        text(doc.root, "server", a, &l->server) < 0 ||
        text(doc.root, "tool", a, &l->tool) < 0)
        return MO_EINVAL;
    return mo_json_bool(mo_json_get(doc.root, "right"), &l->right);
}

static void on_lesson(struct mo_req *rq, struct mo_span body)
{
    const struct mo_api_route *r = rq->data;
    struct mo_api_lesson l;
    mo_autoarena struct mo_arena a = {.cap = BODY_MAX * 4};

    if (!is_there(r, rq)) /* it went while the body came */
        return;
    if (read_lesson(body, &a, &l) < 0 || l.words.n > WORDS_MAX)
        mo_req_problem(rq, 400, "bad_request",
                       "the body is {words: string, server: string, tool: "
                       "string, right: boolean}");
    else if (!r->teach(r->ctx, &l))
        mo_req_problem(rq, 404, "not_found", "there is no such tool");
    else
        mo_req_reply(rq, 200, "application/json", MO_SPAN("{\"ok\":true}"));
}

static void on_teach(void *ctx, struct mo_req *rq)
{
    if (!is_there(ctx, rq))
        return;
    rq->data = ctx;
    mo_req_body(rq, BODY_MAX, on_lesson);
}

static void on_forget(void *ctx, struct mo_req *rq)
{
    const struct mo_api_route *r = ctx;

    if (!is_there(r, rq))
        return;
    r->forget(r->ctx);
    mo_req_reply(rq, 200, "application/json", MO_SPAN("{\"ok\":true}"));
}

int mo_api_route_routes(struct mo_site *s, struct mo_api_route *r)
{
    const struct mo_route routes[] = {
        {MO_HTTP_GET, "/api/route", 0, on_route, r},
        {MO_HTTP_POST, "/api/route/teach", 0, on_teach, r},
        {MO_HTTP_DELETE, "/api/route/learnt", 0, on_forget, r},
    };
    int rc = 0;

    for (size_t i = 0; rc == 0 && i < MO_COUNT(routes); i++)
        rc = mo_site_route(s, &routes[i]);
    return rc;
}
