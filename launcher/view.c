/* view.c - build the box's root.
 *
 * Everything is attached by descriptor, with the mount calls of Linux 5.2 and
 * 5.12: a tree is cloned, made read-only while it is invisible, and then
 * attached. There is no moment at which it can be written through. */
#include "launcher/view.h"

#include <dirent.h>
#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include "base/mem.h"
#include "codec/ca_files.h"
#include "launcher/kernel.h"
#include "launcher/kernel_file.h"
#include "launcher/mounts.h"

#define MNT_DETACH_OLD                                                         \
    2 /* MNT_DETACH, <sys/mount.h> fights <linux/mount.h>                      \
       */
#define MS_REC_FLAG     0x4000ul
#define MS_PRIVATE_FLAG (1ul << 18)
#define MS_SLAVE_FLAG   (1ul << 19)

#define ROOT_SIZE   "1m"
#define ROOT_INODES "2048"
#define LINK_MAX    1024
#define TOP_MAX     256 /* names at the top of an image */

#define SAFE    (MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV)
#define BENEATH (RESOLVE_BENEATH | RESOLVE_NO_MAGICLINKS | RESOLVE_NO_SYMLINKS)

int mount(const char *, const char *, const char *, unsigned long,
          const void *);
int umount2(const char *, int);

struct view {
    const struct mo_boxreq *r;
    const struct mo_owner *owner;
    int root; /* of the new box */
    int proc; /* of the host */
    uid_t uid;
    bool root_user;
};

/* --- building blocks ----------------------------------------------------- */

struct option {
    const char *key, *value;
};

/* Create a file system of that type; returns its mount as a descriptor. */
static int new_fs(const char *type, const struct option *v, size_t n,
                  unsigned attrs, struct mo_err *e)
{
    mo_autofd int fs = k_fsopen(type);
    int fd;

    if (fs < 0)
        return mo_fail_sys(e, "%s: fsopen", type);
    for (size_t i = 0; i < n; i++)
        if (k_fsconfig(fs, FSCONFIG_SET_STRING, v[i].key, v[i].value) < 0)
            return mo_fail_sys(e, "%s: %s=%s", type, v[i].key, v[i].value);
    if (k_fsconfig(fs, FSCONFIG_CMD_CREATE, NULL, NULL) < 0)
        return mo_fail_sys(e, "%s", type);
    fd = k_fsmount(fs, attrs);
    return fd < 0 ? mo_fail_sys(e, "%s: fsmount", type) : fd;
}

int mo_view_clone(int dir, const char *path, unsigned attrs, struct mo_err *e)
{
    struct mount_attr a = {.attr_set = attrs, .propagation = MS_PRIVATE_FLAG};
    mo_autofd int fd =
        k_open_tree(dir, path,
                    OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | AT_RECURSIVE |
                        AT_EMPTY_PATH | AT_SYMLINK_NOFOLLOW);

    if (fd < 0)
        return mo_fail_sys(e, "view of %s", path);
    if (k_mount_setattr(fd, AT_RECURSIVE, &a) < 0)
        return mo_fail_sys(e, "view of %s: read-only", path);
    return mo_take_fd(&fd);
}

static int put_file(struct view *v, const char *name, const char *text,
                    struct mo_err *e)
{
    mo_autofd int fd =
        openat(v->root, name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0444);
    size_t n = strlen(text);

    if (fd < 0 || write(fd, text, n) != (ssize_t)n)
        return mo_fail_sys(e, "/%s", name);
    return 0;
}

static int put_dir(struct view *v, const char *name, struct mo_err *e)
{
    if (mkdirat(v->root, name, 0755) < 0 && errno != EEXIST)
        return mo_fail_sys(e, "/%s", name);
    return 0;
}

/* Create the directories above a name. */
static int put_parents(struct view *v, const char *name, struct mo_err *e)
{
    char path[MO_BOXREQ_PATH_MAX + 1];
    int rc = 0;

    snprintf(path, sizeof(path), "%s", name);
    for (char *p = strchr(path, '/'); p && rc == 0; p = strchr(p + 1, '/')) {
        *p = '\0';
        rc = put_dir(v, path, e);
        *p = '/';
    }
    return rc;
}

static int put_link(struct view *v, int dir, const char *from, const char *name,
                    struct mo_err *e)
{
    char to[LINK_MAX + 1];
    ssize_t n = readlinkat(dir, from, to, LINK_MAX);

