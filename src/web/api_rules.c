#include "web/api_rules.h"

#define RULES    "/api/rules/"
#define LIST_MAX ((size_t)4 * 1024 * 1024)

static bool is_there(const struct mo_api_rules *r, struct mo_req *rq)
{
    if (r->ctx == NULL)
        mo_req_problem(rq, 503, "not_ready", "the rules are not there yet");
    return r->ctx != NULL;
}

static void on_list(void *ctx, struct mo_req *rq)
{
    struct mo_api_rules *r = ctx;
    struct mo_buf b;

    if (!is_there(r, rq))
        return;
    mo_buf_init(&b, LIST_MAX);
    if (r->list(r->ctx, &b) < 0)
        mo_req_problem(rq, 503, "no_memory", "out of memory");
    else
        mo_req_reply(rq, 200, "application/json", mo_buf_view(&b));
    mo_buf_fini(&b);
}

static void on_one(void *ctx, struct mo_req *rq)
{
    struct mo_api_rules *r = ctx;
    struct mo_span id = mo_span_skip(rq->path, sizeof(RULES) - 1);
    struct mo_err e;
    int rc = 0;

    if (rq->head->method != MO_HTTP_DELETE) {
        mo_req_header(rq, "Allow", MO_SPAN("DELETE"));
        mo_req_problem(rq, 405, "method_not_allowed",
                       "a rule can only be removed");
        return;
    }
    if (!is_there(r, rq))
        return;
    rc = r->remove(r->ctx, id, &e);
    if (rc == MO_ENOTFOUND)
        mo_req_problem(rq, 404, "not_found", e.msg);
    else if (rc < 0)
        mo_req_problem(rq, 503, "unavailable", e.msg);
    else
        mo_req_reply(rq, 200, "application/json", MO_SPAN("{\"ok\":true}"));
}

int mo_api_rules_routes(struct mo_site *s, struct mo_api_rules *rules)
{
    const struct mo_route routes[] = {
        {MO_HTTP_GET, "/api/rules", 0, on_list, rules},
        {MO_HTTP_OTHER, RULES, MO_ROUTE_PREFIX, on_one, rules},
    };
    int rc = 0;

    for (size_t i = 0; rc == 0 && i < MO_COUNT(routes); i++)
        rc = mo_site_route(s, &routes[i]);
    return rc;
}
