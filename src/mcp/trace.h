/* trace.h - whose work a request is part of (W3C Trace Context and Baggage).
 *
 * A client that is traced says so in the head of its HTTP request
 * (traceparent, tracestate, baggage) or in params._meta under the same names.
 * What came by the head is handed on in both ways: every server finds it in
 * _meta, one that is reached by HTTP in its head too. A name that the client
 * put into _meta itself is left as it is.
 *
 * What does not have the form its standard gives it is not there: half a trace
 * is worse than none. tracestate without a traceparent is dropped likewise.
 * Nothing is ever added to them: we are no span of the trace, the call's row in
 * the audit log has its id.
 *
 * Limits: MO_TRACE_STATE_MAX and MO_TRACE_BAGGAGE_MAX bytes, MO_TRACE_MEMBERS
 * of each list; more is dropped whole. */
#ifndef MO_MCP_TRACE_H
#define MO_MCP_TRACE_H

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

/* What the head says, copied; t must be empty. 0 or MO_ENOMEM. */
int mo_trace_head(const struct mo_http_head *h, struct mo_arena *a,
                  struct mo_trace *t);
/* What is known when meta (an object, or none) is looked at too: its own come
 * first. Borrowed from both. */
void mo_trace_meta(struct mo_json meta, struct mo_trace *t);

#endif
