/* reload.c - reloads the configuration and logs the changes; see reload.h. */
#include "config/reload.h"

#include <unistd.h>

static void log_change(void *ctx, const char *path, bool restart)
{
    mo_log(ctx, restart ? MO_WARN : MO_INFO, "config", "%s changed%s", path,
           restart ? "; it takes effect after a restart" : "");
}

/* Logs every problem with its place; the summary has only the first. */
static void log_problems(struct mo_log *log, const struct mo_config_report *rep)
{
    for (unsigned i = 0; i < rep->kept; i++)
        mo_log(log, rep->v[i].warning ? MO_WARN : MO_ERROR, "config", "%s",
               rep->v[i].text);
}

void mo_reload_log(struct mo_log *log, const struct mo_config *c)
{
    (void)mo_config_hide(c, log);
    (void)mo_log_levels(log, mo_span_cstr(c->log.level), NULL); /* checked */
    log->json = c->log.format == MO_FORMAT_JSON ||
                (c->log.format == MO_FORMAT_AUTO && !isatty(log->fd));
}

void mo_reload(struct mo_config_holder *h, struct mo_log *log,
               struct mo_config_report *rep, void (*apply)(void *ctx),
               void *ctx)
{
    const struct mo_config *old = mo_config_ref(h->now);
    struct mo_err e = {0};

    if (mo_config_reload(h, rep, &e) < 0) {
        if (log->worker <= 1) { /* one worker tells for all of them */
            log_problems(log, rep);
            mo_log_err(log, MO_ERROR, "config", &e, "reload");
        }
    } else {
        mo_reload_log(log, h->now);
        apply(ctx);
        mo_log(log, MO_INFO, "config", "generation %llu loaded",
               (unsigned long long)h->now->generation);
        log_problems(log, rep);
        mo_config_diff(old, h->now, log_change, log);
    }
    mo_config_unref(old);
}
