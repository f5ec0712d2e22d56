/* proc.h - a child process: two streams, a way to end it, one report.
 *
 * The program gets what spawn.h says (its own session and group, no signal
 * blocked, no descriptor inherited, exactly the given environment) and is
 * known to the guardian before its first instruction (guard.h).
 *
 * Ownership: the streams belong to the caller from the start, who attaches
 * and closes them like any other. The end of the process and the end of its
 * output are two different pieces of news and come in any order: a grandchild
 * may hold stdout open after the exit, a child may close stdout and go on.
 * The owner decides which of them ends a conversation.
 *
 * Invariants:
 *  1. on_exit fires exactly once, from the loop, unless mo_proc_free() came
 *     before it.
 *  2. The child stays a zombie until mo_proc_free(), and is the last to go:
 *     as long as it is not reaped, the number of its group cannot mean
 *     anybody else, so signals to the group never hit a stranger.
 *  3. Nothing of the group is alive after mo_proc_free() and the few
 *     milliseconds that a SIGKILL takes.
 *
 * No SIGCHLD handler; no waiting for any pid but our own child's. */
#ifndef MO_LOOP_PROC_H
#define MO_LOOP_PROC_H

#include "loop/guard.h"
#include "loop/stream.h"

/* A child that ignores all politeness is gone after the sum of these. */
#define MO_PROC_EOF_MS  600 /* stdin closed -> SIGTERM */
#define MO_PROC_TERM_MS 700 /* SIGTERM -> SIGKILL */

struct mo_proc;

enum mo_proc_err {
    MO_PROC_ERR_NULL,    /* stderr to /dev/null */
    MO_PROC_ERR_INHERIT, /* to our own stderr */
    MO_PROC_ERR_STREAM,  /* to a stream of its own */
};

struct mo_proc_opts {
    const char *file;        /* searched in env's PATH unless it has a slash */
    const char *const *argv; /* NULL-terminated, argv[0] included */
    const char *const *env;  /* NULL-terminated; NULL: an empty one */
    const char *cwd;         /* NULL: ours */
    enum mo_proc_err err;
    unsigned eof_ms, term_ms; /* 0: the defaults above */
    uint64_t data_max;        /* as in spawn.h */
};

struct mo_exit {
    int code;   /* exit status, or -1 */
    int signal; /* what killed it, or 0 */
};

struct mo_proc_cb {
    void (*on_exit)(void *ctx, struct mo_proc *p, struct mo_exit x);
};

struct mo_proc_io {
    struct mo_stream *io;  /* reads its stdout, writes its stdin */
    struct mo_stream *err; /* reads its stderr; NULL unless asked for */
};

/* A program that cannot be run is reported here, not later: see mo_spawn()
 * for the codes; MO_EBUSY at MO_GUARD_MAX. Both streams are paused. */
int mo_proc_start(struct mo_guard *g, const struct mo_proc_opts *o,
                  const struct mo_proc_cb *cb, void *ctx, struct mo_proc **out,
                  struct mo_proc_io *io, struct mo_err *e);

/* Ask, then insist: EOF on its stdin, SIGTERM to the group, SIGKILL to the
 * group; what the leader leaves behind is killed at its exit. io: the stream
 * to half-close, NULL if it is closed already. Again = nothing. */
void mo_proc_stop(struct mo_proc *p, struct mo_stream *io);
void mo_proc_kill(struct mo_proc *p); /* the group, now; on_exit follows */

/* Let go. What is still alive of the group is killed; on_exit does not fire
 * any more. Allowed at any time, in on_exit too; p is gone. */
void mo_proc_free(struct mo_proc *p);

pid_t mo_proc_pid(const struct mo_proc *p);

/* "exit 3", "killed by signal 9 (Killed)". */
#define MO_EXIT_TEXT_MAX 64
void mo_exit_text(struct mo_exit x, char out[MO_EXIT_TEXT_MAX]);

#endif
