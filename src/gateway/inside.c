/* inside.c - see inside.h. What execute would run is said by
 * gateway/router/meta_tools.c. */
#include "gateway/inside.h"

#include "gateway/call/result_limit.h"
#include "gateway/call/rewrite.h"
#include "gateway/router/meta_tools.h"
#include "gateway/upstream/server_overrides.h"

/* --- lists that are read now --------------------------------------------- */

static struct server_slot *slot_of(const struct mo_gw_read *r)
{
    size_t i = mo_gateway_server(r->g, mo_span_cstr(r->server));

    return i < r->g->n ? r->g->v[i] : NULL;
}

static bool is_pending(const struct mo_gw_read *r)
{
    const struct server_slot *s = r->server ? slot_of(r) : NULL;

    if (r->server)
        return s && mo_catalog_refresh_reading(s);
    return r->again ? mo_catalog_refresh_busy(r->g)
                    : mo_catalog_refresh_pending(r->g);
}

static void finish(struct mo_gw_read *r)
{
    mo_gateway_unread(r);
    r->g->listed[MO_EP_CH_TOOLS] = true; /* what comes now is news */
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
    s = r->server ? slot_of(r) : NULL;
    if (s)
        mo_catalog_refresh_slot(s, mo_span_cstr(who), r->caps);
    else if (!r->server)
        (void)mo_catalog_refresh_wanted(g, mo_span_cstr(who), r->caps);
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

bool mo_gw_inside_name(struct mo_span *name)
{
    static const struct mo_span ours = {MO_GW_OURS, sizeof(MO_GW_OURS) - 1};

    if (name->n < ours.n || memcmp(name->p, ours.p, ours.n) != 0)
        return false;
    *name = mo_span_skip(*name, ours.n);
    return true;
}

/* --- what there is ------------------------------------------------------- */

size_t mo_gateway_server(const struct mo_gateway *g, struct mo_span name)
{
    size_t i = 0;

    while (i < g->n && !mo_span_is(name, mo_upstream_server(g->v[i]->up)->name))
        i++;
    return i;
}

struct mo_conn *mo_gateway_conn(const struct mo_gateway *g, size_t i)
{
    mo_list_each (k, &g->v[i]->children, const struct gw_child, node) {
        if (mo_child_conn(k->child))
            return k->conn;
    }
    return NULL;
}

const struct mo_cat_item *mo_gateway_tool(const struct mo_gateway *g,
                                          struct mo_span server,
                                          struct mo_span tool)
{
    size_t no = mo_gateway_server(g, server);
    size_t n = no < g->n ? mo_catalog_count(g->cat, MO_CAT_TOOLS) : 0;

    for (size_t i = 0; i < n; i++) {
        const struct mo_cat_item *it = mo_catalog_at(g->cat, MO_CAT_TOOLS, i);

        if (it->server == no && mo_span_eq(it->own, tool))
            return it;
    }
    return NULL;
}

bool mo_gateway_stand_in(const struct mo_gateway *g, struct mo_span server,
                         struct mo_span tool, unsigned i, struct mo_span *to,
                         struct mo_span *own)
{
    size_t no = mo_gateway_server(g, server);

    return no < g->n &&
           mo_overrides_fallback(g->v[no]->overrides, tool, i, to, own);
}

bool mo_gateway_is_large(const struct mo_gateway *g)
{
    return mo_catalog_count(g->cat, MO_CAT_TOOLS) > mo_meta_tools_few(g);
}

int mo_gateway_ours(const struct mo_gateway *g, bool four, struct mo_buf *out)
{
    struct mo_span list =
        four ? mo_meta_tools_definitions() : MO_SPAN("{\"tools\":[]}");

    return mo_result_limit_is_on(g) ? mo_result_limit_list(list, out)
                                    : mo_buf_span(out, list);
}
