#include "install/plan.h"

#include <stdio.h>

#include "codec/http/url.h"
#include "install/npm.h"
#include "install/plan_parts.h"

#define NAME_CHARS MO_ALNUM "-_."

void mo_install_plan_fini(struct mo_install_plan *p)
{
    mo_arena_fini(&p->a);
}

const char *mo_plan_keep(struct mo_install_plan *p, struct mo_span s)
{
    return mo_arena_strndup(&p->a, s.n ? s.p : "", s.n);
}

const char *mo_plan_text(struct mo_install_plan *p, struct mo_json obj,
                         const char *key)
{
    struct mo_json v = mo_json_get(obj, key);
    struct mo_span s;

    if (!mo_json_is(v, MO_JSON_STRING) || mo_json_str(v, &p->a, &s) < 0 ||
        s.n == 0 || memchr(s.p, '\0', s.n))
        return NULL;
    return mo_plan_keep(p, s);
}

/* --- warnings ------------------------------------------------------------- */

static void add_text(struct mo_install_plan *p, const char **v, size_t *n,
                     const char *fmt, va_list ap)
    __attribute__((format(printf, 4, 0)));
static void add_text(struct mo_install_plan *p, const char **v, size_t *n,
                     const char *fmt, va_list ap)
{
    char text[400];

    (void)vsnprintf(text, sizeof(text), fmt, ap);
    if (*n < MO_INSTALL_SAYS_MAX)
        v[*n] = mo_plan_keep(p, mo_span_cstr(text));
    if (*n < MO_INSTALL_SAYS_MAX && v[*n])
        ++*n;
}

void mo_install_plan_warn(struct mo_install_plan *p, const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    add_text(p, p->warnings, &p->nwarnings, fmt, ap);
    va_end(ap);
}

void mo_install_plan_note(struct mo_install_plan *p, const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    add_text(p, p->notes, &p->nnotes, fmt, ap);
    va_end(ap);
}

/* --- the person's word ---------------------------------------------------- */

int mo_plan_name(struct mo_install_plan *p, struct mo_span from, const char *as,
                 struct mo_err *e)
{
    char name[MO_INSTALL_NAME_MAX + 1];
    size_t n = 0;

    if (as) {
        p->name = as;
        return mo_span_only(mo_span_cstr(as), NAME_CHARS) && as[0] &&
                       as[0] != '.' && strlen(as) <= MO_INSTALL_NAME_MAX
                   ? 0
                   : mo_fail(e, MO_EINVAL,
                             "a name has letters, digits, '-', '_' and '.', at "
                             "most %d of them",
                             MO_INSTALL_NAME_MAX);
    }
    for (size_t i = 0; i < from.n; i++) {
        if (from.p[i] == '/')
            n = 0;
        else if (n < MO_INSTALL_NAME_MAX)
            name[n++] = mo_span_only(mo_span(from.p + i, 1), NAME_CHARS)
                            ? from.p[i]
                            : '-';
    }
    if (n == 0 || name[0] == '.')
        return mo_fail(e, MO_EINVAL, "give the server a name with --name");
    p->name = mo_plan_keep(p, mo_span(name, n));
    return p->name ? 0 : mo_fail(e, MO_ENOMEM, "plan");
}

/* The version after the last '@', if there is one that is no scope. */
static struct mo_span cut_version(struct mo_span *s)
{
    for (size_t i = s->n; i > 1; i--) {
        if (s->p[i - 1] == '@') {
            struct mo_span v = mo_span_skip(*s, i);

            s->n = i - 1;
            return v;
        }
    }
    return mo_span(NULL, 0);
}

