/* access.c - how to reach a cluster; see access.h. */
#include "kube/access.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/file.h"
#include "codec/http/url.h"
#include "codec/json/json.h"
#include "codec/text/base64.h"
#include "codec/yaml.h"

#define ARENA_MAX (8 * MO_KUBE_CONFIG_MAX)
#define TEXT_MAX  ((size_t)64 * 1024) /* a certificate, a token */
#define POD_DIR   "/var/run/secrets/kubernetes.io/serviceaccount"

bool mo_kube_is_label(struct mo_span s)
{
    return s.n > 0 && s.n < MO_KUBE_NAME_MAX && s.p[0] != '-' &&
           s.p[s.n - 1] != '-' &&
           mo_span_only(s, "abcdefghijklmnopqrstuvwxyz0123456789-");
}

void mo_kube_access_fini(struct mo_kube_access *a)
{
    mo_arena_fini(&a->arena);
    *a = (struct mo_kube_access){.server = NULL};
}

/* --- members ------------------------------------------------------------- */

struct reading {
    struct mo_kube_access *a;
    const char *path;
    struct mo_err *e;
};

static int no_memory(const struct reading *r)
{
    return mo_fail(r->e, MO_ENOMEM, "kubeconfig");
}

/* NULL if it is missing or empty. */
static int read_text(const struct reading *r, struct mo_json obj,
                     const char *key, const char **out)
{
    struct mo_json v = mo_json_get(obj, key);
    struct mo_span s;

    *out = NULL;
    if (mo_json_is(v, MO_JSON_NONE) || mo_json_is(v, MO_JSON_NULL))
        return 0;
    if (!mo_json_is(v, MO_JSON_STRING))
        return mo_fail(r->e, MO_EINVAL, "'%s' is not a text", key);
    if (mo_json_str(v, &r->a->arena, &s) < 0)
        return no_memory(r);
    if (!s.n)
        return 0;
    *out = mo_span_dup(&r->a->arena, s).p;
    return *out ? 0 : no_memory(r);
}

static int read_base64(const struct reading *r, struct mo_json obj,
                       const char *key, const char **out)
{
    mo_autowipe struct mo_buf b = {.max = TEXT_MAX};
    const char *text;

    if (read_text(r, obj, key, &text) < 0)
        return r->e->code;
    *out = NULL;
    if (!text)
        return 0;
    if (mo_base64_decode(mo_span_cstr(text), &b) < 0)
        return mo_fail(r->e, MO_EINVAL, "'%s' is not base64", key);
    *out = mo_arena_strndup(&r->a->arena, b.p, b.len);
    return *out ? 0 : no_memory(r);
}

/* Relative to the directory of the kubeconfig. */
static int read_path(const struct reading *r, struct mo_json obj,
                     const char *key, const char **out)
{
    const char *text, *slash = strrchr(r->path, '/');
    char full[PATH_MAX];
    int n;

    if (read_text(r, obj, key, &text) < 0)
        return r->e->code;
    *out = text;
    if (!text || text[0] == '/' || !slash)
        return 0;
    n = snprintf(full, sizeof(full), "%.*s/%s", (int)(slash - r->path), r->path,
                 text);
    if (n < 0 || (size_t)n >= sizeof(full))
        return mo_fail(r->e, MO_ETOOBIG, "'%s'", key);
    *out = mo_arena_strndup(&r->a->arena, full, (size_t)n);
    return *out ? 0 : no_memory(r);
}

static int refuse_members(const struct reading *r, struct mo_json obj,
                          const char *const (*rows)[2], size_t n)
{
    for (size_t i = 0; i < n; i++) {
        struct mo_json v = mo_json_get(obj, rows[i][0]);
        bool on = true;

        if (mo_json_is(v, MO_JSON_NONE) || mo_json_is(v, MO_JSON_NULL))
            continue;
        if (mo_json_bool(v, &on) == 0 && !on)
            continue;
        return mo_fail(r->e, MO_EINVAL, "'%s' is not supported: %s", rows[i][0],
                       rows[i][1]);
    }
    return 0;
}

/* --- cluster ------------------------------------------------------------- */

