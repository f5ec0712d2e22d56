/* gateway.c - life of the gateway, its table of servers and its endpoints. */
#include "gateway/gw_priv.h"

#include "base/rand.h"
#include "gateway/call/call_approval.h"
#include "gateway/call/forwarded_call.h"
#include "gateway/call/result_limit.h"
#include "gateway/call/rewrite.h"
#include "gateway/router/embeddings.h"
#include "gateway/router/meta_tools.h"
#include "gateway/router/router_index.h"
#include "gateway/router/router_learning.h"
#include "gateway/script/script.h"

#define CAPS                                                                   \
    (MO_EP_TOOLS | MO_EP_RESOURCES | MO_EP_SUBSCRIBE | MO_EP_PROMPTS |         \
     MO_EP_COMPLETIONS | MO_EP_LOGGING | MO_EP_LISTCHANGED | MO_EP_TASKS |     \
     MO_EP_SKILLS | MO_EP_CALL_TASKS)

/* --- callbacks of children ----------------------------------------------- */

/* Without memory the child still serves calls; only its notifications and
 * lists are lost. */
static void on_child_open(void *ctx, struct mo_child *c)
{
    struct server_slot *s = ctx;
    struct gw_child *k = s->no == SLOT_SCRIPTS ? NULL : mo_new(struct gw_child);

    if (!k) /* or nothing of it is listed */
        return;
    k->slot = s;
    k->child = c;
    k->conn = mo_child_conn(c);
    k->level = MO_MCP_LEVELS;
    for (size_t i = 0; i < MO_CAT_KINDS; i++)
        k->lists[i].child = k;
    mo_list_push(&s->children, &k->node);
    mo_gw_watch_opened(k);
    mo_catalog_refresh_child(k, mo_catalog_refresh_due(k));
}

static void on_child_lost(void *ctx, struct mo_child *c,
                          const struct mo_err *why)
{
    struct gw_child *k = mo_gw_child(ctx, c);

    (void)why;
    if (!k)
        return;
    MO_BUG_ON(k->busy || k->listen);
    mo_gw_watch_lost(k);
    mo_list_del(&k->node);
    mo_free(k);
}

static void on_child_notify(void *ctx, struct mo_child *c,
                            const struct mo_rpc *m, uint64_t stream_of)
{
    struct gw_child *k = mo_gw_child(ctx, c);

    if (k)
        mo_gw_watch_notify(k, m, stream_of);
}

static const struct mo_upstream_cb up_cb = {
    .on_open = on_child_open,
    .on_ask = mo_forward_ask,
    .on_ask_gone = mo_forward_ask_gone,
    .on_notify = on_child_notify,
    .on_lost = on_child_lost,
};

/* --- servers ------------------------------------------------------------- */

struct server_slot *mo_gw_slot(struct mo_gateway *g, unsigned no)
{
    return no < g->n ? g->v[no] : NULL;
}

struct server_slot *mo_gw_find_slot(const struct mo_gateway *g,
                                    struct mo_span name)
{
    for (size_t i = 0; i < g->n; i++) {
        if (mo_span_is(name, mo_upstream_server(g->v[i]->up)->name))
            return g->v[i];
    }
    return NULL;
}

struct gw_child *mo_gw_child(const struct server_slot *s,
                             const struct mo_child *c)
{
    mo_list_each_entry (k, &s->children, struct gw_child, node) {
        if (k->child == c)
            return k;
    }
    return NULL;
}

void mo_gw_slot_check(struct server_slot *s)
{
    struct mo_gateway *g = s->g;

    if (!mo_list_empty(&s->calls))
        return;
    if (s->no == SLOT_NONE && !s->closing)
        mo_loop_defer(g->loop, &s->leave);
    if (!s->gone)
        return;
    mo_list_del(&s->node);
    mo_later_cancel(&s->leave);
    mo_free(s);
    if (g->closing && mo_list_empty(&g->leaving))
        mo_loop_defer(g->loop, &g->ending);
}

static void slot_close(struct server_slot *s);

/* The remaining calls had their time. */
static void on_drain_timeout(struct mo_timer *t)
{
    slot_close(mo_container_of(t, struct server_slot, drain));
}

