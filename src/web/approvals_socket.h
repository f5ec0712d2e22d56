/* approvals_socket.h - a socket beside the state, by which commands reach the
 * processes that hold calls for a person.
 *
 *   store.dir/run/approvals-PID.sock   mode 0600, its directory 0700
 *
 * `serve` and every `gateway` have one: HTTP, the requests of
 * web/api_approvals.h and nothing else. Who can connect is this user or root,
 * so no token is asked for. A process that was killed leaves its socket behind;
 * whoever meets it removes it.
 *
 * Limits: HATCH_CONNS at once. */
#ifndef MO_WEB_APPROVALS_SOCKET_H
#define MO_WEB_APPROVALS_SOCKET_H

#include "web/api_approvals.h"

#define MO_APPROVALS_SOCKET_DIR   "run"
#define MO_APPROVALS_SOCKET_MS    10000 /* for an answer */
#define MO_APPROVALS_SOCKET_BYTES ((size_t)64 * 1024 * 1024)

struct mo_approvals_socket;

/* dir: the state directory. api is borrowed until it is closed. */
int mo_approvals_socket_open(struct mo_loop *l, const char *dir,
                             const struct mo_api_approvals *api,
                             struct mo_approvals_socket **out,
                             struct mo_err *e);
/* gone(ctx) once, later. */
void mo_approvals_socket_close(struct mo_approvals_socket *h,
                               void (*gone)(void *ctx), void *ctx);

/* --- the other side; these wait ------------------------------------------ */

/* Ask the process behind that socket: *status and its answer. body.p NULL: GET.
 * MO_ECLOSED: nobody is there any more. */
int mo_approvals_socket_ask(struct mo_loop *l, const char *path,
                            const char *url, struct mo_span body, int *status,
                            struct mo_buf *out, struct mo_err *e);
/* The sockets there are: fn() for each, until it is not 0. */
int mo_approvals_socket_each(const char *dir,
                             int (*fn)(void *ctx, const char *path), void *ctx,
                             struct mo_err *e);

#endif
