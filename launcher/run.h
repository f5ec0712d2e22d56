/* run.h - one run of a box: its processes, from clone to the last exit.
 *
 * The first process of the box is our own. It gives up all privileges
 * (confine.h), starts the program as its child, reaps orphans, and reports how
 * the program ended. Then it exits, and the kernel kills every other process of
 * the namespace. Programs inside cannot signal it, inspect it or detach it from
 * the keeper: SIGKILL to the keeper ends the box.
 *
 * Ownership: struct mo_run owns the keeper's ends of the program's three pipes,
 * a pidfd, and the pipe on which the first process reports. */
#ifndef MO_LAUNCHER_RUN_H
#define MO_LAUNCHER_RUN_H

#include <sys/types.h>

#include "codec/boxreq.h"
#include "launcher/cgroup.h"

#define MO_RUN_START_MS 20000 /* from clone to exec, on a loaded machine */

struct mo_run {
    pid_t pid;     /* of the first process, in our namespace; 0: none */
    int pidfd;     /* readable after its exit */
    int status;    /* how the program ended */
    int life;      /* our end of the pipe that shows we are alive */
    int std[3];    /* write stdin, read stdout, read stderr */
    uint64_t ooms; /* OOM kills before it started */
};

void mo_run_init(struct mo_run *x);

/* program: an open executable, or -1 to find argv[0] inside. Returns when the
 * program runs, or fails with the reason (and nothing is left). */
int mo_run_start(struct mo_run *x, const struct mo_boxreq *r, struct mo_cg *g,
                 uid_t uid, bool root, int program, struct mo_err *e);

/* Kill all processes and wait until they are gone. */
void mo_run_kill(struct mo_run *x, struct mo_cg *g);
/* After the pidfd became readable: report how it ended. Closes everything. */
void mo_run_reap(struct mo_run *x, struct mo_cg *g, struct mo_boxend *out);

#endif
