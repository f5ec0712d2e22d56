#include "launcher/mounts.h"

#include <errno.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "base/mem.h"
#include "launcher/kernel.h"
#include "launcher/kernel_file.h"
#include "launcher/view.h"

#define MOUNTINFO_MAX ((size_t)256 * 1024)
#define NO_LINKS      (RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS)
#define BENEATH       (RESOLVE_BENEATH | NO_LINKS)
#define SAFE          (MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV)

/* A user namespace that maps the ids of the owner to those of the box. */
struct idmap {
    int proc, fd; /* fd: -1, or for these: */
    uid_t uid;
    gid_t gid;
};

int mo_mounts_read(const char *text, struct mo_mount *out, uint64_t *dev,
                   uint64_t *ino, struct mo_err *e)
{
    struct mo_span rest = mo_span_cstr(text);

    if (mo_span_u64(mo_span_cut(&rest, ' '), dev) < 0 ||
        mo_span_u64(mo_span_cut(&rest, ' '), ino) < 0)
        return mo_fail(e, MO_EPROTO, "mount without an inode");
    return mo_mount_parse(rest, NULL, out, e);
}

/* --- user ids ------------------------------------------------------------ */

static int write_idmap(int proc, pid_t pid, const char *file, unsigned owner,
                       unsigned box, struct mo_err *e)
{
    char path[40], text[40];

    snprintf(path, sizeof(path), "%d/%s", (int)pid, file);
    snprintf(text, sizeof(text), "%u %u 1", owner, box);
    if (mo_kernel_file_write(proc, path, text) < 0)
        return mo_fail_sys(e, "ids of a mount: %s", file);
    return 0;
}

static int open_idmap(struct idmap *m, pid_t pid, uid_t box, struct mo_err *e)
{
    char path[40];
    int rc = write_idmap(m->proc, pid, "uid_map", m->uid, box, e);

    if (rc == 0)
        rc = write_idmap(m->proc, pid, "gid_map", m->gid, box, e);
    if (rc < 0)
        return rc;
    snprintf(path, sizeof(path), "%d/ns/user", (int)pid);
    m->fd = openat(m->proc, path, O_RDONLY | O_CLOEXEC);
    return m->fd < 0 ? mo_fail_sys(e, "ids of a mount") : 0;
}

/* A namespace exists only with a process; the descriptor then keeps it. */
static int take_idmap(struct idmap *m, uid_t uid, gid_t gid, uid_t box,
                      struct mo_err *e)
{
    mo_autofd int pidfd = -1;
    pid_t pid;
    int rc;

    if (m->fd >= 0 && m->uid == uid && m->gid == gid)
        return 0;
    mo_close_fd(&m->fd);
    m->uid = uid;
    m->gid = gid;
    pid = k_clone(CLONE_NEWUSER, -1, &pidfd);
    if (pid == 0)
        for (;;)
            pause();
    if (pid < 0)
        return mo_fail_sys(e, "ids of a mount: user namespace");
    rc = open_idmap(m, pid, box, e);
    k_pidfd_kill(pidfd, SIGKILL);
    while (waitpid(pid, NULL, 0) < 0 && errno == EINTR) {
    }
    return rc;
}

static int map_ids(int tree, struct idmap *m, uid_t box, const struct stat *st,
                   const struct mo_owner *owner, struct mo_err *e)
{
    struct mount_attr a = {.attr_set = MOUNT_ATTR_IDMAP};
    int rc = take_idmap(m, owner->is_other ? owner->uid : st->st_uid,
                        owner->is_other ? owner->gid : st->st_gid, box, e);

    if (rc < 0)
        return rc;
    a.userns_fd = (uint64_t)m->fd;
    if (k_mount_setattr(tree, AT_RECURSIVE, &a) < 0)
        return mo_fail_sys(e, "its file system cannot map user ids (idmapped "
                              "mounts)");
    return 0;
}

/* --- from the host to the box -------------------------------------------- */

/* Returns a descriptor (O_PATH) of the judged inode. */
static int open_host(const struct mo_mount *m, uint64_t dev, uint64_t ino,
                     const struct mo_owner *owner, struct stat *st,
                     struct mo_err *e)
{
    mo_autofd int fd = -1;
    int error;