static void on_last_call_ended(struct mo_later *d)
{
    slot_close(mo_container_of(d, struct server_slot, leave));
}

static struct server_slot *
slot_new(struct mo_gateway *g, const struct mo_gw_server *s, struct mo_err *e)
{
    struct server_slot *t = mo_new(struct server_slot);

    if (!t)
        return mo_null(mo_fail(e, MO_ENOMEM, "server %s", s->name));
    t->g = g;
    t->no = SLOT_NONE;
    mo_list_init(&t->node);
    mo_list_init(&t->calls);
    mo_list_init(&t->children);
    mo_timer_init(&t->drain, on_drain_timeout);
    mo_later_init(&t->leave, on_last_call_ended);
    t->up = mo_upstream_new(&g->o.up, s, &up_cb, t, e);
    if (!t->up) {
        mo_free(t);
        return NULL;
    }
    mo_upstream_join_pool(t->up, s->per_person ? &g->person_pool : &g->pool);
    mo_catalog_refresh_begin(t);
    return t;
}

static void finish_close(struct mo_later *d);

static void on_embeddings_gone(void *ctx)
{
    finish_close(&((struct mo_gateway *)ctx)->ending);
}

static void finish_close(struct mo_later *d)
{
    struct mo_gateway *g = mo_container_of(d, struct mo_gateway, ending);
    struct mo_gone gone = g->gone;

    if (g->embeddings) {
        mo_embeddings_close(mo_take_ptr(&g->embeddings), on_embeddings_gone, g);
        return;
    }
    MO_BUG_ON(!mo_list_empty(&g->eps) || !mo_list_empty(&g->reads));
    mo_forward_drop_all(g);
    mo_timer_stop(g->loop, &g->whole.retell);
    mo_gw_watch_fini(g);
    mo_map_fini(&g->parked);
    MO_BUG_ON(g->elicitations.len);
    mo_map_fini(&g->elicitations);
    mo_catalog_free(g->cat);
    MO_BUG_ON(!mo_list_empty(&g->views));
    mo_router_index_free(g->query_index);       /* borrows from router_index */
    mo_router_index_free(g->whole.skill_index); /* and so does this */
    mo_router_index_free(g->router_index);
    mo_result_limit_free(g->results);
    mo_router_learning_free(g->learning);
    mo_latency_fini(&g->latency);
    mo_pool_fini(&g->spare_calls);
    mo_pool_fini(&g->spare_cases);
    mo_free(g->v);
    mo_free(g);
    mo_gone_fire(gone);
}

static void on_upstream_gone(void *ctx)
{
    struct server_slot *s = ctx;

    s->up = NULL;
    s->gone = true;
    mo_gw_slot_check(s);
}

static void slot_close(struct server_slot *s)
{
    mo_timer_stop(s->g->loop, &s->drain);
    if (s->closing)
        return;
    s->closing = true;
    mo_upstream_close(s->up, on_upstream_gone, s);
}

/* Removes a server: no new calls, running ones may finish. */
static void slot_leave(struct server_slot *s)
{
    s->no = SLOT_NONE;
    s->overrides = NULL;
    mo_list_push(&s->g->leaving, &s->node);
    mo_call_approval_leave(s);
    mo_catalog_refresh_stop(s);
    mo_gw_watch_stop(s);
    if (s->g->closing || mo_list_empty(&s->calls))
        slot_close(s);
    else
        mo_timer_start(s->g->loop, &s->drain, GW_DRAIN_MS);
}

static bool is_unchanged(const struct server_slot *s,
                         const struct mo_gw_server *v)
{
    const struct mo_gw_server *o = mo_upstream_server(s->up);

    return strcmp(o->name, v->name) == 0 && strcmp(o->digest, v->digest) == 0;
}

/* The slot of an unchanged server, taken out of the old table. */
static struct server_slot *take_unchanged_slot(struct mo_gateway *g,
                                               const struct mo_gw_server *s)
{
    for (size_t i = 0; i < g->n; i++) {
        struct server_slot *t = g->v[i];

        if (!t || !is_unchanged(t, s))
            continue;
        g->v[i] = NULL;
        return t;
    }
    return NULL;
}