    if (n < 0)
        return mo_fail_sys(e, "/%s", name);
    to[n] = '\0';
    if (symlinkat(to, v->root, name) < 0)
        return mo_fail_sys(e, "/%s", name);
    return 0;
}

/* Put a tree over a file that the box has. */
static int cover_file(struct view *v, int tree, const char *name,
                      struct mo_err *e)
{
    mo_autofd int at = k_openat2(v->root, name, O_PATH, BENEATH);

    if (at < 0 || syscall(SYS_move_mount, tree, "", at, "",
                          MOVE_MOUNT_F_EMPTY_PATH | MOVE_MOUNT_T_EMPTY_PATH))
        return mo_fail_sys(e, "/%s", name);
    return 0;
}

static bool has_file(const struct view *v, const char *name)
{
    mo_autofd int at = k_openat2(v->root, name, O_PATH, BENEATH);
    struct stat st;

    return at >= 0 && fstat(at, &st) == 0 && S_ISREG(st.st_mode);
}

/* Show `from` below dir as `name`: a link stays a link, the rest is cloned
 * read-only. Names that the host does not have are skipped. */
static int show_name(struct view *v, int dir, const char *from,
                     const char *name, struct mo_err *e)
{
    mo_autofd int tree = -1;
    struct stat st;
    int rc;

    if (fstatat(dir, from, &st, AT_SYMLINK_NOFOLLOW) < 0)
        return errno == ENOENT || errno == ENOTDIR
                   ? 0
                   : mo_fail_sys(e, "view of %s", from);
    if (!S_ISLNK(st.st_mode) && !S_ISDIR(st.st_mode) && !S_ISREG(st.st_mode))
        return 0;
    rc = put_parents(v, name, e);
    if (rc < 0)
        return rc;
    if (S_ISLNK(st.st_mode))
        return put_link(v, dir, from, name, e);
    tree = mo_view_clone(dir, from, SAFE | MOUNT_ATTR_RDONLY, e);
    if (tree < 0)
        return tree;
    rc = S_ISDIR(st.st_mode) ? put_dir(v, name, e) : put_file(v, name, "", e);
    if (rc < 0)
        return rc;
    return cover_file(v, tree, name, e);
}

/* --- the parts of the root ----------------------------------------------- */

/* /etc: files that programs need to start and to find each other; no
 * secrets. */
static const char *const of_host[] = {
    "usr",
    "bin",
    "sbin",
    "lib",
    "lib32",
    "lib64",
    "libx32",
    "etc/alternatives",
    "etc/ca-certificates.conf",
    "etc/debian_version",
    "etc/fonts",
    "etc/java-17-openjdk",
    "etc/ld.so.cache",
    "etc/ld.so.conf",
    "etc/ld.so.conf.d",
    "etc/localtime",
    "etc/magic",
    "etc/mime.types",
    "etc/os-release",
    "etc/perl",
    "etc/protocols",
    "etc/python3",
    "etc/python3.11",
    "etc/services",
    "etc/ssl/certs",
    "etc/ssl/openssl.cnf",
    "etc/timezone",
};

#define RESOLVER "nameserver 127.0.0.1\n" /* of the box's network, net.h */

static int put_names(struct view *v, struct mo_err *e)
{
    bool network = *v->r->ports;
    char text[256];
    int rc = put_dir(v, "etc", e);

    snprintf(text, sizeof(text),
             "root:x:0:0:root:/:/usr/sbin/nologin\n"
             "box:x:%u:%u:box:/workspace:/bin/sh\n"
             "nobody:x:65534:65534:nobody:/:/usr/sbin/nologin\n",
             (unsigned)v->uid, (unsigned)v->uid);
    if (rc == 0)
        rc = put_file(v, "etc/passwd", text, e);
    snprintf(text, sizeof(text), "root:x:0:\nbox:x:%u:\nnogroup:x:65534:\n",
             (unsigned)v->uid);
    if (rc == 0)
        rc = put_file(v, "etc/group", text, e);
    if (rc == 0)
        rc = put_file(v, "etc/hosts",
                      network ? "127.0.0.1 localhost box\n::1 localhost box\n"
                              : "127.0.0.1 localhost box\n",
                      e);
    snprintf(text, sizeof(text),
             "passwd: files\ngroup: files\nhosts: files%s\n",
             network ? " dns" : "");
    if (rc == 0)
        rc = put_file(v, "etc/nsswitch.conf", text, e);
    if (rc == 0 && network)
        rc = put_file(v, "etc/resolv.conf", RESOLVER, e);
    return rc;
}

