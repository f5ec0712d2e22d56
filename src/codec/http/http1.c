#include "codec/http/http1.h"

#include "base/mem.h"
#include "codec/http/http1h.h"

/* Invariants:
 * 1. part holds bytes only in ST_HEAD; msg exists from the HEAD event on.
 * 2. guard() checks lines in order and none before it is complete, so the way
 *    the bytes were cut cannot change the outcome.
 * 3. left is the number of body bytes to come: of the message (ST_LENGTH) or
 *    of the chunk (ST_CHUNK_*). */
enum state {
    ST_HEAD,
    ST_LENGTH,
    ST_UNTIL_CLOSE,
    ST_CHUNK_SIZE, /* at or after the first digit */
    ST_CHUNK_EXT,
    ST_CHUNK_SIZE_LF,
    ST_CHUNK_DATA,
    ST_CHUNK_DATA_CR,
    ST_CHUNK_DATA_LF,
    ST_CHUNK_END_CR, /* after the last chunk: no trailers */
    ST_CHUNK_END_LF,
    ST_DONE,
    ST_FAILED,
};

#define CHUNK_DIGITS_MAX 16

struct message {
    struct mo_http_head head;
    char *text; /* bytes of the head, after the headers */
    size_t n;
    struct mo_http_header headers[];
};

struct mo_http1 {
    enum mo_http1_kind kind;
    enum state state;
    bool no_body; /* the answer to HEAD */
    struct message *msg;
    struct mo_buf part; /* a head that arrived in pieces */

    size_t line, seen; /* guard: start of the current line, bytes searched */
    unsigned lines;    /* guard: whole lines before it */

    uint64_t left;
    unsigned digits, line_len; /* of the current chunk-size line */
    size_t ext_total;

    int code, status; /* after a failure */
    const char *why;
};

/* --- life ---------------------------------------------------------------- */

struct mo_http1 *mo_http1_new(enum mo_http1_kind kind)
{
    struct mo_http1 *h = mo_new(struct mo_http1);

    if (!h)
        return NULL;
    h->kind = kind;
    mo_buf_init(&h->part, MO_HTTP_HEAD_MAX);
    return h;
}

/* A head has tokens and cookies: nothing of it stays in memory. */
static void free_head(struct mo_http1 *h)
{
    if (h->msg)
        explicit_bzero(h->msg->text, h->msg->n);
    mo_free(mo_take_ptr(&h->msg));
    if (h->part.cap)
        mo_buf_wipe(&h->part);
}

void mo_http1_free(struct mo_http1 *h)
{
    if (!h)
        return;
    free_head(h);
    mo_free(h);
}

void mo_http1_reset(struct mo_http1 *h)
{
    free_head(h);
    h->state = ST_HEAD;
    h->no_body = false;
    h->line = h->seen = h->lines = 0;
    h->ext_total = 0;
    h->status = 0;
}

void mo_http1_expect_no_body(struct mo_http1 *h)
{
    h->no_body = true;
}

const struct mo_http_head *mo_http1_head(const struct mo_http1 *h)
{
    MO_BUG_ON(!h->msg);
    return &h->msg->head;
}

bool mo_http1_begun(const struct mo_http1 *h)
{
    return h->state != ST_HEAD || h->part.len > 0;
}

int mo_http1_status(const struct mo_http1 *h)
{
    return h->status;
}

/* Record the error; returns -1 so that callers can `return refuse(...)`. */
static int refuse(struct mo_http1 *h, int status, const char *why)
{
    h->code = status == 431 || status == 414 ? MO_ETOOBIG : MO_EPROTO;
    h->status = status;
    h->why = why;
    h->state = ST_FAILED;
    return -1;
}

static int no_memory(struct mo_http1 *h)
{
    (void)refuse(h, 503, "out of memory");
    h->code = MO_ENOMEM;
    return -1;
}

static enum mo_http1_event failed(struct mo_http1 *h, struct mo_err *e)
{
    (void)mo_fail(e, h->code, "http: %s", h->why);
    return MO_HTTP1_ERROR;
}

/* --- guard: where the head ends ------------------------------------------ */

static int too_big(struct mo_http1 *h)
{
    if (h->lines == 0 && h->kind == MO_HTTP1_REQUEST)
        return refuse(h, 414, "request line too long");
    return refuse(h, 431, "head too long");
}

/* Check one line without its LF: it ends in CR and is not folded. Other CRs are
 * refused when the line is parsed. */
