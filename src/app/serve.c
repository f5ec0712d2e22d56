/* serve.c - see serve.h; configuration while running: serve_config.c. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "app/serve_priv.h"
#include "app/service_manager.h"
#include "base/exit.h"
#include "codec/http/url.h"
#include "connect/accounts.h"
#include "web/echo.h"

#define GRACE_MS MO_SERVE_GRACE_MS

/* --- end ------------------------------------------------------------------ */

static void end_next(struct server *s);

static void end_mcp(struct server *s)
{
    s->api.gateway = NULL;
    mo_serve_views_end(s);
    if (s->mcp)
        mo_ep_http_free(mo_take_ptr(&s->mcp));
}

/* Closes in reverse order: site, changes of servers, conversations, gateway,
 * sessions and boxes, audit log. */
void mo_serve_end_clients(struct server *s)
{
    if (s->site || s->relaying || !mo_serve_pass_on_stopped(s))
        return;
    end_mcp(s);
    end_next(s);
}

/* The site took the registry of metrics along; calls may still end, while a
 * relay drains. */
static void on_site_gone(void *ctx)
{
    struct server *s = ctx;

    s->site = NULL;
    mo_gateway_metrics_stop(s->metrics);
    mo_serve_end_clients(s);
}

static void on_relay_drained(void *ctx)
{
    struct server *s = ctx;

    s->relaying = false;
    mo_serve_end_clients(s);
}

static void on_part_gone(void *ctx)
{
    struct server *s = ctx;

    s->ending_part = false;
    end_next(s);
}

static void close_runtime(struct server *s)
{
    if (s->approvals) {
        mo_audit_store(mo_approvals_audit(s->approvals), NULL);
        mo_policy_unshare(mo_approvals_policy(s->approvals));
    }
    if (s->grants)
        mo_grants_close(mo_take_ptr(&s->grants));
    mo_runtime_close(mo_take_ptr(&s->runtime), on_part_gone, s);
}

/* Nobody speaks to other machines any more. */
static void end_loop(struct server *s)
{
    mo_cluster_free(mo_take_ptr(&s->cluster));
    mo_loop_stop(s->loop);
}

/* Closes the next part; called when one is gone. */
static void end_next(struct server *s)
{
    /* The site is closing, or will be closed first; or a part is closing. */
    if (s->site || s->relaying || !mo_serve_pass_on_stopped(s) ||
        s->ending_part)
        return;
    s->ending_part = true;
    if (mo_serve_relay_close(s, on_part_gone))
        return;
    if (s->people)
        mo_people_close(mo_take_ptr(&s->people), on_part_gone, s);
    else if (s->by_name)
        mo_by_name_close(mo_take_ptr(&s->by_name), on_part_gone, s);
    else if (s->manage)
        mo_manage_close(mo_take_ptr(&s->manage), on_part_gone, s);
    else if (s->approvals_socket)
        mo_approvals_socket_close(mo_take_ptr(&s->approvals_socket),
                                  on_part_gone, s);
    else if (s->agent)
        mo_agent_setup_close(mo_take_ptr(&s->agent), GRACE_MS, on_part_gone, s);
    else if (s->gateway)
        mo_gateway_setup_close(mo_take_ptr(&s->gateway), on_part_gone, s);
    else if (s->runtime)
        close_runtime(s);
    else if (s->opening)
        s->ending_part = false; /* on_runtime() goes on */
    else if (s->approvals)
        mo_approvals_close(mo_take_ptr(&s->approvals), on_part_gone, s);
    else if (s->telemetry)
        mo_telemetry_close(mo_take_ptr(&s->telemetry), on_part_gone, s);
    else
        end_loop(s);
}

