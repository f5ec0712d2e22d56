#include "box/host_path.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/mem.h"

#ifndef AT_EMPTY_PATH
#    define AT_EMPTY_PATH 0x1000
#endif

/* --- places ----------------------------------------------------------------
 */

/* With everything in them, and every folder that contains one. */
static const struct {
    const char *path, *why;
} closed[] = {
    {"/proc", "files of the kernel"},
    {"/sys", "files of the kernel"},
    {"/dev", "devices"},
    {"/run", "sockets of services"},
    {"/boot", "the system's kernel"},
    {"/var/lib/docker", "data of a container engine"},
    {"/var/lib/containerd", "data of a container engine"},
    {"/var/lib/containers", "data of a container engine"},
    {"/etc/shadow", "passwords"},
    {"/etc/gshadow", "passwords"},
    {"/etc/sudoers", "rights of users"},
    {"/etc/sudoers.d", "rights of users"},
    {"/etc/ssh", "keys of this machine"},
    {"/etc/ssl/private", "keys of this machine"},
};

/* Only as a whole. */
static const char *const too_much[] = {"/tmp", "/var/tmp", "/home", "/root"};

/* Programs are found or started there. */
static const char *const of_system[] = {"/bin",   "/etc",   "/lib",
                                        "/lib32", "/lib64", "/libx32",
                                        "/sbin",  "/usr",   "/var/spool"};

/* Where people keep keys, wherever the home is. */
static const char *const keys[] = {".ssh",
                                   ".gnupg",
                                   ".aws",
                                   ".azure",
                                   ".kube",
                                   ".netrc",
                                   ".git-credentials",
                                   ".password-store",
                                   ".pgpass",
                                   ".vault-token",
                                   ".config/gcloud",
                                   ".config/gh",
                                   ".config/google-chrome",
                                   ".config/chromium",
                                   ".local/share/keyrings",
                                   ".mozilla"};

static bool overlaps(const char *a, const char *b)
{
    return mo_path_is_in(a, b) || mo_path_is_in(b, a);
}

static int refuse_closed(const char *path, struct mo_err *e)
{
    for (size_t i = 0; i < MO_COUNT(closed); i++)
        if (overlaps(path, closed[i].path))
            return mo_fail(e, MO_EPOLICY, "no box may see %s (%s)",
                           closed[i].path, closed[i].why);
    for (size_t i = 0; i < MO_COUNT(too_much); i++)
        if (strcmp(path, too_much[i]) == 0)
            return mo_fail(e, MO_EPOLICY,
                           "it is too much: name a folder in it");
    return 0;
}

static int refuse_own(const char *path, const char *own, struct mo_err *e)
{
    char real[PATH_MAX];

    if (!overlaps(path, own) && !(realpath(own, real) && overlaps(path, real)))
        return 0;
    return mo_fail(e, MO_EPOLICY, "no box may see %s (a file of this program)",
                   own);
}

static bool is_home(const char *path, const char *home)
{
    char real[PATH_MAX];

    if (strncmp(path, "/home/", 6) == 0 && !strchr(path + 6, '/'))
        return true;
    return home && (strcmp(path, home) == 0 ||
                    (realpath(home, real) && strcmp(path, real) == 0));
}

/* "/home/me/.config/x": a name below the home that starts with a dot. */
static bool is_hidden_in_home(const char *path, const char *home)
{
    char real[PATH_MAX];
    const char *rest = NULL;

    if (strncmp(path, "/home/", 6) == 0)
        rest = strchr(path + 6, '/');
    else if (mo_path_is_in(path, "/root"))
        rest = path + strlen("/root");
    if (rest && rest[0] == '/' && rest[1] == '.')
        return true;
    if (!home || !realpath(home, real) || !mo_path_is_in(path, real))
        return false;
    return strncmp(path + strlen(real), "/.", 2) == 0;
}

static int refuse_writing(const char *path, const char *home, struct mo_err *e)
{
    for (size_t i = 0; i < MO_COUNT(of_system); i++)
        if (mo_path_is_in(path, of_system[i]))
            return mo_fail(e, MO_EPOLICY,
                           "a box never writes to %s, whose programs others "
                           "run",
                           of_system[i]);
    if (is_hidden_in_home(path, home))
        return mo_fail(e, MO_EPOLICY,
                       "a box never writes to hidden files of a home, which "
                       "start programs");
    return 0;
}

/* --- keys ------------------------------------------------------------------
 */

/* Is "/TAIL" a part of the path? */
static bool has_tail(const char *path, const char *tail)
{
    size_t n = strlen(tail);

    for (const char *p = strchr(path, '/'); p; p = strchr(p + 1, '/'))
        if (strncmp(p + 1, tail, n) == 0 &&
            (p[1 + n] == '/' || p[1 + n] == '\0'))
            return true;
    return false;
}

static bool ends_with_dir(const char *path, const char *tail, size_t n)
{
    size_t len = strlen(path);

    return len > n && path[len - n - 1] == '/' &&
           memcmp(path + len - n, tail, n) == 0;
}

/* Does the folder hold it, or the rest of it if the folder is its beginning? */
static bool holds_tail(int fd, const char *path, const char *tail)
{
    struct stat st;

    if (fstatat(fd, tail, &st, AT_SYMLINK_NOFOLLOW) == 0)
        return true;
    for (const char *p = strchr(tail, '/'); p; p = strchr(p + 1, '/'))
        if (ends_with_dir(path, tail, (size_t)(p - tail)) &&
            fstatat(fd, p + 1, &st, AT_SYMLINK_NOFOLLOW) == 0)
            return true;
    return false;
}

