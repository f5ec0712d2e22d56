/* plan_mcpb.c - reads the manifest.json of an MCPB bundle; see plan.h.
 *
 * Texts of the manifest may have ${__dirname}, the directory of the bundle, and
 * ${user_config.NAME}, a value that the person gives. The first stays in the
 * plan until the directory is known. A ${user_config.NAME} with a default is
 * filled in; a sensitive one becomes a reference to the secret store. Every
 * other ${...} is refused: it could name a secret of somebody else. */
#include "install/bundle.h"
#include "install/npm.h"
#include "install/plan_parts.h"

#define USER "user_config."

static struct mo_json mcp_config(struct mo_json manifest)
{
    return mo_json_get(mo_json_get(manifest, "server"), "mcp_config");
}

/* A member of mcp_config, or what it is on Linux. */
static struct mo_json config_of(struct mo_json manifest, const char *key)
{
    struct mo_json c = mcp_config(manifest);
    struct mo_json here = mo_json_get(
        mo_json_get(mo_json_get(c, "platform_overrides"), "linux"), key);

    return here.p ? here : mo_json_get(c, key);
}

/* --- texts ---------------------------------------------------------------- */

struct text {
    struct mo_json manifest;
    struct mo_buf *out;
    const char *secret;  /* the first one that it names, or NULL */
    const char *wanted;  /* a value that the person must give, or NULL */
    struct mo_json from; /* the user_config behind it, if it is one */
};

/* A default as text: a string, number or flag. */
static const char *default_of(struct mo_install_plan *p, struct mo_json input)
{
    struct mo_json v = mo_json_get(input, "default");
    const char *text = mo_plan_text(p, input, "default");

    if (!text && (mo_json_is(v, MO_JSON_NUMBER) || mo_json_is(v, MO_JSON_BOOL)))
        text = mo_plan_keep(p, mo_json_text(v));
    return text && strstr(text, "${") ? NULL : text; /* ${HOME}: not in a box */
}

static int put_user(struct mo_install_plan *p, struct text *t,
                    struct mo_span name, struct mo_err *e)
{
    struct mo_json input =
        mo_json_find(mo_json_get(t->manifest, "user_config"), name);
    const char *text = default_of(p, input);

    if (!mo_json_is(input, MO_JSON_OBJECT) || name.n > 100 ||
        !mo_span_only(name, MO_ALNUM "-_."))
        return mo_fail(e, MO_EPROTO,
                       "its manifest uses a value that it does not declare");
    t->from = input;
    if (mo_json_flag(input, "sensitive")) {
        const char *secret = mo_plan_put_secret(p, name, t->out);

        t->secret = t->secret ? t->secret : secret;
        return secret ? 0 : mo_fail(e, MO_ENOMEM, "plan");
    }
    if (text)
        mo_buf_puts(t->out, text);
    else
        t->wanted = mo_plan_keep(p, name);
    return 0;
}

static int put_text(struct mo_install_plan *p, struct text *t,
                    struct mo_span rest, struct mo_err *e)
{
    int rc = 0;

    while (rc == 0 && rest.n) {
        ptrdiff_t at = mo_span_search(rest, MO_SPAN("${")), end;
        struct mo_span name;

        if (at < 0) {
            mo_buf_span(t->out, rest);
            break;
        }
        mo_buf_span(t->out, mo_span_take(&rest, (size_t)at));
        end = mo_span_find(rest, '}');
        name =
            end < 0 ? mo_span(NULL, 0) : mo_span(rest.p + 2, (size_t)end - 2);
        if (mo_span_is(name, "__dirname"))
            mo_buf_puts(t->out, MO_INSTALL_DIRNAME);
        else if (mo_span_is(name, "/") || mo_span_is(name, "pathSeparator"))
            mo_buf_putc(t->out, '/');
        else if (mo_span_strip(&name, MO_SPAN(USER)))
            rc = put_user(p, t, name, e);
        else
            rc = mo_fail(e, MO_EPOLICY,
                         "its manifest has the reference %.*s, which a bundle "
                         "may not use",
                         (int)mo_span_head(rest, 60).n, rest.p);
        if (end >= 0)
            rest = mo_span_skip(rest, (size_t)end + 1);
    }
    if (rc == 0 && (mo_buf_err(t->out) ||
                    (t->out->len && memchr(t->out->p, '\0', t->out->len))))
        rc = mo_fail(e, MO_EPROTO, "a text of its manifest is not usable");
    return rc;
}

/* Reads a JSON string into t->out. */
static int read_text(struct mo_install_plan *p, struct text *t,
                     struct mo_json v, struct mo_err *e)
{
    mo_autobuf struct mo_buf raw = {.max = 32768};

