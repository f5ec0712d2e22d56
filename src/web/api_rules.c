#include "web/api_rules.h"

#define RULES    "/api/rules/"
#define LIST_MAX ((size_t)4 * 1024 * 1024)
#define BODY_MAX ((size_t)1024 * 1024)

static bool is_there(const struct mo_api_rules *r, struct mo_req *rq)
{
    if (r->policy == NULL)
        mo_req_problem(rq, 503, "not_ready", "the rules are not there yet");
    return r->policy != NULL;
}

static const struct {
    int code, status;
    const char *name;
} problems[] = {
    {MO_ENOTFOUND, 404, "not_found"}, {MO_EINVAL, 400, "bad_request"},
    {MO_EPROTO, 400, "bad_request"},  {MO_EBUSY, 409, "too_many"},
    {MO_ETOOBIG, 400, "too_big"},
};

static void fail(struct mo_req *rq, const struct mo_err *e)
{
    for (size_t i = 0; i < MO_COUNT(problems); i++)
        if (problems[i].code == e->code) {
            mo_req_problem(rq, problems[i].status, problems[i].name, e->msg);
            return;
        }
    mo_req_problem(rq, 503, "unavailable", e->msg);
}

static void reply(struct mo_req *rq, const struct mo_buf *b)
{
    if (mo_buf_err(b))
        mo_req_problem(rq, 503, "no_memory", "out of memory");
    else
        mo_req_reply(rq, 200, "application/json", mo_buf_view(b));
}

static void on_list(void *ctx, struct mo_req *rq)
{
    struct mo_api_rules *r = ctx;
    mo_autobuf struct mo_buf b = {.max = LIST_MAX};

    if (!is_there(r, rq))
        return;
    if (mo_rules_api_list(r->policy, &b) < 0 && !b.err)
        b.err = MO_ENOMEM;
    reply(rq, &b);
}

/* --- what comes with a body ---------------------------------------------- */

static void on_new(struct mo_req *rq, struct mo_span body)
{
    struct mo_api_rules *r = rq->data;
    mo_autobuf struct mo_buf b = {.max = LIST_MAX};
    struct mo_err e;

    if (!is_there(r, rq))
        return;
    if (mo_rules_api_add(r->policy, body, mo_req_peer(rq), &b, &e) < 0)
        fail(rq, &e);
    else
        reply(rq, &b);
}

static void on_tried(struct mo_req *rq, struct mo_span body)
{
    struct mo_api_rules *r = rq->data;
    mo_autobuf struct mo_buf b = {.max = LIST_MAX};
    struct mo_err e;

    if (!is_there(r, rq))
        return;
    if (mo_rules_api_try(r->policy, body, &b, &e) < 0)
        fail(rq, &e);
    else
        reply(rq, &b);
}

static void post_new(void *ctx, struct mo_req *rq)
{
    rq->data = ctx;
    mo_req_body(rq, BODY_MAX, on_new);
}

static void post_try(void *ctx, struct mo_req *rq)
{
    rq->data = ctx;
    mo_req_body(rq, BODY_MAX, on_tried);
}

/* --- one of them --------------------------------------------------------- */

static void on_one(void *ctx, struct mo_req *rq)
{
    struct mo_api_rules *r = ctx;
    struct mo_span id = mo_span_skip(rq->path, sizeof(RULES) - 1);
    struct mo_err e;

    if (rq->head->method != MO_HTTP_DELETE) {
        mo_req_header(rq, "Allow", MO_SPAN("DELETE"));
        mo_req_problem(rq, 405, "method_not_allowed",
                       "a rule can only be removed");
        return;
    }
    if (!is_there(r, rq))
        return;
    if (mo_rules_api_remove(r->policy, id, &e) < 0)
        fail(rq, &e);
    else
        mo_req_reply(rq, 200, "application/json", MO_SPAN("{\"ok\":true}"));
}

int mo_api_rules_routes(struct mo_site *s, struct mo_api_rules *rules)
{
    const struct mo_route routes[] = {
        {MO_HTTP_GET, "/api/rules", 0, on_list, rules},
        {MO_HTTP_POST, "/api/rules", 0, post_new, rules},
        {MO_HTTP_POST, "/api/rules/try", 0, post_try, rules},
        {MO_HTTP_OTHER, RULES, MO_ROUTE_PREFIX, on_one, rules},
    };
    int rc = 0;

    for (size_t i = 0; rc == 0 && i < MO_COUNT(routes); i++)
        rc = mo_site_route(s, &routes[i]);
    return rc;
}
