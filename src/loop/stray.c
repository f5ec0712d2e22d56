#include "loop/stray.h"

#include <dirent.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/str.h"

#define ROUNDS_MAX  16 /* a process that forks faster is not ended */
#define ENVIRON_MAX 131072

void mo_stray_var(uint64_t key, uint32_t mark, char out[MO_STRAY_MAX])
{
    (void)snprintf(out, MO_STRAY_MAX, MO_STRAY_VAR "=%016" PRIx64 "-", key);
    if (mark != MO_STRAY_ALL)
        (void)snprintf(out + strlen(out), MO_STRAY_MAX - strlen(out),
                       "%" PRIu32, mark);
}

int mo_stray_space(pid_t pid)
{
    char path[40] = "/proc/self/ns/mnt";

    if (pid)
        (void)snprintf(path, sizeof(path), "/proc/%d/ns/mnt", (int)pid);
    return open(path, O_RDONLY | O_CLOEXEC);
}

/* The environment of a process; empty: it cannot be read. */
static struct mo_span read_environ(int proc, char *buf, size_t max)
{
    mo_autofd int fd = openat(proc, "environ", O_RDONLY | O_CLOEXEC);
    size_t n = 0;

    while (fd >= 0 && n < max) {
        ssize_t got = read(fd, buf + n, max - n);

        if (got <= 0)
            break;
        n += (size_t)got;
    }
    return mo_span(buf, n);
}

static bool has_var(struct mo_span env, struct mo_span want, bool whole)
{

    while (env.n) {
        struct mo_span one = mo_span_cut(&env, '\0');

        if (whole ? mo_span_eq(one, want) : mo_span_starts(one, want))
            return true;
    }
    return false;
}

static bool is_in_space(int proc, const struct mo_stray *s)
{
    struct stat st;

    if (s->nspaces == 0 || fstatat(proc, "ns/mnt", &st, 0) < 0)
        return false;
    for (size_t i = 0; i < s->nspaces; i++)
        if (s->spaces[i] && s->spaces[i] == st.st_ino)
            return true;
    return false;
}

static bool is_left_behind(int proc, const struct mo_stray *s)
{
    static char env[ENVIRON_MAX];
    char var[MO_STRAY_MAX];

    mo_stray_var(s->key, s->mark, var);
    return is_in_space(proc, s) ||
           has_var(read_environ(proc, env, sizeof(env)), mo_span_cstr(var),
                   s->mark != MO_STRAY_ALL);
}

/* The directory is opened before the descriptor of the process and read after
 * it: both are the same process, or the reading fails. */
static bool kill_if_left_behind(int all, const char *pid,
                                const struct mo_stray *s)
{
    mo_autofd int proc =
        openat(all, pid, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
    mo_autofd int fd = -1;
    struct stat st;

    if (proc < 0 || fstat(proc, &st) < 0 || st.st_uid != geteuid() ||
        strtol(pid, NULL, 10) == (long)getpid())
        return false;
    fd = (int)syscall(SYS_pidfd_open, (pid_t)strtol(pid, NULL, 10), 0);
    if (fd < 0 || !is_left_behind(proc, s))
        return false;
    return syscall(SYS_pidfd_send_signal, fd, SIGKILL, NULL, 0) == 0;
}

static unsigned kill_found(const struct mo_stray *s)
{
    DIR *d = opendir("/proc");
    unsigned n = 0;

    for (const struct dirent *e = d ? readdir(d) : NULL; e; e = readdir(d)) {
        if (e->d_name[0] >= '1' && e->d_name[0] <= '9')
            n += kill_if_left_behind(dirfd(d), e->d_name, s);
    }
    if (d)
        (void)closedir(d);
    return n;
}

void mo_stray_kill(const struct mo_stray *s)
{
    for (unsigned i = 0; i < ROUNDS_MAX; i++)
        if (kill_found(s) == 0)
            return;
}
