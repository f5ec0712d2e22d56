/* serve_await.c - requests of MCP clients that come before a worker has the key
 * of sessions. See serve_priv.h.
 *
 * A worker listens before its store is open. A session or a task that begins
 * meanwhile would have a name that no other worker can read, and the client's
 * next request may come to any of them. So these requests wait until the worker
 * has the key, or it is known that it gets none; at most AWAIT_MS after its
 * start, since a store may be away for long.
 *
 * One process alone finds all its sessions itself: nothing waits there. Servers
 * on other machines are sent no request before they are ready (/readyz). */
#include "app/serve_priv.h"
#include "base/mem.h"

#define AWAIT_MS 5000

struct awaiting {
    struct mo_list node;
    struct server *s;
    struct mo_req *rq;
};

static struct mo_req *end_wait(struct awaiting *a)
{
    struct mo_req *rq = a->rq;

    mo_list_del(&a->node);
    mo_free(a);
    rq->data = NULL;
    rq->gone = NULL;
    return rq;
}

static void on_gone(struct mo_req *rq)
{
    (void)end_wait(rq->data);
}

static void on_timeout(struct mo_timer *t)
{
    struct server *s = mo_container_of(t, struct server, await_timer);

    mo_log(s->log, MO_WARN, "serve",
           "the store has not answered for %d s: until it does, sessions of "
           "MCP clients are known to the worker where they begin",
           AWAIT_MS / 1000);
    mo_serve_await_end(s);
}

void mo_serve_await_begin(struct server *s)
{
    mo_timer_init(&s->await_timer, on_timeout);
    if (s->worker.number)
        mo_timer_start(s->loop, &s->await_timer, AWAIT_MS);
}

bool mo_serve_await(struct server *s, struct mo_req *rq)
{
    struct awaiting *a =
        mo_timer_on(&s->await_timer) ? mo_new(struct awaiting) : NULL;

    if (!a)
        return false;
    a->s = s;
    a->rq = rq;
    mo_list_push(&s->awaiting, &a->node);
    rq->data = a;
    rq->gone = on_gone;
    return true;
}

void mo_serve_settled(struct server *s)
{
    s->settled = true;
    if (!mo_timer_on(&s->await_timer))
        mo_worker_settled(&s->worker);
}

void mo_serve_await_end(struct server *s)
{
    mo_timer_stop(s->loop, &s->await_timer);
    if (s->settled)
        mo_worker_settled(&s->worker);
    while (!mo_list_empty(&s->awaiting))
        mo_serve_mcp(
            s, end_wait(mo_list_first(&s->awaiting, struct awaiting, node)));
}
