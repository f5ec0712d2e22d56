/* httpu.c - the client and its requests. */
#include "loop/httpu.h"

#include <stdio.h>

#include "loop/httpu_priv.h"

#define CONNS_DEFAULT   32u
#define WAITING_DEFAULT 256u
#define IDLE_DEFAULT    4u
#define KEEP_MS_DEFAULT 30000u
#define REQUEST_MAX     ((size_t)256 * 1024 * 1024) /* head and body, bytes */

void mo_httpu_x_move(struct mo_httpu_x *x, enum x_state to)
{
    static const unsigned legal[] = {
        [X_WAITING] = MO_TO(X_DIALING) | MO_TO(X_SENT) | MO_TO(X_ENDED),
        [X_DIALING] = MO_TO(X_SENT) | MO_TO(X_ENDED),
        [X_SENT] = MO_TO(X_ANSWER) | MO_TO(X_WAITING) | MO_TO(X_ENDED),
        [X_ANSWER] = MO_TO(X_ENDED),
        [X_ENDED] = 0,
    };

    MO_MOVE(x->state, to, legal);
}

/* --- end of a request ---------------------------------------------------- */

static void unlink_conn(struct mo_httpu_x *x)
{
    struct mo_httpu_conn *c = x->conn;

    if (!c)
        return;
    x->sent |= !c->s || !x->u->tls || mo_tls_is_ready(c->s);
    c->x = NULL;
    x->conn = NULL;
}

bool mo_httpu_is_unsent(const struct mo_httpu_x *x)
{
    return !x->sent;
}

void mo_httpu_x_end(struct mo_httpu_x *x, const struct mo_err *why)
{
    if (x->state == X_ENDED)
        return;
    if (x->state == X_WAITING) {
        x->u->nwaiting--;
        mo_list_del(&x->node);
        mo_list_push(&x->u->busy, &x->node);
    }
    mo_httpu_x_move(x, X_ENDED);
    if (why)
        x->err = *why;
    mo_timer_stop(x->u->loop, &x->total);
    mo_timer_stop(x->u->loop, &x->idle);
    unlink_conn(x);
    if (x->dial)
        mo_dial_cancel(x->dial); /* on_dialed() ends it */
    else
        mo_loop_defer(x->u->loop, &x->later);
}

void mo_httpu_x_fail(struct mo_httpu_x *x, const struct mo_err *why)
{
    struct mo_httpu_conn *c = x->conn;

    mo_httpu_x_end(x, why);
    if (c && c->s)
        mo_httpu_conn_kill(c);
}

void mo_httpu_x_again(struct mo_httpu_x *x)
{
    struct mo_httpu *u = x->u;

    unlink_conn(x);
    mo_timer_stop(u->loop, &x->idle);
    mo_httpu_x_move(x, X_WAITING);
    x->fresh = true;
    u->nwaiting++;
    mo_list_del(&x->node);
    mo_list_push(u->waiting.next, &x->node); /* in front of the first */
    mo_loop_defer(u->loop, &u->later);
}

static void on_x_later(struct mo_later *d)
{
    struct mo_httpu_x *x = mo_container_of(d, struct mo_httpu_x, later);
    struct mo_httpu *u = x->u;

    mo_list_del(&x->node);
    mo_buf_fini(&x->out);
    x->cb->on_done(x->ctx, x->err.code ? &x->err : NULL);
    mo_free(x);
    mo_loop_defer(u->loop, &u->later);
}

void mo_httpu_cancel(struct mo_httpu_x *x)
{
    mo_httpu_x_fail(
        x, mo_error(MO_ECANCELED, "request to %s: canceled", x->u->addr));
}

void mo_httpu_pause(struct mo_httpu_x *x, bool paused)
{
    if (!x->conn || !x->conn->s)
        return;
    if (paused)
        mo_stream_pause(x->conn->s);
    else
        mo_stream_resume(x->conn->s);
}

static void on_total(struct mo_timer *t)
{
    struct mo_httpu_x *x = mo_container_of(t, struct mo_httpu_x, total);

    mo_httpu_x_fail(x, mo_error(MO_ETIMEOUT,
                                "%s did not answer within the time limit",
                                x->u->addr));
}

void mo_httpu_x_idle_start(struct mo_httpu_x *x)
{
    if (x->idle_ms != MO_HTTP_FOREVER)
        mo_timer_start(x->u->loop, &x->idle, x->idle_ms);
}

