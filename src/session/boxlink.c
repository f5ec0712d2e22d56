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
    struct mo_timer drain;
    struct mo_later later; /* the end, from the loop */
    mo_done_fn *on_eof;
    void *ctx;
};

static struct boxlink *from_link(struct mo_link *k)
{
    return mo_container_of(k, struct boxlink, k);
}

static void finish_link(struct boxlink *b)
{
    mo_timer_stop(b->loop, &b->drain);
    mo_later_cancel(&b->later);
    mo_link_gone(&b->k);
}

static void on_later(struct mo_later *d)
{
    finish_link(mo_container_of(d, struct boxlink, later));
}

/* --- from the lines below ------------------------------------------------ */

static void on_close(void *ctx, const struct mo_err *why)
{
    struct boxlink *b = ctx;

    b->k.inner = NULL;
    if (why && !b->k.why.code)
        b->k.why = *why;
    if (mo_link_dead(&b->k))
        finish_link(b);
    else
        b->on_eof(b->ctx, &b->k.why);
}

static const struct mo_link_cb inner_cb = {
    .on_message = mo_link_pass_message,
    .on_failed = mo_link_pass_failed,
    .on_noise = mo_link_pass_noise,
    .on_close = on_close,
};

/* --- from the connection above ------------------------------------------- */

static void boxlink_start(struct mo_link *k)
{
    struct boxlink *b = from_link(k);

    mo_link_attach(k->inner, &inner_cb, b);
    if (k->failing)
        mo_timer_start(b->loop, &b->drain, DRAIN_MS);
}

static void boxlink_close(struct mo_link *k)
{
    struct boxlink *b = from_link(k);

    if (k->inner)
        mo_link_close(k->inner, k->why.code ? &k->why : NULL);
    else
        mo_loop_defer(b->loop, &b->later);
}

static const struct mo_link_ops ops = {
    .start = boxlink_start,
    .close = boxlink_close,
};

/* --- from the session ---------------------------------------------------- */

static void on_drained(struct mo_timer *t)
{
    struct boxlink *b = mo_container_of(t, struct boxlink, drain);

    if (b->k.inner)
        mo_link_close(b->k.inner, &b->k.why);
}

void mo_boxlink_cause(struct boxlink *b, const struct mo_err *why)
{
    if (!mo_link_fail(&b->k, why) || !b->k.cb)
        return; /* known already, or not attached yet */
    if (b->k.inner)
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
    *b = (struct boxlink){
        .k = {.ops = &ops}, .loop = l, .on_eof = on_eof, .ctx = ctx};
    rc = mo_link_lines(l, io, 0, &b->k.inner, e);
    if (rc < 0) {
        mo_free(b);
        return rc;
    }
    mo_link_lines_leave(b->k.inner);
    mo_timer_init(&b->drain, on_drained);
    mo_later_init(&b->later, on_later);
    *out = b;
    return 0;
}