/* Waits for running answers, then closes everything and ends the loop. */
static void end_server(struct server *s)
{
    s->closing = true;
    mo_serve_await_end(s);
    mo_serve_subscriptions_end(s);
    if (s->mcp) /* open event streams would delay the end */
        mo_ep_http_drain(s->mcp);
    mo_serve_views_drain(s);
    mo_serve_relay_stop(s, GRACE_MS, on_relay_drained);
    mo_serve_pass_on_stop(s, GRACE_MS);
    mo_timer_stop(s->loop, &s->watch);
    mo_telemetry_stop_metrics(s->telemetry);
    mo_site_close(s->site, GRACE_MS, on_site_gone, s);
}

/* Closes the site at once: it never listened, or has no clients left. */
static void end_now(struct server *s)
{
    s->closing = true;
    end_mcp(s);
    mo_telemetry_stop_metrics(s->telemetry);
    mo_site_close(s->site, 0, on_site_gone, s);
    mo_loop_run(s->loop);
}

/* --- sessions and conversations ------------------------------------------ */

static void no_agent(struct server *s, const struct mo_err *why)
{
    mo_log_err(s->log, MO_ERROR, "serve", why,
               "no conversations; `mcp-orchestrator doctor` says more");
    mo_talk_begin(&s->talk, NULL, why);
    mo_serve_settled(s);
}

/* For tests: dies without cleanup, like a power failure. */
static void on_point(void *ctx, const char *name)
{
    struct server *s = ctx;
    struct mo_span rest = mo_span_cstr(s->crash);
    struct mo_span point = mo_span_cut(&rest, ':');
    uint64_t times = 1;

    if (!mo_span_is(point, name))
        return;
    if (rest.n > 0)
        (void)mo_span_u64(rest, &times);
    if (++s->crash_seen >= times)
        (void)raise(SIGKILL);
}

static void on_file_written(void *ctx)
{
    struct server *s = ctx;

    mo_serve_reload(s, "api");
    mo_worker_wrote(&s->worker);
}

static int ask_provider(void *ctx, const struct mo_config *cfg,
                        const char *provider, mo_job_done_fn *done, void *arg,
                        void **test, struct mo_err *e)
{
    const struct server *s = ctx;
    struct mo_models_test *t = NULL;
    int rc = mo_models_test(mo_agent_setup_models(s->agent), cfg, provider,
                            done, arg, &t, e);

    *test = t;
    return rc;
}

static void drop_test(void *test)
{
    mo_models_test_drop(test);
}

/* If this fails, servers can be listed but not changed. */
static void start_manage(struct server *s)
{
    const struct mo_manage_opts o = {
        .loop = s->loop,
        .config = s->config,
        .listen = s->first->server.listen,
        .needs_token = !mo_listen_auth_is_open(&s->auth),
        .audit = mo_approvals_audit(s->approvals),
        .gateway = s->gateway,
        .models = {ask_provider, drop_test, s},
        .written = on_file_written,
        .ctx = s,
    };

    const struct mo_by_name_opts by_name = {
        .loop = s->loop,
        .config = s->config,
        .listen = o.listen,
        .audit = o.audit,
        .written = on_file_written,
        .ctx = s,
    };

    s->api.manage = s->manage = mo_manage_new(&o);
    s->api.by_name = s->by_name = mo_by_name_new(&by_name);
}

static void start_agent_api(struct server *s)
{
    start_manage(s);
    if (s->crash)
        mo_agent_watch(mo_agent_setup_agent(s->agent), on_point, s);
    s->api.store = mo_runtime_store(s->runtime);
    s->api.sessions = mo_runtime_sessions(s->runtime);
    s->api.agent = mo_agent_setup_agent(s->agent);
    mo_gateway_metrics_agent(s->metrics, s->api.agent);
    mo_serve_pass_on_api(s);
    s->api.models = mo_agent_setup_models(s->agent);
    s->api.try_tool = mo_agent_setup_try_tool(s->agent);
    s->api.policy = mo_approvals_policy(s->approvals);
    mo_peers_people(mo_agent_setup_peers(s->agent), &s->people);
    if (s->cluster)
        mo_peers_cluster(mo_agent_setup_peers(s->agent), s->cluster);
    mo_talk_begin(&s->talk, mo_agent_setup_peers(s->agent), NULL);
    mo_serve_relay_open(s);
}