int mo_plan_take_npm(struct mo_install_plan *p, struct mo_span s,
                     const char *as, struct mo_err *e)
{
    struct mo_span version = cut_version(&s);

    p->kind = MO_INSTALL_NPM;
    if (!mo_npm_is_name(s))
        return mo_fail(e, MO_EINVAL, "'%.*s' is no name of an npm package",
                       (int)mo_span_head(s, 100).n, s.p);
    if (version.p && !mo_npm_is_version(version))
        return mo_fail(e, MO_EINVAL,
                       "'%.*s' is no version: give an exact one or a tag",
                       (int)mo_span_head(version, 100).n, version.p);
    p->package = mo_plan_keep(p, s);
    p->version = version.n ? mo_plan_keep(p, version) : NULL;
    return p->package ? mo_plan_name(p, s, as, e)
                      : mo_fail(e, MO_ENOMEM, "plan");
}

/* Without tag and digest. */
static struct mo_span image_name(struct mo_span s)
{
    struct mo_span rest = s, name = mo_span_cut(&rest, '@');

    for (size_t i = name.n; i > 0 && name.p[i - 1] != '/'; i--) {
        if (name.p[i - 1] == ':')
            return mo_span_head(name, i - 1);
    }
    return name;
}

int mo_plan_take_image(struct mo_install_plan *p, struct mo_span s,
                       const char *as, struct mo_err *e)
{
    ptrdiff_t at = mo_span_search(s, MO_SPAN("@sha256:"));
    struct mo_span digest =
        at < 0 ? mo_span(NULL, 0) : mo_span_skip(s, (size_t)at + 8);

    p->kind = MO_INSTALL_OCI;
    if (!mo_span_only(s, MO_ALNUM "-_./:@") || s.n > 512 || s.n == 0)
        return mo_fail(e, MO_EINVAL, "'%.*s' is no name of an image",
                       (int)mo_span_head(s, 100).n, s.p);
    if (digest.n != 64 || !mo_span_only(digest, "0123456789abcdef"))
        return mo_fail(e, MO_EINVAL,
                       "the image %.*s has no digest, so it could change any "
                       "time: write IMAGE@sha256:DIGEST (`docker buildx "
                       "imagetools inspect IMAGE` prints it)",
                       (int)mo_span_head(s, 200).n, s.p);
    p->package = mo_plan_keep(p, s);
    p->integrity = mo_plan_keep(p, mo_span_skip(s, (size_t)at + 1));
    if (!p->package || !p->integrity)
        return mo_fail(e, MO_ENOMEM, "plan");
    return mo_plan_name(p, image_name(s), as, e);
}

int mo_plan_take_url(struct mo_install_plan *p, struct mo_span s,
                     const char *as, struct mo_err *e)
{
    struct mo_url u;
    int rc = mo_url_parse(s, &u, e);

    p->kind = MO_INSTALL_REMOTE;
    if (rc < 0)
        return rc;
    if (!mo_span_ieq(u.scheme, MO_SPAN("https")) || u.userinfo.p)
        return mo_fail(e, MO_EINVAL,
                       "a remote server has an https address without a user; "
                       "`mcp add NAME --url URL` takes others");
    p->package = mo_plan_keep(p, s);
    p->transport = p->transport ? p->transport : "http";
    return p->package
               ? mo_plan_name(
                     p, p->registry ? mo_span_cstr(p->registry) : u.host, as, e)
               : mo_fail(e, MO_ENOMEM, "plan");
}

static int take_registry(struct mo_install_plan *p, struct mo_span s,
                         const char *as, struct mo_err *e)
{
    struct mo_span version = cut_version(&s), rest = s, space;

    space = mo_span_cut(&rest, '/');
    if (!space.n || !rest.n || s.n > 200 ||
        !mo_span_only(space, MO_ALNUM "-.") || !mo_span_only(rest, NAME_CHARS))
        return mo_fail(e, MO_EINVAL,
                       "'%.*s' is neither a name of the registry "
                       "(NAMESPACE/NAME, see `mcp search`), npm:PACKAGE, "
                       "pypi:PACKAGE, "
                       "oci:IMAGE@sha256:DIGEST nor an address",
                       (int)mo_span_head(s, 100).n, s.p);
    if (version.p && !mo_npm_is_version(version))
        return mo_fail(e, MO_EINVAL, "'%.*s' is no version",
                       (int)mo_span_head(version, 100).n, version.p);
    p->registry = mo_plan_keep(p, s);
    p->version = version.n ? mo_plan_keep(p, version) : NULL;
    return p->registry ? mo_plan_name(p, s, as, e)
                       : mo_fail(e, MO_ENOMEM, "plan");
}

