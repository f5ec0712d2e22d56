#include "launcher/run.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "base/clock.h"
#include "base/mem.h"
#include "codec/ca_files.h"
#include "launcher/confine.h"
#include "launcher/kernel.h"
#include "launcher/view.h"

#define NAMESPACES                                                             \
    (CLONE_NEWNS | CLONE_NEWPID | CLONE_NEWNET | CLONE_NEWIPC | CLONE_NEWUTS | \
     CLONE_NEWCGROUP)

/* A box with a network stays in the keeper's namespace (net.h). */
static uint64_t namespaces_of(const struct mo_boxreq *r)
{
    return *r->ports ? NAMESPACES & ~(uint64_t)CLONE_NEWNET : NAMESPACES;
}

/* Descriptors of the first process after arrange_fds(). */
enum { FD_FAIL = 3, FD_STATUS, FD_LIFE, FD_PROGRAM, FD_END };

#define HIGH_FD      64 /* above those in use */
#define SEARCH_PATH  "/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin"
#define EXIT_NOT_RUN 127

/* The pipes shared by both sides of the clone. */
struct birth {
    const struct mo_boxreq *r;
    const struct mo_cg *cg;
    struct mo_confine confine;
    int in[2], out[2], err[2]; /* of the program */
    int fail[2];               /* a struct mo_err if the set-up failed */
    int status[2];             /* an int as of waitpid when it ended */
    int life[2];               /* end of file when the keeper dies */
    int program;
};

/* --- in the box ---------------------------------------------------------- */

static void child_fail(const struct mo_err *e)
{
    ssize_t n = write(FD_FAIL, e, sizeof(*e));

    _exit(n < 0 ? EXIT_NOT_RUN + 1 : EXIT_NOT_RUN);
}

/* Move descriptors to their numbers and close all others. */
static int arrange_fds(const struct birth *b)
{
    const int from[FD_END] = {b->in[0],     b->out[1],  b->err[1], b->fail[1],
                              b->status[1], b->life[0], b->program};
    int high[FD_END];

    for (int i = 0; i < FD_END; i++)
        high[i] = from[i] < 0 ? -1 : fcntl(from[i], F_DUPFD_CLOEXEC, HIGH_FD);
    for (int i = 0; i < FD_END; i++) {
        if (high[i] < 0)
            continue;
        if (i <= 2 ? dup2(high[i], i) < 0 : dup3(high[i], i, O_CLOEXEC) < 0)
            return -1;
    }
    return k_close_range(b->program < 0 ? FD_PROGRAM : FD_END, ~0u);
}

static void default_signals(void)
{
    sigset_t none;

    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    for (int s = 1; s < 32; s++)
        signal(s, SIG_DFL);
}

static struct mo_span search_path(char *const *env)
{
    for (size_t i = 0; env[i]; i++)
        if (strncmp(env[i], "PATH=", 5) == 0)
            return mo_span_cstr(env[i] + 5);
    return MO_SPAN(SEARCH_PATH);
}

static void exec_path(char *const *argv, char *const *env)
{
    struct mo_span rest = search_path(env);
    char file[MO_BOXREQ_PATH_MAX];

    if (strchr(argv[0], '/')) {
        execve(argv[0], argv, env);
        return;
    }
    errno = ENOENT;
    while (rest.p) {
        struct mo_span dir = mo_span_cut(&rest, ':');

        snprintf(file, sizeof(file), "%.*s/%s", (int)dir.n, dir.p, argv[0]);
        execve(file, argv, env);
        if (errno != ENOENT && errno != ENOTDIR)
            return;
    }
}

static bool has_variable(char *const *env, const char *other)
{
    size_t n = strcspn(other, "=") + 1;

    for (size_t i = 0; env[i]; i++)
        if (strncmp(env[i], other, n) == 0)
            return true;
    return false;
}

