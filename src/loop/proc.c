/* proc.c - states of a child process.
 *
 *   RUNNING -stop-> ASKED -eof_ms-> TERMED -term_ms-> KILLED
 *      any of these --pidfd readable--> EXITED --free--> (reaped, gone)
 *
 * The pidfd is polled only until the exit; after that it is used to reap. */
#include "loop/proc.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "loop/priv.h"
#include "loop/spawn.h"

enum state { P_RUNNING, P_ASKED, P_TERMED, P_KILLED, P_EXITED };

struct mo_proc {
    struct mo_guard *g;
    struct mo_ward ward;
    enum state state;
    uv_poll_t poll;
    struct mo_timer grace;
    unsigned term_ms, eof_ms;
    struct mo_exit exit;
    const struct mo_proc_cb *cb;
    void *ctx;
    bool freed;    /* mo_proc_free() was called; waiting for the exit */
    bool reported; /* on_exit has been called; no libuv handle is left */
};

static void proc_move(struct mo_proc *p, enum state to)
{
    static const uint8_t legal[] = {
        [P_RUNNING] = MO_TO(P_ASKED) | MO_TO(P_KILLED) | MO_TO(P_EXITED),
        [P_ASKED] = MO_TO(P_TERMED) | MO_TO(P_KILLED) | MO_TO(P_EXITED),
        [P_TERMED] = MO_TO(P_KILLED) | MO_TO(P_EXITED),
        [P_KILLED] = MO_TO(P_EXITED),
        [P_EXITED] = 0,
    };

    MO_MOVE(p->state, to, legal);
}

/* Invariant 2 makes the group number safe. An empty group is not an error. */
static void signal_group(const struct mo_proc *p, int sig)
{
    (void)kill(-p->ward.pid, sig);
}

/* --- end ----------------------------------------------------------------- */

static void release_proc(struct mo_proc *p)
{
    signal_group(p, SIGKILL);
    mo_guard_forget(p->g, &p->ward);
    (void)mo_spawn_ended(p->ward.pidfd, WNOHANG, &p->exit);
    mo_close_fd(&p->ward.pidfd);
    mo_free(p);
}

static void on_poll_closed(uv_handle_t *h)
{
    struct mo_proc *p = h->data;

    if (p->freed) {
        release_proc(p);
        return;
    }
    p->reported = true;
    p->cb->on_exit(p->ctx, p, p->exit);
}

static void on_exit_ready(uv_poll_t *h, int status, int events)
{
    struct mo_proc *p = h->data;

    (void)status;
    (void)events;
    if (!mo_spawn_ended(p->ward.pidfd, WNOHANG | WNOWAIT, &p->exit))
        return;
    mo_timer_stop(mo_guard_loop(p->g), &p->grace);
    if (p->state != P_RUNNING) /* end its children too */
        signal_group(p, SIGKILL);
    proc_move(p, P_EXITED);
    uv_close((uv_handle_t *)h, on_poll_closed);
}

static void on_grace(struct mo_timer *t)
{
    struct mo_proc *p = mo_container_of(t, struct mo_proc, grace);

    if (p->state == P_ASKED) {
        proc_move(p, P_TERMED);
        signal_group(p, SIGTERM);
        mo_timer_start(mo_guard_loop(p->g), t, p->term_ms);
    } else {
        mo_proc_kill(p);
    }
}

void mo_proc_stop(struct mo_proc *p, struct mo_stream *io)
{
    if (p->state != P_RUNNING)
        return;
    proc_move(p, P_ASKED);
    if (io)
        mo_stream_shutdown(io);
    mo_timer_start(mo_guard_loop(p->g), &p->grace, p->eof_ms);
}

void mo_proc_term(struct mo_proc *p, unsigned ms)
{
    if (p->state != P_RUNNING)
        return;
    proc_move(p, P_ASKED);
    p->term_ms = ms;
    on_grace(&p->grace);
}

pid_t mo_proc_pid(const struct mo_proc *p)
{
    return p->ward.pid;
}

void mo_proc_kill(struct mo_proc *p)
{
    if (p->state == P_EXITED)
        return;
    mo_timer_stop(mo_guard_loop(p->g), &p->grace);
    if (p->state != P_KILLED)
        proc_move(p, P_KILLED);
    signal_group(p, SIGKILL);
}

void mo_proc_free(struct mo_proc *p)
{
    if (!p)
        return;
    if (p->reported) {
        release_proc(p);
        return;
    }
    p->freed = true;
    mo_proc_kill(p);
}

/* --- start --------------------------------------------------------------- */

/* Both ends of each pipe. Descriptors that are not handed on are closed. */
struct pipes {
    int in[2], out[2], err[2]; /* as from pipe2(): read end, write end */
};

