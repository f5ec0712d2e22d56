#include "app/serve.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>

#include "app/cli.h"
#include "app/echo.h"
#include "app/resolve.h"
#include "base/rand.h"
#include "codec/url.h"
#include "web/site.h"

#define GRACE_MS    10000 /* for running answers at the end */
#define WATCH_MS    1000  /* how often the config files are looked at */
#define TOKEN_BYTES 24
#define TOKEN_MAX   256

struct server {
    struct mo_config_holder *config;
    struct mo_log *log;
    struct mo_loop *loop;
    struct mo_site *site;
    struct mo_siod *siod;
    struct mo_tls_ctx *tls;
    struct mo_signal *signals[3];
    struct mo_timer watch;
    char token[TOKEN_MAX]; /* "" = none */
    bool closing;
};

/* --- configuration while running -------------------------------------------
 */

static void say_change(void *ctx, const char *path, bool restart)
{
    mo_log(ctx, restart ? MO_WARN : MO_INFO, "config", "%s changed%s", path,
           restart ? "; it takes effect after a restart" : "");
}

/* A renewed certificate is taken for new connections; a bad one is not. */
static void renew_tls(struct server *s)
{
    const struct mo_config_tls *c = &s->config->now->server.tls;
    struct mo_tls_ctx *fresh;
    struct mo_err e;

    if (!s->tls || !c->cert || !c->key)
        return;
    fresh = mo_tls_server_new(c->cert, c->key, &e);
    if (!fresh) {
        mo_log_err(s->log, MO_ERROR, "serve", &e, "certificate kept as it was");
        return;
    }
    mo_site_tls(s->site, fresh);
    mo_tls_free(s->tls);
    s->tls = fresh;
}

/* Take a new configuration if it is good, and say what it changes. */
static void reload(struct server *s)
{
    const struct mo_config *old = mo_config_ref(s->config->now);
    struct mo_config_report rep;
    struct mo_err e = {0};

    if (mo_config_reload(s->config, &rep, &e) < 0) {
        mo_log_err(s->log, MO_ERROR, "config", &e, "reload");
    } else {
        const struct mo_config *now = s->config->now;

        (void)mo_config_hide(now, s->log);
        (void)mo_log_levels(s->log, mo_span_cstr(now->log.level), NULL);
        mo_log(s->log, MO_INFO, "config", "generation %llu loaded",
               (unsigned long long)now->generation);
        mo_config_diff(old, now, say_change, s->log);
        renew_tls(s);
    }
    mo_config_unref(old);
}

static void on_watch(struct mo_timer *t)
{
    struct server *s = mo_container_of(t, struct server, watch);

    if (mo_config_stale(s->config))
        reload(s);
    mo_timer_start(s->loop, t, WATCH_MS);
}

/* --- the end ---------------------------------------------------------------
 */

static void on_site_gone(void *ctx)
{
    struct server *s = ctx;

    s->site = NULL;
    mo_loop_stop(s->loop);
}

static void begin_end(struct server *s)
{
    s->closing = true;
    mo_timer_stop(s->loop, &s->watch);
    mo_site_close(s->site, GRACE_MS, on_site_gone, s);
}

static void on_signal(void *ctx, int signo)
{
    struct server *s = ctx;

    if (signo == SIGHUP) {
        if (!s->closing)
            reload(s);
        return;
    }
    if (s->closing) {
        mo_log(s->log, MO_WARN, "serve", "second signal: ending at once");
        _Exit(MO_EXIT_FAIL);
    }
    mo_log(s->log, MO_INFO, "serve",
           "stopping: letting running answers end (at most %d s)",
           GRACE_MS / 1000);
    begin_end(s);
}

/* --- the start -------------------------------------------------------------
 */

static bool is_loopback(const char *listen)
{
    struct mo_host h;

    if (strncmp(listen, "unix:", 5) == 0)
        return true;
    return mo_host_parse(mo_span_cstr(listen), 0, &h) == 0 &&
           mo_host_is_loopback(&h);
}

/* Any bind address but loopback needs a token: the configured one, or a new
 * one that is told once, here. */
static int choose_token(struct server *s, struct mo_err *e)
{
    const struct mo_config *c = s->config->now;
    struct mo_buf b;
    int rc = 0;

    if (c->server.token) {
        mo_buf_init(&b, TOKEN_MAX - 1);
        rc = mo_ref_resolve(c, c->server.token, &b, e);
        if (rc == 0)
            (void)snprintf(s->token, sizeof(s->token), "%s", mo_buf_cstr(&b));
        mo_buf_fini(&b);
        if (rc == 0 && strlen(s->token) < 16)
            return mo_fail(e, MO_EINVAL,
                           "server.token: use at least 16 characters");
    } else if (!is_loopback(c->server.listen)) {
        mo_random_token(s->token, TOKEN_BYTES);
        (void)printf("Token for this run (set server.token to choose one): "
                     "%s\n",
                     s->token);
    }
    if (s->token[0])
        (void)mo_log_secret(s->log, mo_span_cstr(s->token));
    return rc;
}

static struct mo_httpd_limits limits_of(const struct mo_config_limits *c)
{
    return (struct mo_httpd_limits){
        .connections = (unsigned)c->connections,
        .head_ms = (unsigned)c->head_ms,
        .body_ms = (unsigned)c->body_ms,
        .idle_ms = (unsigned)c->idle_ms,
        .send_ms = (unsigned)c->send_ms,
        .requests = (unsigned)c->requests,
        .body = (size_t)c->body_bytes,
        .queue = (size_t)c->queue_bytes,
    };
}

