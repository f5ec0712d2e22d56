/* serve_views.c - the views of the gateway at /mcp/NAME. See serve_priv.h.
 *
 * Each view has an endpoint over HTTP of its own, so its sessions are not valid
 * elsewhere. A view that does not exist and one that the caller may not use are
 * answered alike. */
#include <stdio.h>

#include "app/serve_priv.h"
#include "base/mem.h"
#include "config/keys.h"

struct view_door {
    struct mo_list node;
    char name[MO_KEY_NAME_MAX + 1];
    struct mo_ep_http *http;
};

static void *open_door(void *ctx, const char *view, struct mo_endpoint *ep)
{
    struct server *s = ctx;
    struct view_door *d = mo_new(struct view_door);
    struct mo_ep_http_opts o = s->mcp_opts;
    struct mo_err e;

    if (!d)
        return NULL;
    (void)snprintf(d->name, sizeof(d->name), "%s", view);
    o.view = d->name;
    d->http = mo_ep_http_new(ep, &o, &e);
    if (!d->http) {
        mo_free(d);
        return NULL;
    }
    mo_list_push(&s->views, &d->node);
    return d;
}

static bool close_door(void *ctx, void *door)
{
    struct view_door *d = door;

    (void)ctx;
    mo_list_del(&d->node);
    mo_ep_http_free(d->http);
    mo_free(d);
    return true;
}

static struct view_door *find_door(const struct server *s, struct mo_span name)
{
    mo_list_each_entry (d, &s->views, struct view_door, node)
        if (mo_span_is(name, d->name))
            return d;
    return NULL;
}

static void handle_view(struct server *s, struct mo_req *rq)
{
    struct mo_span name = mo_req_segment(rq, 1);
    const struct mo_config_view *c = mo_view_config(s->config->now, name);
    struct view_door *d = find_door(s, name);

    if (c && d && mo_view_is_for(c, rq->caller, rq->role))
        mo_ep_http_handle(d->http, rq);
    else if (!s->mcp)
        mo_req_problem(rq, 503, "closing", "the server is shutting down");
    else
        mo_req_problem(rq, 404, "not_found", "nothing is served at this path");
}

struct mo_ep_http *mo_serve_door(struct server *s, const char *view)
{
    const struct view_door *d = find_door(s, mo_span_cstr(view));

    if (!view[0])
        return s->mcp;
    return d ? d->http : NULL;
}

void mo_serve_mcp(struct server *s, struct mo_req *rq)
{
    if (mo_serve_await(s, rq))
        return;
    if (!mo_span_is(rq->path, "/mcp"))
        handle_view(s, rq);
    else if (s->mcp)
        mo_ep_http_handle(s->mcp, rq);
    else
        mo_req_problem(rq, 503, "closing", "the server is shutting down");
}

static void on_view(void *ctx, struct mo_req *rq)
{
    mo_serve_mcp(ctx, rq);
}

int mo_serve_views(struct server *s, const struct mo_ep_http_opts *o)
{
    const struct mo_route route = {MO_HTTP_OTHER, "/mcp/{name}", 0, on_view, s};
    const struct mo_view_doors doors = {
        .open = open_door, .close = close_door, .ctx = s, .by_people = true};

    s->mcp_opts = *o;
    mo_view_table_doors(mo_gateway_setup_views(s->gateway), &doors);
    return mo_site_route(s->site, &route);
}

void mo_serve_views_drain(struct server *s)
{
    mo_list_each_entry (d, &s->views, struct view_door, node)
        mo_ep_http_drain(d->http);
}

void mo_serve_views_end(struct server *s)
{
    if (s->gateway)
        mo_view_table_doors(mo_gateway_setup_views(s->gateway), NULL);
    mo_list_each_entry_safe (d, &s->views, struct view_door, node)
        (void)close_door(s, d);
}