/* Fills the new table with unchanged and new slots. After a failure call
 * undo_table(). */
static int fill_table(struct mo_gateway *g, struct server_slot **to,
                      bool *fresh, const struct mo_gw_server *v, size_t n,
                      struct mo_err *e)
{
    for (size_t i = 0; i < n; i++) {
        to[i] = take_unchanged_slot(g, &v[i]);
        fresh[i] = !to[i];
        if (!to[i])
            to[i] = slot_new(g, &v[i], e);
        if (!to[i])
            return e ? e->code : MO_ENOMEM;
    }
    return 0;
}

static void undo_table(struct mo_gateway *g, struct server_slot **to,
                       const bool *fresh, size_t n)
{
    for (size_t i = 0; i < n && to[i]; i++) {
        if (fresh[i]) {
            slot_leave(to[i]);
            continue;
        }
        for (size_t j = 0; j < g->n; j++) {
            if (!g->v[j] && to[i]->no == j)
                g->v[j] = to[i];
        }
    }
}

static void swap_table(struct mo_gateway *g, struct server_slot **to, size_t n)
{
    struct server_slot **old = g->v;
    size_t was = g->n;

    g->v = to;
    g->n = n;
    for (size_t i = 0; i < n; i++) {
        to[i]->no = (unsigned)i;
        to[i]->overrides = mo_catalog_overrides(g->cat, (unsigned)i);
    }
    for (size_t i = 0; i < was; i++) {
        if (old[i])
            slot_leave(old[i]);
    }
    mo_free(old);
}

int mo_gateway_servers(struct mo_gateway *g, const struct mo_gw_server *v,
                       size_t n, struct mo_err *e)
{
    struct mo_err own;
    struct server_slot **to;
    mo_autofree bool *fresh = NULL;
    bool first = g->n == 0;
    size_t all = n;
    int rc;

    e = e ? e : &own;
    while (n > 0 && v[n - 1].off)
        n--;
    if (all > MO_GW_SERVERS_MAX)
        return mo_fail(e, MO_ETOOBIG, "more than %d servers",
                       MO_GW_SERVERS_MAX);
    to = mo_zalloc((n + 1) * sizeof(struct server_slot *));
    fresh = mo_zalloc(n + 1);
    if (!to || !fresh) {
        mo_free(to);
        return mo_fail(e, MO_ENOMEM, "servers");
    }
    rc = fill_table(g, to, fresh, v, n, e);
    if (rc == 0)
        rc = mo_catalog_servers(g->cat, v, all, e);
    if (rc < 0) {
        undo_table(g, to, fresh, n);
        mo_free(to);
        return rc;
    }
    for (size_t i = 0; i < n; i++)
        mo_upstream_reconfigure(to[i]->up, &v[i]);
    swap_table(g, to, n);
    mo_gw_views_stale(g);
    mo_gw_watch_resubscribe(g);
    if (first)
        return 0;
    for (enum mo_cat_kind k = 0; k < MO_CAT_KINDS; k++)
        mo_gw_changed(g, mo_gw_change_of(k));
    mo_gw_front_reloaded(g);
    return 0;
}

int mo_gateway_scripts(struct mo_gateway *g, const struct mo_gw_script *v,
                       struct mo_err *e)
{
    struct server_slot *old = g->script.slot;
    bool was_on = old != NULL;

    if (!v || !old || !is_unchanged(old, &v->server)) {
        struct server_slot *s = v ? slot_new(g, &v->server, e) : NULL;

        if (v && !s)
            return e ? e->code : MO_ENOMEM;
        g->script.slot = s;
        if (s)
            s->no = SLOT_SCRIPTS;
        if (old)
            slot_leave(old);
    }
    g->script.max = v ? v->max : 0;
    g->script.max_seconds = v ? v->max_seconds : 0;
    if (was_on != (v != NULL) && g->n > 0)
        mo_gw_changed(g, MO_EP_CH_TOOLS);
    return 0;
}

/* --- life ---------------------------------------------------------------- */

int mo_gateway_new(const struct mo_gateway_opts *o, struct mo_gateway **out,
                   struct mo_err *e)
{
    struct mo_gateway *g = mo_new(struct mo_gateway);

