/* target.h - where telemetry goes, and as whose: the collector, and the
 * resource that describes this program. The same for traces, metrics and logs.
 */
#ifndef MO_TRACE_TARGET_H
#define MO_TRACE_TARGET_H

#include "trace/export.h"
#include "trace/otlp.h"

#define MO_TRACE_HEADER_MAX 16   /* of an export */
#define MO_TRACE_FLUSH_MS   2000 /* for the last export, at the end */

struct mo_otlp_target { /* all borrowed while something is opened */
    struct mo_loop *loop;
    const char *endpoint; /* http(s)://HOST[:PORT][/PATH], without /v1/... */
    enum mo_otlp_encoding encoding;
    const struct mo_http_header *headers; /* at most MO_TRACE_HEADER_MAX */
    size_t nheaders;
    const char *service; /* service.name */
    const char
        *attributes;      /* of the resource: "key=value,key=value"; or NULL */
    const char *instance; /* service.instance.id; NULL: a random one */
};

/* Writes the resource: key, NUL, value, NUL, ... 0 or the buffer's error. */
int mo_otlp_target_resource(const struct mo_otlp_target *t,
                            struct mo_buf *resource);
/* Opens an export to ENDPOINT/v1/SIGNAL. x: fill, done and ctx; the rest is set
 * here. signal: a literal. */
struct mo_export *mo_otlp_target_export(const struct mo_otlp_target *t,
                                        const char *signal,
                                        struct mo_export_opts x,
                                        struct mo_err *e);

/* The names of the three lists that every request consists of, which have the
 * same numbers in all signals. */
struct mo_otlp_names {
    const char *resources, *scopes, *items;
};
/* Begins a request: its items follow, each by mo_otlp_item(o, MO_OTLP_ITEM). */
#define MO_OTLP_ITEM 2
void mo_otlp_request(struct mo_otlp *o, struct mo_buf *body,
                     enum mo_otlp_encoding encoding,
                     const struct mo_buf *resource,
                     const struct mo_otlp_names *names);
int mo_otlp_request_end(struct mo_otlp *o);

#endif