/* Replace the resolv.conf of an image. Libraries ask 127.0.0.1 if there is
 * none, and a link leads nowhere in a box. */
static int put_resolver(struct view *v, struct mo_err *e)
{
    mo_autofd int tree = -1;
    int rc;

    if (!has_file(v, "etc/resolv.conf"))
        return 0;
    rc = put_file(v, ".resolv.conf", RESOLVER, e);
    if (rc < 0)
        return rc;
    tree = mo_view_clone(v->root, ".resolv.conf", SAFE | MOUNT_ATTR_RDONLY, e);
    if (tree < 0)
        return tree;
    rc = cover_file(v, tree, "etc/resolv.conf", e);
    if (rc == 0 && unlinkat(v->root, ".resolv.conf", 0) < 0)
        rc = mo_fail_sys(e, "/etc/resolv.conf");
    return rc;
}

static int show_host(struct view *v, struct mo_err *e)
{
    mo_autofd int top = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
    int rc = top < 0 ? mo_fail_sys(e, "/") : 0;

    for (size_t i = 0; rc == 0 && i < MO_COUNT(of_host); i++)
        rc = show_name(v, top, of_host[i], of_host[i], e);
    for (size_t i = 0; rc == 0 && v->r->views[i]; i++) {
        const char *p = v->r->views[i];

        while (*p == '/')
            p++;
        rc = show_name(v, top, p, p, e);
    }
    return rc ? rc : put_names(v, e);
}

/* Names that the launcher creates itself, even if an image has them. */
static bool is_ours(const char *name)
{
    static const char *const ours[] = {".",   "..",  "dev",       "proc",
                                       "sys", "tmp", "workspace", "run"};

    for (size_t i = 0; i < MO_COUNT(ours); i++)
        if (strcmp(name, ours[i]) == 0)
            return true;
    return false;
}

static int show_image(struct view *v, struct mo_err *e)
{
    mo_autofd int top = mo_owner_open_dir(v->owner, v->r->root);
    DIR *d = top < 0 ? NULL : fdopendir(dup(top));
    int rc = 0;

    if (!d)
        return mo_fail_sys(e, "image %s", v->r->root);
    for (int i = 0; rc == 0; i++) {
        struct dirent *en = readdir(d);

        if (!en)
            break;
        if (i >= TOP_MAX)
            rc = mo_fail(e, MO_ETOOBIG,
                         "image %s: more than %d names at the top", v->r->root,
                         TOP_MAX);
        else if (!is_ours(en->d_name))
            rc = show_name(v, top, en->d_name, en->d_name, e);
    }
    closedir(d);
    return rc == 0 && *v->r->ports ? put_resolver(v, e) : rc;
}

/* Files of r->ca, over those in which programs look for certificates. The first
 * one is where run.c says. */
static int show_trusted(struct view *v, struct mo_err *e)
{
    mo_autofd int dir = mo_owner_open_dir(v->owner, v->r->ca);
    int rc = dir < 0 ? mo_fail_sys(e, "certificates") : put_dir(v, "run", e);

    if (rc == 0)
        rc = put_file(v, &MO_CA_PATH[1], "", e);
    for (size_t i = 0; rc == 0 && i < MO_CA_FILES; i++) {
        const struct mo_ca_file *f = &mo_ca_files[i];
        mo_autofd int file = -1, tree = -1;

        if (!has_file(v, f->path + 1))
            continue;
        mo_owner_enter(v->owner);
        file = k_openat2(dir, f->source, O_RDONLY, BENEATH);
        mo_owner_leave(v->owner);
        if (file < 0 && errno == ENOENT)
            continue;
        if (file < 0)
            return mo_fail_sys(e, "certificates: %s", f->source);
        tree = mo_view_clone(file, "",
                             SAFE | MOUNT_ATTR_NOEXEC | MOUNT_ATTR_RDONLY, e);
        rc = tree < 0 ? tree : cover_file(v, tree, f->path + 1, e);
    }
    return rc;
}

