#include "base/file.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/mem.h"

#define READ_STEP   ((size_t)16 * 1024)
#define LOCK_NAP_MS 10

static struct mo_file_stamp stamp_of(const struct stat *st)
{
    return (struct mo_file_stamp){
        .there = true,
        .dev = st->st_dev,
        .ino = st->st_ino,
        .size = st->st_size,
        .mode = st->st_mode,
        .owner = st->st_uid,
        .group = st->st_gid,
        .mtime = st->st_mtim,
    };
}

void mo_file_stamp(const char *path, struct mo_file_stamp *out)
{
    struct stat st;

    *out = (struct mo_file_stamp){.there = false};
    if (stat(path, &st) == 0)
        *out = stamp_of(&st);
}

bool mo_file_same(const struct mo_file_stamp *a, const struct mo_file_stamp *b)
{
    if (!a->there || !b->there)
        return a->there == b->there;
    return a->dev == b->dev && a->ino == b->ino && a->size == b->size &&
           a->mtime.tv_sec == b->mtime.tv_sec &&
           a->mtime.tv_nsec == b->mtime.tv_nsec;
}

static int open_regular(const char *path, struct mo_file_stamp *stamp,
                        struct mo_err *e)
{
    mo_autofd int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    struct stat st;

    if (fd < 0 && (errno == ENOENT || errno == ENOTDIR))
        return mo_fail(e, MO_ENOTFOUND, "%s: no such file", path);
    if (fd < 0 || fstat(fd, &st) < 0)
        return mo_fail_sys(e, "%s", path);
    if (!S_ISREG(st.st_mode))
        return mo_fail(e, MO_EINVAL, "%s: not a regular file", path);
    if (stamp)
        *stamp = stamp_of(&st);
    return mo_take_fd(&fd);
}

int mo_file_read(const char *path, size_t max, struct mo_buf *out,
                 struct mo_file_stamp *stamp, struct mo_err *e)
{
    mo_autofd int fd = -1;

    if (stamp)
        *stamp = (struct mo_file_stamp){.there = false};
    fd = open_regular(path, stamp, e);
    if (fd < 0)
        return fd;
    for (;;) {
        char step[READ_STEP];
        ssize_t n = read(fd, step, sizeof(step));

        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return mo_fail_sys(e, "%s", path);
        if (n == 0)
            return 0;
        if ((size_t)n > max - out->len)
            return mo_fail(e, MO_ETOOBIG, "%s: larger than %zu KiB", path,
                           max / 1024);
        if (mo_buf_put(out, step, (size_t)n) < 0)
            return mo_fail(e, mo_buf_err(out), "%s: out of memory", path);
    }
}

int mo_file_read_own(const char *path, struct mo_buf *out)
{
    mo_autofd int fd =
        open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOFOLLOW);
    struct stat st;
    char *p = NULL;
    size_t at = 0, size = 0;

    if (fd < 0 || fstat(fd, &st) < 0 || !S_ISREG(st.st_mode) ||
        st.st_size <= 0 || (uint64_t)st.st_size > out->max - out->len)
        return MO_ENOTFOUND;
    size = (size_t)st.st_size;
    p = mo_buf_room(out, size);
    if (!p)
        return mo_buf_err(out);
    while (at < size) {
        ssize_t got = read(fd, p + at, size - at);

        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0)
            return MO_ENOTFOUND;
        at += (size_t)got;
    }
    mo_buf_add(out, size);
    return 0;
}

int mo_file_write_all(int fd, struct mo_span text, struct mo_err *e)
{
    while (text.n) {
        ssize_t n = write(fd, text.p, text.n);

        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return mo_fail_sys(e, "write");
        text = mo_span_skip(text, (size_t)n);
    }
    return 0;
}

