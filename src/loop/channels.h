/* channels.h - many connections over one stream, opened by the peer.
 *
 * The relay's side of codec/net_frame.h. Each connection that the network
 * container accepted becomes a stream that keeps the contract of stream.h. Its
 * owner gets it paused, and without a descriptor:
 *
 *   mo_stream_shutdown()   EOF, once the queue is sent
 *   mo_stream_close()      RESET, unless both directions have ended
 *   a paused stream        no CREDIT: the container reads no further
 *
 * The peer is trusted with nothing but its own connections: a frame that is not
 * valid, for an id that was never opened, or beyond the credit ends them all
 * (MO_EPROTO).
 *
 * Limits: MO_NET_CHANNELS_MAX connections; MO_NET_WINDOW bytes are held for an
 * owner that does not read. The stream below is not written to while
 * UNDER_HIGH bytes wait in it; queries are dropped then. */
#ifndef MO_LOOP_CHANNELS_H
#define MO_LOOP_CHANNELS_H

#include "codec/ip.h"
#include "loop/stream.h"

struct mo_channels;

struct mo_channels_cb {
    /* The peer has answered; v6: it has IPv6. Once. */
    void (*on_ready)(void *ctx, bool v6);
    /* s belongs to the receiver, which attaches or closes it. */
    void (*on_open)(void *ctx, struct mo_stream *s, const struct mo_ip *ip,
                    unsigned port);
    void (*on_query)(void *ctx, uint32_t id, struct mo_span query);
    /* A file was written, or not. */
    void (*on_file)(void *ctx, uint32_t id, bool ok);
    /* Once, last, unless mo_channels_forget() was called. All streams have been
     * closed, their owners hear of it from then on. */
    void (*on_end)(void *ctx, const struct mo_err *why);
};

/* Takes `under` (paused), also on failure, and greets the peer. */
int mo_channels_open(struct mo_loop *l, struct mo_stream *under,
                     const struct mo_channels_cb *cb, void *ctx,
                     struct mo_channels **out, struct mo_err *e);
void mo_channels_answer(struct mo_channels *m, uint32_t id,
                        struct mo_span answer);
/* Sends a file of the box; on_file() follows. */
void mo_channels_send_file(struct mo_channels *m, uint32_t id,
                           struct mo_span file);
/* Closes all; no callback follows but those of the streams. NULL is fine. */
void mo_channels_forget(struct mo_channels *m);

#endif
