#include "loop/spawn.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/str.h"
#include "loop/hide.h"

/* Untouched pages cost nothing. The guard page turns an overflow into a crash
 * of the child instead of corrupting our memory. */
#define STACK_SIZE ((size_t)256 * 1024)
#define STACK_GUARD                                                            \
    ((size_t)64 * 1024) /* at least one page on every machine                  \
                         */

/* The kernel's signal set, not libc's: libc hides two signals, which must not
 * reach the child either. */
#define KSIGSET 8
#define KSIGMAX 64

enum step {
    STEP_ORPHAN,
    STEP_SIGNALS,
    STEP_SESSION,
    STEP_STDIO,
    STEP_HIDE,
    STEP_CHDIR,
    STEP_MEMORY,
    STEP_ENLIST,
    STEP_CONFINE,
    STEP_CLOSE,
    STEP_UNMASK,
    STEP_EXEC,
    STEP_COUNT
};

/* Shared with the child, which records its progress here. */
struct birth {
    const struct mo_spawn *s;
    const char *path;
    pid_t parent;
    struct mo_hide_plan hide;
    volatile int step;
    volatile int err; /* 0: the program runs */
};

/* --- in the child: functions return 0 or an errno ------------------------ */

/* Also check that the parent did not die before the request. */
MO_CHILD_SIDE static int tie_to_parent(struct birth *b)
{
    if (b->s->outlive)
        return 0;
    if (prctl(PR_SET_PDEATHSIG, SIGKILL) < 0)
        return errno;
    return getppid() == b->parent ? 0 : ESRCH;
}

/* Runs before signals are unblocked: a handler of ours must never run here, in
 * memory that is not the child's. All zeroes is SIG_DFL on every machine. */
MO_CHILD_SIDE static int default_signals(struct birth *b)
{
    static const uint64_t dfl[8];

    (void)b;
    for (int sig = 1; sig <= KSIGMAX; sig++)
        (void)syscall(SYS_rt_sigaction, sig, dfl, NULL, KSIGSET);
    return 0;
}

MO_CHILD_SIDE static int own_session(struct birth *b)
{
    if (b->s->foreground)
        return 0;
    return setsid() < 0 ? errno : 0;
}

/* Copy all three to high numbers first, then down: they may overlap. */
MO_CHILD_SIDE static int wire_stdio(struct birth *b)
{
    int high[3];

    for (int i = 0; i < 3; i++) {
        high[i] = fcntl(b->s->fds[i], F_DUPFD_CLOEXEC, 3);
        if (high[i] < 0)
            return errno;
    }
    for (int i = 0; i < 3; i++) {
        if (syscall(SYS_dup3, high[i], i, 0) < 0)
            return errno;
    }
    return 0;
}

MO_CHILD_SIDE static int hide_dirs(struct birth *b)
{
    return mo_hide_enter(&b->hide);
}

MO_CHILD_SIDE static int confine(struct birth *b)
{
    return mo_hide_confine(&b->hide);
}

MO_CHILD_SIDE static int enter_cwd(struct birth *b)
{
    return b->s->cwd && chdir(b->s->cwd) < 0 ? errno : 0;
}

MO_CHILD_SIDE static int enlist(struct birth *b)
{
    return b->s->enlist ? b->s->enlist(b->s->ctx) : 0;
}

MO_CHILD_SIDE static int close_rest(struct birth *b)
{
    if (b->s->keep > 3)
        (void)syscall(SYS_close_range, 3, b->s->keep - 1, 0);
    closefrom(b->s->keep ? b->s->keep + 1 : 3);
    return 0;
}

/* Limits are per process, so this does not affect the parent although memory is
 * still shared. Not RLIMIT_AS: runtimes reserve gigabytes of address space that
 * they never use. */
MO_CHILD_SIDE static int limit_memory(struct birth *b)
{
    struct rlimit r = {b->s->data_max, b->s->data_max};

    if (b->s->data_max == 0)
        return 0;
    return syscall(SYS_prlimit64, 0, RLIMIT_DATA, &r, NULL) < 0 ? errno : 0;
}

MO_CHILD_SIDE static int unmask(struct birth *b)
{
    static const uint64_t none;

    (void)b;
    return syscall(SYS_rt_sigprocmask, SIG_SETMASK, &none, NULL, KSIGSET) < 0
               ? errno
               : 0;
}

MO_CHILD_SIDE static int run(struct birth *b)
{
    static const char *const empty[] = {NULL};
    union { /* execve() does not write to argv, but its type is not const */
        const char *const *given;
        char *const *taken;
    } argv = {.given = b->s->argv},
      env = {.given = b->s->env ? b->s->env : empty};

    (void)execve(b->path, argv.taken, env.taken);
    return errno;
}

