#include "app/serve_priv.h"

static void end_mcp(struct server *s)
{
    s->api.gateway = NULL;
    if (s->mcp)
        mo_ep_http_free(mo_take_ptr(&s->mcp));
}

/* Closes in reverse order: site, changes of servers, conversations, gateway,
 * sessions and boxes, audit log. */
static void on_site_gone(void *ctx)
{
    struct server *s = ctx;

    s->site = NULL;
    mo_gateway_metrics_stop(s->metrics);
    end_mcp(s);
    mo_serve_end_next(s);
}

static void on_part_gone(void *ctx)
{
    struct server *s = ctx;

    s->ending_part = false;
    mo_serve_end_next(s);
}

static void close_runtime(struct server *s)
{
    if (s->approvals)
        mo_audit_store(mo_approvals_audit(s->approvals), NULL);
    mo_runtime_close(mo_take_ptr(&s->runtime), on_part_gone, s);
}

void mo_serve_end_next(struct server *s)
{
    /* The site is closing, or will be closed first; or a part is closing. */
    if (s->site || s->ending_part)
        return;
    s->ending_part = true;
    if (s->manage)
        mo_manage_close(mo_take_ptr(&s->manage), on_part_gone, s);
    else if (s->approvals_socket)
        mo_approvals_socket_close(mo_take_ptr(&s->approvals_socket),
                                  on_part_gone, s);
    else if (s->agent)
        mo_agent_setup_close(mo_take_ptr(&s->agent), on_part_gone, s);
    else if (s->gateway)
        mo_gateway_setup_close(mo_take_ptr(&s->gateway), on_part_gone, s);
    else if (s->runtime)
        close_runtime(s);
    else if (s->opening)
        s->ending_part = false; /* on_runtime() goes on */
    else if (s->approvals)
        mo_approvals_close(mo_take_ptr(&s->approvals), on_part_gone, s);
    else
        mo_loop_stop(s->loop);
}

void mo_serve_end(struct server *s)
{
    s->closing = true;
    if (s->mcp) /* open event streams would delay the end */
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
