#include "install/npm.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "codec/mount.h"
#include "codec/sha256.h"
#include "codec/text/visible.h"
#include "loop/hide.h"

#define SPEC_MAX 600
#define PACKAGE_MAX                                                            \
    ((size_t)512 * 1024 * 1024) /* bytes of a packed package                   \
                                 */
#define STEP_MS 10000           /* a line while npm says nothing */

/* --- opening -------------------------------------------------------------- */

/* The environment without what belongs to root's home. */
static int make_env(struct mo_npm *n, struct mo_err *e)
{
    static const char *const roots[] = {"HOME=", "XDG_", "USER=", "LOGNAME="};
    size_t count = 0, len = 0, home = strlen(n->user.home) + sizeof("HOME=");
    char *text;

    while (n->env[count])
        count++;
    n->own_env = mo_alloc((count + 2) * sizeof(*n->own_env) + home);
    if (!n->own_env)
        return mo_fail(e, MO_ENOMEM, "environment of npm");
    text = (char *)(n->own_env + count + 2);
    (void)snprintf(text, home, "HOME=%s", n->user.home);
    n->own_env[len++] = text;
    for (size_t i = 0; i < count; i++) {
        struct mo_span v = mo_span_cstr(n->env[i]);
        bool is_roots = false;

        for (size_t k = 0; k < MO_COUNT(roots); k++)
            is_roots |= mo_span_starts(v, mo_span_cstr(roots[k]));
        if (!is_roots)
            n->own_env[len++] = n->env[i];
    }
    n->own_env[len] = NULL;
    n->env = n->own_env;
    return 0;
}

/* A box shows a program outside the system directories as a single file, so
 * that it can be no link. */
static void resolve_node(struct mo_npm *n)
{
    char real[PATH_MAX];

    if (!mo_path_is_in(n->node, "/usr") && !mo_path_is_in(n->node, "/bin") &&
        realpath(n->node, real))
        (void)snprintf(n->node, sizeof(n->node), "%s", real);
}

int mo_npm_open(struct mo_npm *n, const struct mo_config *cfg, int say,
                struct mo_err *e)
{
    sigset_t set;

    *n = (struct mo_npm){.env = (const char *const *)cfg->environ,
                         .user = n->user,
                         .say = say,
                         .signals = -1};
    if (n->user.uid && make_env(n, e) < 0)
        return e->code;
    (void)sigemptyset(&set);
    (void)sigaddset(&set, SIGINT);
    (void)sigaddset(&set, SIGTERM);
    (void)sigaddset(&set, SIGHUP);
    if (sigprocmask(SIG_BLOCK, &set, &n->was) < 0)
        return mo_fail_sys(e, "signals");
    n->signals = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
    if (n->signals < 0)
        return mo_fail_sys(e, "signals");
    if (mo_spawn_find("node", n->env, n->node, NULL) < 0)
        return mo_fail(e, MO_ENOTFOUND,
                       "this server needs Node.js, and there is no `node` in "
                       "PATH: install Node.js 20 or later");
    resolve_node(n);
    if (mo_spawn_find("npm", n->env, n->npm, NULL) < 0)
        return mo_fail(e, MO_ENOTFOUND,
                       "there is no `npm` in PATH, which downloads the "
                       "package: install npm, it is a part of Node.js");
    return 0;
}

void mo_npm_close(struct mo_npm *n)
{
    mo_free(n->own_env);
    n->own_env = NULL;
    if (n->signals < 0)
        return;
    mo_close_fd(&n->signals);
    (void)sigprocmask(SIG_SETMASK, &n->was, NULL);
}