static int make_api(struct server *s, struct mo_err *e)
{
    const struct mo_ready ready = {"sessions", mo_talk_why, &s->talk};
    const struct mo_ready home = {"mcp", mo_serve_relay_why, s};
    const struct mo_ready all = {"workers", mo_worker_why, &s->worker};
    const struct mo_ready rules = {"rules", mo_policy_why,
                                   mo_approvals_policy(s->approvals)};
    const struct mo_ready people = {"connections", mo_server_link_why,
                                    mo_gateway_setup_link(s->gateway)};
    int rc = mo_site_ready(s->site, &ready);

    if (rc == 0)
        rc = mo_site_ready(s->site, &home);
    if (rc == 0)
        rc = mo_site_ready(s->site, &rules);
    if (rc == 0)
        rc = mo_site_ready(s->site, &people);
    if (rc == 0 && s->worker.number)
        rc = mo_site_ready(s->site, &all);
    s->api_stats.api = &s->api;
    if (rc == 0)
        rc = mo_api_routes(s->site, &s->api);
    if (rc == 0)
        rc = mo_api_stats_routes(s->site, &s->api_stats);
    return rc < 0 ? mo_fail(e, rc, "too many routes") : 0;
}

/* --- gateway -------------------------------------------------------------- */

/* The gate of the site has admitted the request and identified the caller. */
static bool mcp_gate(void *ctx, struct mo_req *rq,
                     char caller[MO_EP_CALLER_MAX])
{
    const struct server *s = ctx;
    struct mo_span sent = mo_http_get(rq->head, "Authorization");

    (void)snprintf(caller, MO_EP_CALLER_MAX, "%s", rq->who);
    (void)mo_span_cut(&sent, ' '); /* Bearer or DPoP */
    /* A person of a provider, with a token of that provider. */
    if (s->gateway && strchr(rq->who, ':') && strcmp(rq->door, "token") == 0)
        mo_server_link_subject(mo_gateway_setup_link(s->gateway), rq->who,
                               mo_span_trim(sent));
    return true;
}

static void on_mcp(void *ctx, struct mo_req *rq)
{
    mo_serve_mcp(ctx, rq);
}

/* Opens the approvals and their socket. */
static int open_approvals(struct server *s, struct mo_err *e)
{
    struct mo_err why;
    int rc = mo_approvals_open(s->loop, s->first, &s->approvals, e);

    if (rc < 0)
        return rc;
    s->api.approvals = s->approvals;
    if (s->worker.common) {
        struct mo_policy *p = mo_approvals_policy(s->approvals);

        mo_remembered_rules_share(mo_policy_remembered(p),
                                  &s->worker.common->rules);
        mo_policy_share_pins(p, &s->worker.common->pins);
    }
    if (mo_approvals_socket_open(s->loop, s->first->store.dir, &s->api,
                                 &s->approvals_socket, &why) < 0)
        mo_log_err(s->log, MO_WARN, "serve", &why,
                   "the `approvals` command cannot reach this server");
    return 0;
}

