/* httpu_conn.c - one connection: send a request, read its answer, stay idle. */
#include <stdio.h>

#include "loop/httpu_priv.h"

#define NO_LIMIT (SIZE_MAX / 2) /* the request is in memory anyway */

/* --- idle connections ---------------------------------------------------- */

static void leave_idle(struct mo_httpu_conn *c)
{
    if (!c->is_idle)
        return;
    c->is_idle = false;
    c->u->nidle--;
    mo_timer_stop(c->u->loop, &c->keep);
    mo_list_del(&c->node);
    mo_list_push(&c->u->used, &c->node);
}

void mo_httpu_conn_kill(struct mo_httpu_conn *c)
{
    leave_idle(c);
    mo_stream_close(c->s, NULL);
}

static void on_keep(struct mo_timer *t)
{
    mo_httpu_conn_kill(mo_container_of(t, struct mo_httpu_conn, keep));
}

static void become_idle(struct mo_httpu_conn *c)
{
    struct mo_httpu *u = c->u;

    mo_http1_reset(c->http);
    c->used = true;
    c->is_idle = true;
    mo_list_del(&c->node);
    mo_list_push(&u->idle, &c->node);
    u->nidle++;
    mo_timer_start(u->loop, &c->keep, u->keep_ms);
    if (u->nidle > u->max_idle) /* close the oldest */
        mo_httpu_conn_kill(
            mo_container_of(u->idle.next, struct mo_httpu_conn, node));
}

struct mo_httpu_conn *mo_httpu_conn_idle(struct mo_httpu *u)
{
    while (!mo_list_empty(&u->idle)) {
        struct mo_httpu_conn *c =
            mo_container_of(u->idle.prev, struct mo_httpu_conn, node);

        leave_idle(c);
        if (!c->s->closing)
            return c;
    }
    return NULL;
}

/* --- the answer ---------------------------------------------------------- */

/* The answer is complete: keep the connection if both sides allow it. */
static void finish_answer(struct mo_httpu_conn *c, bool clean)
{
    struct mo_httpu *u = c->u;
    bool keep = clean && mo_http1_head(c->http)->keep_alive &&
                mo_stream_queued(c->s) == 0 && !u->closing && u->max_idle > 0;

    mo_httpu_x_end(c->x, NULL);
    if (keep)
        become_idle(c);
    else
        mo_httpu_conn_kill(c);
}

static bool is_interim(const struct mo_httpu_conn *c)
{
    int status = mo_http1_head(c->http)->status;

    return status < 200 && status != 101;
}

static void got_head(struct mo_httpu_conn *c, struct mo_span rest)
{
    struct mo_httpu_x *x = c->x;

    if (is_interim(c))
        return;
    mo_httpu_x_move(x, X_ANSWER);
    x->early = rest;
    x->in_head = true;
    if (x->cb->on_head)
        x->cb->on_head(x->ctx, mo_http1_head(c->http));
    x->in_head = false;
}

static void got_body(struct mo_httpu_conn *c, struct mo_span body)
{
    struct mo_httpu_x *x = c->x;

    x->got += body.n;
    if (x->got > x->max_bytes)
        mo_httpu_x_fail(
            x, mo_error(MO_ETOOBIG, "answer of %s is larger than %llu bytes",
                        x->u->addr, (unsigned long long)x->max_bytes));
    else if (x->cb->on_data)
        x->cb->on_data(x->ctx, body);
}

static void got_done(struct mo_httpu_conn *c, struct mo_span *in)
{
    if (is_interim(c)) {
        mo_http1_reset(c->http);
        if (c->x->bodiless)
            mo_http1_expect_no_body(c->http);
        return;
    }
    finish_answer(c, in->n == 0);
    in->n = 0;
}

static void conn_free(struct mo_httpu_conn *c)
{
    struct mo_httpu *u = c->u;

    mo_timer_stop(u->loop, &c->keep);
    mo_list_del(&c->node);
    mo_http1_free(c->http);
    mo_free(c);
    u->nconns--;
    mo_loop_defer(u->loop, &u->later);
}

static void parse_answer(struct mo_httpu_conn *c, struct mo_span in)
{
    struct mo_httpu_x *x = c->x;
    enum mo_http1_event ev = MO_HTTP1_BODY;
    struct mo_span body;
    struct mo_err e;

    while (c->x == x && ev != MO_HTTP1_MORE) {
        mo_err_clear(&e);
        ev = mo_http1_next(c->http, &in, &body, &e);
        if (ev == MO_HTTP1_HEAD) {
            got_head(c, in);
        } else if (ev == MO_HTTP1_BODY) {
            got_body(c, body);
        } else if (ev == MO_HTTP1_DONE) {
            got_done(c, &in);
        } else if (ev == MO_HTTP1_ERROR) {
            (void)mo_wrap(&e, "answer of %s", c->u->addr);
            mo_httpu_x_fail(x, &e);
        }
    }
    if (!c->s)
        conn_free(c); /* hijacked by the callback */
}

