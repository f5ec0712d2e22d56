#include "loop/hide.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <linux/landlock.h>
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/mem.h"

/* --- the directories ------------------------------------------------------ */

MO_CHILD_SIDE static bool is_in(const char *path, const char *dir)
{
    size_t n = 0;

    while (dir[n] && dir[n] == path[n])
        n++;
    return !dir[n] && (path[n] == '\0' || path[n] == '/');
}

static int find_path(struct mo_hide *h, const char *path, mode_t type,
                     struct mo_err *e)
{
    char *real = h->path[h->n];
    struct stat st;

    MO_BUG_ON(h->n == MO_HIDE_MAX);
    if (!realpath(path, real) || stat(real, &st) < 0)
        return errno == ENOENT ? mo_fail(e, MO_ENOTFOUND, "no %s", path)
                               : mo_fail_sys(e, "%s", path);
    if ((st.st_mode & S_IFMT) != type || strcmp(real, "/") == 0)
        return mo_fail(e, MO_EINVAL, "%s cannot be hidden", path);
    return 0;
}

int mo_hide_add(struct mo_hide *h, const char *dir, struct mo_err *e)
{
    char cwd[PATH_MAX];
    int rc = find_path(h, dir, S_IFDIR, e);

    if (rc < 0)
        return rc;
    if (!getcwd(cwd, sizeof(cwd)))
        return mo_fail_sys(e, "the working directory");
    if (is_in(cwd, h->path[h->n]))
        return mo_fail(e, MO_EINVAL, "%s contains the working directory", dir);
    h->is_file[h->n++] = false;
    return 0;
}

int mo_hide_keep(struct mo_hide *h, const char *file, struct mo_err *e)
{
    int rc = find_path(h, file, S_IFREG, e);

    if (rc == 0 && !mo_hide_has(h, h->path[h->n]))
        h->is_file[h->n++] = true;
    return rc;
}

void mo_hide_show(struct mo_hide *h, const char *name)
{
    int n;

    MO_BUG_ON(h->n == 0 || h->is_file[h->n - 1]);
    n = snprintf(h->shown, sizeof(h->shown), "%s/%s", h->path[h->n - 1], name);
    if (n < 0 || (size_t)n >= sizeof(h->shown))
        h->shown[0] = '\0';
}

bool mo_hide_has(const struct mo_hide *h, const char *path)
{
    if (h->shown[0] && is_in(path, h->shown))
        return false;
    for (unsigned i = 0; i < h->n; i++) {
        if (!h->is_file[i] && is_in(path, h->path[i]))
            return true;
    }
    return false;
}

/* --- the plan, made by the parent ----------------------------------------- */

/* As of ABI 6; an older kernel is given the part it knows. */
struct ruleset {
    uint64_t fs, net, scoped;
};

#define SCOPE_SIGNAL 2u /* ABI 6 */

/* The rules restrict nearly nothing: the domain itself keeps other processes
 * from being inspected. Before ABI 6 a domain needs one file access; it also
 * forbids mounts. */
static int make_domain(void)
{
    struct ruleset set = {0};
    long abi = syscall(SYS_landlock_create_ruleset, NULL, 0,
                       LANDLOCK_CREATE_RULESET_VERSION);
    bool has_scopes = abi >= 6;

    if (abi < 1)
        return -1;
    if (has_scopes)
        set.scoped = SCOPE_SIGNAL;
    else
        set.fs = LANDLOCK_ACCESS_FS_MAKE_BLOCK;
    return (int)syscall(SYS_landlock_create_ruleset, &set,
                        has_scopes ? sizeof(set) : sizeof(set.fs), 0);
}

static bool has_cap(unsigned cap)
{
    struct __user_cap_header_struct head = {.version =
                                                _LINUX_CAPABILITY_VERSION_3};
    struct __user_cap_data_struct set[2] = {{0}};

    return syscall(SYS_capget, &head, set) == 0 &&
           (set[cap / 32].effective & (1u << cap % 32)) != 0;
}

/* Length of the directory above path[0..n), which starts with '/'. */
static size_t above(const char *path, size_t n)
{
    while (n > 1 && path[n - 1] != '/')
        n--;
    return n > 1 ? n - 1 : n;
}

/* True if an earlier path is also below path[0..n): that is pinned already. */
static bool is_shared(const struct mo_hide *h, unsigned i, size_t n)
{
    for (unsigned j = 0; j < i; j++) {
        if (strncmp(h->path[i], h->path[j], n) == 0 && h->path[j][n] == '/')
            return true;
    }
    return false;
}

