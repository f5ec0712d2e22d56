/* httpc.h - HTTP(S) client for the outside world: models, remote servers.
 *
 * libcurl does the protocol (HTTP/1.1 and 2, TLS, proxies from the
 * environment as curl takes them); the loop waits for its sockets. The
 * library is loaded at the first request (see dso.h), so that who never calls
 * out never pays for it.
 *
 * What it will not do: other protocols than http and https, redirects,
 * cookies, .netrc, unverified TLS, logging of headers. Error texts name
 * scheme, host and port, never path or query: keys travel there.
 *
 * Up to `active` requests run at once; who comes then waits in a queue of
 * `waiting`, who comes then is told MO_EBUSY. Data is handed over as it
 * arrives, an event of a stream is never held back for the next. */
#ifndef MO_LOOP_HTTPC_H
#define MO_LOOP_HTTPC_H

#include "loop/httpcall.h"
#include "loop/loop.h"

struct mo_httpc;
struct mo_httpc_x; /* one request under way; gone after on_done */

struct mo_httpc_opts {
    unsigned active;  /* 64 */
    unsigned waiting; /* 256 */
    const char *ca;   /* PEM file instead of the system's authorities */
    bool gzip;        /* offer compression; bodies arrive unpacked */
};

struct mo_httpc *mo_httpc_new(struct mo_loop *l, const struct mo_httpc_opts *o,
                              struct mo_err *e);
/* Cancels what is under way; `gone` (may be NULL) fires once, later. */
void mo_httpc_close(struct mo_httpc *c, void (*gone)(void *ctx), void *ctx);

int mo_httpc_start(struct mo_httpc *c, const struct mo_http_call *call,
                   const struct mo_http_cb *cb, void *ctx,
                   struct mo_httpc_x **out, struct mo_err *e);
void mo_httpc_cancel(struct mo_httpc_x *x); /* on_done: MO_ECANCELED */
/* In its callbacks: is it connected to such an address as public_only means?
 * Behind a proxy: is the proxy? */
bool mo_httpc_at_private(const struct mo_httpc_x *x);
/* No on_data between these two; the peer feels it. */
void mo_httpc_pause(struct mo_httpc_x *x);
void mo_httpc_resume(struct mo_httpc_x *x);

#endif
