/* job.h - one running command. Private to the exec files: exec.c reads the
 * arguments and writes the answer, job.c runs the command in between. */
#ifndef TB_JOB_H
#define TB_JOB_H

#include "toolbox/box.h"
#include "toolbox/clip.h"
#include "toolbox/keeper.h"
#include "toolbox/script.h"

#define TB_ROOM 65536 /* bytes of output kept per stream, default */
#define TB_ROOM_MAX                                                            \
    131072 /* two streams, two copies: within TB_RESULT_MAX                    \
            */
#define TB_TIMEOUT_S_MAX 86400

enum tb_job_state {
    TB_JOB_RUNNING,
    TB_JOB_KILLING, /* repeated until the keeper is reaped */
    TB_JOB_LEFT,    /* answered; background processes still run */
    TB_JOB_STATES,
};

enum { TB_OUT, TB_ERR, TB_STREAMS };

struct tb_stream {
    struct tb_watch watch;
    struct tb_job *job;
    int fd; /* -1: closed */
    struct tb_clip clip;
    struct mo_buf fresh; /* live output not sent yet */
    uint64_t skipped;    /* bytes of fresh dropped for lack of room */
};

struct tb_job {
    struct mo_list node;
    struct tb_exec *exec;
    struct tb_call *call;
    enum tb_job_state state;
    pid_t keeper, command; /* 0: gone, or not known yet */
    int order;

    struct tb_stream streams[TB_STREAMS];
    struct tb_watch in, report;
    int in_fd, report_fd;
    struct mo_buf input;
    size_t written;

    struct tb_script *script; /* NULL: a command */
    struct tb_idle clean;     /* after a script */
    uint64_t extended;        /* ns added to its timeout */

    struct tb_timer deadline, round, tick;
    unsigned rounds;
    uint64_t began;

    int status;       /* wait status, when ended */
    int no_exec;      /* errno, when it could not be started */
    bool ended, left; /* as the keeper reported */
    bool timed_out, lost;
};

struct tb_job_opts {
    struct mo_span input;
    size_t room;              /* bytes kept per stream */
    uint64_t timeout;         /* ns */
    struct tb_script *script; /* taken when the job starts */
};

/* The caller sets argv, env and cwd of s; the rest is filled in here. */
int tb_job_start(struct tb_exec *x, struct tb_call *c, struct tb_start *s,
                 const struct tb_job_opts *o, struct mo_err *e);

/* In exec.c: answer the call of a job. */
void tb_job_answer(struct tb_job *j);

#endif
