/* gateway - serves all configured MCP servers as one, on standard input and
 * output.
 *
 * The parent process is the client. It ends this process by closing its input,
 * as MCP specifies, or with a signal. All children are gone when this process
 * ends. Standard output carries only the protocol; messages for people go to
 * standard error. */
#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

#include "app/telemetry.h"
#include "audit/audit_config.h"
#include "cli/cmd.h"
#include "config/reload.h"
#include "mcp/server/ep_stdio.h"
#include "servers/gateway_setup.h"
#include "web/approvals_socket.h"

/* After the start, so that the first messages of the client go first. */
#define APPROVALS_SOCKET_MS 20

struct gateway {
    struct mo_cmd_config config;
    const struct mo_config *first; /* of the start */
    struct mo_log log;
    struct mo_loop *loop;
    struct mo_telemetry *telemetry; /* NULL: it is off */
    struct mo_approvals *approvals;
    struct mo_approvals_socket *approvals_socket;
    struct mo_gateway_setup *gateway;
    const char *view;       /* NULL: everything */
    struct mo_endpoint *ep; /* of the view, or of everything */
    const char *record_to;  /* NULL: no recording */
    struct mo_record *record;
    struct mo_ep_stdio *io; /* NULL: closed */
    struct mo_signal *signals[3];
    struct mo_timer watch, soon;
};

/* --- configuration while running ----------------------------------------- */

static void apply_config(void *ctx)
{
    struct gateway *g = ctx;
    struct mo_err e;

    if (mo_approvals_reload(g->approvals, g->config.h.now, &e) < 0)
        mo_log_err(&g->log, MO_ERROR, "gateway", &e, "keeping the old rules");
    if (mo_gateway_setup_reload(g->gateway, g->config.h.now, &e) < 0)
        mo_log_err(&g->log, MO_ERROR, "gateway", &e, "keeping the old servers");
}

static void reload_config(struct gateway *g, const char *by)
{
    struct mo_reload_news news;
    struct mo_config_report rep;

    mo_reload(&g->config.h, g->first, &g->log, &rep, &news, apply_config, g);
    mo_audit_reloaded(mo_approvals_audit(g->approvals), g->config.h.path, by,
                      &rep, &news);
    mo_buf_fini(&news.changed);
    mo_buf_fini(&news.waiting);
}

static void on_watch(struct mo_timer *t)
{
    struct gateway *g = mo_container_of(t, struct gateway, watch);

    if (mo_config_stale(&g->config.h))
        reload_config(g, "file");
    mo_timer_start(g->loop, t, MO_RELOAD_WATCH_MS);
}

/* --- end ------------------------------------------------------------------ */

/* Closes in reverse order of opening. */
static void end_next(void *ctx)
{
    struct gateway *g = ctx;

    if (g->approvals_socket)
        mo_approvals_socket_close(mo_take_ptr(&g->approvals_socket), end_next,
                                  g);
    else if (g->gateway)
        mo_gateway_setup_close(mo_take_ptr(&g->gateway), end_next, g);
    else if (g->approvals)
        mo_approvals_close(mo_take_ptr(&g->approvals), end_next, g);
    else if (g->telemetry)
        mo_telemetry_close(mo_take_ptr(&g->telemetry), end_next, g);
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
        reload_config(g, "signal");
    else if (g->io)
        mo_ep_stdio_close(g->io);
}

/* --- the view ------------------------------------------------------------- */

static void *on_view(void *ctx, const char *view, struct mo_endpoint *ep)
{
    struct gateway *g = ctx;

    if (g->ep || strcmp(view, g->view) != 0)
        return NULL;
    g->ep = ep;
    return g;
}

static bool on_view_removed(void *ctx, void *door)
{
    struct gateway *g = ctx;

    (void)door;
    mo_log(&g->log, MO_ERROR, "gateway",
           "the view %s was removed from the configuration; closing", g->view);
    if (g->io)
        mo_ep_stdio_close(g->io);
    return false; /* the end of the process frees it */
}

