#include "app/serve.h"

#include <errno.h>
#include <signal.h>

#include "app/cli.h"

static void say_change(void *ctx, const char *path, bool restart)
{
    mo_log(ctx, restart ? MO_WARN : MO_INFO, "config", "%s changed%s", path,
           restart ? "; it takes effect after a restart" : "");
}

/* Take a new configuration if it is good, and say what it changes. */
static void reload(struct mo_config_holder *h, struct mo_log *log)
{
    const struct mo_config *old = mo_config_ref(h->now);
    struct mo_config_report rep;
    struct mo_err e = {0};

    if (mo_config_reload(h, &rep, &e) < 0) {
        mo_log_err(log, MO_ERROR, "config", &e, "reload");
    } else {
        (void)mo_config_hide(h->now, log);
        mo_log(log, MO_INFO, "config", "generation %llu loaded",
               (unsigned long long)h->now->generation);
        mo_config_diff(old, h->now, say_change, log);
    }
    mo_config_unref(old);
}

int mo_serve(struct mo_config_holder *h, struct mo_log *log,
             const struct mo_serve_opts *o)
{
    sigset_t set;

    (void)o;
    sigemptyset(&set);
    sigaddset(&set, SIGTERM);
    sigaddset(&set, SIGINT);
    sigaddset(&set, SIGHUP);
    if (sigprocmask(SIG_BLOCK, &set, NULL) < 0)
        return MO_EXIT_FAIL;
    mo_log(log, MO_INFO, "serve", "started, version " MO_VERSION);
    for (;;) {
        struct timespec tick = {.tv_sec = 1};
        int signo = sigtimedwait(&set, NULL, &tick);

        if (signo == SIGTERM || signo == SIGINT)
            break;
        if (signo == SIGHUP || (signo < 0 && mo_config_stale(h)))
            reload(h, log);
    }
    mo_log(log, MO_INFO, "serve", "stopped");
    return MO_EXIT_OK;
}
