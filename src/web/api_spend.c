/* api_spend.c - GET /api/spend: what models have cost; see api.h. */
#include "budget/spend.h"
#include "codec/http/url.h"
#include "servers/gateway_setup.h"
#include "web/api_job.h"

#define NUMBER_MAX ((size_t)8)

/* 0 also when it is not there. */
static int read_ago(const struct mo_req *rq, uint64_t *ago)
{
    mo_autobuf struct mo_buf b = {.max = NUMBER_MAX};

    *ago = 0;
    if (mo_query_get(rq->query, "ago", &b) < 0)
        return mo_buf_err(&b) ? MO_EINVAL : 0;
    return mo_span_u64(mo_buf_view(&b), ago) < 0 || *ago >= MO_COUNTER_DAYS
               ? MO_EINVAL
               : 0;
}

/* People get their own row; the operator everybody's. */
static void get_spend(void *ctx, struct mo_req *rq)
{
    struct mo_api *api = ctx;
    struct mo_api_job *j;
    struct mo_err e;
    uint64_t ago;

    if (read_ago(rq, &ago) < 0) {
        mo_req_problem(rq, 400, "bad_request", "`ago` is 0 to 31 days");
        return;
    }
    if (!mo_api_has(rq, api->gateway, "the gateway is not there"))
        return;
    j = mo_api_job(api, rq);
    if (j && mo_spend_read(mo_gateway_setup_budget(api->gateway),
                           j->caller[0] ? j->caller : NULL, (unsigned)ago,
                           mo_api_json, j, &e) < 0)
        mo_api_error(j, &e);
}

int mo_api_spend_routes(struct mo_site *s, struct mo_api *api)
{
    static const struct mo_route routes[] = {
        {MO_HTTP_GET, "/api/spend", 0, get_spend},
    };

    return mo_site_add(s, routes, MO_COUNT(routes), api);
}
