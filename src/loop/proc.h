/* proc.h - a child process: its streams, how to end it, its exit status.
 *
 * The program is set up as in spawn.h (own session and group, no signal
 * blocked, no descriptor inherited, exactly the given environment) and is
 * registered with the guardian before its first instruction (guard.h).
 *
 * Ownership: the caller owns the streams from the start, attaches and closes
 * them. The exit of the process and the end of its output are separate events
 * and come in any order: a grandchild may hold stdout open after the exit, and
 * a child may close stdout and continue. The owner decides which of them ends
 * the connection.
 *
 * Invariants:
 *  1. on_exit fires exactly once, from the loop, unless mo_proc_free() was
 *     called before.
 *  2. The child stays a zombie until mo_proc_free() and is reaped last. Until
 *     then the number of its group is in use, so a signal to the group never
 *     reaches another one.
 *  3. Nothing of the group is alive after mo_proc_free() and the few
 *     milliseconds that a SIGKILL takes. If the child is marked, that applies
 *     to descendants in other groups, too (stray.h).
 *
 * There is no SIGCHLD handler, and no pid is waited for but the child's own. */
#ifndef MO_LOOP_PROC_H
#define MO_LOOP_PROC_H

#include "loop/guard.h"
#include "loop/spawn.h"
#include "loop/stream.h"

/* A child that ignores EOF and SIGTERM is gone after the sum of these. */
#define MO_PROC_EOF_MS  600 /* stdin closed -> SIGTERM */
#define MO_PROC_TERM_MS 700 /* SIGTERM -> SIGKILL */

struct mo_proc;

enum mo_proc_err {
    MO_PROC_ERR_NULL,    /* stderr to /dev/null */
    MO_PROC_ERR_INHERIT, /* to our own stderr */
    MO_PROC_ERR_STREAM,  /* to a separate stream */
};

struct mo_proc_opts {
    const char *file;        /* searched in env's PATH unless it has a slash */
    const char *const *argv; /* NULL-terminated, argv[0] included */
    const char *const *env;  /* NULL-terminated; NULL: empty */
    const char *cwd;         /* NULL: inherit */
    enum mo_proc_err err;
    unsigned eof_ms, term_ms; /* 0: the defaults above */
    uint64_t data_max;        /* as in spawn.h */
    struct mo_hide *hide;     /* as in spawn.h */
    bool marked;              /* its descendants are found, in other sessions
                               * too: one more variable (stray.h) */
};

struct mo_proc_cb {
    void (*on_exit)(void *ctx, struct mo_proc *p, struct mo_exit x);
};

struct mo_proc_io {
    struct mo_stream *io;  /* reads its stdout, writes its stdin */
    struct mo_stream *err; /* reads its stderr; NULL unless requested */
};

/* Fails at once if the program cannot be run: see mo_spawn() for the codes;
 * MO_EBUSY at MO_GUARD_MAX. Both streams are paused. */
int mo_proc_start(struct mo_guard *g, const struct mo_proc_opts *o,
                  const struct mo_proc_cb *cb, void *ctx, struct mo_proc **out,
                  struct mo_proc_io *io, struct mo_err *e);

/* End the child in steps: EOF on its stdin, SIGTERM to the group, SIGKILL to
 * the group. Processes that the leader leaves behind are killed at its exit.
 * io: the stream to half-close, NULL if it is closed already. A second call
 * does nothing. */
void mo_proc_stop(struct mo_proc *p, struct mo_stream *io);
/* Ask it to end: SIGTERM to the group now, SIGKILL after ms. */
void mo_proc_term(struct mo_proc *p, unsigned ms);
void mo_proc_kill(struct mo_proc *p); /* the group, now; on_exit follows */
pid_t mo_proc_pid(const struct mo_proc *p);

/* Free the object. Processes of the group that are still alive are killed;
 * on_exit no longer fires. Allowed at any time, also in on_exit. */
void mo_proc_free(struct mo_proc *p);

#endif