static int make_mcp(struct server *s, struct mo_err *e)
{
    const struct mo_route route = {MO_HTTP_OTHER, "/mcp", 0, on_mcp, s};
    struct mo_ep_http_opts o = {
        .gate = mcp_gate,
        .ctx = s,
        .has_cors = true,
        .body = (size_t)s->first->server.limits.body_bytes,
    };
    int rc = open_approvals(s, e);

    mo_serve_relay_opts(s, &o);
    if (rc == 0)
        mo_site_audit(s->site, mo_approvals_audit(s->approvals));
    if (rc == 0)
        rc = mo_gateway_setup_open(s->loop, s->first, s->approvals, NULL,
                                   &s->gateway, e);
    if (rc < 0)
        return rc;
    mo_gateway_home(mo_gateway_setup_gateway(s->gateway), &s->ep_home);
    mo_serve_share_gateway(s);
    mo_serve_subscriptions_share(s);
    s->mcp = mo_ep_http_new(mo_gateway_setup_endpoint(s->gateway), &o, e);
    if (!s->mcp)
        return e->code;
    s->api.gateway = s->gateway;
    rc = mo_site_route(s->site, &route);
    if (rc == 0)
        rc = mo_serve_views(s, &o);
    if (rc == 0)
        rc = mo_api_gateway_routes(s->site, &s->api);
    if (rc < 0)
        return mo_fail(e, rc, "too many routes");
    rc = mo_gateway_metrics_new(mo_site_prom(s->site), s->gateway, s->approvals,
                                &s->metrics, e);
    s->api_stats.gateway = rc == 0 ? mo_gateway_metrics_put : NULL;
    s->api_stats.gateway_ctx = s->metrics;
    return rc;
}

static void on_grant_ended(void *ctx, const char *id)
{
    struct server *s = ctx;

    if (s->site)
        mo_site_drop(s->site, NULL, NULL, id);
}

/* If this fails, personal tokens are answered with 503. */
static void open_grants(struct server *s)
{
    const struct mo_grants_opts o = {
        .loop = s->loop,
        .store = mo_runtime_store(s->runtime),
        .ended = on_grant_ended,
        .ctx = s,
        .changes = s->worker.common ? &s->worker.common->grants : NULL,
    };
    struct mo_gate gate;
    struct mo_err e;

    if (mo_grants_open(&o, &s->grants, &e) < 0)
        mo_log_err(s->log, MO_ERROR, "people", &e, "no personal tokens");
    gate = mo_serve_gate(s);
    mo_site_gate(s->site, &gate);
}

/* If this fails, rules and pins are those of this store.dir. */
static void share_rules(struct server *s)
{
    struct mo_err e;

    if (mo_policy_share(mo_approvals_policy(s->approvals),
                        mo_runtime_store(s->runtime), &e) < 0)
        mo_log_err(s->log, MO_ERROR, "rules", &e,
                   "not shared with other servers");
}

/* Somebody has connected to a server, or has disconnected, elsewhere. */
static void on_person(void *ctx, const char *server, const char *person,
                      bool on)
{
    struct server *s = ctx;

    if (s->gateway && !s->closing)
        mo_api_connected(&s->api, server, person, on);
    if (s->gateway && !s->closing && on)
        mo_gateway_learn(mo_gateway_setup_gateway(s->gateway), server, person);
}

static void share_connections(struct server *s)
{
    const struct mo_accounts_sharing w = {
        .store = mo_runtime_store(s->runtime),
        .instance = mo_runtime_instance(s->runtime),
        .told = on_person,
        .ctx = s,
    };

    if (mo_store_is_shared(w.store) && w.instance)
        mo_server_link_share(mo_gateway_setup_link(s->gateway), &w);
}

static void take_runtime(struct server *s, struct mo_runtime *h)
{
    s->opening = false;
    s->runtime = h;
    if (h && s->approvals && mo_runtime_sessions(h)) {
        mo_audit_store(mo_approvals_audit(s->approvals), mo_runtime_store(h));
        mo_runtime_approvals(h, s->approvals);
    }
    if (h && !s->closing)
        open_grants(s);
    if (h && s->approvals && !s->closing)
        share_rules(s);
    if (h && s->gateway && !s->closing)
        share_connections(s);
    if (s->gateway)
        mo_budget_await_store(mo_gateway_setup_budget(s->gateway), false);
    if (h && s->gateway)
        mo_budget_store(mo_gateway_setup_budget(s->gateway),
                        mo_runtime_store(h));
    if (!s->closing)
        mo_serve_keep_logins(s);
    if (s->closing)
        end_next(s);
}

