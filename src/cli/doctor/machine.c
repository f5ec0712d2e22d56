/* machine.c - checks of the kernel and the file system. Read-only, except for
 * one short-lived child that tries a user namespace: that is more reliable than
 * reading four sysctls. */
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cli/doctor/doctor.h"
#include "connect/box_mounts.h"
#include "loop/hide.h"

#define SMALL_FILE  ((size_t)16 * 1024)
#define DISK_LOW_MB 200ULL
#define FD_SPARE    256 /* for children, store, log and the like */

/* --- state directory ----------------------------------------------------- */

/* Shortens path to its longest existing part. */
static void existing_part(char *path)
{
    struct stat st;
    char *slash;

    while (stat(path, &st) < 0) {
        slash = strrchr(path, '/');
        if (!slash) {
            path[0] = '.';
            path[1] = '\0';
            return;
        }
        slash[slash == path] = '\0';
        if (slash == path)
            return;
    }
}

void mo_check_state(const struct mo_doctor *d, struct mo_finding *f)
{
    const char *dir = d->cfg->store.dir;
    unsigned long long free_mb;
    struct statvfs fs;
    char at[PATH_MAX];

    (void)snprintf(at, sizeof(at), "%s", dir);
    existing_part(at);
    if (access(at, W_OK | X_OK) < 0) {
        mo_found(f, MO_HEALTH_FAIL, "cannot write to %.250s: %s", at,
                 strerror(errno));
        mo_advise(f, "change its owner, or set store.dir to another place");
        return;
    }
    if (statvfs(at, &fs) < 0) {
        mo_found(f, MO_HEALTH_WARN, "%.250s: %s", at, strerror(errno));
        return;
    }
    free_mb = (unsigned long long)fs.f_bavail * fs.f_frsize / 1024 / 1024;
    mo_found(f, free_mb < DISK_LOW_MB ? MO_HEALTH_WARN : MO_HEALTH_OK,
             "%.200s %s, %llu MiB free", dir,
             strcmp(dir, at) == 0 ? "can be written" : "can be made", free_mb);
    if (free_mb < DISK_LOW_MB)
        mo_advise(f, "free some disk space");
}

/* --- open files ---------------------------------------------------------- */

void mo_check_files(const struct mo_doctor *d, struct mo_finding *f)
{
    uint64_t want = (uint64_t)d->cfg->server.limits.connections + FD_SPARE;
    struct rlimit lim;

    if (getrlimit(RLIMIT_NOFILE, &lim) < 0) {
        mo_found(f, MO_HEALTH_WARN, "cannot tell: %s", strerror(errno));
        return;
    }
    if (lim.rlim_max >= want) { /* the soft limit can be raised up to it */
        mo_found(f, MO_HEALTH_OK, "up to %llu allowed",
                 (unsigned long long)lim.rlim_max);
        return;
    }
    mo_found(f, MO_HEALTH_WARN,
             "only %llu allowed, %llu would be needed for %lld connections",
             (unsigned long long)lim.rlim_max, (unsigned long long)want,
             (long long)d->cfg->server.limits.connections);
    mo_advise(f, "raise it (ulimit -n, LimitNOFILE=) or lower "
                 "server.limits.connections");
}

/* --- cgroups ------------------------------------------------------------- */

static bool read_small_file(const char *path, struct mo_buf *b)
{
    mo_autofd int fd = open(path, O_RDONLY | O_CLOEXEC);
    char *room = fd < 0 ? NULL : mo_buf_room(b, SMALL_FILE - 1);
    ssize_t n = room ? read(fd, room, SMALL_FILE - 1) : -1;

    if (n < 0)
        return false;
    mo_buf_add(b, (size_t)n);
    return true;
}

/* Our group in the v2 tree: the "0::/path" line. */
static void own_group(char *out, size_t n)
{
    mo_autobuf struct mo_buf b = {.max = SMALL_FILE};
    struct mo_span rest;

    out[0] = '\0';
    if (read_small_file("/proc/self/cgroup", &b)) {
        rest = mo_buf_view(&b);
        while (rest.p) {
            struct mo_span line = mo_span_cut(&rest, '\n');

            if (mo_span_starts(line, MO_SPAN("0::")))
                (void)snprintf(out, n, "%.*s", (int)line.n - 3, line.p + 3);
        }
    }
}