/* Finds the directories above path i that our user can rename, top down. */
static void find_pins(struct mo_hide_plan *p, unsigned i)
{
    const char *dir = p->h->path[i];
    unsigned k = 0;

    for (size_t n = 1; dir[n] && k < MO_HIDE_PINS - 1; n++) {
        size_t up;

        if (dir[n] != '/' || is_shared(p->h, i, n))
            continue;
        up = above(dir, n);
        memcpy(p->at, dir, up);
        p->at[up] = '\0';
        if (faccessat(AT_FDCWD, p->at, W_OK, AT_EACCESS) == 0)
            p->pins[i][k++] = (unsigned short)n;
    }
}

void mo_hide_plan(struct mo_hide_plan *p, const struct mo_hide *h)
{
    memset(p, 0, sizeof(*p));
    p->domain = -1;
    if (!h)
        return;
    p->h = h;
    p->domain = make_domain();
    p->users = !has_cap(CAP_SYS_ADMIN);
    p->dumpable = prctl(PR_GET_DUMPABLE, 0, 0, 0, 0);
    (void)snprintf(p->uids, sizeof(p->uids), "%u %u 1", geteuid(), geteuid());
    (void)snprintf(p->gids, sizeof(p->gids), "%u %u 1", getegid(), getegid());
    p->spaces = h->n > 0 && getcwd(p->cwd, sizeof(p->cwd)) != NULL;
    for (unsigned i = 0; p->spaces && i < h->n; i++)
        find_pins(p, i);
}

void mo_hide_plan_fini(struct mo_hide_plan *p)
{
    if (p->domain >= 0)
        (void)close(p->domain);
    p->domain = -1;
}

bool mo_hide_is_refusal(int err)
{
    return err == EPERM || err == EACCES || err == ENOSYS || err == EINVAL;
}

/* --- in the child --------------------------------------------------------- */

MO_CHILD_SIDE static int write_map(const char *path, const char *text)
{
    int fd = open(path, O_WRONLY | O_CLOEXEC);
    size_t n = 0;
    int err = 0;

    while (text[n])
        n++;
    if (fd < 0 || write(fd, text, n) < 0)
        err = errno;
    if (fd >= 0)
        (void)close(fd);
    return err;
}

/* Memory is still shared, so the files of /proc/self belong to root while we
 * are not dumpable, and our user could not write the maps. */
MO_CHILD_SIDE static int enter_users(const struct mo_hide_plan *p)
{
    int err = unshare(CLONE_NEWUSER | CLONE_NEWNS) < 0 ? errno : 0;

    if (err)
        return err;
    if (!p->dumpable)
        (void)prctl(PR_SET_DUMPABLE, 1, 0, 0, 0);
    err = write_map("/proc/self/setgroups", "deny");
    if (!err)
        err = write_map("/proc/self/uid_map", p->uids);
    if (!err)
        err = write_map("/proc/self/gid_map", p->gids);
    if (!p->dumpable)
        (void)prctl(PR_SET_DUMPABLE, 0, 0, 0, 0);
    return err;
}

/* Mounts of the machine still arrive, ours do not leave. */
MO_CHILD_SIDE static int enter_mounts(void)
{
    if (unshare(CLONE_NEWNS) < 0 ||
        mount("none", "/", NULL, MS_REC | MS_SLAVE, NULL) < 0)
        return errno;
    return 0;
}

MO_CHILD_SIDE static int make_read_only(const char *path, unsigned flags)
{
    struct mount_attr attr = {.attr_set = MOUNT_ATTR_RDONLY};

    return mount_setattr(AT_FDCWD, path, flags, &attr, sizeof(attr));
}

/* Takes a copy of the visible directory's mount before the cover is put over
 * it, and attaches the copy in the cover. */
MO_CHILD_SIDE static int cover_but(const char *path, const char *shown)
{
    int tree = open_tree(AT_FDCWD, shown,
                         OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | AT_RECURSIVE |
                             AT_SYMLINK_NOFOLLOW);
    int rc = mount("hidden", path, "tmpfs", MS_NOSUID | MS_NODEV | MS_NOEXEC,
                   "size=4k,nr_inodes=2,mode=500");

    if (rc == 0 && tree >= 0) {
        rc = mkdir(shown, 0500);
        if (rc == 0)
            rc = move_mount(tree, "", AT_FDCWD, shown, MOVE_MOUNT_F_EMPTY_PATH);
        if (rc == 0)
            rc = make_read_only(shown, AT_RECURSIVE);
    }
    if (tree >= 0)
        (void)close(tree);
    return rc < 0 ? rc : make_read_only(path, 0);
}