static int check_server(const struct reading *r)
{
    struct mo_url u;
    struct mo_err why;
    const char *s = r->a->server;

    if (!s)
        return mo_fail(r->e, MO_EINVAL, "the cluster has no 'server'");
    if (mo_url_parse(mo_span_cstr(s), &u, &why) < 0)
        return mo_fail(r->e, MO_EINVAL, "server '%s': %s", s, why.msg);
    if (!mo_span_is(u.scheme, "https"))
        return mo_fail(r->e, MO_EINVAL, "server '%s': must be https://", s);
    if (u.path.n > 1)
        return mo_fail(r->e, MO_EINVAL,
                       "server '%s': an address with a path is not supported",
                       s);
    return 0;
}

static int read_cluster(const struct reading *r, struct mo_json c)
{
    static const char *const refused[][2] = {
        {"insecure-skip-tls-verify",
         "give the cluster's certificate-authority"},
        {"proxy-url", "name an address that can be reached directly"},
    };
    struct mo_kube_access *a = r->a;

    if (refuse_members(r, c, refused, MO_COUNT(refused)) < 0 ||
        read_text(r, c, "server", &a->server) < 0 ||
        read_text(r, c, "tls-server-name", &a->server_name) < 0 ||
        read_base64(r, c, "certificate-authority-data", &a->ca) < 0 ||
        read_path(r, c, "certificate-authority", &a->ca_file) < 0)
        return r->e->code;
    return check_server(r);
}

/* --- user ---------------------------------------------------------------- */

static int read_words(const struct reading *r, struct mo_json list,
                      const char **v, size_t *n)
{
    struct mo_span s;

    mo_json_each (at, list) {
        if (*n + 1 >= MO_KUBE_WORDS_MAX)
            return mo_fail(r->e, MO_ETOOBIG, "the plugin's arguments");
        if (mo_json_str(at.val, &r->a->arena, &s) < 0)
            return mo_fail(r->e, MO_EINVAL, "an argument is not a text");
        v[*n] = mo_span_dup(&r->a->arena, s).p;
        if (!v[(*n)++])
            return no_memory(r);
    }
    return 0;
}

/* [{"name": "K", "value": "V"}] */
static int read_env(const struct reading *r, struct mo_json list,
                    const char **v)
{
    const char *name, *value;
    size_t n = 0;

    mo_json_each (at, list) {
        mo_autowipe struct mo_buf b = {.max = TEXT_MAX};

        if (n + 1 >= MO_KUBE_WORDS_MAX)
            return mo_fail(r->e, MO_ETOOBIG, "the plugin's environment");
        if (read_text(r, at.val, "name", &name) < 0 ||
            read_text(r, at.val, "value", &value) < 0)
            return r->e->code;
        if (!name || strchr(name, '='))
            return mo_fail(r->e, MO_EINVAL, "the plugin's environment");
        (void)mo_buf_printf(&b, "%s=%s", name, value ? value : "");
        v[n] = mo_arena_strndup(&r->a->arena, mo_buf_cstr(&b), b.len);
        if (mo_buf_err(&b) || !v[n++])
            return no_memory(r);
    }
    return 0;
}

static int read_exec(const struct reading *r, struct mo_json x)
{
    static const char *const known[] = {"client.authentication.k8s.io/v1",
                                        "client.authentication.k8s.io/v1beta1",
                                        NULL};
    size_t room = MO_KUBE_WORDS_MAX * sizeof(char *), n = 1;
    const char **argv = mo_arena_zalloc(&r->a->arena, room);
    const char **env = mo_arena_zalloc(&r->a->arena, room);

    if (!argv || !env)
        return no_memory(r);
    if (read_text(r, x, "command", &argv[0]) < 0 ||
        read_text(r, x, "apiVersion", &r->a->exec_api) < 0 ||
        read_words(r, mo_json_get(x, "args"), argv, &n) < 0 ||
        read_env(r, mo_json_get(x, "env"), env) < 0)
        return r->e->code;
    if (!argv[0])
        return mo_fail(r->e, MO_EINVAL, "'exec' has no command");
    if (!mo_json_str_in(mo_json_get(x, "apiVersion"), known))
        return mo_fail(r->e, MO_EINVAL, "'exec' has an unknown apiVersion");
    r->a->exec = argv;
    r->a->exec_env = env;
    return 0;
}

