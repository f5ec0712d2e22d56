/* serve_priv.h - shared by the files of the server. See serve.h. */
#ifndef MO_APP_SERVE_PRIV_H
#define MO_APP_SERVE_PRIV_H

#include "app/agent_setup.h"
#include "app/listen_auth.h"
#include "app/serve.h"
#include "app/telemetry.h"
#include "app/workers.h"
#include "mcp/server/ep_http.h"
#include "web/api_stats.h"
#include "web/approvals_socket.h"
#include "web/gateway_metrics.h"
#include "web/mcp_home.h"

struct server {
    struct mo_config_holder *config;
    const struct mo_config *first; /* configuration at the start */
    struct mo_log *log;
    struct mo_own_user *user;
    struct mo_loop *loop;
    struct mo_telemetry *telemetry; /* NULL: it is off */
    struct mo_site *site;
    struct mo_sock *echo_listener; /* see web/echo.h */
    struct mo_tls_ctx *tls;
    struct mo_signal *signals[3];
    struct mo_worker worker;
    struct mo_timer watch;
    struct mo_timer drain; /* running: SIGTERM came, connections end later */
    struct mo_listen_auth auth;
    struct mo_people *people; /* NULL: no provider was ever configured */
    struct mo_grants *grants; /* NULL: the store is not open */
    struct mo_buf link;       /* signs a browser in; contains the token */
    struct mo_runtime *runtime;
    struct mo_agent_setup *agent;
    struct mo_talk talk;
    struct mo_api api;
    struct mo_api_stats api_stats;
    struct mo_approvals *approvals;
    struct mo_approvals_socket *approvals_socket;
    struct mo_gateway_metrics *metrics;
    struct mo_gateway_setup *gateway; /* served at /mcp */
    struct mo_manage *manage;
    struct mo_by_name *by_name;
    struct mo_ep_http *mcp; /* NULL: closed */
    struct mo_ep_http_opts mcp_opts;
    struct mo_ep_home ep_home;  /* name and key of session ids */
    struct mo_relay *relay;     /* to other processes of the store; or NULL */
    struct mo_cluster *cluster; /* servers on other machines; or NULL */
    struct mo_prom_series *cluster_counts[MO_CLUSTER_COUNTS];
    uint64_t cluster_seen[MO_CLUSTER_COUNTS]; /* counted so far */
    struct mo_mcp_home *home;    /* NULL: sessions are found here only */
    struct mo_peers *peers;      /* NULL: those of the agent, or none */
    bool relaying;               /* requests of others may be running */
    struct mo_list awaiting;     /* requests; serve_await.c */
    struct mo_timer await_timer; /* running: they wait */
    bool settled;
    struct mo_serve_subscriptions *subscriptions; /* or NULL: not shared */
    struct mo_list views;                         /* of struct view_door */
    struct mo_list tunnels;                       /* of serve_pass_on.c */
    struct mo_timer tunnels_end;
    bool opening; /* the runtime is being opened */
    bool closing;
    bool helper_gone;  /* and it was logged */
    bool ending_part;  /* one part is being closed */
    const char *crash; /* mo_serve_opts.test_crash */
    uint64_t crash_seen;
};

/* --- serve_start.c: before it serves ------------------------------------- */

int mo_serve_exit_code(const struct mo_err *e);
#define MO_SERVE_GRACE_MS 10000 /* time for running answers at the end */
/* The longest time between SIGTERM and the end, with some to spare. */
int64_t mo_serve_stop_seconds(const struct mo_config *c);
/* Each client needs a descriptor; the usual soft limit is 1024. */
void mo_serve_widen_limits(void);
bool mo_serve_prints_link(const struct mo_serve_opts *o);
/* Prints the address, and logs what the operator should know. */
void mo_serve_print_ready(const struct mo_config *c, struct mo_log *log,
                          const struct mo_own_user *user,
                          const struct mo_listen_auth *auth, unsigned port,
                          bool with_link);
/* Returns true in every worker, with *w; false in their parent, at the end. */
bool mo_serve_start_workers(struct mo_config_holder *h, struct mo_log *log,
                            const struct mo_serve_opts *o, struct mo_worker *w,
                            int *code);

/* --- serve_metrics.c: /metrics of all workers ---------------------------- */

void mo_serve_metrics(struct server *s);
void mo_serve_publish(void *ctx); /* ctx: struct server */

/* --- serve_pass_on.c: requests for other workers -------------------------- */

/* Requests for sockets of other workers and servers go there. */
void mo_serve_pass_on_opts(struct server *s, struct mo_eiod_opts *o);
/* Requests about conversations, sign-ins and questions of other workers go
 * there, and they are told who has connected to a server. */
void mo_serve_pass_on_api(struct server *s);    /* when it has an agent */
void mo_serve_pass_on_listen(struct server *s); /* after the port */
/* Budgets, lists of servers and what the router has learnt are those of all
 * workers. */
