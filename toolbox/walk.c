#include "toolbox/walk.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#define NAMES_BYTES ((size_t)8 * 1024 * 1024) /* per directory */

struct name {
    struct name *next;
    char text[];
};

static int by_bytes(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static bool is_dots(const char *name)
{
    return strcmp(name, ".") == 0 || strcmp(name, "..") == 0;
}

static struct name *keep_name(struct tb_walk_dir *d, const char *text,
                              struct name *next)
{
    size_t n = strlen(text) + 1;
    struct name *one = mo_arena_alloc(&d->arena, sizeof(*one) + n);

    if (!one)
        return NULL;
    memcpy(one->text, text, n);
    one->next = next;
    return one;
}

/* Read all names of the directory; d->n counts them. */
static int gather_names(struct tb_walk *w, struct tb_walk_dir *d, DIR *from,
                        struct name **list)
{
    for (;;) {
        struct dirent *de = readdir(from);
        struct name *one;

        if (!de)
            return 0;
        if (is_dots(de->d_name))
            continue;
        if (d->n == TB_WALK_NAMES) {
            w->clipped = true;
            return 0;
        }
        one = keep_name(d, de->d_name, *list);
        if (!one)
            return MO_ENOMEM;
        *list = one;
        d->n++;
    }
}

static int sort_names(struct tb_walk_dir *d, const struct name *list)
{
    size_t i = 0;

    d->names = mo_arena_alloc(&d->arena, (d->n ? d->n : 1) * sizeof(char *));
    if (!d->names)
        return MO_ENOMEM;
    for (; list; list = list->next)
        d->names[i++] = list->text;
    qsort(d->names, d->n, sizeof(char *), by_bytes);
    return 0;
}

/* closedir() closes its descriptor, so it gets a duplicate. */
static int read_names(struct tb_walk *w, struct tb_walk_dir *d)
{
    int own = openat(d->fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *from = own < 0 ? NULL : fdopendir(own);
    struct name *list = NULL;
    int rc;

    if (!from) {
        w->denied++;
        mo_close_fd(&own);
        return 0;
    }
    rc = gather_names(w, d, from, &list);
    (void)closedir(from);
    return rc < 0 ? rc : sort_names(d, list);
}

static void leave_dir(struct tb_walk *w)
{
    struct tb_walk_dir *d = &w->dirs[--w->depth];

    mo_close_fd(&d->fd);
    mo_arena_fini(&d->arena);
}

static int enter_dir(struct tb_walk *w, int fd, size_t prefix, struct mo_err *e)
{
    struct tb_walk_dir *d = &w->dirs[w->depth++];

    *d = (struct tb_walk_dir){.fd = fd, .prefix = prefix};
    mo_arena_init(&d->arena, NAMES_BYTES);
    if (read_names(w, d) < 0)
        return mo_fail(e, MO_ENOMEM, "out of memory for names");
    return 0;
}

int tb_walk_open(struct tb_walk *w, int fd, int max_depth, struct mo_err *e)
{
    int rc;

    w->depth = 0;
    w->max_depth = max_depth < TB_WALK_DEPTH ? max_depth : TB_WALK_DEPTH;
    w->descend = false;
    w->clipped = false;
    w->denied = 0;
    rc = enter_dir(w, fd, 0, e);
    if (rc < 0)
        tb_walk_close(w);
    return rc;
}

void tb_walk_close(struct tb_walk *w)
{
    while (w->depth)
        leave_dir(w);
}

static int go_down(struct tb_walk *w, struct mo_err *e)
{
    size_t n = strlen(w->path);
    int fd;

    if (w->depth == w->max_depth || n + 1 >= sizeof(w->path)) {
        w->clipped |= w->depth == TB_WALK_DEPTH || n + 1 >= sizeof(w->path);
        return 0;
    }
    fd = openat(w->dir, w->name,
                O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0) {
        w->denied += errno != ENOENT;
        return 0;
    }
    w->path[n] = '/';
    return enter_dir(w, fd, n + 1, e);
}

/* False: the name does not fit, or the file is gone. */
static bool fill_entry(struct tb_walk *w, const struct tb_walk_dir *d,
                       const char *name)
{
    size_t n = strlen(name);

    if (d->prefix + n >= sizeof(w->path)) {
        w->clipped = true;
        return false;
    }
    memcpy(w->path + d->prefix, name, n + 1);
    w->name = name;
    w->dir = d->fd;
    return fstatat(d->fd, name, &w->st, AT_SYMLINK_NOFOLLOW) == 0;
}

int tb_walk_next(struct tb_walk *w, struct mo_err *e)
{
    if (w->descend) {
        w->descend = false;
        if (go_down(w, e) < 0)
            return e->code;
    }
    while (w->depth) {
        struct tb_walk_dir *d = &w->dirs[w->depth - 1];

        if (d->next == d->n) {
            leave_dir(w);
            continue;
        }
        if (!fill_entry(w, d, d->names[d->next++]))
            continue;
        w->descend = S_ISDIR(w->st.st_mode);
        return 1;
    }
    return 0;
}

void tb_walk_skip(struct tb_walk *w)
{
    w->descend = false;
}

int tb_walk_file(const struct tb_walk *w)
{
    struct stat st;
    mo_autofd int fd =
        openat(w->dir, w->name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);

    if (fd < 0 || fstat(fd, &st) < 0 || !S_ISREG(st.st_mode))
        return -1;
    return mo_take_fd(&fd);
}