static int read_user(const struct reading *r, struct mo_json u)
{
    static const char *const refused[][2] = {
        {"auth-provider", "use an exec plugin"},
        {"username", "Kubernetes has no passwords any more"},
        {"password", "Kubernetes has no passwords any more"},
        {"as", "impersonation is not needed for boxes"},
        {"as-groups", "impersonation is not needed for boxes"},
    };
    struct mo_kube_access *a = r->a;
    struct mo_json exec = mo_json_get(u, "exec");

    if (refuse_members(r, u, refused, MO_COUNT(refused)) < 0 ||
        read_base64(r, u, "client-certificate-data", &a->cert) < 0 ||
        read_path(r, u, "client-certificate", &a->cert_file) < 0 ||
        read_base64(r, u, "client-key-data", &a->key) < 0 ||
        read_path(r, u, "client-key", &a->key_file) < 0 ||
        read_text(r, u, "token", &a->token) < 0 ||
        read_path(r, u, "tokenFile", &a->token_file) < 0)
        return r->e->code;
    if (mo_json_is(exec, MO_JSON_OBJECT) && read_exec(r, exec) < 0)
        return r->e->code;
    if (!(a->cert || a->cert_file) != !(a->key || a->key_file))
        return mo_fail(r->e, MO_EINVAL,
                       "a client certificate needs its key, and a key its "
                       "certificate");
    if (!a->cert && !a->cert_file && !a->token && !a->token_file && !a->exec)
        return mo_fail(r->e, MO_EINVAL,
                       "the user has no certificate, token or exec plugin");
    return 0;
}

/* --- context ------------------------------------------------------------- */

/* clusters: [{"name": name, "cluster": {...}}] */
static int find_named(const struct reading *r, struct mo_json root,
                      const char *list, const char *what, const char *name,
                      struct mo_json *out)
{
    mo_json_each (at, mo_json_get(root, list))
        if (mo_json_str_eq(mo_json_get(at.val, "name"), mo_span_cstr(name))) {
            *out = mo_json_get(at.val, what);
            return 0;
        }
    return mo_fail(r->e, MO_EINVAL, "there is no %s '%s'", what, name);
}

static int read_context(const struct reading *r, struct mo_json root,
                        const char *context)
{
    struct mo_json ctx = root, cluster = root, user = root;
    const char *name;
    char what[PATH_MAX];

    if (!context || !*context) {
        if (read_text(r, root, "current-context", &context) < 0)
            return r->e->code;
        if (!context)
            return mo_fail(r->e, MO_EINVAL,
                           "it has no current-context; set "
                           "'sandbox.kubernetes.context'");
    }
    (void)snprintf(what, sizeof(what), "context %s of %s", context, r->path);
    r->a->what = mo_arena_strndup(&r->a->arena, what, strlen(what));
    if (!r->a->what)
        return no_memory(r);
    if (find_named(r, root, "contexts", "context", context, &ctx) < 0 ||
        read_text(r, ctx, "cluster", &name) < 0 ||
        find_named(r, root, "clusters", "cluster", name ? name : "", &cluster) <
            0 ||
        read_cluster(r, cluster) < 0 || read_text(r, ctx, "user", &name) < 0 ||
        find_named(r, root, "users", "user", name ? name : "", &user) < 0 ||
        read_user(r, user) < 0 || read_text(r, ctx, "namespace", &r->a->ns) < 0)
        return r->e->code;
    if (!r->a->ns)
        r->a->ns = "default";
    return 0;
}

static int parse_text(struct mo_span text, struct mo_buf *json,
                      struct mo_json_doc *doc, struct mo_err *e)
{
    struct mo_span s = text;
    int rc;

    while (s.n && strchr(" \t\r\n", s.p[0]))
        s = mo_span_skip(s, 1);
    if (s.n && s.p[0] == '{')
        rc = mo_buf_span(json, text);
    else
        rc = mo_yaml_to_json(text, json, e);
    if (rc == 0)
        rc = mo_json_parse(mo_buf_view(json), 0, doc, e);
    return rc == MO_EPROTO ? MO_EINVAL : rc;
}

int mo_kube_access_read(struct mo_span text, const char *path,
                        const char *context, struct mo_kube_access *out,
                        struct mo_err *e)
{
    struct mo_err why = {.code = 0};
    struct reading r = {out, path, &why};
    mo_autowipe struct mo_buf json = {.max = 4 * MO_KUBE_CONFIG_MAX};
    struct mo_json_doc doc;
    int rc;

