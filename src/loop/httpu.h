/* httpu.h - HTTP/1.1 client on our own streams: Docker Engine API and the
 * like, on a unix socket, TCP, or TLS over TCP.
 *
 * Why not libcurl here too: attaching to a container takes the connection
 * over in both directions and half-closes it (mo_httpu_hijack).
 *
 * A client has one address. Up to `conns` connections are open at once; who
 * comes then waits in a queue of `waiting`, who comes then is told MO_EBUSY.
 * Up to `idle` connections are kept for the next request. One that the daemon
 * closed meanwhile is replaced without a word when the request may safely be
 * sent twice (GET, HEAD, PUT, DELETE, OPTIONS) and no byte of an answer has
 * come; any other request fails with MO_ECLOSED and the caller decides. */
#ifndef MO_LOOP_HTTPU_H
#define MO_LOOP_HTTPU_H

#include "loop/httpcall.h"
#include "loop/net.h"
#include "loop/tls.h"

struct mo_httpu;
struct mo_httpu_x; /* one request under way; gone after on_done */

struct mo_httpu_opts {
    const char *addr;       /* as mo_dial() takes it */
    const char *host;       /* the Host header; NULL: "localhost" */
    struct mo_tls_ctx *tls; /* NULL: plain; borrowed until gone */
    const char *sni;        /* with tls; may be NULL */
    unsigned conns;         /* 32 */
    unsigned waiting;       /* 256 */
    unsigned idle;          /* 4 */
    unsigned keep_ms;       /* an idle connection is kept so long; 30 s */
};

struct mo_httpu *mo_httpu_new(struct mo_loop *l, const struct mo_httpu_opts *o,
                              struct mo_err *e);
/* Cancels what is under way; `gone` (may be NULL) fires once, later. */
void mo_httpu_close(struct mo_httpu *u, void (*gone)(void *ctx), void *ctx);

int mo_httpu_start(struct mo_httpu *u, const struct mo_http_call *c,
                   const struct mo_http_cb *cb, void *ctx,
                   struct mo_httpu_x **out, struct mo_err *e);
void mo_httpu_cancel(struct mo_httpu_x *x); /* on_done: MO_ECANCELED */
/* No on_data between these two; the daemon feels it. */
void mo_httpu_pause(struct mo_httpu_x *x);
void mo_httpu_resume(struct mo_httpu_x *x);

/* Inside on_head only, for 101 or a 200 whose body has no end of its own (as
 * dockerd answers to attach): take the stream. It is paused; attach or close
 * it. *early: what came behind the head, valid until on_head returns. on_done
 * follows without error. MO_EINVAL for any other answer. */
int mo_httpu_hijack(struct mo_httpu_x *x, struct mo_stream **out,
                    struct mo_span *early, struct mo_err *e);

#endif
