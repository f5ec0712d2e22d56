/* sweep.h - remove what killed keepers left behind.
 *
 * A keeper killed with SIGKILL leaves no mount and no process (the kernel
 * removes them), but its cgroups and its socket remain. A socket that refuses
 * connections has no keeper: the groups of its box are removed, then the
 * socket. */
#ifndef MO_LAUNCHER_SWEEP_H
#define MO_LAUNCHER_SWEEP_H

#include "base/err.h"

/* dir: directory of the sockets. *removed counts boxes. */
int mo_sweep(const char *dir, unsigned *removed, struct mo_err *e);

#endif
