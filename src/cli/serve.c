/* serve - runs the server in the foreground. */
#include "app/serve.h"

#include <limits.h>
#include <signal.h>
#include <unistd.h>

#include "cli/cmd.h"

static int set_up_log(struct mo_log *log, const struct mo_config *c)
{
    int rc;

    mo_log_init(log, STDERR_FILENO);
    if (c->log.format != MO_FORMAT_AUTO)
        log->json = c->log.format == MO_FORMAT_JSON;
    (void)mo_log_levels(log, mo_span_cstr(c->log.level), NULL); /* checked */
    rc = mo_config_hide(c, log);
    if (rc < 0)
        mo_log(log, MO_WARN, "config",
               "not every secret can be kept out of the log by its value");
    return rc;
}

static int run_serve(struct mo_cli *c)
{
    struct mo_serve_opts o = {.test_echo = mo_cli_has(c, "test-echo"),
                              .test_bare = mo_cli_has(c, "test-bare"),
                              .test_crash = mo_cli_get(c, "test-crash")};
    uint64_t ping = 0;
    struct mo_config_holder h;
    struct mo_cmd_flags flags;
    struct mo_log log;
    int rc = mo_cmd_load(c, &flags, &h);

    if (rc)
        return rc;
    if (mo_span_u64(mo_span_cstr(mo_cli_get(c, "test-ping")), &ping) == 0 &&
        ping <= UINT_MAX / 10)
        o.test_ping_ms = (unsigned)ping;
    (void)signal(SIGPIPE, SIG_IGN);
    (void)set_up_log(&log, h.now);
    rc = mo_serve(&h, &log, &o);
    mo_log_fini(&log);
    mo_config_close(&h);
    return rc;
}

static const struct mo_opt opts[] = {
    {.name = "listen",
     .letter = 'l',
     .arg = "ADDR",
     .key = "server.listen",
     .doc =
         "Address to listen on (127.0.0.1); other than loopback needs a token"},
    {.name = "port",
     .letter = 'p',
     .arg = "N",
     .key = "server.port",
     .doc = "Port to listen on (3000, or PORT); 0 takes a free one"},
    {.name = "tls-cert",
     .arg = "FILE",
     .key = "server.tls.cert",
     .words = "@file",
     .doc = "Certificate chain for HTTPS"},
    {.name = "tls-key",
     .arg = "FILE",
     .key = "server.tls.key",
     .words = "@file",
     .doc = "Private key of the certificate"},
    {.name = "store",
     .arg = "URL",
     .key = "store.url",
     .doc = "sqlite:FILE or redis://HOST:PORT (REDIS_URL)"},
    {.name = "provider",
     .arg = "NAME",
     .key = "llm.provider",
     .words = "auto claude gemini openai demo",
     .doc = "Provider of the model (LLM_PROVIDER)"},
    {.name = "model", .arg = "NAME", .key = "llm.model", .doc = "Model to use"},
    {.name = "sandbox",
     .arg = "DRIVER",
     .key = "sandbox.driver",
     .words = "auto native docker none",
     .doc = "Driver of the boxes that tools run in"},
    {.name = "test-echo",
     .flags = MO_CLI_HIDDEN,
     .doc = "Echo Socket.IO events, for tests"},
    {.name = "test-bare",
     .flags = MO_CLI_HIDDEN,
     .doc = "No sessions and no conversations, for tests"},
    {.name = "test-crash",
     .arg = "POINT",
     .flags = MO_CLI_HIDDEN,
     .doc = "Die at that point of a turn, for tests"},
    {.name = "test-ping",
     .arg = "MS",
     .flags = MO_CLI_HIDDEN,
     .doc = "Heartbeat of Socket.IO, for tests"},
};

const struct mo_cmd mo_cmd_serve = {
    .name = "serve",
    .summary = "Run the server: web page, gateway, metrics",
    .text = "Listens on http://localhost:3000 by default. MCP clients find all "
            "configured servers as one at /mcp. A changed configuration file "
            "or .env is reloaded without a restart, also on SIGHUP; an invalid "
            "one is reported and the old one stays in effect. SIGTERM and "
            "SIGINT stop the server gracefully.",
    .example = "serve --port 8080",
    .example_says = "starts the server on port 8080 of this machine only",
    .opts = opts,
    .nopts = MO_COUNT(opts),
    .run = run_serve,
};
