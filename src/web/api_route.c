/*
 * api_route.c - asks and teaches the router of the running gateway; see api.h.
 */
#include <stdlib.h>

#include "audit/audit.h"
#include "codec/http/url.h"
#include "gateway/inside.h"
#include "servers/gateway_setup.h"
#include "web/api_job.h"

#define WORDS_MAX   ((size_t)4096)
#define NUMBER_MAX  ((size_t)32)
#define RESULTS_MAX 50
#define ANSWER_MAX  ((size_t)4 * 1024 * 1024)
#define BODY_MAX    ((size_t)16 * 1024)

/* NULL: the gateway is not running, and the request was answered. */
static struct mo_gateway *gateway_of(const struct mo_api *api,
                                     struct mo_req *rq)
{
    if (!mo_api_has(rq, api->gateway, "the gateway is not there"))
        return NULL;
    return mo_gateway_setup_gateway(api->gateway);
}

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

static void answer(const struct mo_api *api, struct mo_gateway *g,
                   struct mo_req *rq, const struct mo_gw_find *f)
{
    mo_autobuf struct mo_buf b = {.max = ANSWER_MAX};
    int rc = mo_gateway_find(g, f, &b);
    const struct mo_audit_lookup lookup = {
        .via = "/api/route",
        .who = mo_span_cstr(mo_req_peer(rq)),
        .words = f->words,
        .answer = mo_buf_view(&b),
    };

    if (rc == 0)
        mo_audit_lookup(mo_approvals_audit(api->approvals), &lookup);
    else
        b.err = rc;
    mo_api_send(rq, &b);
}

static void get_route(void *ctx, struct mo_req *rq)
{
    const struct mo_api *api = ctx;
    struct mo_gateway *g = gateway_of(api, rq);
    struct mo_gw_find f = {.changed = mo_policy_item_changed};
    mo_autobuf struct mo_buf words = {.max = WORDS_MAX};
    double limit = 0;

    if (!g)
        return;
    (void)mo_query_get(rq->query, "q", &words);
    f.words = mo_buf_view(&words);
    f.ctx = mo_approvals_policy(api->approvals);
    if (mo_buf_err(&words) || f.words.n == 0)
        mo_req_problem(rq, 400, "bad_request",
                       "?q= says in plain words what is to be done");
    else if (number(rq, "limit", RESULTS_MAX, &limit) < 0 ||
             number(rq, "threshold", 1, &f.threshold) < 0)
        mo_req_problem(rq, 400, "bad_request",
                       "limit is at most 50, threshold from 0 to 1");
    else {
        f.limit = (size_t)limit;
        answer(api, g, rq, &f);
    }
}

/* --- lessons ------------------------------------------------------------- */

static int read_lesson(struct mo_span body, struct mo_arena *a,
                       struct mo_gw_lesson *l)
{
    struct mo_json_doc doc;

    if (mo_json_parse(body, 0, &doc, NULL) < 0 ||
        mo_api_text(doc.root, "words", a, &l->words) < 0 ||
        mo_api_text(doc.root, "server", a, &l->server) < 0 ||
        mo_api_text(doc.root, "tool", a, &l->tool) < 0 || l->words.n == 0 ||
        l->server.n == 0 || l->tool.n == 0)
        return MO_EINVAL;
    return mo_json_bool(mo_json_get(doc.root, "right"), &l->right);
}

static void post_lesson(struct mo_req *rq, struct mo_span body)
{
    struct mo_gateway *g = gateway_of(rq->data, rq);
    struct mo_gw_lesson l = {.right = false};
    mo_autoarena struct mo_arena a = {.cap = BODY_MAX * 4};

    if (!g)
        return;
    if (read_lesson(body, &a, &l) < 0 || l.words.n > WORDS_MAX)
        mo_req_problem(rq, 400, "bad_request",
                       "the body is {words: string, server: string, tool: "
                       "string, right: boolean}");
    else if (!mo_gateway_teach(g, &l))
        mo_req_problem(rq, 404, "not_found", "there is no such tool");
    else
        mo_api_send_ok(rq);
}

static void delete_learnt(void *ctx, struct mo_req *rq)
{
    struct mo_gateway *g = gateway_of(ctx, rq);

    if (!g)
        return;
    mo_gateway_forget_learning(g);
    mo_api_send_ok(rq);
}

int mo_api_route_routes(struct mo_site *s, struct mo_api *api)
{
    static const struct mo_route routes[] = {
        {MO_HTTP_GET, "/api/route", 0, get_route},
        {MO_HTTP_POST, "/api/route/teach", .body = post_lesson,
         .max = BODY_MAX},
        {MO_HTTP_DELETE, "/api/route/learnt", 0, delete_learnt},
    };

    return mo_site_add(s, routes, MO_COUNT(routes), api);
}
