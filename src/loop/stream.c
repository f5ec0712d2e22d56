/* stream.c - the part shared by all kinds of stream: owner, close, and finish.
 * The kinds are stream_uv.c (libuv handles) and tls.c. */
#include "loop/stream.h"

#include "loop/priv.h"

static void on_finish_timeout(struct mo_timer *t)
{
    mo_stream_close(mo_container_of(t, struct mo_stream, finish), NULL);
}

void mo_stream_init(struct mo_stream *s, struct mo_loop *l,
                    const struct mo_stream_ops *ops)
{
    s->ops = ops;
    s->loop = l;
    s->max_queue = MO_STREAM_QUEUE_MAX;
    mo_timer_init(&s->finish, on_finish_timeout);
    l->stats.streams++;
}

void mo_stream_attach(struct mo_stream *s, const struct mo_stream_cb *cb,
                      void *ctx)
{
    s->cb = cb;
    s->ctx = ctx;
    mo_stream_resume(s);
}

static void set_reading(struct mo_stream *s, bool on)
{
    if (s->closing || s->eof || s->reading == on)
        return;
    s->reading = on;
    s->ops->reading(s, on);
}

void mo_stream_pause(struct mo_stream *s)
{
    if (!s->finishing)
        set_reading(s, false);
}

void mo_stream_resume(struct mo_stream *s)
{
    set_reading(s, true);
}

int mo_stream_writev(struct mo_stream *s, const struct mo_span *v, size_t n)
{
    size_t total = 0;

    if (s->closing || s->finishing)
        return MO_ECLOSED;
    for (size_t i = 0; i < n; i++)
        total += v[i].n;
    /* an empty queue accepts one write of any size up to the limit */
    if (total > s->max_queue || s->ops->queued(s) > s->max_queue - total)
        return MO_EBUSY;
    return s->ops->writev(s, v, n);
}

int mo_stream_write(struct mo_stream *s, struct mo_span data)
{
    return mo_stream_writev(s, &data, 1);
}

size_t mo_stream_queued(const struct mo_stream *s)
{
    return s->ops->queued(s);
}

void mo_stream_limit(struct mo_stream *s, size_t max_queue)
{
    s->max_queue = max_queue;
}

bool mo_stream_raw(struct mo_stream *s)
{
    return !s->closing && !s->finishing && s->ops->raw && s->ops->raw(s);
}

size_t mo_stream_move(struct mo_stream *from, struct mo_stream *to, size_t max)
{
    return from->ops == to->ops && from->ops->move
               ? from->ops->move(from, to, max)
               : 0;
}

void mo_stream_shutdown(struct mo_stream *s)
{
    if (!s->closing)
        s->ops->shutdown(s);
}

void mo_stream_close(struct mo_stream *s, const struct mo_err *why)
{
    if (s->closing)
        return;
    s->closing = true;
    s->reading = false;
    if (why)
        s->why = *why;
    mo_timer_stop(s->loop, &s->finish);
    s->ops->close(s);
}

/* Send the queue, half-close, then discard input until the peer closes too.
 * Closing with unread input would make the kernel send RST, and the peer might
 * lose the last bytes. */
void mo_stream_finish(struct mo_stream *s, uint64_t ms)
{
    if (s->closing || s->finishing)
        return;
    if (s->eof && s->ops->queued(s) == 0) {
        mo_stream_close(s, NULL);
        return;
    }
    s->ops->shutdown(s);
    set_reading(s, true);
    if (s->closing)
        return;
    s->finishing = true;
    mo_timer_start(s->loop, &s->finish, ms);
}

void mo_stream_leave(struct mo_stream *s, uint64_t ms)
{
    if (s->closing || s->finishing)
        return;
    if (s->ops->queued(s) == 0) {
        mo_stream_close(s, NULL);
        return;
    }
    s->finishing = s->leaving = true;
    mo_timer_start(s->loop, &s->finish, ms);
}

const char *mo_stream_peer(const struct mo_stream *s)
{
    return s->peer;
}

bool mo_stream_is_tls(const struct mo_stream *s)
{
    return s->ops->tls;
}

bool mo_stream_is_own_user(const struct mo_stream *s)
{
    return s->is_own_user;
}

bool mo_stream_on_data(struct mo_stream *s, char *p, size_t n)
{
    if (!s->closing && !s->finishing && s->cb)
        s->cb->on_read(s->ctx, p, n);
    return !s->closing && s->reading;
}

void mo_stream_on_ready(struct mo_stream *s)
{
    if (!s->closing)
        s->cb->on_ready(s->ctx);
}

void mo_stream_on_eof(struct mo_stream *s)
{
    if (s->closing || s->eof)
        return;
    s->eof = true;
    s->reading = false;
    if (s->finishing) {
        if (s->ops->queued(s) == 0)
            mo_stream_close(s, NULL);
        return;
    }
    if (s->cb && s->cb->on_eof)
        s->cb->on_eof(s->ctx);
    else
        mo_stream_close(s, NULL);
}

void mo_stream_on_drained(struct mo_stream *s)
{
    if (s->closing)
        return;
    if (s->finishing) {
        if (s->eof || s->leaving)
            mo_stream_close(s, NULL);
        return;
    }
    if (s->cb && s->cb->on_drain)
        s->cb->on_drain(s->ctx);
}

void mo_stream_gone(struct mo_stream *s)
{
    MO_BUG_ON(mo_timer_on(&s->finish));
    s->loop->stats.streams--;
    if (s->cb)
        s->cb->on_close(s->ctx, s->why.code ? &s->why : NULL);
    mo_peers_leave(s->counted);
}