/* Create the file `beside` with this content; synced if `sure`. */
static int write_beside(const char *beside, struct mo_span text, mode_t mode,
                        bool sure, struct mo_err *e)
{
    mo_autofd int fd = -1;
    int rc;

    (void)unlink(beside); /* left by a crash; never write into a foreign file */
    fd = open(beside, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (fd < 0)
        return mo_fail_sys(e, "write %s", beside);
    rc = mo_file_write_all(fd, text, e);
    if (rc == 0 &&
        ((mode != 0600 && fchmod(fd, mode) < 0) || (sure && fsync(fd) < 0)))
        rc = mo_fail_sys(e, "write %s", beside);
    return rc;
}

static int open_dir_of(const char *path)
{
    const char *slash = strrchr(path, '/');
    mo_autofree char *dir =
        slash ? mo_strndup(path, (size_t)(slash - path) + 1) : NULL;

    if (slash && !dir)
        errno = ENOMEM;
    return slash && !dir
               ? -1
               : open(dir ? dir : ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
}

int mo_file_lock(const char *path, unsigned ms, struct mo_err *e)
{
    static const struct timespec nap = {.tv_nsec = LOCK_NAP_MS * 1000000L};
    uint64_t end = mo_now_ns() + ms * MO_MS;
    mo_autofd int fd = open_dir_of(path);

    if (fd < 0)
        return mo_fail_sys(e, "%s", path);
    while (flock(fd, LOCK_EX | LOCK_NB) < 0) {
        if (errno != EWOULDBLOCK && errno != EINTR)
            return mo_fail_sys(e, "%s", path);
        if (mo_now_ns() > end)
            return mo_fail(e, MO_EBUSY,
                           "another process is writing %s; try again", path);
        (void)nanosleep(&nap, NULL);
    }
    return mo_take_fd(&fd);
}

/* A new name is on disk only after its directory is synced. */
static void sync_dir(const char *path)
{
    mo_autofd int fd = open_dir_of(path);

    if (fd >= 0)
        (void)fsync(fd); /* some file systems cannot */
}

static int replace_file(const char *path, struct mo_span text, mode_t mode,
                        bool sure, struct mo_err *e)
{
    char beside[PATH_MAX];
    int n = snprintf(beside, sizeof(beside), "%s.%ld", path, (long)getpid());
    int rc;

    if (n < 0 || (size_t)n >= sizeof(beside))
        return mo_fail(e, MO_ETOOBIG, "%s: path too long", path);
    rc = write_beside(beside, text, mode, sure, e);
    if (rc == 0 && rename(beside, path) < 0)
        rc = mo_fail_sys(e, "write %s", path);
    if (rc < 0)
        (void)unlink(beside);
    return rc;
}

int mo_file_replace(const char *path, struct mo_span text, struct mo_err *e)
{
    return replace_file(path, text, 0600, false, e);
}

int mo_file_save(const char *path, struct mo_span text, mode_t mode,
                 struct mo_err *e)
{
    int rc = replace_file(path, text, mode, true, e);

    if (rc == 0)
        sync_dir(path);
    return rc;
}

int mo_file_create(const char *path, struct mo_span text, struct mo_err *e)
{
    char beside[PATH_MAX];
    int n =
        snprintf(beside, sizeof(beside), "%s.%ld.new", path, (long)getpid());
    int rc;

    if (n < 0 || (size_t)n >= sizeof(beside))
        return mo_fail(e, MO_ETOOBIG, "%s: path too long", path);
    rc = write_beside(beside, text, 0600, true, e);
    if (rc == 0 && link(beside, path) < 0 && errno != EEXIST)
        rc = mo_fail_sys(e, "write %s", path);
    (void)unlink(beside);
    if (rc == 0)
        sync_dir(path);
    return rc;
}

int mo_file_trust(const char *path, const struct mo_file_stamp *stamp,
                  bool is_private, struct mo_err *e)
{
    if (stamp->owner != geteuid() && stamp->owner != 0)
        return mo_fail(e, MO_EPOLICY,
                       "%s belongs to another user (uid %ld): chown it, or use "
                       "a file of your own",
                       path, (long)stamp->owner);
    if (is_private && (stamp->mode & 0077))
        return mo_fail(e, MO_EPOLICY,
                       "%s must be readable by nobody else: chmod 600 it",
                       path);
    if ((stamp->mode & 0002) ||
        ((stamp->mode & 0020) && stamp->group != stamp->owner))
        return mo_fail(e, MO_EPOLICY,
                       "%s can be written by others: chmod go-w it", path);
    return 0;
}

int mo_file_change(const struct mo_file_change *c, struct mo_err *e)
{
    mo_autofd int held = mo_file_lock(c->path, MO_FILE_LOCK_MS, e);
    mo_autobuf struct mo_buf old = {.max = c->max}, out = {.max = c->max};
    struct mo_span text = {NULL, 0};
    int rc;

    if (held < 0)
        return held;
    rc = mo_file_read(c->path, c->max, &old, NULL, e);
    if (rc == 0)
        text = mo_span(old.p ? old.p : "", old.len);
    if (rc == 0 || rc == MO_ENOTFOUND)
        rc = c->edit(c->ctx, text, &out, e);
    if (rc == 0 && mo_buf_err(&out))
        rc = mo_fail(e, mo_buf_err(&out), "%s: larger than %zu KiB", c->path,
                     c->max / 1024);
    if (rc < 0 || out.len == 0)
        return rc;
    return c->sync ? mo_file_save(c->path, mo_buf_view(&out), 0600, e)
                   : mo_file_replace(c->path, mo_buf_view(&out), e);
}

int mo_file_mkdir(const char *path, struct mo_err *e)
{
    char part[PATH_MAX];
    size_t n = strlen(path);

    if (n == 0 || n >= sizeof(part))
        return mo_fail(e, MO_EINVAL, "directory name is empty or too long");
    for (size_t i = 1; i <= n; i++) {
        if (path[i] != '/' && path[i] != '\0')
            continue;
        memcpy(part, path, i);
        part[i] = '\0';
        if (mkdir(part, 0700) < 0 && errno != EEXIST)
            return mo_fail_sys(e, "directory %s", part);
    }
    return 0;
}
