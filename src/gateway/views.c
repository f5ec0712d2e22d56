/* views.c - the views of the gateway; see gateway.h. */
#include <stdio.h>

#include "gateway/call/call_approval.h"
#include "gateway/call/forwarded_call.h"
#include "gateway/catalog/filter.h"
#include "gateway/gw_priv.h"
#include "gateway/router/meta_tools.h"
#include "gateway/router/router_index.h"

#define URI_TEXT_MAX ((size_t)4 * 1024 * 1024)

/* --- changed lists ------------------------------------------------------- */

void mo_gw_views_stale(struct mo_gateway *g)
{
    mo_router_index_stale(g->router_index);
    mo_router_index_stale(g->query_index);
    mo_router_index_stale(g->whole.skill_index);
    mo_list_each_entry (v, &g->views, struct mo_gw_view, node) {
        mo_router_index_stale(v->router_index);
        mo_router_index_stale(v->skill_index);
    }
}

/* Of the lists that one notification is about. */
static uint64_t sum_lists(const struct mo_gw_view *v, enum mo_ep_what what)
{
    uint64_t sum = 0;

    for (enum mo_cat_kind k = 0; k < MO_CAT_KINDS; k++)
        if (mo_gw_change_of(k) == what)
            sum = sum * 31 + mo_catalog_part_sum(v->part, k);
    return what == MO_EP_CH_TOOLS && mo_meta_tools_is_on(v) ? 1 : sum;
}

void mo_gw_view_listed(struct mo_gw_view *v, enum mo_ep_what what)
{
    if (v->part && !v->listed[what])
        v->sums[what] = sum_lists(v, what);
    v->listed[what] = true;
}

static void tell_clients(struct mo_gw_view *v, enum mo_ep_what what)
{
    void (*tell)(struct mo_endpoint * ep, enum mo_ep_what what) =
        v->listed[what] ? mo_endpoint_changed : mo_endpoint_changed_listens;

    v->listed[what] = v->untold[what] = false;
    mo_list_each_entry_safe (x, &v->g->eps, struct gw_ep, node)
        if (x->view == v)
            tell(x->ep, what);
}

static void on_retell(struct mo_timer *t)
{
    struct mo_gw_view *v = mo_container_of(t, struct mo_gw_view, retell);

    for (size_t i = 0; i < MO_COUNT(v->untold); i++)
        if (v->untold[i])
            tell_clients(v, (enum mo_ep_what)i);
}

void mo_gw_view_init(struct mo_gw_view *v)
{
    mo_timer_init(&v->retell, on_retell);
}

/* A view does not tell of changes outside of it. */
void mo_gw_view_changed(struct mo_gw_view *v, enum mo_ep_what what, bool sure)
{
    uint64_t sum = v->part ? sum_lists(v, what) : 0;

    if (!sure && v->part && sum == v->sums[what])
        return;
    v->sums[what] = sum;
    if (v->listed[what]) {
        tell_clients(v, what);
        return;
    }
    v->untold[what] = true;
    if (!mo_timer_on(&v->retell))
        mo_timer_start(v->g->loop, &v->retell, GW_RETELL_MS);
}

/* --- subscriptions in a view ---------------------------------------------
 *
 * A view may resolve a URI differently from the whole gateway, and not at all
 * if it does not show its server. So it keeps its own URIs, each with the URI
 * of the whole gateway that it stands for as long as the view shows it. */

struct view_watch {
    struct mo_buf whole; /* empty: the view does not show it */
};

static void view_watch_free(struct view_watch *x)
{
    mo_buf_fini(&x->whole);
    mo_free(x);
}

/* Writes the URI of the whole gateway, or nothing. */
static void resolve_in_view(const struct mo_gw_view *v, struct mo_span uri,
                            struct mo_buf *out)
{
    struct mo_span own;
    unsigned no;

    mo_buf_init(out, URI_TEXT_MAX);
    if (mo_catalog_resource(mo_gw_cat(v), uri, &no, &own) == 0 &&
        mo_catalog_expose(v->g->cat, no, own, out) < 0)
        mo_buf_reset(out);
}

static void resubscribe_in_view(const struct mo_gw_view *v, struct mo_span uri,
                                struct view_watch *x, bool on)
{
    struct mo_buf now = {.max = 0}, was = x->whole;