static void on_conn_read(void *ctx, char *p, size_t n)
{
    struct mo_httpu_conn *c = ctx;

    if (!c->x) {
        mo_httpu_conn_kill(c); /* data without a request */
        return;
    }
    mo_httpu_x_idle_start(c->x);
    parse_answer(c, mo_span(p, n));
}

/* --- loss of a connection ------------------------------------------------ */

/* The connection ended before the first byte of an answer. Send the request
 * again on a new connection if it is safe to repeat; only once, and only if the
 * connection had served a request before, since the daemon may have closed it
 * as idle. */
static bool try_again(struct mo_httpu_conn *c)
{
    struct mo_httpu_x *x = c->x;

    if (!c->used || x->fresh || !x->idempotent || x->state != X_SENT ||
        mo_http1_begun(c->http) || x->u->closing)
        return false;
    mo_httpu_x_again(x);
    return true;
}

static void on_conn_eof(void *ctx)
{
    struct mo_httpu_conn *c = ctx;
    struct mo_err e;

    mo_err_clear(&e);
    if (!c->x || try_again(c)) {
        mo_httpu_conn_kill(c);
        return;
    }
    switch (mo_http1_eof(c->http, &e)) {
    case MO_HTTP1_DONE:
        finish_answer(c, false);
        return;
    case MO_HTTP1_MORE:
        (void)mo_fail(&e, MO_ECLOSED, "%s closed without an answer",
                      c->u->addr);
        break;
    default:
        (void)mo_wrap(&e, "answer of %s", c->u->addr);
    }
    mo_httpu_x_fail(c->x, &e);
}

static void on_conn_close(void *ctx, const struct mo_err *why)
{
    struct mo_httpu_conn *c = ctx;
    struct mo_err e;

    if (c->x && !try_again(c)) {
        e = why ? *why : *mo_error(MO_ECLOSED, "closed");
        (void)mo_wrap(&e, "request to %s", c->u->addr);
        mo_httpu_x_end(c->x, &e);
    }
    leave_idle(c);
    conn_free(c);
}

static const struct mo_stream_cb conn_cb = {
    .on_read = on_conn_read,
    .on_eof = on_conn_eof,
    .on_close = on_conn_close,
};

int mo_httpu_hijack(struct mo_httpu_x *x, struct mo_stream **out,
                    struct mo_span *early, struct mo_err *e)
{
    struct mo_httpu_conn *c = x->conn;
    const struct mo_http_head *h =
        c && x->in_head ? mo_http1_head(c->http) : NULL;

    if (!h || (h->status != 101 && (h->status != 200 || h->chunked ||
                                    h->content_length >= 0 || x->bodiless)))
        return mo_fail(e, MO_EINVAL, "%s did not hand over its connection",
                       x->u->addr);
    mo_stream_pause(c->s);
    mo_stream_limit(c->s, MO_STREAM_QUEUE_MAX);
    c->s->cb = NULL; /* paused and without an owner: no callback fires */
    *out = mo_take_ptr(&c->s);
    *early = x->early;
    mo_httpu_x_end(x, NULL);
    return 0;
}

/* --- start and use of a connection --------------------------------------- */

void mo_httpu_conn_send(struct mo_httpu_conn *c, struct mo_httpu_x *x)
{
    int rc;

    c->x = x;
    x->conn = c;
    mo_httpu_x_move(x, X_SENT);
    if (x->bodiless)
        mo_http1_expect_no_body(c->http);
    mo_httpu_x_idle_start(x);
    rc = mo_stream_write(c->s, mo_buf_view(&x->out));
    if (rc < 0 && !c->s->closing) {
        mo_httpu_x_fail(x, mo_error(rc, "request to %s", x->u->addr));
        return;
    }
    x->queued = rc < 0 ? 0 : mo_stream_queued(c->s);
    if (!c->used || !x->idempotent)
        mo_buf_fini(&x->out); /* no retry */
}

struct mo_httpu_conn *mo_httpu_conn_new(struct mo_httpu *u, struct mo_stream *s,
                                        struct mo_err *e)
{
    struct mo_httpu_conn *c;

    if (u->loss_ms)
        mo_stream_notice_loss(s, u->loss_ms);
    if (u->tls && mo_tls_wrap(u->tls, s, false, u->sni, &s, e) < 0)
        return NULL;
    c = mo_new(struct mo_httpu_conn);
    if (c)
        c->http = mo_http1_new(MO_HTTP1_RESPONSE);
    if (!c || !c->http) {
        mo_free(c);
        mo_stream_close(s, NULL);
        return mo_null(mo_fail(e, MO_ENOMEM, "connection"));
    }
    c->u = u;
    c->s = s;
    mo_timer_init(&c->keep, on_keep);
    mo_list_push(&u->used, &c->node);
    mo_stream_limit(s, NO_LIMIT);
    mo_stream_attach(s, &conn_cb, c);
    return c;
}
