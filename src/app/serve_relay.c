/* serve_relay.c - requests to and from other processes of the store. See
 * serve_priv.h.
 *
 * Others pass on requests for MCP sessions and pending calls that are here.
 * A request that they have admitted is served like a request of the site. */
#include "app/serve_priv.h"

static void on_relayed(void *ctx, struct mo_req *rq)
{
    struct server *s = ctx;

    if (mo_span_is(rq->path, "/mcp") ||
        mo_span_starts(rq->path, MO_SPAN("/mcp/")))
        mo_serve_mcp(s, rq);
    else
        mo_api_approvals_handle(&s->api, rq);
}

static bool on_elsewhere(void *ctx, const char *view, struct mo_req *rq,
                         struct mo_span id, struct mo_span body)
{
    return mo_mcp_home_elsewhere(((struct server *)ctx)->home, view, rq, id,
                                 body);
}

static void on_ended(void *ctx, struct mo_req *rq, struct mo_span id)
{
    mo_mcp_home_ended(((struct server *)ctx)->home, rq, id);
}

void mo_serve_relay_opts(struct server *s, struct mo_ep_http_opts *o)
{
    o->home = &s->ep_home;
    o->elsewhere = on_elsewhere;
    o->ended = on_ended;
}

static struct mo_ep_http *door_of(void *ctx, const char *view)
{
    return mo_serve_door(ctx, view);
}

static int open_home(struct server *s, struct mo_err *e)
{
    const struct mo_mcp_home_opts o = {
        .loop = s->loop,
        .store = mo_runtime_store(s->runtime),
        .peers = mo_agent_setup_peers(s->agent),
        .relay = s->relay,
        .instance = mo_runtime_instance(s->runtime),
        .ep = &s->ep_home,
        .door = door_of,
        .ctx = s,
    };

    return mo_mcp_home_open(&o, &s->home, e);
}

void mo_serve_relay_open(struct server *s)
{
    const struct mo_relay_opts o = {
        .dir = mo_runtime_dir(s->runtime),
        .instance = mo_runtime_instance(s->runtime),
        .limits = mo_serve_limits(&s->first->server.limits),
        .handler = on_relayed,
        .ctx = s,
        .people = &s->people,
    };
    struct mo_err e;
    int rc = mo_relay_open(s->loop, &o, &s->relay, &e);

    s->relaying = rc == 0;
    s->api.relay = s->relay;
    if (rc == 0)
        rc = open_home(s, &e);
    if (rc < 0)
        mo_log_err(s->log, MO_WARN, "serve", &e,
                   "other servers cannot pass requests on to this one");
}

void mo_serve_relay_stop(struct server *s, uint64_t grace_ms,
                         void (*drained)(void *ctx))
{
    if (s->relay)
        mo_relay_stop(s->relay, grace_ms, drained, s);
}

bool mo_serve_relay_close(struct server *s, void (*gone)(void *ctx))
{
    s->api.relay = NULL;
    if (s->home)
        mo_mcp_home_close(mo_take_ptr(&s->home), gone, s);
    else if (s->relay)
        mo_relay_close(mo_take_ptr(&s->relay), gone, s);
    else
        return false;
    return true;
}
