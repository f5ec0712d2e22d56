/* run.h - one life of a box: its processes, from clone to the last breath.
 *
 * The first process of the box is our own: it gives up all rights (confine.h),
 * starts the program as its child, reaps whatever is orphaned, and when the
 * program ends tells how and ends too, upon which the kernel kills every other
 * process of the namespace. Programs inside cannot signal it, look into it or
 * untie it from the keeper: SIGKILL to the keeper is the end of the box.
 *
 * Ownership: the keeper's ends of the program's three pipes, a pidfd, and the
 * pipe on which the first process reports. */
#ifndef MO_LAUNCHER_RUN_H
#define MO_LAUNCHER_RUN_H

#include <sys/types.h>

#include "codec/boxreq.h"
#include "launcher/cgroup.h"

#define MO_RUN_START_MS 20000 /* from clone to exec, on a loaded machine */

struct mo_run {
    pid_t pid;     /* of the first process, here; 0: none */
    int pidfd;     /* readable when it is gone */
    int status;    /* how the program ended */
    int life;      /* our end of the pipe that says we live */
    int std[3];    /* write stdin, read stdout, read stderr */
    uint64_t ooms; /* counted before it started */
};

void mo_run_init(struct mo_run *x);

/* program: an executable that is open, or -1 to find argv[0] inside. Returns
 * when the program runs, or says why it does not (and nothing is left). */
int mo_run_start(struct mo_run *x, const struct mo_boxreq *r, struct mo_cg *g,
                 uid_t uid, bool root, int program, struct mo_err *e);

/* All processes, and wait until the kernel has taken them away. */
void mo_run_kill(struct mo_run *x, struct mo_cg *g);
/* After the pidfd became readable: why. Closes everything. */
void mo_run_reap(struct mo_run *x, struct mo_cg *g, struct mo_boxend *out);

#endif
