/* http1.h - HTTP/1.1 messages, bytes in, events out.
 *
 * A head is read twice: by our own check, which splits it and refuses input
 * that llhttp 8.1 accepts (CVE-2023-30589: bare CR as a line end;
 * CVE-2024-27982: space before a header name; obs-fold; LF-only; both
 * framings at once; a repeated Content-Length; blank before the colon), and
 * by llhttp, which checks the rest of the grammar. Both must agree on method,
 * version, status and framing: a message whose end two parsers could see
 * differently is an error. Bodies are then counted here.
 *
 * Pull style: the caller offers bytes, the parser takes what it needs and
 * returns an event. Call next() until it returns MORE, DONE or ERROR. Nothing
 * of a pipelined second message is consumed before mo_http1_reset(). The head
 * is copied and lives until reset; body spans point into the caller's input.
 *
 * Refused on purpose, though some servers take them: trailers, an empty line
 * before the message, a blank before a chunk extension, absolute-form targets
 * (we are no proxy), CONNECT, transfer codings other than chunked, an empty
 * or listed Content-Length.
 *
 * No I/O. Memory: about 130 bytes for an idle parser; a message in progress
 * holds its head and, if it came in pieces, up to MO_HTTP_HEAD_MAX more. */
#ifndef MO_CODEC_HTTP_HTTP1_H
#define MO_CODEC_HTTP_HTTP1_H

#include "base/str.h"

#define MO_HTTP_HEAD_MAX       ((size_t)16 * 1024)
#define MO_HTTP_HEADERS_MAX    64
#define MO_HTTP_TARGET_MAX     ((size_t)8 * 1024)
#define MO_HTTP_CHUNK_LINE_MAX ((size_t)256)       /* size + extension + CRLF */
#define MO_HTTP_CHUNK_EXT_MAX  ((size_t)16 * 1024) /* in one whole message */

enum mo_http_method {
    MO_HTTP_OTHER,
    MO_HTTP_GET,
    MO_HTTP_HEAD,
    MO_HTTP_POST,
    MO_HTTP_PUT,
    MO_HTTP_PATCH,
    MO_HTTP_DELETE,
    MO_HTTP_OPTIONS,
};

const char *mo_http_method_name(enum mo_http_method m);

struct mo_http_header {
    struct mo_span name, value;
};

struct mo_http_head {
    enum mo_http_method method; /* requests */
    struct mo_span method_text;
    struct mo_span target; /* as sent: "/path?query" or "*" */
    int status;            /* responses */
    struct mo_span reason;
    int minor;                            /* HTTP/1.x */
    const struct mo_http_header *headers; /* in order of arrival */
    size_t nheaders;                      /* <= MO_HTTP_HEADERS_MAX */
    int64_t content_length;               /* -1 = not given */
    bool chunked;
    bool keep_alive; /* may the connection be used again */
    bool upgrade;    /* Connection: upgrade with an Upgrade header */
    bool expect_continue;
};

/* First header of that name (ASCII case ignored), or {NULL,0}. */
struct mo_span mo_http_get(const struct mo_http_head *h, const char *name);
/* Is token one of the comma-separated elements of all headers `name`? */
bool mo_http_has_token(const struct mo_http_head *h, const char *name,
                       const char *token);

/* True if Content-Type, without its parameters, is this type. */
bool mo_http_is_type(const struct mo_http_head *h, const char *type);

enum mo_http1_event {
    MO_HTTP1_ERROR = -1, /* *e says why; mo_http1_status() the answer */
    MO_HTTP1_MORE,       /* all input taken, wants more */
    MO_HTTP1_HEAD,       /* mo_http1_head() is valid */
    MO_HTTP1_BODY,       /* *body is a piece of it, never empty */
    MO_HTTP1_DONE,       /* message complete; reset before the next */
};

struct mo_http1; /* opaque: holds llhttp's state */

enum mo_http1_kind { MO_HTTP1_REQUEST, MO_HTTP1_RESPONSE };

struct mo_http1 *mo_http1_new(enum mo_http1_kind kind);
void mo_http1_free(struct mo_http1 *h);
/* Ready for the next message on the same connection; frees the head. */
void mo_http1_reset(struct mo_http1 *h);

/* Consume from *in (advanced past what was taken). */
enum mo_http1_event mo_http1_next(struct mo_http1 *h, struct mo_span *in,
                                  struct mo_span *body, struct mo_err *e);

/* Responses: the request was HEAD, so no body follows whatever the head
 * says. Call before the head arrives. */
void mo_http1_expect_no_body(struct mo_http1 *h);

/* The peer closed: MO_HTTP1_DONE when that ends the body (a response without
 * length), MO_HTTP1_MORE when no message had begun, else MO_HTTP1_ERROR. */
enum mo_http1_event mo_http1_eof(struct mo_http1 *h, struct mo_err *e);

const struct mo_http_head *mo_http1_head(const struct mo_http1 *h);
/* Has any byte of the current message been seen? */
bool mo_http1_begun(const struct mo_http1 *h);
/* 400, 414, 431, 501, 505 or (out of memory) 503 after MO_HTTP1_ERROR. */
int mo_http1_status(const struct mo_http1 *h);

const char *mo_http_reason(int status);  /* "Unknown" for an unknown status */
bool mo_http_is_token(struct mo_span s); /* RFC 9110 token, not empty */

/* Writers. A name that is no token, a target or value with control bytes is
 * MO_EINVAL and stays in b->err, so a refused head is never sent by halves. */
int mo_http1_put_request(struct mo_buf *b, const char *method,
                         struct mo_span target);
int mo_http1_put_status(struct mo_buf *b, int status);
int mo_http1_put_header(struct mo_buf *b, const char *name,
                        struct mo_span value);
int mo_http1_put_end(struct mo_buf *b); /* the empty line */

#endif