static int guard_line(struct mo_http1 *h, const char *p, size_t n)
{
    if (n == 0 || p[n - 1] != '\r')
        return refuse(h, 400, "LF without CR");
    if (p[0] == ' ' || p[0] == '\t')
        return refuse(h, 400, "line begins with a blank");
    if (n > 1 && h->lines > MO_HTTP_HEADERS_MAX)
        return refuse(h, 431, "too many headers");
    return 0;
}

/* Returns 1: the head is the first h->line bytes of s; 0: incomplete; -1:
 * error. The first byte is checked at once: a TLS hello need not hold an LF,
 * and an empty line is no message. */
static int guard(struct mo_http1 *h, struct mo_span s)
{
    if (h->seen == 0 && !mo_http1_in(&mo_http1_token, s.p[0]))
        return refuse(h, 400, "not HTTP");
    while (h->seen < s.n) {
        const char *lf = memchr(s.p + h->seen, '\n', s.n - h->seen);
        size_t n;

        if (!lf) {
            h->seen = s.n;
            break;
        }
        n = (size_t)(lf - s.p) - h->line;
        if (guard_line(h, s.p + h->line, n) < 0)
            return -1;
        h->line += n + 1;
        h->seen = h->line;
        if (n == 1)
            return 1;
        h->lines++;
    }
    return s.n < MO_HTTP_HEAD_MAX ? 0 : too_big(h);
}

/* --- from head to body --------------------------------------------------- */

/* Set the state after the head. A body without a length ends the connection. */
static enum state body_state(struct mo_http1 *h)
{
    struct mo_http_head *hd = &h->msg->head;

    if (hd->status && (h->no_body || mo_http1_bodiless(hd->status)))
        return ST_DONE;
    h->digits = h->line_len = 0;
    h->left = 0;
    if (hd->chunked)
        return ST_CHUNK_SIZE;
    if (hd->content_length > 0) {
        h->left = (uint64_t)hd->content_length;
        return ST_LENGTH;
    }
    if (hd->content_length == 0 || !hd->status)
        return ST_DONE;
    hd->keep_alive = false;
    return ST_UNTIL_CLOSE;
}

/* One block: struct, exactly as many headers as lines, the bytes. */
static int take_head(struct mo_http1 *h, struct mo_span s)
{
    size_t nh = h->lines - 1;
    size_t fixed = sizeof(struct message) + nh * sizeof(struct mo_http_header);
    struct message *m = mo_alloc(fixed + s.n);
    struct mo_http1_refusal no;

    if (!m)
        return no_memory(h);
    m->text = (char *)m + fixed;
    m->n = s.n;
    memcpy(m->text, s.p, s.n);
    h->msg = m;
    if (mo_http1_read_head(h->kind, mo_span(m->text, s.n), &m->head, m->headers,
                           &no) < 0)
        return refuse(h, no.status, no.why);
    h->state = body_state(h);
    return 1;
}

/* Takes input up to the end of the head. A head that is complete in the input,
 * which is the common case, is not stored twice. Returns like guard(). */
static int collect_head(struct mo_http1 *h, struct mo_span *in)
{
    size_t had = h->part.len;
    struct mo_span s = mo_span_head(*in, MO_HTTP_HEAD_MAX - had);
    int rc;

    if (had && mo_buf_span(&h->part, s) < 0)
        return no_memory(h);
    rc = guard(h, had ? mo_buf_view(&h->part) : s);
    if (rc < 0)
        return rc;
    if (rc == 0) {
        if (!had && mo_buf_span(&h->part, s) < 0)
            return no_memory(h);
        *in = mo_span_skip(*in, s.n);
        return 0;
    }
    *in = mo_span_skip(*in, h->line - had);
    rc = take_head(h, mo_span(had ? h->part.p : s.p, h->line));
    if (had)
        mo_buf_wipe(&h->part);
    return rc;
}

/* --- bodies -------------------------------------------------------------- */

static struct mo_span take_body(struct mo_http1 *h, struct mo_span *in)
{
    struct mo_span piece = *in;

    if (h->state != ST_UNTIL_CLOSE && piece.n > h->left)
        piece.n = (size_t)h->left;
    h->left -= h->state == ST_UNTIL_CLOSE ? 0 : piece.n;
    *in = mo_span_skip(*in, piece.n);
    return piece;
}

static int chunk_digit(struct mo_http1 *h, char c)
{
    int d = mo_hex_digit(c);

    if (d >= 0) {
        if (++h->digits > CHUNK_DIGITS_MAX || h->left > INT64_MAX >> 4)
            return refuse(h, 400, "chunk too large");
        h->left = h->left << 4 | (unsigned)d;
        return 0;
    }
    if (h->digits == 0 || (c != ';' && c != '\r'))
        return refuse(h, 400, "bad chunk size");
    h->state = c == ';' ? ST_CHUNK_EXT : ST_CHUNK_SIZE_LF;
    return 0;
}

