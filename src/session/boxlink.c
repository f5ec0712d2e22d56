/* boxlink.c - a box's stream as an MCP link that knows why it ended.
 *
 * When a program dies, its output ends and the driver reports the cause, in
 * either order. Calls in flight must fail once and with the cause. So the end
 * of the output is held back until mo_boxlink_cause(), and a cause until the
 * output has been read to its end or DRAIN_MS have passed. A link that its
 * owner closes ends as soon as its queue is sent: the box may live on, and
 * then its end of the stream stays open. */
#include "session/priv.h"

struct boxlink {
    struct mo_link k;
    struct mo_loop *loop;
    struct mo_link *inner; /* lines; NULL: ended */
    struct mo_timer drain;
    struct mo_later later; /* the end, from the loop */
    mo_done_fn *on_eof;
    void *ctx;
    struct mo_err why; /* code 0: none yet */
    bool caused;
};

static struct boxlink *from_link(struct mo_link *k)
{
    return mo_container_of(k, struct boxlink, k);
}

static void finish_link(struct boxlink *b)
{
    const struct mo_link_cb *cb = b->k.cb;
    void *owner = b->k.ctx;
    struct mo_err why = b->why;

    mo_timer_stop(b->loop, &b->drain);
    mo_later_cancel(&b->later);
    mo_free(b);
    cb->on_close(owner, why.code ? &why : NULL);
}

static void on_later(struct mo_later *d)
{
    finish_link(mo_container_of(d, struct boxlink, later));
}

/* --- from the lines below ------------------------------------------------ */

static void on_message(void *ctx, const struct mo_rpc *m, uint64_t stream_of)
{
    struct boxlink *b = ctx;

    b->k.cb->on_message(b->k.ctx, m, stream_of);
}

static void on_failed(void *ctx, uint64_t id, int status, struct mo_span body,
                      const struct mo_err *why)
{
    struct boxlink *b = ctx;

    b->k.cb->on_failed(b->k.ctx, id, status, body, why);
}

static void on_noise(void *ctx, struct mo_span line)
{
    struct boxlink *b = ctx;

    if (b->k.cb->on_noise)
        b->k.cb->on_noise(b->k.ctx, line);
}

static void on_close(void *ctx, const struct mo_err *why)
{
    struct boxlink *b = ctx;

    b->inner = NULL;
    if (why && !b->why.code)
        b->why = *why;
    if (b->k.closing || b->caused)
        finish_link(b);
    else
        b->on_eof(b->ctx, &b->why);
}

static const struct mo_link_cb inner_cb = {
    .on_message = on_message,
    .on_failed = on_failed,
    .on_noise = on_noise,
    .on_close = on_close,
};

/* --- from the connection above ------------------------------------------- */

static int boxlink_send(struct mo_link *k, const struct mo_link_msg *m)
{
    struct boxlink *b = from_link(k);

    return b->inner ? mo_link_send(b->inner, m) : MO_ECLOSED;
}

static void boxlink_start(struct mo_link *k)
{
    struct boxlink *b = from_link(k);

    mo_link_attach(b->inner, &inner_cb, b);
    if (b->caused)
        mo_timer_start(b->loop, &b->drain, DRAIN_MS);
}

static void boxlink_close(struct mo_link *k, const struct mo_err *why)
{
    struct boxlink *b = from_link(k);

    if (why && !b->caused)
        b->why = *why;
    if (b->inner)
        mo_link_close(b->inner, why);
    else
        mo_loop_defer(b->loop, &b->later);
}

static const struct mo_link_ops ops = {
    .send = boxlink_send,
    .start = boxlink_start,
    .close = boxlink_close,
};

/* --- from the session ---------------------------------------------------- */

static void on_drained(struct mo_timer *t)
{
    struct boxlink *b = mo_container_of(t, struct boxlink, drain);

    if (b->inner)
        mo_link_close(b->inner, &b->why);
}

void mo_boxlink_cause(struct boxlink *b, const struct mo_err *why)
{
    if (b->caused || b->k.closing)
        return;
    b->caused = true;
    b->why = *why;
    if (!b->k.cb)
        return; /* not attached yet */
    if (b->inner)
        mo_timer_start(b->loop, &b->drain, DRAIN_MS);
    else
        mo_loop_defer(b->loop, &b->later);
}

struct mo_link *mo_boxlink_link(struct boxlink *b)
{
    return &b->k;
}

int mo_boxlink_new(struct mo_loop *l, struct mo_stream *io, mo_done_fn *on_eof,
                   void *ctx, struct boxlink **out, struct mo_err *e)
{
    struct boxlink *b = mo_new(struct boxlink);
    int rc;

    if (!b) {
        mo_stream_close(io, NULL);
        return mo_fail(e, MO_ENOMEM, "link to the box");
    }
    rc = mo_link_lines(l, io, 0, &b->inner, e);
    if (rc < 0) {
        mo_free(b);
        return rc;
    }
    mo_link_lines_leave(b->inner);
    b->k.ops = &ops;
    b->loop = l;
    b->on_eof = on_eof;
    b->ctx = ctx;
    mo_timer_init(&b->drain, on_drained);
    mo_later_init(&b->later, on_later);
    *out = b;
    return 0;
}
