#include "launcher/hold.h"

#include <errno.h>
#include <linux/seccomp.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/str.h"
#include "codec/seccomp.h"

#define SIGNAL_BASE 128
#define LOOK_NS     10000000 /* between looks at unread output */
#define LOOKS_MAX   500
#define LINGER      10  /* looks: what was read is in pipes of the runtime */
#define LINGER_LATE 100 /* ... and its reader was slow */

static int set_limit(struct mo_span word)
{
    static const struct {
        const char *name;
        int which;
    } rows[] = {{"nofile", RLIMIT_NOFILE},
                {"nproc", RLIMIT_NPROC},
                {"fsize", RLIMIT_FSIZE}};
    struct mo_span name = mo_span_cut(&word, '=');
    struct rlimit now, lim;
    uint64_t v;

    if (!word.p || mo_span_u64(word, &v) < 0)
        return -1;
    lim.rlim_cur = lim.rlim_max = v;
    for (size_t i = 0; i < MO_COUNT(rows); i++) {
        if (!mo_span_is(name, rows[i].name))
            continue;
        if (getrlimit(rows[i].which, &now) < 0)
            return -1;
        if (now.rlim_max < lim.rlim_max) /* lower already */
            lim.rlim_cur = lim.rlim_max = now.rlim_max;
        return setrlimit(rows[i].which, &lim);
    }
    return -1;
}

/* A pod gets variables that tell where the cluster's API is. */
static void drop_cluster(void)
{
    extern char **environ;
    char **to = environ;

    for (char **from = environ; from && *from; from++)
        if (strncmp(*from, "KUBERNETES_", 11) != 0)
            *to++ = *from;
    if (to)
        *to = NULL;
}

static int fail(const char *what, int status)
{
    (void)fprintf(stderr, "mo-box: %s: %s\n", what, strerror(errno));
    return status;
}

/* As process 1: reaps everything until the program has ended. */
static int wait_for(pid_t program)
{
    int status;

    for (;;) {
        pid_t pid = waitpid(-1, &status, 0);

        if (pid < 0 && errno != EINTR)
            return fail("wait", 1);
        if (pid == program && WIFEXITED(status))
            return WEXITSTATUS(status);
        if (pid == program && WIFSIGNALED(status))
            return SIGNAL_BASE + WTERMSIG(status);
    }
}

/* The system calls of every other box, on top of what the runtime filters:
 * without a network no socket but AF_UNIX, whatever that of the cluster does.
 */
static int filter_calls(unsigned flags)
{
    struct sock_filter calls[MO_SECCOMP_BPF_MAX];
    struct sock_fprog prog = {
        .len = (unsigned short)mo_seccomp_bpf(MO_SECCOMP_HERE, flags, calls),
        .filter = calls};

    return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0
               ? -1
               : prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &prog, 0, 0);
}

static bool is_unread(int fd)
{
    int n = 0;

    return ioctl(fd, FIONREAD, &n) == 0 && n > 0;
}

/* containerd ends an attach when it sees the end of stdout or of stderr, and
 * drops what it has not read of the other. So both stay open until they were
 * read, and a little longer. A reader that never comes is not waited for. */
static int end_slowly(int status)
{
    const struct timespec look = {.tv_nsec = LOOK_NS};
    int i = 0, linger;

    for (; i < LOOKS_MAX && (is_unread(1) || is_unread(2)); i++)
        (void)nanosleep(&look, NULL);
    for (linger = i > 1 ? LINGER_LATE : LINGER; linger > 0; linger--)
        (void)nanosleep(&look, NULL);
    return status;
}

/* The program cannot reach into its init. */
static int run(char **argv, unsigned flags)
{
    pid_t pid = fork();

    if (pid < 0)
        return fail("fork", 126);
    if (pid > 0) {
        (void)prctl(PR_SET_DUMPABLE, 0, 0, 0, 0);
        return end_slowly(wait_for(pid));
    }
    if (filter_calls(flags) < 0)
        _exit(fail("seccomp", 126));
    (void)execvp(argv[0], argv);
    _exit(fail(argv[0], errno == ENOENT ? 127 : 126));
}

int mo_hold(int argc, char **argv)
{
    const struct rlimit no_core = {0, 0};
    unsigned flags = 0;
    ssize_t n;
    char byte;
    int i = 0;

    for (; i < argc && strcmp(argv[i], "--") != 0; i++) {
        if (strcmp(argv[i], "openat2") == 0)
            flags |= MO_SECCOMP_OPENAT2;
        else if (strcmp(argv[i], "network") == 0)
            flags |= MO_SECCOMP_NETWORK;
        else if (set_limit(mo_span_cstr(argv[i])) < 0)
            return fail(argv[i], 2);
    }
    if (i + 1 >= argc)
        return fail("no command", 2);
    for (;;) {
        n = read(0, &byte, 1);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return n < 0 ? fail("stdin", 1) : 0;
        if (byte == '\n')
            break;
        if (write(1, &byte, 1) != 1 || write(2, &byte, 1) != 1)
            return fail("stdout", 1);
    }
    (void)setrlimit(RLIMIT_CORE, &no_core);
    drop_cluster();
    return run(&argv[i + 1], flags);
}
