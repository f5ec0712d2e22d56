/* cgroup.h - the box's limits, whichever version of cgroups they live in.
 *
 * A machine has cgroup v2, v1, or both with each controller in one of them;
 * /proc/self/mountinfo tells. A box gets a group of its own in every hierarchy
 * that carries one of its controllers, and one in v2 if that is mounted at
 * all, because v2 can kill and freeze a group as a whole.
 *
 *   v1: <mount>/<our own group>/mo-box/<id>
 *   v2: <mount>/mo-box/<id> as root; else the nearest group above ours that
 *       was delegated to us
 *
 * pids, memory and cpu are promised, so a machine that lacks one is refused
 * (MO_EUNAVAIL) with what to do. What was written is read back and compared.
 *
 * Ownership: descriptors of the groups; they stay valid in any mount
 * namespace. mo_cg_remove() takes the groups away, the "mo-box" above them
 * stays for the next box. */
#ifndef MO_LAUNCHER_CGROUP_H
#define MO_LAUNCHER_CGROUP_H

#include <sys/types.h>

#include "base/str.h"
#include "codec/boxreq.h"

enum mo_cg_kind {
    MO_CG_PIDS,
    MO_CG_MEMORY,
    MO_CG_CPU,
    MO_CG_FREEZER, /* v1 only, and only where there is no v2 */
    MO_CG_V2,      /* the unified hierarchy, with controllers or without */
    MO_CG_KINDS
};

struct mo_cg {
    char name[MO_BOXREQ_ID_MAX + 1];
    int parent[MO_CG_KINDS]; /* "mo-box", or -1: no such group */
    int dir[MO_CG_KINDS];    /* the box's own, or -1 */
    bool on_v2[MO_CG_KINDS]; /* this controller lives in v2 */
};

/* Make the groups and write the limits. Nothing is left on failure. */
int mo_cg_open(struct mo_cg *g, const struct mo_boxreq *r, struct mo_err *e);
/* The calling process, which has one thread, enters the v1 groups; v2 it was
 * cloned into (mo_cg_clone_fd). By itself and by "tasks", because that is the
 * one way which does not wait for all processors of the machine: to move
 * another process took up to 15 ms. */
int mo_cg_join(const struct mo_cg *g, struct mo_err *e);
int mo_cg_clone_fd(const struct mo_cg *g); /* for CLONE_INTO_CGROUP, or -1 */

int mo_cg_freeze(struct mo_cg *g, bool frozen, struct mo_err *e);
void mo_cg_kill(struct mo_cg *g); /* SIGKILL to every process, as one */
void mo_cg_stats(const struct mo_cg *g, struct mo_boxstats *out);

/* The groups must be empty, or become so within a second. */
int mo_cg_remove(struct mo_cg *g, struct mo_err *e);
void mo_cg_close(struct mo_cg *g); /* descriptors only */

/* What a dead keeper left of this box: killed and removed. */
int mo_cg_sweep(const char *id, struct mo_err *e);

#endif