    if (!g)
        return mo_fail(e, MO_ENOMEM, "gateway");
    g->cat = mo_catalog_new(o->prefix, o->cache, e);
    g->router_index = mo_router_index_new(o->table, o->pieces);
    g->results = mo_result_limit_new(o->up.loop);
    g->learning = mo_router_learning_new(o->up.loop, o->learning_file);
    if (!g->cat || !g->router_index || !g->results || !g->learning ||
        (o->cfg && mo_embeddings_new(o->up.loop, o->cfg, o->embeddings_file,
                                     &g->embeddings, e) < 0)) {
        mo_router_index_free(g->router_index);
        mo_result_limit_free(g->results);
        mo_router_learning_free(g->learning);
        mo_catalog_free(g->cat);
        mo_free(g);
        return mo_fail(e, MO_ENOMEM, "gateway");
    }
    g->o = *o;
    g->o.cache = NULL; /* copied by the catalogue */
    g->o.learning_file = NULL;
    g->o.embeddings_file = NULL;
    g->o.cfg = NULL; /* the embeddings have their own reference */
    g->o.away_ms = o->away_ms ? o->away_ms : GW_AWAY_MS;
    g->o.list_ms = o->list_ms ? o->list_ms : GW_LIST_FIRST_MS;
    g->o.gather_ms = o->gather_ms ? o->gather_ms : GW_GATHER_MS;
    g->loop = o->up.loop;
    g->execute_target = mo_meta_tools_execute_target;
    g->restart = mo_gw_front_restart;
    g->read_lists = mo_catalog_refresh_child;
    g->refresh_slot = mo_catalog_refresh_slot;
    mo_gw_script_init(g);
    mo_upstream_pool_init(&g->pool, o->most);
    mo_upstream_pool_init(&g->person_pool, MO_UPSTREAM_PERSONS_MAX);
    mo_list_init(&g->connects);
    mo_list_init(&g->leaving);
    mo_list_init(&g->eps);
    mo_list_init(&g->views);
    g->whole = (struct mo_gw_view){.g = g, .expose = MO_GW_EXPOSE_SAME};
    mo_gw_view_init(&g->whole);
    mo_list_init(&g->calls);
    mo_list_init(&g->list_waits);
    mo_list_init(&g->reads);
    mo_map_init(&g->parked, GW_AWAY_MAX);
    mo_map_init(&g->elicitations, GW_ELICITATIONS_MAX);
    mo_latency_init(&g->latency);
    g->key0 = mo_random_u64();
    g->key1 = mo_random_u64();
    mo_later_init(&g->ending, finish_close);
    mo_gw_watch_init(g);
    *out = g;
    return 0;
}

void mo_gateway_close(struct mo_gateway *g, void (*gone)(void *ctx), void *ctx)
{
    MO_BUG_ON(g->closing);
    g->closing = true;
    g->gone = (struct mo_gone){gone, ctx};
    mo_list_each_safe (n, &g->leaving)
        slot_close(mo_container_of(n, struct server_slot, node));
    for (size_t i = 0; i < g->n; i++)
        slot_leave(g->v[i]);
    g->n = 0;
    if (g->script.slot)
        slot_leave(mo_take_ptr(&g->script.slot));
    if (mo_list_empty(&g->leaving))
        mo_loop_defer(g->loop, &g->ending);
}

size_t mo_gateway_count(const struct mo_gateway *g)
{
    return g->n;
}

struct mo_upstream *mo_gateway_up(const struct mo_gateway *g, size_t i)
{
    return i < g->n ? g->v[i]->up : NULL;
}

const struct mo_catalog *mo_gateway_catalog(const struct mo_gateway *g)
{
    return g->cat;
}

/* --- endpoints ----------------------------------------------------------- */

static void on_session_gone(void *ctx, uint64_t peer)
{
    struct mo_gateway *g = ((struct mo_gw_view *)ctx)->g;
    char who[MO_GW_WHO_MAX];

    mo_rewrite_who(peer, mo_span(NULL, 0), who);
    mo_elicitation_forget(g, NULL, peer);
    for (size_t i = 0; i < g->n; i++) {
        if (mo_upstream_server(g->v[i]->up)->per_session)
            mo_upstream_session_gone(g->v[i]->up, mo_span_cstr(who));
    }
}