static int refuse_keys(int fd, const char *path, struct mo_err *e)
{
    for (size_t i = 0; i < MO_COUNT(keys); i++) {
        if (has_tail(path, keys[i]) || holds_tail(fd, path, keys[i]))
            return mo_fail(e, MO_EPOLICY,
                           "no box may see %s, where people keep keys",
                           keys[i]);
    }
    return 0;
}

/* --- the inode -------------------------------------------------------------
 */

static int open_plain(const char *path, struct mo_err *e)
{
    struct open_how how = {.flags = O_PATH | O_CLOEXEC,
                           .resolve =
                               RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS};
    int fd = (int)syscall(SYS_openat2, AT_FDCWD, path, &how, sizeof(how));
    char real[PATH_MAX];

    if (fd >= 0)
        return fd;
    if (errno == ENOENT || errno == ENOTDIR)
        return mo_fail(e, MO_ENOTFOUND, "it does not exist");
    if (errno != ELOOP)
        return mo_fail_sys(e, "it cannot be opened");
    if (realpath(path, real))
        return mo_fail(e, MO_EPOLICY,
                       "a part of it is a link; if you mean %.100s, name that",
                       real);
    return mo_fail(e, MO_EPOLICY, "a part of it is a link");
}

/* The access of this process, which is what its servers have. */
static int check_access(int fd, const struct stat *st, bool rw,
                        struct mo_err *e)
{
    int mode = R_OK | (S_ISDIR(st->st_mode) ? X_OK : 0) | (rw ? W_OK : 0);

    if (syscall(SYS_faccessat2, fd, "", mode, AT_EMPTY_PATH | AT_EACCESS) == 0)
        return 0;
    if (errno == EROFS)
        return mo_fail(e, MO_EPOLICY, "its file system is read-only");
    return mo_fail(e, MO_EPOLICY, "the user of this program (%u) may not %s it",
                   (unsigned)geteuid(), rw ? "read and write" : "read");
}

static int judge_inode(int fd, const struct mo_mount *m,
                       const struct mo_host_guard *guard, struct stat *st,
                       struct mo_err *e)
{
    struct stat own;

    if (fstat(fd, st) < 0)
        return mo_fail_sys(e, "it cannot be read");
    if (!S_ISDIR(st->st_mode) && !S_ISREG(st->st_mode))
        return mo_fail(e, MO_EPOLICY,
                       "only folders and files can be mounted, no %s",
                       S_ISSOCK(st->st_mode) ? "sockets" : "special files");
    for (size_t i = 0; guard && guard->paths && guard->paths[i]; i++)
        if (stat(guard->paths[i], &own) == 0 && own.st_dev == st->st_dev &&
            own.st_ino == st->st_ino)
            return mo_fail(e, MO_EPOLICY,
                           "no box may see %s (a file of this program)",
                           guard->paths[i]);
    if (m->rw && geteuid() == 0 && st->st_uid == 0)
        return mo_fail(e, MO_EPOLICY,
                       "this program is root and the folder is root's, so new "
                       "files would be: give the folder to another user, or "
                       "run as one (--user)");
    return check_access(fd, st, m->rw, e);
}

static int judge_path(const struct mo_mount *m,
                      const struct mo_host_guard *guard, struct mo_err *e)
{
    const char *home = guard ? guard->home : NULL;
    int rc = refuse_closed(m->host, e);

    for (size_t i = 0; rc == 0 && guard && guard->paths && guard->paths[i]; i++)
        rc = refuse_own(m->host, guard->paths[i], e);
    if (rc == 0 && is_home(m->host, home))
        rc = mo_fail(e, MO_EPOLICY,
                     "a whole home is too much: name a folder in it");
    return rc == 0 && m->rw ? refuse_writing(m->host, home, e) : rc;
}

int mo_host_path_judge(const struct mo_mount *m,
                       const struct mo_host_guard *guard,
                       struct mo_host_inode *out, struct mo_err *e)
{
    mo_autofd int fd = -1;
    struct stat st;
    int rc = judge_path(m, guard, e);

    if (rc == 0) {
        fd = open_plain(m->host, e);
        rc = fd < 0 ? fd : judge_inode(fd, m, guard, &st, e);
    }
    if (rc == 0)
        rc = refuse_keys(fd, m->host, e);
    if (rc < 0)
        return mo_wrap(e, "mount %.100s", m->host);
    *out = (struct mo_host_inode){(uint64_t)st.st_dev, (uint64_t)st.st_ino};
    return 0;
}

int mo_host_path_workspace(const char *path, struct mo_host_inode *out,
                           struct mo_err *e)
{
    mo_autofd int fd = open_plain(path, e);
    struct stat st;

    if (fd < 0)
        return mo_wrap(e, "workspace %.100s", path);
    if (fstat(fd, &st) < 0 || !S_ISDIR(st.st_mode) || st.st_uid != geteuid() ||
        (st.st_mode & 077))
        return mo_fail(e, MO_EPOLICY,
                       "workspace %.100s: it must be a directory of this user "
                       "alone (mode 0700)",
                       path);
    *out = (struct mo_host_inode){(uint64_t)st.st_dev, (uint64_t)st.st_ino};
    return 0;
}