/* True if the controller is in a list such as "cpu memory pids\n". */
static bool has_word(struct mo_span list, const char *word)
{
    while (list.p) {
        struct mo_span w = mo_span_cut(&list, ' ');

        while (w.n && w.p[w.n - 1] == '\n')
            w.n--;
        if (mo_span_is(w, word))
            return true;
    }
    return false;
}

static void check_v2(struct mo_finding *f)
{
    char group[512], path[1024];
    bool limits, ours;
    struct mo_buf b;

    own_group(group, sizeof(group));
    (void)snprintf(path, sizeof(path), "/sys/fs/cgroup%s/cgroup.controllers",
                   group);
    mo_buf_init(&b, SMALL_FILE);
    (void)read_small_file(path, &b);
    limits = has_word(mo_buf_view(&b), "memory") &&
             has_word(mo_buf_view(&b), "pids");
    mo_buf_fini(&b);
    (void)snprintf(path, sizeof(path), "/sys/fs/cgroup%s", group);
    ours = access(path, W_OK) == 0;
    mo_found(f, limits && ours ? MO_HEALTH_OK : MO_HEALTH_WARN,
             "version 2, %s, %s",
             limits ? "memory and pids can be limited"
                    : "memory or pids is not handed down to us",
             ours ? "our group is ours to divide"
                  : "our group is not ours to divide");
    if (!limits || !ours)
        mo_advise(f, "run as a systemd service with Delegate=yes, or use "
                     "Docker for the boxes");
}

static void check_v1(struct mo_finding *f)
{
    static const char *const dirs[] = {
        "/sys/fs/cgroup/memory", "/sys/fs/cgroup/pids", "/sys/fs/cgroup/cpu"};
    const char *lacking = NULL;

    for (size_t i = 0; i < MO_COUNT(dirs); i++) {
        if (access(dirs[i], W_OK) < 0)
            lacking = dirs[i];
    }
    if (!lacking) {
        mo_found(f, MO_HEALTH_OK,
                 "version 1, memory, pids and cpu can be limited");
        return;
    }
    mo_found(f, MO_HEALTH_WARN, "version 1, and %s is not ours to write",
             lacking);
    mo_advise(f, "native boxes need root here; Docker works without");
}

void mo_check_cgroup(const struct mo_doctor *d, struct mo_finding *f)
{
    if (d->cfg && d->cfg->helper) {
        mo_found(f, MO_HEALTH_OK, "made by the privileged helper of root");
    } else if (access("/sys/fs/cgroup/cgroup.controllers", R_OK) == 0) {
        check_v2(f);
    } else if (access("/sys/fs/cgroup/memory", F_OK) == 0 ||
               access("/sys/fs/cgroup/pids", F_OK) == 0) {
        check_v1(f);
    } else {
        mo_found(f, MO_HEALTH_WARN, "there are none at /sys/fs/cgroup");
        mo_advise(f, "native boxes cannot be limited here; use Docker");
    }
}

/* --- user namespaces ----------------------------------------------------- */

/* Returns 0, or the errno of a child that tried. */
static int try_userns(void)
{
    int status = 0;
    pid_t pid = fork();

    if (pid < 0)
        return errno;
    if (pid == 0)
        _exit(unshare(CLONE_NEWUSER) < 0 ? errno : 0);
    while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
        ;
    return WIFEXITED(status) ? WEXITSTATUS(status) : EPERM;
}

void mo_check_userns(const struct mo_doctor *d, struct mo_finding *f)
{
    int err = try_userns();

    (void)d;
    if (err == 0) {
        mo_found(f, MO_HEALTH_OK, "allowed");
    } else if (geteuid() == 0) {
        mo_found(f, MO_HEALTH_OK, "not allowed (%s), not needed as root",
                 strerror(err));
    } else {
        mo_found(f, MO_HEALTH_WARN, "not allowed: %s", strerror(err));
        mo_advise(f, "native boxes need them or root: sysctl "
                     "kernel.unprivileged_userns_clone=1, "
                     "user.max_user_namespaces, and AppArmor's "
                     "kernel.apparmor_restrict_unprivileged_userns=0");
    }
}

/* --- isolation of servers ------------------------------------------------- */

