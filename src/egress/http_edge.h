/* http_edge.h - requests of a program on their way to a host, with headers set.
 *
 * Bytes of the program go in, bytes for the host come out. In every request the
 * named headers are removed and set to the given values. The rest of a head
 * keeps its meaning and order; bodies pass as they arrive.
 *
 * A host must see the end of each request where we see it: else a program could
 * make it take the next head, with a secret in it, for a body. So a request is
 * written anew from what was parsed (codec/http/http1.h, which is strict), and
 * these are refused, too: a Host that is missing or another one, CONNECT and
 * TRACE, trailers.
 *
 * After a request that asks for an upgrade (WebSocket) bytes pass unchanged and
 * nothing is set any more, whatever the host answers.
 *
 * Ownership: values are borrowed until mo_http_edge_free().
 * Limits: those of http1.h. No I/O. */
#ifndef MO_EGRESS_HTTP_EDGE_H
#define MO_EGRESS_HTTP_EDGE_H

#include "base/str.h"

struct mo_http_edge;

struct mo_http_edge_header {
    const char *name;
    struct mo_span value; /* visible ASCII and blanks */
};

struct mo_http_edge_opts {
    const char *host; /* as of policy.h */
    unsigned port;
    bool h2; /* HTTP/2 instead of HTTP/1.1 */
    const struct mo_http_edge_header *headers;
    size_t n;
};

struct mo_http_edge *mo_http_edge_new(const struct mo_http_edge_opts *o);
void mo_http_edge_free(struct mo_http_edge *x); /* NULL is fine */

/* Appends to out. After a failure, which *e explains, nothing of out may be
 * sent and x takes no more. */
int mo_http_edge_feed(struct mo_http_edge *x, struct mo_span in,
                      struct mo_buf *out, struct mo_err *e);
/* How many requests had headers set. */
uint64_t mo_http_edge_count(const struct mo_http_edge *x);

#endif
