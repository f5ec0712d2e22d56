#include "codec/http/ws.h"

#include "base/mem.h"
#include "base/rand.h"
#include "codec/text/utf8.h"

#define FIN       0x80
#define RSV       0x70
#define OP        0x0f
#define CONTROL   0x08 /* set in the opcodes of control frames */
#define MASKED    0x80
#define LEN7      0x7f
#define LEN7_U16  126
#define LEN7_U64  127
#define CTL_MAX   125
#define CLOSE_MAX 123 /* reason bytes: CTL_MAX without the code */

enum {
    CODE_PROTOCOL = 1002,
    CODE_NONE = 1005,
    CODE_TEXT = 1007,
    CODE_TOOBIG = 1009,
    CODE_OURS = 1011,
};

/* --- small tools --------------------------------------------------------- */

static uint64_t be_get(const unsigned char *p, unsigned n)
{
    uint64_t v = 0;

    for (unsigned i = 0; i < n; i++)
        v = v << 8 | p[i];
    return v;
}

static void be_put(unsigned char *p, unsigned n, uint64_t v)
{
    while (n) {
        p[--n] = (unsigned char)v;
        v >>= 8;
    }
}

static bool is_control(uint8_t op)
{
    return op & CONTROL;
}

/* 32 bytes a round as four words: compilers make vector code of it. */
static void xor_mask(char *p, size_t n, const unsigned char mask[4])
{
    uint64_t key, w[4];
    size_t i = 0;

    memcpy(&key, mask, 4);
    memcpy((char *)&key + 4, mask, 4);
    for (; n - i >= sizeof(w); i += sizeof(w)) {
        memcpy(w, p + i, sizeof(w));
        for (unsigned k = 0; k < 4; k++)
            w[k] ^= key;
        memcpy(p + i, w, sizeof(w));
    }
    for (; i < n; i++)
        p[i] = (char)(p[i] ^ mask[i & 3]);
}

/* The next piece of the frame starts n bytes later. */
static void turn_mask(unsigned char mask[4], size_t n)
{
    unsigned char old[4];

    memcpy(old, mask, 4);
    for (unsigned i = 0; i < 4; i++)
        mask[i] = old[(i + n) & 3];
}

static enum mo_ws_event refuse(struct mo_ws *w, uint16_t code, struct mo_err *e,
                               const char *what)
{
    w->close_code = code;
    w->over = true;
    (void)mo_fail(e,
                  code == CODE_TOOBIG ? MO_ETOOBIG
                  : code == CODE_OURS ? MO_ENOMEM
                                      : MO_EPROTO,
                  "websocket: %s", what);
    return MO_WS_ERROR;
}

/* --- life ---------------------------------------------------------------- */

#define HEAD_FIRST 2 /* bytes of every header: flags, opcode, short length */

void mo_ws_init(struct mo_ws *w, enum mo_ws_role role, size_t max_message)
{
    *w = (struct mo_ws){.role = role, .max_message = max_message};
    w->head_need = HEAD_FIRST;
    if (w->max_message > SIZE_MAX / 4)
        w->max_message = SIZE_MAX / 4;
    mo_buf_init(&w->msg, w->max_message + CTL_MAX);
}

void mo_ws_fini(struct mo_ws *w)
{
    mo_buf_fini(&w->msg);
}

/* Free the data that the last event lent to the caller. */
static void release(struct mo_ws *w)
{
    if (!w->given)
        return;
    w->given = false;
    w->msg.len -= w->ctl_len;
    w->ctl_len = 0;
    if (!w->msg_op)
        mo_buf_fini(&w->msg);
}

/* --- header -------------------------------------------------------------- */

/* Check the first two bytes once they have arrived. Returns NULL if valid. */
static const char *check_flags(const struct mo_ws *w)
{
    unsigned char b0 = w->head[0], b1 = w->head[1];
    uint8_t op = b0 & OP;
    bool first = op == MO_WS_OP_TEXT || op == MO_WS_OP_BINARY;

    if (b0 & RSV)
        return "reserved bits set";
    if (!(b1 & MASKED) == (w->role == MO_WS_SERVER))
        return w->role == MO_WS_SERVER ? "unmasked frame" : "masked frame";
    if (is_control(op)) {
        if (op > MO_WS_OP_PONG)
            return "unknown control opcode";
        if (!(b0 & FIN))
            return "fragmented control frame";
        return (b1 & LEN7) > CTL_MAX ? "control frame too long" : NULL;
    }
    if (!first && op != MO_WS_OP_CONT)
        return "unknown opcode";
    if (first && w->msg_op)
        return "new message inside another";
    if (!first && !w->msg_op)
        return "continuation of nothing";
    return NULL;
}

