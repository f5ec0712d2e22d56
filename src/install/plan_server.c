/* plan_server.c - reads a server.json of the registry; see plan.h. */
#include <stdio.h>

#include "install/npm.h"
#include "install/pip.h"
#include "install/plan_parts.h"

#define TEMPLATE_CHARS MO_ALNUM "-_."
#define HEADER_CHARS   MO_ALNUM "-_"
#define VARIABLE_CHARS MO_ALNUM "-_." /* published ones have '-' too */

/* --- values --------------------------------------------------------------- */

/* A value while its "{name}" parts are filled in. */
struct value {
    struct mo_json input;
    bool is_secret;     /* a part that nobody gives becomes a secret */
    const char *secret; /* the first of them, or NULL */
};

const char *mo_plan_put_secret(struct mo_install_plan *p, struct mo_span name,
                               struct mo_buf *b)
{
    char text[MO_INSTALL_NAME_MAX + 200];
    int n =
        snprintf(text, sizeof(text), "%s.%.*s", p->name, (int)name.n, name.p);

    if (n < 0 || (size_t)n >= sizeof(text))
        return NULL;
    mo_buf_printf(b, "${secret:%s}", text);
    return mo_plan_keep(p, mo_span(text, (size_t)n));
}

/* One "{name}", with its braces. False: nobody can fill it in. A name that the
 * registry does not declare is plain text, except in a secret value. */
static bool put_part(struct mo_install_plan *p, struct value *v,
                     struct mo_span part, struct mo_buf *b)
{
    struct mo_span name = mo_span(part.p + 1, part.n - 2);
    struct mo_json var = mo_json_find(mo_json_get(v->input, "variables"), name);
    bool declared = mo_json_is(var, MO_JSON_OBJECT);
    const char *text = mo_plan_text(p, var, "value");

    if (!text)
        text = mo_plan_text(p, var, "default");
    if (text) {
        p->has_reference |= strstr(text, "${") != NULL;
        mo_buf_puts(b, text);
        return true;
    }
    if ((v->is_secret || mo_json_flag(var, "isSecret")) && name.n &&
        name.n <= 100 && mo_span_only(name, TEMPLATE_CHARS)) {
        const char *secret = mo_plan_put_secret(p, name, b);

        v->secret = v->secret ? v->secret : secret;
        return secret != NULL;
    }
    mo_buf_span(b, part);
    return !declared && !v->is_secret;
}

static const char *fill_in(struct mo_install_plan *p, struct value *v,
                           const char *text)
{
    mo_autobuf struct mo_buf b = {.max = 32768};
    struct mo_span rest = mo_span_cstr(text);

    p->has_reference |= strstr(text, "${") != NULL;
    while (rest.n) {
        ptrdiff_t open = mo_span_find(rest, '{');
        ptrdiff_t end;

        if (open < 0)
            break;
        mo_buf_span(&b, mo_span_take(&rest, (size_t)open));
        end = mo_span_find(rest, '}');
        if (end < 0)
            break;
        if (!put_part(p, v, mo_span_take(&rest, (size_t)end + 1), &b))
            return NULL;
    }
    mo_buf_span(&b, rest);
    return mo_plan_keep(p, mo_buf_view(&b));
}

/* The fixed or default value of an input, or NULL. */
static const char *input_value(struct mo_install_plan *p, struct value *v)
{
    const char *text = mo_plan_text(p, v->input, "value");

    if (!text)
        text = mo_plan_text(p, v->input, "default");
    return text ? fill_in(p, v, text) : NULL;
}

/* --- arguments and variables ---------------------------------------------- */

static int take_args(struct mo_install_plan *p, struct mo_json list,
                     struct mo_err *e)
{
    int rc = 0;

    mo_json_each_while (it, list, rc == 0) {
        bool named =
            mo_json_str_eq(mo_json_get(it.val, "type"), MO_SPAN("named"));
        const char *name = named ? mo_plan_text(p, it.val, "name") : NULL;
        struct value v = {.input = it.val};
        const char *value = input_value(p, &v);
        const char *hint = mo_plan_text(p, it.val, "valueHint");
        bool has_value = mo_json_get(it.val, "value").p != NULL;

        if (!value &&
            (has_value || !named || mo_json_flag(it.val, "isRequired"))) {
            if (mo_json_flag(it.val, "isRequired") && !p->missing)
                p->missing = name ? name : hint ? hint : "an argument";
            continue;
        }
        if (named && !value) /* optional, not given */
            continue;
        if (named && !name)
            return mo_fail(e, MO_EINVAL, "an argument has no name");
        if (name)
            rc = mo_install_plan_arg(p, name, e);
        if (rc == 0)
            rc = mo_install_plan_arg(p, value, e);
    }
    return rc;
}

