/* instance.h - this run of the program: its name, and proof that it lives.
 *
 * Other processes must know whether we live, because our boxes and leases end
 * with us. Two proofs: a lease in the store ("instance:NAME"), which every
 * process can read and which ends some seconds after us; and a locked file in
 * a directory of this machine, which the kernel unlocks the moment we die. The
 * file lets the next process continue at once after a crash.
 *
 * Ownership: the directory is the caller's, 0700; files in it are ours. The
 * file of a dead instance is kept for MO_INSTANCE_KEEP_MS, so that its death
 * can be seen for as long as its lease may run. */
#ifndef MO_SESSION_INSTANCE_H
#define MO_SESSION_INSTANCE_H

#include "store/store.h"

#define MO_INSTANCE_LEASE   "instance:"
#define MO_INSTANCE_MAX     24      /* bytes of a name, NUL included */
#define MO_INSTANCE_PEER    ".peer" /* suffix of its socket for peer/peer.h */
#define MO_INSTANCE_KEEP_MS 120000

struct mo_instance;

/* dir: for the files; created if missing. */
int mo_instance_open(struct mo_loop *l, struct mo_store *store, const char *dir,
                     struct mo_instance **out, struct mo_err *e);
/* The lease is given back, the file removed; gone(ctx) once, later. */
void mo_instance_close(struct mo_instance *in, void (*gone)(void *ctx),
                       void *ctx);

const char *mo_instance_name(const struct mo_instance *in);

/* True if it is known to have died on this machine. ctx is the struct
 * mo_instance (for mo_sessions_opts.is_dead). */
bool mo_instance_dead(void *ctx, struct mo_span name);
/* The same for instances with another directory. */
bool mo_instance_dead_in(struct mo_span dir, struct mo_span name);

#endif