static int choose_endpoint(struct gateway *g, struct mo_err *e)
{
    const struct mo_view_doors doors = {
        .open = on_view, .close = on_view_removed, .ctx = g};

    if (!g->view) {
        g->ep = mo_gateway_setup_endpoint(g->gateway);
        return 0;
    }
    mo_view_table_doors(mo_gateway_setup_views(g->gateway), &doors);
    return g->ep ? 0
                 : mo_fail(e, MO_ENOTFOUND,
                           "there is no view '%.64s'; `mcp-orchestrator "
                           "views` lists them",
                           g->view);
}

/* --- start ---------------------------------------------------------------- */

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

/* Takes over stdin and stdout; anything else that prints goes to stderr. */
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
    return mo_ep_stdio_open(g->ep, s, on_closed, g, &g->io, e);
}

/* Without this socket, held calls cannot be decided. It is opened after the
 * first answer, because creating a file takes longer and no call can be held
 * earlier. */
static void open_approvals_socket(struct mo_timer *t)
{
    struct gateway *g = mo_container_of(t, struct gateway, soon);
    const struct mo_api api = {.approvals = g->approvals};
    struct mo_err e;

    if (mo_approvals_socket_open(g->loop, g->config.h.now->store.dir, &api,
                                 &g->approvals_socket, &e) < 0)
        mo_log_err(&g->log, MO_WARN, "gateway", &e,
                   "the `approvals` command cannot reach this process");
}

static int start_gateway(struct gateway *g, struct mo_err *e)
{
    int rc = 0;

    g->loop = mo_loop_new(&g->log, e);
    if (!g->loop)
        return e->code;
    g->telemetry = mo_telemetry_open(g->loop, &g->log, g->config.h.now);
    rc = watch_signals(g, e);
    if (rc == 0 && g->record_to) {
        g->record = mo_record_open(g->loop, g->record_to, e);
        rc = g->record ? 0 : e->code;
    }
    if (rc == 0)
        rc = mo_approvals_open(g->loop, g->config.h.now, &g->approvals, e);
    if (rc == 0)
        rc = mo_gateway_setup_open(g->loop, g->config.h.now, g->approvals,
                                   g->record, &g->gateway, e);
    if (rc < 0)
        return rc;
    mo_gateway_single(mo_gateway_setup_gateway(g->gateway));
    rc = choose_endpoint(g, e);
    return rc < 0 ? rc : take_stdio(g, e);
}

static void free_gateway(struct gateway *g)
{
    if (g->approvals || g->telemetry) { /* the endpoint was never opened */
        end_next(g);
        mo_loop_run(g->loop);
    }
    for (size_t i = 0; i < MO_COUNT(g->signals); i++)
        mo_signal_stop(g->signals[i]);
    if (g->loop)
        mo_loop_run(g->loop); /* finish closing */
    mo_record_close(g->record);
    mo_loop_free(g->loop);
}

int mo_run_gateway(struct mo_cli *c)
{
    struct gateway g = {.view = mo_cli_get(c, "view"),
                        .record_to = mo_cli_get(c, "record")};
    struct mo_err e;
    int rc = mo_cmd_load(c, &g.config);

    if (rc)
        return rc;
    g.first = mo_config_ref(g.config.now);
    (void)signal(SIGPIPE, SIG_IGN);
    mo_log_init(&g.log, STDERR_FILENO);
    mo_log_collect(&g.log);
    mo_reload_log(&g.log, g.config.now);
    mo_cmd_reduce_rights(&g.config, &g.log);
    mo_timer_init(&g.watch, on_watch);
    mo_timer_init(&g.soon, open_approvals_socket);
    if (start_gateway(&g, &e) < 0) {
        rc = mo_cli_error(c, MO_EXIT_FAIL, "%s", e.msg);
    } else {
        mo_log(&g.log, MO_INFO, "gateway",
               "started: version " MO_VERSION ", pid %d, on standard input",
               (int)getpid());
        mo_timer_start(g.loop, &g.watch, MO_RELOAD_WATCH_MS);
        mo_timer_start(g.loop, &g.soon, APPROVALS_SOCKET_MS);
        mo_loop_run(g.loop);
        mo_log(&g.log, MO_INFO, "gateway", "stopped");
    }
    free_gateway(&g);
    mo_log_fini(&g.log);
    mo_config_unref(g.first);
    mo_cmd_close(&g.config);
    return rc;
}
