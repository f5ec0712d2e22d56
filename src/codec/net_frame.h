/* net_frame.h - connections of a box as frames on one byte stream.
 *
 * The network container of a box whose engine is elsewhere cannot hand its
 * sockets over. It accepts the connections itself (launcher/container_stream.h)
 * and carries them over its stdin and stdout to the relay's side
 * (loop/channels.h). A frame is
 *
 *   type, 0, length (2), id (4)   big-endian
 *   length bytes
 *   0
 *
 *   HELLO   16 bytes that the relay's side chose, and flags; begins anew
 *   OPEN    the container accepted a connection: address (16), port (2)
 *   DATA    1 to MO_NET_DATA_MAX bytes
 *   CREDIT  that many bytes (4) may be sent in addition
 *   EOF     no more DATA follows
 *   RESET   the connection is gone
 *   QUERY   a datagram to the name server; ANSWER has the same id
 *   FILE    a file for the box: 1 if it is the last piece, else 0, and bytes;
 * the container answers with 1, or 0 for a failure. Ids: MO_NET_FILE_*
 *
 * Ids of connections grow and are not used again, so a frame for one that has
 * just gone is late, and one for an id that was never opened is forged. After
 * EOF in both directions, or RESET, a connection is gone. Each side may send
 * MO_NET_WINDOW bytes of a connection before it gets CREDIT.
 *
 * Beginning anew: either side may see the other's stream from within a frame,
 * because the container outlives the process at the other end. A HELLO follows
 * MO_NET_PAD bytes of 0xFF. They end a frame that was cut in a way that is not
 * valid: no type, second byte, length, id or last byte can be completed with
 * them (the last byte of an id is never 0xFF). After an invalid frame the
 * parser waits for such a row and a HELLO.
 *
 * Ownership: a frame's data is valid until the next call. Nothing is
 * allocated. No I/O. */
#ifndef MO_CODEC_NET_FRAME_H
#define MO_CODEC_NET_FRAME_H

#include "base/str.h"
#include "codec/ip.h"

#define MO_NET_HEAD      8
#define MO_NET_DATA_MAX  16384
#define MO_NET_FRAME_MAX (MO_NET_HEAD + MO_NET_DATA_MAX + 1)
#define MO_NET_WINDOW    65536
#define MO_NET_NONCE     16
#define MO_NET_ROW       1024 /* of 0xFF before a HELLO, at least */
#define MO_NET_PAD       (MO_NET_FRAME_MAX + 2 * MO_NET_ROW)

#define MO_NET_CHANNELS_MAX 512

enum mo_net_type {
    MO_NET_HELLO = 1,
    MO_NET_OPEN,
    MO_NET_DATA,
    MO_NET_CREDIT,
    MO_NET_EOF,
    MO_NET_RESET,
    MO_NET_QUERY,
    MO_NET_ANSWER,
    MO_NET_FILE,
};

/* Ids of FILE. */
#define MO_NET_FILE_BUNDLE 1 /* certificates, PEM */
#define MO_NET_FILE_JAVA   2 /* the same as a keystore */
#define MO_NET_FILES       2

#define MO_NET_V6 1 /* flag of a container's HELLO: it has IPv6 */

struct mo_net_frame {
    enum mo_net_type type;
    uint32_t id;
    struct mo_span data; /* DATA, QUERY, ANSWER, FILE; the nonce of HELLO */
    struct mo_ip ip;     /* OPEN */
    unsigned port;
    uint32_t credit;
    unsigned flags; /* HELLO; FILE: it is the last, or was written */
};

struct mo_net_frames {
    /* private */
    bool from_container; /* whose frames these are */
    bool in_step;        /* a HELLO was seen, and no invalid frame since */
    size_t row;          /* bytes of 0xFF */
    size_t have;
    unsigned char buf[MO_NET_FRAME_MAX];
};

void mo_net_frames_init(struct mo_net_frames *f, bool from_container);

/* Takes from *in: 1 and a frame, 0 when all input is used up, MO_EPROTO once
 * when the stream goes out of step. Until the next HELLO bytes are dropped. */
int mo_net_frames_next(struct mo_net_frames *f, struct mo_span *in,
                       struct mo_net_frame *out);

/* The HELLO that was just read is not the one that was waited for. */
void mo_net_frames_refuse(struct mo_net_frames *f);

/* Append a frame. The data of each type must be valid. */
int mo_net_put(struct mo_buf *b, enum mo_net_type type, uint32_t id,
               struct mo_span data);
int mo_net_put_open(struct mo_buf *b, uint32_t id, const struct mo_ip *ip,
                    unsigned port);
int mo_net_put_credit(struct mo_buf *b, uint32_t id, uint32_t n);
/* data: at most MO_NET_DATA_MAX - 1 bytes. */
int mo_net_put_file(struct mo_buf *b, uint32_t id, bool last,
                    struct mo_span data);
/* With the row before it. */
int mo_net_put_hello(struct mo_buf *b, const unsigned char nonce[MO_NET_NONCE],
                     unsigned flags);
/* The id of the connection after this one; 0: there is none. */
uint32_t mo_net_next_id(uint32_t id);

#endif