/* Description and choices. */
static const char *describe(struct mo_install_plan *p, struct mo_json input)
{
    mo_autobuf struct mo_buf b = {.max = 4096};
    const char *text = mo_plan_text(p, input, "description");
    struct mo_json choices = mo_json_get(input, "choices");

    if (!mo_json_is(choices, MO_JSON_ARRAY) || mo_json_len(choices) == 0)
        return text;
    mo_buf_puts(&b, text ? text : "");
    mo_buf_puts(&b, text ? "; one of" : "one of");
    mo_json_each (it, choices) {
        mo_buf_putc(&b, ' ');
        if (mo_json_is(it.val, MO_JSON_STRING))
            (void)mo_json_str_buf(it.val, &b);
    }
    return mo_buf_err(&b) || memchr(b.p, '\0', b.len)
               ? text
               : mo_plan_keep(p, mo_buf_view(&b));
}

static int take_var(struct mo_install_plan *p, struct mo_json input,
                    bool headers, struct mo_err *e)
{
    struct mo_install_var *to = &p->vars[p->nvars];
    const char *name = mo_plan_text(p, input, "name");
    struct value v = {.input = input,
                      .is_secret = mo_json_flag(input, "isSecret")};
    const char *chars = headers ? HEADER_CHARS : VARIABLE_CHARS;

    if (!name) {
        mo_install_plan_note(p, "a variable without a name is left out");
        return 0;
    }
    if (p->nvars == MO_INSTALL_VARS_MAX)
        return mo_fail(e, MO_ETOOBIG, "it declares too many variables");
    if (!mo_span_only(mo_span_cstr(name), chars) || mo_is_digit(name[0]) ||
        strlen(name) > 128)
        return mo_fail(e, MO_EINVAL,
                       "it declares a variable with an impossible name");
    *to = (struct mo_install_var){
        .name = name,
        .text = describe(p, input),
        .is_secret = v.is_secret,
        .is_required = mo_json_flag(input, "isRequired"),
    };
    /* "Bearer {key}": the key is a secret, also where that is not said. */
    if (headers && mo_plan_text(p, input, "value"))
        v.is_secret = true;
    to->value = input_value(p, &v);
    if (to->is_secret && !v.secret)
        to->value = NULL; /* a key that is not public is in no registry */
    if (v.secret)
        to->is_secret = true;
    to->secret = v.secret;
    p->nvars++;
    return 0;
}

static int take_vars(struct mo_install_plan *p, struct mo_json list,
                     bool headers, struct mo_err *e)
{
    int rc = 0;

    mo_json_each_while (it, list, rc == 0)
        rc = take_var(p, it.val, headers, e);
    return rc;
}

/* --- packages and remote servers ------------------------------------------ */

/* Arguments for npx or docker run, without those that only answer a question
 * of theirs. */
static bool has_runtime_args(struct mo_json package)
{
    mo_json_each (it, mo_json_get(package, "runtimeArguments")) {
        struct mo_json name = mo_json_get(it.val, "name");
        struct mo_json v = name.p ? name : mo_json_get(it.val, "value");

        if (!mo_json_str_eq(v, MO_SPAN("-y")) &&
            !mo_json_str_eq(v, MO_SPAN("--yes")))
            return true;
    }
    return false;
}

static int check_base(struct mo_install_plan *p, struct mo_json package,
                      const char *base, struct mo_err *e)
{
    const char *got = mo_plan_text(p, package, "registryBaseUrl");
    struct mo_span s = mo_span_cstr(got);

    while (s.n && s.p[s.n - 1] == '/')
        s.n--;
    return !got || mo_span_is(s, base)
               ? 0
               : mo_fail(e, MO_EINVAL,
                         "its package is in another package registry: %.100s",
                         got);
}

static int take_npm(struct mo_install_plan *p, struct mo_json package,
                    struct mo_span identifier, struct mo_err *e)
{
    const char *version = mo_plan_text(p, package, "version");
    const char *base = mo_plan_text(p, package, "registryBaseUrl");
    int rc = mo_plan_take_npm(p, identifier, p->name, e);

