#include "toolbox/files.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/rand.h"
#include "codec/text/base64.h"
#include "toolbox/box.h"
#include "toolbox/remove.h"
#include "toolbox/walk.h"

#define LIST_MAX   1000
#define NAMES_MAX  TB_BYTES_MAX /* bytes of names in one answer */
#define VISIT_MAX  100000       /* entries that one request looks at */
#define REMOVE_MAX 20000        /* entries that one request removes */
#define TOKEN      9            /* random bytes in a temporary name */
#define TEMP       ".mo-"
#define STALE_MS   3600000 /* age of a temporary file that nobody writes */

struct args {
    struct mo_span path, after, content, temp;
    int64_t offset, length, limit, age;
    bool recursive;
};

#define PATH                                                                   \
    {                                                                          \
        "path", NULL, TB_TEXT, true, offsetof(struct args, path)               \
    }

static const struct tb_field list_in[] = {
    {"path", NULL, TB_TEXT, false, offsetof(struct args, path)},
    {"recursive", NULL, TB_BOOL, false, offsetof(struct args, recursive)},
    {"after", NULL, TB_TEXT, false, offsetof(struct args, after)},
    {"limit", NULL, TB_INT, false, offsetof(struct args, limit), 1, LIST_MAX},
    {"changed_ms", NULL, TB_INT, false, offsetof(struct args, age), 0,
     INT64_MAX / 1000000},
    {0},
};

static const struct tb_field path_in[] = {PATH, {0}};

static const struct tb_field read_in[] = {
    PATH,
    {"offset", NULL, TB_INT, false, offsetof(struct args, offset), 0,
     INT64_MAX},
    {"length", NULL, TB_INT, false, offsetof(struct args, length), 0,
     (int64_t)TB_BYTES_MAX},
    {0},
};

static const struct tb_field write_in[] = {
    PATH,
    {"temp", NULL, TB_TEXT, false, offsetof(struct args, temp)},
    {"offset", NULL, TB_INT, false, offsetof(struct args, offset), 0,
     INT64_MAX},
    {"content", NULL, TB_TEXT, false, offsetof(struct args, content)},
    {0},
};

static const struct tb_field temp_in[] = {
    PATH,
    {"temp", NULL, TB_TEXT, true, offsetof(struct args, temp)},
    {0},
};

const char *tb_files_word(const struct mo_err *e)
{
    static const struct {
        int sys;
        const char *word;
    } rows[] = {
        {ENOSPC, "full"},
        {EDQUOT, "full"},
        {EISDIR, "is_directory"},
        {ENOTDIR, "not_directory"},
        {ENAMETOOLONG, "name_too_long"},
        {EFBIG, "too_big"},
    };

    for (size_t i = 0; i < MO_COUNT(rows); i++)
        if (rows[i].sys == e->sys)
            return rows[i].word;
    return mo_err_name(e->code);
}

static int read_args(struct tb_box *box, struct mo_json json,
                     const struct tb_field *in, struct mo_arena *a,
                     struct args *out, struct tb_path *p, struct mo_err *e)
{
    int rc = tb_fields_read(json, in, a, out, e);

    if (rc < 0)
        return rc;
    if (out->path.n == 0 && in == list_in)
        out->path = MO_SPAN(".");
    return tb_path_read(&box->root, out->path, p, e);
}

static uint64_t ms_of(struct timespec t)
{
    return t.tv_sec < 0
               ? 0
               : (uint64_t)t.tv_sec * 1000 + (uint64_t)t.tv_nsec / 1000000;
}

/* --- list ---------------------------------------------------------------- */

static const char *type_of(mode_t m)
{
    if (S_ISREG(m))
        return "file";
    if (S_ISDIR(m))
        return "directory";
    return S_ISLNK(m) ? "symlink" : "other";
}

/* A file that is being written, see tb_save() and open_temp(). */
static bool is_temp(struct mo_span name)
{
    return name.n == sizeof(TEMP) - 1 + MO_TOKEN_LEN(TOKEN) &&
           mo_span_starts(name, MO_SPAN(TEMP));
}

/* The order of a walk: a directory comes before its entries, and those before
 * its next neighbour. */
static int compare_paths(struct mo_span a, struct mo_span b)
{
    for (size_t i = 0; i < a.n && i < b.n; i++) {
        int x = a.p[i] == '/' ? 0 : (unsigned char)a.p[i];
        int y = b.p[i] == '/' ? 0 : (unsigned char)b.p[i];

        if (x != y)
            return x - y;
    }
    return a.n < b.n ? -1 : a.n > b.n;
}

static bool holds(struct mo_span dir, struct mo_span path)
{
    return path.n > dir.n && path.p[dir.n] == '/' && mo_span_starts(path, dir);
}

