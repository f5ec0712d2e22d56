/* token.c - the bearer token of an access; see token.h. */
#include "kube/token.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "codec/json/json.h"
#include "kube/api.h"
#include "loop/spawn.h"

#define PLUGIN_MS  30000
#define OUTPUT_MAX (4 * MO_KUBE_TOKEN_MAX)
#define REAP_MS    10
#define EARLY_S    20 /* a token is renewed before it expires */
#define USE_S      10 /* at least, whatever its plugin says */
#define UNKNOWN_S  300
#define ENV_MAX    ((size_t)4096) /* variables of ours that a plugin gets */

extern char **environ;

struct mo_kube_token {
    struct mo_loop *loop;
    const struct mo_kube_access *a;
    struct mo_buf token;
    struct mo_log_renewed hidden;
    struct mo_file_stamp stamp; /* of the file that it was read from */
    uint64_t expires;           /* wall s; 0: never */
    struct mo_list waiting;
    /* the plugin, while it runs */
    struct mo_stream *out;
    struct mo_buf said;
    struct mo_timer timer;
    int pidfd; /* -1: it does not run */
    bool eof, freed;
    uint64_t until; /* ns */
};

/* --- what a plugin says -------------------------------------------------- */

/* "2026-11-16T22:35:00Z" as wall seconds; 0: not of this form. */
static uint64_t read_time(const char *s)
{
    struct tm tm = {.tm_isdst = 0};
    const char *end = strptime(s, "%Y-%m-%dT%H:%M:%SZ", &tm);

    if (!end || *end || end - s != 20 || tm.tm_year < 70)
        return 0;
    return (uint64_t)timegm(&tm);
}

int mo_kube_token_read(struct mo_span text, struct mo_buf *token,
                       uint64_t *expires, struct mo_err *e)
{
    struct mo_json_doc doc;
    struct mo_json status, when;
    char at[40];

    if (mo_json_parse(text, 0, &doc, NULL) < 0 ||
        !mo_json_str_eq(mo_json_get(doc.root, "kind"),
                        MO_SPAN("ExecCredential")))
        return mo_fail(e, MO_EPROTO, "its output is no ExecCredential");
    status = mo_json_get(doc.root, "status");
    when = mo_json_get(status, "expirationTimestamp");
    if (mo_json_is(mo_json_get(status, "clientCertificateData"),
                   MO_JSON_STRING))
        return mo_fail(e, MO_EINVAL,
                       "it answers with a certificate; only tokens are "
                       "supported");
    if (mo_json_str_buf(mo_json_get(status, "token"), token) < 0 || !token->len)
        return mo_fail(e, MO_EPROTO, "it gave no token");
    if (!mo_span_between(mo_buf_view(token), '!', '~'))
        return mo_fail(e, MO_EPROTO, "its token is not valid");
    *expires = 0;
    if (mo_json_is(when, MO_JSON_STRING)) {
        (void)mo_json_str_copy(when, at, sizeof(at));
        *expires = read_time(at);
        if (!*expires)
            *expires = mo_wall_ms() / 1000 + UNKNOWN_S;
    }
    return 0;
}

static void hide_token(struct mo_kube_token *t)
{
    if (mo_loop_secret_renew(t->loop, &t->hidden, mo_buf_view(&t->token)) < 0)
        mo_log(mo_loop_log(t->loop), MO_WARN, "box",
               "the token for the cluster is not blanked in this log: too many "
               "secrets, or no memory");
}

/* --- running a plugin ---------------------------------------------------- */

static void tell_waiting(struct mo_kube_token *t, const struct mo_err *why)
{
    struct mo_list now;

    mo_list_init(&now);
    mo_list_splice(&now, &t->waiting);
    mo_list_drain (w, &now, struct mo_kube_token_wait, node)
        w->go(w, why);
}

/* A token that is about to expire is the best that the plugin has: to ask again
 * at once would not end. The cluster refuses it if it is too old. */
static void keep_for_a_while(struct mo_kube_token *t)
{
    uint64_t least = mo_wall_ms() / 1000 + EARLY_S + USE_S;

    if (t->expires && t->expires < least)
        t->expires = least;
}

static void take_answer(struct mo_kube_token *t, struct mo_err *e)
{
    if (mo_kube_token_read(mo_buf_view(&t->said), &t->token, &t->expires, e) <
        0) {
        mo_buf_reset(&t->token); /* it may have been read, but is not valid */
        return;
    }
    keep_for_a_while(t);
    hide_token(t);
}

