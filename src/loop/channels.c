/* channels.c - see channels.h.
 *
 * Invariants:
 *  1. A channel is in `live` from OPEN until a RESET, EOF in both directions,
 *     or the end of the stream below. Only live ones send frames.
 *  2. A channel's memory is freed when its stream is gone; that of struct
 *     mo_channels when the stream below and all channels are gone.
 *  3. Callbacks of owners run from the stream below or from a deferred call,
 *     never from inside an operation of a channel. */
#include "loop/channels.h"

#include <stdio.h>

#include "base/rand.h"
#include "codec/net_frame.h"
#include "loop/priv.h"

#define UNDER_HIGH ((size_t)1024 * 1024)
#define NO_LIMIT   (SIZE_MAX / 2) /* UNDER_HIGH applies */

struct channel {
    struct mo_stream s;
    struct mo_channels *m;
    struct mo_list node; /* in m->all */
    uint32_t id;         /* 0: it is not live any more */
    uint32_t credit;     /* bytes that may be sent */
    uint32_t owed;       /* bytes received that no CREDIT was sent for */
    struct mo_buf out;   /* to be sent */
    struct mo_buf in;    /* received, the owner is paused */
    bool shut, sent_eof, got_eof;
    bool waited;           /* `out` was not empty: the owner hears when it is */
    struct mo_later later; /* delivers, or reports that it is gone */
};

struct mo_channels {
    struct mo_loop *loop;
    struct mo_stream *under; /* NULL: closed */
    struct mo_net_frames frames;
    struct mo_list all; /* struct channel */
    unsigned n;
    uint32_t last_id;
    unsigned char nonce[MO_NET_NONCE];
    bool ready, ended;
    struct mo_err why;
    const struct mo_channels_cb *cb; /* NULL: forgotten */
    void *ctx;
};

static void maybe_free(struct mo_channels *m)
{
    if (!m->under && mo_list_empty(&m->all))
        mo_free(m);
}

/* --- sending ------------------------------------------------------------- */

static bool may_send(const struct mo_channels *m)
{
    return m->under && !m->ended && mo_stream_queued(m->under) < UNDER_HIGH;
}

static void end_all(struct mo_channels *m, const struct mo_err *why);

static void send_bytes(struct mo_channels *m, const struct mo_buf *b)
{
    if (!m->under || m->ended)
        return;
    if (mo_buf_err(b) || mo_stream_write(m->under, mo_buf_view(b)) < 0)
        end_all(m, mo_error(MO_ENOMEM, "network container"));
}

static void send_frame(struct mo_channels *m, enum mo_net_type type,
                       uint32_t id, struct mo_span data)
{
    mo_autobuf struct mo_buf b = {.max = MO_NET_FRAME_MAX};

    (void)mo_net_put(&b, type, id, data);
    send_bytes(m, &b);
}

/* Both directions have ended, or one side has reset it. */
static void retire(struct channel *c)
{
    c->id = 0;
    mo_buf_fini(&c->out);
}

static void maybe_retire(struct channel *c)
{
    if (c->sent_eof && c->got_eof)
        retire(c);
}

static void flush_channel(struct channel *c)
{
    struct mo_channels *m = c->m;
    size_t at = 0;

    while (c->id && at < c->out.len && c->credit && may_send(m)) {
        size_t n = c->out.len - at;

        n = n < c->credit ? n : c->credit;
        n = n < MO_NET_DATA_MAX ? n : MO_NET_DATA_MAX;
        send_frame(m, MO_NET_DATA, c->id, mo_span(c->out.p + at, n));
        c->credit -= (uint32_t)n;
        at += n;
    }
    if (c->id) /* else it was emptied */
        mo_buf_drop(&c->out, at);
    if (c->id && c->shut && !c->sent_eof && !c->out.len) {
        c->sent_eof = true;
        send_frame(m, MO_NET_EOF, c->id, mo_span("", 0));
        maybe_retire(c);
    }
}

/* From the loop: also tells the owner. */
static void flush_and_tell(struct channel *c)
{
    flush_channel(c);
    c->waited |= c->out.len > 0;
    if (!c->waited || c->out.len || !c->id)
        return;
    c->waited = false;
    mo_stream_on_drained(&c->s);
}

static void send_credit(struct channel *c)
{
    mo_autobuf struct mo_buf b = {.max = MO_NET_FRAME_MAX};

    if (!c->id || c->got_eof || c->owed < MO_NET_WINDOW / 2)
        return;
    (void)mo_net_put_credit(&b, c->id, c->owed);
    c->owed = 0;
    send_bytes(c->m, &b);
}

/* --- a channel as a stream ----------------------------------------------- */

static struct channel *channel_of(const struct mo_stream *s)
{
    return mo_container_of(s, struct channel, s);
}

static int ch_writev(struct mo_stream *s, const struct mo_span *v, size_t n)
{
    struct channel *c = channel_of(s);

    if (!c->id || c->shut)
        return MO_ECLOSED;
    for (size_t i = 0; i < n; i++)
        mo_buf_span(&c->out, v[i]);
    if (mo_buf_err(&c->out))
        return MO_ENOMEM;
    flush_channel(c);
    c->waited |= c->out.len > 0;
    return 0;
}

