/* link_inside.c - see link_inside.h.
 *
 * Invariants:
 *  1. A message is in `queue` from sending to delivery; nothing is delivered
 *     from inside a call on the link or on the endpoint.
 *  2. A way is in `ways` from its request's delivery to answer or drop.
 *  3. Only on_later() frees the link, after it was closed. */
#include "mcp/server/link_inside.h"

#include "mcp/server/ep_priv.h"

struct said { /* one queued message */
    struct mo_list node;
    bool up;     /* to the endpoint */
    uint64_t id; /* up: the request; down: the request of its way; 0: none */
    size_t n;
    char text[];
};

struct inside {
    struct mo_link k;
    struct mo_loop *loop;
    struct mo_ep_sess sess;
    struct mo_ep_way push; /* for messages that belong to no request */
    struct mo_list queue, ways;
    size_t queued;
    struct mo_later later;
    size_t nwho;
    char who[];
};

struct way { /* of one request */
    struct mo_ep_way pub;
    struct mo_list node;
    struct inside *x;
    uint64_t id;
};

static int queue_message(struct inside *x, bool up, uint64_t id,
                         struct mo_span text)
{
    struct said *m;

    if (text.n > MO_INSIDE_QUEUE - x->queued)
        return MO_EBUSY;
    m = mo_alloc(sizeof(*m) + text.n);
    if (!m)
        return MO_ENOMEM;
    m->up = up;
    m->id = id;
    m->n = text.n;
    memcpy(m->text, text.p, text.n);
    mo_list_push(&x->queue, &m->node);
    x->queued += text.n;
    mo_loop_defer(x->loop, &x->later);
    return 0;
}

/* --- messages of the endpoint -------------------------------------------- */

/* A lost answer would be waited for, so the link fails instead. */
static void queue_or_fail(struct inside *x, uint64_t id, struct mo_span msg)
{
    int rc = x->k.closing ? 0 : queue_message(x, false, id, msg);

    if (rc == 0)
        return;
    mo_link_close(
        &x->k, mo_error(rc, "the queue of messages from the gateway is full"));
}

static void way_free(struct way *w)
{
    mo_list_del(&w->node);
    mo_free(w);
}

static struct way *way_of(struct mo_ep_way *w)
{
    return mo_container_of(w, struct way, pub);
}

static void on_note(struct mo_ep_way *w, struct mo_span msg)
{
    queue_or_fail(way_of(w)->x, way_of(w)->id, msg);
}

static void on_answer(struct mo_ep_way *w, int status, struct mo_span msg)
{
    struct inside *x = way_of(w)->x;
    uint64_t id = way_of(w)->id;

    (void)status;
    way_free(way_of(w));
    queue_or_fail(x, id, msg);
}

static void on_drop(struct mo_ep_way *w)
{
    way_free(way_of(w));
}

static void on_push(struct mo_ep_way *w, struct mo_span msg)
{
    queue_or_fail(mo_container_of(w, struct inside, push), 0, msg);
}

static void push_answer(struct mo_ep_way *w, int status, struct mo_span msg)
{
    (void)status;
    on_push(w, msg);
}

static void ignore_drop(struct mo_ep_way *w)
{
    (void)w;
}

/* --- delivery ------------------------------------------------------------ */

static void deliver_up(struct inside *x, const struct said *s)
{
    struct mo_ep_from from = {.way = &x->push, .sess = &x->sess};
    struct mo_err e = {0};
    struct way *w = NULL;
    struct mo_rpc m;
    int rc = mo_rpc_parse(mo_span(s->text, s->n), &m, &e);

    if (rc == 0 && m.kind == MO_RPC_REQUEST) {
        w = mo_new(struct way);
        rc = w ? 0 : mo_fail(&e, MO_ENOMEM, "out of memory");
    }
    if (rc < 0) {
        x->k.cb->on_failed(x->k.ctx, s->id, 0, mo_span(NULL, 0), &e);
        return;
    }
    if (w) {
        *w = (struct way){
            .pub = {on_note, on_answer, on_drop}, .x = x, .id = s->id};
        mo_list_push(&x->ways, &w->node);
        from.way = &w->pub;
    }
    mo_ep_legacy(&x->sess, &from, &m);
}

static void deliver_queue(struct inside *x)
{
    struct mo_list now;
    struct mo_rpc m;

    mo_list_init(&now);
    mo_list_splice(&now, &x->queue);
    x->queued = 0;
    mo_list_drain (s, &now, struct said, node) {
        if (s->up && !x->k.closing)
            deliver_up(x, s);
        else if (!x->k.closing &&
                 mo_rpc_parse(mo_span(s->text, s->n), &m, NULL) == 0)
            x->k.cb->on_message(x->k.ctx, &m, s->id);
        mo_free(s);
    }
}

static void end_link(struct inside *x)
{
    mo_ep_sess_fini(&x->sess);
    mo_list_each_safe (n, &x->ways)
        way_free(mo_container_of(n, struct way, node));
    mo_list_drain (m, &x->queue, struct said, node)
        mo_free(m);
    mo_later_cancel(&x->later);
    mo_link_gone(&x->k);
}

static void on_later(struct mo_later *d)
{
    struct inside *x = mo_container_of(d, struct inside, later);

    if (x->k.closing)
        end_link(x);
    else
        deliver_queue(x);
}

/* --- the link's side ----------------------------------------------------- */

static int inside_send(struct mo_link *k, const struct mo_link_msg *m)
{
    return queue_message(mo_container_of(k, struct inside, k), true, m->id,
                         m->text);
}

static void inside_close(struct mo_link *k)
{
    struct inside *x = mo_container_of(k, struct inside, k);

    mo_loop_defer(x->loop, &x->later);
}

static const struct mo_link_ops inside_ops = {
    .send = inside_send,
    .close = inside_close,
};

int mo_link_inside(struct mo_loop *l, struct mo_endpoint *ep,
                   struct mo_span who, struct mo_span person,
                   struct mo_link **out, struct mo_err *e)
{
    struct inside *x;

    MO_BUG_ON(!who.n || who.n > MO_INSIDE_WHO_MAX);
    MO_BUG_ON(person.n > MO_INSIDE_WHO_MAX);
    x = mo_zalloc(sizeof(*x) + who.n + person.n);
    if (!x)
        return mo_fail(e, MO_ENOMEM, "link");
    x->k.ops = &inside_ops;
    x->loop = l;
    mo_list_init(&x->queue);
    mo_list_init(&x->ways);
    mo_later_init(&x->later, on_later);
    x->nwho = who.n;
    memcpy(x->who, who.p, who.n);
    if (person.n)
        memcpy(x->who + who.n, person.p, person.n);
    mo_ep_sess_init(&x->sess, ep);
    x->push = (struct mo_ep_way){on_push, push_answer, ignore_drop, NULL, NULL};
    x->sess.push = &x->push;
    x->sess.inside = mo_span(x->who, x->nwho);
    x->sess.person = mo_span(x->who + x->nwho, person.n);
    *out = &x->k;
    return 0;
}

uint64_t mo_link_inside_peer(const struct mo_link *k)
{
    return mo_container_of(k, struct inside, k)->sess.peer;
}