static void on_store(void *ctx, struct mo_runtime *h, const struct mo_err *why)
{
    struct server *s = ctx;

    (void)why; /* on_runtime() has told it */
    take_runtime(s, h);
    if (s->closing)
        return;
    if (h)
        mo_serve_relay_open(s);
    else
        mo_serve_await_end(s);
}

/* There are no boxes: personal tokens, budgets and logins have the store, and
 * MCP clients may use any server of it. The audit log writes to its file only:
 * nobody could read the rows in the store, and they would add a fifth to the
 * cost of a call. */
static void open_store_alone(struct server *s)
{
    s->opening = mo_runtime_open(s->loop, s->first, MO_RUNTIME_INSTANCE,
                                 on_store, s, NULL) == 0;
    if (!s->opening)
        mo_serve_await_end(s);
}

static void on_runtime(void *ctx, struct mo_runtime *h,
                       const struct mo_err *why)
{
    struct server *s = ctx;
    struct mo_err e;

    if (!h && !s->closing) {
        no_agent(s, why);
        open_store_alone(s);
        return;
    }
    take_runtime(s, h);
    if (s->closing)
        return;
    if (mo_agent_setup_open(s->loop, s->first, h, s->approvals, s->gateway,
                            &s->agent, &e) < 0) {
        no_agent(s, &e);
        mo_serve_relay_open(s);
    } else {
        start_agent_api(s);
    }
    if (s->agent) {
        mo_log(s->log, MO_INFO, "serve", "ready for conversations");
        mo_serve_settled(s);
    }
    if (s->agent && s->config->now != s->first)
        mo_serve_apply_sessions(
            s); /* the configuration was reloaded meanwhile */
}

static void open_runtime(struct server *s)
{
    struct mo_err e;

    if (mo_runtime_open(s->loop, s->first, MO_RUNTIME_SESSIONS, on_runtime, s,
                        &e) == 0)
        s->opening = true;
    else
        no_agent(s, &e);
    if (!s->opening)
        mo_serve_await_end(s);
    if (s->gateway)
        mo_budget_await_store(mo_gateway_setup_budget(s->gateway), s->opening);
}

/* --- signals ------------------------------------------------------------- */

static void stop_serving(struct server *s)
{
    mo_timer_stop(s->loop, &s->drain);
    mo_log(s->log, MO_INFO, "serve",
           "stopping: waiting for running answers (at most %d s)",
           GRACE_MS / 1000);
    end_server(s);
}

static void on_drained(struct mo_timer *t)
{
    stop_serving(mo_container_of(t, struct server, drain));
}

/* A balancer learns from /readyz that we end, before anything is cut. */
static void begin_drain(struct server *s)
{
    int64_t seconds = s->first->server.drain_s;

    mo_log(s->log, MO_INFO, "serve",
           "draining: not ready, and stopping in %lld s (a second signal: now)",
           (long long)seconds);
    mo_site_drain(s->site);
    mo_timer_init(&s->drain, on_drained);
    mo_timer_start(s->loop, &s->drain, (uint64_t)seconds * 1000);
}

/* Of workers the parent tells it. */
static void tell_stopping(const struct server *s)
{
    if (!s->worker.number)
        mo_service_manager_stopping(mo_serve_stop_seconds(s->first));
}

static void on_hangup(struct server *s)
{
    if (!s->worker.number)
        mo_service_manager_reloading();
    mo_serve_reload(s, "signal");
    if (!s->worker.number)
        mo_service_manager_ready();
}

static void on_signal(void *ctx, int signo)
{
    struct server *s = ctx;

    if (signo == SIGHUP) {
        if (!s->closing)
            on_hangup(s);
        return;
    }
    if (s->closing) {
        mo_log(s->log, MO_WARN, "serve", "second signal: stopping at once");
        _Exit(MO_EXIT_FAIL);
    }
    tell_stopping(s);
    if (!mo_timer_on(&s->drain) && s->first->server.drain_s)
        begin_drain(s);
    else
        stop_serving(s);
}

