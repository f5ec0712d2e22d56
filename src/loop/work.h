/* work.h - a worker thread for blocking calls.
 *
 * A worker is one named thread with a bounded queue. Jobs run on it in the
 * order they were submitted, and their done() runs on the loop's thread in the
 * same order (only a canceled job may overtake). A job is a struct mo_job
 * inside the caller's struct: nothing is allocated per job. The worker owns a
 * job until done(); run() has exclusive access to it and must not touch
 * anything of the loop.
 *
 * Invariants:
 *  1. done() fires exactly once for each accepted job, from the loop, never
 *     from inside a call of this file; canceled says whether run() was
 *     skipped. The caller owns the job again then and may submit it again,
 *     also from done().
 *  2. At most `max` jobs are accepted and not yet done; this also bounds the
 *     results that wait for the loop. One more fails with MO_EBUSY.
 *  3. The thread blocks every signal: the loop's thread handles them.
 *
 * A running job cannot be interrupted: a long one checks a flag of its own. A
 * worker without jobs does not keep the loop running. */
#ifndef MO_LOOP_WORK_H
#define MO_LOOP_WORK_H

#include "loop/loop.h"

#define MO_WORK_STACK ((size_t)512 * 1024) /* of address space */

struct mo_work;

struct mo_job {
    void (*run)(struct mo_job *j);                 /* on the worker's thread */
    void (*done)(struct mo_job *j, bool canceled); /* on the loop's thread */
    struct mo_list node;                           /* private */
    enum { MO_JOB_OUT, MO_JOB_QUEUED, MO_JOB_RUNNING, MO_JOB_DONE } state;
    bool canceled;
};

static inline void mo_job_init(struct mo_job *j, void (*run)(struct mo_job *),
                               void (*done)(struct mo_job *, bool))
{
    *j = (struct mo_job){.run = run, .done = done};
    mo_list_init(&j->node);
}

/* name: at most 15 bytes, as the kernel shows it. max > 0. */
struct mo_work *mo_work_start(struct mo_loop *l, const char *name, unsigned max,
                              struct mo_err *e);

/* MO_EBUSY when full, MO_ECLOSED after mo_work_stop(). */
int mo_work_submit(struct mo_work *w, struct mo_job *j);
unsigned mo_work_pending(const struct mo_work *w); /* accepted, not done */

enum mo_work_end {
    MO_WORK_CANCEL, /* jobs that have not started are canceled */
    MO_WORK_DRAIN,  /* all accepted jobs run first */
};

/* Does not wait. After the last done() the thread is joined and gone(ctx) fires
 * (may be NULL); w is freed then. A second call can only change draining into
 * cancelling; its gone is ignored. */
void mo_work_stop(struct mo_work *w, enum mo_work_end how,
                  void (*gone)(void *ctx), void *ctx);

#endif
