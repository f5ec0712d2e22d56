/* ws.h - WebSocket framing (RFC 6455), both roles, no extensions.
 *
 * Bytes in, events out. A message that arrives whole in one frame is handed
 * out in place (unmasked in the caller's buffer); only fragments and frames
 * cut by the network are gathered in a buffer capped at max_message.
 *
 * Ownership: event data is borrowed until the next call. */
#ifndef MO_CODEC_WS_H
#define MO_CODEC_WS_H

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
    size_t max_message;
    /* after MO_WS_ERROR: 1002, 1007 or 1009; after MO_WS_CLOSE: the peer's */
    uint16_t close_code;
    uint16_t peer_code;
    /* private */
    struct mo_buf msg; /* fragments gathered so far */
    unsigned char head[MO_WS_HEAD_MAX];
    unsigned head_len, head_need;
    unsigned char mask[4];
    uint64_t left; /* payload bytes still to come */
    size_t mask_at;
    uint8_t op, msg_op; /* current frame; whole message */
    bool fin, in_payload, closed;
    unsigned char ctl[125]; /* a cut control frame */
    size_t ctl_len;
    uint32_t utf8; /* validator state across fragments */
};

void mo_ws_init(struct mo_ws *w, enum mo_ws_role role, size_t max_message);
void mo_ws_fini(struct mo_ws *w);

/* Consume from *in (p may be written: unmasking is done in place). */
struct mo_ws_in {
    char *p;
    size_t n;
};
enum mo_ws_event mo_ws_next(struct mo_ws *w, struct mo_ws_in *in,
                            struct mo_span *data, struct mo_err *e);

/* Append one frame; a client's frames are masked with a random key. */
int mo_ws_put(struct mo_buf *b, enum mo_ws_role role, enum mo_ws_op op,
              bool fin, struct mo_span payload);
/* code 0: an empty close. The reason is cut to 123 bytes at a character. */
int mo_ws_put_close(struct mo_buf *b, enum mo_ws_role role, uint16_t code,
                    struct mo_span reason);

/* Header of a server's unmasked frame, to be sent before a payload that is
 * not copied. Returns its length, at most 10. */
size_t mo_ws_server_head(unsigned char out[10], enum mo_ws_op op, size_t n);

#define MO_WS_ACCEPT_LEN 28
/* Sec-WebSocket-Accept for a Sec-WebSocket-Key. */
void mo_ws_accept(struct mo_span key, char out[MO_WS_ACCEPT_LEN + 1]);
/* Is it 16 bytes of base64? */
bool mo_ws_key_ok(struct mo_span key);

#endif
