/* exec.h - execute_command: run commands in parallel, each with a defined end.
 *
 * A command ends in one of these ways, and its whole process tree with it,
 * except processes it left in the background on purpose (they closed its
 * output):
 *
 *   it exits and its output is closed     answered
 *   its timeout expires                   tree killed, then answered
 *   its call is cancelled                 tree killed, no answer
 *   the toolbox stops                     tree killed
 *
 * Invariants:
 *  1. a job exists as long as its keeper process or its call does
 *  2. a job is answered once; job->call is NULL from then on
 *  3. only job_move() writes job->state
 *
 * Limits: TB_JOBS_MAX jobs, including those with background processes only;
 * output kept per stream (clip.h); live output LIVE_MAX bytes per tick. */
#ifndef TB_EXEC_H
#define TB_EXEC_H

#include <sys/types.h>

#include "toolbox/loop.h"

#define TB_JOBS_MAX 32

struct tb_exec {
    struct tb_loop *loop;
    struct mo_list jobs;
    size_t njobs;
    bool paused;          /* the peer does not read: output waits */
    struct tb_timer hunt; /* for processes whose keeper was killed */
    unsigned hunt_rounds;
};

void tb_exec_init(struct tb_exec *x, struct tb_loop *l);

/* A child of this process was reaped. */
void tb_exec_reaped(struct tb_exec *x, pid_t pid, int status);
void tb_exec_pause(struct tb_exec *x, bool paused);
/* Kill everything; a job is freed when its processes are gone. */
void tb_exec_stop(struct tb_exec *x);
/* True if no process of any command is left or searched for. */
bool tb_exec_is_idle(const struct tb_exec *x);
/* Forget what is left, after the time for stopping has passed. */
void tb_exec_fini(struct tb_exec *x);

#endif
