/* siod.c - Socket.IO on top of the Engine.IO server.
 *
 * Invariant: each engine has one `struct client` (eng->data), from on_open to
 *     on_close. Its socket part is live between CONNECT and disconnect. */
#include "web/siod.h"

#include "base/rand.h"

#define SOCK_ID_BYTES 15
#define SCRATCH_KEEP  ((size_t)64 * 1024)

enum state { WAITING, LIVE, LEFT }; /* states of a socket */

struct client {
    struct mo_sock pub;
    struct mo_siod *d;
    enum state state;
    unsigned refusals;
    struct mo_timer connect; /* deadline of CONNECT */
    struct mo_later left;    /* calls on_disconnect later */
    const char *reason;
};

struct mo_siod {
    struct mo_loop *loop;
    struct mo_siod_opts o;
    struct mo_eiod *eio;
    struct mo_buf scratch; /* the packet being sent */
    struct mo_siod_stats stats;
    struct mo_gone gone;
};

static struct client *client_of(const struct mo_sock *k)
{
    return mo_container_of(k, struct client, pub);
}

/* --- send ---------------------------------------------------------------- */

static struct mo_buf *fresh(struct mo_siod *d)
{
    if (d->scratch.cap > SCRATCH_KEEP)
        mo_buf_fini(&d->scratch);
    mo_buf_reset(&d->scratch);
    return &d->scratch;
}

int mo_sock_emit(struct mo_sock *k, const char *name, struct mo_span args)
{
    struct client *c = client_of(k);
    int rc;

    if (c->state != LIVE)
        return MO_ECLOSED;
    rc = mo_sio_put_event(fresh(c->d), MO_SPAN("/"), MO_SIO_ACK_NONE,
                          mo_span_cstr(name), args);
    if (rc == 0)
        rc = mo_eng_send(k->eng, mo_buf_view(&c->d->scratch));
    if (rc == 0)
        c->d->stats.events_out++;
    return rc;
}

int mo_sock_ack(struct mo_sock *k, int64_t ack, struct mo_span args)
{
    struct client *c = client_of(k);
    int rc;

    if (ack < 0)
        return 0;
    if (c->state != LIVE)
        return MO_ECLOSED;
    rc = mo_sio_put_ack(fresh(c->d), MO_SPAN("/"), (uint64_t)ack, args);
    return rc < 0 ? rc : mo_eng_send(k->eng, mo_buf_view(&c->d->scratch));
}

/* --- connect and disconnect ---------------------------------------------- */

/* Called exactly once per LIVE socket, from the loop only. */
static void socket_end(struct client *c, const char *reason)
{
    struct mo_siod *d = c->d;

    c->state = LEFT;
    mo_later_cancel(&c->left);
    d->stats.sockets--;
    d->o.on_disconnect(d->o.ctx, &c->pub, reason);
}

static void on_left(struct mo_later *later)
{
    struct client *c = mo_container_of(later, struct client, left);

    socket_end(c, c->reason);
}

static void on_connect_timeout(struct mo_timer *t)
{
    mo_eng_close(mo_container_of(t, struct client, connect)->pub.eng,
                 MO_ENG_POLICY, "no CONNECT in time");
}

void mo_sock_disconnect(struct mo_sock *k, bool close)
{
    struct client *c = client_of(k);

    if (c->state != LIVE)
        return;
    c->state = LEFT;
    c->reason = "server namespace disconnect";
    (void)mo_eng_send(k->eng, MO_SPAN("1"));
    if (close)
        mo_eng_close(k->eng, MO_ENG_NORMAL, c->reason);
    else /* the client may CONNECT again over the same session */
        mo_timer_start(c->d->loop, &c->connect, MO_SIO_CONNECT_MS);
    mo_loop_defer(c->d->loop, &c->left);
}

/* Answer a CONNECT with an object of one member. */
static void answer_connect(struct client *c, enum mo_sio_type type,
                           struct mo_span nsp, const char *key,
                           const char *value)
{
    struct mo_buf *b = fresh(c->d);
    struct mo_jw w;

    (void)mo_sio_put_head(b, type, nsp, -1);
    w = mo_jw_object(b);
    mo_jw_member_cstr(&w, key, value);
    mo_jw_end(&w);
    if (mo_buf_err(b))
        mo_eng_close(c->pub.eng, MO_ENG_OURS, "out of memory");
    else
        (void)mo_eng_send(c->pub.eng, mo_buf_view(b));
}

static void refuse_connect(struct client *c, struct mo_span nsp,
                           const char *message)
{
    c->refusals++;
    answer_connect(c, MO_SIO_CONNECT_ERROR, nsp, "message", message);
    if (c->refusals >= MO_SIO_REFUSALS_MAX)
        mo_eng_close(c->pub.eng, MO_ENG_POLICY, "refused too often");
}

