/* serve_priv.h - one running server, for the files that start, run and end
 * it: serve.c and serve_end.c. */
#ifndef MO_APP_SERVE_PRIV_H
#define MO_APP_SERVE_PRIV_H

#include "app/agent_setup.h"
#include "app/listen_auth.h"
#include "app/route_api.h"
#include "mcp/server/ep_http.h"
#include "servers/gateway_setup.h"
#include "servers/manage.h"
#include "web/api_stats.h"
#include "web/approvals_socket.h"
#include "web/gateway_metrics.h"
#include "web/talk.h"

#define MO_SERVE_GRACE_MS 10000 /* for running answers at the end */

struct server {
    struct mo_config_holder *config;
    const struct mo_config *first; /* what it was started with */
    struct mo_log *log;
    struct mo_loop *loop;
    struct mo_site *site;
    struct mo_siod *siod;
    struct mo_tls_ctx *tls;
    struct mo_signal *signals[3];
    struct mo_timer watch;
    struct mo_listen_auth door;
    struct mo_runtime *house;
    struct mo_agent_setup *converse;
    struct mo_talk talk;
    struct mo_api api;
    struct mo_api_rules api_rules;
    struct mo_api_stats api_stats;
    struct mo_router router;
    struct mo_api_route api_route;
    struct mo_approvals *desk;
    struct mo_api_approvals api_approvals;
    struct mo_approvals_socket *hatch;
    struct mo_gateway_metrics *gauges;
    struct mo_gateway_setup *hub; /* the gateway, at /mcp */
    struct mo_manage *manage;
    struct mo_ep_http *mcp; /* NULL: not any more */
    bool opening;           /* the house is on its way */
    bool closing;
    const char *crash; /* mo_serve_opts.test_crash */
    uint64_t crash_seen;
};

/* Let running answers end, then everything else, then the loop. */
void mo_serve_end(struct server *s);
/* The next thing that is to go, when another has gone. */
void mo_serve_end_next(struct server *s);
/* The site goes at once: it never listened, or has nobody left. */
void mo_serve_end_now(struct server *s);

#endif
