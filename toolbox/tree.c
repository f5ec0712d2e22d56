#include "toolbox/tree.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/str.h"

#define PROCS_MAX 65536
#define STAT_MAX  512

struct proc {
    pid_t pid, parent;
    bool below; /* to be killed */
    bool dead;  /* a zombie */
};

struct table {
    struct proc *p;
    size_t n, cap;
};

/* "pid (any name) S parent ...": the name may contain anything, so the last
 * parenthesis counts. */
static bool read_stat(int dir, struct proc *out)
{
    mo_autofd int fd = openat(dir, "stat", O_RDONLY | O_CLOEXEC);
    char buf[STAT_MAX];
    ssize_t n = fd < 0 ? -1 : read(fd, buf, sizeof(buf));
    const char *close = n > 0 ? memrchr(buf, ')', (size_t)n) : NULL;
    struct mo_span rest;
    uint64_t parent;

    if (!close || buf + n - close < 5)
        return false;
    rest = mo_span(close + 4, (size_t)(buf + n - close) - 4);
    if (mo_span_u64(mo_span_cut(&rest, ' '), &parent) < 0 || parent > INT_MAX)
        return false;
    out->parent = (pid_t)parent;
    out->dead = close[2] == 'Z' || close[2] == 'X';
    return true;
}

static bool grow_table(struct table *t)
{
    size_t cap = t->cap ? t->cap * 2 : 256;
    struct proc *p;

    if (t->n < t->cap)
        return true;
    p = cap <= PROCS_MAX ? mo_realloc(t->p, cap * sizeof(*p)) : NULL;
    if (!p)
        return false;
    t->p = p;
    t->cap = cap;
    return true;
}

static int open_proc(int procfs, pid_t pid)
{
    char name[16];

    (void)snprintf(name, sizeof(name), "%d", (int)pid);
    return openat(procfs, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
}

static void take_process(struct table *t, int procfs, const char *name)
{
    struct proc one = {0};
    uint64_t pid;
    mo_autofd int dir = -1;

    if (mo_span_u64(mo_span_cstr(name), &pid) < 0 || pid > INT_MAX ||
        !grow_table(t))
        return;
    one.pid = (pid_t)pid;
    dir = open_proc(procfs, one.pid);
    if (dir >= 0 && read_stat(dir, &one))
        t->p[t->n++] = one;
}

static bool is_spared(pid_t pid, const pid_t *spare, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        if (spare[i] == pid)
            return true;
    }
    return false;
}

static bool is_below(const struct table *t, pid_t pid)
{
    for (size_t i = 0; i < t->n; i++) {
        if (t->p[i].pid == pid)
            return t->p[i].below;
    }
    return false;
}

/* Mark all processes below top; repeats until nothing is added, as often as the
 * tree is deep. */
static void mark_below(struct table *t, pid_t top, const pid_t *spare,
                       size_t nspare)
{
    bool again = true;

    while (again) {
        again = false;
        for (size_t i = 0; i < t->n; i++) {
            struct proc *p = &t->p[i];

            if (p->below || is_spared(p->pid, spare, nspare) ||
                (p->parent != top && !is_below(t, p->parent)))
                continue;
            p->below = true;
            again = true;
        }
    }
}

static void kill_one(int procfs, const struct proc *p)
{
    mo_autofd int dir = open_proc(procfs, p->pid);
    struct proc now;

    /* If its parent changed, it became an orphan: leave it for the next
     * round. */
    if (dir < 0 || !read_stat(dir, &now) || now.parent != p->parent)
        return;
    if (syscall(SYS_pidfd_send_signal, dir, SIGKILL, NULL, 0) < 0 &&
        errno != ESRCH)
        (void)kill(p->pid, SIGKILL);
}

int tb_tree_kill(pid_t top, const pid_t *spare, size_t nspare)
{
    DIR *procfs = opendir("/proc");
    struct table t = {0};
    int alive = 0;

    if (!procfs)
        return -1;
    for (;;) {
        struct dirent *de = readdir(procfs);

        if (!de)
            break;
        if (de->d_name[0] >= '1' && de->d_name[0] <= '9')
            take_process(&t, dirfd(procfs), de->d_name);
    }
    mark_below(&t, top, spare, nspare);
    for (size_t i = 0; i < t.n; i++) {
        if (!t.p[i].below || t.p[i].dead)
            continue;
        alive++;
        kill_one(dirfd(procfs), &t.p[i]);
    }
    (void)closedir(procfs);
    alive = t.n ? alive : -1; /* an empty directory is not /proc */
    mo_free(t.p);
    return alive;
}