static void on_connect(struct client *c, const struct mo_sio *p)
{
    struct mo_siod *d = c->d;
    struct mo_err e;

    if (!mo_span_is(p->nsp, "/")) {
        refuse_connect(c, p->nsp, "Invalid namespace");
        return;
    }
    if (c->state == LIVE || !mo_list_empty(&c->left.node)) {
        mo_eng_close(c->pub.eng, MO_ENG_PROTOCOL, "connected twice");
        return;
    }
    mo_err_clear(&e);
    c->pub.data = NULL;
    mo_random_token(c->pub.id, SOCK_ID_BYTES);
    if (!d->o.on_connect(d->o.ctx, &c->pub, p->data, &e)) {
        refuse_connect(c, MO_SPAN("/"), e.msg);
        return;
    }
    mo_timer_stop(d->loop, &c->connect);
    c->state = LIVE;
    d->stats.sockets++;
    answer_connect(c, MO_SIO_CONNECT, MO_SPAN("/"), "sid", c->pub.id);
    d->o.on_ready(d->o.ctx, &c->pub);
}

static void on_packet(struct client *c, const struct mo_sio *p)
{
    struct mo_siod *d = c->d;

    if (p->type == MO_SIO_CONNECT) {
        on_connect(c, p);
        return;
    }
    if (c->state == WAITING || !mo_span_is(p->nsp, "/")) {
        mo_eng_close(c->pub.eng, MO_ENG_PROTOCOL, "packet before CONNECT");
        return;
    }
    if (c->state == LEFT) /* sent before the client saw our disconnect */
        return;
    switch (p->type) {
    case MO_SIO_EVENT:
        d->stats.events_in++;
        d->o.on_event(d->o.ctx, &c->pub, p->name, p->data,
                      p->has_id ? (int64_t)p->id : MO_SIO_ACK_NONE);
        return;
    case MO_SIO_ACK: /* we ask for none */
        return;
    case MO_SIO_DISCONNECT:
        mo_timer_start(d->loop, &c->connect, MO_SIO_CONNECT_MS);
        socket_end(c, "client namespace disconnect");
        return;
    case MO_SIO_BINARY_EVENT:
    case MO_SIO_BINARY_ACK:
        mo_eng_close(c->pub.eng, MO_ENG_POLICY, "binary event");
        return;
    case MO_SIO_CONNECT:
    case MO_SIO_CONNECT_ERROR:
        break;
    }
    mo_eng_close(c->pub.eng, MO_ENG_PROTOCOL, "parse error");
}

static void eng_open(void *ctx, struct mo_eng *g)
{
    struct mo_siod *d = ctx;
    struct client *c = mo_new(struct client);

    g->data = c;
    if (!c) {
        mo_eng_close(g, MO_ENG_OURS, "out of memory");
        return;
    }
    c->d = d;
    c->pub.eng = g;
    mo_later_init(&c->left, on_left);
    mo_timer_init(&c->connect, on_connect_timeout);
    mo_timer_start(d->loop, &c->connect, MO_SIO_CONNECT_MS);
}

static void eng_message(void *ctx, struct mo_eng *g, struct mo_span text)
{
    struct mo_siod *d = ctx;
    struct mo_sio p;
    struct mo_err e;

    if (mo_sio_decode(text, &p, &e) < 0) {
        mo_log(mo_loop_log(d->loop), MO_DEBUG, "sio", "%s: %s", g->peer, e.msg);
        mo_eng_close(g, MO_ENG_PROTOCOL, "parse error");
        return;
    }
    on_packet(g->data, &p);
}

static void eng_close(void *ctx, struct mo_eng *g, const char *reason)
{
    struct mo_siod *d = ctx;
    struct client *c = g->data;

    if (!c)
        return;
    if (c->state == LIVE || !mo_list_empty(&c->left.node))
        socket_end(c, c->state == LIVE ? reason : c->reason);
    mo_timer_stop(d->loop, &c->connect);
    mo_free(c);
}

/* --- the server ---------------------------------------------------------- */

struct mo_siod *mo_siod_new(struct mo_loop *l, const struct mo_siod_opts *o,
                            struct mo_err *e)
{
    struct mo_siod *d = mo_new(struct mo_siod);

    if (!d)
        return mo_null(mo_fail(e, MO_ENOMEM, "socket.io server"));
    d->loop = l;
    d->o = *o;
    d->o.eio.on_open = eng_open;
    d->o.eio.on_message = eng_message;
    d->o.eio.on_close = eng_close;
    d->o.eio.ctx = d;
    d->eio = mo_eiod_new(l, &d->o.eio, e);
    if (!d->eio) {
        mo_free(d);
        return NULL;
    }
    mo_buf_init(&d->scratch, MO_STREAM_QUEUE_MAX);
    return d;
}

void mo_siod_handle(struct mo_siod *d, struct mo_req *rq)
{
    mo_eiod_handle(d->eio, rq);
}

static void eio_gone(void *ctx)
{
    struct mo_siod *d = ctx;
    struct mo_gone gone = d->gone;

    mo_buf_fini(&d->scratch);
    mo_free(d);
    mo_gone_fire(gone);
}

void mo_siod_drop(struct mo_siod *d, const char *who, const char *door,
                  const char *grant)
{
    mo_eiod_drop(d->eio, who, door, grant);
}

void mo_siod_close(struct mo_siod *d, void (*gone)(void *ctx), void *ctx)
{
    d->gone = (struct mo_gone){gone, ctx};
    mo_eiod_close(d->eio, eio_gone, d);
}

struct mo_siod_stats mo_siod_stats(const struct mo_siod *d)
{
    struct mo_siod_stats s = d->stats;

    s.eio = mo_eiod_stats(d->eio);
    return s;
}
