#include "app/serve_priv.h"

static void end_mcp(struct server *s)
{
    s->api_route.ctx = NULL;
    if (s->mcp)
        mo_ep_http_free(mo_take_ptr(&s->mcp));
}

/* Last come, first gone: pages, changes of servers, conversations, the gateway
 * they use, sessions and boxes, the audit log. */
static void on_site_gone(void *ctx)
{
    struct server *s = ctx;

    s->site = NULL;
    mo_gateway_metrics_stop(s->gauges);
    end_mcp(s);
    mo_serve_end_next(s);
}

static void on_manage_gone(void *ctx)
{
    struct server *s = ctx;

    s->manage = NULL;
    mo_serve_end_next(s);
}

static void on_hatch_gone(void *ctx)
{
    struct server *s = ctx;

    s->hatch = NULL;
    mo_serve_end_next(s);
}

static void on_desk_gone(void *ctx)
{
    struct server *s = ctx;

    s->desk = NULL;
    mo_serve_end_next(s);
}

static void on_hub_gone(void *ctx)
{
    struct server *s = ctx;

    s->hub = NULL;
    mo_serve_end_next(s);
}

static void on_converse_gone(void *ctx)
{
    struct server *s = ctx;

    s->converse = NULL;
    mo_serve_end_next(s);
}

static void on_house_gone(void *ctx)
{
    struct server *s = ctx;

    s->house = NULL;
    mo_serve_end_next(s);
}

static void close_house(struct server *s)
{
    if (s->desk)
        mo_audit_store(mo_approvals_audit(s->desk), NULL);
    mo_runtime_close(s->house, on_house_gone, s);
}

void mo_serve_end_next(struct server *s)
{
    if (s->site)
        return; /* it has been told, or will be */
    if (s->manage)
        mo_manage_close(s->manage, on_manage_gone, s);
    else if (s->hatch)
        mo_approvals_socket_close(s->hatch, on_hatch_gone, s);
    else if (s->converse)
        mo_agent_setup_close(s->converse, on_converse_gone, s);
    else if (s->hub)
        mo_gateway_setup_close(s->hub, on_hub_gone, s);
    else if (s->house)
        close_house(s);
    else if (s->opening)
        return;
    else if (s->desk)
        mo_approvals_close(s->desk, on_desk_gone, s);
    else
        mo_loop_stop(s->loop);
}

void mo_serve_end(struct server *s)
{
    s->closing = true;
    if (s->mcp) /* news would go on as long as they are let */
        mo_ep_http_drain(s->mcp);
    mo_timer_stop(s->loop, &s->watch);
    mo_site_close(s->site, MO_SERVE_GRACE_MS, on_site_gone, s);
}

void mo_serve_end_now(struct server *s)
{
    s->closing = true;
    end_mcp(s);
    mo_site_close(s->site, 0, on_site_gone, s);
    mo_loop_run(s->loop);
}