    mo_owner_enter(owner);
    fd = k_openat2(AT_FDCWD, m->host, O_PATH, NO_LINKS);
    error = errno;
    mo_owner_leave(owner);
    errno = error;
    if (fd < 0 && error == ELOOP)
        return mo_fail(e, MO_EPOLICY, "a part of it is a link");
    if (fd < 0 || fstat(fd, st) < 0)
        return mo_fail_sys(e, "it cannot be opened");
    if ((uint64_t)st->st_dev != dev || (uint64_t)st->st_ino != ino)
        return mo_fail(e, MO_EPOLICY, "it was replaced meanwhile");
    if (!S_ISDIR(st->st_mode) && !S_ISREG(st->st_mode))
        return mo_fail(e, MO_EPOLICY, "it is neither a folder nor a file");
    return mo_take_fd(&fd);
}

/* Make the directories of the place, and at the end a directory or file. Never
 * through a link: links of an image would lead out. Returns a descriptor. */
static int make_place(int root, const char *box, bool dir, struct mo_err *e)
{
    mo_autofd int at = fcntl(root, F_DUPFD_CLOEXEC, 3);
    struct mo_span rest = mo_span_cstr(box + 1);

    while (rest.p && at >= 0) {
        struct mo_span part = mo_span_cut(&rest, '/');
        char name[MO_MOUNT_PATH_MAX + 1];
        int next, flags = O_PATH | (rest.p || dir ? O_DIRECTORY : 0);

        snprintf(name, sizeof(name), "%.*s", (int)part.n, part.p);
        next = k_openat2(at, name, (uint64_t)flags, BENEATH);
        if (next < 0 && errno == ENOENT) {
            mode_t kind = rest.p || dir ? S_IFDIR : S_IFREG;

            if (kind == S_IFDIR ? mkdirat(at, name, 0755) < 0
                                : mknodat(at, name, S_IFREG | 0444, 0) < 0)
                return mo_fail_sys(e, "%s in the box", box);
            next = k_openat2(at, name, (uint64_t)flags, BENEATH);
        }
        mo_close_fd(&at);
        at = next;
    }
    return at < 0 ? mo_fail_sys(e, "%s in the box", box) : mo_take_fd(&at);
}

static int put_mount(const char *text, int root, struct idmap *ids, uid_t uid,
                     const struct mo_owner *owner, struct mo_err *e)
{
    mo_autofd int fd = -1, tree = -1, at = -1;
    struct mo_mount m;
    struct stat st;
    uint64_t dev, ino;
    int rc = mo_mounts_read(text, &m, &dev, &ino, e);

    if (rc < 0)
        return rc;
    fd = open_host(&m, dev, ino, owner, &st, e);
    if (fd >= 0)
        tree = mo_view_clone(fd, "", SAFE | (m.rw ? 0 : MOUNT_ATTR_RDONLY), e);
    if (tree >= 0)
        rc = geteuid() == 0 ? map_ids(tree, ids, uid, &st, owner, e) : 0;
    if (tree >= 0 && rc == 0)
        at = make_place(root, m.box, S_ISDIR(st.st_mode), e);
    if (at < 0)
        return mo_wrap(e, "mount %s", m.host);
    if (syscall(SYS_move_mount, tree, "", at, "",
                MOVE_MOUNT_F_EMPTY_PATH | MOVE_MOUNT_T_EMPTY_PATH))
        return mo_fail_sys(e, "mount %s: %s in the box", m.host, m.box);
    return 0;
}

int mo_mounts_put(const struct mo_boxreq *r, int root, int proc, uid_t uid,
                  const struct mo_owner *owner, struct mo_err *e)
{
    struct idmap ids = {.proc = proc, .fd = -1};
    bool as_root = geteuid() == 0;
    int rc = 0;

    MO_BUG_ON(!as_root && owner->is_other);
    for (size_t i = 0; rc == 0 && r->mounts[i]; i++)
        rc = put_mount(r->mounts[i], root, &ids, uid, owner, e);
    mo_close_fd(&ids.fd);
    return rc;
}

/* --- what came with it ---------------------------------------------------- */

static bool is_of_kernel(struct mo_span type)
{
    static const char *const types[] = {
        "autofs",   "binfmt_misc", "bpf",       "cgroup",     "cgroup2",
        "configfs", "debugfs",     "devpts",    "devtmpfs",   "efivarfs",
        "fusectl",  "hugetlbfs",   "mqueue",    "nsfs",       "proc",
        "pstore",   "rpc_pipefs",  "selinuxfs", "securityfs", "sysfs",
        "tracefs"};

    for (size_t i = 0; i < MO_COUNT(types); i++)
        if (mo_span_is(type, types[i]))
            return true;
    return false;
}

