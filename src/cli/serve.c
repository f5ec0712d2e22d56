/* serve - runs the server in the foreground. */
#include "app/serve.h"

#include <limits.h>
#include <signal.h>
#include <unistd.h>

#include "cli/cmd.h"

static void set_up_log(struct mo_log *log, const struct mo_config *c)
{
    mo_log_init(log, STDERR_FILENO);
    if (c->log.format != MO_FORMAT_AUTO)
        log->json = c->log.format == MO_FORMAT_JSON;
    (void)mo_log_levels(log, mo_span_cstr(c->log.level), NULL); /* checked */
    if (mo_config_hide(c, log) < 0)
        mo_log(log, MO_WARN, "config",
               "not every secret can be kept out of the log by its value");
}

int mo_run_serve(struct mo_cli *c)
{
    struct mo_serve_opts o = {.no_auth = mo_cli_has(c, "no-auth"),
                              .print_link = mo_cli_has(c, "print-link"),
                              .test_echo = mo_cli_has(c, "test-echo"),
                              .test_bare = mo_cli_has(c, "test-bare"),
                              .test_crash = mo_cli_get(c, "test-crash")};
    uint64_t ping = 0;
    mo_autoconfig struct mo_cmd_config cfg = {.now = NULL};
    struct mo_log log;
    int rc = mo_cmd_load(c, &cfg);

    if (rc)
        return rc;
    if (mo_span_u64(mo_span_cstr(mo_cli_get(c, "test-ping")), &ping) == 0 &&
        ping <= UINT_MAX / 10)
        o.test_ping_ms = (unsigned)ping;
    (void)signal(SIGPIPE, SIG_IGN);
    set_up_log(&log, cfg.now);
    mo_cmd_reduce_rights(&cfg, &log);
    o.user = &cfg.user;
    rc = mo_serve(&cfg.h, &log, &o);
    mo_log_fini(&log);
    return rc;
}