static unsigned length_bytes(const struct mo_ws *w)
{
    unsigned len7 = w->head[1] & LEN7;

    return len7 == LEN7_U64 ? 8 : len7 == LEN7_U16 ? 2 : 0;
}

static int start_frame(struct mo_ws *w, struct mo_err *e)
{
    unsigned ext = length_bytes(w);
    uint64_t len = ext ? be_get(w->head + 2, ext) : w->head[1] & LEN7;
    size_t held = w->msg.len;

    if (len >> 63)
        return refuse(w, CODE_PROTOCOL, e, "length over 63 bits");
    if ((ext == 2 && len < LEN7_U16) || (ext == 8 && len <= UINT16_MAX))
        return refuse(w, CODE_PROTOCOL, e, "length not in its shortest form");
    w->fin = w->head[0] & FIN;
    w->op = w->head[0] & OP;
    if (!is_control(w->op) && len > w->max_message - held)
        return refuse(w, CODE_TOOBIG, e, "message too big");
    if (w->op == MO_WS_OP_TEXT || w->op == MO_WS_OP_BINARY) {
        w->msg_op = w->op;
        w->utf8 = 0;
    }
    if (w->head[1] & MASKED)
        memcpy(w->mask, w->head + 2 + ext, sizeof(w->mask));
    w->left = len;
    w->head_len = 0;
    w->head_need = HEAD_FIRST;
    w->in_payload = true;
    return 0;
}

static size_t take_bytes(struct mo_ws *w, struct mo_ws_in *in)
{
    size_t n = (size_t)w->head_need - w->head_len;

    if (n > in->n)
        n = in->n;
    if (n == 0)
        return 0;
    memcpy(w->head + w->head_len, in->p, n);
    in->p += n;
    in->n -= n;
    w->head_len = (uint8_t)(w->head_len + n);
    return n;
}

/* Returns 1 when the header is complete, 0 when bytes are missing, or -1. */
static int take_head(struct mo_ws *w, struct mo_ws_in *in, struct mo_err *e)
{
    const char *wrong;
    int rc;

    while (take_bytes(w, in)) {
        if (w->head_len < w->head_need)
            return 0;
        if (w->head_len == HEAD_FIRST) {
            wrong = check_flags(w);
            if (wrong)
                return refuse(w, CODE_PROTOCOL, e, wrong);
            w->head_need = (uint8_t)(HEAD_FIRST + length_bytes(w) +
                                     (w->head[1] & MASKED ? 4 : 0));
        }
        if (w->head_len == w->head_need) {
            rc = start_frame(w, e);
            return rc < 0 ? rc : 1;
        }
    }
    return 0;
}

/* --- payload ------------------------------------------------------------- */

/* RFC 6455 7.4: the codes a close frame may carry. */
static bool close_code_ok(unsigned code)
{
    if (code >= 3000)
        return code <= 4999;
    return code >= 1000 && code <= 1014 && (code < 1004 || code > 1006);
}

static enum mo_ws_event on_close(struct mo_ws *w, struct mo_span body,
                                 struct mo_span *reason, struct mo_err *e)
{
    const char *wrong = NULL;
    unsigned code = 0;

    if (body.n == 1)
        wrong = "close frame of one byte";
    if (body.n >= 2) {
        code = (unsigned)be_get((const unsigned char *)body.p, 2);
        if (!close_code_ok(code))
            wrong = "close code not allowed";
        body = mo_span_skip(body, 2);
    }
    if (wrong)
        return refuse(w, CODE_PROTOCOL, e, wrong);
    if (!mo_utf8_valid(body))
        return refuse(w, CODE_TEXT, e, "close reason is not UTF-8");
    w->over = true;
    w->close_code = (uint16_t)code;
    w->peer_code = code ? (uint16_t)code : CODE_NONE;
    *reason = body;
    return MO_WS_CLOSE;
}

static enum mo_ws_event on_control(struct mo_ws *w, struct mo_span body,
                                   struct mo_span *data, struct mo_err *e)
{
    if (w->op == MO_WS_OP_CLOSE)
        return on_close(w, body, data, e);
    *data = body;
    return w->op == MO_WS_OP_PING ? MO_WS_PING : MO_WS_PONG;
}

static int gather(struct mo_ws *w, struct mo_span piece, struct mo_err *e)
{
    int rc = mo_buf_span(&w->msg, piece);

    MO_BUG_ON(rc == MO_ETOOBIG); /* start_frame() has checked it */
    return rc < 0 ? refuse(w, CODE_OURS, e, "out of memory") : 0;
}

