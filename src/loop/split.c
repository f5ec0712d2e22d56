/* split.c - states of a split connection.
 *
 * Invariants:
 *  1. `under` is read only while no side holds bytes back and no attached side
 *     is paused.
 *  2. A side gets the end only after everything before it.
 *  3. Memory is freed when the connection and both sides are closed. */
#include "loop/split.h"

#include <stdio.h>

#include "codec/attach_frame.h"
#include "loop/priv.h"

#define NO_LIMIT (SIZE_MAX / 2) /* the side's own limit applies */

struct side {
    struct mo_stream s;
    struct mo_split *sp;
    struct mo_buf kept;    /* received, but the owner is paused */
    struct mo_later close; /* reports to its owner */
    bool open;
};

struct mo_split {
    struct mo_stream *under; /* NULL: closed */
    struct mo_loop *loop;
    enum mo_split_wire wire;
    struct mo_mux mux;       /* of Docker */
    struct mo_attach attach; /* of Kubernetes */
    struct mo_timer ping;    /* likewise */
    struct side out, err;
    struct mo_later pump;
    struct mo_err why; /* why the connection broke */
    bool eof, told;
    bool ended; /* regularly, by the other end */
    void (*on_end)(void *ctx, enum mo_split_end how, const struct mo_err *why);
    void *ctx;
};

static void report_end(struct mo_split *sp, enum mo_split_end how)
{
    if (sp->told)
        return;
    sp->told = true;
    if (sp->on_end)
        sp->on_end(sp->ctx, how, sp->why.code ? &sp->why : NULL);
}

static void maybe_free(struct mo_split *sp)
{
    if (sp->under || sp->out.open || sp->err.open)
        return;
    mo_later_cancel(&sp->pump);
    mo_timer_stop(sp->loop, &sp->ping);
    mo_attach_fini(&sp->attach);
    mo_buf_fini(&sp->out.kept);
    mo_buf_fini(&sp->err.kept);
    mo_free(sp);
}

/* --- flow control -------------------------------------------------------- */

static bool is_closed(const struct side *d)
{
    return !d->open || d->s.closing;
}

/* True if this side allows reading from the connection. */
static bool allows_reading(const struct mo_split *sp, const struct side *d)
{
    if (is_closed(d) || (d == &sp->err && !d->s.cb))
        return true;
    return d->s.reading && !d->kept.len;
}

static void set_flow(struct mo_split *sp)
{
    if (!sp->under || sp->eof)
        return;
    if (allows_reading(sp, &sp->out) && allows_reading(sp, &sp->err))
        mo_stream_resume(sp->under);
    else
        mo_stream_pause(sp->under);
}

static void break_connection(struct mo_split *sp, const struct mo_err *why)
{
    if (!sp->why.code)
        sp->why = *why;
    sp->eof = true;
    if (sp->under)
        mo_stream_close(sp->under, NULL);
    mo_loop_defer(sp->loop, &sp->pump);
    report_end(sp, MO_SPLIT_BROKEN);
}

static void keep_bytes(struct mo_split *sp, struct side *d,
                       struct mo_span piece)
{
    if (d == &sp->err && !d->s.cb && d->kept.len + piece.n > MO_LOOP_READ_BUF)
        return;
    if (mo_buf_span(&d->kept, piece) == 0)
        return;
    mo_buf_fini(&d->kept);
    break_connection(sp, mo_error(MO_ENOMEM, "attach stream"));
}

static void deliver_side(struct mo_split *sp, struct side *d,
                         struct mo_span piece)
{
    if (is_closed(d))
        return;
    if (d->s.reading && d->s.cb && !d->kept.len)
        (void)mo_stream_on_data(&d->s, (char *)(uintptr_t)piece.p, piece.n);
    else
        keep_bytes(sp, d, piece);
}

/* --- frames -------------------------------------------------------------- */

static bool is_kube(const struct mo_split *sp)
{
    return sp->wire != MO_SPLIT_DOCKER;
}

static void send_frames(struct mo_split *sp, struct mo_buf *frames)
{
    if (!mo_buf_err(frames) && frames->len && sp->under)
        (void)mo_stream_write(sp->under, mo_buf_view(frames));
}

static void on_ping(struct mo_timer *t)
{
    struct mo_split *sp = mo_container_of(t, struct mo_split, ping);
    mo_autobuf struct mo_buf frame = {.max = 64};

    if (!sp->under || sp->eof)
        return;
    (void)mo_attach_put_ping(&frame);
    send_frames(sp, &frame);
    mo_timer_start(sp->loop, &sp->ping, MO_SPLIT_PING_MS);
}