struct page {
    const struct args *a;
    struct mo_jw *w;
    uint64_t since; /* ms; 0: all */
    int64_t count;
    size_t bytes;
    bool more;
};

static void put_entry(struct page *g, const struct tb_walk *k)
{
    mode_t m = k->st.st_mode;

    mo_jw_obj(g->w);
    mo_jw_member_cstr(g->w, "name", k->path);
    mo_jw_member_cstr(g->w, "type", type_of(m));
    if (S_ISREG(m))
        mo_jw_member_u64(g->w, "size", (uint64_t)k->st.st_size);
    mo_jw_member_u64(g->w, "mtime", ms_of(k->st.st_mtim));
    if (S_ISREG(m) && (m & 0111))
        mo_jw_member_bool(g->w, "executable", true);
    mo_jw_end(g->w);
    g->count++;
    g->bytes += strlen(k->path) + 1;
}

/* False: the entry is not wanted on this page. */
static bool wants_entry(struct page *g, struct tb_walk *k)
{
    struct mo_span path = mo_span_cstr(k->path);

    if (g->a->after.n && compare_paths(path, g->a->after) <= 0) {
        if (!holds(path, g->a->after) && !mo_span_eq(path, g->a->after))
            tb_walk_skip(k);
        return false;
    }
    if (is_temp(mo_span_cstr(k->name)))
        return false;
    return !g->since ||
           (S_ISREG(k->st.st_mode) && ms_of(k->st.st_ctim) >= g->since);
}

static int put_page(struct page *g, struct tb_walk *k, struct mo_err *e)
{
    for (unsigned seen = 0;; seen++) {
        int rc = tb_walk_next(k, e);

        if (rc <= 0)
            return rc;
        if (seen == VISIT_MAX) {
            k->clipped = true;
            return 0;
        }
        if (!wants_entry(g, k))
            continue;
        g->more = g->count == g->a->limit || g->bytes >= NAMES_MAX;
        if (g->more)
            return 0;
        put_entry(g, k);
    }
}

static int run_list(void *ctx, struct mo_json json, struct mo_jw *w,
                    struct mo_err *e)
{
    mo_autoarena struct mo_arena arena = {.cap = TB_ARGS_MAX};
    mo_autofree struct tb_walk *k = mo_new(struct tb_walk);
    struct args a = {.limit = LIST_MAX, .age = -1};
    struct page g = {.a = &a, .w = w};
    struct tb_box *box = ctx;
    uint64_t now = mo_wall_ms();
    struct tb_path p;
    int fd, rc;

    if (!k)
        return mo_fail(e, MO_ENOMEM, "out of memory");
    if (read_args(box, json, list_in, &arena, &a, &p, e) < 0)
        return e->code;
    if (a.age >= 0)
        g.since = now > (uint64_t)a.age ? now - (uint64_t)a.age : 1;
    fd = tb_open_dir(&box->root, &p, O_RDONLY, e);
    if (fd < 0 || tb_walk_open(k, fd, a.recursive ? TB_WALK_DEPTH : 1, e) < 0)
        return e->code;
    mo_jw_member_cstr(w, "path", p.text);
    mo_jw_key(w, "entries");
    mo_jw_arr(w);
    rc = put_page(&g, k, e);
    mo_jw_end(w);
    mo_jw_member_bool(w, "more", g.more);
    mo_jw_member_bool(w, "clipped", k->clipped || k->denied);
    tb_walk_close(k);
    return rc;
}

/* --- read ---------------------------------------------------------------- */

static int run_read(void *ctx, struct mo_json json, struct mo_jw *w,
                    struct mo_err *e)
{
    mo_autoarena struct mo_arena arena = {.cap = TB_ARGS_MAX};
    mo_autobuf struct mo_buf bytes = {.max = TB_BYTES_MAX},
                             text = {.max = 2 * TB_BYTES_MAX};
    struct args a = {.length = (int64_t)TB_BYTES_MAX};
    struct tb_box *box = ctx;
    struct tb_path p;
    struct stat st;
    mo_autofd int fd = -1;

    if (read_args(box, json, read_in, &arena, &a, &p, e) < 0)
        return e->code;
    fd = tb_open_file(&box->root, &p, &st, e);
    if (fd < 0)
        return e->code;
    if (tb_read_bytes(fd, (off_t)a.offset, (size_t)a.length, &bytes) < 0)
        return tb_path_fail(e, errno, p.text);
    if (mo_base64_put(&text, mo_buf_view(&bytes)) < 0)
        return mo_fail(e, MO_ENOMEM, "out of memory");
    mo_jw_member_u64(w, "size", (uint64_t)st.st_size);
    mo_jw_member_u64(w, "mtime", ms_of(st.st_mtim));
    mo_jw_member_u64(w, "bytes", bytes.len);
    mo_jw_key(w, "content");
    mo_jw_str(w, mo_buf_view(&text));
    return 0;
}