    if (rc == 0 && base)
        mo_install_plan_note(p,
                             "published at %.100s, it says; npm takes it from "
                             "the registry that npm is set to",
                             base);
    if (rc == 0 && (!version || !mo_npm_is_version(mo_span_cstr(version))))
        rc = mo_fail(e, MO_EINVAL, "its package has no exact version");
    p->version = version;
    p->sha256 = mo_plan_text(p, package, "fileSha256");
    if (rc == 0 && has_runtime_args(package))
        mo_install_plan_note(p, "arguments for npx are not used: give those "
                                "that the server needs after --");
    return rc;
}

static int take_pypi(struct mo_install_plan *p, struct mo_json package,
                     struct mo_span identifier, struct mo_err *e)
{
    const char *version = mo_plan_text(p, package, "version");
    int rc = check_base(p, package, "https://pypi.org", e);

    if (rc == 0 && (!version || !mo_pip_is_version(mo_span_cstr(version))))
        rc = mo_fail(e, MO_EINVAL, "its package has no exact version");
    if (rc == 0)
        rc =
            mo_plan_take_pypi(p, identifier, mo_span_cstr(version), p->name, e);
    p->sha256 = mo_plan_text(p, package, "fileSha256");
    if (rc == 0 && has_runtime_args(package))
        mo_install_plan_note(p, "arguments for uvx or Python are not used: "
                                "give those that the server needs after --, "
                                "another program with --bin");
    return rc;
}

/* True if the name says that it is for another system or processor. */
static bool is_foreign(struct mo_span s)
{
    static const char *const words[] = {
        "darwin",
        "macos",
        "windows",
        "win32",
        ".exe",
#if defined(__aarch64__)
        "x64",
        "x86",
        "amd64",
#else
        "arm64",
        "aarch64",
#endif
    };

    for (size_t i = s.n; i > 0; i--) { /* of the file, not of its host */
        if (s.p[i - 1] == '/') {
            s = mo_span_skip(s, i);
            break;
        }
    }
    for (size_t i = 0; i < MO_COUNT(words); i++) {
        if (mo_span_search(s, mo_span_cstr(words[i])) >= 0)
            return true;
    }
    return false;
}

static int take_mcpb(struct mo_install_plan *p, struct mo_json package,
                     struct mo_span identifier, struct mo_err *e)
{
    if (is_foreign(identifier))
        return mo_fail(e, MO_EINVAL,
                       "its bundle is for another system or processor: %.*s",
                       (int)mo_span_head(identifier, 150).n, identifier.p);
    return mo_plan_take_mcpb(
        p, identifier, mo_span_cstr(mo_plan_text(p, package, "fileSha256")),
        p->name, e);
}

static int take_image(struct mo_install_plan *p, struct mo_json package,
                      struct mo_span identifier, struct mo_err *e)
{
    int rc = mo_plan_take_image(p, identifier, p->name, e);

    if (rc == 0 && has_runtime_args(package))
        mo_install_plan_note(p, "arguments for the container runtime are not "
                                "used: a box decides about mounts and the "
                                "network");
    return rc;
}

static int take_package(struct mo_install_plan *p, struct mo_json package,
                        enum mo_install_kind kind, struct mo_err *e)
{
    static int (*const take[])(struct mo_install_plan * p, struct mo_json v,
                               struct mo_span identifier, struct mo_err * e) = {
        [MO_INSTALL_NPM] = take_npm,
        [MO_INSTALL_PYPI] = take_pypi,
        [MO_INSTALL_MCPB] = take_mcpb,
        [MO_INSTALL_OCI] = take_image,
    };
    const char *identifier = mo_plan_text(p, package, "identifier");
    struct mo_json transport = mo_json_get(package, "transport");
    int rc;

    if (!identifier)
        return mo_fail(e, MO_EINVAL, "its package has no name");
    if (!mo_json_str_eq(mo_json_get(transport, "type"), MO_SPAN("stdio")))
        return mo_fail(e, MO_EINVAL,
                       "its package does not speak over stdio, which is not "
                       "supported yet");
    rc = take[kind](p, package, mo_span_cstr(identifier), e);
    if (rc == 0)
        rc = take_args(p, mo_json_get(package, "packageArguments"), e);
    p->nfixed = p->nargs;
    return rc < 0 ? rc
                  : take_vars(p, mo_json_get(package, "environmentVariables"),
                              false, e);
}

