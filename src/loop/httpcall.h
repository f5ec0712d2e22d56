/* httpcall.h - one HTTP request, as both HTTP clients accept it.
 *
 * httpc reaches remote hosts through libcurl; httpu reaches a daemon on a unix
 * socket or TCP through our own streams. Requests and callbacks are the same.
 *
 * start() copies everything in struct mo_http_call. The answer arrives in
 * pieces: on_head once, on_data any number of times, on_done exactly once and
 * last, never from inside start(), cancel() or close(). After cancel() only
 * on_done fires. Redirects are not followed: the caller gets the 3xx, because
 * only the caller knows which of its headers are secret. */
#ifndef MO_LOOP_HTTPCALL_H
#define MO_LOOP_HTTPCALL_H

#include "codec/http/http1.h"

#define MO_HTTP_CONNECT_MS 10000u
#define MO_HTTP_IDLE_MS    120000u
#define MO_HTTP_BYTES_MAX  ((uint64_t)64 * 1024 * 1024)
#define MO_HTTP_FOREVER    0xffffffffu /* for idle_ms: no limit */

struct mo_http_call {
    const char *method; /* NULL: GET */
    const char *url;    /* httpc: "https://..."; httpu: "/path?query" */
    const struct mo_http_header *headers;
    size_t nheaders;
    struct mo_span body; /* p != NULL: send a body, even if empty */
    unsigned connect_ms; /* 0: MO_HTTP_CONNECT_MS */
    unsigned idle_ms;    /* without any byte; 0: MO_HTTP_IDLE_MS */
    unsigned total_ms;   /* from start() to on_done; 0: no limit */
    uint64_t max_bytes;  /* of the answer's body; 0: MO_HTTP_BYTES_MAX */
    /* httpc: refuse to connect to a loopback, private or link-local address,
     * whatever the name resolves to (MO_EPOLICY). Through a proxy, which
     * resolves names itself: literal addresses and "localhost" only. */
    bool public_only;
};

struct mo_http_cb {
    void (*on_head)(void *ctx, const struct mo_http_head *h); /* or NULL */
    void (*on_data)(void *ctx, struct mo_span data);          /* or NULL */
    void (*on_done)(void *ctx, const struct mo_err *why); /* NULL: success */
};

#endif