    *out = (struct mo_kube_access){.arena = {.cap = ARENA_MAX}};
    if (text.n > MO_KUBE_CONFIG_MAX)
        return mo_fail(e, MO_ETOOBIG, "kubeconfig %s", path);
    rc = parse_text(text, &json, &doc, &why);
    if (rc == 0)
        rc = read_context(&r, doc.root, context);
    if (rc == 0)
        return 0;
    mo_kube_access_fini(out);
    return mo_fail(e, rc, "kubeconfig %s: %s", path,
                   why.code ? why.msg : "not enough memory");
}

/* --- in a pod ------------------------------------------------------------ */

static const char *in_dir(struct mo_arena *a, const char *dir, const char *name)
{
    char path[PATH_MAX];
    int n = snprintf(path, sizeof(path), "%s/%s", dir, name);

    return n < 0 || (size_t)n >= sizeof(path)
               ? NULL
               : mo_arena_strndup(a, path, (size_t)n);
}

int mo_kube_access_inside(const char *host, const char *port, const char *dir,
                          struct mo_kube_access *out, struct mo_err *e)
{
    struct mo_kube_access *a = out;
    mo_autobuf struct mo_buf ns = {.max = MO_KUBE_NAME_MAX};
    bool v6 = strchr(host, ':') != NULL;
    const char *ns_file;
    char url[300];
    int n = snprintf(url, sizeof(url), "https://%s%s%s:%s", v6 ? "[" : "", host,
                     v6 ? "]" : "", port);
    int rc;

    *a = (struct mo_kube_access){.arena = {.cap = ARENA_MAX}};
    if (n < 0 || (size_t)n >= sizeof(url))
        return mo_fail(e, MO_ETOOBIG, "KUBERNETES_SERVICE_HOST");
    a->server = mo_arena_strndup(&a->arena, url, (size_t)n);
    a->ca_file = in_dir(&a->arena, dir, "ca.crt");
    a->token_file = in_dir(&a->arena, dir, "token");
    ns_file = in_dir(&a->arena, dir, "namespace");
    a->what = "the service account of this pod";
    if (!a->server || !a->ca_file || !a->token_file || !ns_file) {
        mo_kube_access_fini(a);
        return mo_fail(e, MO_ENOMEM, "service account");
    }
    rc = mo_file_read(ns_file, MO_KUBE_NAME_MAX, &ns, NULL, e);
    a->ns = rc < 0 ? NULL : mo_span_dup(&a->arena, mo_buf_view(&ns)).p;
    if (a->ns)
        return 0;
    mo_kube_access_fini(a);
    return rc < 0 ? mo_wrap(e, "service account")
                  : mo_fail(e, MO_ENOMEM, "service account");
}

/* --- the default places -------------------------------------------------- */

static int read_file(const char *path, const char *context,
                     struct mo_kube_access *out, struct mo_err *e)
{
    mo_autowipe struct mo_buf text = {.max = MO_KUBE_CONFIG_MAX};
    int rc = mo_file_read(path, MO_KUBE_CONFIG_MAX, &text, NULL, e);

    if (rc < 0)
        return mo_wrap(e, "kubeconfig %s", path);
    return mo_kube_access_read(mo_buf_view(&text), path, context, out, e);
}

int mo_kube_access_open(const char *path, const char *context,
                        struct mo_kube_access *out, struct mo_err *e)
{
    const char *env = getenv("KUBECONFIG"), *home = getenv("HOME");
    const char *host = getenv("KUBERNETES_SERVICE_HOST");
    const char *port = getenv("KUBERNETES_SERVICE_PORT");
    char dflt[PATH_MAX];
    int n;

    if (path && *path)
        return read_file(path, context, out, e);
    if (env && *env && strchr(env, ':'))
        return mo_fail(e, MO_EINVAL,
                       "KUBECONFIG names several files: name one as "
                       "'sandbox.kubernetes.kubeconfig'");
    if (env && *env)
        return read_file(env, context, out, e);
    if (host && *host && port && *port)
        return mo_kube_access_inside(host, port, POD_DIR, out, e);
    n = snprintf(dflt, sizeof(dflt), "%s/.kube/config", home ? home : "");
    if (n < 0 || (size_t)n >= sizeof(dflt))
        return mo_fail(e, MO_ETOOBIG, "kubeconfig");
    return read_file(dflt, context, out, e);
}
