/* runtime.h - store, drivers and sessions of one process, opened in order and
 * closed in reverse, as the configuration says.
 *
 *   store.dir/               the database (sqlite)
 *   store.dir/run/NAME.lock  that instance NAME lives
 *   store.dir/run/NAME.sock  where it can be asked (session/control.h)
 *   store.dir/boxes/         sockets and locks of native boxes
 *
 * A command that only reads the store stops after the first step (`want`).
 * Ownership: the house owns all of it; what its functions give away is
 * borrowed until mo_runtime_close(). */
#ifndef MO_APP_RUNTIME_H
#define MO_APP_RUNTIME_H

#include "connect/box_drivers.h"
#include "session/session.h"
#include "store/store.h"

enum mo_runtime_want {
    MO_RUNTIME_STORE,    /* the store, nothing else */
    MO_RUNTIME_COMMAND,  /* and drivers and sessions, without janitor, without
                          warm boxes: for one command */
    MO_RUNTIME_SESSIONS, /* all of it */
};

struct mo_runtime;

/* done() once: the house, or NULL and why; never from inside. */
int mo_runtime_open(struct mo_loop *l, const struct mo_config *cfg,
                    enum mo_runtime_want want,
                    void (*done)(void *ctx, struct mo_runtime *h,
                                 const struct mo_err *why),
                    void *ctx, struct mo_err *e);
/* Another configuration: idle time, sweeps and number of sessions are changed
 * at once; what else it has is used after a restart (config/keys.h). */
void mo_runtime_reload(struct mo_runtime *h, const struct mo_config *cfg);
void mo_runtime_close(struct mo_runtime *h, void (*gone)(void *ctx), void *ctx);

struct mo_store *mo_runtime_store(const struct mo_runtime *h);
struct mo_sessions *mo_runtime_sessions(const struct mo_runtime *h);
const char *mo_runtime_instance(const struct mo_runtime *h);

/* End a session wherever it is held on this machine. */
int mo_runtime_end(struct mo_runtime *h, struct mo_span session, bool forget,
                   void (*done)(void *ctx, const struct mo_err *why), void *ctx,
                   struct mo_err *e);

/* The store's address with its references resolved, a relative file in
 * store.dir. */
int mo_runtime_store_url(const struct mo_config *cfg, struct mo_buf *out,
                         struct mo_err *e);

#endif
