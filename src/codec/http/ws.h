/* ws.h - WebSocket framing (RFC 6455), both roles, no extensions.
 *
 * Bytes in, events out. A message that arrives whole in one frame is handed
 * out in place (unmasked in the caller's buffer); only fragments and frames
 * cut by the network are gathered in a buffer capped at max_message.
 *
 * Ownership: event data is borrowed until the next call, from the caller's
 * own buffer or from msg. Between messages no memory is held.
 * Limits: max_message, judged from the header before anything is gathered,
 * and never allocated because a header claims it: msg grows with the bytes
 * that did arrive. One-byte fragments cost no more than their bytes.
 * Strict where the RFC says MUST: a length in more bytes than it needs is
 * refused, text is checked as it comes in, not at the end of the message. */
#ifndef MO_CODEC_HTTP_WS_H
#define MO_CODEC_HTTP_WS_H

#include "base/str.h"

enum mo_ws_role { MO_WS_SERVER, MO_WS_CLIENT };

enum mo_ws_op {
    MO_WS_OP_CONT = 0,
    MO_WS_OP_TEXT = 1,
    MO_WS_OP_BINARY = 2,
    MO_WS_OP_CLOSE = 8,
    MO_WS_OP_PING = 9,
    MO_WS_OP_PONG = 10,
};

enum mo_ws_event {
    MO_WS_ERROR = -1, /* answer with close_code, then drop the connection */
    MO_WS_MORE,
    MO_WS_TEXT, /* valid UTF-8 */
    MO_WS_BINARY,
    MO_WS_PING,
    MO_WS_PONG,
    MO_WS_CLOSE, /* peer_code (1005 if none) and data = the reason */
};

#define MO_WS_HEAD_MAX 14

struct mo_ws {
    enum mo_ws_role role;
    /* The code to answer with. After MO_WS_ERROR: 1002, 1007, 1009, or 1011
     * when memory ran out; after MO_WS_CLOSE: the peer's, 0 if it gave none. */
    uint16_t close_code;
    uint16_t peer_code; /* after MO_WS_CLOSE; 1005 if none was given */
    size_t max_message;
    /* private */
    struct mo_buf msg; /* fragments so far, then a cut control frame */
    uint64_t left;     /* payload bytes of this frame still to come */
    uint32_t utf8;     /* validator state across pieces of a text */
    unsigned char head[MO_WS_HEAD_MAX];
    uint8_t head_len, head_need;
    unsigned char mask[4]; /* turned so that mask[0] is for the next byte */
    uint8_t op, msg_op;    /* this frame's; the message's, 0 outside one */
    uint8_t ctl_len;       /* bytes of a control frame at the end of msg */
    bool fin, in_payload;
    bool given; /* msg was handed out and goes at the next call */
    bool over;  /* after a close or an error: input is ignored */
};

void mo_ws_init(struct mo_ws *w, enum mo_ws_role role, size_t max_message);
void mo_ws_fini(struct mo_ws *w);

/* Consume from *in (p may be written: unmasking is done in place) up to the
 * next event. MO_WS_MORE means that all of it was consumed. *e is filled for
 * MO_WS_ERROR only. After a close or an error all input is dropped. */
struct mo_ws_in {
    char *p;
    size_t n;
};
enum mo_ws_event mo_ws_next(struct mo_ws *w, struct mo_ws_in *in,
                            struct mo_span *data, struct mo_err *e);

/* Append one frame; a client's frames are masked with a random key. */
int mo_ws_put(struct mo_buf *b, enum mo_ws_role role, enum mo_ws_op op,
              bool fin, struct mo_span payload);
/* code 0 or 1005: an empty close, without the reason. Otherwise the reason
 * (valid UTF-8) is cut to 123 bytes at a character. */
int mo_ws_put_close(struct mo_buf *b, enum mo_ws_role role, uint16_t code,
                    struct mo_span reason);

/* Header of a server's unmasked frame, to be sent before a payload that is
 * not copied. Returns its length, at most 10. */
size_t mo_ws_server_head(unsigned char out[10], enum mo_ws_op op, size_t n);

#define MO_WS_KEY_LEN    24
#define MO_WS_ACCEPT_LEN 28
/* Is it 16 bytes of base64? */
bool mo_ws_key_ok(struct mo_span key);
/* Sec-WebSocket-Accept for a Sec-WebSocket-Key that is ok. */
void mo_ws_accept(struct mo_span key, char out[MO_WS_ACCEPT_LEN + 1]);

#endif