int mo_install_plan_word(struct mo_install_plan *p, struct mo_span word,
                         const char *as, struct mo_err *e)
{
    p->a.cap = MO_INSTALL_BYTES_MAX;
    if (mo_span_strip(&word, MO_SPAN("npm:")))
        return mo_plan_take_npm(p, word, as, e);
    if (mo_span_strip(&word, MO_SPAN("pypi:"))) {
        struct mo_span version = cut_version(&word);

        return mo_plan_take_pypi(p, word, version, as, e);
    }
    if (mo_span_strip(&word, MO_SPAN("mcpb:"))) {
        struct mo_span sum = cut_version(&word);

        (void)mo_span_strip(&sum, MO_SPAN("sha256:"));
        return mo_plan_take_mcpb(p, word, sum, as, e);
    }
    if (mo_span_strip(&word, MO_SPAN("oci:")))
        return mo_plan_take_image(p, word, as, e);
    if (mo_span_starts(word, MO_SPAN("http://")) ||
        mo_span_starts(word, MO_SPAN("https://")))
        return mo_plan_take_url(p, word, as, e);
    if (mo_span_starts(word, MO_SPAN("nuget:")))
        return mo_fail(e, MO_EINVAL,
                       "%.*s packages are not supported yet; packages of npm "
                       "and PyPI, images and remote servers are",
                       (int)mo_span_find(word, ':'), word.p);
    return take_registry(p, word, as, e);
}

/* --- npm's answer --------------------------------------------------------- */

static void take_publishers(struct mo_install_plan *p, struct mo_json list)
{
    mo_autobuf struct mo_buf b = {.max = 400};

    mo_json_each (it, list) {
        mo_buf_puts(&b, b.len ? ", " : "");
        (void)mo_json_str_buf(mo_json_is(it.val, MO_JSON_OBJECT)
                                  ? mo_json_get(it.val, "name")
                                  : it.val,
                              &b);
    }
    if (b.len && !mo_buf_err(&b))
        p->publisher = mo_plan_keep(p, mo_buf_view(&b));
}

/* npm's rule: the only program, or the one named like the package. */
static int take_bin(struct mo_install_plan *p, struct mo_json bins,
                    const char *bin, struct mo_err *e)
{
    struct mo_span name = mo_span_cstr(p->package), scope;
    struct mo_json found = bins;

    if (mo_span_starts(name, MO_SPAN("@"))) {
        scope = mo_span_cut(&name, '/');
        (void)scope;
    }
    if (mo_json_is(bins, MO_JSON_OBJECT)) {
        found = mo_json_find(bins, bin ? mo_span_cstr(bin) : name);
        mo_json_each_while (it, bins, mo_json_len(bins) == 1 && !bin)
            found = it.val;
    }
    if (!mo_json_is(found, MO_JSON_STRING))
        return mo_fail(e, MO_EINVAL, "%s",
                       mo_json_len(bins)
                           ? "the package has several programs: choose one "
                             "with --bin"
                           : "the package has no program, so it is no server "
                             "that can be started");
    {
        mo_autobuf struct mo_buf b = {.max = 1000};
        struct mo_span s;

        (void)mo_json_str_buf(found, &b);
        s = mo_buf_view(&b);
        (void)mo_span_strip(&s, MO_SPAN("./"));
        if (!s.n || s.p[0] == '/' || memchr(s.p, '\0', s.n) ||
            mo_span_search(s, MO_SPAN("..")) >= 0)
            return mo_fail(e, MO_EPOLICY, "its program is outside the package");
        p->bin = mo_plan_keep(p, s);
    }
    return p->bin ? 0 : mo_fail(e, MO_ENOMEM, "plan");
}

