/* place_npm.c - downloads an npm package and all it needs; see place_fill.h. */
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

#include "base/file.h"
#include "install/place_fill.h"

#define LOCKS_MAX ((size_t)8 * 1024 * 1024) /* package-lock.json */

/* --- package-lock.json ---------------------------------------------------- */

/* "node_modules/a/node_modules/@b/c" is the package "@b/c". */
static struct mo_span package_of(struct mo_span path)
{
    static const struct mo_span mark = {"node_modules/", 13};
    ptrdiff_t at = mo_span_search(path, mark);

    while (at >= 0) {
        path = mo_span_skip(path, (size_t)at + mark.n);
        at = mo_span_search(path, mark);
    }
    return path;
}

static int check_package(struct mo_json key, struct mo_json v,
                         struct mo_installed *x, struct mo_jw *w,
                         struct mo_err *e)
{
    mo_autobuf struct mo_buf path = {.max = 4096};
    struct mo_json integrity = mo_json_get(v, "integrity");
    const char *name;

    (void)mo_json_str_buf(key, &path);
    name = mo_buf_cstr(&path);
    if (mo_json_flag(v, "link"))
        return mo_fail(e, MO_EPOLICY, "%.200s is a link to another directory",
                       name);
    if (mo_json_flag(v, "inBundle")) /* a part of another package */
        return 0;
    if (!mo_json_is(integrity, MO_JSON_STRING) || integrity.n < 20)
        return mo_fail(e, MO_EPOLICY,
                       "%.200s has no integrity: its content cannot be checked",
                       name);
    if (mo_json_flag(v, "hasInstallScript") && !mo_json_flag(v, "optional")) {
        struct mo_span p = package_of(mo_buf_view(&path));

        mo_buf_puts(&x->scripts, x->scripts.len ? ", " : "");
        mo_buf_span(&x->scripts, p);
    }
    mo_jw_key_raw(w, key);
    mo_jw_obj(w);
    mo_jw_copy(w, v, "version");
    mo_jw_copy(w, v, "integrity");
    mo_jw_end(w);
    return 0;
}

/* Every package needs an integrity, and that of the wanted package must be the
 * one that was shown. */
static int check_packages(const struct mo_install_plan *plan, const char *dir,
                          struct mo_installed *x, struct mo_jw *w,
                          struct mo_err *e)
{
    mo_autobuf struct mo_buf text = {.max = LOCKS_MAX}, key = {.max = 400};
    struct mo_json_doc doc = {.root = {NULL, 0}};
    struct mo_json packages, top;
    char path[PATH_MAX];
    int rc = mo_place_join(path, dir, "package-lock.json", e);

    if (rc == 0)
        rc = mo_file_read(path, LOCKS_MAX, &text, NULL, e);
    if (rc == 0)
        rc = mo_json_parse(mo_buf_view(&text), 64, &doc, e);
    if (rc < 0)
        e->code = MO_EPROTO;
    if (rc < 0)
        return mo_wrap(e, "package-lock.json of npm");
    packages = mo_json_get(doc.root, "packages");
    mo_buf_printf(&key, "node_modules/%s", plan->package);
    top = mo_json_find(packages, mo_buf_view(&key));
    if (!mo_json_str_eq(mo_json_get(top, "integrity"),
                        mo_span_cstr(plan->integrity)) ||
        !mo_json_str_eq(mo_json_get(top, "version"),
                        mo_span_cstr(plan->version)))
        return mo_fail(e, MO_EPOLICY,
                       "npm installed something else than it had shown: the "
                       "integrity of %s@%s differs",
                       plan->package, plan->version);
    mo_jw_member_obj(w, "packages");
    mo_json_each_while (it, packages, rc == 0) {
        if (!mo_json_str_eq(it.key, MO_SPAN("")))
            rc = check_package(it.key, it.val, x, w, e);
    }
    mo_jw_end(w);
    return rc;
}

/* --- installing ----------------------------------------------------------- */

static int write_package_json(const struct mo_fill *f, struct mo_err *e)
{
    mo_autobuf struct mo_buf b = {.max = 4096};
    struct mo_jw w = mo_jw_object(&b);

    mo_jw_member_cstr(&w, "name", "installed");
    mo_jw_member_bool(&w, "private", true);
    mo_jw_member_obj(&w, "dependencies");
    mo_jw_member_cstr(&w, f->plan->package, f->plan->version);
    mo_jw_end_all(&w);
    return mo_fill_write(f, "package.json", mo_buf_view(&b), e);
}

static int check_sha256(struct mo_npm *n, const struct mo_install_plan *plan,
                        const char *dir, struct mo_err *e)
{
    char got[65];
    int rc;

    if (!plan->sha256)
        return 0;
    rc = mo_npm_pack(n, dir, mo_span_cstr(plan->package),
                     mo_span_cstr(plan->version), got, e);
    if (rc == 0 && strcmp(got, plan->sha256) != 0)
        rc = mo_fail(e, MO_EPOLICY,
                     "the registry says that %s@%s has the SHA-256 %.64s, and "
                     "it has %s",
                     plan->package, plan->version, plan->sha256, got);
    return rc;
}

/* The program must be there and be one for Node. */
static int check_program(const struct mo_install_plan *plan, const char *dir,
                         struct mo_err *e)
{
    char path[PATH_MAX], head[128] = "";
    mo_autofd int fd = -1;
    ssize_t n;
    struct mo_span line;
    int rc;

    rc = snprintf(path, sizeof(path), "%s/node_modules/%s/%s", dir,
                  plan->package, plan->bin);
    if (rc > 0 && (size_t)rc < sizeof(path))
        fd = open(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    n = fd < 0 ? -1 : read(fd, head, sizeof(head));
    if (n < 0)
        return mo_fail(e, MO_EPROTO, "the package lacks its program %.200s",
                       plan->bin);
    line = mo_span(head, (size_t)n);
    line = mo_span_cut(&line, '\n');
    if ((mo_span_starts(line, MO_SPAN("#!")) &&
         mo_span_search(line, MO_SPAN("node")) < 0) ||
        mo_span_starts(line, MO_SPAN("\x7f"
                                     "ELF")))
        return mo_fail(e, MO_EPROTO,
                       "its program %.200s is not one for Node.js", plan->bin);
    return 0;
}

int mo_fill_npm(const struct mo_fill *f, struct mo_err *e)
{
    struct mo_npm *n = f->tools->npm;
    int rc = write_package_json(f, e);

    if (rc == 0)
        rc = check_sha256(n, f->plan, f->dir, e);
    if (rc == 0)
        rc = mo_npm_install(n, f->dir, e);
    if (rc == 0)
        rc = check_packages(f->plan, f->dir, f->x, f->w, e);
    if (rc == 0 && f->allow_scripts && f->x->scripts.len)
        rc = mo_npm_rebuild(n, f->dir, e);
    return rc < 0 ? rc : check_program(f->plan, f->dir, e);
}