/* The other end is done. */
static void end_connection(struct mo_split *sp)
{
    sp->eof = sp->ended = true;
    mo_loop_defer(sp->loop, &sp->pump);
    report_end(sp, MO_SPLIT_EOF);
}

static int next_piece(struct mo_split *sp, struct mo_span *in,
                      enum mo_mux_stream *which, struct mo_span *piece,
                      struct mo_err *e)
{
    mo_autobuf struct mo_buf answer = {.max = 1024};
    struct mo_ws_in rest = {(char *)(uintptr_t)in->p, in->n};
    int rc;

    if (!is_kube(sp))
        return mo_mux_next(&sp->mux, in, which, piece, e);
    rc = mo_attach_next(&sp->attach, &rest, which, piece, &answer, e);
    *in = mo_span(rest.p, rest.n);
    send_frames(sp, &answer);
    return rc;
}

static void feed_frames(struct mo_split *sp, struct mo_span in)
{
    enum mo_mux_stream which;
    struct mo_span piece;
    struct mo_err e;
    int rc = 1;

    while (rc == 1 && !sp->eof) {
        mo_err_clear(&e);
        rc = next_piece(sp, &in, &which, &piece, &e);
        if (rc == 1)
            deliver_side(sp, which == MO_MUX_STDOUT ? &sp->out : &sp->err,
                         piece);
    }
    if (rc == MO_ECLOSED && is_kube(sp)) {
        end_connection(sp);
        if (sp->under)
            mo_stream_close(sp->under, NULL);
    } else if (rc < 0) {
        if (!e.code)
            (void)mo_fail(&e, rc, "attach stream");
        break_connection(sp, &e);
    }
    set_flow(sp);
}

/* --- the connection ------------------------------------------------------ */

static void on_under_read(void *ctx, char *p, size_t n)
{
    feed_frames(ctx, mo_span(p, n));
}

static void on_under_eof(void *ctx)
{
    struct mo_split *sp = ctx;

    if (is_kube(sp))
        break_connection(sp, mo_error(MO_ECLOSED, "attach stream was cut"));
    else if (!mo_mux_at_edge(&sp->mux))
        break_connection(
            sp, mo_error(MO_ECLOSED, "attach stream ended within a frame"));
    else
        end_connection(sp);
}

static void on_under_drain(void *ctx)
{
    struct mo_split *sp = ctx;

    if (!is_closed(&sp->out))
        mo_stream_on_drained(&sp->out.s);
}

static void on_under_close(void *ctx, const struct mo_err *why)
{
    struct mo_split *sp = ctx;

    sp->under = NULL;
    if (why && !sp->why.code)
        sp->why = *why;
    sp->eof = true;
    report_end(sp, sp->why.code ? MO_SPLIT_BROKEN
                   : sp->ended  ? MO_SPLIT_EOF
                                : MO_SPLIT_CLOSED);
    mo_loop_defer(sp->loop, &sp->pump);
}

static const struct mo_stream_cb under_cb = {
    .on_read = on_under_read,
    .on_eof = on_under_eof,
    .on_drain = on_under_drain,
    .on_close = on_under_close,
};

/* --- a side -------------------------------------------------------------- */

static void pump_side(struct mo_split *sp, struct side *d)
{
    struct mo_buf had = d->kept;

    if (is_closed(d))
        return;
    if (had.len && d->s.reading && d->s.cb) {
        mo_buf_init(&d->kept, had.max);
        (void)mo_stream_on_data(&d->s, had.p, had.len);
        mo_buf_fini(&had);
    }
    /* Without an owner the end is kept for a later owner. */
    if (is_closed(d) || d->kept.len || !sp->eof || !d->s.cb)
        return;
    if (sp->why.code)
        mo_stream_close(&d->s, &sp->why);
    else if (d->s.reading)
        mo_stream_on_eof(&d->s);
}

static void on_pump(struct mo_later *l)
{
    struct mo_split *sp = mo_container_of(l, struct mo_split, pump);

    pump_side(sp, &sp->out);
    pump_side(sp, &sp->err);
    set_flow(sp);
    maybe_free(sp);
}

