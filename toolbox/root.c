#include "toolbox/root.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/mem.h"

/* From linux/openat2.h, which a musl system lacks. */
struct how {
    uint64_t flags, mode, resolve;
};

enum {
    NO_MAGICLINKS = 0x02,
    NO_SYMLINKS = 0x04,
    BENEATH = 0x08,
    INSIDE = BENEATH | NO_MAGICLINKS,
};

#define RACE_TRIES 64  /* EAGAIN: a name changed during the lookup */
#define SHOWN      120 /* bytes of a path in a message */

static int open_beneath(int dir, const char *path, int flags, uint64_t resolve)
{
    struct how how = {.flags = (uint64_t)(flags | O_CLOEXEC),
                      .resolve = INSIDE | resolve};
    long fd = -1;

    for (int i = 0; i < RACE_TRIES; i++) {
        fd = syscall(SYS_openat2, dir, path, &how, sizeof(how));
        if (fd >= 0 || (errno != EAGAIN && errno != EINTR))
            break;
    }
    return (int)fd;
}

/* --- the root ------------------------------------------------------------ */

static int set_root_name(struct tb_root *r, const char *name, struct mo_err *e)
{
    size_t n = strlen(name);

    if (name[0] != '/')
        return mo_fail(e, MO_EINVAL, "the root %s must be an absolute path",
                       name);
    while (n && name[n - 1] == '/')
        n--;
    if (n >= sizeof(r->name))
        return mo_fail(e, MO_ETOOBIG, "the root's name is too long");
    memcpy(r->name, name, n);
    r->name[n] = '\0';
    return 0;
}

static int no_openat2(const char *name, struct mo_err *e)
{
    if (errno != ENOSYS && errno != EPERM)
        return mo_fail_sys(e, "the root %s", name);
    return mo_fail_sys(e,
                       "this kernel or its seccomp filter has no openat2, and "
                       "nothing else keeps paths inside %s",
                       name);
}