    mo_buf_reset(t->out);
    t->secret = t->wanted = NULL;
    t->from = (struct mo_json){NULL, 0};
    if (!mo_json_is(v, MO_JSON_STRING) || mo_json_str_buf(v, &raw) < 0)
        return mo_fail(e, MO_EPROTO, "a text of its manifest is not usable");
    return put_text(p, t, mo_buf_view(&raw), e);
}

/* --- arguments and variables ---------------------------------------------- */

static int take_args(struct mo_install_plan *p, struct mo_json manifest,
                     struct mo_err *e)
{
    mo_autobuf struct mo_buf b = {.max = 32768};
    struct text t = {.manifest = manifest, .out = &b};
    const char *more[MO_INSTALL_ARGS_MAX]; /* of the registry: they follow */
    size_t nmore = p->nargs;
    int rc = 0;

    memcpy(more, p->args, sizeof(more));
    p->nargs = 0;
    mo_json_each_while (it, config_of(manifest, "args"), rc == 0) {
        rc = read_text(p, &t, it.val, e);
        if (rc == 0 && t.wanted) {
            if (mo_json_flag(t.from, "required") && !p->missing)
                p->missing = t.wanted;
            continue;
        }
        if (rc == 0)
            rc = mo_install_plan_arg(p, mo_plan_keep(p, mo_buf_view(&b)), e);
    }
    for (size_t i = 0; rc == 0 && i < nmore; i++)
        rc = mo_install_plan_arg(p, more[i], e);
    p->nfixed = p->nargs;
    return rc;
}

static int take_var(struct mo_install_plan *p, struct mo_json key,
                    struct mo_json v, struct text *t, struct mo_err *e)
{
    struct mo_install_var *to;
    mo_autobuf struct mo_buf name = {.max = 130};
    size_t i = 0;
    int rc = read_text(p, t, v, e);

    if (rc < 0)
        return rc;
    (void)mo_json_str_buf(key, &name);
    while (i < p->nvars && !mo_span_is(mo_buf_view(&name), p->vars[i].name))
        i++; /* the registry may have named it too */
    if (i == MO_INSTALL_VARS_MAX)
        return mo_fail(e, MO_ETOOBIG, "it declares too many variables");
    to = &p->vars[i];
    if (mo_buf_err(&name) || !name.len || mo_is_digit(name.p[0]) ||
        !mo_span_only(mo_buf_view(&name), MO_ALNUM "-_."))
        return mo_fail(e, MO_EINVAL,
                       "it declares a variable with an impossible name");
    *to = (struct mo_install_var){
        .name = mo_plan_keep(p, mo_buf_view(&name)),
        .text = mo_plan_text(p, t->from, "description"),
        .is_secret = t->secret != NULL,
        .is_required = mo_json_flag(t->from, "required"),
        .secret = t->secret,
    };
    /* An optional secret is left out: a server does not start without it. */
    if (!t->wanted && (!t->secret || to->is_required))
        to->value = mo_plan_keep(p, mo_buf_view(t->out));
    else
        to->secret = NULL;
    p->nvars += i == p->nvars;
    return to->name ? 0 : mo_fail(e, MO_ENOMEM, "plan");
}

static int take_vars(struct mo_install_plan *p, struct mo_json manifest,
                     struct mo_err *e)
{
    mo_autobuf struct mo_buf b = {.max = 32768};
    struct text t = {.manifest = manifest, .out = &b};
    int rc = 0;

    mo_json_each_while (it, config_of(manifest, "env"), rc == 0)
        rc = take_var(p, it.key, it.val, &t, e);
    return rc;
}

/* --- the program ---------------------------------------------------------- */

/* Without ${__dirname}/; NULL: it is outside the bundle. */
static const char *inside(struct mo_install_plan *p, struct mo_span s)
{
    (void)mo_span_strip(&s, MO_SPAN(MO_INSTALL_DIRNAME "/"));
    (void)mo_span_strip(&s, MO_SPAN("./"));
    if (!s.n || s.n > 500 || s.p[0] == '/' || strstr(s.p, "${") ||
        mo_span_search(s, MO_SPAN("..")) >= 0)
        return NULL;
    return mo_plan_keep(p, s);
}

