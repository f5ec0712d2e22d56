/* kept_save.c - write the tree of a workspace. See kept.h. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "base/mem.h"
#include "launcher/kept.h"

#define BUCKETS 4096
#define FLUSH   ((size_t)64 * 1024)
#define BUF_MAX (FLUSH + 2 * MO_KEPT_RECORD)

/* A file with several names. */
struct linked {
    struct linked *next;
    ino_t ino;
    char path[];
};

struct saver {
    int out; /* -1: only the print is made */
    uint64_t print;
    struct mo_buf buf;
    struct mo_buf path; /* of the present folder, "a/b/" */
    struct linked **links;
    char block[MO_KEPT_DATA_MAX];
};

/* --- output -------------------------------------------------------------- */

static int write_all(int fd, const char *p, size_t n, struct mo_err *e)
{
    while (n > 0) {
        ssize_t k = write(fd, p, n);

        if (k < 0 && errno == EINTR)
            continue;
        if (k <= 0)
            return mo_fail_sys(e, "kept files");
        p += k;
        n -= (size_t)k;
    }
    return 0;
}

static int flush(struct saver *s, struct mo_err *e)
{
    int rc = mo_buf_err(&s->buf);

    if (rc < 0)
        return mo_fail(e, rc, "kept files");
    rc = write_all(s->out, s->buf.p, s->buf.len, e);
    mo_buf_reset(&s->buf);
    return rc;
}

static int put(struct saver *s, const struct mo_kept *k, struct mo_err *e)
{
    mo_kept_put(&s->buf, k);
    return s->buf.len < FLUSH && !mo_buf_err(&s->buf) ? 0 : flush(s, e);
}

/* --- names --------------------------------------------------------------- */

/* FNV-1a; inode and time of change are the kernel's, a box cannot choose
 * them. */
static void mix(struct saver *s, const void *p, size_t n)
{
    const unsigned char *c = p;

    for (size_t i = 0; i < n; i++)
        s->print = (s->print ^ c[i]) * 0x100000001b3ull;
}

static void mix_name(struct saver *s, const char *name, const struct stat *st)
{
    uint64_t v[] = {(uint64_t)st->st_ino, (uint64_t)st->st_mode,
                    (uint64_t)st->st_size, (uint64_t)st->st_ctim.tv_sec,
                    (uint64_t)st->st_ctim.tv_nsec};

    mix(s, name, strlen(name) + 1);
    mix(s, v, sizeof(v));
}

static uint64_t changed_at(const struct stat *st)
{
    if (st->st_mtim.tv_sec < 0)
        return 0;
    return (uint64_t)st->st_mtim.tv_sec * 1000000000u +
           (uint64_t)st->st_mtim.tv_nsec;
}

static struct mo_kept record_of(enum mo_kept_kind kind, const char *name,
                                const struct stat *st)
{
    return (struct mo_kept){.kind = kind,
                            .name = mo_span_cstr(name),
                            .mode = st->st_mode & 0777,
                            .time = changed_at(st)};
}

/* The path under which the file was written already; or NULL, and it is noted
 * for the next of its names. */
static const char *find_link(struct saver *s, const char *name,
                             const struct stat *st)
{
    struct linked **at = &s->links[(uint64_t)st->st_ino % BUCKETS], *l;
    size_t n = s->path.len + strlen(name);

    for (l = *at; l; l = l->next)
        if (l->ino == st->st_ino)
            return l->path;
    if (n > MO_KEPT_PATH_MAX)
        return NULL;
    l = mo_alloc(sizeof(*l) + n + 1);
    if (!l)
        return NULL;
    l->ino = st->st_ino;
    l->next = *at;
    (void)snprintf(l->path, n + 1, "%.*s%s", (int)s->path.len,
                   s->path.p ? s->path.p : "", name);
    *at = l;
    return NULL;
}

static void free_links(struct saver *s)
{
    for (size_t i = 0; s->links && i < BUCKETS; i++) {
        while (s->links[i]) {
            struct linked *l = s->links[i];

            s->links[i] = l->next;
            mo_free(l);
        }
    }
    mo_free(s->links);
}

/* --- content ------------------------------------------------------------- */

/* From `at` to `end`, or to where the file ends now. */
static int put_data(struct saver *s, int fd, off_t at, off_t end,
                    struct mo_err *e)
{
    int rc = 0;

    while (rc == 0 && at < end) {
        size_t want = (uint64_t)(end - at) < sizeof(s->block)
                          ? (size_t)(end - at)
                          : sizeof(s->block);
        ssize_t n = pread(fd, s->block, want, at);
        struct mo_kept k = {.kind = MO_KEPT_DATA, .at = (uint64_t)at};

        if (n <= 0)
            return n < 0 ? mo_fail_sys(e, "kept files: read") : 0;
        k.size = (uint64_t)n;
        mo_kept_put(&s->buf, &k);
        rc = flush(s, e);
        if (rc == 0)
            rc = write_all(s->out, s->block, (size_t)n, e);
        at += n;
    }
    return rc;
}

