/* cgroup.h - the cgroups and limits of a box, in cgroup v1 or v2.
 *
 * A machine has cgroup v2, v1, or both with each controller in one of them;
 * /proc/self/mountinfo tells. A box gets its own group in every hierarchy that
 * has one of its controllers, and one in v2 whenever v2 is mounted, because v2
 * can kill and freeze a whole group.
 *
 *   v1: <mount>/<our own group>/mo-box/<id>
 *   v2: <mount>/mo-box/<id> as root; otherwise below the nearest group above
 *       ours that was delegated to us
 *
 * The limits of pids, memory and cpu are guaranteed: a machine that lacks one
 * of them is refused (MO_EUNAVAIL) with advice. Every value written is read
 * back and compared.
 *
 * Ownership: struct mo_cg owns descriptors of the groups; they stay valid in
 * any mount namespace. mo_cg_remove() removes the groups; the "mo-box" group
 * above them stays for the next box. */
#ifndef MO_LAUNCHER_CGROUP_H
#define MO_LAUNCHER_CGROUP_H

#include <sys/types.h>

#include "base/str.h"
#include "codec/boxreq.h"
#include "launcher/owner.h"

enum mo_cg_kind {
    MO_CG_PIDS,
    MO_CG_MEMORY,
    MO_CG_CPU,
    MO_CG_FREEZER, /* v1 only, used if there is no v2 */
    MO_CG_V2,      /* the unified hierarchy, with or without controllers */
    MO_CG_KINDS
};

#define MO_CG_PARENT_MAX 32

struct mo_cg {
    char name[MO_BOXREQ_ID_MAX + 1];
    char parent_name[MO_CG_PARENT_MAX]; /* "mo-box", or the owner's */
    int parent[MO_CG_KINDS];            /* or -1: no such group */
    int dir[MO_CG_KINDS];               /* the box's own group, or -1 */
    bool on_v2[MO_CG_KINDS];            /* this controller is in v2 */
};

/* Create the groups and write the limits. A failure leaves nothing behind.
 * MO_EBUSY: the owner has MO_OWNER_BOXES already. */
int mo_cg_open(struct mo_cg *g, const struct mo_boxreq *r,
               const struct mo_owner *owner, struct mo_err *e);
/* Move the calling process, which has one thread, into the v1 groups; it was
 * cloned into v2 (mo_cg_clone_fd). The process moves itself through "tasks",
 * because moving another process waits for all processors and took up to 15
 * ms. */
int mo_cg_join(const struct mo_cg *g, struct mo_err *e);
int mo_cg_clone_fd(const struct mo_cg *g); /* for CLONE_INTO_CGROUP, or -1 */

int mo_cg_freeze(struct mo_cg *g, bool frozen, struct mo_err *e);
void mo_cg_kill(struct mo_cg *g); /* SIGKILL to every process at once */
void mo_cg_stats(const struct mo_cg *g, struct mo_boxstats *out);

/* The groups must be empty, or become so within two seconds. */
int mo_cg_remove(struct mo_cg *g, struct mo_err *e);

/* Kill and remove what a dead keeper left of this box. */
int mo_cg_sweep(const char *id, const struct mo_owner *owner, struct mo_err *e);

#endif
