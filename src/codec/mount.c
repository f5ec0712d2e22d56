#include "codec/mount.h"

#include <stdio.h>

#define SHOWN 100 /* bytes of a text in a message */

static int shown(struct mo_span s)
{
    return (int)(s.n < SHOWN ? s.n : SHOWN);
}

bool mo_path_is_in(const char *path, const char *dir)
{
    size_t n = strlen(dir);

    if (n == 1 && dir[0] == '/')
        return path[0] == '/';
    return strncmp(path, dir, n) == 0 && (path[n] == '/' || path[n] == '\0');
}

static bool is_plain_part(struct mo_span part)
{
    for (size_t i = 0; i < part.n; i++)
        if ((unsigned char)part.p[i] < ' ' || part.p[i] == 0x7f)
            return false;
    return part.n > 0 && !mo_span_is(part, ".") && !mo_span_is(part, "..");
}

/* Checks an absolute path. "/" alone is none. */
static int check_path(const char *path, struct mo_err *e)
{
    struct mo_span rest = mo_span_cstr(path + 1);

    if (rest.n == 0)
        return mo_fail(e, MO_EINVAL, "'/' is the whole file system");
    while (rest.p) {
        struct mo_span part = mo_span_cut(&rest, '/');

        if (!is_plain_part(part))
            return mo_fail(e, MO_EINVAL,
                           "'%.*s' is not a plain path: '.', '..', empty parts "
                           "and control characters are not allowed",
                           SHOWN, path);
    }
    return 0;
}

/* Places that the box makes itself, and those of programs. */
static int check_place(const char *box, struct mo_err *e)
{
    static const char *const taken[] = {
        "/bin",    "/boot", "/dev", "/etc",  "/lib", "/lib32", "/lib64",
        "/libx32", "/proc", "/run", "/sbin", "/sys", "/usr"};

    for (size_t i = 0; i < MO_COUNT(taken); i++)
        if (mo_path_is_in(box, taken[i]))
            return mo_fail(e, MO_EINVAL,
                           "nothing can be mounted at %.*s: a box has its own "
                           "%s; name another place, HOST:/PLACE",
                           SHOWN, box, taken[i]);
    if (strcmp(box, "/tmp") == 0)
        return mo_fail(e, MO_EINVAL,
                       "nothing can be mounted at /tmp: a box has its own");
    return 0;
}

static int copy_path(struct mo_span text, const char *home, char *out,
                     struct mo_err *e)
{
    int n;

    if (text.n && text.p[0] == '~') {
        struct mo_span rest = mo_span_skip(text, 1);

        if (rest.n && rest.p[0] != '/')
            return mo_fail(e, MO_EINVAL,
                           "'%.*s': only ~ and ~/... name a home directory",
                           shown(text), text.p);
        if (!home || home[0] != '/')
            return mo_fail(e, MO_EINVAL, "'%.*s': HOME is not set", shown(text),
                           text.p);
        n = snprintf(out, MO_MOUNT_PATH_MAX + 1, "%s%.*s", home, (int)rest.n,
                     rest.p);
    } else if (text.n && text.p[0] == '/') {
        n = snprintf(out, MO_MOUNT_PATH_MAX + 1, "%.*s", (int)text.n, text.p);
    } else {
        return mo_fail(e, MO_EINVAL, "'%.*s' is not an absolute path",
                       shown(text), text.p);
    }
    if (n < 0 || n > MO_MOUNT_PATH_MAX)
        return mo_fail(e, MO_EINVAL, "a path has more than %d bytes",
                       MO_MOUNT_PATH_MAX);
    while (n > 1 && out[n - 1] == '/')
        out[--n] = '\0';
    return check_path(out, e);
}

static bool is_mode(struct mo_span s)
{
    return mo_span_is(s, "ro") || mo_span_is(s, "rw");
}

int mo_mount_parse(struct mo_span text, const char *home, struct mo_mount *out,
                   struct mo_err *e)
{
    struct mo_span rest = text, host = mo_span_cut(&rest, ':');
    struct mo_span box = {NULL, 0}, mode = MO_SPAN("ro");
    int rc;

    if (rest.p) {
        box = mo_span_cut(&rest, ':');
        if (is_mode(box) && !rest.p) {
            mode = box;
            box.p = NULL;
        } else if (rest.p) {
            mode = rest;
        }
    }
    if (!is_mode(mode))
        return mo_fail(e, MO_EINVAL,
                       "'%.*s' is not HOST[:BOX][:ro|rw] (no path can have a "
                       "colon)",
                       shown(text), text.p);
    if (memchr(text.p, '\0', text.n))
        return mo_fail(e, MO_EINVAL, "a path has a NUL byte");
    rc = copy_path(host, home, out->host, e);
    if (rc == 0 && box.p && (box.n == 0 || box.p[0] != '/'))
        rc = mo_fail(e, MO_EINVAL,
                     "'%.*s' is neither an absolute path in the box nor ro or "
                     "rw",
                     shown(box), box.p);
    if (rc == 0)
        rc =
            copy_path(box.p ? box : mo_span_cstr(out->host), NULL, out->box, e);
    out->rw = mo_span_is(mode, "rw");
    return rc ? rc : check_place(out->box, e);
}

void mo_mount_put(const struct mo_mount *m, char out[MO_MOUNT_TEXT_MAX])
{
    snprintf(out, MO_MOUNT_TEXT_MAX, "%s:%s:%s", m->host, m->box,
             m->rw ? "rw" : "ro");
}
