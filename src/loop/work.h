/* work.h - one thread that may block, so that the loop never has to.
 *
 * A worker is one named thread with a bounded queue: jobs run there in the
 * order they were given, and their done() runs on the loop's thread in the
 * same order (only a canceled one may overtake). The job is the caller's struct
 * with a struct mo_job inside: nothing is allocated per job. While a job is in
 * the worker's hands it belongs to it; run() is alone with it and must touch
 * nothing of the loop.
 *
 * Invariants:
 *  1. done() fires exactly once for each accepted job, from the loop, never
 *     from inside a call of this room; canceled tells whether run() was
 *     called. After it the job is the caller's again (and may be submitted
 *     again, from done() too).
 *  2. At most `max` jobs are accepted and not yet done; that bounds the
 *     results that wait for the loop as well. One more is MO_EBUSY.
 *  3. The thread blocks every signal: they are the loop's.
 *
 * A running job cannot be interrupted: who can take long looks at a flag of
 * its own. A worker without jobs does not keep the loop running. */
#ifndef MO_LOOP_WORK_H
#define MO_LOOP_WORK_H

#include "loop/loop.h"

#define MO_WORK_STACK ((size_t)512 * 1024) /* address space; pages on use */

struct mo_work;

struct mo_job {
    void (*run)(struct mo_job *j);                 /* on the worker */
    void (*done)(struct mo_job *j, bool canceled); /* on the loop */
    struct mo_list node;                           /* the rest is private */
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
/* Too late (running, ready) changes nothing. done() follows in any case. */
void mo_work_cancel(struct mo_work *w, struct mo_job *j);
unsigned mo_work_pending(const struct mo_work *w); /* accepted, not done */

enum mo_work_end {
    MO_WORK_CANCEL, /* what has not begun is canceled */
    MO_WORK_DRAIN,  /* everything accepted is run first */
};

/* Does not wait. After the last done() the thread is joined and gone(ctx)
 * fires (may be NULL); w is no more then. A second call can only turn
 * draining into cancelling; its gone is ignored. */
void mo_work_stop(struct mo_work *w, enum mo_work_end how,
                  void (*gone)(void *ctx), void *ctx);

#endif
