/* confine.h - giving up every right, in the only order that works.
 *
 * Called by a box's first process, which was cloned into its namespaces and
 * cgroups and is still the keeper's user. Each step is fatal on failure:
 *
 *  1. its own /proc, a host name, a session, oom_score_adj
 *  2. rlimits; capability bounding set emptied
 *  3. groups, gid, uid; every capability set emptied
 *  4. death signal (a change of credentials clears it, so not before), and a
 *     look whether the keeper died meanwhile
 *  5. no_new_privs, landlock where the kernel has it
 *  6. seccomp, last
 *
 * Landlock repeats what the mounts say already (read /, write /workspace and
 * /tmp) and refuses TCP and signals to the outside; a kernel without it loses
 * the repetition only, so its absence is told, not refused. */
#ifndef MO_LAUNCHER_CONFINE_H
#define MO_LAUNCHER_CONFINE_H

#include <sys/types.h>

#include "codec/boxreq.h"

struct mo_confine {
    const struct mo_boxreq *r;
    uid_t uid;
    bool root; /* the keeper is root, not in a user namespace */
    int life;  /* a pipe whose other end the keeper holds */
};

int mo_confine(const struct mo_confine *c, struct mo_err *e);

unsigned mo_landlock_abi(void); /* 0: none */

#endif
