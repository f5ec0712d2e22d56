#include "install/npm.h"

#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "codec/mount.h"
#include "codec/sha256.h"
#include "codec/text/visible.h"

#define SPEC_MAX 600
#define PACKAGE_MAX                                                            \
    ((size_t)512 * 1024 * 1024) /* bytes of a packed package                   \
                                 */

/* A box shows a program outside the system directories as a single file, so
 * that it can be no link. */
static void resolve_node(struct mo_npm *n)
{
    char real[PATH_MAX];

    if (!mo_path_is_in(n->node, "/usr") && !mo_path_is_in(n->node, "/bin") &&
        realpath(n->node, real))
        (void)snprintf(n->node, sizeof(n->node), "%s", real);
}

int mo_npm_open_node(struct mo_npm *n, struct mo_runner *run, struct mo_err *e)
{
    n->run = run;
    if (mo_spawn_find("node", run->env, n->node, NULL) < 0)
        return mo_fail(e, MO_ENOTFOUND,
                       "this server needs Node.js, and there is no `node` in "
                       "PATH: install Node.js 20 or later");
    resolve_node(n);
    return 0;
}

int mo_npm_open(struct mo_npm *n, struct mo_runner *run, struct mo_err *e)
{
    int rc = mo_npm_open_node(n, run, e);

    if (rc < 0)
        return rc;
    if (mo_spawn_find("npm", run->env, n->npm, NULL) < 0)
        return mo_fail(e, MO_ENOTFOUND,
                       "there is no `npm` in PATH, which downloads the "
                       "package: install npm, it is a part of Node.js");
    return 0;
}

/* --- names ---------------------------------------------------------------- */

#define NAME_CHARS "abcdefghijklmnopqrstuvwxyz0123456789-_."

static bool is_part(struct mo_span s)
{
    return s.n && s.p[0] != '.' && s.p[0] != '_' && s.p[0] != '-' &&
           mo_span_only(s, NAME_CHARS);
}

bool mo_npm_is_name(struct mo_span s)
{
    struct mo_span scope;

    if (s.n > MO_NPM_NAME_MAX)
        return false;
    if (!mo_span_strip(&s, MO_SPAN("@")))
        return is_part(s) && !mo_span_is(s, "node_modules");
    scope = mo_span_cut(&s, '/');
    return s.p && is_part(scope) && is_part(s);
}

bool mo_npm_is_version(struct mo_span s)
{
    return s.n && s.n <= 128 && (mo_is_digit(s.p[0]) || mo_is_alpha(s.p[0])) &&
           mo_span_only(s, MO_ALNUM "-_.+");
}

/* --- commands ------------------------------------------------------------- */

static int run_npm(struct mo_npm *n, const char *const *argv, const char *cwd,
                   unsigned ms, struct mo_buf *out, struct mo_err *e)
{
    const struct mo_run what = {"npm", n->npm, argv, cwd, ms, false};

    return mo_runner_do(n->run, &what, out, e);
}

static void put_spec(char out[SPEC_MAX], struct mo_span name,
                     struct mo_span version)
{
    (void)snprintf(out, SPEC_MAX, "%.*s@%.*s", (int)name.n, name.p,
                   (int)version.n, version.p);
}

/* An error of npm as JSON: {"error": {"code", "summary"}}. */
static int view_error(const struct mo_buf *out, struct mo_err *e)
{
    mo_autobuf struct mo_buf b = {.max = 4096}, text = {.max = 1000};
    struct mo_json_doc doc = {.root = {NULL, 0}};
    struct mo_json error;

    if (mo_json_parse(mo_buf_view(out), 32, &doc, NULL) < 0)
        return e->code;
    error = mo_json_get(doc.root, "error");
    if (!mo_json_is(mo_json_get(error, "summary"), MO_JSON_STRING))
        return e->code;
    (void)mo_json_str_buf(mo_json_get(error, "summary"), &b);
    mo_visible_name(&text, mo_span_head(mo_buf_view(&b), 200));
    return mo_fail(e,
                   mo_json_str_eq(mo_json_get(error, "code"), MO_SPAN("E404"))
                       ? MO_ENOTFOUND
                       : MO_EUNAVAIL,
                   "npm: %s", mo_buf_cstr(&text));
}

int mo_npm_view(struct mo_npm *n, struct mo_span name, struct mo_span version,
                struct mo_buf *out, struct mo_err *e)
{
    char spec[SPEC_MAX];
    const char *argv[] = {"npm",
                          "view",
                          spec,
                          "--json",
                          "name",
                          "version",
                          "dist.integrity",
                          "dist.tarball",
                          "repository.url",
                          "maintainers",
                          "bin",
                          "mcpName",
                          "deprecated",
                          "scripts.preinstall",
                          "scripts.install",
                          "scripts.postinstall",
                          NULL};
    struct mo_json_doc doc = {.root = {NULL, 0}};
    const struct mo_run what = {"npm", n->npm, argv, "/", MO_NPM_VIEW_MS, true};
    int rc;