void mo_check_isolation(const struct mo_doctor *d, struct mo_finding *f)
{
    struct mo_hide h = {.n = 0};
    struct mo_err e;
    int err;

    if (mo_hide_add(&h, d->cfg->store.dir, &e) < 0 && e.code != MO_ENOTFOUND) {
        mo_found(f, MO_HEALTH_WARN, "no: %.250s", e.msg);
        mo_advise(f, "set store.dir to a directory of its own");
        return;
    }
    if (h.n == 0) /* it is made at the start; any directory shows it */
        (void)mo_hide_add(&h, "/proc", NULL);
    err = mo_hide_try(&h);
    if (err == 0) {
        mo_found(f, MO_HEALTH_OK, "yes, by %s",
                 geteuid() == 0 ? "mount namespaces" : "user namespaces");
        return;
    }
    mo_found(f, MO_HEALTH_WARN,
             "no, commands run as servers can read secrets and rules: %s",
             strerror(err));
    mo_advise(f, "run servers in boxes (\"sandbox\"), or allow user "
                 "namespaces (see userns)");
}

/* --- programs of MCP servers --------------------------------------------- */

static bool is_runnable(const char *path)
{
    struct stat st;

    return access(path, X_OK) == 0 && stat(path, &st) == 0 &&
           S_ISREG(st.st_mode);
}

static bool is_in_path(const struct mo_config *c, const char *program)
{
    const char *path = mo_config_getenv(c, "PATH");
    struct mo_span rest = mo_span_cstr(path ? path : "/usr/bin:/bin");
    char full[PATH_MAX];

    if (strchr(program, '/'))
        return is_runnable(program);
    while (rest.p) {
        struct mo_span dir = mo_span_cut(&rest, ':');

        (void)snprintf(full, sizeof(full), "%.*s/%s", (int)dir.n, dir.p,
                       program);
        if (is_runnable(full))
            return true;
    }
    return false;
}

/* A path with a slash is relative to the directory of the server. */
static bool is_found(const struct mo_config *c, const struct mo_config_mcp *m)
{
    bool relative = strchr(m->command, '/') && m->command[0] != '/';
    char full[PATH_MAX];

    if (!relative || !m->cwd)
        return is_in_path(c, m->command);
    (void)snprintf(full, sizeof(full), "%s/%s", m->cwd, m->command);
    return is_runnable(full);
}

void mo_check_programs(const struct mo_doctor *d, struct mo_finding *f)
{
    const struct mo_config *c = d->cfg;
    size_t used = 0;

    for (size_t i = 0; i < c->mcp.n; i++) {
        const struct mo_config_mcp *m = &c->mcp.v[i];

        if (!m->enabled)
            continue;
        used++;
        if (m->image || !m->command || is_found(c, m))
            continue;
        mo_found(f, MO_HEALTH_WARN,
                 "'%s' needs the program '%.120s', which was not found",
                 m->name, m->command);
        mo_advise(f, "install it, or set mcpServers.%s.enabled to false",
                  m->name);
        return;
    }
    mo_found(f, MO_HEALTH_OK, "%zu in use, every program was found", used);
}

/* --- folders of the host in boxes ------------------------------------------
 */

/* Counts them in *n; false: one is refused. */
static bool judge_mounts(const struct mo_config *c, const char *name,
                         const struct mo_config_mounts *m, size_t *n,
                         struct mo_finding *f)
{
    for (size_t i = 0; m->v && m->v[i]; i++, (*n)++) {
        struct mo_mount at;
        struct mo_err e;

        if (mo_box_mounts_judge(c, m->v[i], &at, &e) == 0)
            continue;
        mo_found(f, MO_HEALTH_WARN, "%s%s: %.220s",
                 name ? "mcpServers." : "sandbox", name ? name : "", e.msg);
        mo_advise(f, "change 'mounts'; boxes with it do not start");
        return false;
    }
    return true;
}

void mo_check_mounts(const struct mo_doctor *d, struct mo_finding *f)
{
    const struct mo_config *c = d->cfg;
    bool ok = true;
    size_t n = 0;

    for (size_t i = 0; ok && i < c->mcp.n; i++)
        if (c->mcp.v[i].enabled)
            ok = judge_mounts(c, c->mcp.v[i].name, &c->mcp.v[i].mounts, &n, f);
    if (ok && judge_mounts(c, NULL, &c->sandbox.mounts, &n, f))
        mo_found(f, MO_HEALTH_OK, n ? "%zu, all of them" : "none configured",
                 n);
}
