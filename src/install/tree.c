#include "install/tree.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/str.h"

#define NAMES_BYTES_MAX ((size_t)64 * 1024 * 1024) /* of one directory */
#define CHUNK           ((size_t)64 * 1024)

/* --- walking -------------------------------------------------------------- */

struct walk {
    char path[PATH_MAX]; /* of the current item, below the top */
    size_t len;
    unsigned depth;
    int (*item)(struct walk *k, int dir, const char *name,
                const struct stat *st, struct mo_err *e);
    /* After the items of a directory; dir: itself, up: the one it is in. */
    int (*leave)(struct walk *k, int up, int dir, const char *name,
                 struct mo_err *e);
    bool force; /* makes directories writable first */
    uid_t from; /* whose files become root's; 0: nobody's */
    struct mo_tree *tree;
    struct mo_sha256 sum;
    size_t files;
};

struct names {
    struct mo_arena a;
    const char **v;
    size_t n, room;
};

static int compare_names(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static int add_name(struct names *l, const char *name)
{
    if (l->n == l->room) {
        size_t room = l->room ? 2 * l->room : 64;
        const char **v = mo_realloc(l->v, room * sizeof(*v));

        if (!v)
            return MO_ENOMEM;
        l->v = v;
        l->room = room;
    }
    l->v[l->n] = mo_arena_strndup(&l->a, name, strlen(name));
    return l->v[l->n++] ? 0 : MO_ENOMEM;
}

static void names_fini(struct names *l)
{
    mo_free(l->v);
    mo_arena_fini(&l->a);
}

static void close_dir(DIR **d)
{
    if (*d)
        (void)closedir(*d);
}

/* The names in a directory, sorted. */
static int read_names(struct walk *k, int fd, struct names *l, struct mo_err *e)
{
    int copy = fcntl(fd, F_DUPFD_CLOEXEC, 3);
    MO_CLEANUP(close_dir) DIR *d = copy < 0 ? NULL : fdopendir(copy);
    struct dirent *x;

    if (!d)
        return mo_fail_sys(e, "%s", k->path);
    errno = 0;
    for (x = readdir(d); x; x = readdir(d)) {
        if (strcmp(x->d_name, ".") == 0 || strcmp(x->d_name, "..") == 0)
            continue;
        if (++k->files > MO_TREE_FILES_MAX)
            return mo_fail(e, MO_ETOOBIG, "it has more than %zu files",
                           MO_TREE_FILES_MAX);
        if (add_name(l, x->d_name) < 0)
            return mo_fail(e, MO_ENOMEM, "names of files");
        errno = 0;
    }
    if (errno)
        return mo_fail_sys(e, "%s", k->path);
    if (l->n)
        qsort(l->v, l->n, sizeof(*l->v), compare_names);
    return 0;
}

static int walk_dir(struct walk *k, int up, const char *name, struct mo_err *e);

static int walk_item(struct walk *k, int dir, const char *name,
                     struct mo_err *e)
{
    size_t was = k->len;
    struct stat st;
    int n, rc;

    n = snprintf(k->path + was, sizeof(k->path) - was, "%s%s", was ? "/" : "",
                 name);
    if (n < 0 || (size_t)n >= sizeof(k->path) - was)
        return mo_fail(e, MO_ETOOBIG, "a path in it is too long");
    k->len += (size_t)n;
    if (fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
        rc = mo_fail_sys(e, "%s", k->path);
    else
        rc = k->item(k, dir, name, &st, e);
    if (rc == 0 && S_ISDIR(st.st_mode))
        rc = walk_dir(k, dir, name, e);
    k->len = was;
    k->path[was] = '\0';
    return rc;
}

static int walk_dir(struct walk *k, int up, const char *name, struct mo_err *e)
{
    mo_autofd int fd = -1;
    MO_CLEANUP(names_fini) struct names l = {.a = {.cap = NAMES_BYTES_MAX}};
    int rc;

    if (k->depth == MO_TREE_DEPTH_MAX)
        return mo_fail(e, MO_ETOOBIG, "its directories are nested too deeply");
    fd = openat(up, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd >= 0 && k->force)
        (void)fchmod(fd, 0700);
    if (fd < 0)
        return mo_fail_sys(e, "%s", k->len ? k->path : name);
    k->depth++;
    rc = read_names(k, fd, &l, e);
    for (size_t i = 0; rc == 0 && i < l.n; i++)
        rc = walk_item(k, fd, l.v[i], e);
    k->depth--;
    if (rc == 0 && k->leave)
        rc = k->leave(k, up, fd, name, e);
    return rc;
}

/* --- reading -------------------------------------------------------------- */

static bool leads_out(const struct walk *k, struct mo_span target)
{
    unsigned up = 0;
    bool down = false;

    if (target.n == 0 || target.p[0] == '/')
        return true;
    while (target.p) {
        struct mo_span part = mo_span_cut(&target, '/');

        if (part.n == 0 || mo_span_is(part, "."))
            continue;
        if (!mo_span_is(part, ".."))
            down = true;
        else if (down)
            return true;
        else
            up++;
    }
    return up >= k->depth; /* a link in the top has depth 1 */
}

static int read_link(struct walk *k, int dir, const char *name,
                     struct mo_err *e)
{
    char target[PATH_MAX];
    ssize_t n = readlinkat(dir, name, target, sizeof(target));

    if (n < 0 || (size_t)n == sizeof(target))
        return mo_fail_sys(e, "%s", k->path);
    if (leads_out(k, mo_span(target, (size_t)n)))
        return mo_fail(e, MO_EPOLICY, "the link %s leads out of its folder",
                       k->path);
    mo_sha256_put(&k->sum, target, (size_t)n);
    return 0;
}

static int read_file(struct walk *k, int dir, const char *name,
                     struct mo_err *e)
{
    mo_autofd int fd =
        openat(dir, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    unsigned char digest[MO_SHA256_LEN];
    mo_autofree char *chunk = mo_alloc(CHUNK);
    struct mo_sha256 sum;
    ssize_t n = 1;

    if (!chunk)
        return mo_fail(e, MO_ENOMEM, "%s", k->path);
    if (fd < 0)
        return mo_fail_sys(e, "%s", k->path);
    mo_sha256_init(&sum);
    while (n > 0) {
        n = read(fd, chunk, CHUNK);
        if (n < 0)
            return mo_fail_sys(e, "%s", k->path);
        mo_sha256_put(&sum, chunk, (size_t)n);
        k->tree->bytes += (size_t)n;
        if (k->tree->bytes > MO_TREE_BYTES_MAX)
            return mo_fail(e, MO_ETOOBIG, "it has more than %llu MiB",
                           (unsigned long long)(MO_TREE_BYTES_MAX >> 20));
    }
    mo_sha256_end(&sum, digest);
    mo_sha256_put(&k->sum, digest, sizeof(digest));
    return 0;
}

static int read_item(struct walk *k, int dir, const char *name,
                     const struct stat *st, struct mo_err *e)
{
    bool is_file = S_ISREG(st->st_mode);
    const char *kind = S_ISDIR(st->st_mode)    ? "d"
                       : S_ISLNK(st->st_mode)  ? "l"
                       : st->st_mode & S_IXUSR ? "x"
                                               : "f";

    if (!is_file && *kind != 'd' && *kind != 'l')
        return mo_fail(e, MO_EPOLICY, "%s is no file", k->path);
    if (is_file && st->st_mode & (S_ISUID | S_ISGID))
        return mo_fail(e, MO_EPOLICY, "%s is setuid or setgid", k->path);
    mo_sha256_put(&k->sum, kind, 1);
    mo_sha256_put(&k->sum, k->path, k->len + 1);
    if (*kind == 'l')
        return read_link(k, dir, name, e);
    return is_file ? read_file(k, dir, name, e) : 0;
}

int mo_tree_read(const char *dir, struct mo_tree *out, struct mo_err *e)
{
    unsigned char digest[MO_SHA256_LEN];
    struct walk k = {.item = read_item, .tree = out};
    int rc;

    *out = (struct mo_tree){.files = 0};
    mo_sha256_init(&k.sum);
    rc = walk_dir(&k, AT_FDCWD, dir, e);
    mo_sha256_end(&k.sum, digest);
    mo_hex(digest, sizeof(digest), out->digest);
    out->files = k.files;
    return rc;
}

/* --- sealing -------------------------------------------------------------- */

/* Decided by the open file: its name may lead to another one by now, also to a
 * hard link to a file of somebody else. */
static int take_file(const struct walk *k, int fd, struct mo_err *e)
{
    struct stat st;

    if (!k->from)
        return 0;
    if (fstat(fd, &st) < 0)
        return mo_fail_sys(e, "%s", k->path);
    if (st.st_uid != k->from)
        return mo_fail(e, MO_EPOLICY, "%s is not of user %u", k->path,
                       (unsigned)k->from);
    return fchownat(fd, "", 0, 0, AT_EMPTY_PATH) < 0
               ? mo_fail_sys(e, "%s", k->path)
               : 0;
}

static int seal_item(struct walk *k, int dir, const char *name,
                     const struct stat *st, struct mo_err *e)
{
    bool is_file = S_ISREG(st->st_mode);
    mo_autofd int fd = -1;

    if (S_ISDIR(st->st_mode) || (!is_file && !k->from))
        return 0;
    fd = openat(dir, name,
                O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC |
                    (is_file ? O_RDONLY : O_PATH));
    if (fd < 0)
        return mo_fail_sys(e, "%s", k->path);
    if (take_file(k, fd, e) < 0)
        return e->code;
    if (is_file &&
        (fchmod(fd, st->st_mode & S_IXUSR ? 0555 : 0444) < 0 || fsync(fd) < 0))
        return mo_fail_sys(e, "%s", k->path);
    return 0;
}

static int seal_dir(struct walk *k, int up, int dir, const char *name,
                    struct mo_err *e)
{
    (void)up;
    if (take_file(k, dir, e) < 0)
        return e->code;
    if (fchmod(dir, 0555) < 0 || fsync(dir) < 0)
        return mo_fail_sys(e, "%s", k->len ? k->path : name);
    return 0;
}

int mo_tree_seal(const char *dir, uid_t from, struct mo_err *e)
{
    struct walk k = {.item = seal_item, .leave = seal_dir, .from = from};

    return walk_dir(&k, AT_FDCWD, dir, e);
}

/* --- removing ------------------------------------------------------------- */

static int remove_item(struct walk *k, int dir, const char *name,
                       const struct stat *st, struct mo_err *e)
{
    if (S_ISDIR(st->st_mode)) /* root needs no rights, and follows no link */
        return geteuid() != 0 && fchmodat(dir, name, 0700, 0) < 0
                   ? mo_fail_sys(e, "%s", k->path)
                   : 0;
    return unlinkat(dir, name, 0) < 0 ? mo_fail_sys(e, "%s", k->path) : 0;
}

static int remove_dir(struct walk *k, int up, int dir, const char *name,
                      struct mo_err *e)
{
    (void)dir;
    return unlinkat(up, name, AT_REMOVEDIR) < 0
               ? mo_fail_sys(e, "%s", k->len ? k->path : name)
               : 0;
}

int mo_tree_remove(const char *dir, struct mo_err *e)
{
    struct walk k = {.item = remove_item, .leave = remove_dir, .force = true};
    struct stat st;

    if (lstat(dir, &st) < 0)
        return errno == ENOENT ? 0 : mo_fail_sys(e, "%s", dir);
    return walk_dir(&k, AT_FDCWD, dir, e);
}