    if (on)
        resolve_in_view(v, uri, &now);
    if (mo_span_eq(mo_buf_view(&now), mo_buf_view(&was))) {
        mo_buf_fini(&now);
        return;
    }
    x->whole = now;
    if (now.len)
        mo_gw_watch_whole(v->g, mo_buf_view(&now), true);
    if (was.len)
        mo_gw_watch_whole(v->g, mo_buf_view(&was), false);
    mo_buf_fini(&was);
}

static void watch_in_view(struct mo_gw_view *v, struct mo_span uri, bool on)
{
    struct view_watch *x = mo_map_get(&v->watched, uri);

    if (on && !x) {
        x = mo_new(struct view_watch);
        if (x && mo_map_put(&v->watched, uri, x, NULL) < 0)
            mo_free(mo_take_ptr(&x));
    }
    if (x)
        resubscribe_in_view(v, uri, x, on);
    if (x && !on) {
        (void)mo_map_del(&v->watched, uri);
        view_watch_free(x);
    }
}

void mo_gw_watch_view(struct mo_gw_view *v)
{
    mo_map_each (en, &v->watched)
        resubscribe_in_view(v, mo_map_key(en), en->value, true);
}

static void drop_watches(struct mo_gw_view *v)
{
    mo_map_each (en, &v->watched) {
        resubscribe_in_view(v, mo_map_key(en), en->value, false);
        view_watch_free(en->value);
    }
    mo_map_fini(&v->watched);
}

void mo_gw_watch_uri(void *ctx, struct mo_span uri, bool on)
{
    struct mo_gw_view *v = ctx;

    if (v->part)
        watch_in_view(v, uri, on);
    else
        mo_gw_watch_whole(v->g, uri, on);
}

/* --- life ---------------------------------------------------------------- */

struct mo_gw_view *mo_gateway_view_new(struct mo_gateway *g,
                                       const struct mo_config_view *c,
                                       struct mo_err *e)
{
    struct mo_gw_view *v = mo_new(struct mo_gw_view);

    if (!v)
        return mo_null(mo_fail(e, MO_ENOMEM, "view %s", c->name));
    v->g = g;
    mo_gw_view_init(v);
    (void)snprintf(v->name, sizeof(v->name), "%s", c->name);
    v->part = mo_catalog_part_new(g->cat, mo_filter_new(c));
    v->expose = c->expose;
    mo_map_init(&v->watched, GW_WATCHED_MAX);
    if (!v->part) {
        mo_free(v);
        return mo_null(mo_fail(e, MO_ENOMEM, "view %s", c->name));
    }
    mo_list_push(&g->views, &v->node);
    return v;
}

int mo_gateway_view_change(struct mo_gw_view *v, const struct mo_config_view *c,
                           struct mo_err *e)
{
    struct mo_filter *f = mo_filter_new(c);

    if (!f)
        return mo_fail(e, MO_ENOMEM, "view %s", c->name);
    if (v->expose == c->expose &&
        mo_filter_same(f, mo_catalog_part_filter_now(v->part))) {
        mo_filter_free(f);
        return 0;
    }
    v->expose = c->expose;
    mo_catalog_part_filter(v->part, f);
    mo_router_index_stale(v->router_index);
    mo_router_index_stale(v->skill_index);
    mo_gw_watch_view(v);
    for (enum mo_cat_kind k = 0; k < MO_CAT_KINDS; k++)
        mo_gw_view_changed(v, mo_gw_change_of(k), false);
    mo_call_approval_look_again(v);
    return 0;
}

void mo_gateway_view_end(struct mo_gw_view *v, const char *why)
{
    mo_gw_front_end(v, why);
    mo_connect_end(v->g, v, why);
    mo_forward_end_all(v, why);
}

void mo_gateway_view_free(struct mo_gw_view *v)
{
    if (!v)
        return;
    drop_watches(v);
    mo_timer_stop(v->g->loop, &v->retell);
    mo_list_del(&v->node);
    mo_router_index_free(v->router_index);
    mo_router_index_free(v->skill_index);
    mo_catalog_free(v->part);
    mo_free(v);
}

const struct mo_catalog *mo_gateway_view_catalog(const struct mo_gw_view *v)
{
    return mo_gw_cat(v);
}

bool mo_gateway_view_searches(const struct mo_gw_view *v)
{
    return mo_meta_tools_is_on(v);
}