/* --- write: parts of a temporary file, then its rename ------------------- */

/* The temporary file's name is the request's: it must be one of ours. */
static int check_temp(const struct args *a, char out[NAME_MAX + 1],
                      struct mo_err *e)
{
    if (!is_temp(a->temp) || memchr(a->temp.p, '/', a->temp.n) ||
        memchr(a->temp.p, '\0', a->temp.n))
        return mo_fail(e, MO_EINVAL, "temp is no name that write returned");
    memcpy(out, a->temp.p, a->temp.n);
    out[a->temp.n] = '\0';
    return 0;
}

/* What stands at the path now may be replaced: nothing, or a regular file. */
static int check_target(int dir, const char *base, mode_t *mode)
{
    struct stat st;

    *mode = 0;
    if (fstatat(dir, base, &st, AT_SYMLINK_NOFOLLOW) < 0)
        return errno == ENOENT ? 0 : -1;
    *mode = st.st_mode & 0777;
    if (S_ISREG(st.st_mode))
        return 1;
    errno = S_ISDIR(st.st_mode) ? EISDIR : S_ISLNK(st.st_mode) ? ELOOP : ENXIO;
    return -1;
}

static void remove_stale(int dir, const char *name)
{
    uint64_t now = mo_wall_ms();
    struct stat st;

    if (is_temp(mo_span_cstr(name)) &&
        fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) == 0 &&
        S_ISREG(st.st_mode) && ms_of(st.st_mtim) + STALE_MS < now)
        (void)unlinkat(dir, name, 0);
}

