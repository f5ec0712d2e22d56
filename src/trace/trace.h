/* trace.h - the tracer, and spans of this program.
 *
 * A span is one operation: a request of a client, a call of a server, a wait
 * for a person. It has a name, a few attributes, a start, an end and a parent.
 * A tracer keeps ended spans in a queue and exports them (export.h).
 *
 * NULL is a span that is not recorded: tracing is off, the request is not
 * sampled, or there are too many spans. Every function takes it and does
 * nothing, and a child of it is NULL.
 *
 * Sampling is decided once, for the first span of this program in a trace; its
 * children follow it. Without a parent the ratio decides, at random. A parent
 * from outside that is not sampled is followed. One that is sampled is followed
 * too, for `forced` requests a second; above that the ratio decides, so that a
 * client cannot fill the collector.
 *
 * Privacy: names, numbers and codes only. Never give a span the arguments or
 * results of a call, the text of a message, or a secret.
 *
 * Ownership: mo_trace_end() takes the span. The tracer must outlive its spans.
 * Limits: MO_TRACE_SPANS_MAX spans, open or waiting for export; a further one
 * is not recorded, and counted. Attributes beyond MO_TRACE_ATTRS are left out,
 * texts are cut. */
#ifndef MO_TRACE_TRACE_H
#define MO_TRACE_TRACE_H

#include "loop/loop.h"
#include "trace/context.h"
#include "trace/target.h"

#define MO_TRACE_SPANS_MAX 4096u
#define MO_TRACE_ATTRS     14
#define MO_TRACE_NAME_MAX  ((size_t)128)
#define MO_TRACE_TEXT_MAX  ((size_t)160) /* of one value */
#define MO_TRACE_TEXTS_MAX ((size_t)512) /* of all values of a span */

struct mo_tracer;
struct mo_trace_span;

enum mo_trace_kind { /* numbers of OTLP */
                     MO_TRACE_INTERNAL = 1,
                     MO_TRACE_SERVER = 2,
                     MO_TRACE_CLIENT = 3,
};

struct mo_tracer_opts { /* all copied */
    struct mo_otlp_target to;
    double sample;     /* share of requests without a parent, 0 to 1 */
    unsigned forced;   /* see above */
    unsigned pause_ms; /* between two exports; 0: the default */
};

/* Sets mo_loop_tracer(). */
int mo_tracer_open(const struct mo_tracer_opts *o, struct mo_tracer **out,
                   struct mo_err *e);
/* Exports the rest, for at most MO_TRACE_FLUSH_MS; then gone(ctx). No span may
 * be begun after this; open ones are dropped. */
void mo_tracer_close(struct mo_tracer *t, void (*gone)(void *ctx), void *ctx);

struct mo_tracer_stats {
    uint64_t sent;    /* spans that the collector took */
    uint64_t dropped; /* spans that it did not get */
    uint64_t waiting; /* spans in the queue and in the current export */
    uint64_t failed;  /* exports that failed, retries included */
};
struct mo_tracer_stats mo_tracer_stats(const struct mo_tracer *t);

/* --- spans --------------------------------------------------------------- */

/* Begins the first span of this program in a trace. in: the context that came
 * with the request, or NULL. ours: the context is of this program itself, and
 * followed without a limit. name must be ASCII. t may be NULL. */
struct mo_trace_span *mo_trace_begin(struct mo_tracer *t,
                                     enum mo_trace_kind kind, const char *name,
                                     const struct mo_trace *in, bool ours);
struct mo_trace_span *mo_trace_child(const struct mo_trace_span *parent,
                                     enum mo_trace_kind kind, const char *name);
/* A child that began at that mo_now_ns(). */
struct mo_trace_span *mo_trace_child_since(const struct mo_trace_span *parent,
                                           const char *name, uint64_t since);
/* It began at that mo_now_ns(). */
void mo_trace_began(struct mo_trace_span *s, uint64_t since);
void mo_trace_end(struct mo_trace_span *s);

/* Sets the name to "what target", or "what" if there is no target. */
void mo_trace_rename(struct mo_trace_span *s, struct mo_span what,
                     struct mo_span target);
/* key: a literal. A key that is set again gets the new value. An empty text is
 * left out. */
void mo_trace_text(struct mo_trace_span *s, const char *key, struct mo_span v);
void mo_trace_int(struct mo_trace_span *s, const char *key, int64_t v);
/* A list with one text. */
void mo_trace_one(struct mo_trace_span *s, const char *key, struct mo_span v);
/* The operation failed; type: a short code, the attribute error.type. */
void mo_trace_fail(struct mo_trace_span *s, const char *type);

/* The traceparent of a request that is a part of the span; room stays in use.
 * Keeps tracestate and baggage. Does nothing if s is NULL. */
void mo_trace_send(const struct mo_trace_span *s, struct mo_trace *out,
                   char room[MO_TRACE_PARENT_LEN + 1]);
/* The span for a line of the log (struct mo_log_facts): room, or NULL. */
const struct mo_log_trace *mo_trace_mark(const struct mo_trace_span *s,
                                         struct mo_log_trace *room);

#endif