/* Holes are not written: the bytes of all files are never more than those of
 * the tmpfs. */
static int put_content(struct saver *s, int fd, off_t size, struct mo_err *e)
{
    off_t at = 0;
    int rc = 0;

    while (rc == 0 && at < size) {
        off_t data = lseek(fd, at, SEEK_DATA), hole;

        if (data < 0 || data >= size)
            break;
        hole = lseek(fd, data, SEEK_HOLE);
        if (hole < 0 || hole > size)
            hole = size;
        rc = put_data(s, fd, data, hole, e);
        at = hole;
    }
    return rc;
}

static int save_file(struct saver *s, int dir, const char *name,
                     struct mo_err *e)
{
    mo_autofd int fd =
        openat(dir, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    const char *first = NULL;
    struct mo_kept k;
    struct stat st;
    int rc;

    if (fd < 0 || fstat(fd, &st) < 0 || !S_ISREG(st.st_mode))
        return 0; /* it has changed meanwhile */
    if (st.st_nlink > 1)
        first = find_link(s, name, &st);
    k = record_of(first ? MO_KEPT_LINK : MO_KEPT_FILE, name, &st);
    k.to = mo_span_cstr(first ? first : "");
    k.size = (uint64_t)st.st_size;
    rc = put(s, &k, e);
    return rc == 0 && !first ? put_content(s, fd, st.st_size, e) : rc;
}

static int save_symlink(struct saver *s, int dir, const char *name,
                        const struct stat *st, struct mo_err *e)
{
    char to[MO_KEPT_PATH_MAX + 1];
    ssize_t n = readlinkat(dir, name, to, sizeof(to) - 1);
    struct mo_kept k = record_of(MO_KEPT_SYMLINK, name, st);

    if (n <= 0)
        return 0;
    k.to = mo_span(to, (size_t)n);
    return put(s, &k, e);
}

static int save_folder(struct saver *s, int dir, const char *name,
                       unsigned depth, struct mo_err *e);

static int save_name(struct saver *s, int dir, const char *name, unsigned depth,
                     struct mo_err *e)
{
    struct mo_kept k;
    struct stat st;