/* Read a piece of a control frame; sets *data when it completes the frame. */
static enum mo_ws_event take_control(struct mo_ws *w, struct mo_span piece,
                                     struct mo_span *data, struct mo_err *e)
{
    if (w->left == 0 && w->ctl_len == 0)
        return on_control(w, piece, data, e);
    if (gather(w, piece, e) < 0)
        return MO_WS_ERROR;
    w->ctl_len = (uint8_t)(w->ctl_len + piece.n);
    if (w->left)
        return MO_WS_MORE;
    w->given = true;
    piece = mo_span(w->msg.p + w->msg.len - w->ctl_len, w->ctl_len);
    return on_control(w, piece, data, e);
}

/* Check the UTF-8 so far and, at the end, that no character is cut off. */
static bool text_ok(struct mo_ws *w, struct mo_span piece, bool last)
{
    if (w->msg_op != MO_WS_OP_TEXT)
        return true;
    if (last && w->msg.len == 0)
        return mo_utf8_valid(piece);
    return mo_utf8_feed(&w->utf8, piece) &&
           (!last || mo_utf8_complete(w->utf8));
}

static enum mo_ws_event take_data(struct mo_ws *w, struct mo_span piece,
                                  struct mo_span *data, struct mo_err *e)
{
    bool last = w->fin && w->left == 0;
    enum mo_ws_event ev;

    if (!text_ok(w, piece, last))
        return refuse(w, CODE_TEXT, e, "text is not UTF-8");
    ev = w->msg_op == MO_WS_OP_TEXT ? MO_WS_TEXT : MO_WS_BINARY;
    if (last && w->msg.len == 0) {
        *data = piece;
        w->msg_op = 0;
        return ev;
    }
    if (gather(w, piece, e) < 0)
        return MO_WS_ERROR;
    if (!last)
        return MO_WS_MORE;
    w->given = true;
    w->msg_op = 0;
    *data = mo_buf_view(&w->msg);
    return ev;
}

static enum mo_ws_event take_payload(struct mo_ws *w, struct mo_ws_in *in,
                                     struct mo_span *data, struct mo_err *e)
{
    size_t n = w->left < in->n ? (size_t)w->left : in->n;
    struct mo_span piece = mo_span(in->p, n);

    if (w->role == MO_WS_SERVER && n) {
        xor_mask(in->p, n, w->mask);
        turn_mask(w->mask, n);
    }
    if (n)
        in->p += n;
    in->n -= n;
    w->left -= n;
    w->in_payload = w->left > 0;
    if (is_control(w->op))
        return take_control(w, piece, data, e);
    return take_data(w, piece, data, e);
}

enum mo_ws_event mo_ws_next(struct mo_ws *w, struct mo_ws_in *in,
                            struct mo_span *data, struct mo_err *e)
{
    enum mo_ws_event ev = MO_WS_MORE;
    int rc = 1;

    release(w);
    *data = mo_span(NULL, 0);
    while (!w->over && ev == MO_WS_MORE) {
        if (!w->in_payload)
            rc = take_head(w, in, e);
        if (rc < 0)
            return MO_WS_ERROR;
        if (rc == 0 || (w->left && !in->n))
            return MO_WS_MORE;
        ev = take_payload(w, in, data, e);
    }
    if (ev == MO_WS_MORE)
        in->n = 0;
    return ev;
}

/* --- sending ------------------------------------------------------------- */

static size_t put_head(unsigned char *out, enum mo_ws_op op, bool fin, size_t n)
{
    out[0] = (unsigned char)(op | (fin ? FIN : 0));
    if (n < LEN7_U16) {
        out[1] = (unsigned char)n;
        return 2;
    }
    if (n <= UINT16_MAX) {
        out[1] = LEN7_U16;
        be_put(out + 2, 2, n);
        return 4;
    }
    out[1] = LEN7_U64;
    be_put(out + 2, 8, n);
    return 10;
}

size_t mo_ws_server_head(unsigned char out[10], enum mo_ws_op op, size_t n)
{
    return put_head(out, op, true, n);
}

int mo_ws_put(struct mo_buf *b, enum mo_ws_role role, enum mo_ws_op op,
              bool fin, struct mo_span payload)
{
    unsigned char head[MO_WS_HEAD_MAX];
    size_t n = put_head(head, op, fin, payload.n);
    unsigned char *key = head + n;

    MO_BUG_ON(is_control((uint8_t)op) && (payload.n > CTL_MAX || !fin));
    if (role == MO_WS_CLIENT) {
        head[1] |= MASKED;
        mo_random(key, 4);
        n += 4;
    }
    mo_buf_put(b, head, n);
    if (mo_buf_span(b, payload) < 0)
        return mo_buf_err(b);
    if (role == MO_WS_CLIENT && payload.n)
        xor_mask(b->p + b->len - payload.n, payload.n, key);
    return 0;
}

