#include "web/api_route.h"

#include <stdlib.h>

#include "codec/url.h"

#define WORDS_MAX  ((size_t)4096)
#define NUMBER_MAX ((size_t)32)
#define ANSWER_MAX ((size_t)4 * 1024 * 1024)

/* 0 also when it is not there; MO_EINVAL: no number from 0 to most. */
static int number(struct mo_req *rq, const char *key, double most, double *out)
{
    struct mo_buf b;
    char *end = NULL;
    int rc = 0;

    *out = 0;
    mo_buf_init(&b, NUMBER_MAX);
    if (mo_query_get(rq->query, key, &b) == 0 && b.len) {
        *out = strtod(mo_buf_cstr(&b), &end);
        rc = *end == '\0' && *out >= 0 && *out <= most ? 0 : MO_EINVAL;
    }
    rc = mo_buf_err(&b) ? MO_EINVAL : rc;
    mo_buf_fini(&b);
    return rc;
}

static void answer(const struct mo_api_route *r, struct mo_req *rq,
                   const struct mo_api_route_ask *a)
{
    struct mo_buf b;

    mo_buf_init(&b, ANSWER_MAX);
    if (r->find(r->ctx, a, &b) < 0)
        mo_req_problem(rq, 503, "no_memory", "out of memory");
    else
        mo_req_reply(rq, 200, "application/json", mo_buf_view(&b));
    mo_buf_fini(&b);
}

static void on_route(void *ctx, struct mo_req *rq)
{
    const struct mo_api_route *r = ctx;
    struct mo_api_route_ask a = {.who = mo_req_peer(rq)};
    struct mo_buf words;
    double limit = 0;

    mo_buf_init(&words, WORDS_MAX);
    (void)mo_query_get(rq->query, "q", &words);
    a.words = mo_buf_view(&words);
    if (!r->ctx)
        mo_req_problem(rq, 503, "not_ready", "the gateway is not there");
    else if (mo_buf_err(&words) || a.words.n == 0)
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
    mo_buf_fini(&words);
}

int mo_api_route_routes(struct mo_site *s, struct mo_api_route *r)
{
    const struct mo_route route = {MO_HTTP_GET, "/api/route", 0, on_route, r};

    return mo_site_route(s, &route);
}