static int read_proc(int proc, const char *name, struct mo_buf *b,
                     struct mo_err *e)
{
    mo_autofd int fd = openat(proc, name, O_RDONLY | O_CLOEXEC);
    ssize_t n = fd < 0 ? -1 : 1;

    mo_buf_reset(b);
    while (n > 0) {
        char *room = mo_buf_room(b, 4096);

        if (!room)
            return mo_fail(e, mo_buf_err(b), "/proc/%s", name);
        n = read(fd, room, 4096);
        if (n > 0)
            mo_buf_add(b, (size_t)n);
    }
    return n < 0 ? mo_fail_sys(e, "/proc/%s", name) : 0;
}

/* The id of the mount that is at a place of the box. */
static int find_mount_id(int proc, const char *box, uint64_t *id,
                         struct mo_buf *b, struct mo_err *e)
{
    mo_autofd int fd = k_openat2(AT_FDCWD, box, O_PATH, NO_LINKS);
    struct mo_span rest;
    char name[40];
    int rc;

    if (fd < 0)
        return mo_fail_sys(e, "%s in the box", box);
    snprintf(name, sizeof(name), "self/fdinfo/%d", fd);
    rc = read_proc(proc, name, b, e);
    rest = mo_buf_view(b);
    while (rc == 0 && rest.n) {
        struct mo_span line = mo_span_cut(&rest, '\n');

        if (mo_span_strip(&line, MO_SPAN("mnt_id:")))
            return mo_span_u64(mo_span_trim(line), id);
    }
    return mo_fail(e, MO_EIO, "%s in the box: no mount", box);
}

/* "ID PARENT MAJOR:MINOR ROOT PLACE OPTIONS ... - TYPE SOURCE OPTIONS" */
static int judge_line(struct mo_span line, uint64_t id, struct mo_err *e)
{
    ptrdiff_t dash = mo_span_search(line, MO_SPAN(" - "));
    struct mo_span type = mo_span_skip(line, (size_t)(dash < 0 ? 0 : dash + 3));
    struct mo_span place = {NULL, 0};
    uint64_t mine = 0, parent = 0;

    if (mo_span_u64(mo_span_cut(&line, ' '), &mine) < 0 ||
        mo_span_u64(mo_span_cut(&line, ' '), &parent) < 0 || dash < 0)
        return mo_fail(e, MO_EIO, "/proc/self/mountinfo");
    for (int i = 0; i < 3; i++)
        place = mo_span_cut(&line, ' ');
    type = mo_span_cut(&type, ' ');
    if (parent == id)
        return mo_fail(e, MO_EPOLICY,
                       "something else is mounted in it (in the box: %.*s)",
                       (int)mo_span_head(place, 100).n, place.p);
    if (mine == id && is_of_kernel(type))
        return mo_fail(e, MO_EPOLICY,
                       "it is a file system of the kernel "
                       "(%.*s)",
                       (int)mo_span_head(type, 32).n, type.p);
    return 0;
}

static int check_mount(const char *text, int proc, struct mo_err *e)
{
    mo_autobuf struct mo_buf b = {.max = MOUNTINFO_MAX};
    struct mo_span rest;
    struct mo_mount m;
    uint64_t dev, ino, id = 0;
    int rc = mo_mounts_read(text, &m, &dev, &ino, e);

    if (rc == 0)
        rc = find_mount_id(proc, m.box, &id, &b, e);
    if (rc == 0)
        rc = read_proc(proc, "self/mountinfo", &b, e);
    rest = mo_buf_view(&b);
    while (rc == 0 && rest.n)
        rc = judge_line(mo_span_cut(&rest, '\n'), id, e);
    return rc < 0 ? mo_wrap(e, "mount %s", m.host) : 0;
}

int mo_mounts_check(const struct mo_boxreq *r, int proc, struct mo_err *e)
{
    int rc = 0;

    for (size_t i = 0; rc == 0 && r->mounts[i]; i++)
        rc = check_mount(r->mounts[i], proc, e);
    return rc;
}