/* The plugin has ended, or was killed. */
static void end_plugin(struct mo_kube_token *t, const struct mo_err *why)
{
    struct mo_err e = {.code = 0};

    mo_timer_stop(t->loop, &t->timer);
    mo_close_fd(&t->pidfd);
    mo_buf_reset(&t->token);
    if (why)
        e = *why;
    else
        take_answer(t, &e);
    mo_buf_wipe(&t->said);
    if (e.code)
        (void)mo_wrap(&e, "plugin %s", t->a->exec[0]);
    tell_waiting(t, e.code ? &e : NULL);
}

static void kill_plugin(struct mo_kube_token *t)
{
    siginfo_t si;

    (void)syscall(SYS_pidfd_send_signal, t->pidfd, SIGKILL, NULL, 0);
    (void)waitid(P_PIDFD, (id_t)t->pidfd, &si, WEXITED);
}

static void on_reap(struct mo_timer *timer)
{
    struct mo_kube_token *t =
        mo_container_of(timer, struct mo_kube_token, timer);
    siginfo_t si = {.si_pid = 0};

    if (t->eof &&
        waitid(P_PIDFD, (id_t)t->pidfd, &si, WEXITED | WNOHANG) == 0 &&
        si.si_pid) {
        if (si.si_code == CLD_EXITED && si.si_status == 0)
            end_plugin(t, NULL);
        else
            end_plugin(t, mo_error(MO_EUNAVAIL, "it failed with status %d",
                                   si.si_status));
        return;
    }
    if (mo_now_ns() < t->until) {
        mo_timer_start(t->loop, &t->timer, REAP_MS);
        return;
    }
    kill_plugin(t);
    if (t->out)
        mo_stream_close(t->out, NULL);
    end_plugin(t, mo_error(MO_ETIMEOUT, "it did not end in time"));
}

static void on_said(void *ctx, char *p, size_t n)
{
    struct mo_kube_token *t = ctx;

    (void)mo_buf_put(&t->said, p, n); /* an error leaves it empty */
}

static void free_token(struct mo_kube_token *t);

static void on_said_all(void *ctx, const struct mo_err *why)
{
    struct mo_kube_token *t = ctx;

    (void)why;
    t->out = NULL;
    t->eof = true;
    if (t->freed)
        free_token(t);
}

static const struct mo_stream_cb out_cb = {.on_read = on_said,
                                           .on_close = on_said_all};

/* Adds a variable in place of those of that name; the new count. */
static size_t set_var(const char **v, size_t n, const char *var)
{
    size_t name = strcspn(var, "="), kept = 0;

    for (size_t i = 0; i < n; i++)
        if (strncmp(v[i], var, name) != 0 || v[i][name] != '=')
            v[kept++] = v[i];
    v[kept++] = var;
    return kept;
}

/* Ours, then what the kubeconfig adds, then the question. A later one wins. */
static const char **make_env(const struct mo_kube_access *a, const char *info,
                             struct mo_err *e)
{
    const char **v;
    size_t n = 0, more = 0;

    while (environ && environ[n])
        n++;
    while (a->exec_env && a->exec_env[more])
        more++;
    if (n > ENV_MAX)
        return mo_null(mo_fail(e, MO_ETOOBIG,
                               "our environment has more than %zu variables",
                               ENV_MAX));
    v = mo_zalloc((n + more + 2) * sizeof(*v));
    if (!v)
        return mo_null(mo_fail(e, MO_ENOMEM, "environment"));
    for (size_t i = 0; i < n; i++)
        v[i] = environ[i];
    for (size_t i = 0; i < more; i++)
        n = set_var(v, n, a->exec_env[i]);
    n = set_var(v, n, info);
    v[n] = NULL; /* fewer than before, maybe */
    return v;
}

static int run_plugin(struct mo_kube_token *t, int out, struct mo_err *e)
{
    mo_autofree const char **env = NULL;
    char info[256];
    mo_autofd int null = open("/dev/null", O_RDWR | O_CLOEXEC);
    struct mo_spawn s = {.file = t->a->exec[0], .argv = t->a->exec};
    pid_t pid;

    if (null < 0)
        return mo_fail_sys(e, "/dev/null");
    (void)snprintf(info, sizeof(info),
                   "KUBERNETES_EXEC_INFO={\"kind\":\"ExecCredential\","
                   "\"apiVersion\":\"%s\",\"spec\":{\"interactive\":false}}",
                   t->a->exec_api);
    env = make_env(t->a, info, e);
    if (!env)
        return e->code;
    s.env = env;
    s.fds[0] = null;
    s.fds[1] = out;
    s.fds[2] = null;
    return mo_spawn(&s, &pid, &t->pidfd, e);
}

