#include "toolbox/keeper.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "toolbox/tree.h"

#define GRACE_MS   40 /* for the last process of a pipeline to end */
#define ROUND_NS   5000000L
#define ROUNDS_MAX 400
#define FDS_MAX    4096 /* closed one by one if close_range is missing */

extern char **environ;

struct keeper {
    const struct tb_start *s;
    pid_t command;
    bool ended, told;
};

static void send_report(const struct tb_start *s, enum tb_report_kind kind,
                        int value)
{
    struct tb_report r = {(int32_t)kind, value};
    ssize_t n;

    do {
        n = write(s->report, &r, sizeof(r));
    } while (n < 0 && errno == EINTR);
}

/* --- the command --------------------------------------------------------- */

static void default_signals(void)
{
    struct sigaction dfl = {.sa_handler = SIG_DFL};
    sigset_t none;

    (void)sigaction(SIGPIPE, &dfl, NULL);
    (void)sigaction(SIGXFSZ, &dfl, NULL);
    (void)sigemptyset(&none);
    (void)sigprocmask(SIG_SETMASK, &none, NULL);
}

/* Commands have no openat2: the box's own filter cannot see whether it creates
 * a setuid file (codec/seccomp.h), and we need it. In a box this must work. */
static bool drop_openat2(void)
{
    enum { LOAD = 0x20, IF_EQUAL = 0x15, RETURN = 0x06 }; /* linux/filter.h */
    struct insn {
        uint16_t code;
        uint8_t then, otherwise; /* instructions to skip */
        uint32_t k;
    } v[] = {{LOAD, 0, 0, 0}, /* the number of the call */
             {IF_EQUAL, 0, 1, SYS_openat2},
             {RETURN, 0, 0, 0x00050000u | ENOSYS}, /* SECCOMP_RET_ERRNO */
             {RETURN, 0, 0, 0x7fff0000u}};         /* SECCOMP_RET_ALLOW */
    struct {
        unsigned short n;
        struct insn *v;
    } program = {sizeof(v) / sizeof(v[0]), v};

    return syscall(SYS_seccomp, 1 /* SECCOMP_SET_MODE_FILTER */, 0, &program) ==
               0 ||
           prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) != 1;
}

static bool give_channel(const struct tb_start *s)
{
    return !s->channel || fcntl(s->channel, F_SETFD, 0) == 0;
}

static bool limit_data(uint64_t bytes)
{
    uint64_t limits[] = {bytes, bytes}; /* soft and hard, struct rlimit64 */

    return !bytes || syscall(SYS_prlimit64, 0, RLIMIT_DATA, limits, NULL) == 0;
}

__attribute__((noreturn)) static void be_command(const struct tb_start *s)
{
    (void)setsid();
    default_signals();
    environ = s->env;
    if (dup2(s->in, 0) >= 0 && dup2(s->out, 1) >= 0 && dup2(s->err, 2) >= 0 &&
        fchdir(s->cwd) == 0 && give_channel(s) && limit_data(s->data) &&
        drop_openat2())
        (void)execvp(s->argv[0], s->argv);
    send_report(s, TB_NO_EXEC, errno);
    _exit(127);
}

/* --- the keeper ---------------------------------------------------------- */

static bool is_kept(const struct tb_start *s, int fd)
{
    return fd == s->in || fd == s->out || fd == s->err || fd == s->cwd ||
           fd == s->order || fd == s->report || (fd && fd == s->channel);
}

/* Close pipes that the keeper inherited, or their readers would wait for it. */
static void close_others(const struct tb_start *s)
{
    int top = 2;

    for (int fd = 0; fd < FDS_MAX; fd++)
        top = is_kept(s, fd) ? fd : top;
    if (syscall(SYS_close_range, top + 1, ~0U, 0) < 0)
        top = FDS_MAX;
    for (int fd = 0; fd <= top; fd++) {
        if (!is_kept(s, fd))
            (void)close(fd);
    }
}

/* Reap children; exit when nothing is left below. */
static void reap_children(struct keeper *k)
{
    for (;;) {
        int status;
        pid_t pid = waitpid(-1, &status, WNOHANG);

        if (pid == 0 || (pid < 0 && errno != ECHILD))
            return;
        if (pid < 0)
            _exit(0);
        if (pid != k->command)
            continue;
        k->ended = true;
        send_report(k->s, TB_ENDED, status);
    }
}

__attribute__((noreturn)) static void slay(struct keeper *k)
{
    struct timespec pause = {0, ROUND_NS};

    for (int i = 0; i < ROUNDS_MAX; i++) {
        if (!k->ended)
            (void)kill(-k->command, SIGKILL);
        if (tb_tree_kill(getpid(), NULL, 0) < 0)
            break;
        reap_children(k);
        (void)nanosleep(&pause, NULL);
    }
    _exit(1);
}

static int child_signals(void)
{
    sigset_t set;

    (void)sigemptyset(&set);
    (void)sigaddset(&set, SIGCHLD);
    (void)sigprocmask(SIG_BLOCK, &set, NULL);
    return signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
}

__attribute__((noreturn)) static void keep(struct keeper *k, int signals)
{
    struct pollfd fds[] = {{.fd = k->s->order, .events = POLLIN},
                           {.fd = signals, .events = POLLIN}};

    for (;;) {
        struct signalfd_siginfo info;
        bool waits;
        int n;

        reap_children(k);
        waits = k->ended && !k->told;
        n = poll(fds, 2, waits ? GRACE_MS : -1);
        if (n == 0 && waits) {
            k->told = true;
            send_report(k->s, TB_LEFT, 0);
        }
        if (n <= 0)
            continue;
        if (fds[0].revents)
            slay(k);
        while (read(signals, &info, sizeof(info)) > 0)
            continue;
    }
}

__attribute__((noreturn)) static void be_keeper(const struct tb_start *s)
{
    struct keeper k = {.s = s};
    int signals;

    close_others(s);
    (void)prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0);
    (void)prctl(PR_SET_NAME, "mo-keeper", 0, 0, 0);
    signals = child_signals();
    k.command = signals < 0 ? -1 : fork();
    if (k.command == 0)
        be_command(s);
    if (k.command < 0) {
        send_report(s, TB_NO_EXEC, errno);
        _exit(1);
    }
    send_report(s, TB_STARTED, k.command);
    (void)close(s->in);
    (void)close(s->out);
    (void)close(s->err);
    (void)close(s->cwd);
    if (s->channel)
        (void)close(s->channel);
    keep(&k, signals);
}

pid_t tb_keeper_start(const struct tb_start *s)
{
    pid_t pid = fork();

    if (pid == 0)
        be_keeper(s);
    return pid;
}
