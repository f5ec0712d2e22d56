#include "codec/attach_frame.h"

#define PIECE_MAX ((size_t)256 * 1024) /* of stdin in one message */

enum {
    CH_STDIN = 0,
    CH_STDOUT = 1,
    CH_STDERR = 2,
    CH_STATUS = 3,
    CH_END = 255
};

void mo_attach_init(struct mo_attach *a, bool v5)
{
    *a = (struct mo_attach){.v5 = v5};
    mo_ws_init(&a->ws, MO_WS_CLIENT, MO_ATTACH_MESSAGE_MAX);
}

void mo_attach_fini(struct mo_attach *a)
{
    mo_ws_fini(&a->ws);
}

/* 1: a piece; 0: nothing to hand out. */
static int take_message(struct mo_attach *a, struct mo_span m,
                        enum mo_mux_stream *stream, struct mo_span *piece,
                        struct mo_err *e)
{
    unsigned char channel = m.n ? (unsigned char)m.p[0] : 0;

    if (m.n && (channel == CH_STDOUT || channel == CH_STDERR)) {
        *stream = channel == CH_STDOUT ? MO_MUX_STDOUT : MO_MUX_STDERR;
        *piece = mo_span_skip(m, 1);
        return piece->n > 0; /* the first message of a server is empty */
    }
    if (m.n && channel == CH_STATUS) {
        a->over = true;
        return MO_ECLOSED;
    }
    if (m.n && channel == CH_END && a->v5)
        return 0;
    return mo_fail(e, MO_EPROTO, "attach: a message of channel %d",
                   m.n ? channel : -1);
}

int mo_attach_next(struct mo_attach *a, struct mo_ws_in *in,
                   enum mo_mux_stream *stream, struct mo_span *piece,
                   struct mo_buf *answer, struct mo_err *e)
{
    struct mo_span m;
    int rc = 0;

    while (rc == 0 && !a->over) {
        switch (mo_ws_next(&a->ws, in, &m, e)) {
        case MO_WS_MORE:
            return 0;
        case MO_WS_ERROR:
            return a->ws.close_code == 1011 ? MO_ENOMEM : MO_EPROTO;
        case MO_WS_TEXT:
            return mo_fail(e, MO_EPROTO, "attach: a message of text");
        case MO_WS_BINARY:
            rc = take_message(a, m, stream, piece, e);
            break;
        case MO_WS_PING:
            (void)mo_ws_put(answer, MO_WS_CLIENT, MO_WS_OP_PONG, true, m);
            rc = mo_buf_err(answer);
            break;
        case MO_WS_PONG:
            break;
        case MO_WS_CLOSE:
            a->over = true;
            break;
        }
    }
    return rc == 0 ? MO_ECLOSED : rc;
}

static int put_message(struct mo_buf *b, unsigned char channel,
                       struct mo_span data)
{
    mo_autobuf struct mo_buf m = {.max = PIECE_MAX + 1};

    (void)mo_buf_putc(&m, (char)channel);
    (void)mo_buf_span(&m, data);
    if (mo_buf_err(&m))
        return mo_buf_fail(b, mo_buf_err(&m));
    return mo_ws_put(b, MO_WS_CLIENT, MO_WS_OP_BINARY, true, mo_buf_view(&m));
}

int mo_attach_put(struct mo_buf *b, struct mo_span data)
{
    while (data.n)
        if (put_message(b, CH_STDIN, mo_span_take(&data, PIECE_MAX)) < 0)
            break;
    return mo_buf_err(b);
}

int mo_attach_put_end(const struct mo_attach *a, struct mo_buf *b)
{
    return a->v5 ? put_message(b, CH_END, mo_span("\0", 1)) : 0;
}

int mo_attach_put_ping(struct mo_buf *b)
{
    return mo_ws_put(b, MO_WS_CLIENT, MO_WS_OP_PING, true, MO_SPAN(""));
}