MO_CHILD_SIDE static int child_main(void *arg)
{
    static int (*const steps[STEP_COUNT])(struct birth *) = {
        [STEP_ORPHAN] = tie_to_parent, [STEP_SIGNALS] = default_signals,
        [STEP_SESSION] = own_session,  [STEP_STDIO] = wire_stdio,
        [STEP_HIDE] = hide_dirs,       [STEP_CHDIR] = enter_cwd,
        [STEP_MEMORY] = limit_memory,  [STEP_ENLIST] = enlist,
        [STEP_CONFINE] = confine,      [STEP_CLOSE] = close_rest,
        [STEP_UNMASK] = unmask,        [STEP_EXEC] = run,
    };
    struct birth *b = arg;

    for (int i = 0; i < STEP_COUNT; i++) {
        int err = steps[i](b);

        b->step = i;
        if (err) {
            b->err = err;
            break;
        }
    }
    return 127;
}

/* --- error messages ------------------------------------------------------ */

static int code_of(int err)
{
    static const struct {
        int err, code;
    } table[] = {
        {ENOENT, MO_ENOTFOUND},     {ENOTDIR, MO_ENOTFOUND},
        {EACCES, MO_EINVAL},        {EPERM, MO_EINVAL},
        {ENOEXEC, MO_EINVAL},       {ELOOP, MO_EINVAL},
        {ENAMETOOLONG, MO_ETOOBIG}, {E2BIG, MO_ETOOBIG},
        {EAGAIN, MO_EBUSY},         {ENOMEM, MO_ENOMEM},
    };

    for (size_t i = 0; i < MO_COUNT(table); i++) {
        if (table[i].err == err)
            return table[i].code;
    }
    return MO_EIO;
}

static int explain_exec(const struct birth *b, struct mo_err *e)
{
    errno = b->err;
    if (b->err == ENOENT && b->s->cwd && b->path[0] != '/')
        return mo_fail_sys(e, "program '%s' in '%s'", b->path, b->s->cwd);
    if (b->err == ENOENT && access(b->path, F_OK) == 0) {
        errno = ENOENT;
        return mo_fail_sys(e, "interpreter of program '%s'", b->path);
    }
    errno = b->err;
    return mo_fail_sys(e, "program '%s'", b->path);
}

static int explain_failure(const struct birth *b, struct mo_err *e)
{
    static const char *const what[STEP_COUNT] = {
        [STEP_ORPHAN] = "parent-death signal",
        [STEP_SIGNALS] = "signals",
        [STEP_SESSION] = "new session",
        [STEP_STDIO] = "stdio",
        [STEP_HIDE] = "hide directories",
        [STEP_MEMORY] = "memory limit",
        [STEP_ENLIST] = "guardian",
        [STEP_CONFINE] = "capabilities",
        [STEP_CLOSE] = "descriptors",
        [STEP_UNMASK] = "signal mask",
    };
    int code = b->step == STEP_ENLIST ? MO_EUNAVAIL : code_of(b->err);

    errno = b->err;
    if (b->step == STEP_EXEC)
        (void)explain_exec(b, e);
    else if (b->step == STEP_CHDIR)
        (void)mo_fail_sys(e, "working directory '%s'", b->s->cwd);
    else
        (void)mo_fail_sys(e, "start '%s': %s", b->path, what[b->step]);
    if (e)
        e->code = code;
    return code;
}

/* --- in the parent ------------------------------------------------------- */

bool mo_spawn_ended(int pidfd, int flags, struct mo_exit *x)
{
    siginfo_t si = {.si_pid = 0};
    int rc;

    do {
        rc = waitid(P_PIDFD, (id_t)pidfd, &si, WEXITED | flags);
    } while (rc < 0 && errno == EINTR);
    if (rc < 0 || si.si_pid == 0)
        return false;
    x->code = si.si_code == CLD_EXITED ? si.si_status : -1;
    x->signal = si.si_code == CLD_EXITED ? 0 : si.si_status;
    return true;
}

void mo_exit_text(struct mo_exit x, char out[MO_EXIT_TEXT_MAX])
{
    if (x.signal)
        (void)snprintf(out, MO_EXIT_TEXT_MAX, "killed by signal %d (%s)",
                       x.signal, strsignal(x.signal));
    else
        (void)snprintf(out, MO_EXIT_TEXT_MAX, "exit %d", x.code);
}

/* Block all signals: the child must not run a handler in our memory. */
static pid_t clone_masked(struct birth *b, char *stack_top, int *pidfd)
{
    static const uint64_t all = ~(uint64_t)0;
    uint64_t old = 0;
    pid_t pid;
    int keep;

    (void)syscall(SYS_rt_sigprocmask, SIG_SETMASK, &all, &old, KSIGSET);
    pid = clone(child_main, stack_top,
                CLONE_VM | CLONE_VFORK | CLONE_PIDFD | SIGCHLD, b, pidfd);
    keep = errno;
    (void)syscall(SYS_rt_sigprocmask, SIG_SETMASK, &old, NULL, KSIGSET);
    errno = keep;
    return pid;
}