    MO_BUG_ON(!mo_npm_is_name(name) || !mo_npm_is_version(version));
    put_spec(spec, name, version);
    rc = mo_runner_do(n->run, &what, out, e);
    if (rc == MO_EUNAVAIL)
        return view_error(out, e);
    if (rc < 0)
        return rc;
    if (mo_json_parse(mo_buf_view(out), 32, &doc, e) < 0 ||
        !mo_json_str_eq(mo_json_get(doc.root, "name"), name))
        return mo_fail(e, MO_EPROTO, "npm's answer about %s is not usable",
                       spec);
    return 0;
}

int mo_npm_install(struct mo_npm *n, const char *dir, struct mo_err *e)
{
    const char *argv[] = {"npm",
                          "install",
                          "--ignore-scripts",
                          "--no-audit",
                          "--no-fund",
                          "--omit=dev",
                          "--package-lock",
                          "--loglevel=notice",
                          "--prefix",
                          dir,
                          NULL};
    mo_autobuf struct mo_buf out = {.max = MO_NPM_TEXT_MAX};

    return run_npm(n, argv, dir, MO_NPM_INSTALL_MS, &out, e);
}

/* Scripts are other people's programs: no keys of our environment. */
static void keep_env(const char *const *env, const char **out, size_t room)
{
    static const char *const kept[] = {"PATH=",        "HOME=",
                                       "USER=",        "LANG=",
                                       "TMPDIR=",      "npm_config_",
                                       "NPM_CONFIG_",  "http_proxy=",
                                       "HTTP_PROXY=",  "https_proxy=",
                                       "HTTPS_PROXY=", "no_proxy=",
                                       "NO_PROXY=",    "NODE_EXTRA_CA_CERTS="};
    size_t n = 0;

    for (; env && *env && n + 1 < room; env++) {
        for (size_t i = 0; i < MO_COUNT(kept); i++) {
            if (mo_span_starts(mo_span_cstr(*env), mo_span_cstr(kept[i]))) {
                out[n++] = *env;
                break;
            }
        }
    }
    out[n] = NULL;
}

int mo_npm_rebuild(struct mo_npm *n, const char *dir, struct mo_err *e)
{
    const char *const *whole = n->run->env;
    const char *env[128];
    int rc;
    const char *argv[] = {"npm",
                          "rebuild",
                          "--no-ignore-scripts",
                          "--foreground-scripts",
                          "--prefix",
                          dir,
                          NULL};
    mo_autobuf struct mo_buf out = {.max = MO_NPM_TEXT_MAX};

    keep_env(whole, env, MO_COUNT(env));
    n->run->env = env;
    rc = run_npm(n, argv, dir, MO_NPM_INSTALL_MS, &out, e);
    n->run->env = whole;
    return rc;
}

static int digest_file(const char *path, char sha256[65], struct mo_err *e)
{
    mo_autofd int fd = open(path, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
    unsigned char digest[MO_SHA256_LEN], chunk[16384];
    struct mo_sha256 sum;
    size_t total = 0;
    ssize_t got = 1;

    if (fd < 0)
        return mo_fail_sys(e, "%s", path);
    mo_sha256_init(&sum);
    while (got > 0) {
        got = read(fd, chunk, sizeof(chunk));
        if (got < 0)
            return mo_fail_sys(e, "%s", path);
        total += (size_t)got;
        if (total > PACKAGE_MAX)
            return mo_fail(e, MO_ETOOBIG, "the package is too large");
        mo_sha256_put(&sum, chunk, (size_t)got);
    }
    mo_sha256_end(&sum, digest);
    mo_hex(digest, sizeof(digest), sha256);
    return 0;
}

int mo_npm_pack(struct mo_npm *n, const char *dir, struct mo_span name,
                struct mo_span version, char sha256[65], struct mo_err *e)
{
    char spec[SPEC_MAX], path[PATH_MAX];
    const char *argv[] = {
        "npm", "pack", spec, "--json", "--ignore-scripts", "--pack-destination",
        dir,   NULL};
    mo_autobuf struct mo_buf out = {.max = MO_NPM_TEXT_MAX};
    mo_autobuf struct mo_buf file = {.max = 400};
    struct mo_json_doc doc = {.root = {NULL, 0}};
    int rc;

    put_spec(spec, name, version);
    rc = run_npm(n, argv, dir, MO_NPM_INSTALL_MS, &out, e);
    if (rc == 0 && mo_json_parse(mo_buf_view(&out), 32, &doc, e) == 0)
        (void)mo_json_str_buf(mo_json_get(mo_json_at(doc.root, 0), "filename"),
                              &file);
    if (rc == 0 && (!file.len || mo_span_find(mo_buf_view(&file), '/') >= 0))
        rc = mo_fail(e, MO_EPROTO, "npm pack names no file");
    if (rc < 0)
        return rc;
    (void)snprintf(path, sizeof(path), "%s/%s", dir, mo_buf_cstr(&file));
    rc = digest_file(path, sha256, e);
    (void)unlink(path);
    return rc;
}
