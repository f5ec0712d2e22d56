/* serve_start.c - what happens before the server serves: limits, workers, the
 * line that says that it is ready. See serve_priv.h. */
#include <signal.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "app/serve_priv.h"
#include "app/service_manager.h"
#include "base/exit.h"
#include "web/oidc.h"

int mo_serve_exit_code(const struct mo_err *e)
{
    if (e->code == MO_EINVAL || e->code == MO_EPOLICY)
        return MO_EXIT_CONFIG;
    if (e->code == MO_EIO || e->code == MO_EUNAVAIL)
        return MO_EXIT_UNAVAIL;
    return MO_EXIT_FAIL;
}

int64_t mo_serve_stop_seconds(const struct mo_config *c)
{
    return c->server.drain_s + MO_SERVE_GRACE_MS / 1000 + 30;
}

void mo_serve_widen_limits(void)
{
    struct rlimit r;

    if (getrlimit(RLIMIT_NOFILE, &r) < 0)
        return;
    r.rlim_cur = r.rlim_max;
    (void)setrlimit(RLIMIT_NOFILE, &r);
}

bool mo_serve_prints_link(const struct mo_serve_opts *o)
{
    return o->print_link || isatty(STDOUT_FILENO) == 1;
}

static void log_user(const struct mo_config *c, struct mo_log *log,
                     const struct mo_own_user *u)
{
    if (u->is_asked_root)
        mo_log(log, MO_WARN, "serve",
               "running as root, as asked for; so do all plain servers");
    else if (u->stays_root)
        mo_log(log, MO_WARN, "serve",
               "running as root, and so do all plain servers, because the "
               "state directory is root's; to give up root, stop the server, "
               "run `chown -R %d: %s` and let others search the directories "
               "above it (docs/deploy.md)",
               MO_OWN_USER_ID, c->store.dir);
    else if (u->changed)
        mo_log(log, MO_INFO, "serve", "running as user %u, HOME is %s",
               (unsigned)u->uid, u->home);
}

void mo_serve_print_ready(const struct mo_config *c, struct mo_log *log,
                          const struct mo_own_user *user,
                          const struct mo_listen_auth *auth, unsigned port,
                          bool with_link)
{
    const struct mo_config_server *sv = &c->server;
    bool tls = sv->tls.cert && sv->tls.key;

    if (!mo_listen_is_local(sv->listen) && !tls)
        mo_log(log, MO_WARN, "serve",
               "%s without TLS: anyone on the network can read the token; set "
               "server.tls, or put a TLS proxy in front",
               sv->listen);
    if (mo_listen_auth_is_open(auth))
        mo_log(log, MO_WARN, "serve",
               "--no-auth: every user and program of this machine can use "
               "this server, approve calls and run commands as this user");
    log_user(c, log, user);
    mo_listen_auth_tell_ready(auth, sv, tls, port, with_link);
    mo_log(log, MO_INFO, "serve",
           "started: version " MO_VERSION ", pid %d, listening on %s, port %u",
           (int)getpid(), sv->listen, port);
}

/* --- workers -------------------------------------------------------------- */

struct starting {
    struct mo_log *log;
    const struct mo_config *first;
    const struct mo_serve_opts *o;
    struct mo_listen_auth auth;
    unsigned port;
};

static void on_ready(void *ctx)
{
    struct starting *s = ctx;

    mo_serve_print_ready(s->first, s->log, s->o->user, &s->auth, s->port,
                         mo_serve_prints_link(s->o));
    mo_service_manager_ready();
}

static void on_order(void *ctx, int signo)
{
    const struct starting *s = ctx;

    if (signo == SIGHUP) {
        mo_service_manager_reloading();
        mo_service_manager_ready();
    } else {
        mo_service_manager_stopping(mo_serve_stop_seconds(s->first));
    }
}

/* The token of the first start is made here, once. */
static int prepare(struct starting *s, int fds[MO_CONFIG_WORKERS_MAX],
                   struct mo_err *e)
{
    const struct mo_config_server *c = &s->first->server;
    int rc = mo_listen_auth_token(&s->auth, s->first, c->listen, s->log, e);

    if (rc == 0 && !mo_own_user_listeners(s->o->user, c, fds))
        rc = mo_listen_auth_bind(c, fds, e);
    if (rc == 0)
        s->port = mo_listen_port(fds[0]);
    return rc;
}

bool mo_serve_start_workers(struct mo_config_holder *h, struct mo_log *log,
                            const struct mo_serve_opts *o, struct mo_worker *w,
                            int *code)
{
    struct starting s = {
        .log = log, .first = h->now, .o = o, .auth = {.no_auth = o->no_auth}};
    const char *listen = h->now->server.listen;
    int fds[MO_CONFIG_WORKERS_MAX] = {0};
    const struct mo_workers_opts wo = {.log = log,
                                       .count =
                                           (unsigned)h->now->server.workers,
                                       .listeners = fds,
                                       .drains = h->now->server.drain_s > 0,
                                       .ready = on_ready,
                                       .ordered = on_order,
                                       .ctx = &s};
    bool is_worker = false;
    struct mo_err e = {0};

    if (prepare(&s, fds, &e) < 0) {
        mo_log_err(log, MO_ERROR, "serve", &e, "cannot start");
        *code = mo_serve_exit_code(&e);
    } else {
        mo_oidc_prepare();
        is_worker = mo_workers_start(&wo, w, code);
        if (!is_worker && mo_listen_is_unix(listen))
            (void)unlink(listen + strlen("unix:"));
        if (!is_worker && *code == MO_EXIT_OK)
            mo_log(log, MO_DEBUG, "serve", "all workers have stopped");
    }
    explicit_bzero(&s.auth, sizeof(s.auth));
    return is_worker;
}