static void close_pipes(struct pipes *pl)
{
    for (int i = 0; i < 2; i++) {
        mo_close_fd(&pl->in[i]);
        mo_close_fd(&pl->out[i]);
        mo_close_fd(&pl->err[i]);
    }
}

static int open_err(struct pipes *pl, enum mo_proc_err how)
{
    if (how == MO_PROC_ERR_STREAM)
        return pipe2(pl->err, O_CLOEXEC);
    if (how == MO_PROC_ERR_INHERIT)
        pl->err[1] = fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 3);
    if (pl->err[1] < 0) /* also when ours is closed */
        pl->err[1] = open("/dev/null", O_WRONLY | O_CLOEXEC);
    return pl->err[1] < 0 ? -1 : 0;
}

static void drop_streams(struct mo_proc_io *io)
{
    if (io->io)
        mo_stream_close(io->io, NULL);
    if (io->err)
        mo_stream_close(io->err, NULL);
    io->io = NULL;
    io->err = NULL;
}

static int open_streams(struct mo_loop *l, struct pipes *pl,
                        struct mo_proc_io *io, struct mo_err *e)
{
    int rc = mo_stream_from_fds(l, mo_take_fd(&pl->out[0]),
                                mo_take_fd(&pl->in[1]), &io->io, e);

    if (rc == 0 && pl->err[0] >= 0)
        rc = mo_stream_from_fds(l, mo_take_fd(&pl->err[0]), -1, &io->err, e);
    return rc;
}

static int spawn_child(struct mo_proc *p, const struct mo_proc_opts *o,
                       const struct pipes *pl, struct mo_err *e)
{
    struct mo_spawn s = {
        .file = o->file,
        .argv = o->argv,
        .env = o->env,
        .cwd = o->cwd,
        .fds = {pl->in[0], pl->out[1], pl->err[1]},
        .data_max = o->data_max,
        .hide = o->hide,
    };

    return mo_guard_spawn(p->g, &s, o->marked, &p->ward, e);
}

/* The child runs but cannot be watched: kill and reap it now. The wait is
 * bounded by the time a SIGKILL takes. */
static void take_back(struct mo_proc *p)
{
    signal_group(p, SIGKILL);
    (void)mo_spawn_ended(p->ward.pidfd, WNOWAIT, &p->exit);
    mo_guard_forget(p->g, &p->ward);
    (void)mo_spawn_ended(p->ward.pidfd, 0, &p->exit);
    mo_close_fd(&p->ward.pidfd);
}

static int watch_exit(struct mo_proc *p, struct mo_err *e)
{
    int rc = mo_loop_watch(mo_guard_loop(p->g), &p->poll, p->ward.pidfd,
                           on_exit_ready, p);

    if (rc == 0)
        return 0;
    take_back(p);
    return mo_fail_uv(e, rc, "watch child");
}

static int start_child(struct mo_proc *p, const struct mo_proc_opts *o,
                       struct mo_proc_io *io, struct mo_err *e)
{
    MO_CLEANUP(close_pipes)
    struct pipes pl = {{-1, -1}, {-1, -1}, {-1, -1}};
    int rc;

    if (pipe2(pl.in, O_CLOEXEC) < 0 || pipe2(pl.out, O_CLOEXEC) < 0 ||
        open_err(&pl, o->err) < 0)
        return mo_fail_sys(e, "pipes");
    rc = open_streams(mo_guard_loop(p->g), &pl, io, e);
    if (rc == 0)
        rc = spawn_child(p, o, &pl, e);
    if (rc == 0)
        rc = watch_exit(p, e);
    if (rc < 0)
        drop_streams(io);
    return rc;
}

int mo_proc_start(struct mo_guard *g, const struct mo_proc_opts *o,
                  const struct mo_proc_cb *cb, void *ctx, struct mo_proc **out,
                  struct mo_proc_io *io, struct mo_err *e)
{
    struct mo_proc *p = mo_new(struct mo_proc);
    int rc;

    *io = (struct mo_proc_io){.io = NULL};
    if (!p)
        return mo_fail(e, MO_ENOMEM, "child '%s'", o->file);
    p->g = g;
    p->cb = cb;
    p->ctx = ctx;
    p->eof_ms = o->eof_ms ? o->eof_ms : MO_PROC_EOF_MS;
    p->term_ms = o->term_ms ? o->term_ms : MO_PROC_TERM_MS;
    mo_timer_init(&p->grace, on_grace);
    rc = start_child(p, o, io, e);
    if (rc < 0)
        mo_free(p);
    else
        *out = p;
    return rc;
}
