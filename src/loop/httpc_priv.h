/* httpc_priv.h - shared by httpc.c (the client), httpc_request.c (one request)
 * and httpc_route.c (its way to the host).
 *
 * Every call into libcurl goes through the function table. libcurl forbids most
 * calls from inside its callbacks, but our callers may call anything from
 * theirs, so starting, ending and resuming a request is always deferred.
 *
 * Invariants:
 *  1. x is in c->waiting (HX_WAITING) or in c->busy.
 *  2. x->easy is in the multi handle exactly while x->running.
 *  3. Only x->later ends a request: it takes x out of the multi handle,
 *     calls on_done and frees. */
#ifndef MO_LOOP_HTTPC_PRIV_H
#define MO_LOOP_HTTPC_PRIV_H

#define CURL_DISABLE_TYPECHECK /* its macros do not work with the table */
#include <curl/curl.h>

#include "loop/dso.h"
#include "loop/httpc.h"
#include "loop/priv.h"

/* clang-format off */
#define MO_CURL_FUNCTIONS(X)                                                   \
    X(curl_easy_cleanup) X(curl_easy_getinfo) X(curl_easy_init)                \
    X(curl_easy_pause) X(curl_easy_setopt) X(curl_easy_strerror)               \
    X(curl_global_cleanup) X(curl_global_init)                                 \
    X(curl_multi_add_handle) X(curl_multi_assign) X(curl_multi_cleanup)        \
    X(curl_multi_info_read)                                                    \
    X(curl_multi_init) X(curl_multi_remove_handle) X(curl_multi_setopt)        \
    X(curl_multi_socket_action)                                                \
    X(curl_slist_append) X(curl_slist_free_all)                                \
    X(curl_url) X(curl_url_cleanup) X(curl_url_get) X(curl_url_set)            \
    X(curl_free)
/* clang-format on */

struct mo_curl {
    MO_CURL_FUNCTIONS(MO_DSO_MEMBER)
};

struct mo_httpc {
    struct mo_loop *loop;
    struct mo_curl f;
    CURLM *multi; /* NULL until the first request */
    bool loaded;
    char *ca; /* or NULL */
    bool gzip;
    unsigned max_active, max_waiting;
    unsigned nactive, nwaiting;
    unsigned npolls; /* poll handles not closed yet */
    struct mo_list waiting, busy, polls;
    struct mo_timer timer; /* requested by libcurl */
    struct mo_later later; /* start waiting requests, or finish closing */
    bool broken;           /* a socket could not be watched */
    bool closing;
    struct mo_gone gone;
};

enum httpc_state { HX_WAITING, HX_RUNNING, HX_ENDED };

struct mo_httpc_x {
    struct mo_list node;
    struct mo_httpc *c;
    enum httpc_state state;
    CURL *easy;
    struct curl_slist *headers;
    const struct mo_http_cb *cb;
    void *ctx;
    struct mo_buf head; /* header lines of the answer received so far */
    struct mo_timer total, idle;
    struct mo_later later, wake; /* end the request; resume after a pause */
    struct mo_err err;           /* code 0: none */
    uint64_t got, max_bytes;
    curl_off_t sent; /* request bytes at the last idle check */
    unsigned idle_ms;
    bool running, head_done, paused;
    bool barred; /* an address was refused by public_only */
    bool proxied;
    char host[256];   /* as libcurl reads it; IPv6 without brackets */
    char origin[160]; /* "https://host:port", for messages */
    char curl_err[CURL_ERROR_SIZE];
};

/* httpc_request.c */
struct mo_httpc_x *mo_httpc_x_new(struct mo_httpc *c,
                                  const struct mo_http_call *call,
                                  struct mo_err *e);
void mo_httpc_x_free(struct mo_httpc_x *x);
void mo_httpc_x_move(struct mo_httpc_x *x, enum httpc_state to);
/* End the request with this reason (NULL: success), later. */
void mo_httpc_x_end(struct mo_httpc_x *x, const struct mo_err *why);
void mo_httpc_x_idle_start(struct mo_httpc_x *x);
/* End the request with the error that libcurl's result code means. */
void mo_httpc_x_verdict(struct mo_httpc_x *x, CURLcode rc);
/* End the request because public_only refuses its address. */
void mo_httpc_x_bar(struct mo_httpc_x *x);

/* httpc_route.c: choose the proxy and check the address. False: no memory, or
 * a host name that is too long. */
bool mo_httpc_x_route(struct mo_httpc_x *x, const char *url, bool public_only);

#endif
