/* peer_frame.h - frames between two processes that serve one conversation.
 *
 *   type (1), length (4, big-endian), length bytes
 *
 * The bytes are fields, one after the other: length (4), bytes. A field of
 * length MO_PEER_ABSENT has no bytes and means that there is none; an empty
 * field is another thing. EVENT has one field, the event's name, and then its
 * arguments without a length, so that they are sent as they are.
 *
 * A reader states the longest frame that it takes. A longer one, an unknown
 * type and a field that is longer than its frame end the stream; it is not
 * looked for the next frame. Memory grows with the bytes that have arrived, not
 * with the length that a head claims.
 *
 * Ownership: a frame's data is borrowed until the next call. No I/O. */
#ifndef MO_CODEC_PEER_FRAME_H
#define MO_CODEC_PEER_FRAME_H

#include "base/str.h"

#define MO_PEER_HEAD   5
#define MO_PEER_ABSENT UINT32_MAX

enum mo_peer_type {
    MO_PEER_JOIN = 1, /* a member wants to join */
    MO_PEER_COMMAND,  /* of the member; ACK answers it */
    MO_PEER_EVENT,
    MO_PEER_ACK,
    MO_PEER_CLOSED, /* the member is out; nothing follows */
    MO_PEER_PING,   /* PONG answers it */
    MO_PEER_PONG,
    MO_PEER_TYPES,
};

struct mo_peer_frame {
    enum mo_peer_type type;
    struct mo_span data;
};

struct mo_peer_frames {
    /* private */
    size_t max;         /* bytes of data */
    struct mo_buf part; /* a frame that is not complete */
    bool used;          /* part was handed out */
    int err;
};

void mo_peer_frames_init(struct mo_peer_frames *f, size_t max);
void mo_peer_frames_fini(struct mo_peer_frames *f);
/* Takes from *in: 1 and a frame; 0 when all input is used up; MO_EPROTO,
 * MO_ETOOBIG or MO_ENOMEM from then on. */
int mo_peer_frames_next(struct mo_peer_frames *f, struct mo_span *in,
                        struct mo_peer_frame *out);

/* --- fields --------------------------------------------------------------- */

/* The next field of *in; false: there is none that is whole. has NULL: an
 * absent field is refused too. */
bool mo_peer_field(struct mo_span *in, struct mo_span *out, bool *has);
bool mo_peer_u32(struct mo_span *in, uint32_t *out); /* 4 bytes, no length */

/* --- writing --------------------------------------------------------------
 *
 * begin, fields, end. Errors stay in the buffer. */

size_t mo_peer_begin(struct mo_buf *b, enum mo_peer_type type);
void mo_peer_put(struct mo_buf *b, struct mo_span field);
void mo_peer_put_absent(struct mo_buf *b);
void mo_peer_put_u32(struct mo_buf *b, uint32_t v);
void mo_peer_end(struct mo_buf *b, size_t began);
/* The head of an EVENT with that name; `args` bytes must follow it. */
void mo_peer_put_event(struct mo_buf *b, struct mo_span name, size_t args);

#endif
