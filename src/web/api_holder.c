#include "web/api_holder.h"

#include <stdio.h>

#include "agent/chat/chat.h"
#include "peer/others.h"

#define BODY_MAX ((size_t)1024 * 1024)

/* One request whose holder is looked for, or to which it was passed. */
struct passing {
    struct mo_api *api;
    struct mo_req *rq; /* NULL: the client has gone */
    mo_api_here_fn *here;
    struct mo_buf body;
};

static void passing_free(struct passing *p)
{
    mo_buf_fini(&p->body);
    mo_free(p);
}

static void on_gone(struct mo_req *rq)
{
    ((struct passing *)rq->data)->rq = NULL;
}

/* The request, or NULL, is no longer ours. */
static struct mo_req *take_request(struct passing *p)
{
    struct mo_req *rq = mo_take_ptr(&p->rq);

    if (!rq)
        return NULL;
    rq->data = p->api;
    rq->gone = NULL;
    return rq;
}

static void answer_here(struct passing *p)
{
    struct mo_req *rq = take_request(p);

    if (rq)
        p->here(rq, mo_buf_view(&p->body));
    passing_free(p);
}

static void on_passed(void *ctx, struct mo_req *rq, enum mo_relay_end end,
                      const struct mo_err *why)
{
    struct passing *p = ctx;

    (void)why;
    p->rq = rq;
    if (end == MO_RELAY_UNSENT) {
        answer_here(p);
        return;
    }
    if (rq && end == MO_RELAY_BEGUN)
        mo_req_abort(rq);
    else if (rq && end != MO_RELAY_DONE)
        mo_req_problem(rq, 503, "unavailable",
                       "the server that has this conversation open did not "
                       "answer; try again");
    passing_free(p);
}

static void on_found(void *ctx, const struct mo_other *v, size_t n,
                     const struct mo_err *why)
{
    struct passing *p = ctx;
    struct mo_req *rq = NULL;
    struct mo_err e;

    if (!p->rq || why || n == 0 || !v->path[0] || !p->api->relay) {
        answer_here(p);
        return;
    }
    rq = take_request(p);
    if (mo_relay_pass(p->api->relay, v->path, rq, mo_buf_view(&p->body),
                      on_passed, p, &e) == 0)
        return;
    p->rq = rq;
    answer_here(p);
}

static void on_holder(void *ctx, struct mo_span owner, uint64_t fence,
                      const struct mo_err *why)
{
    struct passing *p = ctx;
    char name[MO_INSTANCE_MAX];
    struct mo_err e;

    (void)fence;
    (void)snprintf(name, sizeof(name), "%.*s", (int)owner.n,
                   owner.n ? owner.p : "");
    if (why || !p->rq || !name[0] || !p->api->relay ||
        strcmp(name, p->api->instance) == 0 ||
        mo_others_find(p->api->peers, name, on_found, p, &e) < 0)
        answer_here(p);
}

/* False: it cannot be looked for. */
static bool find_holder(struct mo_api *api, struct mo_req *rq,
                        struct mo_span body, mo_api_here_fn *here)
{
    struct passing *p = mo_new(struct passing);
    struct mo_err e;

    if (!p)
        return false;
    *p = (struct passing){.api = api, .rq = rq, .here = here};
    mo_buf_init(&p->body, BODY_MAX);
    if (mo_buf_span(&p->body, body) < 0 ||
        mo_lease_holder(api->store, mo_req_segment(rq, 2), on_holder, p, &e) <
            0) {
        passing_free(p);
        return false;
    }
    rq->data = p;
    rq->gone = on_gone;
    return true;
}

void mo_api_at_holder(struct mo_api *api, struct mo_req *rq,
                      struct mo_span body, mo_api_here_fn *here)
{
    struct mo_span session = mo_req_segment(rq, 2);
    bool is_here = rq->from || rq->head->method == MO_HTTP_HEAD ||
                   !mo_session_id_ok(session) ||
                   (api->agent && mo_agent_is_open(api->agent, session));

    if (!is_here && api->elsewhere && api->agent && !mo_req_is_inner(rq) &&
        api->elsewhere(api->elsewhere_ctx, rq, session, body))
        return;
    if (!is_here && api->relay && api->store &&
        find_holder(api, rq, body, here))
        return;
    rq->data = api;
    here(rq, body);
}
