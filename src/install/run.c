#include "install/run.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "codec/text/visible.h"
#include "loop/hide.h"

#define STEP_MS 10000 /* a line while it says nothing */

/* --- opening -------------------------------------------------------------- */

/* The environment without what belongs to root's home. */
static int make_env(struct mo_runner *n, struct mo_err *e)
{
    static const char *const roots[] = {"HOME=", "XDG_", "USER=", "LOGNAME="};
    size_t count = 0, len = 0, home = strlen(n->user.home) + sizeof("HOME=");
    char *text;

    while (n->env[count])
        count++;
    n->own_env = mo_alloc((count + 2) * sizeof(*n->own_env) + home);
    if (!n->own_env)
        return mo_fail(e, MO_ENOMEM, "environment of npm");
    text = (char *)(n->own_env + count + 2);
    (void)snprintf(text, home, "HOME=%s", n->user.home);
    n->own_env[len++] = text;
    for (size_t i = 0; i < count; i++) {
        struct mo_span v = mo_span_cstr(n->env[i]);
        bool is_roots = false;

        for (size_t k = 0; k < MO_COUNT(roots); k++)
            is_roots |= mo_span_starts(v, mo_span_cstr(roots[k]));
        if (!is_roots)
            n->own_env[len++] = n->env[i];
    }
    n->own_env[len] = NULL;
    n->env = n->own_env;
    return 0;
}

int mo_runner_open(struct mo_runner *n, const struct mo_config *cfg, int say,
                   struct mo_err *e)
{
    sigset_t set;

    *n = (struct mo_runner){.env = (const char *const *)cfg->environ,
                            .user = n->user,
                            .say = say,
                            .signals = -1};
    if (n->user.uid && make_env(n, e) < 0)
        return e->code;
    (void)sigemptyset(&set);
    (void)sigaddset(&set, SIGINT);
    (void)sigaddset(&set, SIGTERM);
    (void)sigaddset(&set, SIGHUP);
    if (sigprocmask(SIG_BLOCK, &set, &n->was) < 0)
        return mo_fail_sys(e, "signals");
    n->signals = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
    return n->signals < 0 ? mo_fail_sys(e, "signals") : 0;
}

void mo_runner_close(struct mo_runner *n)
{
    mo_free(n->own_env);
    n->own_env = NULL;
    if (n->signals < 0)
        return;
    mo_close_fd(&n->signals);
    (void)sigprocmask(SIG_SETMASK, &n->was, NULL);
}

bool mo_runner_is_stopped(struct mo_runner *n)
{
    struct pollfd p = {.fd = n->signals, .events = POLLIN};

    return poll(&p, 1, 0) > 0; /* it stays readable */
}

/* --- running -------------------------------------------------------------- */

struct run {
    struct mo_runner *n;
    const struct mo_run *what;
    struct mo_buf *out;
    int fd[2]; /* our ends of its output and its errors; -1: closed */
    int pidfd;
    pid_t pid;
    uint64_t until; /* ns */
    uint64_t said;  /* ns, the last line of progress */
    struct mo_exit exit;
    int rc;
};

/* Its words go to the person, without control characters. */
static void take_error(struct run *r, struct mo_span text)
{
    struct mo_runner *n = r->n;
    mo_autobuf struct mo_buf b = {.max = 32768};

    n->ntail = mo_tail_add(n->tail, n->ntail, MO_RUN_TAIL_MAX, text);
    if (n->say < 0)
        return;
    mo_visible_text(&b, text);
    (void)mo_file_write_all(n->say, mo_buf_view(&b), NULL);
    r->said = mo_now_ns();
}

static void read_end(struct run *r, int i)
{
    char chunk[4096];
    ssize_t n = read(r->fd[i], chunk, sizeof(chunk));

    if (n < 0 && (errno == EINTR || errno == EAGAIN))
        return;
    if (n <= 0)
        mo_close_fd(&r->fd[i]);
    else if (i == 1)
        take_error(r, mo_span(chunk, (size_t)n));
    else
        (void)mo_buf_put(r->out, chunk, (size_t)n);
}

static void end_run(struct run *r, int rc)
{
    if (r->rc == 0)
        r->rc = rc;
    (void)kill(-r->pid, SIGKILL);
}

static void say_alive(struct run *r, uint64_t now)
{
    if (r->n->say < 0 || now - r->said < STEP_MS * MO_MS)
        return;
    (void)dprintf(r->n->say, "%s is still working\n", r->what->name);
    r->said = now;
}

