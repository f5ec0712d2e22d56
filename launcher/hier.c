#include "launcher/hier.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>

#include "base/mem.h"
#include "launcher/kernel_file.h"

#define TEXT_MAX ((size_t)256 * 1024) /* of one file; truncated above */

struct mount {
    struct mo_span root, point, type, options;
};

static struct mo_span next_word(struct mo_span *line)
{
    return mo_span_cut(line, ' ');
}

/* "33 25 0:30 /root /point opts [tags...] - type source super-options" */
static bool read_mount(struct mo_span line, struct mount *m)
{
    struct mo_span tag;

    next_word(&line);
    next_word(&line);
    next_word(&line);
    m->root = next_word(&line);
    m->point = next_word(&line);
    do {
        tag = next_word(&line);
    } while (line.p && !mo_span_is(tag, "-"));
    m->type = next_word(&line);
    next_word(&line);
    m->options = line;
    return line.p != NULL;
}

static bool list_contains(struct mo_span comma_separated, const char *name)
{
    while (comma_separated.p)
        if (mo_span_is(mo_span_cut(&comma_separated, ','), name))
            return true;
    return false;
}

static bool has_controller(const struct mount *m, const char *controller)
{
    if (!*controller)
        return mo_span_is(m->type, "cgroup2");
    return mo_span_is(m->type, "cgroup") &&
           list_contains(m->options, controller);
}

static bool find_mount(const struct mo_hier *h, const char *controller,
                       struct mount *m)
{
    struct mo_span rest = h->mounts;

    while (rest.p)
        if (read_mount(mo_span_cut(&rest, '\n'), m) &&
            has_controller(m, controller))
            return true;
    return false;
}

/* "4:memory:/a/b" -> "/a/b"; "0::/c" is v2. */
static struct mo_span own_group(const struct mo_hier *h, const char *controller)
{
    struct mo_span rest = h->groups;

    while (rest.p) {
        struct mo_span line = mo_span_cut(&rest, '\n'), names;

        mo_span_cut(&line, ':');
        names = mo_span_cut(&line, ':');
        if (line.p &&
            (*controller ? list_contains(names, controller) : !names.n))
            return line;
    }
    return MO_SPAN("/");
}

/* Our group's path below the mount; "" if the mount does not show it. */
static struct mo_span path_below(struct mo_span group, struct mo_span root)
{
    if (root.n == 1) /* "/" */
        root.n = 0;
    if (!mo_span_starts(group, root) ||
        mo_span_search(group, MO_SPAN("/..")) >= 0)
        return MO_SPAN("");
    return mo_span_skip(group, root.n);
}

void mo_hier_init(struct mo_hier *h, const char *mounts, const char *groups)
{
    *h = (struct mo_hier){mo_span_cstr(mounts), mo_span_cstr(groups), NULL};
}

int mo_hier_read(struct mo_hier **out, struct mo_err *e)
{
    struct mo_hier *h = mo_new(struct mo_hier);
    char *text = mo_alloc(2 * TEXT_MAX);

    *out = h;
    if (!h || !text) {
        mo_free(text);
        return mo_fail(e, MO_ENOMEM, "cgroups");
    }
    h->text = text;
    if (mo_kernel_file_read(AT_FDCWD, "/proc/self/mountinfo", text, TEXT_MAX) <
            0 ||
        mo_kernel_file_read(AT_FDCWD, "/proc/self/cgroup", text + TEXT_MAX,
                            TEXT_MAX) < 0)
        return mo_fail_sys(e, "cgroups: /proc");
    h->mounts = mo_span_cstr(text);
    h->groups = mo_span_cstr(text + TEXT_MAX);
    return 0;
}

void mo_hier_free(struct mo_hier *h)
{
    if (h)
        mo_free(h->text);
    mo_free(h);
}

bool mo_hier_has(const struct mo_hier *h, const char *controller)
{
    struct mount m;

    return find_mount(h, controller, &m);
}

bool mo_hier_path(const struct mo_hier *h, const char *controller,
                  enum mo_hier_place where, char out[MO_HIER_PATH_MAX])
{
    struct mo_span rest = MO_SPAN("");
    struct mount m;
    int n;

    if (!find_mount(h, controller, &m))
        return false;
    if (where == MO_HIER_OWN)
        rest = path_below(own_group(h, controller), m.root);
    n = snprintf(out, MO_HIER_PATH_MAX, "%.*s%.*s", (int)m.point.n, m.point.p,
                 (int)rest.n, rest.p);
    return n > 0 && n < MO_HIER_PATH_MAX;
}

int mo_hier_open(const struct mo_hier *h, const char *controller,
                 enum mo_hier_place where)
{
    char path[MO_HIER_PATH_MAX];

    if (!mo_hier_path(h, controller, where, path)) {
        errno = ENOENT;
        return -1;
    }
    return open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
}

bool mo_hier_is_top(const struct mo_hier *h, int dir)
{
    mo_autofd int top = mo_hier_open(h, MO_HIER_V2, MO_HIER_TOP);
    struct stat a, b;

    return top < 0 || fstat(top, &a) < 0 || fstat(dir, &b) < 0 ||
           a.st_ino == b.st_ino;
}