bool mo_npm_is_stopped(struct mo_npm *n)
{
    struct pollfd p = {.fd = n->signals, .events = POLLIN};

    return poll(&p, 1, 0) > 0; /* it stays readable */
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

/* --- running -------------------------------------------------------------- */

struct run {
    struct mo_npm *n;
    struct mo_buf *out;
    int fd[2]; /* our ends of its output and its errors; -1: closed */
    int pidfd;
    pid_t pid;
    uint64_t until; /* ns */
    uint64_t said;  /* ns, the last line of progress */
    struct mo_exit exit;
    int rc;
};

/* Its words go to the person, without control characters. */
static void take_error(struct run *r, struct mo_span text)
{
    struct mo_npm *n = r->n;
    mo_autobuf struct mo_buf b = {.max = 32768};

    n->ntail = mo_tail_add(n->tail, n->ntail, MO_NPM_TAIL_MAX, text);
    if (n->say < 0)
        return;
    mo_visible_text(&b, text);
    (void)mo_file_write_all(n->say, mo_buf_view(&b), NULL);
    r->said = mo_now_ns();
}

static void read_end(struct run *r, int i)
{
    char chunk[4096];
    ssize_t n = read(r->fd[i], chunk, sizeof(chunk));

    if (n < 0 && (errno == EINTR || errno == EAGAIN))
        return;
    if (n <= 0)
        mo_close_fd(&r->fd[i]);
    else if (i == 1)
        take_error(r, mo_span(chunk, (size_t)n));
    else
        (void)mo_buf_put(r->out, chunk, (size_t)n);
}

static void end_run(struct run *r, int rc)
{
    if (r->rc == 0)
        r->rc = rc;
    (void)kill(-r->pid, SIGKILL);
}

static void say_alive(struct run *r, uint64_t now)
{
    if (r->n->say < 0 || now - r->said < STEP_MS * MO_MS)
        return;
    (void)dprintf(r->n->say, "npm is still working\n");
    r->said = now;
}

/* Until npm has ended and its output is read. */
static void attend(struct run *r)
{
    bool ended = false;

    while (!ended || r->fd[0] >= 0) {
        struct pollfd p[] = {
            {.fd = r->fd[0], .events = POLLIN},
            {.fd = r->fd[1], .events = POLLIN},
            {.fd = ended ? -1 : r->pidfd, .events = POLLIN},
            {.fd = r->rc ? -1 : r->n->signals, .events = POLLIN},
        };
        uint64_t now;

        (void)poll(p, MO_COUNT(p), 500);
        for (int i = 0; i < 2; i++) {
            if (p[i].revents)
                read_end(r, i);
        }
        now = mo_now_ns();
        say_alive(r, now);
        if (p[3].revents)
            end_run(r, MO_ECANCELED);
        if (now > r->until)
            end_run(r, MO_ETIMEOUT);
        if (mo_buf_err(r->out))
            end_run(r, MO_ETOOBIG);
        if (!ended && p[2].revents)
            ended = mo_spawn_ended(r->pidfd, WNOHANG, &r->exit);
        if (ended && r->rc) /* a grandchild may hold the output */
            mo_close_fd(&r->fd[0]);
    }
    if (r->fd[1] >= 0)
        read_end(r, 1);
    (void)kill(-r->pid, SIGKILL);
}

/* The last line of its errors that says something. */
static void last_words(const struct mo_npm *n, char out[240])
{
    struct mo_span rest = mo_span(n->tail, n->ntail), best = {NULL, 0};
    mo_autobuf struct mo_buf b = {.max = 1000};

    while (rest.p) {
        struct mo_span line = mo_span_trim(mo_span_cut(&rest, '\n'));

        if (!mo_span_strip(&line, MO_SPAN("npm error ")) &&
            !mo_span_strip(&line, MO_SPAN("npm ERR! ")))
            continue;
        if (line.n && !mo_span_starts(line, MO_SPAN("A complete log")) &&
            best.n == 0)
            best = line;
        else if (line.n && mo_span_starts(best, MO_SPAN("code ")))
            best = line;
    }
    mo_visible_name(&b, mo_span_head(best, 200));
    (void)snprintf(out, 240, "%s", mo_buf_cstr(&b));
}

static int judge_run(const struct run *r, struct mo_err *e)
{
    char how[MO_EXIT_TEXT_MAX], words[240];

    if (r->rc == MO_ECANCELED)
        return mo_fail(e, MO_ECANCELED, "interrupted; nothing was installed");
    if (r->rc == MO_ETIMEOUT)
        return mo_fail(e, MO_ETIMEOUT, "npm did not finish in time");
    if (r->rc)
        return mo_fail(e, r->rc, "npm wrote too much");
    if (r->exit.code == 0)
        return 0;
    mo_exit_text(r->exit, how);
    last_words(r->n, words);
    return mo_fail(e, MO_EUNAVAIL, "npm failed (%s)%s%s", how,
                   words[0] ? ": " : "", words);
}

/* In the child: become the user for good. libc's calls would change every
 * thread of the process whose memory this is. The death signal is lost with the
 * credentials. */
MO_CHILD_SIDE static int become_user(void *ctx)
{
    const struct mo_npm_user *u = ctx;

    if (u->uid == 0)
        return 0;
    if (syscall(SYS_setresuid, -1, 0, -1) < 0 || /* the caller may act as him */
        syscall(SYS_setgroups, 0, NULL) < 0 ||
        syscall(SYS_setresgid, u->gid, u->gid, u->gid) < 0 ||
        syscall(SYS_setresuid, u->uid, u->uid, u->uid) < 0 ||
        prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 ||
        prctl(PR_SET_PDEATHSIG, SIGKILL) < 0)
        return errno;
    return 0;
}

static int run_npm(struct mo_npm *n, const char *const *argv, const char *cwd,
                   unsigned ms, struct mo_buf *out, struct mo_err *e)
{
    int pipes[2][2] = {{-1, -1}, {-1, -1}}, rc = 0;
    mo_autofd int null = open("/dev/null", O_RDONLY | O_CLOEXEC);
    struct run r = {.n = n, .out = out, .fd = {-1, -1}, .pidfd = -1};
    struct mo_spawn s = {.file = n->npm,
                         .argv = argv,
                         .env = n->env,
                         .cwd = cwd,
                         .enlist = become_user,
                         .ctx = &n->user};

    n->ntail = 0;
    for (int i = 0; rc == 0 && i < 2; i++) {
        if (pipe2(pipes[i], O_CLOEXEC) < 0)
            rc = mo_fail_sys(e, "pipe");
    }
    s.fds[0] = null;
    s.fds[1] = pipes[0][1];
    s.fds[2] = pipes[1][1];
    if (rc == 0)
        rc = mo_spawn(&s, &r.pid, &r.pidfd, e);
    mo_close_fd(&pipes[0][1]);
    mo_close_fd(&pipes[1][1]);
    if (rc == 0) {
        r.fd[0] = mo_take_fd(&pipes[0][0]);
        r.fd[1] = mo_take_fd(&pipes[1][0]);
        r.said = mo_now_ns();
        r.until = r.said + ms * MO_MS;
        attend(&r);
        rc = judge_run(&r, e);
    }
    mo_close_fd(&pipes[0][0]);
    mo_close_fd(&pipes[1][0]);
    mo_close_fd(&r.fd[0]);
    mo_close_fd(&r.fd[1]);
    mo_close_fd(&r.pidfd);
    return rc;
}

/* --- commands ------------------------------------------------------------- */

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
    int rc, say = n->say;

    MO_BUG_ON(!mo_npm_is_name(name) || !mo_npm_is_version(version));
    put_spec(spec, name, version);
    n->say = -1;
    rc = run_npm(n, argv, "/", MO_NPM_VIEW_MS, out, e);
    n->say = say;
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
    const char *const *whole = n->env;
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
    n->env = env;
    rc = run_npm(n, argv, dir, MO_NPM_INSTALL_MS, &out, e);
    n->env = whole;
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