static int clone_child(struct birth *b, pid_t *pid, int *pidfd,
                       struct mo_err *e)
{
    char *stack = mmap(NULL, STACK_GUARD + STACK_SIZE, PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_ANONYMOUS | MAP_STACK, -1, 0);
    int rc = 0;

    if (stack == MAP_FAILED)
        return mo_fail(e, MO_ENOMEM, "start '%s': no memory", b->path);
    (void)mprotect(stack, STACK_GUARD, PROT_NONE);
    *pid = clone_masked(b, stack + STACK_GUARD + STACK_SIZE, pidfd);
    if (*pid < 0) {
        rc = code_of(errno);
        (void)mo_fail_sys(e, "start '%s'", b->path);
        if (e)
            e->code = rc;
    }
    (void)munmap(stack, STACK_GUARD + STACK_SIZE);
    return rc;
}

/* The child ended before it ran the program and recorded why. A child that was
 * killed on the way records nothing and counts as a program that died. */
static int reap_failed(const struct birth *b, pid_t pid, int pidfd,
                       struct mo_err *e)
{
    if (b->s->delist)
        b->s->delist(b->s->ctx, pid);
    (void)mo_spawn_ended(pidfd, 0, &(struct mo_exit){0});
    (void)close(pidfd);
    return explain_failure(b, e);
}

/* One attempt. refused: the kernel does not allow the namespaces, which is not
 * an error yet. */
static int try_start(struct birth *b, pid_t *pid, int *pidfd, bool *refused,
                     struct mo_err *e)
{
    int rc;

    b->err = 0;
    b->step = 0;
    rc = clone_child(b, pid, pidfd, e);
    if (rc < 0)
        *pidfd = -1; /* a failing clone() may have written to it */
    if (rc < 0 || !b->err)
        return rc;
    *refused = b->step == STEP_HIDE && mo_hide_is_refusal(b->err);
    return reap_failed(b, *pid, mo_take_fd(pidfd), e);
}

int mo_spawn(const struct mo_spawn *s, pid_t *pid, int *pidfd, struct mo_err *e)
{
    char path[MO_SPAWN_PATH_MAX];
    struct birth b = {.s = s, .path = path, .parent = getpid()};
    bool refused = false;
    int rc = mo_spawn_find(s->file, s->env, path, e);

    *pidfd = -1;
    if (rc < 0)
        return rc;
    mo_hide_plan(&b.hide, s->hide);
    rc = try_start(&b, pid, pidfd, &refused, e);
    if (s->hide)
        s->hide->refused = refused ? b.err : 0;
    if (refused) {
        b.hide.spaces = false;
        rc = try_start(&b, pid, pidfd, &refused, e);
    }
    mo_hide_plan_fini(&b.hide);
    return rc;
}

/* --- PATH ---------------------------------------------------------------- */

static struct mo_span path_of(const char *const *env)
{
    for (; env && *env; env++) {
        if (strncmp(*env, "PATH=", 5) == 0)
            return mo_span_cstr(*env + 5);
    }
    return MO_SPAN(MO_SPAWN_PATH);
}

static bool is_runnable(const char *path, bool *seen)
{
    struct stat st;

    if (stat(path, &st) < 0)
        return false;
    *seen = true;
    return S_ISREG(st.st_mode) &&
           faccessat(AT_FDCWD, path, X_OK, AT_EACCESS) == 0;
}

static bool join_path(char out[MO_SPAWN_PATH_MAX], struct mo_span dir,
                      const char *file)
{
    int n =
        snprintf(out, MO_SPAWN_PATH_MAX, "%.*s/%s", (int)dir.n, dir.p, file);

    return n > 0 && n < MO_SPAWN_PATH_MAX;
}

int mo_spawn_find(const char *file, const char *const *env,
                  char out[MO_SPAWN_PATH_MAX], struct mo_err *e)
{
    struct mo_span rest = path_of(env);
    bool seen = false;

    if (!file[0])
        return mo_fail(e, MO_EINVAL, "a program without a name");
    if (strlen(file) >= MO_SPAWN_PATH_MAX)
        return mo_fail(e, MO_ETOOBIG, "program name of %zu bytes",
                       strlen(file));
    if (strchr(file, '/')) { /* execve() reports what is wrong with it */
        (void)snprintf(out, MO_SPAWN_PATH_MAX, "%s", file);
        return 0;
    }
    while (rest.p) {
        struct mo_span dir = mo_span_cut(&rest, ':');

        if (dir.n && dir.p[0] == '/' && dir.n < MO_SPAWN_PATH_MAX &&
            join_path(out, dir, file) && is_runnable(out, &seen))
            return 0;
    }
    if (seen)
        return mo_fail(e, MO_EINVAL, "'%s' in PATH is not executable", file);
    return mo_fail(e, MO_ENOTFOUND, "no such program '%s' in PATH", file);
}
