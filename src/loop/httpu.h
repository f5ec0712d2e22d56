/* httpu.h - HTTP/1.1 client over our own streams, for daemons such as the
 * Docker Engine: unix socket, TCP, or TLS over TCP.
 *
 * libcurl does not fit here: attaching to a container takes over the connection
 * in both directions and half-closes it (mo_httpu_hijack).
 *
 * A client has one address. Limits: up to `conns` connections are open at once,
 * up to `waiting` more requests are queued, the next one fails with MO_EBUSY.
 * Up to `idle` connections are kept for later requests. If the daemon has
 * closed a kept connection, the request is sent again on a new one, provided it
 * is safe to repeat (GET, HEAD, PUT, DELETE, OPTIONS) and no byte of an answer
 * has arrived. Any other request fails with MO_ECLOSED. */
#ifndef MO_LOOP_HTTPU_H
#define MO_LOOP_HTTPU_H

#include "loop/httpcall.h"
#include "loop/net.h"
#include "loop/tls.h"

struct mo_httpu;
struct mo_httpu_x; /* one request; freed after on_done */

struct mo_httpu_opts {
    const char *addr;       /* as mo_dial() takes it */
    const char *host;       /* Host header; NULL: "localhost" */
    struct mo_tls_ctx *tls; /* NULL: no TLS; borrowed until gone */
    const char *sni;        /* with tls; may be NULL */
    bool own_user;          /* only to a process of this user or of root */
    unsigned loss_ms;       /* see mo_stream_notice_loss(); 0: never */
    unsigned conns;         /* default 32 */
    unsigned waiting;       /* default 256 */
    unsigned idle;          /* default 4 */
    unsigned keep_ms;       /* lifetime of an idle connection; default 30 s */
};

struct mo_httpu *mo_httpu_new(struct mo_loop *l, const struct mo_httpu_opts *o,
                              struct mo_err *e);
/* Cancel all requests; `gone` (may be NULL) fires once, later. */
void mo_httpu_close(struct mo_httpu *u, void (*gone)(void *ctx), void *ctx);

int mo_httpu_start(struct mo_httpu *u, const struct mo_http_call *c,
                   const struct mo_http_cb *cb, void *ctx,
                   struct mo_httpu_x **out, struct mo_err *e);
void mo_httpu_cancel(struct mo_httpu_x *x); /* on_done: MO_ECANCELED */
/* In on_done: nothing of the request can have reached the daemon, since there
 * was no connection, or its TLS handshake was not complete. */
bool mo_httpu_is_unsent(const struct mo_httpu_x *x);
/* Stop and continue reading its answer. Bytes that were read already still
 * come. */
void mo_httpu_pause(struct mo_httpu_x *x, bool paused);

/* Only inside on_head, for 101 or a 200 whose body ends with the connection
 * (dockerd's answer to attach): take the stream. It is paused; attach or close
 * it. *early: bytes received after the head, valid until on_head returns.
 * on_done follows without error. MO_EINVAL for any other answer. */
int mo_httpu_hijack(struct mo_httpu_x *x, struct mo_stream **out,
                    struct mo_span *early, struct mo_err *e);

#endif