int mo_ws_put_close(struct mo_buf *b, enum mo_ws_role role, uint16_t code,
                    struct mo_span reason)
{
    char body[CTL_MAX];
    size_t n;

    if (code == 0 || code == CODE_NONE)
        return mo_ws_put(b, role, MO_WS_OP_CLOSE, true, mo_span(NULL, 0));
    MO_BUG_ON(!close_code_ok(code));
    n = mo_utf8_cut(reason, CLOSE_MAX);
    be_put((unsigned char *)body, 2, code);
    if (n)
        memcpy(body + 2, reason.p, n);
    return mo_ws_put(b, role, MO_WS_OP_CLOSE, true, mo_span(body, 2 + n));
}

/* --- handshake ----------------------------------------------------------- */

/* The protocol requires SHA-1 here: it shows that the answer comes from a
 * WebSocket server and protects nothing. Hence this plain implementation, which
 * is not exported. */
#define SHA1_BLOCK 64
#define SHA1_LEN   20

static uint32_t rotl(uint32_t v, unsigned by)
{
    return v << by | v >> (32 - by);
}

static uint32_t sha1_mix(unsigned t, const uint32_t s[5])
{
    uint32_t b = s[1], c = s[2], d = s[3];

    if (t < 20)
        return ((b & c) | (~b & d)) + 0x5a827999;
    if (t < 40)
        return (b ^ c ^ d) + 0x6ed9eba1;
    if (t < 60)
        return ((b & c) | (b & d) | (c & d)) + 0x8f1bbcdc;
    return (b ^ c ^ d) + 0xca62c1d6;
}

static void sha1_block(uint32_t h[5], const unsigned char *p)
{
    uint32_t w[80], s[5];

    memcpy(s, h, sizeof(s));
    for (unsigned t = 0; t < 80; t++) {
        uint32_t next;

        w[t] = t < 16 ? (uint32_t)be_get(p + (size_t)t * 4, 4)
                      : rotl(w[t - 3] ^ w[t - 8] ^ w[t - 14] ^ w[t - 16], 1);
        next = rotl(s[0], 5) + sha1_mix(t, s) + s[4] + w[t];
        s[4] = s[3];
        s[3] = s[2];
        s[2] = rotl(s[1], 30);
        s[1] = s[0];
        s[0] = next;
    }
    for (unsigned i = 0; i < 5; i++)
        h[i] += s[i];
}

static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuv"
                             "wxyz0123456789+/";

bool mo_ws_key_ok(struct mo_span key)
{
    return key.n == MO_WS_KEY_LEN && mo_span_ends(key, MO_SPAN("==")) &&
           mo_span_only(mo_span_head(key, MO_WS_KEY_LEN - 2), digits);
}

/* Key and GUID are 60 bytes: with the padding, always two blocks. */
void mo_ws_accept(struct mo_span key, char out[MO_WS_ACCEPT_LEN + 1])
{
    static const char guid[] = "258EAFA5-E914-47DA-95CA-C5AB0DC85B11";
    uint32_t h[5] = {0x67452301, 0xefcdab89, 0x98badcfe, 0x10325476,
                     0xc3d2e1f0};
    unsigned char text[2 * SHA1_BLOCK] = {0};
    unsigned char sum[SHA1_LEN + 1] = {0}; /* 21 = 7 groups of base64 */
    const size_t n = MO_WS_KEY_LEN + sizeof(guid) - 1;

    MO_BUG_ON(key.n != MO_WS_KEY_LEN);
    memcpy(text, key.p, MO_WS_KEY_LEN);
    memcpy(text + MO_WS_KEY_LEN, guid, sizeof(guid) - 1);
    text[n] = 0x80;
    be_put(text + sizeof(text) - 8, 8, n * 8);
    sha1_block(h, text);
    sha1_block(h, text + SHA1_BLOCK);
    for (size_t i = 0; i < 5; i++)
        be_put(sum + i * 4, 4, h[i]);
    for (size_t i = 0; i < MO_WS_ACCEPT_LEN; i++) {
        uint64_t group = be_get(sum + i / 4 * 3, 3);

        out[i] = digits[group >> (18 - i % 4 * 6) & 63];
    }
    out[MO_WS_ACCEPT_LEN - 1] = '=';
    out[MO_WS_ACCEPT_LEN] = '\0';
}