/* --- start ---------------------------------------------------------------- */

static bool has_runtime(const struct mo_serve_opts *o)
{
    return !o->test_echo && !o->test_bare;
}

static int make_site(struct server *s, const struct mo_serve_opts *o,
                     struct mo_err *e)
{
    struct mo_siod_opts sio = {.ctx = NULL};
    struct mo_site_opts so = {
        .limits = mo_serve_limits(&s->first->server.limits),
        .gate = mo_serve_gate(s),
        .tls = s->tls,
        .frames = s->first->apps.origin,
        .strikes = s->worker.common ? &s->worker.common->strikes : NULL,
    };

    if (s->worker.common)
        so.crowd = (struct mo_crowd_place){.all = &s->worker.common->crowd,
                                           .me = s->worker.number - 1,
                                           .count = s->worker.count};

    if (o->test_echo) {
        mo_echo_opts(&sio, &s->echo_listener);
        sio.eio.ping_interval_ms = o->test_ping_ms;
        sio.eio.ping_timeout_ms = o->test_ping_ms * 10;
        sio.eio.max_queue = (size_t)s->first->server.limits.queue_bytes;
        so.sio = &sio;
    } else if (!o->test_bare) {
        mo_talk_opts(&sio, &s->talk);
        so.sio = &sio;
    }
    mo_serve_pass_on_opts(s, &sio.eio);
    s->site = mo_site_new(s->loop, &so, e);
    if (!s->site)
        return e->code;
    s->api.gate = s->talk.gate = mo_site_gate_now(s->site);
    s->api.grants = &s->grants;
    if (!o->test_echo && make_mcp(s, e) < 0)
        return e->code;
    return has_runtime(o) ? make_api(s, e) : 0;
}

static int watch_signals(struct server *s, struct mo_err *e)
{
    static const int which[] = {SIGHUP, SIGTERM, SIGINT};

    if (s->worker.number)
        return mo_worker_open(&s->worker, s->loop, on_signal, mo_serve_publish,
                              s, e);
    for (size_t i = 0; i < MO_COUNT(which); i++) {
        s->signals[i] = mo_signal_start(s->loop, which[i], on_signal, s, e);
        if (!s->signals[i])
            return e->code;
    }
    return 0;
}

/* Takes the socket that was bound already, or passed by the service manager;
 * *fd 0: none. */
static int take_listener(struct server *s, int *fd, struct mo_err *e)
{
    const struct mo_config_server *c = &s->first->server;
    int fds[MO_CONFIG_WORKERS_MAX] = {s->worker.listener};
    int rc = 0;

    if (!s->worker.number && !mo_own_user_listeners(s->user, c, fds))
        rc = mo_service_manager_socket(c, &fds[0], e);
    s->worker.listener = 0;
    *fd = fds[0];
    return rc;
}

static int start_server(struct server *s, const struct mo_serve_opts *o,
                        struct mo_err *e)
{
    const struct mo_config_server *c = &s->first->server;
    int rc, fd = 0;

    s->loop = mo_loop_new(s->log, e);
    if (!s->loop)
        return e->code;
    s->telemetry = mo_telemetry_open(s->loop, s->log, s->first);
    rc = mo_listen_auth_token(&s->auth, s->first, c->listen, s->log, e);
    if (rc == 0)
        rc = mo_serve_make_tls(s, e);
    if (rc == 0)
        rc = mo_serve_make_people(s, e);
    if (rc == 0)
        rc = make_site(s, o, e);
    if (rc == 0 && s->telemetry)
        rc = mo_telemetry_metrics(s->telemetry, mo_site_prom(s->site), e);
    if (rc == 0 && has_runtime(o))
        rc = mo_serve_cluster_open(s, e);
    if (rc == 0)
        rc = watch_signals(s, e);
    if (rc == 0)
        rc = take_listener(s, &fd, e);
    if (rc == 0)
        rc = mo_listen_auth_open(s->site, c, fd, e);
    if (rc == 0)
        mo_serve_pass_on_listen(s);
    return rc;
}

