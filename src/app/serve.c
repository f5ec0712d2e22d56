#include "app/serve.h"

#include <signal.h>

#include "app/cli.h"
#include "loop/loop.h"

#define LOOK_MS 1000 /* how often the files are looked at */

struct server {
    struct mo_loop *loop;
    struct mo_config_holder *config;
    struct mo_log *log;
    struct mo_timer look;
    struct mo_signal *signals[3];
};

static void say_change(void *ctx, const char *path, bool restart)
{
    mo_log(ctx, restart ? MO_WARN : MO_INFO, "config", "%s changed%s", path,
           restart ? "; it takes effect after a restart" : "");
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
        (void)mo_config_hide(s->config->now, s->log);
        mo_log(s->log, MO_INFO, "config", "generation %llu loaded",
               (unsigned long long)s->config->now->generation);
        mo_config_diff(old, s->config->now, say_change, s->log);
    }
    mo_config_unref(old);
}

static void on_look(struct mo_timer *t)
{
    struct server *s = mo_container_of(t, struct server, look);

    if (mo_config_stale(s->config))
        reload(s);
    mo_timer_start(s->loop, t, LOOK_MS);
}

static void on_signal(void *ctx, int signo)
{
    struct server *s = ctx;

    if (signo == SIGHUP)
        reload(s);
    else
        mo_loop_stop(s->loop);
}

static int start(struct server *s, struct mo_err *e)
{
    static const int signals[] = {SIGTERM, SIGINT, SIGHUP};

    for (size_t i = 0; i < MO_COUNT(signals); i++) {
        s->signals[i] = mo_signal_start(s->loop, signals[i], on_signal, s, e);
        if (!s->signals[i])
            return e->code;
    }
    mo_timer_init(&s->look, on_look);
    mo_timer_start(s->loop, &s->look, LOOK_MS);
    return 0;
}

static void stop(struct server *s)
{
    mo_timer_stop(s->loop, &s->look);
    for (size_t i = 0; i < MO_COUNT(s->signals); i++) {
        if (s->signals[i])
            mo_signal_stop(s->signals[i]);
    }
    mo_loop_free(s->loop);
}

int mo_serve(struct mo_config_holder *h, struct mo_log *log,
             const struct mo_serve_opts *o)
{
    struct server s = {.config = h, .log = log};
    struct mo_err e = {0};
    int rc;

    (void)o;
    s.loop = mo_loop_new(log, &e);
    rc = s.loop ? start(&s, &e) : e.code;
    if (rc < 0) {
        mo_log_err(log, MO_ERROR, "serve", &e, "cannot start");
    } else {
        mo_log(log, MO_INFO, "serve", "started, version " MO_VERSION);
        mo_loop_run(s.loop);
        mo_log(log, MO_INFO, "serve", "stopped");
    }
    if (s.loop)
        stop(&s);
    return rc < 0 ? MO_EXIT_FAIL : MO_EXIT_OK;
}
