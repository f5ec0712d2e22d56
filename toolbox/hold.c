#include "toolbox/hold.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/str.h"

#define SIGNAL_BASE 128

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
    (void)fprintf(stderr, "mo-toolbox: %s: %s\n", what, strerror(errno));
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

static int run(char **argv)
{
    pid_t pid = fork();

    if (pid < 0)
        return fail("fork", 126);
    if (pid > 0)
        return wait_for(pid);
    (void)execvp(argv[0], argv);
    _exit(fail(argv[0], errno == ENOENT ? 127 : 126));
}

int tb_hold(int argc, char **argv)
{
    const struct rlimit no_core = {0, 0};
    ssize_t n;
    char byte;
    int i = 0;

    for (; i < argc && strcmp(argv[i], "--") != 0; i++)
        if (set_limit(mo_span_cstr(argv[i])) < 0)
            return fail(argv[i], 2);
    if (i + 1 >= argc)
        return fail("no command", 2);
    do
        n = read(0, &byte, 1);
    while (n < 0 && errno == EINTR);
    if (n <= 0)
        return n < 0 ? fail("stdin", 1) : 0;
    (void)setrlimit(RLIMIT_CORE, &no_core);
    drop_cluster();
    return run(&argv[i + 1]);
}