static int show_devices(struct view *v, struct mo_err *e)
{
    static const struct {
        const char *from, *name;
        unsigned minor;
    } devices[] = {{"/dev/null", "dev/null", 3},
                   {"/dev/zero", "dev/zero", 5},
                   {"/dev/full", "dev/full", 7},
                   {"/dev/random", "dev/random", 8},
                   {"/dev/urandom", "dev/urandom", 9}};
    static const struct option links[] = {{"/proc/self/fd", "dev/fd"},
                                          {"/proc/self/fd/0", "dev/stdin"},
                                          {"/proc/self/fd/1", "dev/stdout"},
                                          {"/proc/self/fd/2", "dev/stderr"}};
    int rc = put_dir(v, "dev", e);

    for (size_t i = 0; rc == 0 && i < MO_COUNT(devices); i++) {
        mo_autofd int tree =
            mo_view_clone(AT_FDCWD, devices[i].from,
                          MOUNT_ATTR_NOSUID | MOUNT_ATTR_NOEXEC, e);
        struct stat st;

        if (tree < 0)
            return tree;
        if (fstat(tree, &st) < 0 || !S_ISCHR(st.st_mode) ||
            st.st_rdev != makedev(1, devices[i].minor))
            return mo_fail(e, MO_EPOLICY, "%s is not the expected device",
                           devices[i].from);
        rc = put_file(v, devices[i].name, "", e);
        if (rc == 0 && k_attach(tree, v->root, devices[i].name) < 0)
            rc = mo_fail_sys(e, "/%s", devices[i].name);
    }
    for (size_t i = 0; rc == 0 && i < MO_COUNT(links); i++)
        if (symlinkat(links[i].key, v->root, links[i].value) < 0)
            rc = mo_fail_sys(e, "/%s", links[i].value);
    return rc;
}

static int put_tmpfs(struct view *v, const char *name, uint64_t size,
                     uint64_t inodes, unsigned attrs, struct mo_err *e)
{
    char bytes[24], nodes[24], who[24];
    const struct option opts[] = {{"size", bytes},
                                  {"nr_inodes", nodes},
                                  {"mode", "0700"},
                                  {"uid", who},
                                  {"gid", who}};
    mo_autofd int fd = -1;

    snprintf(bytes, sizeof(bytes), "%llu", (unsigned long long)size);
    snprintf(nodes, sizeof(nodes), "%llu", (unsigned long long)inodes);
    snprintf(who, sizeof(who), "%u", (unsigned)v->uid);
    fd = new_fs("tmpfs", opts, MO_COUNT(opts), attrs, e);
    if (fd < 0)
        return mo_wrap(e, "/%s", name);
    if (put_dir(v, name, e) < 0)
        return e ? e->code : MO_EIO;
    return k_attach(fd, v->root, name) < 0 ? mo_fail_sys(e, "/%s", name) : 0;
}

/* In a user namespace the kernel allows mounting /proc only while another one
 * is visible. The box unmounts it before it runs foreign code. */
static int show_proc(struct view *v, struct mo_err *e)
{
    mo_autofd int tree = -1;
    int rc = put_dir(v, "proc", e);

    if (rc < 0 || v->root_user)
        return rc;
    tree = mo_view_clone(v->proc, "", SAFE | MOUNT_ATTR_NOEXEC, e);
    if (tree < 0)
        return tree;
    return k_attach(tree, v->root, "proc") < 0 ? mo_fail_sys(e, "/proc") : 0;
}

static int put_places(struct view *v, struct mo_err *e)
{
    const struct mo_boxreq *r = v->r;
    int rc = show_proc(v, e);

    if (rc == 0)
        rc = put_tmpfs(v, "tmp", r->tmp, r->tmp_inodes,
                       SAFE | MOUNT_ATTR_NOEXEC, e);
    if (rc == 0)
        rc = put_tmpfs(v, "workspace", r->workspace, r->workspace_inodes, SAFE,
                       e);
    return rc;
}

/* --- enter --------------------------------------------------------------- */

static int write_map(const char *file, uid_t inside, uid_t outside,
                     struct mo_err *e)
{
    char text[64];

    snprintf(text, sizeof(text), "%u %u 1", (unsigned)inside,
             (unsigned)outside);
    if (mo_kernel_file_write(AT_FDCWD, file, text) < 0)
        return mo_fail_sys(e, "user namespace: %s", file);
    return 0;
}

static int enter_user_namespace(uid_t inside, struct mo_err *e)
{
    uid_t uid = geteuid();
    gid_t gid = getegid();
    int rc;

    if (unshare(CLONE_NEWUSER | CLONE_NEWNS) < 0)
        return mo_fail_sys(e, "not root, and this kernel allows no user "
                              "namespace (user.max_user_namespaces, "
                              "kernel.unprivileged_userns_clone)");
    if (mo_kernel_file_write(AT_FDCWD, "/proc/self/setgroups", "deny") < 0)
        return mo_fail_sys(e, "user namespace: setgroups");
    rc = write_map("/proc/self/uid_map", inside, uid, e);
    return rc ? rc : write_map("/proc/self/gid_map", inside, gid, e);
}