/* Not idle while the peer is still taking the request. */
static void on_idle(struct mo_timer *t)
{
    struct mo_httpu_x *x = mo_container_of(t, struct mo_httpu_x, idle);
    size_t queued = x->conn ? mo_stream_queued(x->conn->s) : 0;

    if (queued < x->queued) {
        x->queued = queued;
        mo_httpu_x_idle_start(x);
        return;
    }
    mo_httpu_x_fail(x, mo_error(MO_ETIMEOUT, "%s sent nothing for %u ms",
                                x->u->addr, x->idle_ms));
}

/* --- assign a connection to a request ------------------------------------ */

static void dial_failed(struct mo_httpu_x *x, struct mo_err *e)
{
    x->u->nconns--;
    if (x->state == X_ENDED) {
        mo_loop_defer(x->u->loop, &x->later);
        return;
    }
    (void)mo_wrap(e, "cannot connect to %s", x->u->addr);
    if (e->code == MO_EIO)
        e->code = MO_EUNAVAIL;
    mo_httpu_x_end(x, e);
}

static void on_dialed(void *ctx, struct mo_stream *s, const struct mo_err *why)
{
    struct mo_httpu_x *x = ctx;
    struct mo_httpu_conn *c = NULL;
    struct mo_err e;

    mo_err_clear(&e);
    x->dial = NULL;
    if (why)
        e = *why;
    if (s && x->u->own_user && !mo_stream_is_own_user(s)) {
        (void)mo_fail(&e, MO_EPOLICY, "another user's process listens there");
        mo_stream_close(mo_take_ptr(&s), NULL);
    }
    if (s && x->state == X_ENDED)
        mo_stream_close(s, NULL);
    else if (s)
        c = mo_httpu_conn_new(x->u, s, &e);
    if (c)
        mo_httpu_conn_send(c, x);
    else
        dial_failed(x, &e);
}

static void start_dial(struct mo_httpu_x *x)
{
    struct mo_httpu *u = x->u;
    struct mo_err e;

    mo_httpu_x_move(x, X_DIALING);
    u->nconns++;
    if (mo_dial(u->loop, u->addr, x->connect_ms, on_dialed, x, &x->dial, &e) <
        0)
        dial_failed(x, &e);
}

static void start_waiting(struct mo_httpu *u)
{
    while (!mo_list_empty(&u->waiting)) {
        struct mo_httpu_x *x =
            mo_container_of(u->waiting.next, struct mo_httpu_x, node);
        struct mo_httpu_conn *c = x->fresh ? NULL : mo_httpu_conn_idle(u);

        if (!c && u->nconns >= u->max_conns)
            return;
        mo_list_del(&x->node);
        mo_list_push(&u->busy, &x->node);
        u->nwaiting--;
        if (c)
            mo_httpu_conn_send(c, x);
        else
            start_dial(x);
    }
}

/* --- the client ---------------------------------------------------------- */

static void httpu_free(struct mo_httpu *u)
{
    mo_free(u->addr);
    mo_free(u->host);
    mo_free(u->sni);
    mo_free(u);
}

static void on_u_later(struct mo_later *d)
{
    struct mo_httpu *u = mo_container_of(d, struct mo_httpu, later);
    struct mo_gone gone = u->gone;

    if (!u->closing) {
        start_waiting(u);
        return;
    }
    if (u->nconns || !mo_list_empty(&u->busy))
        return;
    httpu_free(u);
    mo_gone_fire(gone);
}

static unsigned or_default(unsigned v, unsigned dflt)
{
    return v ? v : dflt;
}

struct mo_httpu *mo_httpu_new(struct mo_loop *l, const struct mo_httpu_opts *o,
                              struct mo_err *e)
{
    struct mo_httpu *u = mo_new(struct mo_httpu);
    const char *host = o->host ? o->host : "localhost";

    if (!u)
        return mo_null(mo_fail(e, MO_ENOMEM, "HTTP client"));
    u->loop = l;
    u->addr = mo_strndup(o->addr, strlen(o->addr));
    u->host = mo_strndup(host, strlen(host));
    u->sni = o->sni ? mo_strndup(o->sni, strlen(o->sni)) : NULL;
    if (!u->addr || !u->host || (o->sni && !u->sni)) {
        httpu_free(u);
        return mo_null(mo_fail(e, MO_ENOMEM, "HTTP client"));
    }
    u->tls = o->tls;
    u->max_conns = or_default(o->conns, CONNS_DEFAULT);
    u->max_waiting = or_default(o->waiting, WAITING_DEFAULT);
    u->max_idle = or_default(o->idle, IDLE_DEFAULT);
    u->keep_ms = or_default(o->keep_ms, KEEP_MS_DEFAULT);
    u->own_user = o->own_user;
    u->loss_ms = o->loss_ms;
    mo_list_init(&u->waiting);
    mo_list_init(&u->busy);
    mo_list_init(&u->idle);
    mo_list_init(&u->used);
    mo_later_init(&u->later, on_u_later);
    return u;
}

