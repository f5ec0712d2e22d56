/* eio.h - Engine.IO protocol 4 packets and the polling payload.
 *
 * A packet is one type digit and data. Over a websocket one frame is one
 * packet (a binary frame is a bare message). Over polling a body is packets
 * joined by 0x1e, where a binary one is 'b' + base64. Binary messages are only
 * recognised, for the receiver to refuse them.
 *
 * An empty packet is an error anywhere, and so is an empty body.
 * Ownership: data borrows the frame or body. */
#ifndef MO_CODEC_HTTP_EIO_H
#define MO_CODEC_HTTP_EIO_H

#include "base/mem.h"
#include "base/str.h"

enum mo_eio_type {
    MO_EIO_OPEN,
    MO_EIO_CLOSE,
    MO_EIO_PING,
    MO_EIO_PONG,
    MO_EIO_MESSAGE,
    MO_EIO_UPGRADE,
    MO_EIO_NOOP,
};

struct mo_eio {
    enum mo_eio_type type;
    bool binary; /* a message of bytes; data is empty */
    struct mo_span data;
};

#define MO_EIO_PACKETS_MAX 10000 /* packets in one polling body */

/* One websocket text frame. MO_EPROTO for an empty one or an unknown type. */
int mo_eio_decode(struct mo_span frame, struct mo_eio *out, struct mo_err *e);

/* Walk a polling body: 1 and *out, 0 at the end, or MO_EPROTO. *body is
 * advanced; *n starts as 0 and counts packets. */
int mo_eio_next(struct mo_span *body, unsigned *n, struct mo_eio *out,
                struct mo_err *e);

/* Append one packet as a piece of a polling body (puts 0x1e first when b is not
 * empty). */
int mo_eio_put_polling(struct mo_buf *b, enum mo_eio_type type,
                       struct mo_span data);

/* The open packet's JSON (without the type digit). */
struct mo_eio_open {
    struct mo_span sid;
    bool can_upgrade;
    unsigned ping_interval_ms, ping_timeout_ms;
    size_t max_payload;
};
int mo_eio_put_open(struct mo_buf *b, const struct mo_eio_open *o);

#endif
