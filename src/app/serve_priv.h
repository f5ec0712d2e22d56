/* serve_priv.h - one running server; shared by serve.c and serve_end.c. */
#ifndef MO_APP_SERVE_PRIV_H
#define MO_APP_SERVE_PRIV_H

#include "app/agent_setup.h"
#include "app/listen_auth.h"
#include "mcp/server/ep_http.h"
#include "web/api_stats.h"
#include "web/approvals_socket.h"
#include "web/gateway_metrics.h"

#define MO_SERVE_GRACE_MS 10000 /* time for running answers at the end */

struct server {
    struct mo_config_holder *config;
    const struct mo_config *first; /* configuration at the start */
    struct mo_log *log;
    struct mo_loop *loop;
    struct mo_site *site;
    struct mo_sock *echo_listener; /* see web/echo.h */
    struct mo_tls_ctx *tls;
    struct mo_signal *signals[3];
    struct mo_timer watch;
    struct mo_listen_auth auth;
    struct mo_buf link; /* signs a browser in; contains the token */
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
    struct mo_ep_http *mcp; /* NULL: closed */
    bool opening;           /* the runtime is being opened */
    bool closing;
    bool ending_part;  /* one part is being closed */
    const char *crash; /* mo_serve_opts.test_crash */
    uint64_t crash_seen;
};

/* Waits for running answers, then closes everything and ends the loop. */
void mo_serve_end(struct server *s);
/* Closes the next part; called when one is gone. */
void mo_serve_end_next(struct server *s);
/* Closes the site at once: it never listened, or has no clients left. */
void mo_serve_end_now(struct server *s);

#endif
