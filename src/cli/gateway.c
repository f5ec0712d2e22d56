/* gateway - all configured MCP servers as one, on standard input and output.
 *
 * Whoever starts us is the client. It ends us by closing our input, as MCP
 * has it, or with a signal; nothing that we started is there when we have
 * ended. Standard output belongs to the protocol, so that people hear of us on
 * standard error only. */
#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

#include "cli/cmd.h"
#include "config/reload.h"
#include "mcp/server/ep_stdio.h"
#include "servers/gateway_setup.h"
#include "web/approvals_socket.h"

#define HATCH_MS 20 /* from the start: the client's first words come before */

struct gateway {
    struct mo_config_holder config;
    struct mo_log log;
    struct mo_loop *loop;
    struct mo_approvals *desk;
    struct mo_approvals_socket *hatch;
    struct mo_gateway_setup *hub;
    const char *record_to; /* NULL: nothing is recorded */
    struct mo_record *record;
    struct mo_ep_stdio *io; /* NULL: closed */
    struct mo_signal *signals[3];
    struct mo_timer watch, soon;
};

/* --- configuration while running ----------------------------------------- */

static void apply(void *ctx)
{
    struct gateway *g = ctx;
    struct mo_err e;

    if (mo_approvals_reload(g->desk, g->config.now, &e) < 0)
        mo_log_err(&g->log, MO_ERROR, "gateway", &e, "keeping the rules");
    if (mo_gateway_setup_reload(g->hub, g->config.now, &e) < 0)
        mo_log_err(&g->log, MO_ERROR, "gateway", &e, "keeping the servers");
}

static void on_watch(struct mo_timer *t)
{
    struct gateway *g = mo_container_of(t, struct gateway, watch);

    if (mo_config_stale(&g->config))
        mo_reload(&g->config, &g->log, apply, g);
    mo_timer_start(g->loop, t, MO_RELOAD_WATCH_MS);
}

/* --- the end ------------------------------------------------------------- */

/* Last come, first gone. */
static void end_next(void *ctx)
{
    struct gateway *g = ctx;

    if (g->hatch)
        mo_approvals_socket_close(mo_take_ptr(&g->hatch), end_next, g);
    else if (g->hub)
        mo_gateway_setup_close(mo_take_ptr(&g->hub), end_next, g);
    else if (g->desk)
        mo_approvals_close(mo_take_ptr(&g->desk), end_next, g);
    else
        mo_loop_stop(g->loop);
}

static void on_closed(void *ctx, const struct mo_err *why)
{
    struct gateway *g = ctx;

    g->io = NULL;
    if (why)
        mo_log_err(&g->log, MO_WARN, "gateway", why, "the client is gone");
    mo_timer_stop(g->loop, &g->watch);
    mo_timer_stop(g->loop, &g->soon);
    end_next(g);
}

static void on_signal(void *ctx, int signo)
{
    struct gateway *g = ctx;

    if (signo == SIGHUP && g->io)
        mo_reload(&g->config, &g->log, apply, g);
    else if (g->io)
        mo_ep_stdio_close(g->io);
}

/* --- the start ----------------------------------------------------------- */

static int watch_signals(struct gateway *g, struct mo_err *e)
{
    static const int which[] = {SIGHUP, SIGTERM, SIGINT};

    for (size_t i = 0; i < MO_COUNT(which); i++) {
        g->signals[i] = mo_signal_start(g->loop, which[i], on_signal, g, e);
        if (!g->signals[i])
            return e->code;
    }
    return 0;
}

/* Ours from now on; whatever is printed by mistake goes to stderr. */
static int take_stdio(struct gateway *g, struct mo_err *e)
{
    int in = fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 3);
    int out = fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 3);
    int null = open("/dev/null", O_RDONLY | O_CLOEXEC);
    struct mo_stream *s = NULL;

    if (in < 0 || out < 0 || null < 0 || dup2(null, STDIN_FILENO) < 0 ||
        dup2(STDERR_FILENO, STDOUT_FILENO) < 0)
        return mo_fail(e, MO_EIO, "standard input and output");
    (void)close(null);
    if (mo_stream_from_fds(g->loop, in, out, &s, e) < 0)
        return mo_wrap(e, "standard input");
    return mo_ep_stdio_open(mo_gateway_setup_endpoint(g->hub), s, on_closed, g,
                            &g->io, e);
}

