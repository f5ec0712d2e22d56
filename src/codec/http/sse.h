/* sse.h - server-sent events (WHATWG HTML, "event stream"), both sides.
 *
 * Reading is pull style: the caller offers bytes in any pieces, next() takes
 * what it needs and says when an event is whole. Line ends may be LF, CR or
 * CRLF, cut anywhere; one BOM at the start is skipped; comments and unknown
 * fields are ignored, an id with NUL too. An event that the end of the
 * stream cuts off is lost, as the standard wants.
 *
 * Limits: a line, and the data of an event, may have `max` bytes, an id or
 * event name MO_SSE_NAME_MAX; one more is MO_ETOOBIG and the reader stays
 * failed. A reader with mo_sse_skip() passes over an event whose line or data
 * is too long instead: the empty line that ends it cannot be part of its data,
 * so the next event begins where it would have begun anyway.
 *
 * Ownership: the spans of an event are borrowed until the next call. */
#ifndef MO_CODEC_HTTP_SSE_H
#define MO_CODEC_HTTP_SSE_H

#include "base/str.h"

#define MO_SSE_NAME_MAX ((size_t)1024)

struct mo_sse_event {
    struct mo_span event; /* reading: "message" if none was given */
    struct mo_span id;    /* reading: the last one seen, may be older */
    struct mo_span data;  /* lines joined with LF */
    int64_t retry_ms;     /* writing only; written if > 0 */
};

/* Append one event. Members with p == NULL are left out. Every kind of line
 * end in data begins a new data line. CR, LF or NUL in event or id, or a name
 * over MO_SSE_NAME_MAX, is MO_EINVAL and stays in b->err. */
int mo_sse_put(struct mo_buf *b, const struct mo_sse_event *ev);
/* A comment line, which keeps idle connections open; same refusals. */
int mo_sse_put_comment(struct mo_buf *b, struct mo_span text);

enum mo_sse_result {
    MO_SSE_ERROR = -1, /* *e says why; all later calls say so again */
    MO_SSE_MORE,       /* all input taken */
    MO_SSE_EVENT,
    MO_SSE_SKIPPED, /* the end of an event that was too long; no data */
};

struct mo_sse {
    struct mo_buf last_id; /* for Last-Event-ID: of the last whole block */
    int64_t retry_ms;      /* last retry field, -1 if none */
    /* private */
    size_t max;
    struct mo_buf line; /* a cut line */
    struct mo_buf data, event, id;
    int err;
    bool begun;   /* the first line is over: no BOM any more */
    bool skip_lf; /* the last byte was CR */
    bool fired;   /* data and event are lent to the caller */
    /* An event that is skipped. */
    bool (*on_skip)(void *ctx, struct mo_span data);
    void *skip_ctx;
    bool skipping;
    enum { MO_SSE_FIELD_OPEN, MO_SSE_FIELD_DATA, MO_SSE_FIELD_OTHER } field;
    char head[6]; /* "data: " or what else its present line begins with */
    size_t nhead;
    size_t other; /* bytes of it in lines that are no data */
};

void mo_sse_init(struct mo_sse *s, size_t max);
void mo_sse_fini(struct mo_sse *s);
/* A new stream after a reconnect: last_id and retry_ms are kept. */
void mo_sse_restart(struct mo_sse *s);

/* Skip events that are too long. on_skip gets their data in pieces, borrowed,
 * each line with its LF; false: fail with MO_ETOOBIG after all. It is called
 * inside mo_sse_next() and must not call the reader. Other fields that follow
 * the point where the event became too long are ignored; over `max` bytes of
 * them are MO_ETOOBIG. */
void mo_sse_skip(struct mo_sse *s,
                 bool (*on_skip)(void *ctx, struct mo_span data), void *ctx);

enum mo_sse_result mo_sse_next(struct mo_sse *s, struct mo_span *in,
                               struct mo_sse_event *ev, struct mo_err *e);

#endif