MO_CHILD_SIDE static int cover(const struct mo_hide *h, unsigned i)
{
    const char *path = h->path[i];
    int rc;

    if (!h->is_file[i])
        return cover_but(path,
                         h->shown[0] && is_in(h->shown, path) ? h->shown : "");
    rc = mount(path, path, NULL, MS_BIND, NULL);
    return rc < 0 ? rc : make_read_only(path, 0);
}

MO_CHILD_SIDE static int pin_above(struct mo_hide_plan *p, unsigned i)
{
    const char *dir = p->h->path[i];

    for (unsigned k = 0; p->pins[i][k]; k++) {
        size_t n = p->pins[i][k];

        for (size_t c = 0; c < n; c++)
            p->at[c] = dir[c];
        p->at[n] = '\0';
        if (mount(p->at, p->at, NULL, MS_BIND | MS_REC, NULL) < 0)
            return errno;
    }
    return 0;
}

/* The working directory was opened before the mounts: leave it, or ".." would
 * lead around them. */
MO_CHILD_SIDE int mo_hide_enter(struct mo_hide_plan *p)
{
    int err;

    if (!p->spaces)
        return 0;
    err = p->users ? enter_users(p) : enter_mounts();
    for (unsigned i = 0; !err && i < p->h->n; i++) {
        if (cover(p->h, i) < 0)
            err = errno;
    }
    for (unsigned i = 0; !err && i < p->h->n; i++)
        err = pin_above(p, i);
    if (!err && chdir(p->cwd) < 0)
        err = errno;
    return err;
}

/* With these root could undo the mounts, open a file without its path, or reach
 * the memory of a process or of the kernel. With CAP_PERFMON it reads memory
 * although Landlock denies it. */
static const unsigned char undoing[] = {
    CAP_SYS_ADMIN,       CAP_SYS_PTRACE, CAP_SYS_MODULE, CAP_SYS_RAWIO,
    CAP_DAC_READ_SEARCH, CAP_MKNOD,      CAP_SYS_BOOT,   CAP_MAC_ADMIN,
    CAP_MAC_OVERRIDE,    CAP_PERFMON,    CAP_BPF,        CAP_CHECKPOINT_RESTORE,
};

/* The sets that the program gets at exec. A kernel may not know the last. */
MO_CHILD_SIDE static int drop_caps(void)
{
    struct __user_cap_header_struct head = {.version =
                                                _LINUX_CAPABILITY_VERSION_3};
    struct __user_cap_data_struct set[2];

    for (size_t i = 0; i < sizeof(undoing); i++) {
        if (prctl(PR_CAPBSET_DROP, undoing[i], 0, 0, 0) < 0 && errno != EINVAL)
            return errno;
    }
    if (syscall(SYS_capget, &head, set) < 0)
        return errno;
    set[0].inheritable = 0; /* and with it the ambient set */
    set[1].inheritable = 0;
    return syscall(SYS_capset, &head, set) < 0 ? errno : 0;
}

/* Without namespaces this is done as far as possible. */
MO_CHILD_SIDE int mo_hide_confine(const struct mo_hide_plan *p)
{
    int err;

    if (!p->h)
        return 0;
    if (p->users && prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
        return errno;
    if (p->domain >= 0 && syscall(SYS_landlock_restrict_self, p->domain, 0) < 0)
        return errno;
    err = drop_caps();
    return p->spaces ? err : 0;
}

/* --- a trial -------------------------------------------------------------- */

int mo_hide_try(const struct mo_hide *h)
{
    struct mo_hide_plan p;
    int status = 0, err = 0;
    pid_t pid;

    mo_hide_plan(&p, h);
    pid = fork();
    if (pid == 0) {
        err = mo_hide_enter(&p);
        _exit(err ? err : mo_hide_confine(&p));
    }
    if (pid < 0)
        err = errno;
    while (pid > 0 && waitpid(pid, &status, 0) < 0 && errno == EINTR)
        ;
    mo_hide_plan_fini(&p);
    return err ? err : WIFEXITED(status) ? WEXITSTATUS(status) : EIO;
}
