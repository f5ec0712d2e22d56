/* context.h - trace context of a request (W3C Trace Context and Baggage).
 *
 * A traced client sends traceparent, tracestate and baggage in its HTTP headers
 * or in params._meta under the same names. Values from the headers are
 * forwarded in both ways: every server finds them in _meta, an HTTP server also
 * in its headers. A name that the client put into _meta itself stays unchanged.
 *
 * A value that does not have the form of its standard is ignored: half a trace
 * is worse than none. tracestate without traceparent is dropped too. If tracing
 * is off, or the call is not sampled, nothing is added to them: they pass
 * through. Else traceparent names a span of this program (trace.h). The call's
 * row in the audit log has the client's traceparent.
 *
 * Limits: MO_TRACE_STATE_MAX and MO_TRACE_BAGGAGE_MAX bytes, MO_TRACE_MEMBERS
 * of each list; a longer one is dropped whole. */
#ifndef MO_TRACE_CONTEXT_H
#define MO_TRACE_CONTEXT_H

#include "base/mem.h"
#include "codec/http/http1.h"
#include "codec/json/json.h"

#define MO_TRACE_PARENT_LEN  55 /* 00-{32}-{16}-{2} */
#define MO_TRACE_PARENT_MAX  128
#define MO_TRACE_STATE_MAX   ((size_t)2048)
#define MO_TRACE_BAGGAGE_MAX ((size_t)8192)
#define MO_TRACE_MEMBERS     64
#define MO_TRACE_KEYS        3

enum mo_trace_key { MO_TRACE_PARENT, MO_TRACE_STATE, MO_TRACE_BAGGAGE };

struct mo_trace {
    struct mo_span v[MO_TRACE_KEYS]; /* by enum mo_trace_key; empty: none */
};

/* "traceparent", "tracestate", "baggage". */
const char *mo_trace_name(enum mo_trace_key k);
bool mo_trace_is(enum mo_trace_key k, struct mo_span value);
bool mo_trace_any(const struct mo_trace *t);

/* Read the trace from HTTP headers, copied; t must be empty. 0 or MO_ENOMEM. */
int mo_trace_head(const struct mo_http_head *h, struct mo_arena *a,
                  struct mo_trace *t);
/* Merge the trace in meta (an object, or none) into t; meta takes precedence.
 * Borrowed from both. */
void mo_trace_meta(struct mo_json meta, struct mo_trace *t);

/* The numbers in a traceparent. */
struct mo_trace_ids {
    uint8_t trace[16], span[8];
    bool sampled;
};

/* False: value has not the form of a traceparent. */
bool mo_trace_parse(struct mo_span value, struct mo_trace_ids *out);
/* Writes a traceparent and a NUL. */
void mo_trace_format(const struct mo_trace_ids *ids,
                     char out[MO_TRACE_PARENT_LEN + 1]);

#endif