static int chunk_ext(struct mo_http1 *h, char c)
{
    if (c == '\r') {
        h->state = ST_CHUNK_SIZE_LF;
        return 0;
    }
    if (++h->ext_total > MO_HTTP_CHUNK_EXT_MAX)
        return refuse(h, 400, "chunk extensions too long");
    if ((c < ' ' && c != '\t') || c >= 0x7f)
        return refuse(h, 400, "bad byte in chunk extension");
    return 0;
}

/* Expect CR, then LF; continue in state `to`. */
static int expect(struct mo_http1 *h, char c, char want, enum state to)
{
    if (c != want)
        return refuse(h, 400, "bad chunk framing");
    h->state = to;
    return 0;
}

/* Handle one byte of framing. */
static int chunk_byte(struct mo_http1 *h, char c)
{
    if (h->state <= ST_CHUNK_SIZE_LF && ++h->line_len > MO_HTTP_CHUNK_LINE_MAX)
        return refuse(h, 400, "chunk line too long");
    switch (h->state) {
    case ST_CHUNK_SIZE:
        return chunk_digit(h, c);
    case ST_CHUNK_EXT:
        return chunk_ext(h, c);
    case ST_CHUNK_SIZE_LF:
        return expect(h, c, '\n', h->left ? ST_CHUNK_DATA : ST_CHUNK_END_CR);
    case ST_CHUNK_DATA_CR:
        return expect(h, c, '\r', ST_CHUNK_DATA_LF);
    case ST_CHUNK_DATA_LF:
        h->digits = h->line_len = 0;
        return expect(h, c, '\n', ST_CHUNK_SIZE);
    case ST_CHUNK_END_CR:
        return expect(h, c, '\r', ST_CHUNK_END_LF);
    default:
        return expect(h, c, '\n', ST_DONE);
    }
}

/* Handle framing up to the next data, the end, or the end of the input. */
static int chunk_skip(struct mo_http1 *h, struct mo_span *in)
{
    while (in->n && h->state != ST_CHUNK_DATA && h->state != ST_DONE) {
        char c = in->p[0];

        *in = mo_span_skip(*in, 1);
        if (chunk_byte(h, c) < 0)
            return -1;
    }
    return 0;
}

static enum mo_http1_event next_body(struct mo_http1 *h, struct mo_span *in,
                                     struct mo_span *body, struct mo_err *e)
{
    if (h->state >= ST_CHUNK_SIZE && chunk_skip(h, in) < 0)
        return failed(h, e);
    if (h->state == ST_DONE)
        return MO_HTTP1_DONE;
    if (in->n == 0)
        return MO_HTTP1_MORE;
    *body = take_body(h, in);
    if (h->left == 0 && h->state == ST_CHUNK_DATA)
        h->state = ST_CHUNK_DATA_CR;
    if (h->left == 0 && h->state == ST_LENGTH)
        h->state = ST_DONE;
    return MO_HTTP1_BODY;
}

static enum mo_http1_event next_head(struct mo_http1 *h, struct mo_span *in,
                                     struct mo_err *e)
{
    int rc;

    if (in->n == 0)
        return MO_HTTP1_MORE;
    rc = collect_head(h, in);
    if (rc < 0)
        return failed(h, e);
    return rc ? MO_HTTP1_HEAD : MO_HTTP1_MORE;
}

enum mo_http1_event mo_http1_next(struct mo_http1 *h, struct mo_span *in,
                                  struct mo_span *body, struct mo_err *e)
{
    switch (h->state) {
    case ST_HEAD:
        return next_head(h, in, e);
    case ST_DONE:
        return MO_HTTP1_DONE;
    case ST_FAILED:
        return failed(h, e);
    default:
        return next_body(h, in, body, e);
    }
}

enum mo_http1_event mo_http1_eof(struct mo_http1 *h, struct mo_err *e)
{
    if (!mo_http1_begun(h))
        return MO_HTTP1_MORE;
    if (h->state == ST_UNTIL_CLOSE)
        h->state = ST_DONE;
    if (h->state == ST_DONE)
        return MO_HTTP1_DONE;
    if (h->state != ST_FAILED) {
        (void)refuse(h, 400, "closed in the middle of a message");
        h->code = MO_ECLOSED;
    }
    return failed(h, e);
}