static int make_site(struct server *s, const struct mo_serve_opts *o,
                     struct mo_err *e)
{
    const struct mo_config_server *c = &s->config->now->server;
    struct mo_siod_opts sio = {.ctx = NULL};
    struct mo_site_opts so = {
        .limits = limits_of(&c->limits),
        .gate = {.token = s->token[0] ? s->token : NULL,
                 .origins = (const char *const *)c->origins.v,
                 .norigins = c->origins.n},
    };

    if (c->tls.cert && c->tls.key) {
        s->tls = mo_tls_server_new(c->tls.cert, c->tls.key, e);
        if (!s->tls)
            return e->code;
        so.tls = s->tls;
    }
    if (o->test_echo) {
        mo_echo_opts(&sio, &s->siod);
        sio.eio.ping_interval_ms = o->test_ping_ms;
        sio.eio.ping_timeout_ms = o->test_ping_ms;
        sio.eio.max_queue = (size_t)c->limits.queue_bytes;
        so.sio = &sio;
    }
    s->site = mo_site_new(s->loop, &so, e);
    if (!s->site)
        return e->code;
    s->siod = mo_site_sio(s->site);
    return 0;
}

static bool is_ipv6(const char *listen)
{
    return strchr(listen, ':') && listen[0] != '[';
}

static int listen_on(struct server *s, struct mo_err *e)
{
    const struct mo_config_server *c = &s->config->now->server;
    struct mo_listen_opts o = {0};
    struct mo_buf addr;
    int rc;

    mo_buf_init(&addr, 512);
    if (strncmp(c->listen, "unix:", 5) == 0)
        (void)mo_buf_puts(&addr, c->listen);
    else
        (void)mo_buf_printf(&addr, is_ipv6(c->listen) ? "[%s]:%d" : "%s:%d",
                            c->listen, (int)c->port);
    o.addr = mo_buf_cstr(&addr);
    rc = mo_site_listen(s->site, &o, e);
    mo_buf_fini(&addr);
    return rc;
}

static void say_ready(const struct server *s)
{
    const struct mo_config_server *c = &s->config->now->server;
    bool local = is_loopback(c->listen);

    if (strncmp(c->listen, "unix:", 5) == 0)
        (void)printf("MCP Orchestrator " MO_VERSION " is ready on %s\n",
                     c->listen);
    else
        (void)printf("MCP Orchestrator " MO_VERSION
                     " is ready: http%s://%s:%u/\n",
                     s->tls ? "s" : "", local ? "localhost" : c->listen,
                     mo_site_port(s->site));
    (void)fflush(stdout);
}

static int watch_signals(struct server *s, struct mo_err *e)
{
    static const int which[] = {SIGHUP, SIGTERM, SIGINT};

    for (size_t i = 0; i < MO_COUNT(which); i++) {
        s->signals[i] = mo_signal_start(s->loop, which[i], on_signal, s, e);
        if (!s->signals[i])
            return e->code;
    }
    return 0;
}

static int start(struct server *s, const struct mo_serve_opts *o,
                 struct mo_err *e)
{
    int rc;

    s->loop = mo_loop_new(s->log, e);
    if (!s->loop)
        return e->code;
    rc = choose_token(s, e);
    if (rc == 0)
        rc = make_site(s, o, e);
    if (rc == 0)
        rc = watch_signals(s, e);
    if (rc == 0)
        rc = listen_on(s, e);
    return rc;
}

/* What is still there is taken down; a site that never listened too. */
static void stop(struct server *s)
{
    if (s->site) {
        mo_site_close(s->site, 0, on_site_gone, s);
        mo_loop_run(s->loop);
    }
    for (size_t i = 0; i < MO_COUNT(s->signals); i++)
        mo_signal_stop(s->signals[i]);
    mo_tls_free(s->tls);
    mo_loop_free(s->loop);
}

static int exit_code(const struct mo_err *e)
{
    if (e->code == MO_EINVAL)
        return MO_EXIT_CONFIG;
    return e->code == MO_EIO ? MO_EXIT_UNAVAIL : MO_EXIT_FAIL;
}

/* Each client is a descriptor; the usual soft limit is 1024. */
static void widen_limits(void)
{
    struct rlimit r;

    if (getrlimit(RLIMIT_NOFILE, &r) < 0)
        return;
    r.rlim_cur = r.rlim_max;
    (void)setrlimit(RLIMIT_NOFILE, &r);
}

int mo_serve(struct mo_config_holder *h, struct mo_log *log,
             const struct mo_serve_opts *o)
{
    struct server s = {.config = h, .log = log};
    struct mo_err e = {0};

    widen_limits();
    if (start(&s, o, &e) < 0) {
        mo_log_err(log, MO_ERROR, "serve", &e, "cannot start");
        stop(&s);
        return exit_code(&e);
    }
    say_ready(&s);
    mo_timer_init(&s.watch, on_watch);
    mo_timer_start(s.loop, &s.watch, WATCH_MS);
    mo_loop_run(s.loop);
    stop(&s);
    mo_log(log, MO_INFO, "serve", "stopped");
    return MO_EXIT_OK;
}
