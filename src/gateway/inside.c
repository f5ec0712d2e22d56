#include "gateway/inside.h"

#include "gateway/call/rewrite.h"
#include "gateway/gw_priv.h"
#include "gateway/router/meta_tools.h"
#include "gateway/router/router_index.h"
#include "gateway/upstream/server_overrides.h"

/* --- lists that are read now --------------------------------------------- */

static bool is_pending(const struct mo_gw_read *r)
{
    const struct server_slot *s =
        r->server ? mo_gw_find_slot(r->g, mo_span_cstr(r->server)) : NULL;

    if (r->server)
        return s && mo_catalog_refresh_reading(s);
    return r->again ? mo_gateway_busy(r->g)
                    : mo_catalog_refresh_pending(&r->g->whole);
}

static void finish(struct mo_gw_read *r)
{
    mo_gateway_unread(r);
    r->g->whole.listed[MO_EP_CH_TOOLS] = true; /* what comes now is news */
    if (mo_catalog_count(r->g->cat, MO_CAT_SKILLS) > 0)
        r->g->whole.listed[MO_EP_CH_RESOURCES] = true;
    r->done(r);
}

static void on_later(struct mo_later *d)
{
    struct mo_gw_read *r = mo_container_of(d, struct mo_gw_read, later);

    if (!is_pending(r))
        finish(r);
}

static void on_late(struct mo_timer *t)
{
    struct mo_gw_read *r = mo_container_of(t, struct mo_gw_read, timer);

    r->late = is_pending(r);
    finish(r);
}

void mo_gateway_read(struct mo_gateway *g, struct mo_gw_read *r)
{
    char who[MO_GW_WHO_MAX];
    struct server_slot *s;

    r->g = g;
    mo_timer_init(&r->timer, on_late);
    mo_later_init(&r->later, on_later);
    mo_list_push(&g->reads, &r->node);
    mo_timer_start(g->loop, &r->timer, r->ms);
    mo_rewrite_who(r->peer, MO_SPAN("inside"), who);
    s = r->server ? mo_gw_find_slot(r->g, mo_span_cstr(r->server)) : NULL;
    if (s)
        mo_catalog_refresh_slot(s, mo_span_cstr(who), r->person, r->caps);
    else if (!r->server)
        (void)mo_catalog_refresh_wanted(&g->whole, mo_span_cstr(who), r->person,
                                        r->caps);
    if (!r->server && r->again)
        mo_catalog_refresh_running(g);
    if (!is_pending(r))
        mo_loop_defer(g->loop, &r->later);
}

void mo_gateway_unread(struct mo_gw_read *r)
{
    mo_list_del(&r->node);
    mo_timer_stop(r->g->loop, &r->timer);
    mo_later_cancel(&r->later);
}

void mo_gw_inside_settled(struct mo_gateway *g)
{
    mo_list_each (n, &g->reads)
        mo_loop_defer(g->loop,
                      &mo_container_of(n, struct mo_gw_read, node)->later);
}

/* --- what there is ------------------------------------------------------- */

size_t mo_gateway_server(const struct mo_gateway *g, struct mo_span name)
{
    const struct server_slot *s = mo_gw_find_slot(g, name);

    return s ? s->no : g->n;
}

struct mo_conn *mo_gateway_conn(const struct mo_gateway *g, size_t i)
{
    mo_list_each_entry (k, &g->v[i]->children, const struct gw_child, node) {
        if (mo_child_conn(k->child))
            return k->conn;
    }
    return NULL;
}

const struct mo_cat_item *mo_gateway_tool(const struct mo_gateway *g,
                                          struct mo_span server,
                                          struct mo_span tool)
{
    const struct server_slot *s = mo_gw_find_slot(g, server);

    return s ? mo_catalog_tool(g->cat, s->no, tool) : NULL;
}

bool mo_gateway_stand_in(const struct mo_gateway *g, struct mo_span server,
                         struct mo_span tool, unsigned i, struct mo_span *to,
                         struct mo_span *own)
{
    const struct server_slot *s = mo_gw_find_slot(g, server);

    return s && mo_overrides_fallback(s->overrides, tool, i, to, own);
}

const struct mo_vectors *mo_gateway_vectors(struct mo_gateway *g)
{
    return mo_router_index_vectors(g->router_index);
}

int mo_gateway_ours(const struct mo_gateway *g, bool four, struct mo_buf *out)
{
    struct mo_span list =
        four ? mo_meta_tools_definitions() : MO_SPAN("{\"tools\":[]}");

    return mo_result_limit_is_on(&g->whole) ? mo_result_limit_list(list, out)
                                            : mo_buf_span(out, list);
}
