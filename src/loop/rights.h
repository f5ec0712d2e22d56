/* rights.h - gives up rights that this program never uses.
 *
 * For a process that runs for long and starts other programs. Everything given
 * up is also missing in its children, so the lists are short: what no server
 * and no box needs.
 *
 *   capabilities     as root only: modules, raw I/O, the clock, reboot, kernel
 *                    log and audit, eBPF, security modules
 *   seccomp          kexec, modules, eBPF, performance events, reboot, swap,
 *                    accounting, the clock, files opened by handle: EPERM.
 *                    32-bit calls of a 64-bit machine are not filtered
 *   no_new_privs     not as root with CAP_SYS_ADMIN, which does not need it for
 *                    the filter. Setuid programs do not get their rights */
#ifndef MO_LOOP_RIGHTS_H
#define MO_LOOP_RIGHTS_H

#include "base/err.h"

/* Call it before the first thread starts. may_setuid: children may use setuid
 * programs, so an ordinary user gets neither no_new_privs nor seccomp. Fails if
 * the kernel refuses one of the steps; the program can go on. */
int mo_rights_reduce(bool may_setuid, struct mo_err *e);

#endif
