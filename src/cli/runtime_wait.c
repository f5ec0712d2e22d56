#include "cli/runtime_wait.h"

#include <unistd.h>

#define FOREVER_MS ((uint64_t)24 * 3600 * 1000)

static bool is_done(void *ctx)
{
    return ((struct mo_cmd_runtime *)ctx)->done;
}

void mo_cmd_runtime_wait(struct mo_cmd_runtime *m)
{
    while (!mo_loop_until(m->loop, is_done, m, FOREVER_MS))
        continue;
}

static void on_open(void *ctx, struct mo_runtime *h, const struct mo_err *why)
{
    struct mo_cmd_runtime *m = ctx;

    m->runtime = h;
    m->done = true;
    if (why)
        m->why = *why;
}

int mo_cmd_runtime_load(struct mo_cli *c, struct mo_cmd_runtime *m)
{
    struct mo_err e;
    int rc;

    *m = (struct mo_cmd_runtime){.c = c};
    mo_log_init(&m->log, STDERR_FILENO);
    rc = mo_cmd_load(c, &m->cfg);
    if (rc)
        return rc;
    (void)mo_config_hide(m->cfg.now, &m->log);
    m->log.level = MO_WARN;
    if (mo_cli_has(c, "log"))
        (void)mo_log_levels(&m->log, mo_span_cstr(m->cfg.now->log.level), NULL);
    m->loop = mo_loop_new(&m->log, &e);
    if (!m->loop)
        return mo_cli_error(c, MO_EXIT_FAIL, "%s", e.msg);
    return 0;
}

int mo_cmd_runtime_begin(struct mo_cmd_runtime *m, enum mo_runtime_want want)
{
    if (mo_runtime_open(m->loop, m->cfg.now, want, on_open, m, &m->why) == 0)
        mo_cmd_runtime_wait(m);
    if (m->why.code)
        return mo_cli_error(m->c, MO_EXIT_UNAVAIL, "%s", m->why.msg);
    m->done = false;
    return 0;
}

int mo_cmd_runtime_open(struct mo_cli *c, struct mo_cmd_runtime *m,
                        enum mo_runtime_want want)
{
    int rc = mo_cmd_runtime_load(c, m);

    return rc ? rc : mo_cmd_runtime_begin(m, want);
}

void mo_cmd_runtime_done(void *ctx)
{
    ((struct mo_cmd_runtime *)ctx)->done = true;
}

void mo_cmd_runtime_close(struct mo_cmd_runtime *m)
{
    if (m->runtime) {
        m->done = false;
        mo_runtime_close(mo_take_ptr(&m->runtime), mo_cmd_runtime_done, m);
        mo_cmd_runtime_wait(m);
    }
    if (m->loop)
        mo_loop_free(m->loop);
    m->loop = NULL;
    mo_cmd_close(&m->cfg);
    mo_log_fini(&m->log);
}