/* A worker's parent says that the server is ready. */
static void tell_ready(struct server *s, bool with_link)
{
    unsigned port = mo_httpd_port(mo_site_httpd(s->site));

    mo_serve_make_link(s);
    mo_serve_tell_people(s);
    if (s->worker.number)
        mo_log(s->log, MO_INFO, "serve", "worker %u started, pid %d",
               s->worker.number, (int)getpid());
    else
        mo_serve_print_ready(s->first, s->log, s->user, &s->auth, port,
                             with_link);
    if (!s->worker.number)
        mo_service_manager_ready();
    mo_worker_listens(&s->worker);
}

/* Frees what is left, also a site that never listened. */
static void free_server(struct server *s)
{
    if (s->site)
        end_now(s);
    if (s->telemetry) /* it failed before there was a site */
        mo_telemetry_close(mo_take_ptr(&s->telemetry), NULL, NULL);
    for (size_t i = 0; i < MO_COUNT(s->signals); i++)
        mo_signal_stop(s->signals[i]);
    mo_worker_close(&s->worker);
    mo_cluster_free(mo_take_ptr(&s->cluster));
    if (s->loop)
        mo_loop_run(s->loop); /* closes what an incomplete site left */
    mo_serve_subscriptions_free(s);
    mo_gateway_metrics_free(s->metrics);
    mo_tls_free(s->tls);
    mo_api_stats_fini(&s->api_stats);
    mo_loop_free(s->loop);
    mo_config_unref(s->first);
    mo_buf_wipe(&s->link);
    explicit_bzero(&s->auth, sizeof(s->auth));
}

static int serve(struct mo_config_holder *h, struct mo_log *log,
                 const struct mo_serve_opts *o, const struct mo_worker *w)
{
    struct server s = {.config = h,
                       .log = log,
                       .user = o->user,
                       .worker = *w,
                       .first = mo_config_ref(h->now),
                       .auth = {.no_auth = o->no_auth},
                       .link = {.max = MO_URL_MAX},
                       .crash = o->test_crash};
    struct mo_err e = {0};

    mo_list_init(&s.views);
    mo_list_init(&s.tunnels);
    mo_list_init(&s.awaiting);
    s.api.link = &s.link;
    s.api.token = s.auth.token;
    s.api.talk = &s.talk;
    s.api.loop = s.loop;
    s.api.config = h;
    mo_log_collect(log);
    if (start_server(&s, o, &e) < 0) {
        mo_log_err(log, MO_ERROR, "serve", &e, "cannot start");
        free_server(&s);
        return mo_serve_exit_code(&e);
    }
    tell_ready(&s, mo_serve_prints_link(o));
    if (has_runtime(o)) {
        mo_serve_await_begin(&s);
        open_runtime(&s);
    } else {
        mo_worker_settled(&s.worker);
    }
    mo_serve_watch(&s);
    mo_serve_metrics(&s);
    if (s.worker.again && mo_config_stale(h))
        mo_serve_reload(&s, "file"); /* the parent has that of the start */
    mo_loop_run(s.loop);
    free_server(&s);
    mo_log(log, MO_INFO, "serve", "stopped");
    return MO_EXIT_OK;
}

int mo_serve(struct mo_config_holder *h, struct mo_log *log,
             const struct mo_serve_opts *o)
{
    struct mo_worker w = {.number = 0};
    int code = MO_EXIT_OK;

    mo_serve_widen_limits();
    if (h->now->server.workers > 1 &&
        !mo_serve_start_workers(h, log, o, &w, &code))
        return code;
    return serve(h, log, o, &w);
}