static size_t ch_queued(const struct mo_stream *s)
{
    return channel_of(s)->out.len;
}

static void ch_reading(struct mo_stream *s, bool on)
{
    struct channel *c = channel_of(s);

    if (on && (c->in.len || c->got_eof || c->m->ended || !c->id))
        mo_loop_defer(s->loop, &c->later);
}

static void ch_shutdown(struct mo_stream *s)
{
    struct channel *c = channel_of(s);

    c->shut = true;
    flush_channel(c);
}

static void ch_close(struct mo_stream *s)
{
    struct channel *c = channel_of(s);

    if (c->id)
        send_frame(c->m, MO_NET_RESET, c->id, mo_span("", 0));
    retire(c);
    mo_buf_fini(&c->in);
    mo_loop_defer(s->loop, &c->later);
}

static const struct mo_stream_ops channel_ops = {
    .writev = ch_writev,
    .queued = ch_queued,
    .reading = ch_reading,
    .shutdown = ch_shutdown,
    .close = ch_close,
};

/* Gives the owner what was received, then the end. */
static void deliver_kept(struct channel *c)
{
    struct mo_buf had = c->in;

    if (!c->s.reading || !c->s.cb)
        return;
    if (had.len) {
        mo_buf_init(&c->in, had.max);
        c->owed += (uint32_t)had.len;
        (void)mo_stream_on_data(&c->s, had.p, had.len);
        mo_buf_fini(&had);
        if (!c->s.closing)
            send_credit(c);
    }
    if (!c->s.closing && !c->in.len && c->got_eof && c->s.reading)
        mo_stream_on_eof(&c->s);
}

static void on_channel_later(struct mo_later *l)
{
    struct channel *c = mo_container_of(l, struct channel, later);
    struct mo_channels *m = c->m;

    if (!c->s.closing) {
        deliver_kept(c);
        return;
    }
    mo_stream_gone(&c->s);
    mo_list_del(&c->node);
    m->n--;
    mo_buf_fini(&c->in);
    mo_buf_fini(&c->out);
    mo_free(c);
    maybe_free(m);
}

/* --- frames -------------------------------------------------------------- */

static struct channel *find_channel(struct mo_channels *m, uint32_t id)
{
    mo_list_each_entry (c, &m->all, struct channel, node)
        if (c->id == id)
            return c;
    return NULL;
}

static int take_open(struct mo_channels *m, const struct mo_net_frame *f)
{
    struct channel *c;

    if (f->id <= m->last_id)
        return MO_EPROTO;
    m->last_id = f->id;
    c = m->n < MO_NET_CHANNELS_MAX && m->cb ? mo_new(struct channel) : NULL;
    if (!c) {
        send_frame(m, MO_NET_RESET, f->id, mo_span("", 0));
        return 0;
    }
    mo_stream_init(&c->s, m->loop, &channel_ops);
    (void)snprintf(c->s.peer, sizeof(c->s.peer), "box");
    c->m = m;
    c->id = f->id;
    c->credit = MO_NET_WINDOW;
    mo_buf_init(&c->out, MO_STREAM_QUEUE_MAX);
    mo_buf_init(&c->in, MO_NET_WINDOW);
    mo_later_init(&c->later, on_channel_later);
    mo_list_push(&m->all, &c->node);
    m->n++;
    m->cb->on_open(m->ctx, &c->s, &f->ip, f->port);
    return 0;
}

static int take_data(struct channel *c, struct mo_span data)
{
    if (c->got_eof || c->in.len + c->owed + data.n > MO_NET_WINDOW)
        return MO_EPROTO;
    if (c->s.reading && c->s.cb && !c->in.len) {
        c->owed += (uint32_t)data.n;
        (void)mo_stream_on_data(&c->s, (char *)(uintptr_t)data.p, data.n);
        if (!c->s.closing)
            send_credit(c);
        return 0;
    }
    return mo_buf_span(&c->in, data) < 0 ? MO_ENOMEM : 0;
}

static int take_eof(struct channel *c)
{
    if (c->got_eof)
        return MO_EPROTO;
    c->got_eof = true;
    maybe_retire(c);
    deliver_kept(c);
    return 0;
}

static int take_credit(struct channel *c, uint32_t n)
{
    if (n > MO_NET_WINDOW - c->credit)
        return MO_EPROTO;
    c->credit += n;
    flush_and_tell(c);
    return 0;
}

static void take_reset(struct channel *c)
{
    retire(c);
    mo_stream_close(&c->s, mo_error(MO_ECLOSED, "reset by the program"));
}

static int take_hello(struct mo_channels *m, const struct mo_net_frame *f)
{
    if (m->ready || memcmp(f->data.p, m->nonce, MO_NET_NONCE) != 0) {
        mo_net_frames_refuse(&m->frames);
        return 0;
    }
    m->ready = true;
    if (m->cb)
        m->cb->on_ready(m->ctx, (f->flags & MO_NET_V6) != 0);
    return 0;
}

