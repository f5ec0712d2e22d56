/* httpc.h - HTTP(S) client for remote hosts: models and remote servers.
 *
 * libcurl implements the protocol (HTTP/1.1 and 2, TLS, proxies from the
 * environment); the loop waits for its sockets. libcurl is loaded at the first
 * request (see dso.h).
 *
 * It refuses protocols other than http and https, and does not follow
 * redirects, store cookies, read .netrc, accept unverified TLS or log headers.
 * Error texts name scheme, host and port, never path or query: those may hold
 * keys.
 *
 * Limits: up to `active` requests run at once, up to `waiting` more are queued,
 * the next one fails with MO_EBUSY. Data is passed on as it arrives: an event
 * of a stream is never held back for the next one. */
#ifndef MO_LOOP_HTTPC_H
#define MO_LOOP_HTTPC_H

#include "loop/httpcall.h"
#include "loop/loop.h"

struct mo_httpc;
struct mo_httpc_x; /* one request; freed after on_done */

struct mo_httpc_opts {
    unsigned active;  /* default 64 */
    unsigned waiting; /* default 256 */
    const char *ca;   /* PEM file instead of the system's CAs */
    bool gzip;        /* offer compression; bodies arrive unpacked */
};

struct mo_httpc *mo_httpc_new(struct mo_loop *l, const struct mo_httpc_opts *o,
                              struct mo_err *e);
/* Cancel all requests; `gone` (may be NULL) fires once, later. */
void mo_httpc_close(struct mo_httpc *c, void (*gone)(void *ctx), void *ctx);

int mo_httpc_start(struct mo_httpc *c, const struct mo_http_call *call,
                   const struct mo_http_cb *cb, void *ctx,
                   struct mo_httpc_x **out, struct mo_err *e);
void mo_httpc_cancel(struct mo_httpc_x *x); /* on_done: MO_ECANCELED */
/* In a callback of the request: true if the connected address is one that
 * public_only refuses. Through a proxy: if the URL has such an address. */
bool mo_httpc_at_private(const struct mo_httpc_x *x);
/* No on_data between these two; flow control slows the peer down. */
void mo_httpc_pause(struct mo_httpc_x *x);
void mo_httpc_resume(struct mo_httpc_x *x);

#endif
