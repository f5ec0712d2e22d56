/* sweep.h - what killed keepers left behind.
 *
 * A keeper that was killed with SIGKILL has no mount and no process left (the
 * kernel saw to it), but its cgroups and its socket are still there. A socket
 * that refuses connections has no keeper: its box's groups are removed, then
 * the socket. */
#ifndef MO_LAUNCHER_SWEEP_H
#define MO_LAUNCHER_SWEEP_H

#include "base/err.h"

/* dir: where the sockets are. *removed counts boxes. */
int mo_sweep(const char *dir, unsigned *removed, struct mo_err *e);

#endif
