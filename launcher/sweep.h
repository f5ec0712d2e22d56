/* sweep.h - remove what killed keepers left behind.
 *
 * A keeper killed with SIGKILL leaves no mount and no process (the kernel
 * removes them), but its cgroups and its socket remain. A socket that refuses
 * connections has no keeper: the groups of its box are removed, then the
 * socket. */
#ifndef MO_LAUNCHER_SWEEP_H
#define MO_LAUNCHER_SWEEP_H

#include "base/err.h"
#include "launcher/owner.h"

/* dir: directory of the sockets, read with the rights of the owner. *removed
 * counts boxes. */
int mo_sweep(const char *dir, const struct mo_owner *owner, unsigned *removed,
             struct mo_err *e);

#endif