void mo_serve_share_gateway(struct server *s);
void mo_serve_catch_up(void *ctx); /* before a request; ctx: struct server */
/* Websockets to other workers end with those; after the grace they are closed
 * here. mo_serve_end_clients() when there are none left. */
void mo_serve_pass_on_stop(struct server *s, uint64_t grace_ms);
bool mo_serve_pass_on_stopped(const struct server *s);
void mo_serve_end_clients(struct server *s); /* serve.c */
void mo_serve_unknown_sid(struct mo_req *rq);

/* --- serve_polls.c: polling clients of other servers ---------------------- */

/* The name of this process; NULL: others cannot reach it. ctx: struct server */
const char *mo_serve_poll_home(void *ctx);
/* Passes a request to the process of that name. False: it cannot be. */
bool mo_serve_poll_pass(struct server *s, struct mo_req *rq,
                        struct mo_span home);

/* --- serve_views.c: /mcp/NAME -------------------------------------------- */

/* Serves the views of the gateway. */
int mo_serve_views(struct server *s, const struct mo_ep_http_opts *o);
void mo_serve_views_drain(struct server *s);
void mo_serve_views_end(struct server *s);
/* A request for /mcp or /mcp/NAME that the gate has admitted. */
void mo_serve_mcp(struct server *s, struct mo_req *rq);
/* The endpoint of a view that exists; "": of none. Or NULL. */
struct mo_ep_http *mo_serve_door(struct server *s, const char *view);

/* --- serve_await.c: requests before there is a key ------------------------ */

/* From now on they wait, if this is a worker; until mo_serve_await_end(). */
void mo_serve_await_begin(struct server *s);
/* True: the request is kept, and served later by mo_serve_mcp(). */
bool mo_serve_await(struct server *s, struct mo_req *rq);
void mo_serve_await_end(struct server *s); /* again is fine */
/* Conversations are open, or never will be. The other workers are told that
 * this one is ready when it has the key, too. */
void mo_serve_settled(struct server *s);

/* --- serve_subscriptions.c: resources that clients watch ------------------ */

/* When it has a gateway. Then only: */
void mo_serve_subscriptions_share(struct server *s);
/* Reads what other workers have written. Cheap if that is nothing. */
void mo_serve_subscriptions_catch_up(struct server *s);
/* Another worker has told this. False: it is about something else. */
bool mo_serve_subscriptions_told(struct server *s, struct mo_span text);
/* Another process has sent this. The same. */
bool mo_serve_subscriptions_relayed(struct server *s, struct mo_req *rq);
void mo_serve_subscriptions_end(struct server *s);
void mo_serve_subscriptions_free(struct server *s); /* after the loop */

/* --- serve_relay.c: other processes of the store -------------------------- */

/* Binds the port for other machines, if cluster.listen is set, and counts in
 * /metrics what comes there. */
int mo_serve_cluster_open(struct server *s, struct mo_err *e);

/* Sets what leads to them. Without them sessions are found here only. */
void mo_serve_relay_opts(struct server *s, struct mo_ep_http_opts *o);
/* When the conversations are open, or it is known that there are none. */
void mo_serve_relay_open(struct server *s);
const char *mo_serve_relay_why(void *ctx); /* for mo_site_ready() */
/* No more requests of others; drained(s) once, later, if there was a relay. */
void mo_serve_relay_stop(struct server *s, uint64_t grace_ms,
                         void (*drained)(void *ctx));
/* Closes the next part; false: there is none. */
bool mo_serve_relay_close(struct server *s, void (*gone)(void *ctx));

/* --- serve_config.c: configuration while running ------------------------- */

/* Borrows from the current configuration. */
struct mo_gate mo_serve_gate(const struct server *s);
struct mo_httpd_limits mo_serve_limits(const struct mo_config_limits *c);
/* Reads the certificate and its key, if server.tls is set. */
int mo_serve_make_tls(struct server *s, struct mo_err *e);
/* Opens or reloads the people, if a provider is configured. */
int mo_serve_make_people(struct server *s, struct mo_err *e);
/* Gives the logins the store, as soon as both are there. */
void mo_serve_keep_logins(struct server *s);
/* Tells them the address, which is known when the server listens. */
void mo_serve_tell_people(struct server *s);
/* Makes the link for `open`, which asks for it over the approvals socket. */
void mo_serve_make_link(struct server *s);
/* by: what caused it, for the audit log: "signal", "file" (it has changed),
 * "api" (this server has changed it). */
void mo_serve_reload(struct server *s, const char *by);
/* Applies the configuration to sessions and conversations, if they are open. */
void mo_serve_apply_sessions(struct server *s);
/* Checks from now on whether a file of the configuration has changed. */
void mo_serve_watch(struct server *s);

#endif