int tb_root_open(struct tb_root *r, const char *name, struct mo_err *e)
{
    int probe, rc;

    r->fd = -1;
    rc = set_root_name(r, name, e);
    if (rc < 0)
        return rc;
    r->fd = open(name, O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (r->fd < 0)
        return mo_fail_sys(e, "the root %s", name);
    probe = open_beneath(r->fd, ".", O_PATH | O_DIRECTORY, 0);
    if (probe < 0) {
        rc = no_openat2(name, e);
        tb_root_close(r);
        return rc;
    }
    (void)close(probe);
    return 0;
}

void tb_root_close(struct tb_root *r)
{
    mo_close_fd(&r->fd);
}

/* --- rules on the text --------------------------------------------------- */

/* The part after the root's own name, or NULL if the path is elsewhere. */
static const char *after_root(const struct tb_root *r, const char *path)
{
    size_t n = strlen(r->name);

    if (strncmp(path, r->name, n) != 0)
        return NULL;
    path += n;
    if (*path != '/' && *path != '\0')
        return NULL;
    while (*path == '/')
        path++;
    return path;
}

static unsigned count_components(const char *p)
{
    unsigned n = 0;

    for (; *p; p++)
        n += *p != '/' && (p[1] == '/' || p[1] == '\0');
    return n;
}

static bool ends_in_dots(const char *p)
{
    size_t n = strlen(p);

    while (n && p[n - 1] == '/')
        n--;
    return n >= 2 && memcmp(p + n - 2, "..", 2) == 0 &&
           (n == 2 || p[n - 3] == '/');
}

int tb_path_read(const struct tb_root *r, struct mo_span from,
                 struct tb_path *out, struct mo_err *e)
{
    const char *rest = out->text;

    if (from.n == 0)
        return mo_fail(e, MO_EPATH, "the path is empty");
    if (memchr(from.p, '\0', from.n))
        return mo_fail(e, MO_EPATH, "a path cannot hold a NUL character");
    if (from.n >= sizeof(out->text))
        return mo_fail(e, MO_EPATH, "the path is longer than %d bytes",
                       TB_PATH_MAX - 1);
    memcpy(out->text, from.p, from.n);
    out->text[from.n] = '\0';
    if (out->text[0] == '/')
        rest = after_root(r, out->text);
    if (!rest)
        return mo_fail(e, MO_EPATH,
                       "%.*s lies outside %s: give a path relative to it",
                       SHOWN, out->text, r->name);
    if (count_components(rest) > TB_DEPTH_MAX)
        return mo_fail(e, MO_EPATH, "the path is deeper than %d directories",
                       TB_DEPTH_MAX);
    if (ends_in_dots(rest))
        return mo_fail(e, MO_EPATH, "a path cannot end in \"..\"");
    memmove(out->text, rest, strlen(rest) + 1);
    if (out->text[0] == '\0')
        memcpy(out->text, ".", 2);
    return 0;
}

/* --- opening ------------------------------------------------------------- */

int tb_path_fail(struct mo_err *e, int sys, const char *path)
{
    static const struct {
        int sys, code;
        const char *why;
    } rows[] = {
        {EXDEV, MO_EPATH, "leads outside the workspace"},
        {ELOOP, MO_EPATH, "goes through a symbolic link that is not followed"},
        {EAGAIN, MO_EPATH, "changes while it is looked up: try again"},
        {ENAMETOOLONG, MO_EPATH, "is too long"},
        {ENOENT, MO_ENOTFOUND,
         "does not exist: see list_files for what is there"},
        {ENOTDIR, MO_EPATH, "goes through something that is no directory"},
        {EISDIR, MO_EPATH, "is a directory"},
        {ENXIO, MO_EPATH, "is no regular file"},
        {ENODEV, MO_EPATH, "is no regular file"},
        {EACCES, MO_EPOLICY, "is not permitted to this user"},
        {EPERM, MO_EPOLICY, "is not permitted to this user"},
        {EROFS, MO_EPOLICY, "is on a read-only file system"},
        {ENOSPC, MO_EIO, "could not be written: the disk is full"},
        {EDQUOT, MO_EIO, "could not be written: the quota is used up"},
        {EFBIG, MO_ETOOBIG, "would be larger than files may be here"},
    };

    for (size_t i = 0; i < MO_COUNT(rows); i++) {
        if (rows[i].sys != sys)
            continue;
        (void)mo_fail(e, rows[i].code, "%.*s %s", SHOWN, path, rows[i].why);
        if (e)
            e->sys = sys;
        return rows[i].code;
    }
    errno = sys;
    return mo_fail_sys(e, "%.*s", SHOWN, path);
}

/* O_NONBLOCK: opening a FIFO must not block before fstat() can tell. */
int tb_open_any(const struct tb_root *r, const struct tb_path *p,
                struct stat *st, struct mo_err *e)
{
    mo_autofd int fd =
        open_beneath(r->fd, p->text, O_RDONLY | O_NONBLOCK | O_NOCTTY, 0);

    if (fd < 0 || fstat(fd, st) < 0) {
        (void)tb_path_fail(e, errno, p->text);
        return -1;
    }
    if (!S_ISREG(st->st_mode) && !S_ISDIR(st->st_mode)) {
        (void)tb_path_fail(e, ENXIO, p->text);
        return -1;
    }
    return mo_take_fd(&fd);
}

int tb_open_file(const struct tb_root *r, const struct tb_path *p,
                 struct stat *st, struct mo_err *e)
{
    struct stat own;
    mo_autofd int fd = tb_open_any(r, p, st ? st : &own, e);

    if (fd < 0)
        return -1;
    if (S_ISDIR((st ? st : &own)->st_mode)) {
        (void)tb_path_fail(e, EISDIR, p->text);
        return -1;
    }
    return mo_take_fd(&fd);
}

int tb_open_dir(const struct tb_root *r, const struct tb_path *p, int flags,
                struct mo_err *e)
{
    int fd = open_beneath(r->fd, p->text, flags | O_DIRECTORY, 0);

    if (fd < 0)
        (void)tb_path_fail(e, errno, p->text);
    return fd;
}

/* --- the parent of a file to be written ---------------------------------- */

static bool is_dots(const char *name)
{
    return strcmp(name, ".") == 0 || strcmp(name, "..") == 0;
}

/* Open one component, creating it if it is missing. */
static int step_down(int dir, const char *name)
{
    int fd = open_beneath(dir, name, O_PATH | O_DIRECTORY, NO_SYMLINKS);

    if (fd >= 0 || errno != ENOENT)
        return fd;
    if (mkdirat(dir, name, 0777) < 0 && errno != EEXIST)
        return -1;
    return open_beneath(dir, name, O_PATH | O_DIRECTORY, NO_SYMLINKS);
}

/* Create missing directories component by component, each beneath the one
 * before, so ".." cannot leave a directory that was just created. */
static int make_parents(const struct tb_root *r, char *parent)
{
    mo_autofd int dir =
        open_beneath(r->fd, ".", O_PATH | O_DIRECTORY, NO_SYMLINKS);
    struct mo_span rest = mo_span_cstr(parent);

    while (rest.p && dir >= 0) {
        struct mo_span name = mo_span_cut(&rest, '/');
        char text[NAME_MAX + 1];
        int next;

        if (name.n == 0 || mo_span_is(name, "."))
            continue;
        if (name.n > NAME_MAX || mo_span_is(name, "..")) {
            errno = name.n > NAME_MAX ? ENAMETOOLONG : ENOENT;
            return -1;
        }
        memcpy(text, name.p, name.n);
        text[name.n] = '\0';
        next = step_down(dir, text);
        mo_close_fd(&dir);
        dir = next;
    }
    return mo_take_fd(&dir);
}

int tb_open_parent(const struct tb_root *r, const struct tb_path *p,
                   bool create, const char **base, struct mo_err *e)
{
    const char *slash = strrchr(p->text, '/');
    char parent[TB_PATH_MAX] = ".";
    int fd;

    *base = slash ? slash + 1 : p->text;
    if (**base == '\0' || is_dots(*base)) {
        (void)mo_fail(e, MO_EPATH, "%.*s names a directory, not a file", SHOWN,
                      p->text);
        return -1;
    }
    if (slash) {
        memcpy(parent, p->text, (size_t)(slash - p->text));
        parent[slash - p->text] = '\0';
    }
    fd = open_beneath(r->fd, parent, O_PATH | O_DIRECTORY, NO_SYMLINKS);
    if (fd < 0 && errno == ENOENT && create)
        fd = make_parents(r, parent);
    if (fd < 0)
        (void)tb_path_fail(e, errno, p->text);
    return fd;
}
