/* plan_pypi.c - reads pip's report; see plan.h. */
#include "install/pip.h"
#include "install/plan_parts.h"

#define PACKAGES_MAX 500
#define NAME_MARK    "mcp-name:" /* in the description of a package */

int mo_plan_take_pypi(struct mo_install_plan *p, struct mo_span s,
                      struct mo_span version, const char *as, struct mo_err *e)
{
    char name[MO_PIP_NAME_MAX + 1];

    p->kind = MO_INSTALL_PYPI;
    if (!mo_pip_is_name(s))
        return mo_fail(e, MO_EINVAL, "'%.*s' is no name of a PyPI package",
                       (int)mo_span_head(s, 100).n, s.p);
    if (version.p && !mo_pip_is_version(version))
        return mo_fail(e, MO_EINVAL, "'%.*s' is no exact version",
                       (int)mo_span_head(version, 100).n, version.p);
    mo_pip_normal(s, name);
    p->package = mo_plan_keep(p, mo_span_cstr(name));
    p->version = version.n ? mo_plan_keep(p, version) : NULL;
    if (!p->package)
        return mo_fail(e, MO_ENOMEM, "plan");
    return mo_plan_name(p, mo_span_cstr(p->package), as, e);
}

/* The SHA-256 of a wheel, 64 digits; NULL: none. */
static const char *hash_of(struct mo_install_plan *p, struct mo_json item)
{
    struct mo_json info =
        mo_json_get(mo_json_get(item, "download_info"), "archive_info");
    const char *hash = mo_plan_text(p, mo_json_get(info, "hashes"), "sha256");
    struct mo_span s;

    if (!hash) {
        s = mo_span_cstr(mo_plan_text(p, info, "hash"));
        hash = mo_span_strip(&s, MO_SPAN("sha256=")) ? s.p : NULL;
    }
    s = mo_span_cstr(hash);
    return s.n == 64 && mo_span_only(s, "0123456789abcdef") ? hash : NULL;
}

static int check_item(const char *name, const char *version, const char *hash,
                      struct mo_json item, const char *url, struct mo_err *e)
{
    if (!name || !mo_pip_is_name(mo_span_cstr(name)) || !version ||
        !mo_pip_is_version(mo_span_cstr(version)))
        return mo_fail(e, MO_EPROTO, "pip's report names no package");
    if (mo_json_flag(item, "is_yanked"))
        return mo_fail(e, MO_EPOLICY,
                       "its publisher has withdrawn (yanked) %.100s %.50s",
                       name, version);
    if (mo_json_flag(item, "is_direct") || !url ||
        !mo_span_ends(mo_span_cstr(url), MO_SPAN(".whl")))
        return mo_fail(e, MO_EPOLICY,
                       "%.100s %.50s is no wheel of the package index", name,
                       version);
    if (!hash)
        return mo_fail(e, MO_EPOLICY,
                       "%.100s %.50s has no SHA-256: its content cannot be "
                       "checked",
                       name, version);
    return 0;
}

/* One package of the report, for the lock file. */
static int take_item(struct mo_install_plan *p, struct mo_json item,
                     struct mo_jw *w, struct mo_err *e)
{
    struct mo_json meta = mo_json_get(item, "metadata");
    const char *name = mo_plan_text(p, meta, "name");
    const char *version = mo_plan_text(p, meta, "version");
    const char *hash = hash_of(p, item);
    const char *url =
        mo_plan_text(p, mo_json_get(item, "download_info"), "url");
    mo_autobuf struct mo_buf b = {.max = 100};
    char normal[MO_PIP_NAME_MAX + 1];
    int rc = check_item(name, version, hash, item, url, e);

    if (rc < 0)
        return rc;
    mo_pip_normal(mo_span_cstr(name), normal);
    mo_buf_printf(&b, "sha256:%s", hash);
    mo_jw_member_obj(w, normal);
    mo_jw_member_cstr(w, "version", version);
    mo_jw_key(w, "integrity");
    mo_jw_buf(w, &b);
    mo_jw_end(w);
    return 0;
}

/* --- the package itself --------------------------------------------------- */

