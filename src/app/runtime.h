/* runtime.h - store, box drivers and sessions of one process.
 *
 * Opened in this order and closed in reverse, as configured:
 *
 *   store.dir/               the database (sqlite)
 *   store.dir/run/NAME.lock  held while instance NAME is alive
 *   store.dir/run/NAME.sock  control socket of the instance (session/control.h)
 *   store.dir/run/NAME.peer  for other processes (peer/peer.h)
 *   store.dir/run/NAME.http  the same for HTTP requests (web/relay.h)
 *   store.dir/boxes/         sockets and locks of native boxes
 *
 * A command that only reads the store opens nothing else (`want`). Ownership:
 * the runtime owns all parts; pointers that its functions return are borrowed
 * until mo_runtime_close(). */
#ifndef MO_APP_RUNTIME_H
#define MO_APP_RUNTIME_H

#include "connect/box_drivers.h"
#include "policy/approvals.h"
#include "session/session.h"
#include "store/store.h"

enum mo_runtime_want {
    MO_RUNTIME_STORE,    /* only the store */
    MO_RUNTIME_INSTANCE, /* also a name; the store alone if that fails */
    MO_RUNTIME_COMMAND, /* also drivers and sessions, but no janitor and no warm
                           boxes: for one command */
    MO_RUNTIME_SESSIONS, /* everything */
};

struct mo_runtime;

/* Calls done() once, later, with the runtime, or with NULL and the reason. */
int mo_runtime_open(struct mo_loop *l, const struct mo_config *cfg,
                    enum mo_runtime_want want,
                    void (*done)(void *ctx, struct mo_runtime *h,
                                 const struct mo_err *why),
                    void *ctx, struct mo_err *e);
/* Applies another configuration: idle time, sweep interval and maximum number
 * of sessions change at once; other settings need a restart (config/keys.h). */
void mo_runtime_reload(struct mo_runtime *h, const struct mo_config *cfg);
void mo_runtime_close(struct mo_runtime *h, void (*gone)(void *ctx), void *ctx);

/* Decide about hosts that a session's box asks about, and record its
 * connections. Borrowed until the runtime is gone, or NULL is set. */
void mo_runtime_approvals(struct mo_runtime *h, struct mo_approvals *approvals);

struct mo_store *mo_runtime_store(const struct mo_runtime *h);
struct mo_sessions *mo_runtime_sessions(const struct mo_runtime *h);
const char *mo_runtime_instance(const struct mo_runtime *h); /* NULL: none */
const char *mo_runtime_dir(const struct mo_runtime *h);      /* store.dir/run */

/* Ends a session, also if another process on this machine holds it. */
int mo_runtime_end(struct mo_runtime *h, struct mo_span session, bool forget,
                   mo_done_fn *done, void *ctx, struct mo_err *e);

#endif
