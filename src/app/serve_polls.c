/* serve_polls.c - requests of polling Socket.IO clients that come to another
 * server than the one that has their session. See serve_priv.h.
 *
 * The id of a session ends with the name of its process: "RANDOM.NAME". A
 * request for another process is passed to it over the relay (web/relay.h) with
 * the person as the gate here has judged them; a session of another person is
 * unknown there, too. The name says where to ask and proves nothing.
 *
 * The upgrade to websocket is refused: stock clients go on polling then. A
 * request that cannot be passed on is answered like one for an unknown session:
 * the client opens another.
 *
 * Costs: one read of the store and one connection a request. None for sessions
 * that are here. */
#include <stdio.h>

#include "app/serve_priv.h"
#include "peer/others.h"

#define BODY_MAX ((size_t)1000 * 1000) /* as max_payload of web/eiod.h */

struct poll {
    struct server *s;
    struct mo_req *rq; /* NULL: the client has gone */
    char to[MO_INSTANCE_MAX];
    struct mo_buf body;
};

static void poll_free(struct poll *p)
{
    mo_buf_fini(&p->body);
    mo_free(p);
}

static void on_gone(struct mo_req *rq)
{
    ((struct poll *)rq->data)->rq = NULL;
}

/* While its body is read nothing else refers to it. */
static void on_gone_early(struct mo_req *rq)
{
    poll_free(rq->data);
}

static struct mo_req *take_request(struct poll *p)
{
    struct mo_req *rq = mo_take_ptr(&p->rq);

    if (rq) {
        rq->data = NULL;
        rq->gone = NULL;
    }
    return rq;
}

static void refuse(struct poll *p)
{
    struct mo_req *rq = take_request(p);

    if (rq)
        mo_serve_unknown_sid(rq);
    poll_free(p);
}

static void on_passed(void *ctx, struct mo_req *rq, enum mo_relay_end end,
                      const struct mo_err *why)
{
    struct poll *p = ctx;

    (void)why;
    if (rq && end == MO_RELAY_BEGUN)
        mo_req_abort(rq);
    else if (rq && end != MO_RELAY_DONE)
        mo_serve_unknown_sid(rq);
    poll_free(p);
}

/* A client that closes its side of a poll has gone. */
static void on_hangup(struct mo_req *rq)
{
    mo_req_abort(rq);
}

static void on_found(void *ctx, const struct mo_other *v, size_t n,
                     const struct mo_err *why)
{
    struct poll *p = ctx;
    struct mo_req *rq = NULL;
    struct mo_err e;

    if (!p->rq || why || n == 0 || !v->path[0] || !p->s->api.relay) {
        refuse(p);
        return;
    }
    rq = take_request(p);
    if (rq->head->method == MO_HTTP_GET)
        rq->hangup = on_hangup;
    if (mo_relay_pass(p->s->api.relay, v->path, rq, mo_buf_view(&p->body),
                      on_passed, p, &e) == 0)
        return;
    p->rq = rq;
    refuse(p);
}

static void on_body(struct mo_req *rq, struct mo_span body)
{
    struct poll *p = rq->data;
    struct mo_err e;

    rq->gone = on_gone;
    if (!p->s->api.relay || mo_buf_span(&p->body, body) < 0 ||
        mo_others_find(p->s->api.peers, p->to, on_found, p, &e) < 0)
        refuse(p);
}

const char *mo_serve_poll_home(void *ctx)
{
    const struct server *s = ctx;

    return s->api.relay ? s->api.instance : NULL;
}

bool mo_serve_poll_pass(struct server *s, struct mo_req *rq,
                        struct mo_span home)
{
    struct poll *p = NULL;

    if (!s->api.relay || rq->head->upgrade || home.n == 0 ||
        home.n >= MO_INSTANCE_MAX || mo_span_is(home, s->api.instance) ||
        !mo_span_only(home, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwx"
                            "yz0123456789-_"))
        return false;
    p = mo_new(struct poll);
    if (!p)
        return false;
    p->s = s;
    p->rq = rq;
    (void)snprintf(p->to, sizeof(p->to), "%.*s", (int)home.n, home.p);
    mo_buf_init(&p->body, BODY_MAX);
    rq->data = p;
    rq->gone = on_gone_early;
    mo_req_body(rq, BODY_MAX, on_body);
    return true;
}