static int write_frames(struct mo_split *sp, const struct mo_span *v, size_t n)
{
    mo_autobuf struct mo_buf b = {.max = NO_LIMIT};

    for (size_t i = 0; i < n; i++)
        (void)mo_attach_put(&b, v[i]);
    return mo_buf_err(&b) ? mo_buf_err(&b)
                          : mo_stream_write(sp->under, mo_buf_view(&b));
}

static int side_writev(struct mo_stream *s, const struct mo_span *v, size_t n)
{
    struct side *d = mo_container_of(s, struct side, s);
    struct mo_split *sp = d->sp;

    if (d != &sp->out || !sp->under)
        return MO_ECLOSED;
    return is_kube(sp) ? write_frames(sp, v, n)
                       : mo_stream_writev(sp->under, v, n);
}

static size_t side_queued(const struct mo_stream *s)
{
    const struct side *d = mo_container_of(s, struct side, s);

    if (d != &d->sp->out || !d->sp->under)
        return 0;
    return mo_stream_queued(d->sp->under);
}

static void side_reading(struct mo_stream *s, bool on)
{
    struct side *d = mo_container_of(s, struct side, s);

    if (on && (d->kept.len || d->sp->eof))
        mo_loop_defer(d->sp->loop, &d->sp->pump);
    set_flow(d->sp);
}

static void side_shutdown(struct mo_stream *s)
{
    struct side *d = mo_container_of(s, struct side, s);
    mo_autobuf struct mo_buf frame = {.max = 64};

    if (d != &d->sp->out || !d->sp->under)
        return;
    if (!is_kube(d->sp)) {
        mo_stream_shutdown(d->sp->under);
        return;
    }
    (void)mo_attach_put_end(&d->sp->attach, &frame);
    send_frames(d->sp, &frame);
}

static void on_side_close(struct mo_later *l)
{
    struct side *d = mo_container_of(l, struct side, close);
    struct mo_split *sp = d->sp;

    mo_stream_gone(&d->s);
    d->open = false;
    if (!sp->out.open && !sp->err.open && sp->under)
        mo_stream_close(sp->under, NULL);
    else
        set_flow(sp);
    maybe_free(sp);
}

static void side_close(struct mo_stream *s)
{
    struct side *d = mo_container_of(s, struct side, s);

    mo_buf_fini(&d->kept);
    mo_loop_defer(d->sp->loop, &d->close);
}

static const struct mo_stream_ops side_ops = {
    .writev = side_writev,
    .queued = side_queued,
    .reading = side_reading,
    .shutdown = side_shutdown,
    .close = side_close,
};

static void side_init(struct mo_split *sp, struct side *d, const char *name)
{
    mo_stream_init(&d->s, sp->loop, &side_ops);
    (void)snprintf(d->s.peer, sizeof(d->s.peer), "%s", name);
    d->sp = sp;
    d->open = true;
    /* Bytes read before, plus one more read, which may end a message. */
    mo_buf_init(&d->kept, 2 * MO_LOOP_READ_BUF +
                              (is_kube(sp) ? MO_ATTACH_MESSAGE_MAX : 0));
    mo_later_init(&d->close, on_side_close);
}

int mo_split(struct mo_stream *under, enum mo_split_wire wire,
             struct mo_span early,
             void (*on_end)(void *ctx, enum mo_split_end how,
                            const struct mo_err *why),
             void *ctx, struct mo_split_io *out, struct mo_err *e)
{
    struct mo_split *sp = mo_new(struct mo_split);

    if (!sp) {
        mo_stream_close(under, NULL);
        return mo_fail(e, MO_ENOMEM, "attach stream");
    }
    sp->loop = under->loop;
    sp->under = under;
    sp->wire = wire;
    mo_mux_init(&sp->mux);
    mo_attach_init(&sp->attach, wire == MO_SPLIT_KUBE_V5);
    mo_timer_init(&sp->ping, on_ping);
    if (is_kube(sp))
        mo_timer_start(sp->loop, &sp->ping, MO_SPLIT_PING_MS);
    side_init(sp, &sp->out, "box");
    side_init(sp, &sp->err, "box stderr");
    mo_later_init(&sp->pump, on_pump);
    mo_stream_limit(under, NO_LIMIT);
    mo_stream_attach(under, &under_cb, sp);
    sp->told = true; /* not from inside this call */
    feed_frames(sp, early);
    sp->told = false;
    sp->on_end = on_end;
    sp->ctx = ctx;
    *out = (struct mo_split_io){sp, &sp->out.s, &sp->err.s};
    return 0;
}

void mo_split_forget(struct mo_split *sp)
{
    sp->on_end = NULL;
}
