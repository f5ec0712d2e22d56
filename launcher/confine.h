/* confine.h - give up all privileges, in the only order that works.
 *
 * Called by a box's first process, which was cloned into its namespaces and
 * cgroups and still has the keeper's user. Every step is fatal on failure:
 *
 *  1. own /proc, host name, session, oom_score_adj
 *  2. rlimits; capability bounding set emptied
 *  3. groups, gid, uid; all capability sets emptied
 *  4. death signal (a change of credentials clears it, so not before), and a
 *     check whether the keeper died meanwhile
 *  5. no_new_privs, landlock where the kernel has it
 *  6. seccomp, last
 *
 * Landlock repeats the rules of the mounts (read /, write /workspace, /tmp and
 * writable mounts) and refuses TCP, unless the box has a network, and signals
 * to processes outside. It is a second barrier, so a kernel without it is
 * reported, not refused. */
#ifndef MO_LAUNCHER_CONFINE_H
#define MO_LAUNCHER_CONFINE_H

#include <sys/types.h>

#include "codec/boxreq.h"

struct mo_confine {
    const struct mo_boxreq *r;
    uid_t uid;
    bool root; /* the keeper is root, without a user namespace */
    int life;  /* a pipe; the keeper holds the other end */
};

/* Before the cgroups are joined: an ordinary policy and no priority above
 * others, whatever the server itself has. */
int mo_confine_schedule(struct mo_err *e);
int mo_confine(const struct mo_confine *c, struct mo_err *e);

unsigned mo_landlock_abi(void); /* 0: not available */

#endif
