/* attach_frame.h - messages of a Kubernetes attach, v4 and v5.channel.k8s.io.
 *
 * An attach is a WebSocket whose messages are binary; the first byte of each is
 * its channel: 0 stdin, 1 stdout, 2 stderr, 3 the final status. v5 adds channel
 * 255, whose second byte names a channel that its sender has ended. This room
 * is the client's half: it finds the pieces of stdout and stderr, answers pings
 * and makes messages of stdin.
 *
 * Ownership: a piece is borrowed until the next call. No I/O. Limits: a message
 * of MO_ATTACH_MESSAGE_MAX bytes (servers send 32 KiB). Any other channel, a
 * text and a broken frame are final errors. */
#ifndef MO_CODEC_ATTACH_FRAME_H
#define MO_CODEC_ATTACH_FRAME_H

#include "codec/http/ws.h"
#include "codec/mux.h"

#define MO_ATTACH_MESSAGE_MAX ((size_t)1024 * 1024)
#define MO_ATTACH_V4          "v4.channel.k8s.io"
#define MO_ATTACH_V5          "v5.channel.k8s.io"

struct mo_attach {
    struct mo_ws ws;
    bool v5;
    bool over; /* the final status or a close has come */
};

void mo_attach_init(struct mo_attach *a, bool v5);
void mo_attach_fini(struct mo_attach *a);

/* Take from *in: 1 and a piece (never empty) of one stream; 0 when all input is
 * used up; MO_ECLOSED: the other end has ended the attach regularly, now and at
 * every later call; MO_EPROTO, MO_ENOMEM. Frames to send back are appended to
 * answer. */
int mo_attach_next(struct mo_attach *a, struct mo_ws_in *in,
                   enum mo_mux_stream *stream, struct mo_span *piece,
                   struct mo_buf *answer, struct mo_err *e);

/* Append stdin, its end (v5 only; else nothing is appended), or a ping. */
int mo_attach_put(struct mo_buf *b, struct mo_span data);
int mo_attach_put_end(const struct mo_attach *a, struct mo_buf *b);
int mo_attach_put_ping(struct mo_buf *b);

#endif