static int take_program(struct mo_install_plan *p, struct mo_json manifest,
                        struct mo_err *e)
{
    static const struct {
        const char *type;
        enum mo_install_runtime runtime;
        const char *commands[3];
    } rows[] = {
        {"node", MO_INSTALL_NODE, {"node", NULL, NULL}},
        {"python", MO_INSTALL_PYTHON, {"python", "python3", NULL}},
        {"binary", MO_INSTALL_BINARY, {NULL, NULL, NULL}},
    };
    struct mo_json server = mo_json_get(manifest, "server");
    const char *command, *entry, *type;
    struct mo_json c = config_of(manifest, "command");
    mo_autobuf struct mo_buf b = {.max = 2000};
    struct text t = {.manifest = manifest, .out = &b};
    size_t i = 0;
    int rc = read_text(p, &t, c, e);

    if (rc < 0)
        return rc;
    command = mo_plan_keep(p, mo_buf_view(&b));
    type = mo_plan_text(p, server, "type");
    entry = mo_plan_text(p, server, "entry_point");
    while (i < MO_COUNT(rows) && (!type || strcmp(type, rows[i].type) != 0))
        i++;
    if (i == MO_COUNT(rows) || !command)
        return mo_fail(e, MO_EINVAL,
                       "its bundle is of the type %.40s, which is not "
                       "supported; node, python and binary are",
                       type ? type : "(none)");
    p->runtime = rows[i].runtime;
    if (p->runtime == MO_INSTALL_BINARY)
        entry = command;
    else if (strcmp(command, rows[i].commands[0]) != 0 &&
             (!rows[i].commands[1] ||
              strcmp(command, rows[i].commands[1]) != 0))
        return mo_fail(e, MO_EPOLICY,
                       "its bundle starts %.100s, which is not in the bundle",
                       command);
    p->bin = entry ? inside(p, mo_span_cstr(entry)) : NULL;
    return p->bin ? 0
                  : mo_fail(e, MO_EPOLICY, "its program is outside the bundle");
}

static int check_platform(struct mo_json manifest, struct mo_err *e)
{
    struct mo_json list =
        mo_json_get(mo_json_get(manifest, "compatibility"), "platforms");

    if (!mo_json_is(list, MO_JSON_ARRAY) || mo_json_len(list) == 0)
        return 0;
    mo_json_each (it, list)
        if (mo_json_str_eq(it.val, MO_SPAN("linux")))
            return 0;
    return mo_fail(e, MO_EINVAL, "its bundle is not for Linux");
}

int mo_install_plan_mcpb(struct mo_install_plan *p, struct mo_json manifest,
                         struct mo_err *e)
{
    const char *version = mo_plan_text(p, manifest, "version");
    const char *url =
        mo_plan_text(p, mo_json_get(manifest, "repository"), "url");
    int rc = check_platform(manifest, e);

    if (rc < 0)
        return rc;
    if (!version || !mo_npm_is_version(mo_span_cstr(version)))
        return mo_fail(e, MO_EPROTO, "its manifest has no version");
    p->version = version;
    p->publisher = mo_plan_text(p, mo_json_get(manifest, "author"), "name");
    if (!p->description)
        p->description = mo_plan_text(p, manifest, "description");
    if (url)
        p->repository = url;
    rc = take_program(p, manifest, e);
    if (rc == 0)
        rc = take_args(p, manifest, e);
    if (rc == 0)
        rc = take_vars(p, manifest, e);
    if (rc == 0 && p->runtime == MO_INSTALL_BINARY)
        mo_install_plan_warn(p,
                             "it is a compiled program, whose source is not "
                             "in the bundle: %.200s",
                             p->bin);
    return rc;
}

int mo_plan_take_mcpb(struct mo_install_plan *p, struct mo_span url,
                      struct mo_span sha256, const char *as, struct mo_err *e)
{
    mo_autobuf struct mo_buf b = {.max = 100};
    struct mo_span name = url;

    p->kind = MO_INSTALL_MCPB;
    if (url.n > 2000 || !mo_bundle_is_url(url))
        return mo_fail(e, MO_EINVAL, "the address of its bundle is not https");
    if (sha256.n != 64 || !mo_span_only(sha256, "0123456789abcdef"))
        return mo_fail(e, MO_EINVAL,
                       "its bundle has no SHA-256, so its content cannot be "
                       "checked");
    mo_buf_puts(&b, "sha256:");
    mo_buf_span(&b, sha256);
    p->package = mo_plan_keep(p, url);
    p->sha256 = mo_plan_keep(p, sha256);
    p->integrity = mo_plan_keep(p, mo_buf_view(&b));
    if (!p->package || !p->sha256 || !p->integrity)
        return mo_fail(e, MO_ENOMEM, "plan");
    if (mo_span_ends(name, MO_SPAN(".mcpb")))
        name.n -= 5;
    return mo_plan_name(p, name, as, e);
}