/* The request's, and those above if the box has its own certificates. */
static void fill_env(const struct birth *b, const char **out)
{
    size_t n = 0;

    while (b->r->env[n]) {
        out[n] = b->r->env[n];
        n++;
    }
    out[n] = NULL;
    if (access(MO_CA_PATH, R_OK) < 0)
        return;
    for (size_t i = 0; mo_ca_env[i]; i++) {
        if (has_variable((char *const *)(uintptr_t)b->r->env, mo_ca_env[i]))
            continue;
        out[n++] = mo_ca_env[i];
        out[n] = NULL;
    }
}

/* Exec the program; does not return. */
static void exec_program(const struct birth *b)
{
    const char *words[MO_BOXREQ_WORDS + MO_CA_VARIABLES + 1];
    char *const *argv = (char *const *)(uintptr_t)b->r->argv;
    char *const *env = (char *const *)(uintptr_t)words;
    struct mo_err e;

    fill_env(b, words);
    setsid();
    if (b->program >= 0)
        syscall(SYS_execveat, FD_PROGRAM, "", argv, env, AT_EMPTY_PATH);
    else
        exec_path(argv, env);
    mo_fail_sys(&e, "cannot run %s", argv[0]);
    e.code = MO_ENOTFOUND;
    child_fail(&e);
}

/* Process 1: reap all children, report the program's. Holds only the status
 * pipe. */
static void reap_until_end(pid_t program)
{
    int status = 0;
    pid_t pid;

    for (int fd = 0; fd < FD_END; fd++)
        if (fd != FD_STATUS)
            close(fd);
    do {
        pid = waitpid(-1, &status, 0);
    } while (pid != program && !(pid < 0 && errno == ECHILD));
    _exit(write(FD_STATUS, &status, sizeof(status)) < 0);
}

static void run_first_process(const struct birth *b)
{
    struct mo_confine c = b->confine;
    struct mo_err e;
    pid_t pid;
    int rc = mo_confine_schedule(&e); /* groups may refuse realtime processes */

    if (rc == 0)
        rc = mo_cg_join(b->cg, &e);
    if (arrange_fds(b) < 0)
        _exit(EXIT_NOT_RUN);
    if (rc < 0)
        child_fail(&e);
    c.life = FD_LIFE;
    default_signals();
    if (mo_confine(&c, &e) < 0)
        child_fail(&e);
    pid = fork();
    if (pid == 0)
        exec_program(b);
    if (pid < 0) {
        mo_fail_sys(&e, "fork");
        child_fail(&e);
    }
    reap_until_end(pid);
}

/* --- in the keeper ------------------------------------------------------- */

static void birth_close(struct birth *b)
{
    int *pairs[] = {b->in, b->out, b->err, b->fail, b->status, b->life};

    for (size_t i = 0; i < MO_COUNT(pairs); i++)
        for (int k = 0; k < 2; k++)
            mo_close_fd(&pairs[i][k]);
}

static int birth_open(struct birth *b, struct mo_err *e)
{
    int *pairs[] = {b->in, b->out, b->err, b->fail, b->status, b->life};

    for (size_t i = 0; i < MO_COUNT(pairs); i++)
        pairs[i][0] = pairs[i][1] = -1;
    for (size_t i = 0; i < MO_COUNT(pairs); i++)
        if (pipe2(pairs[i], O_CLOEXEC) < 0)
            return mo_fail_sys(e, "pipe");
    return 0;
}

/* End of file: the program runs. A struct mo_err: it does not. */
static int wait_for_exec(int fail, struct mo_err *e)
{
    struct pollfd p = {.fd = fail, .events = POLLIN};
    struct mo_err why;
    ssize_t n;

    if (poll(&p, 1, MO_RUN_START_MS) <= 0)
        return mo_fail(e, MO_ETIMEOUT, "the box did not start in %d s",
                       MO_RUN_START_MS / 1000);
    n = read(fail, &why, sizeof(why));
    if (n == 0)
        return 0;
    if (n != (ssize_t)sizeof(why))
        return mo_fail(e, MO_EIO, "the box died during its set-up");
    why.msg[sizeof(why.msg) - 1] = '\0';
    if (e)
        *e = why;
    return why.code < 0 ? why.code : MO_EIO;
}

