#include "launcher/confine.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <linux/capability.h>
#include <linux/filter.h>
#include <linux/landlock.h>
#include <linux/seccomp.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/mem.h"
#include "codec/seccomp.h"
#include "launcher/kernel_file.h"
#include "launcher/mounts.h"
#include "launcher/view.h"

#define HOST_NAME "box"
/* 0 forbids core files, but not a host program that receives the core through a
 * pipe (core_pattern "|..."). 1 makes the kernel skip both. */
#define NO_CORE   1
#define OOM_SCORE "800" /* the box is killed first when memory runs out */

/* --- limits and identity ------------------------------------------------- */

/* Not above our own limit: raising it needs a capability. */
static int set_rlimit(int what, uint64_t value, const char *name,
                      struct mo_err *e)
{
    struct rlimit now, want;

    if (getrlimit(what, &now) < 0)
        return mo_fail_sys(e, "rlimit %s", name);
    want.rlim_max = (rlim_t)value < now.rlim_max ? (rlim_t)value : now.rlim_max;
    want.rlim_cur = want.rlim_max;
    if (setrlimit(what, &want) < 0)
        return mo_fail_sys(e, "rlimit %s", name);
    return 0;
}

static int set_limits(const struct mo_boxreq *r, struct mo_err *e)
{
    const struct {
        int what;
        uint64_t value;
        const char *name;
    } rows[] = {
        {RLIMIT_NOFILE, r->open_files, "nofile"},
        {RLIMIT_FSIZE, r->file_size, "fsize"},
        {RLIMIT_CORE, NO_CORE, "core"},
        {RLIMIT_MEMLOCK, 0, "memlock"},
        {RLIMIT_MSGQUEUE, 0, "msgqueue"},
        {RLIMIT_RTPRIO, 0, "rtprio"},
        {RLIMIT_NICE, 0, "nice"},
    };
    int rc = 0;

    for (size_t i = 0; rc == 0 && i < MO_COUNT(rows); i++)
        rc = set_rlimit(rows[i].what, rows[i].value, rows[i].name, e);
    return rc;
}

/* By system call: musl's functions always fail. */
int mo_confine_schedule(struct mo_err *e)
{
    const struct sched_param ordinary = {.sched_priority = 0};
    long policy = syscall(SYS_sched_getscheduler, 0) & ~SCHED_RESET_ON_FORK;

    if (policy != SCHED_OTHER && policy != SCHED_BATCH &&
        policy != SCHED_IDLE &&
        syscall(SYS_sched_setscheduler, 0, SCHED_OTHER, &ordinary) < 0)
        return mo_fail_sys(e, "scheduling policy");
    if (getpriority(PRIO_PROCESS, 0) < 0 && setpriority(PRIO_PROCESS, 0, 0) < 0)
        return mo_fail_sys(e, "priority");
    return 0;
}

static int drop_bounding_set(struct mo_err *e)
{
    for (unsigned long cap = 0; prctl(PR_CAPBSET_READ, cap, 0, 0, 0) >= 0;
         cap++)
        if (prctl(PR_CAPBSET_DROP, cap, 0, 0, 0) < 0)
            return mo_fail_sys(e, "capability %lu", cap);
    if (prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0) < 0)
        return mo_fail_sys(e, "ambient capabilities");
    return 0;
}

static int change_user(const struct mo_confine *c, struct mo_err *e)
{
    struct __user_cap_header_struct head = {.version =
                                                _LINUX_CAPABILITY_VERSION_3};
    struct __user_cap_data_struct none[2] = {{0}};

    if (c->root && setgroups(0, NULL) < 0)
        return mo_fail_sys(e, "setgroups");
    if (setresgid(c->uid, c->uid, c->uid) < 0 ||
        setresuid(c->uid, c->uid, c->uid) < 0)
        return mo_fail_sys(e, "user %u", (unsigned)c->uid);
    if (syscall(SYS_capset, &head, none) < 0)
        return mo_fail_sys(e, "capset");
    return 0;
}

/* --- die with the keeper ------------------------------------------------- */

static int tie_to_keeper(const struct mo_confine *c, struct mo_err *e)
{
    struct pollfd p = {.fd = c->life, .events = POLLIN};

    if (prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0) < 0)
        return mo_fail_sys(e, "death signal");
    /* getppid() is always 0 in here, so the pipe tells */
    if (poll(&p, 1, 0) != 0)
        return mo_fail(e, MO_ECLOSED, "the keeper is gone");
    return 0;
}

/* --- landlock ------------------------------------------------------------ */

/* As of ABI 6; an older kernel is given the part it knows. */
struct ruleset {
    uint64_t fs, net, scoped;
};

#define FS_READ                                                                \
    (LANDLOCK_ACCESS_FS_EXECUTE | LANDLOCK_ACCESS_FS_READ_FILE |               \
     LANDLOCK_ACCESS_FS_READ_DIR)
#define FS_ABI_1  ((1u << 13) - 1)
#define FS_REFER  (1u << 13) /* ABI 2 */
#define FS_TRUNC  (1u << 14) /* ABI 3 */
#define FS_IOCTL  (1u << 15) /* ABI 5 */
#define FS_MKDEV  (LANDLOCK_ACCESS_FS_MAKE_CHAR | LANDLOCK_ACCESS_FS_MAKE_BLOCK)
#define NET_TCP   3u /* bind and connect, ABI 4 */
#define SCOPE_ALL 3u /* abstract unix sockets and signals, ABI 6 */

unsigned mo_landlock_abi(void)
{
    long abi = syscall(SYS_landlock_create_ruleset, NULL, 0,
                       LANDLOCK_CREATE_RULESET_VERSION);

    return abi < 0 ? 0 : (unsigned)abi;
}