/* Without it, held calls can only be decided by nobody. It is a file, which
 * costs more than the first answer: nobody can wait for it yet. */
static void open_hatch(struct mo_timer *t)
{
    struct gateway *g = mo_container_of(t, struct gateway, soon);
    const struct mo_api_approvals api = {g->desk};
    struct mo_err e;

    if (mo_approvals_socket_open(g->loop, g->config.now->store.dir, &api,
                                 &g->hatch, &e) < 0)
        mo_log_err(&g->log, MO_WARN, "gateway", &e,
                   "`approvals` will not reach this process");
}

static int start(struct gateway *g, struct mo_err *e)
{
    int rc = 0;

    g->loop = mo_loop_new(&g->log, e);
    if (!g->loop)
        return e->code;
    rc = watch_signals(g, e);
    if (rc == 0 && g->record_to) {
        g->record = mo_record_open(g->loop, g->record_to, e);
        rc = g->record ? 0 : e->code;
    }
    if (rc == 0)
        rc = mo_approvals_open(g->loop, g->config.now, &g->desk, e);
    if (rc == 0)
        rc = mo_gateway_setup_open(g->loop, g->config.now, g->desk, g->record,
                                   &g->hub, e);
    if (rc < 0)
        return rc;
    mo_gateway_single(mo_gateway_setup_gateway(g->hub));
    return take_stdio(g, e);
}

static void stop(struct gateway *g)
{
    if (g->desk) { /* it never came to a conversation */
        end_next(g);
        mo_loop_run(g->loop);
    }
    for (size_t i = 0; i < MO_COUNT(g->signals); i++)
        mo_signal_stop(g->signals[i]);
    if (g->loop)
        mo_loop_run(g->loop); /* what is half closed */
    mo_record_close(g->record);
    mo_loop_free(g->loop);
}

static int run(struct mo_cli *c)
{
    struct gateway g = {.record_to = mo_cli_get(c, "record")};
    struct mo_cmd_flags flags;
    struct mo_err e;
    int rc = mo_cmd_load(c, &flags, &g.config);

    if (rc)
        return rc;
    (void)signal(SIGPIPE, SIG_IGN);
    mo_log_init(&g.log, STDERR_FILENO);
    mo_reload_log(&g.log, g.config.now);
    mo_timer_init(&g.watch, on_watch);
    mo_timer_init(&g.soon, open_hatch);
    if (start(&g, &e) < 0) {
        rc = mo_cli_error(c, MO_EXIT_FAIL, "%s", e.msg);
    } else {
        mo_timer_start(g.loop, &g.watch, MO_RELOAD_WATCH_MS);
        mo_timer_start(g.loop, &g.soon, HATCH_MS);
        mo_loop_run(g.loop);
    }
    stop(&g);
    mo_log_fini(&g.log);
    mo_config_close(&g.config);
    return rc;
}

static const struct mo_opt opts[] = {
    {.name = "expose",
     .arg = "WHAT",
     .key = "gateway.expose",
     .words = "all search auto",
     .doc = "Which tools the client is shown: all, four that find and run the "
            "others (search), or as fits their number (auto)"},
    {.name = "prefix",
     .arg = "WHEN",
     .key = "gateway.prefix",
     .words = "collision always never",
     .doc = "When a tool gets its server's name in front (collision)"},
    {.name = "record",
     .arg = "FILE",
     .words = "@file",
     .doc = "Write all that servers say and are told into a new file, for "
            "`replay`; known secrets are blanked out"},
};

const struct mo_cmd mo_cmd_gateway = {
    .name = "gateway",
    .summary = "All configured MCP servers as one, on stdio",
    .text = "For an MCP client that starts its servers itself: put this "
            "command into its configuration instead of all of them. Servers "
            "are started when they are first used and stopped when idle; what "
            "they offer is remembered, so that lists are there at once. It "
            "ends when its input does. `serve` offers the same at /mcp.",
    .example = "gateway --prefix always",
    .example_says = "answers as one server; each tool has its server's name "
                    "in front",
    .opts = opts,
    .nopts = MO_COUNT(opts),
    .run = run,
};
