/* approvals_socket.h - a local socket through which commands reach the
 * processes that hold calls for approval.
 *
 *   store.dir/run/approvals-PID.sock   mode 0600, its directory 0700
 *
 * `serve` and every `gateway` have one. It speaks HTTP and serves the requests
 * about approvals and personal tokens of web/api.h and the link that signs a
 * browser in. Only
 * processes of this user and of root are answered, so no token is needed. A
 * killed process leaves its socket behind; the next process that finds it
 * removes it.
 *
 * Limits: CONNS_MAX connections at once. */
#ifndef MO_WEB_APPROVALS_SOCKET_H
#define MO_WEB_APPROVALS_SOCKET_H

#include "web/api.h"

#define MO_APPROVALS_SOCKET_DIR   "run"
#define MO_APPROVALS_SOCKET_LINK  "/link"
#define MO_APPROVALS_SOCKET_MS    10000 /* ms to wait for an answer */
#define MO_APPROVALS_SOCKET_BYTES ((size_t)64 * 1024 * 1024)

struct mo_approvals_socket;

/* dir: the state directory. api is borrowed until it is closed. */
int mo_approvals_socket_open(struct mo_loop *l, const char *dir,
                             const struct mo_api *api,
                             struct mo_approvals_socket **out,
                             struct mo_err *e);
/* gone(ctx) fires once, later. */
void mo_approvals_socket_close(struct mo_approvals_socket *h,
                               void (*gone)(void *ctx), void *ctx);

/* --- the client side; these functions block ------------------------------ */

/* Send a request to the process behind that socket; returns *status and its
 * answer. MO_ECLOSED: the process is gone. */
int mo_approvals_socket_ask(struct mo_loop *l, const char *path,
                            const char *method, const char *url,
                            struct mo_span body, int *status,
                            struct mo_buf *out, struct mo_err *e);
/* Call fn() for each socket until it returns nonzero. */
int mo_approvals_socket_each(const char *dir,
                             int (*fn)(void *ctx, const char *path), void *ctx,
                             struct mo_err *e);

#endif