void mo_httpu_close(struct mo_httpu *u, void (*gone)(void *ctx), void *ctx)
{
    MO_BUG_ON(u->closing);
    u->closing = true;
    u->gone = (struct mo_gone){gone, ctx};
    /* First those that wait: they become busy. */
    mo_list_each_entry_safe (x, &u->waiting, struct mo_httpu_x, node)
        mo_httpu_cancel(x);
    mo_list_each_entry_safe (x, &u->busy, struct mo_httpu_x, node)
        mo_httpu_cancel(x);
    mo_list_each_entry_safe (c, &u->idle, struct mo_httpu_conn, node)
        mo_httpu_conn_kill(c);
    mo_loop_defer(u->loop, &u->later);
}

/* --- a new request ------------------------------------------------------- */

/* Set by this client only: they determine where the message ends. */
static bool is_framing(struct mo_span name)
{
    return mo_span_ieq(name, MO_SPAN("host")) ||
           mo_span_ieq(name, MO_SPAN("content-length")) ||
           mo_span_ieq(name, MO_SPAN("transfer-encoding"));
}

static int put_header(struct mo_buf *b, const struct mo_http_header *h)
{
    char name[128];

    if (is_framing(h->name) || h->name.n >= sizeof(name))
        return MO_EINVAL;
    (void)snprintf(name, sizeof(name), "%.*s", (int)h->name.n, h->name.p);
    return mo_http1_put_header(b, name, h->value);
}

static int put_request(struct mo_httpu_x *x, const struct mo_http_call *c,
                       const char *method)
{
    struct mo_buf *b = &x->out;
    char len[24];

    (void)mo_http1_put_request(b, method, mo_span_cstr(c->url));
    (void)mo_http1_put_header(b, "Host", mo_span_cstr(x->u->host));
    for (size_t i = 0; i < c->nheaders; i++)
        if (put_header(b, &c->headers[i]) < 0)
            return mo_buf_err(b) ? mo_buf_err(b) : MO_EINVAL;
    if (c->body.p || strcmp(method, "POST") == 0) {
        (void)snprintf(len, sizeof(len), "%zu", c->body.n);
        (void)mo_http1_put_header(b, "Content-Length", mo_span_cstr(len));
    }
    (void)mo_http1_put_end(b);
    mo_buf_span(b, c->body);
    return mo_buf_err(b);
}

static bool may_repeat(const char *method)
{
    static const char *const safe[] = {"GET", "HEAD", "PUT", "DELETE",
                                       "OPTIONS"};

    for (size_t i = 0; i < MO_COUNT(safe); i++)
        if (strcmp(method, safe[i]) == 0)
            return true;
    return false;
}

int mo_httpu_start(struct mo_httpu *u, const struct mo_http_call *c,
                   const struct mo_http_cb *cb, void *ctx,
                   struct mo_httpu_x **out, struct mo_err *e)
{
    const char *method = c->method ? c->method : "GET";
    struct mo_httpu_x *x;
    int rc;

    if (u->closing || u->nwaiting >= u->max_waiting)
        return mo_fail(e, u->closing ? MO_ECLOSED : MO_EBUSY,
                       u->closing ? "client of %s is closing"
                                  : "too many requests are waiting for %s",
                       u->addr);
    x = mo_new(struct mo_httpu_x);
    if (!x)
        return mo_fail(e, MO_ENOMEM, "request");
    x->u = u;
    mo_buf_init(&x->out, REQUEST_MAX);
    rc = put_request(x, c, method);
    if (rc < 0) {
        mo_buf_fini(&x->out);
        mo_free(x);
        return mo_fail(e, rc, "request to %s: %s", u->addr,
                       rc == MO_EINVAL ? "bad target or header" : "too big");
    }
    x->cb = cb;
    x->ctx = ctx;
    x->connect_ms = or_default(c->connect_ms, MO_HTTP_CONNECT_MS);
    x->idle_ms = or_default(c->idle_ms, MO_HTTP_IDLE_MS);
    x->max_bytes = c->max_bytes ? c->max_bytes : MO_HTTP_BYTES_MAX;
    x->bodiless = strcmp(method, "HEAD") == 0;
    x->idempotent = may_repeat(method);
    mo_timer_init(&x->total, on_total);
    mo_timer_init(&x->idle, on_idle);
    mo_later_init(&x->later, on_x_later);
    if (c->total_ms)
        mo_timer_start(u->loop, &x->total, c->total_ms);
    u->nwaiting++;
    mo_list_push(&u->waiting, &x->node);
    mo_loop_defer(u->loop, &u->later);
    *out = x;
    return 0;
}