    if (fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
        return 0;
    if (s->out < 0)
        mix_name(s, name, &st);
    if (S_ISDIR(st.st_mode))
        return depth < MO_KEPT_DEPTH ? save_folder(s, dir, name, depth, e) : 0;
    if (s->out < 0)
        return 0;
    if (S_ISREG(st.st_mode))
        return save_file(s, dir, name, e);
    if (S_ISLNK(st.st_mode))
        return save_symlink(s, dir, name, &st, e);
    k = record_of(MO_KEPT_PIPE, name, &st);
    return S_ISFIFO(st.st_mode) ? put(s, &k, e) : 0;
}

static int save_names(struct saver *s, int fd, unsigned depth, struct mo_err *e)
{
    int copy = openat(fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *d = copy < 0 ? NULL : fdopendir(copy);
    int rc = 0;

    if (!d) {
        mo_close_fd(&copy);
        return mo_fail_sys(e, "kept files: folder");
    }
    while (rc == 0) {
        struct dirent *en = readdir(d);

        if (!en)
            break;
        if (strcmp(en->d_name, ".") != 0 && strcmp(en->d_name, "..") != 0)
            rc = save_name(s, fd, en->d_name, depth, e);
    }
    closedir(d);
    return rc;
}

static int save_folder(struct saver *s, int dir, const char *name,
                       unsigned depth, struct mo_err *e)
{
    static const struct mo_kept leave = {.kind = MO_KEPT_LEAVE};
    mo_autofd int fd =
        openat(dir, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    size_t was = s->path.len;
    struct mo_kept k;
    struct stat st;
    int rc = 0;

    if (fd < 0 || fstat(fd, &st) < 0)
        return 0;
    k = record_of(MO_KEPT_FOLDER, name, &st);
    if (s->out >= 0)
        rc = put(s, &k, e);
    (void)mo_buf_printf(&s->path, "%s/", name);
    if (rc == 0)
        rc = save_names(s, fd, depth + 1, e);
    s->path.len = was;
    return rc == 0 && s->out >= 0 ? put(s, &leave, e) : rc;
}

/* --- the file ------------------------------------------------------------ */

static int check_room(const struct mo_kept_place *p, uint64_t bytes,
                      struct mo_err *e)
{
    struct statvfs v;

    if (fstatvfs(p->dir, &v) < 0)
        return mo_fail_sys(e, "kept files");
    if ((uint64_t)v.f_bavail * v.f_frsize <
        bytes + (uint64_t)v.f_blocks * v.f_frsize / MO_KEPT_RESERVE)
        return mo_fail(e, MO_EIO,
                       "kept files: the disk of the state directory is full");
    return 0;
}

/* Nobody else has written or removed it since we saw it last. */
static bool is_ours(const struct mo_kept_place *p)
{
    struct stat st;

    if (fstatat(p->dir, p->name, &st, AT_SYMLINK_NOFOLLOW) < 0)
        return errno == ENOENT && !p->exists;
    return p->exists && st.st_dev == p->dev && st.st_ino == p->ino;
}

static int write_tree(struct saver *s, int from,
                      const struct mo_kept_head *head, struct mo_err *e)
{
    static const struct mo_kept end = {.kind = MO_KEPT_END};
    int rc;

    mo_kept_put_head(&s->buf, head);
    rc = save_names(s, from, 0, e);
    if (rc == 0)
        rc = put(s, &end, e);
    if (rc == 0)
        rc = flush(s, e);
    if (rc == 0 && fdatasync(s->out) < 0)
        rc = mo_fail_sys(e, "kept files");
    return rc;
}

/* In the owner's name. */
static int replace_file(struct mo_kept_place *p, struct saver *s, int from,
                        const struct mo_kept_head *head, struct mo_err *e)
{
    char temp[sizeof(p->name) + 8];
    int rc;

    (void)snprintf(temp, sizeof(temp), "%s.new", p->name);
    mo_owner_enter(p->owner);
    unlinkat(p->dir, temp, 0);
    s->out = openat(p->dir, temp,
                    O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    rc = s->out < 0 ? mo_fail_sys(e, "kept files") : 0;
    mo_owner_leave(p->owner);
    if (rc == 0)
        rc = write_tree(s, from, head, e);
    mo_close_fd(&s->out);
    mo_owner_enter(p->owner);
    if (rc == 0 && !is_ours(p))
        rc = mo_fail(e, MO_EPOLICY, "kept files: they belong to another box");
    if (rc == 0 && renameat(p->dir, temp, p->dir, p->name) < 0)
        rc = mo_fail_sys(e, "kept files");
    if (rc < 0)
        unlinkat(p->dir, temp, 0);
    mo_owner_leave(p->owner);
    return rc;
}

static int save_if_changed(struct mo_kept_place *p, struct saver *s, int from,
                           const struct mo_kept_head *labels, struct mo_err *e)
{
    struct mo_kept_head head = *labels;
    struct statvfs v;
    int rc = save_names(s, from, 0, e);

    if (rc < 0 || s->print == p->print)
        return rc < 0 ? rc : 1;
    if (fstatvfs(from, &v) < 0)
        return mo_fail_sys(e, "kept files");
    head.bytes = (uint64_t)(v.f_blocks - v.f_bfree) * v.f_frsize;
    head.inodes = (uint64_t)(v.f_files - v.f_ffree);
    rc = check_room(p, head.bytes, e);
    return rc < 0 ? rc : replace_file(p, s, from, &head, e);
}

int mo_kept_save(struct mo_kept_place *p, int from,
                 const struct mo_kept_head *labels, struct mo_err *e)
{
    struct saver *s = mo_zalloc(sizeof(*s));
    int rc;

    if (!s)
        return mo_fail(e, MO_ENOMEM, "kept files");
    s->out = -1;
    s->print = 0xcbf29ce484222325ull;
    mo_buf_init(&s->buf, BUF_MAX);
    mo_buf_init(&s->path, (MO_KEPT_DEPTH + 1) * (size_t)(MO_KEPT_NAME_MAX + 1));
    s->links = mo_zalloc(BUCKETS * sizeof(struct linked *));
    rc = s->links ? save_if_changed(p, s, from, labels, e)
                  : mo_fail(e, MO_ENOMEM, "kept files");
    if (rc == 0)
        mo_kept_saved(p, s->print);
    free_links(s);
    mo_buf_fini(&s->buf);
    mo_buf_fini(&s->path);
    mo_free(s);
    return rc;
}

void mo_kept_saved(struct mo_kept_place *p, uint64_t print)
{
    struct stat st;

    p->print = print;
    p->exists = fstatat(p->dir, p->name, &st, AT_SYMLINK_NOFOLLOW) == 0;
    if (p->exists) {
        p->dev = st.st_dev;
        p->ino = st.st_ino;
    }
}

void mo_kept_init(struct mo_kept_place *p, int dir, const char *name,
                  const struct mo_owner *owner)
{
    *p = (struct mo_kept_place){.dir = dir, .owner = owner};
    (void)snprintf(p->name, sizeof(p->name), "%s" MO_KEPT_SUFFIX, name);
}
