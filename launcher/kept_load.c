/* kept_load.c - put kept files into a new workspace. See kept.h. */
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/mem.h"
#include "launcher/kept.h"
#include "launcher/kernel.h"

#define BUF_MAX ((size_t)2 * (MO_KEPT_DATA_MAX + MO_KEPT_RECORD))
#define NS      1000000000u

struct folder {
    int fd;
    mode_t mode;
    uint64_t time;
};

struct loader {
    int in, file;        /* file: the last one, or -1 */
    struct mo_kept last; /* of that file; its texts are gone */
    struct mo_buf buf;
    size_t done; /* bytes of buf that were used */
    struct folder at[MO_KEPT_DEPTH + 2];
    unsigned depth;
};

/* --- the file ------------------------------------------------------------ */

int mo_kept_open(struct mo_kept_place *p, int *fd, uint64_t *bytes,
                 uint64_t *inodes, struct mo_err *e)
{
    char room[MO_KEPT_HEAD];
    struct mo_kept_head h = {.bytes = 0};
    mo_autofd int file = -1;
    struct mo_span in;
    struct stat st;
    ssize_t n;
    int error, rc;

    mo_owner_enter(p->owner);
    file = openat(p->dir, p->name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
    error = errno;
    mo_owner_leave(p->owner);
    errno = error;
    if (file < 0 && error == ENOENT)
        return 0;
    n = file < 0 ? -1 : pread(file, room, sizeof(room), 0);
    if (n < 0 || fstat(file, &st) < 0)
        return mo_fail_sys(e, "kept files");
    in = mo_span(room, (size_t)n);
    rc = mo_kept_take_head(&in, &h, e);
    if (rc != 1)
        return rc < 0 ? rc : mo_fail(e, MO_EPROTO, "kept files: damaged");
    if (lseek(file, n - (ssize_t)in.n, SEEK_SET) < 0)
        return mo_fail_sys(e, "kept files");
    *bytes = h.bytes;
    *inodes = h.inodes;
    p->exists = true;
    p->dev = st.st_dev;
    p->ino = st.st_ino;
    *fd = mo_take_fd(&file);
    return 1;
}

/* Reads more of the file. */
static int fill(struct loader *l, struct mo_err *e)
{
    char *room;
    ssize_t n;

    mo_buf_drop(&l->buf, l->done);
    l->done = 0;
    room = mo_buf_room(&l->buf, MO_KEPT_DATA_MAX);
    if (!room)
        return mo_fail(e, MO_ENOMEM, "kept files");
    do {
        n = read(l->in, room, MO_KEPT_DATA_MAX);
    } while (n < 0 && errno == EINTR);
    if (n < 0)
        return mo_fail_sys(e, "kept files");
    if (n == 0)
        return mo_fail(e, MO_EPROTO, "kept files: the end is missing");
    mo_buf_add(&l->buf, (size_t)n);
    return 0;
}

static struct mo_span unread(const struct loader *l)
{
    return mo_span_skip(mo_buf_view(&l->buf), l->done);
}

/* --- records ------------------------------------------------------------- */

static int dir_of(const struct loader *l)
{
    return l->at[l->depth].fd;
}

static void set_times(int fd, uint64_t ns)
{
    struct timespec t = {.tv_sec = (time_t)(ns / NS),
                         .tv_nsec = (long)(ns % NS)};
    const struct timespec both[2] = {t, t};

    (void)futimens(fd, both);
}

static void set_times_at(int dir, const char *name, uint64_t ns)
{
    struct timespec t = {.tv_sec = (time_t)(ns / NS),
                         .tv_nsec = (long)(ns % NS)};
    const struct timespec both[2] = {t, t};

    (void)utimensat(dir, name, both, AT_SYMLINK_NOFOLLOW);
}

/* The last file has all its content. */
static int close_file(struct loader *l, struct mo_err *e)
{
    int rc = 0;

    if (l->file < 0)
        return 0;
    if (ftruncate(l->file, (off_t)l->last.size) < 0 ||
        fchmod(l->file, (mode_t)l->last.mode) < 0)
        rc = mo_fail_sys(e, "kept files");
    set_times(l->file, l->last.time);
    mo_close_fd(&l->file);
    return rc;
}

static int leave_folder(struct loader *l, struct mo_err *e)
{
    struct folder *f = &l->at[l->depth];
    int rc = 0;

    if (l->depth == 0)
        return mo_fail(e, MO_EPROTO, "kept files: damaged");
    if (fchmod(f->fd, f->mode) < 0)
        rc = mo_fail_sys(e, "kept files");
    set_times(f->fd, f->time);
    mo_close_fd(&f->fd);
    l->depth--;
    return rc;
}

static int enter_folder(struct loader *l, const struct mo_kept *k,
                        const char *name, struct mo_err *e)
{
    struct folder *f = &l->at[l->depth + 1];

    if (l->depth == MO_KEPT_DEPTH)
        return mo_fail(e, MO_EPROTO, "kept files: too deep");
    if (mkdirat(dir_of(l), name, 0700) < 0)
        return mo_fail_sys(e, "kept files: folder");
    f->fd = openat(dir_of(l), name,
                   O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (f->fd < 0)
        return mo_fail_sys(e, "kept files: folder");
    f->mode = (mode_t)k->mode;
    f->time = k->time;
    l->depth++;
    return 0;
}

static int write_data(struct loader *l, const struct mo_kept *k,
                      struct mo_err *e)
{
    uint64_t at = k->at, left = k->size;
    int rc = 0;

    if (l->file < 0)
        return mo_fail(e, MO_EPROTO, "kept files: damaged");
    while (rc == 0 && left > 0) {
        struct mo_span in = mo_span_head(unread(l), left);
        ssize_t n;

        if (in.n == 0) {
            rc = fill(l, e);
            continue;
        }
        n = pwrite(l->file, in.p, in.n, (off_t)at);
        if (n <= 0)
            return mo_fail_sys(e, "kept files: content");
        l->done += (size_t)n;
        at += (uint64_t)n;
        left -= (uint64_t)n;
    }
    return rc;
}

static int make_name(struct loader *l, const struct mo_kept *k,
                     struct mo_err *e)
{
    char name[MO_KEPT_NAME_MAX + 1], to[MO_KEPT_PATH_MAX + 1];
    int dir = dir_of(l), rc = 0;

    (void)snprintf(name, sizeof(name), "%.*s", (int)k->name.n, k->name.p);
    (void)snprintf(to, sizeof(to), "%.*s", (int)k->to.n, k->to.p);
    if (k->kind == MO_KEPT_FOLDER)
        return enter_folder(l, k, name, e);
    if (k->kind == MO_KEPT_SYMLINK) {
        rc = symlinkat(to, dir, name);
        set_times_at(dir, name, k->time);
    } else if (k->kind == MO_KEPT_LINK) {
        rc = linkat(l->at[0].fd, to, dir, name, 0);
    } else if (k->kind == MO_KEPT_PIPE) {
        rc = mkfifoat(dir, name, (mode_t)k->mode);
        set_times_at(dir, name, k->time);
    } else {
        l->last = *k;
        l->file =
            openat(dir, name,
                   O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
        rc = l->file < 0 ? -1 : 0;
    }
    return rc < 0 ? mo_fail_sys(e, "kept files: name") : 0;
}

static int load_record(struct loader *l, const struct mo_kept *k,
                       struct mo_err *e)
{
    int rc;

    if (k->kind == MO_KEPT_DATA)
        return write_data(l, k, e);
    rc = close_file(l, e);
    if (rc < 0 || k->kind == MO_KEPT_END)
        return rc;
    return k->kind == MO_KEPT_LEAVE ? leave_folder(l, e) : make_name(l, k, e);
}

static int load_tree(struct loader *l, struct mo_err *e)
{
    struct mo_kept k = {.kind = MO_KEPT_LEAVE};
    int rc = 0;

    while (rc == 0 && k.kind != MO_KEPT_END) {
        struct mo_span in = unread(l);

        rc = mo_kept_take(&in, &k, e);
        if (rc == 0) {
            k.kind = MO_KEPT_LEAVE;
            rc = fill(l, e);
        } else if (rc == 1) {
            l->done += unread(l).n - in.n;
            rc = load_record(l, &k, e);
        }
    }
    return rc;
}

/* --- the process --------------------------------------------------------- */

static int become_box(const struct mo_cg *g, uid_t uid, bool root,
                      struct mo_err *e)
{
    int rc = mo_cg_join(g, e);

    if (rc < 0 || !root)
        return rc;
    if (setgroups(0, NULL) < 0 || setresgid(uid, uid, uid) < 0 ||
        setresuid(uid, uid, uid) < 0)
        return mo_fail_sys(e, "kept files: user");
    return 0;
}

static int load_here(int fd, int to, const struct mo_cg *g, uid_t uid,
                     bool root, struct mo_err *e)
{
    struct loader *l;
    int rc = become_box(g, uid, root, e);

    if (rc < 0)
        return rc;
    l = mo_zalloc(sizeof(*l));
    if (!l)
        return mo_fail(e, MO_ENOMEM, "kept files");
    l->in = fd;
    l->file = -1;
    l->at[0].fd = to;
    umask(0);
    mo_buf_init(&l->buf, BUF_MAX);
    return load_tree(l, e); /* the process ends: nothing is freed */
}

static int await_loader(pid_t pid, int result, struct mo_err *e)
{
    struct mo_err why;
    ssize_t n;
    int status = 0;

    do {
        n = read(result, &why, sizeof(why));
    } while (n < 0 && errno == EINTR);
    while (waitpid(pid, &status, 0) < 0 && errno == EINTR) {
    }
    if (n == (ssize_t)sizeof(why)) {
        why.msg[sizeof(why.msg) - 1] = '\0';
        if (e)
            *e = why;
        return why.code < 0 ? why.code : MO_EIO;
    }
    if (!WIFEXITED(status) || WEXITSTATUS(status) != 0)
        return mo_fail(e, MO_EIO,
                       "kept files: they need more memory than the box has");
    return 0;
}

int mo_kept_load(int fd, int to, const struct mo_cg *g, uid_t uid, bool root,
                 struct mo_err *e)
{
    mo_autofd int pidfd = -1, mine = -1, theirs = -1;
    int result[2];
    struct mo_err why;
    pid_t pid;

    if (pipe2(result, O_CLOEXEC) < 0)
        return mo_fail_sys(e, "kept files: pipe");
    mine = result[0];
    theirs = result[1];
    pid = k_clone(0, mo_cg_clone_fd(g), &pidfd);
    if (pid < 0)
        return mo_fail_sys(e, "kept files: process");
    if (pid == 0) {
        int rc = load_here(fd, to, g, uid, root, &why);

        if (rc < 0 && write(theirs, &why, sizeof(why)) < 0)
            _exit(2);
        _exit(rc < 0);
    }
    mo_close_fd(&theirs);
    return await_loader(pid, mine, e);
}