static int take_remote(struct mo_install_plan *p, struct mo_json remote,
                       struct mo_err *e)
{
    const char *url = mo_plan_text(p, remote, "url");
    struct value v = {.input = remote};
    int rc;

    p->transport = mo_json_str_eq(mo_json_get(remote, "type"), MO_SPAN("sse"))
                       ? "sse"
                       : "http";
    if (url)
        url = fill_in(p, &v, url);
    if (!url || strchr(url, '{'))
        return mo_fail(e, MO_EINVAL,
                       "its address has variables: `mcp add NAME --url URL` "
                       "with your values");
    rc = mo_plan_take_url(p, mo_span_cstr(url), p->name, e);
    return rc < 0 ? rc : take_vars(p, mo_json_get(remote, "headers"), true, e);
}

/* --- the choice ----------------------------------------------------------- */

static int nothing_usable(struct mo_json server, const char *kind,
                          struct mo_err *e)
{
    mo_autobuf struct mo_buf b = {.max = 200};

    mo_json_each (it, mo_json_get(server, "packages")) {
        mo_buf_puts(&b, b.len ? ", " : "");
        (void)mo_json_str_buf(mo_json_get(it.val, "registryType"), &b);
    }
    if (kind)
        return mo_fail(e, MO_EINVAL, "it has nothing of the kind %s", kind);
    return mo_fail(e, MO_EINVAL,
                   "it cannot be installed: %s%s; packages of npm and PyPI, "
                   "MCPB bundles, images and remote servers can",
                   b.len ? mo_buf_cstr(&b)
                         : "the registry names no package and no address",
                   b.len ? " is not supported yet" : "");
}

struct choice {
    struct mo_install_plan *p;
    struct mo_install_plan empty; /* as it was, for the next try */
    struct mo_err first;          /* why the first one cannot be used */
    bool found;
};

/* Tries one package or remote server; the first good one stays. */
static void try_one(struct choice *c, struct mo_json v,
                    enum mo_install_kind kind)
{
    struct mo_install_plan *p = c->p;
    struct mo_err e = {0};
    struct mo_arena a;
    int rc;

    if (c->found)
        return;
    rc = kind == MO_INSTALL_REMOTE ? take_remote(p, v, &e)
                                   : take_package(p, v, kind, &e);
    if (rc == 0 && p->has_reference)
        rc = mo_fail(&e, MO_EPOLICY,
                     "the registry writes a reference (${...}) into a value, "
                     "which only you may do");
    c->found = rc == 0;
    if (c->found)
        return;
    if (!c->first.code)
        c->first = e;
    a = p->a;
    *p = c->empty;
    p->a = a;
}

int mo_install_plan_server(struct mo_install_plan *p, struct mo_json server,
                           const char *kind, struct mo_err *e)
{
    static const struct {
        const char *word;
        enum mo_install_kind kind;
    } kinds[] = {{"npm", MO_INSTALL_NPM},
                 {"pypi", MO_INSTALL_PYPI},
                 {"mcpb", MO_INSTALL_MCPB},
                 {"oci", MO_INSTALL_OCI},
                 {"remote", MO_INSTALL_REMOTE}};
    struct choice c = {.p = p};

    p->repository = mo_plan_text(p, mo_json_get(server, "repository"), "url");
    p->description = mo_plan_text(p, server, "description");
    c.empty = *p;
    for (size_t i = 0; i < MO_COUNT(kinds); i++) {
        struct mo_span word = mo_span_cstr(kinds[i].word);
        bool remote = kinds[i].kind == MO_INSTALL_REMOTE;

        if (kind && !mo_span_is(word, kind))
            continue;
        mo_json_each (it, mo_json_get(server, remote ? "remotes" : "packages"))
            if (remote ||
                mo_json_str_eq(mo_json_get(it.val, "registryType"), word))
                try_one(&c, it.val, kinds[i].kind);
    }
    if (c.found && c.first.code)
        mo_install_plan_note(p, "another way cannot be used: %s", c.first.msg);
    if (c.found)
        return 0;
    if (!c.first.code)
        return nothing_usable(server, kind, e);
    *e = c.first;
    return e->code;
}
