/* instance.h - this run of the program: its name, and its sign of life.
 *
 * Others must know whether we live: our boxes and our leases are ours only so
 * long. Two signs: a lease in the store ("instance:NAME"), which anybody can
 * look at and which ends some seconds after us; and a locked file in a
 * directory of this machine, which the kernel unlocks in the instant we die.
 * The second lets who comes after a crash go on at once.
 *
 * Ownership: the directory is the caller's, 0700; files in it are ours. A
 * dead one's file is kept for MO_INSTANCE_KEEP_MS, so that its death can be
 * seen for as long as its lease may run. */
#ifndef MO_SESSION_INSTANCE_H
#define MO_SESSION_INSTANCE_H

#include "store/store.h"

#define MO_INSTANCE_LEASE   "instance:"
#define MO_INSTANCE_MAX     24 /* bytes of a name, NUL included */
#define MO_INSTANCE_KEEP_MS 120000

struct mo_instance;

/* dir: where the files are, made if need be. */
int mo_instance_open(struct mo_loop *l, struct mo_store *store, const char *dir,
                     struct mo_instance **out, struct mo_err *e);
/* The lease is given back, the file removed; gone(ctx) once, later. */
void mo_instance_close(struct mo_instance *in, void (*gone)(void *ctx),
                       void *ctx);

const char *mo_instance_name(const struct mo_instance *in);

/* Known to have died on this machine; false: lives, or is not known here.
 * ctx is the struct mo_instance (for mo_sessions_opts.is_dead). */
bool mo_instance_dead(void *ctx, struct mo_span name);

#endif
