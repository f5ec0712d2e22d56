/* httpcall.h - one HTTP request, as both of our clients take it.
 *
 * httpc speaks to the outside world through libcurl, httpu to a daemon on a
 * unix socket or TCP through our own streams; what a request is and how its
 * answer comes back is the same.
 *
 * Everything in struct mo_http_call is copied by start(). The answer comes
 * in pieces, as they arrive: on_head once, on_data any number of times,
 * on_done exactly once and last, never from inside start(), cancel() or
 * close(). After cancel() only on_done comes. Redirects are not followed: a
 * 3xx is an answer like any other, and the caller knows which of its headers
 * are secrets. */
#ifndef MO_LOOP_HTTPCALL_H
#define MO_LOOP_HTTPCALL_H

#include "codec/http/http1.h"

#define MO_HTTP_CONNECT_MS 10000u
#define MO_HTTP_IDLE_MS    120000u
#define MO_HTTP_BYTES_MAX  ((uint64_t)64 * 1024 * 1024)
#define MO_HTTP_FOREVER    0xffffffffu /* for idle_ms: no such limit */

struct mo_http_call {
    const char *method; /* NULL: GET */
    const char *url;    /* httpc: "https://..."; httpu: "/path?query" */
    const struct mo_http_header *headers;
    size_t nheaders;
    struct mo_span body; /* p != NULL: sent, even if empty */
    unsigned connect_ms; /* 0: MO_HTTP_CONNECT_MS */
    unsigned idle_ms;    /* no byte for so long; 0: MO_HTTP_IDLE_MS */
    unsigned total_ms;   /* from start() to on_done; 0: no limit */
    uint64_t max_bytes;  /* of the answer's body; 0: MO_HTTP_BYTES_MAX */
    /* httpc: connect to no loopback, private or link-local address, whatever
     * the name resolves to (MO_EPOLICY); moot behind a proxy. */
    bool public_only;
};

struct mo_http_cb {
    void (*on_head)(void *ctx, const struct mo_http_head *h); /* or NULL */
    void (*on_data)(void *ctx, struct mo_span data);          /* or NULL */
    void (*on_done)(void *ctx, const struct mo_err *why); /* NULL: all well */
};

#endif