/* Only children of that session are told; a shared server has no roots. */
static void on_roots_changed(void *ctx, uint64_t peer)
{
    struct mo_gateway *g = ((struct mo_gw_view *)ctx)->g;

    for (size_t i = 0; i < g->n; i++) {
        mo_list_each_entry (k, &g->v[i]->children, struct gw_child, node) {
            if (mo_forward_session_of(g->v[i], k->child) == peer &&
                mo_child_conn(k->child) && !mo_conn_info(k->conn)->modern)
                (void)mo_conn_notify(k->conn,
                                     "notifications/roots/list_changed",
                                     mo_span(NULL, 0));
        }
    }
}

void mo_gateway_view_endpoint(struct mo_gw_view *v, struct mo_endpoint_opts *o)
{
    o->caps = CAPS;
    o->handler = mo_gw_front_handle;
    o->schema = mo_gw_front_schema;
    o->task = mo_gw_front_task;
    o->watch = mo_gw_watch_uri;
    o->watch_task = mo_gw_watch_task_wanted;
    o->level = mo_gw_watch_level;
    o->session_gone = on_session_gone;
    o->roots_changed = on_roots_changed;
    o->abandoned = mo_forward_abandoned;
    o->refusals = true;
    o->ctx = v;
}

void mo_gateway_endpoint(struct mo_gateway *g, struct mo_endpoint_opts *o)
{
    mo_gateway_view_endpoint(&g->whole, o);
}

void mo_gateway_single(struct mo_gateway *g)
{
    g->single = g->pool.single = g->person_pool.single = true;
}

int mo_gateway_view_serve(struct mo_gw_view *v, struct mo_endpoint *ep)
{
    struct gw_ep *x = mo_new(struct gw_ep);

    if (!x)
        return MO_ENOMEM;
    x->ep = ep;
    x->view = v;
    mo_list_push(&v->g->eps, &x->node);
    return 0;
}

int mo_gateway_serve(struct mo_gateway *g, struct mo_endpoint *ep)
{
    return mo_gateway_view_serve(&g->whole, ep);
}

void mo_gateway_unserve(struct mo_gateway *g, struct mo_endpoint *ep)
{
    mo_list_each_entry_safe (x, &g->eps, struct gw_ep, node) {
        if (x->ep != ep)
            continue;
        mo_list_del(&x->node);
        mo_free(x);
    }
    mo_elicitation_forget(g, ep, 0);
    mo_forward_drop_parked(g, ep);
}

void mo_gw_changed(struct mo_gateway *g, enum mo_ep_what what)
{
    if (what != MO_EP_CH_PROMPTS) /* skills are announced as resources */
        mo_gw_views_stale(g);
    mo_gw_view_changed(&g->whole, what, true);
    mo_list_each_entry_safe (v, &g->views, struct mo_gw_view, node)
        mo_gw_view_changed(v, what, false);
}

void mo_gateway_learn(struct mo_gateway *g, const char *server,
                      const char *person)
{
    struct server_slot *s = mo_gw_find_slot(g, mo_span_cstr(server));

    if (s && !mo_catalog_known(g->cat, s->no))
        mo_catalog_refresh_slot(s, mo_span(NULL, 0), mo_span_cstr(person),
                                mo_span(NULL, 0));
}

void mo_gateway_person(struct mo_gateway *g, const char *server,
                       const char *person, bool connected)
{
    struct server_slot *s = mo_gw_find_slot(g, mo_span_cstr(server));
    char key[MO_GW_WHO_MAX];

    mo_rewrite_person(mo_span_cstr(person), key);
    if (s) /* a new sign-in may be another account: begin anew */
        mo_upstream_close_child_of(s->up, mo_span_cstr(key));
    if (connected)
        mo_connect_check(g);
}

void mo_gateway_home(struct mo_gateway *g, const struct mo_ep_home *h)
{
    mo_result_limit_home(g->results, h);
}

void mo_gateway_share_learning(struct mo_gateway *g, atomic_uint *changes)
{
    mo_router_learning_share(g->learning, changes);
}