/* x owns the keeper's ends from here on. */
static void take_ends(struct mo_run *x, struct birth *b)
{
    mo_close_fd(&b->in[0]);
    mo_close_fd(&b->out[1]);
    mo_close_fd(&b->err[1]);
    mo_close_fd(&b->fail[1]);
    mo_close_fd(&b->status[1]);
    mo_close_fd(&b->life[0]);
    x->std[0] = mo_take_fd(&b->in[1]);
    x->std[1] = mo_take_fd(&b->out[0]);
    x->std[2] = mo_take_fd(&b->err[0]);
    x->status = mo_take_fd(&b->status[0]);
    x->life = mo_take_fd(&b->life[1]);
}

void mo_run_init(struct mo_run *x)
{
    *x = (struct mo_run){
        .pidfd = -1, .status = -1, .life = -1, .std = {-1, -1, -1}};
}

static uint64_t count_ooms(struct mo_cg *g)
{
    struct mo_boxstats s;

    mo_cg_stats(g, &s);
    return s.oom_kills;
}

int mo_run_start(struct mo_run *x, const struct mo_boxreq *r, struct mo_cg *g,
                 uid_t uid, bool root, int program, struct mo_err *e)
{
    struct birth b = {.r = r,
                      .cg = g,
                      .confine = {.r = r, .uid = uid, .root = root},
                      .program = program};
    int rc = birth_open(&b, e);

    mo_run_init(x);
    x->ooms = count_ooms(g);
    if (rc == 0) {
        x->pid = k_clone(namespaces_of(r), mo_cg_clone_fd(g), &x->pidfd);
        if (x->pid == 0)
            run_first_process(&b);
        if (x->pid < 0)
            rc = mo_fail_sys(e, "clone");
    }
    if (rc == 0) {
        take_ends(x, &b);
        rc = wait_for_exec(b.fail[0], e);
    }
    birth_close(&b);
    if (rc < 0 && x->pidfd >= 0) {
        struct mo_boxend end;

        mo_run_kill(x, g);
        mo_run_reap(x, g, &end);
    }
    return rc;
}

void mo_run_kill(struct mo_run *x, struct mo_cg *g)
{
    siginfo_t si;

    if (x->pidfd < 0)
        return;
    mo_cg_kill(g);
    k_pidfd_kill(x->pidfd, SIGKILL); /* and with it the namespace */
    while (waitid((idtype_t)K_P_PIDFD, (id_t)x->pidfd, &si, WEXITED | WNOWAIT) <
               0 &&
           errno == EINTR) {
    }
}

static void read_end(struct mo_run *x, struct mo_cg *g, struct mo_boxend *out)
{
    int status = 0;

    *out = (struct mo_boxend){.cause = MO_BOXEND_KILLED, .signal = SIGKILL};
    if (read(x->status, &status, sizeof(status)) == (ssize_t)sizeof(status)) {
        out->signal = WIFSIGNALED(status) ? (unsigned)WTERMSIG(status) : 0;
        if (WIFEXITED(status)) {
            out->cause = MO_BOXEND_EXITED;
            out->code = (unsigned)WEXITSTATUS(status);
        }
    }
    if (out->signal == SIGKILL && count_ooms(g) > x->ooms)
        out->cause = MO_BOXEND_OOM;
}

void mo_run_reap(struct mo_run *x, struct mo_cg *g, struct mo_boxend *out)
{
    siginfo_t si;

    while (waitid((idtype_t)K_P_PIDFD, (id_t)x->pidfd, &si, WEXITED) < 0 &&
           errno == EINTR) {
    }
    read_end(x, g, out);
    for (int i = 0; i < 3; i++)
        mo_close_fd(&x->std[i]);
    mo_close_fd(&x->status);
    mo_close_fd(&x->life);
    mo_close_fd(&x->pidfd);
    x->pid = 0;
}