static int start_plugin(struct mo_kube_token *t, struct mo_err *e)
{
    int pipe[2], rc;

    if (pipe2(pipe, O_CLOEXEC) < 0)
        return mo_fail_sys(e, "plugin %s", t->a->exec[0]);
    rc = run_plugin(t, pipe[1], e);
    (void)close(pipe[1]);
    if (rc < 0) {
        (void)close(pipe[0]);
        return mo_wrap(e, "plugin %s", t->a->exec[0]);
    }
    mo_buf_init(&t->said, OUTPUT_MAX);
    t->eof = false;
    rc = mo_stream_from_fds(t->loop, pipe[0], -1, &t->out, e);
    if (rc < 0) {
        kill_plugin(t);
        mo_close_fd(&t->pidfd);
        return rc;
    }
    mo_stream_attach(t->out, &out_cb, t);
    t->until = mo_now_ns() + PLUGIN_MS * MO_MS;
    mo_timer_start(t->loop, &t->timer, REAP_MS);
    return 0;
}

/* --- asking for it ------------------------------------------------------- */

static int read_token_file(struct mo_kube_token *t, struct mo_err *e)
{
    struct mo_file_stamp now;

    mo_file_stamp(t->a->token_file, &now);
    if (t->token.len && mo_file_same(&now, &t->stamp))
        return 0;
    mo_buf_reset(&t->token);
    if (mo_file_read(t->a->token_file, MO_KUBE_TOKEN_MAX, &t->token, &t->stamp,
                     e) < 0)
        return mo_wrap(e, "token");
    while (t->token.len && strchr("\r\n", t->token.p[t->token.len - 1]))
        t->token.len--;
    if (!t->token.len || !mo_span_between(mo_buf_view(&t->token), '!', '~')) {
        mo_buf_reset(&t->token);
        return mo_fail(e, MO_EINVAL, "token in %s is not valid",
                       t->a->token_file);
    }
    hide_token(t);
    return 0;
}

static bool has_expired(const struct mo_kube_token *t)
{
    return t->expires && mo_wall_ms() / 1000 + EARLY_S >= t->expires;
}

int mo_kube_token_get(struct mo_kube_token *t, struct mo_span *out,
                      struct mo_kube_token_wait *w, struct mo_err *e)
{
    int rc = 0;

    if (t->a->token_file) {
        rc = read_token_file(t, e);
    } else if (t->a->exec && (!t->token.len || has_expired(t))) {
        if (t->pidfd < 0)
            rc = start_plugin(t, e);
        if (rc == MO_EBUSY) /* nothing runs that could be waited for */
            rc = e->code = MO_EUNAVAIL;
        if (rc == 0) {
            mo_list_push(&t->waiting, &w->node);
            return MO_EBUSY;
        }
    }
    *out = mo_buf_view(&t->token);
    return rc;
}

bool mo_kube_token_drop(struct mo_kube_token *t)
{
    if (!t->a->token_file && !t->a->exec)
        return false;
    mo_buf_reset(&t->token);
    return true;
}

struct mo_kube_token *mo_kube_token_new(struct mo_loop *l,
                                        const struct mo_kube_access *a,
                                        struct mo_err *e)
{
    struct mo_kube_token *t = mo_new(struct mo_kube_token);

    if (!t)
        return mo_null(mo_fail(e, MO_ENOMEM, "token"));
    t->loop = l;
    t->a = a;
    t->pidfd = -1;
    mo_list_init(&t->waiting);
    mo_buf_init(&t->token, MO_KUBE_TOKEN_MAX);
    mo_buf_init(&t->said, OUTPUT_MAX);
    mo_timer_init(&t->timer, on_reap);
    if (a->token && !a->token_file &&
        mo_buf_span(&t->token, mo_span_cstr(a->token)) < 0) {
        mo_kube_token_free(t);
        return mo_null(mo_fail(e, MO_ENOMEM, "token"));
    }
    if (t->token.len)
        (void)mo_loop_secret(l, mo_buf_view(&t->token));
    return t;
}

static void free_token(struct mo_kube_token *t)
{
    mo_buf_wipe(&t->token);
    mo_buf_wipe(&t->said);
    mo_free(t);
}

/* A plugin's output is still open: its close frees. */
void mo_kube_token_free(struct mo_kube_token *t)
{
    mo_timer_stop(t->loop, &t->timer);
    if (t->pidfd >= 0)
        kill_plugin(t);
    mo_close_fd(&t->pidfd);
    tell_waiting(t, mo_error(MO_ECANCELED, "closing"));
    t->freed = true;
    if (t->out)
        mo_stream_close(t->out, NULL);
    else
        free_token(t);
}