int mo_install_plan_npm(struct mo_install_plan *p, struct mo_json view,
                        const char *bin, struct mo_err *e)
{
    const char *version = mo_plan_text(p, view, "version");
    const char *repository = mo_plan_text(p, view, "repository.url");

    p->integrity = mo_plan_text(p, view, "dist.integrity");
    p->mcp_name = mo_plan_text(p, view, "mcpName");
    if (!version || !mo_npm_is_version(mo_span_cstr(version)) ||
        !mo_is_digit(version[0]))
        return mo_fail(e, MO_EPROTO, "npm has not named one version of %s",
                       p->package);
    if (p->registry && p->version && mo_is_digit(p->version[0]) &&
        strcmp(version, p->version) != 0)
        return mo_fail(e, MO_EPROTO,
                       "the registry wants version %s and npm answers with %s",
                       p->version, version);
    p->version = version;
    if (!p->integrity ||
        !mo_span_starts(mo_span_cstr(p->integrity), MO_SPAN("sha512-")))
        return mo_fail(e, MO_EPOLICY,
                       "npm's registry has no SHA-512 of %s@%s, so its content "
                       "cannot be checked",
                       p->package, version);
    if (repository)
        p->repository = repository;
    take_publishers(p, mo_json_get(view, "maintainers"));
    if (mo_plan_text(p, view, "deprecated"))
        mo_install_plan_note(p, "deprecated: %s",
                             mo_plan_text(p, view, "deprecated"));
    p->has_scripts = mo_json_get(view, "scripts.preinstall").p ||
                     mo_json_get(view, "scripts.install").p ||
                     mo_json_get(view, "scripts.postinstall").p;
    return take_bin(p, mo_json_get(view, "bin"), bin, e);
}

/* --- values of the person ------------------------------------------------- */

int mo_install_plan_arg(struct mo_install_plan *p, const char *arg,
                        struct mo_err *e)
{
    if (!arg)
        return mo_fail(e, MO_ENOMEM, "plan");
    if (p->nargs == MO_INSTALL_ARGS_MAX)
        return mo_fail(e, MO_ETOOBIG, "too many arguments");
    p->args[p->nargs++] = arg;
    return 0;
}

int mo_install_plan_set(struct mo_install_plan *p, struct mo_span name,
                        struct mo_span value, struct mo_err *e)
{
    size_t i = 0;

    while (i < p->nvars && !mo_span_is(name, p->vars[i].name))
        i++;
    if (i == MO_INSTALL_VARS_MAX)
        return mo_fail(e, MO_ETOOBIG, "too many variables");
    if (i == p->nvars)
        p->vars[p->nvars++] =
            (struct mo_install_var){.name = mo_plan_keep(p, name)};
    p->vars[i].value = mo_plan_keep(p, value);
    p->vars[i].secret = NULL;
    return p->vars[i].name && p->vars[i].value ? 0
                                               : mo_fail(e, MO_ENOMEM, "plan");
}

int mo_install_plan_check(const struct mo_install_plan *p, struct mo_err *e)
{
    if (p->missing)
        return mo_fail(e, MO_EINVAL,
                       "the server needs the argument %.100s: give all its "
                       "arguments after --",
                       p->missing);
    for (size_t i = 0; i < p->nvars; i++) {
        const struct mo_install_var *v = &p->vars[i];

        if (v->is_required && !v->is_secret && !v->value)
            return mo_fail(e, MO_EINVAL,
                           "the server needs the variable %s: --env "
                           "%s=VALUE",
                           v->name, v->name);
    }
    return 0;
}