/* "Label, https://..." of a place for source code; else the home page. */
static void take_repository(struct mo_install_plan *p, struct mo_json meta)
{
    static const char *const labels[] = {"repository", "source", "source code",
                                         "github", "code"};

    mo_json_each (it, mo_json_get(meta, "project_url")) {
        mo_autobuf struct mo_buf b = {.max = 1000};
        struct mo_span url, label;

        if (!mo_json_is(it.val, MO_JSON_STRING) ||
            mo_json_str_buf(it.val, &b) < 0 || memchr(b.p, '\0', b.len))
            continue;
        url = mo_buf_view(&b);
        label = mo_span_trim(mo_span_cut(&url, ','));
        for (size_t i = 0; url.p && i < MO_COUNT(labels); i++) {
            if (!mo_span_ieq(label, mo_span_cstr(labels[i])))
                continue;
            p->repository = mo_plan_keep(p, mo_span_trim(url));
            return;
        }
    }
    if (!p->repository)
        p->repository = mo_plan_text(p, meta, "home_page");
}

/* "mcp-name: NAME" in its description, as the registry wants it. */
static void take_mcp_name(struct mo_install_plan *p, struct mo_json meta)
{
    mo_autobuf struct mo_buf b = {.max = (size_t)4 * 1024 * 1024};
    struct mo_span text;
    ptrdiff_t at;
    size_t n = 0;

    if (!mo_json_is(mo_json_get(meta, "description"), MO_JSON_STRING))
        return;
    (void)mo_json_str_buf(mo_json_get(meta, "description"), &b);
    at = mo_span_search(mo_buf_view(&b), MO_SPAN(NAME_MARK));
    if (at < 0)
        return;
    text = mo_span_trim(
        mo_span_skip(mo_buf_view(&b), (size_t)at + sizeof(NAME_MARK) - 1));
    while (n < text.n && n < 200 &&
           mo_span_only(mo_span(text.p + n, 1), MO_ALNUM "-_./"))
        n++;
    p->mcp_name = mo_plan_keep(p, mo_span_head(text, n));
}

static int take_top(struct mo_install_plan *p, struct mo_json item,
                    struct mo_err *e)
{
    struct mo_json meta = mo_json_get(item, "metadata");
    const char *name = mo_plan_text(p, meta, "name"), *hash = hash_of(p, item);
    mo_autobuf struct mo_buf b = {.max = 100};
    char normal[MO_PIP_NAME_MAX + 1];

    mo_pip_normal(mo_span_cstr(name), normal);
    if (strcmp(normal, p->package) != 0)
        return mo_fail(e, MO_EPROTO,
                       "the index answers with %s, which is another package "
                       "than %s",
                       normal, p->package);
    if (p->sha256 && strcmp(p->sha256, hash) != 0)
        return mo_fail(e, MO_EPOLICY,
                       "the registry says that %s has the SHA-256 %.64s, and "
                       "it has %s",
                       p->package, p->sha256, hash);
    mo_buf_printf(&b, "sha256:%s", hash);
    p->integrity = mo_plan_keep(p, mo_buf_view(&b));
    p->version = mo_plan_text(p, meta, "version");
    p->publisher = mo_plan_text(p, meta, "author");
    if (!p->publisher)
        p->publisher = mo_plan_text(p, meta, "author_email");
    if (!p->description)
        p->description = mo_plan_text(p, meta, "summary");
    take_repository(p, meta);
    take_mcp_name(p, meta);
    return p->integrity ? 0 : mo_fail(e, MO_ENOMEM, "plan");
}

int mo_install_plan_pypi(struct mo_install_plan *p, struct mo_json report,
                         const char *bin, struct mo_err *e)
{
    struct mo_json list = mo_json_get(report, "install");
    mo_autobuf struct mo_buf b = {.max = MO_INSTALL_BYTES_MAX / 2};
    struct mo_jw w = mo_jw_object(&b);
    struct mo_json top = {NULL, 0};
    int rc = 0;

    if (mo_json_len(list) > PACKAGES_MAX)
        return mo_fail(e, MO_ETOOBIG, "it needs more than %d packages",
                       PACKAGES_MAX);
    mo_json_each_while (it, list, rc == 0) {
        if (mo_json_flag(it.val, "requested"))
            top = it.val;
        rc = take_item(p, it.val, &w, e);
    }
    mo_jw_end(&w);
    if (rc == 0 && !top.p)
        rc = mo_fail(e, MO_EPROTO, "pip's report does not have %s", p->package);
    if (rc == 0)
        rc = take_top(p, top, e);
    if (rc < 0)
        return rc;
    p->bin = bin ? bin : p->package;
    p->runtime = MO_INSTALL_PYTHON;
    p->packages = mo_buf_err(&b) ? NULL : mo_plan_keep(p, mo_buf_view(&b));
    return p->packages ? 0
                       : mo_fail(e, MO_ETOOBIG, "it needs too many packages");
}