static int enter_namespace(uid_t uid, struct mo_err *e)
{
    int rc = 0;

    if (geteuid() != 0)
        rc = enter_user_namespace(uid, e);
    else if (unshare(CLONE_NEWNS) < 0)
        rc = mo_fail_sys(e, "mount namespace");
    /* our mounts do not propagate out; the host's unmounts propagate in */
    if (rc == 0 && mount(NULL, "/", NULL, MS_REC_FLAG | MS_SLAVE_FLAG, NULL))
        rc = mo_fail_sys(e, "mount namespace: propagation");
    return rc;
}

static int new_root(struct view *v, struct mo_err *e)
{
    static const struct option opts[] = {
        {"size", ROOT_SIZE}, {"nr_inodes", ROOT_INODES}, {"mode", "0755"}};

    v->proc = open("/proc", O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (v->proc < 0)
        return mo_fail_sys(e, "/proc");
    /* mounted on a directory that always exists; the host does not see it */
    v->root = new_fs("tmpfs", opts, MO_COUNT(opts), SAFE, e);
    if (v->root < 0)
        return v->root;
    if (k_attach(v->root, AT_FDCWD, "/proc") < 0)
        return mo_fail_sys(e, "root of the box");
    return 0;
}

/* Replace the old root: stack "." over "." and unmount the lower one. */
static int pivot_root_dir(struct view *v, struct mo_err *e)
{
    struct mount_attr ro = {.attr_set = MOUNT_ATTR_RDONLY};
    struct mount_attr own = {.propagation = MS_PRIVATE_FLAG};

    if (k_mount_setattr(v->root, 0, &ro) < 0)
        return mo_fail_sys(e, "root of the box: read-only");
    if (fchdir(v->root) < 0 || k_pivot_root(".", ".") < 0 ||
        umount2(".", MNT_DETACH_OLD) < 0 || chdir("/") < 0)
        return mo_fail_sys(e, "pivot_root");
    if (k_mount_setattr(v->root, AT_RECURSIVE, &own) < 0)
        return mo_fail_sys(e, "root of the box: propagation");
    return 0;
}

int mo_view_enter(const struct mo_boxreq *r, uid_t uid,
                  const struct mo_owner *owner, struct mo_err *e)
{
    struct view v = {.r = r,
                     .owner = owner,
                     .root = -1,
                     .proc = -1,
                     .uid = uid,
                     .root_user = geteuid() == 0};
    mode_t mask = umask(0);
    int rc = enter_namespace(uid, e);

    if (rc == 0)
        rc = new_root(&v, e);
    if (rc == 0)
        rc = *r->root ? show_image(&v, e) : show_host(&v, e);
    if (rc == 0 && *r->ca)
        rc = show_trusted(&v, e);
    if (rc == 0)
        rc = show_devices(&v, e);
    if (rc == 0)
        rc = put_places(&v, e);
    if (rc == 0)
        rc = mo_mounts_put(r, v.root, v.proc, uid, owner, e);
    if (rc == 0)
        rc = pivot_root_dir(&v, e);
    if (rc == 0)
        rc = mo_mounts_check(r, v.proc, e);
    mo_close_fd(&v.root);
    mo_close_fd(&v.proc);
    umask(mask);
    return rc;
}

/* No hidepid: code that stops a command must see every process it left, also
 * one that made itself unreadable, or one between fork and exec. The namespace
 * already hides all others. */
int mo_view_proc(struct mo_err *e)
{
    static const struct option opts[] = {{"subset", "pid"}};
    mo_autofd int fd =
        new_fs("proc", opts, MO_COUNT(opts), SAFE | MOUNT_ATTR_NOEXEC, e);

    if (fd < 0)
        return fd;
    umount2("/proc", MNT_DETACH_OLD); /* mounted by show_proc() */
    return k_attach(fd, AT_FDCWD, "/proc") < 0 ? mo_fail_sys(e, "/proc") : 0;
}

int mo_view_seal_proc(struct mo_err *e)
{
    struct mount_attr ro = {.attr_set = MOUNT_ATTR_RDONLY};
    mo_autofd int fd = open("/proc", O_PATH | O_DIRECTORY | O_CLOEXEC);

    if (fd < 0 || k_mount_setattr(fd, 0, &ro) < 0)
        return mo_fail_sys(e, "read-only /proc");
    return 0;
}