/* Temporary files that a crash has left in the directory. */
static void sweep_temps(int dir)
{
    int fd = openat(dir, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *d = fd < 0 ? NULL : fdopendir(fd);
    const struct dirent *en = NULL;

    if (d == NULL) {
        mo_close_fd(&fd);
        return;
    }
    for (unsigned i = 0; i < VISIT_MAX; i++) {
        en = readdir(d);
        if (en == NULL)
            break;
        remove_stale(dir, en->d_name);
    }
    (void)closedir(d);
}

/* O_EXCL for a new one; an old one must be a regular file. */
static int open_temp(int dir, const struct args *a, char name[NAME_MAX + 1],
                     struct mo_err *e)
{
    int flags = O_WRONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC;
    struct stat st;
    int fd;

    if (a->temp.n == 0) {
        sweep_temps(dir);
        (void)snprintf(name, NAME_MAX + 1, TEMP);
        mo_random_token(name + sizeof(TEMP) - 1, TOKEN);
        fd = openat(dir, name, flags | O_CREAT | O_EXCL, 0666);
    } else if (check_temp(a, name, e) < 0) {
        return -1;
    } else {
        fd = openat(dir, name, flags);
    }
    if (fd >= 0 && fstat(fd, &st) == 0 && S_ISREG(st.st_mode))
        return fd;
    (void)tb_path_fail(e, fd < 0 ? errno : ENXIO, name);
    mo_close_fd(&fd);
    return -1;
}

static int write_at(int fd, int64_t offset, struct mo_span s)
{
    while (s.n) {
        ssize_t n = pwrite(fd, s.p, s.n, (off_t)offset);

        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return -1;
        s = mo_span_skip(s, (size_t)n);
        offset += n;
    }
    return 0;
}

static int run_write(void *ctx, struct mo_json json, struct mo_jw *w,
                     struct mo_err *e)
{
    mo_autoarena struct mo_arena arena = {.cap = TB_ARGS_MAX};
    mo_autobuf struct mo_buf plain = {.max = TB_BYTES_MAX};
    char name[NAME_MAX + 1];
    struct args a = {.offset = 0};
    struct tb_box *box = ctx;
    const char *base;
    struct tb_path p;
    mode_t mode;
    mo_autofd int dir = -1, fd = -1;

    if (read_args(box, json, write_in, &arena, &a, &p, e) < 0)
        return e->code;
    if (mo_base64_decode(a.content, &plain) < 0)
        return mo_fail(e, MO_EINVAL, "content is not base64 of at most %zu",
                       TB_BYTES_MAX);
    dir = tb_open_parent(&box->root, &p, a.temp.n == 0, &base, e);
    if (dir < 0)
        return e->code;
    if (strlen(base) > NAME_MAX || check_target(dir, base, &mode) < 0)
        return tb_path_fail(e, strlen(base) > NAME_MAX ? ENAMETOOLONG : errno,
                            p.text);
    fd = open_temp(dir, &a, name, e);
    if (fd < 0)
        return e->code;
    if (write_at(fd, a.offset, mo_buf_view(&plain)) < 0) {
        int sys = errno;

        (void)unlinkat(dir, name, 0);
        return tb_path_fail(e, sys, p.text);
    }
    mo_jw_member_cstr(w, "temp", name);
    return 0;
}

static int run_commit(void *ctx, struct mo_json json, struct mo_jw *w,
                      struct mo_err *e)
{
    mo_autoarena struct mo_arena arena = {.cap = TB_ARGS_MAX};
    char name[NAME_MAX + 1];
    struct args a = {.offset = 0};
    struct tb_box *box = ctx;
    const char *base;
    struct tb_path p;
    mode_t mode;
    mo_autofd int dir = -1, fd = -1;
    int there;

    if (read_args(box, json, temp_in, &arena, &a, &p, e) < 0)
        return e->code;
    dir = tb_open_parent(&box->root, &p, false, &base, e);
    if (dir < 0)
        return e->code;
    fd = open_temp(dir, &a, name, e);
    if (fd < 0)
        return e->code;
    there = check_target(dir, base, &mode);
    if (there > 0)
        (void)fchmod(fd, mode);
    if (there < 0 || renameat(dir, name, dir, base) < 0) {
        int sys = errno;

        (void)unlinkat(dir, name, 0);
        return tb_path_fail(e, sys, p.text);
    }
    mo_jw_member_bool(w, "created", there == 0);
    return 0;
}

static int run_abort(void *ctx, struct mo_json json, struct mo_jw *w,
                     struct mo_err *e)
{
    mo_autoarena struct mo_arena arena = {.cap = TB_ARGS_MAX};
    char name[NAME_MAX + 1];
    struct args a = {.offset = 0};
    struct tb_box *box = ctx;
    const char *base;
    struct tb_path p;
    mo_autofd int dir = -1;

    (void)w;
    if (read_args(box, json, temp_in, &arena, &a, &p, e) < 0 ||
        check_temp(&a, name, e) < 0)
        return e->code;
    dir = tb_open_parent(&box->root, &p, false, &base, e);
    if (dir < 0)
        return e->code;
    if (unlinkat(dir, name, 0) < 0 && errno != ENOENT)
        return tb_path_fail(e, errno, p.text);
    return 0;
}

static int run_mkdir(void *ctx, struct mo_json json, struct mo_jw *w,
                     struct mo_err *e)
{
    mo_autoarena struct mo_arena arena = {.cap = TB_ARGS_MAX};
    struct args a = {.offset = 0};
    struct tb_box *box = ctx;
    const char *base;
    struct tb_path p;
    mo_autofd int dir = -1;
    struct stat st;

    (void)w;
    if (read_args(box, json, path_in, &arena, &a, &p, e) < 0)
        return e->code;
    dir = tb_open_parent(&box->root, &p, true, &base, e);
    if (dir < 0)
        return e->code;
    if (mkdirat(dir, base, 0777) == 0)
        return 0;
    if (errno == EEXIST && fstatat(dir, base, &st, AT_SYMLINK_NOFOLLOW) == 0 &&
        S_ISDIR(st.st_mode))
        return 0;
    if (errno == EEXIST)
        return mo_fail(e, MO_EEXISTS, "%s exists and is no directory", base);
    return tb_path_fail(e, errno, p.text);
}

/* --- remove -------------------------------------------------------------- */

static int run_remove(void *ctx, struct mo_json json, struct mo_jw *w,
                      struct mo_err *e)
{
    mo_autoarena struct mo_arena arena = {.cap = TB_ARGS_MAX};
    struct args a = {.offset = 0};
    struct tb_box *box = ctx;
    const char *base;
    struct tb_path p;
    mo_autofd int dir = -1;
    int more = 0;

    if (read_args(box, json, path_in, &arena, &a, &p, e) < 0)
        return e->code;
    dir = tb_open_parent(&box->root, &p, false, &base, e);
    if (dir < 0)
        return e->code;
    if (unlinkat(dir, base, 0) < 0) {
        more = errno == EISDIR ? tb_remove_tree(dir, base, REMOVE_MAX) : -1;
        if (more < 0)
            return tb_path_fail(e, errno, p.text);
    }
    mo_jw_member_bool(w, "more", more > 0);
    return 0;
}

const struct tb_method tb_files_methods[] = {
    {"mo/files/list", run_list},     {"mo/files/read", run_read},
    {"mo/files/write", run_write},   {"mo/files/commit", run_commit},
    {"mo/files/abort", run_abort},   {"mo/files/mkdir", run_mkdir},
    {"mo/files/remove", run_remove}, {NULL, NULL},
};
