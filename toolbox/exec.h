/* exec.h - execute_command: commands side by side, each with an end.
 *
 * A command ends in one of these ways, and its whole tree with it unless it
 * left processes in the background on purpose (they closed its output):
 *
 *   it exits and its output is closed     answered
 *   its time is over                      tree killed, then answered
 *   its call is cancelled                 tree killed, no answer
 *   the toolbox stops                     tree killed
 *
 * Invariants:
 *  1. a job exists as long as its keeper process or its call does
 *  2. a job is answered once; job->call is NULL from then on
 *  3. only job_move() writes job->state
 *
 * Limits: TB_JOBS_MAX jobs, those with only background processes included;
 * output kept per stream (clip.h), live output LIVE_MAX bytes a tick. */
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

/* A child of ours was reaped. */
void tb_exec_reaped(struct tb_exec *x, pid_t pid, int status);
void tb_exec_pause(struct tb_exec *x, bool paused);
/* Kill everything; the jobs go as their processes do. */
void tb_exec_stop(struct tb_exec *x);
/* No process of any command is left that we know of or look for. */
bool tb_exec_is_idle(const struct tb_exec *x);
/* The time for that is over: forget what is left. */
void tb_exec_fini(struct tb_exec *x);

#endif
