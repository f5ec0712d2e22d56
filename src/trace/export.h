/* export.h - sends batches to a collector, by OTLP over HTTP.
 *
 * One request at a time. Its body is kept until the collector has taken it, has
 * refused it, or MO_EXPORT_TRIES tries have failed; a batch that is not taken
 * is dropped. A collector that hangs, refuses or is gone costs that and no
 * more: nobody waits for it, and the owner's queue is bounded.
 *
 * Retries as OTLP says: after 429, 502, 503 and 504 and without an answer, with
 * growing pauses, or after the time in Retry-After (at most
 * MO_EXPORT_AFTER_MAX). Redirects are not followed. Headers are secrets: they
 * are wiped when freed and never logged. The first failure is logged, and the
 * first success after it. */
#ifndef MO_TRACE_EXPORT_H
#define MO_TRACE_EXPORT_H

#include "codec/http/http1.h"
#include "loop/loop.h"

#define MO_EXPORT_TRIES     4u
#define MO_EXPORT_PAUSE_MS  1000u /* doubled with each try */
#define MO_EXPORT_TOTAL_MS  10000u
#define MO_EXPORT_AFTER_MAX 60000u
#define MO_EXPORT_BODY_MAX  ((size_t)4 * 1024 * 1024)

struct mo_export;

struct mo_export_opts {
    struct mo_loop *loop;
    const char *url;                      /* copied */
    const char *what;                     /* for the log; a literal */
    const char *type;                     /* of the body; a literal */
    const struct mo_http_header *headers; /* copied */
    size_t nheaders;
    /* Writes the next batch; returns its items, 0: nothing to send. */
    unsigned (*fill)(void *ctx, struct mo_buf *body);
    /* The batch is over, and was taken or not. Never from inside a call. */
    void (*done)(void *ctx, unsigned items, bool taken);
    void *ctx;
};

struct mo_export *mo_export_new(const struct mo_export_opts *o,
                                struct mo_err *e);
/* Sends the next batch, unless one is under way. */
void mo_export_kick(struct mo_export *x);
/* Sends what is left, once, for at most ms; then gone fires, later. */
void mo_export_close(struct mo_export *x, uint64_t ms, struct mo_gone gone);
/* A batch is under way, or waits for its next try. */
bool mo_export_busy(const struct mo_export *x);
uint64_t mo_export_failures(const struct mo_export *x);

#endif