static int take_frame(struct mo_channels *m, const struct mo_net_frame *f)
{
    struct channel *c;

    if (f->type == MO_NET_HELLO)
        return take_hello(m, f);
    if (f->type == MO_NET_OPEN)
        return take_open(m, f);
    if (f->type == MO_NET_QUERY) {
        if (m->cb && may_send(m))
            m->cb->on_query(m->ctx, f->id, f->data);
        return 0;
    }
    if (f->type == MO_NET_FILE) {
        if (m->cb)
            m->cb->on_file(m->ctx, f->id, f->flags == 1);
        return 0;
    }
    if (f->id > m->last_id)
        return MO_EPROTO;
    c = find_channel(m, f->id);
    if (!c)
        return 0; /* late */
    switch (f->type) {
    case MO_NET_DATA:
        return take_data(c, f->data);
    case MO_NET_EOF:
        return take_eof(c);
    case MO_NET_CREDIT:
        return take_credit(c, f->credit);
    default:
        take_reset(c);
        return 0;
    }
}

/* --- the stream below ---------------------------------------------------- */

static void end_all(struct mo_channels *m, const struct mo_err *why)
{
    if (m->ended)
        return;
    m->ended = true;
    m->why = *why;
    mo_list_each_entry (c, &m->all, struct channel, node) {
        retire(c);
        mo_stream_close(&c->s, why);
    }
    if (m->under)
        mo_stream_close(m->under, why);
}

static void on_read(void *ctx, char *p, size_t n)
{
    struct mo_channels *m = ctx;
    struct mo_span in = mo_span(p, n);
    struct mo_net_frame f;

    while (!m->ended) {
        int rc = mo_net_frames_next(&m->frames, &in, &f);

        if (rc == 1)
            rc = take_frame(m, &f) < 0 ? MO_EPROTO : 1;
        if (rc < 0)
            end_all(m, mo_error(MO_EPROTO,
                                "the network container sent a bad frame"));
        if (rc <= 0)
            return;
    }
}

static void on_eof(void *ctx)
{
    end_all(ctx, mo_error(MO_ECLOSED, "the network container has ended"));
}

static void on_drain(void *ctx)
{
    struct mo_channels *m = ctx;

    mo_list_each_entry_safe (c, &m->all, struct channel, node)
        if (!c->s.closing)
            flush_and_tell(c);
}

static void on_close(void *ctx, const struct mo_err *why)
{
    struct mo_channels *m = ctx;
    const struct mo_channels_cb *cb = m->cb;

    m->under = NULL;
    end_all(m, why ? why : mo_error(MO_ECLOSED, "closed"));
    m->cb = NULL;
    if (cb)
        cb->on_end(m->ctx, &m->why);
    maybe_free(m);
}

static const struct mo_stream_cb under_cb = {
    .on_read = on_read,
    .on_eof = on_eof,
    .on_drain = on_drain,
    .on_close = on_close,
};

int mo_channels_open(struct mo_loop *l, struct mo_stream *under,
                     const struct mo_channels_cb *cb, void *ctx,
                     struct mo_channels **out, struct mo_err *e)
{
    mo_autobuf struct mo_buf hello = {.max = 2 * MO_NET_PAD};
    struct mo_channels *m = mo_new(struct mo_channels);

    if (!m) {
        mo_stream_close(under, NULL);
        return mo_fail(e, MO_ENOMEM, "network");
    }
    *m = (struct mo_channels){.loop = l, .under = under, .cb = cb, .ctx = ctx};
    mo_list_init(&m->all);
    mo_net_frames_init(&m->frames, true);
    mo_random(m->nonce, sizeof(m->nonce));
    mo_stream_limit(under, NO_LIMIT);
    mo_stream_attach(under, &under_cb, m);
    (void)mo_net_put_hello(&hello, m->nonce, 0);
    send_bytes(m, &hello); /* a failure is reported by on_end */
    *out = m;
    return 0;
}

void mo_channels_answer(struct mo_channels *m, uint32_t id,
                        struct mo_span answer)
{
    if (answer.n && answer.n <= MO_NET_DATA_MAX)
        send_frame(m, MO_NET_ANSWER, id, answer);
}

void mo_channels_send_file(struct mo_channels *m, uint32_t id,
                           struct mo_span file)
{
    bool last = false;

    while (!last) {
        mo_autobuf struct mo_buf b = {.max = MO_NET_FRAME_MAX};
        struct mo_span piece = mo_span_head(
            file, file.n < MO_NET_DATA_MAX - 1 ? file.n : MO_NET_DATA_MAX - 1);

        file = mo_span_skip(file, piece.n);
        last = file.n == 0;
        (void)mo_net_put_file(&b, id, last, piece);
        send_bytes(m, &b);
    }
}

void mo_channels_forget(struct mo_channels *m)
{
    if (!m)
        return;
    m->cb = NULL;
    end_all(m, mo_error(MO_ECLOSED, "closed"));
}