/* Until it has ended and its output is read. */
static void attend(struct run *r)
{
    bool ended = false;

    while (!ended || r->fd[0] >= 0) {
        struct pollfd p[] = {
            {.fd = r->fd[0], .events = POLLIN},
            {.fd = r->fd[1], .events = POLLIN},
            {.fd = ended ? -1 : r->pidfd, .events = POLLIN},
            {.fd = r->rc ? -1 : r->n->signals, .events = POLLIN},
        };
        uint64_t now;

        (void)poll(p, MO_COUNT(p), 500);
        for (int i = 0; i < 2; i++) {
            if (p[i].revents)
                read_end(r, i);
        }
        now = mo_now_ns();
        say_alive(r, now);
        if (p[3].revents)
            end_run(r, MO_ECANCELED);
        if (now > r->until)
            end_run(r, MO_ETIMEOUT);
        if (mo_buf_err(r->out))
            end_run(r, MO_ETOOBIG);
        if (!ended && p[2].revents)
            ended = mo_spawn_ended(r->pidfd, WNOHANG, &r->exit);
        if (ended && r->rc) /* a grandchild may hold the output */
            mo_close_fd(&r->fd[0]);
    }
    if (r->fd[1] >= 0)
        read_end(r, 1);
    (void)kill(-r->pid, SIGKILL);
}

/* The last line of its errors that says something. */
static void last_words(const struct mo_runner *n, char out[240])
{
    struct mo_span rest = mo_span(n->tail, n->ntail), best = {NULL, 0};
    mo_autobuf struct mo_buf b = {.max = 1000};

    while (rest.p) {
        struct mo_span line = mo_span_trim(mo_span_cut(&rest, '\n'));

        if (!mo_span_strip(&line, MO_SPAN("npm error ")) &&
            !mo_span_strip(&line, MO_SPAN("npm ERR! ")) &&
            !mo_span_strip(&line, MO_SPAN("ERROR: ")))
            continue;
        if (line.n && !mo_span_starts(line, MO_SPAN("A complete log")) &&
            best.n == 0)
            best = line;
        else if (line.n && mo_span_starts(best, MO_SPAN("code ")))
            best = line;
    }
    mo_visible_name(&b, mo_span_head(best, 200));
    (void)snprintf(out, 240, "%s", mo_buf_cstr(&b));
}

static int judge_run(const struct run *r, struct mo_err *e)
{
    char how[MO_EXIT_TEXT_MAX], words[240];

    if (r->rc == MO_ECANCELED)
        return mo_fail(e, MO_ECANCELED, "interrupted; nothing was installed");
    if (r->rc == MO_ETIMEOUT)
        return mo_fail(e, MO_ETIMEOUT, "%s did not finish in time",
                       r->what->name);
    if (r->rc)
        return mo_fail(e, r->rc, "%s wrote too much", r->what->name);
    if (r->exit.code == 0)
        return 0;
    mo_exit_text(r->exit, how);
    last_words(r->n, words);
    return mo_fail(e, MO_EUNAVAIL, "%s failed (%s)%s%s", r->what->name, how,
                   words[0] ? ": " : "", words);
}

/* In the child: become the user for good. libc's calls would change every
 * thread of the process whose memory this is. The death signal is lost with the
 * credentials. */
MO_CHILD_SIDE static int become_user(void *ctx)
{
    const struct mo_run_user *u = ctx;

    if (u->uid == 0)
        return 0;
    if (syscall(SYS_setresuid, -1, 0, -1) < 0 || /* the caller may act as him */
        syscall(SYS_setgroups, 0, NULL) < 0 ||
        syscall(SYS_setresgid, u->gid, u->gid, u->gid) < 0 ||
        syscall(SYS_setresuid, u->uid, u->uid, u->uid) < 0 ||
        prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 ||
        prctl(PR_SET_PDEATHSIG, SIGKILL) < 0)
        return errno;
    return 0;
}

int mo_runner_do(struct mo_runner *n, const struct mo_run *what,
                 struct mo_buf *out, struct mo_err *e)
{
    int pipes[2][2] = {{-1, -1}, {-1, -1}}, rc = 0, say = n->say;
    mo_autofd int null = open("/dev/null", O_RDONLY | O_CLOEXEC);
    struct run r = {
        .n = n, .what = what, .out = out, .fd = {-1, -1}, .pidfd = -1};
    struct mo_spawn s = {.file = what->file,
                         .argv = what->argv,
                         .env = n->env,
                         .cwd = what->cwd,
                         .enlist = become_user,
                         .ctx = &n->user};

    n->ntail = 0;
    if (what->is_quiet)
        n->say = -1;
    for (int i = 0; rc == 0 && i < 2; i++) {
        if (pipe2(pipes[i], O_CLOEXEC) < 0)
            rc = mo_fail_sys(e, "pipe");
    }
    s.fds[0] = null;
    s.fds[1] = pipes[0][1];
    s.fds[2] = pipes[1][1];
    if (rc == 0)
        rc = mo_spawn(&s, &r.pid, &r.pidfd, e);
    mo_close_fd(&pipes[0][1]);
    mo_close_fd(&pipes[1][1]);
    if (rc == 0) {
        r.fd[0] = mo_take_fd(&pipes[0][0]);
        r.fd[1] = mo_take_fd(&pipes[1][0]);
        r.said = mo_now_ns();
        r.until = r.said + what->ms * MO_MS;
        attend(&r);
        rc = judge_run(&r, e);
    }
    mo_close_fd(&pipes[0][0]);
    mo_close_fd(&pipes[1][0]);
    mo_close_fd(&r.fd[0]);
    mo_close_fd(&r.fd[1]);
    mo_close_fd(&r.pidfd);
    n->say = say;
    return rc;
}
