/* http_edge_priv.h - shared by the two versions of HTTP. See http_edge.h. */
#ifndef MO_EGRESS_HTTP_EDGE_PRIV_H
#define MO_EGRESS_HTTP_EDGE_PRIV_H

#include "base/mem.h"
#include "codec/http/http1.h"
#include "egress/http_edge.h"

struct mo_http2_edge;

struct mo_http_edge {
    struct mo_http_edge_opts o;
    uint64_t count;
    bool raw;    /* after an upgrade */
    bool failed; /* takes no more */
    struct mo_http1 *http1;
    struct mo_http2_edge *http2; /* or NULL */
};

/* --- http_edge.c --------------------------------------------------------- */

/* Whether the edge sets this header. */
bool mo_http_edge_is_set(const struct mo_http_edge *x, struct mo_span name);
int mo_http_edge_check_host(const struct mo_http_edge *x, struct mo_span text,
                            struct mo_err *e);
int mo_http_edge_check_method(struct mo_span method, struct mo_err *e);

/* --- http2_edge.c -------------------------------------------------------- */

struct mo_http2_edge *mo_http2_edge_new(struct mo_http_edge *x);
void mo_http2_edge_free(struct mo_http2_edge *h); /* NULL is fine */
int mo_http2_edge_feed(struct mo_http2_edge *h, struct mo_span in,
                       struct mo_buf *b, struct mo_err *e);

#endif