static uint64_t fs_of(unsigned abi)
{
    return FS_ABI_1 | (abi >= 2 ? FS_REFER : 0) | (abi >= 3 ? FS_TRUNC : 0) |
           (abi >= 5 ? FS_IOCTL : 0);
}

static int allow_path(int rules, const char *path, uint64_t access,
                      struct mo_err *e)
{
    mo_autofd int fd = open(path, O_PATH | O_CLOEXEC);
    struct landlock_path_beneath_attr a = {.allowed_access = access,
                                           .parent_fd = fd};

    if (fd < 0 || syscall(SYS_landlock_add_rule, rules,
                          LANDLOCK_RULE_PATH_BENEATH, &a, 0) < 0)
        return mo_fail_sys(e, "landlock: %s", path);
    return 0;
}

#define OF_FILE                                                                \
    (LANDLOCK_ACCESS_FS_EXECUTE | LANDLOCK_ACCESS_FS_READ_FILE |               \
     LANDLOCK_ACCESS_FS_WRITE_FILE | FS_TRUNC | FS_IOCTL)

/* Writable mounts; the others are read-only like everything. */
static int allow_mounts(int rules, const char *const *mounts, uint64_t access,
                        struct mo_err *e)
{
    int rc = 0;

    for (size_t i = 0; rc == 0 && mounts[i]; i++) {
        struct mo_mount m = {.rw = false};
        struct stat st;
        uint64_t dev = 0, ino = 0;

        rc = mo_mounts_read(mounts[i], &m, &dev, &ino, e);
        if (rc == 0 && m.rw && stat(m.box, &st) == 0)
            rc = allow_path(rules, m.box,
                            S_ISDIR(st.st_mode) ? access : access & OF_FILE, e);
    }
    return rc;
}

/* With a network TCP is left to the namespace, in which nothing else exists:
 * landlock cannot tell the addresses of the box from others. */
static int restrict_files(const struct mo_boxreq *r, struct mo_err *e)
{
    unsigned abi = mo_landlock_abi();
    uint64_t fs = fs_of(abi);
    struct ruleset set = {fs, *r->ports ? 0 : NET_TCP, SCOPE_ALL};
    size_t size = abi >= 6 ? 24 : abi >= 4 ? 16 : 8;
    mo_autofd int rules = -1;
    int rc;

    if (abi == 0)
        return 0;
    rules = (int)syscall(SYS_landlock_create_ruleset, &set, size, 0);
    if (rules < 0)
        return mo_fail_sys(e, "landlock");
    rc = allow_path(rules, "/", FS_READ, e);
    if (rc == 0)
        rc = allow_path(rules, "/workspace", fs & ~(uint64_t)FS_MKDEV, e);
    if (rc == 0)
        rc = allow_mounts(rules, r->mounts, fs & ~(uint64_t)FS_MKDEV, e);
    if (rc == 0)
        rc = allow_path(rules, "/tmp",
                        fs & ~(uint64_t)(FS_MKDEV | LANDLOCK_ACCESS_FS_EXECUTE),
                        e);
    if (rc == 0)
        rc = allow_path(rules, "/dev",
                        fs & (FS_READ | FS_IOCTL | FS_TRUNC |
                              LANDLOCK_ACCESS_FS_WRITE_FILE),
                        e);
    if (rc == 0 && syscall(SYS_landlock_restrict_self, rules, 0) < 0)
        rc = mo_fail_sys(e, "landlock");
    return rc;
}

/* --- all steps ----------------------------------------------------------- */

static int set_up_process(struct mo_err *e)
{
    int rc = mo_view_proc(e);

    if (rc < 0)
        return rc;
    if (mo_kernel_file_write(AT_FDCWD, "/proc/self/oom_score_adj", OOM_SCORE) <
        0)
        return mo_fail_sys(e, "oom_score_adj");
    rc = mo_view_seal_proc(e);
    if (rc < 0)
        return rc;
    if (sethostname(HOST_NAME, strlen(HOST_NAME)) < 0)
        return mo_fail_sys(e, "host name");
    if (setsid() < 0)
        return mo_fail_sys(e, "session");
    umask(022);
    return chdir("/workspace") < 0 ? mo_fail_sys(e, "/workspace") : 0;
}

/* A program of ours needs openat2, and takes it from those it starts. */
static int filter_calls(const struct mo_boxreq *r, struct mo_err *e)
{
    unsigned flags = (*r->ports ? MO_SECCOMP_NETWORK : 0) |
                     (r->by_fd ? MO_SECCOMP_OPENAT2 : 0);
    struct sock_filter v[MO_SECCOMP_BPF_MAX];
    struct sock_fprog prog = {
        .len = (unsigned short)mo_seccomp_bpf(MO_SECCOMP_HERE, flags, v),
        .filter = v};

    if (syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &prog) < 0)
        return mo_fail_sys(e, "seccomp");
    return 0;
}

int mo_confine(const struct mo_confine *c, struct mo_err *e)
{
    int rc = set_up_process(e);

    if (rc == 0)
        rc = set_limits(c->r, e);
    if (rc == 0)
        rc = drop_bounding_set(e);
    if (rc == 0)
        rc = change_user(c, e);
    if (rc == 0)
        rc = tie_to_keeper(c, e);
    if (rc == 0 && prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
        rc = mo_fail_sys(e, "no_new_privs");
    if (rc == 0)
        rc = restrict_files(c->r, e);
    if (rc == 0 && prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) < 0)
        rc = mo_fail_sys(e, "dumpable");
    return rc ? rc : filter_calls(c->r, e);
}
