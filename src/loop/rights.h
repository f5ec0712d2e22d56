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

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "base/err.h"

/* Call it before the first thread starts. may_setuid: children may use setuid
 * programs, so an ordinary user gets neither no_new_privs nor seccomp. Fails if
 * the kernel refuses one of the steps; the program can go on. */
int mo_rights_reduce(bool may_setuid, struct mo_err *e);

/* Root becomes another user for good: groups, gid, uid, no capability, and
 * no_new_privs unless may_setuid. Checks that the way back is closed. Not
 * dumpable afterwards. Call it after mo_rights_reduce(), before the first
 * thread. A failure may leave some rights given up: end the program then. */
int mo_rights_become(uid_t uid, gid_t gid, const gid_t *groups, size_t ngroups,
                     bool may_setuid, struct mo_err *e);

#endif
