/* watch.c - subscriptions to resources and tasks, log levels, and notifications
 * of servers.
 *
 * Subscriptions are counted by exposed URI. The server is subscribed to with
 * the first one and unsubscribed with the last one; a shared server is kept
 * running meanwhile, unless they are all those of other processes
 * (watch_others.c). A legacy server gets resources/subscribe. A modern
 * server has one open listen with all resources, which also reports changed
 * lists.
 *
 * A client subscribes to a task of a modern server by its exposed id
 * (gateway/call/rewrite.h). The children of its server include the server's own
 * id in their listen, and status notifications go to that client only. Of a
 * per-session server only the client's own child is asked. Beyond
 * GW_WATCHED_MAX tasks a client has to poll, which it may do at any time.
 *
 * A legacy server is told the most verbose log level that any client asked
 * for: a more verbose level at once, a less verbose one after GW_QUIET_MS. */
#include "gateway/call/forwarded_call.h"
#include "gateway/call/rewrite.h"
#include "gateway/gw_priv.h"
#include "mcp/edit.h"
#include "secrets/redact.h"

#define LISTEN_TEXT_MAX ((size_t)4 * 1024 * 1024)
#define TASK_TEXT_MAX   ((size_t)64 * 1024)

/* --- one child ----------------------------------------------------------- */

static void ignore_reply(void *ctx, const struct mo_reply *r)
{
    (void)ctx;
    (void)r;
}

static void send_request(struct gw_child *k, const char *method,
                         const char *key, struct mo_span value)
{
    struct mo_call_opts o = {.done = ignore_reply};
    mo_autobuf struct mo_buf b = {.max = LISTEN_TEXT_MAX};
    struct mo_jw w = mo_jw_object(&b);

    mo_jw_member(&w, key, value);
    mo_jw_end(&w);
    if (!mo_buf_err(&b) && mo_child_conn(k->child))
        (void)mo_conn_request(k->conn, method, mo_buf_view(&b), &o, NULL);
}

static bool is_modern(const struct gw_child *k)
{
    return mo_conn_info(k->conn)->modern;
}

static bool can_subscribe(const struct gw_child *k)
{
    struct mo_json cap =
        mo_json_get(mo_conn_info(k->conn)->capabilities, "resources");

    return mo_json_flag(cap, "subscribe");
}

static void send_log_level(struct gw_child *k)
{
    enum mo_mcp_level lv = k->slot->g->level;
    static const char *const words[MO_MCP_LEVELS] = {
        "debug", "info",     "notice", "warning",
        "error", "critical", "alert",  "emergency",
    };

    if (lv == MO_MCP_LEVELS || lv == k->level || is_modern(k) ||
        !mo_conn_can(k->conn, "logging"))
        return;
    k->level = lv;
    send_request(k, "logging/setLevel", "level", mo_span_cstr(words[lv]));
}

/* --- tasks --------------------------------------------------------------- */

struct watched_task {
    unsigned n;                   /* listens that subscribed */
    const struct mo_endpoint *ep; /* theirs; may be gone */
    struct server_slot *slot;     /* NULL: removed */
    char who[MO_GW_WHO_MAX];
    char person[MO_GW_WHO_MAX]; /* key of the person's child */
    struct mo_buf own, caller;
};

static void watched_task_free(struct watched_task *x)
{
    mo_buf_fini(&x->own);
    mo_buf_fini(&x->caller);
    mo_free(x);
}

static bool is_for_child(const struct watched_task *x, const struct gw_child *k)
{
    struct mo_span who = mo_child_who(k->child);

    if (mo_upstream_server(k->slot->up)->per_person)
        return x->slot == k->slot && mo_span_is(who, x->person);
    return x->slot == k->slot && (!who.n || mo_span_is(who, x->who));
}

/* Writes "taskIds":[...] of a child's listen, if there are any. */
static void put_task_ids(const struct gw_child *k, struct mo_jw *w)
{
    bool any = false;

    mo_map_each (en, &k->slot->g->watched_tasks) {
        const struct watched_task *x = en->value;

        if (!is_for_child(x, k) || !x->n)
            continue;
        if (!any)
            mo_jw_member_arr(w, "taskIds");
        any = true;
        mo_jw_str(w, mo_buf_view(&x->own));
    }
    if (any)
        mo_jw_end(w);
}

/* --- a modern server's listen -------------------------------------------- */

/* The server's own URI of a watched resource. False: another server's. */
static bool own_uri(const struct server_slot *s, const struct mo_map_entry *en,
                    struct mo_span *own)
{
    const struct watched_resource *x = en->value;
    unsigned no;

    return x->slot == s &&
           mo_catalog_resource(s->g->cat, mo_map_key(en), &no, own) == 0;
}

static void put_uris(const struct server_slot *s, struct mo_jw *w)
{
    struct mo_span own;

    mo_jw_member_arr(w, "resourceSubscriptions");
    mo_map_each (en, &s->g->watched)
        if (own_uri(s, en, &own))
            mo_jw_str(w, own);
    mo_jw_end(w);
}

static int put_listen(const struct gw_child *k, struct mo_buf *b)
{
    const struct server_slot *s = k->slot;
    static const char *const keys[] = {"toolsListChanged", "promptsListChanged",
                                       "resourcesListChanged"};
    struct mo_jw w = mo_jw_object(b);

    mo_jw_member_obj(&w, "notifications");
    for (size_t i = 0; i < MO_COUNT(keys); i++)
        mo_jw_member_bool(&w, keys[i], true);
    if (s->nwatched)
        put_uris(s, &w);
    put_task_ids(k, &w);
    mo_jw_end_all(&w);
    return mo_buf_err(b);
}

struct listening {
    struct gw_child *k;
    struct mo_call *call;
};

/* The listen ended: with its child, by the server, or because another one
 * replaced it. */
static void on_listen_end(void *ctx, const struct mo_reply *r)
{
    struct listening *l = ctx;
    struct gw_child *k = l->k;
    bool replaced = k->listen != l;

    mo_free(l);
    if (replaced)
        return;
    k->listen = NULL;
    k->no_listen = r->error.p && r->code == MO_RPC_METHOD_NOT_FOUND;
    if (k->no_listen || !mo_child_conn(k->child))
        return;
    mo_timer_start(k->slot->g->loop, &k->relisten, k->relisten_ms);
    k->relisten_ms *= 2;
    if (k->relisten_ms > GW_LISTEN_MAX)
        k->relisten_ms = GW_LISTEN_MAX;
}

static int start_listen(struct gw_child *k, struct listening *l)
{
    struct mo_call_opts o = {
        .idle_ms = MO_CALL_FOREVER,
        .hard_ms = MO_CALL_FOREVER,
        .done = on_listen_end,
        .ctx = l,
    };
    mo_autobuf struct mo_buf b = {.max = LISTEN_TEXT_MAX};

    if (put_listen(k, &b) == 0)
        l->call = mo_conn_request(k->conn, "subscriptions/listen",
                                  mo_buf_view(&b), &o, NULL);
    return l->call ? 0 : MO_EBUSY;
}

/* Opens the new listen before the old one ends, so that no notification is
 * missed. */
static void listen_to(struct gw_child *k)
{
    struct listening *old = k->listen, *l;

    if (k->no_listen || !mo_child_conn(k->child))
        return;
    mo_timer_stop(k->slot->g->loop, &k->relisten);
    l = mo_new(struct listening);
    if (!l)
        return;
    l->k = k;
    if (start_listen(k, l) < 0) {
        mo_free(l);
        return;
    }
    k->listen = l;
    if (old)
        mo_call_cancel(old->call, "replaced");
}

static void on_relisten(struct mo_timer *t)
{
    listen_to(mo_container_of(t, struct gw_child, relisten));
}

/* --- subscriptions to tasks ---------------------------------------------- */

static void renew_listens(const struct watched_task *x)
{
    mo_list_each_entry (k, &x->slot->children, struct gw_child, node) {
        if (is_for_child(x, k) && mo_conn_info(k->conn)->modern)
            listen_to(k);
    }
}

static struct watched_task *watched_task_new(struct mo_gateway *g,
                                             const struct mo_ep_call *c,
                                             struct mo_span id)
{
    struct call_target t;
    struct watched_task *x = NULL;

    if (mo_rewrite_task(g, c, id, &t) < 0)
        return NULL;
    x = mo_new(struct watched_task);
    if (!x)
        return NULL;
    x->slot = t.slot;
    x->ep = mo_ep_call_endpoint(c);
    mo_rewrite_client(c, x->who);
    mo_rewrite_person(c->person, x->person);
    mo_buf_init(&x->own, TASK_TEXT_MAX);
    mo_buf_init(&x->caller, TASK_TEXT_MAX);
    (void)mo_buf_span(&x->own, t.own);
    (void)mo_buf_span(&x->caller, c->caller);
    if (mo_buf_err(&x->own) || mo_buf_err(&x->caller) ||
        mo_map_put(&g->watched_tasks, id, x, NULL) < 0) {
        watched_task_free(x);
        return NULL;
    }
    return x;
}

void mo_gw_watch_task_wanted(void *ctx, const struct mo_ep_call *listen,
                             struct mo_span id, bool on)
{
    struct mo_gateway *g = ((struct mo_gw_view *)ctx)->g;
    struct watched_task *x = mo_map_get(&g->watched_tasks, id);
    char who[MO_GW_WHO_MAX];

    if (!x && on)
        x = watched_task_new(g, listen, id);
    mo_rewrite_client(listen, who);
    if (!x || strcmp(who, x->who) != 0)
        return;
    x->n += on ? 1 : -1U;
    if (x->slot && x->n == (on ? 1 : 0))
        renew_listens(x);
    if (x->n)
        return;
    (void)mo_map_del(&g->watched_tasks, id);
    watched_task_free(x);
}

/* Sends a status under the id that the client knows. */
static void send_status(const struct mo_gateway *g,
                        const struct watched_task *x, struct mo_span id,
                        struct mo_json params)
{
    struct mo_edit ed = {"taskId", {NULL, 0}};
    struct result_limit how = {.who = x->who};
    /* Copies, since notifying a client may end it and free x. */
    mo_autobuf struct mo_buf exposed = {.max = TASK_TEXT_MAX};
    mo_autobuf struct mo_buf caller = {.max = TASK_TEXT_MAX};
    mo_autobuf struct mo_buf name = {.max = TASK_TEXT_MAX};
    mo_autobuf struct mo_buf clean = {.max = 2 * GW_TEXT_MAX};
    mo_autobuf struct mo_buf cut = {.max = GW_TEXT_MAX};
    mo_autobuf struct mo_buf b = {.max = GW_TEXT_MAX};
    const struct mo_endpoint *ep = x->ep;

    if (mo_redact_task_failed(params))
        params = mo_redact(g->loop, params, &clean);
    mo_rewrite_task_limit(id, &how);
    if (params.p && mo_result_limit_task(g->results, &how, params, &cut))
        params = (struct mo_json){cut.p, cut.len};
    (void)mo_buf_span(&exposed, id);
    (void)mo_buf_span(&caller, mo_buf_view(&x->caller));
    (void)mo_json_quote(&name, id);
    ed.to = mo_buf_view(&name);
    if (params.p && !mo_buf_err(&exposed) && !mo_buf_err(&caller) &&
        !mo_buf_err(&name) && mo_edit(&b, params, &ed, 1) == 0) {
        mo_list_each_entry_safe (p, &g->eps, struct gw_ep, node)
            if (p->ep == ep)
                mo_endpoint_task(p->ep, mo_buf_view(&caller),
                                 mo_buf_view(&exposed), mo_buf_view(&b));
    }
}

static void on_task_status(struct gw_child *k, struct mo_json params)
{
    struct mo_gateway *g = k->slot->g;
    struct mo_json id = mo_json_get(params, "taskId");

    mo_map_each (en, &g->watched_tasks) {
        const struct watched_task *x = en->value;

        if (!is_for_child(x, k) || !mo_json_str_eq(id, mo_buf_view(&x->own)))
            continue;
        send_status(g, x, mo_map_key(en), params);
        return; /* a task belongs to one client */
    }
}

static void stop_tasks(const struct server_slot *s)
{
    mo_map_each (en, &s->g->watched_tasks) {
        struct watched_task *x = en->value;

        if (x->slot == s)
            x->slot = NULL;
    }
}

/* --- a child opened ------------------------------------------------------ */

void mo_gw_watch_opened(struct gw_child *k)
{
    struct server_slot *s = k->slot;
    struct mo_span own;

    mo_timer_init(&k->relisten, on_relisten);
    k->relisten_ms = GW_LISTEN_MS;
    if (is_modern(k)) {
        listen_to(k);
        return;
    }
    send_log_level(k);
    if (!s->nwatched || !can_subscribe(k))
        return;
    mo_map_each (en, &s->g->watched)
        if (own_uri(s, en, &own))
            send_request(k, "resources/subscribe", "uri", own);
}

/* --- resources ----------------------------------------------------------- */

static void on_held(struct mo_child_request *w, struct mo_child *c,
                    const struct mo_err *why)
{
    struct server_slot *s = mo_container_of(w, struct server_slot, hold);

    (void)why; /* subscribers are told when it runs again */
    s->holding = false;
    s->held = c;
}

static void release_held(struct server_slot *s)
{
    if (s->holding)
        mo_upstream_cancel_request(&s->hold);
    s->holding = false;
    if (s->held)
        mo_child_release(s->held);
    s->held = NULL;
}

/* Keeps a shared server running for its subscribers. */
static void hold_child(struct server_slot *s)
{
    if (mo_upstream_server(s->up)->per_session || s->holding)
        return;
    if (s->held && mo_child_conn(s->held))
        return;
    release_held(s);
    s->holding = true;
    s->hold = (struct mo_child_request){.ready = on_held};
    mo_upstream_request_child(s->up, mo_span(NULL, 0), mo_span(NULL, 0),
                              &s->hold);
}

void mo_gw_watch_lost(struct gw_child *k)
{
    struct server_slot *s = k->slot;

    mo_timer_stop(s->g->loop, &k->relisten);
    if (s->held != k->child)
        return;
    release_held(s);
    if (s->nheld)
        hold_child(s);
}

static void subscribe_children(struct server_slot *s, struct mo_span own,
                               bool on)
{
    s->listen_due = s->g->watch_batch;
    mo_list_each_entry (k, &s->children, struct gw_child, node) {
        if (is_modern(k) && s->listen_due)
            continue;
        if (is_modern(k))
            listen_to(k);
        else if (can_subscribe(k))
            send_request(k,
                         on ? "resources/subscribe" : "resources/unsubscribe",
                         "uri", own);
    }
}

void mo_gw_watch_batch(struct mo_gateway *g, bool on)
{
    g->watch_batch = on;
    for (size_t i = 0; !on && i < g->n; i++) {
        struct server_slot *s = g->v[i];

        if (!s->listen_due)
            continue;
        s->listen_due = false;
        mo_list_each_entry (k, &s->children, struct gw_child, node)
            if (is_modern(k))
                listen_to(k);
    }
}

/* Servers of one person never: nobody knows here which person has subscribed.
 * Servers of one client not for clients of other processes. */
static bool may_subscribe(const struct watched_resource *x,
                          const struct server_slot *s)
{
    const struct mo_gw_server *u = mo_upstream_server(s->up);

    return !u->per_person && (x->n || !u->per_session);
}

/* A client of this process has subscribed: its server stays. */
static void hold_for(struct server_slot *s)
{
    s->nheld++;
    hold_child(s);
}

static void subscribe(struct mo_gateway *g, struct watched_resource *x,
                      struct mo_span uri)
{
    struct server_slot *s;
    struct mo_span own;
    unsigned no;

    if (mo_catalog_resource(g->cat, uri, &no, &own) < 0)
        return;
    s = mo_gw_slot(g, no);
    if (!s || !may_subscribe(x, s))
        return;
    x->slot = s;
    s->nwatched++;
    subscribe_children(s, own, true);
    if (x->n)
        hold_for(s);
}

static void unsubscribe(struct mo_gateway *g, struct watched_resource *x,
                        struct mo_span uri)
{
    struct server_slot *s = x->slot;
    struct mo_span own;
    unsigned no;

    x->slot = NULL;
    if (!s)
        return;
    s->nwatched--;
    if (mo_catalog_resource(g->cat, uri, &no, &own) == 0 && no == s->no)
        subscribe_children(s, own, false);
}

static struct watched_resource *watched_new(struct mo_gateway *g,
                                            struct mo_span uri)
{
    struct watched_resource *x = mo_new(struct watched_resource);

    if (x && mo_map_put(&g->watched, uri, x, NULL) < 0)
        mo_free(mo_take_ptr(&x));
    return x;
}

static struct watched_resource *watched_get(struct mo_gateway *g,
                                            struct mo_span uri, bool make)
{
    struct watched_resource *x = mo_map_get(&g->watched, uri);

    return x || !make ? x : watched_new(g, uri);
}

/* The last subscription to it may have ended. */
static void watched_check(struct mo_gateway *g, struct watched_resource *x,
                          struct mo_span uri)
{
    if (x->n || x->others)
        return;
    unsubscribe(g, x, uri);
    (void)mo_map_del(&g->watched, uri);
    mo_free(x);
}

static void tell_changed(struct mo_gateway *g, struct mo_span uri, bool on)
{
    if (g->watching.changed)
        g->watching.changed(g->watching.ctx, uri, on);
}

void mo_gw_watch_whole(struct mo_gateway *g, struct mo_span uri, bool on)
{
    struct watched_resource *x = watched_get(g, uri, on);

    if (!x || (!on && !x->n))
        return;
    x->n += on ? 1 : -1U;
    if (x->n != (on ? 1 : 0))
        return;
    if (on && x->slot)
        hold_for(x->slot);
    else if (on)
        subscribe(g, x, uri);
    else if (x->slot && --x->slot->nheld == 0)
        release_held(x->slot);
    tell_changed(g, uri, on);
    if (!on)
        watched_check(g, x, uri);
}

void mo_gw_watch_other(struct mo_gateway *g, struct mo_span uri, bool on)
{
    struct watched_resource *x = watched_get(g, uri, on);

    if (!x || (!on && !x->others))
        return;
    x->others += on ? 1 : -1U;
    if (on && !x->slot)
        subscribe(g, x, uri);
    else if (!on)
        watched_check(g, x, uri);
}

void mo_gw_watch_resubscribe(struct mo_gateway *g)
{
    mo_list_each_entry (v, &g->views, struct mo_gw_view, node)
        mo_gw_watch_view(v);
    mo_map_each (en, &g->watched) {
        struct watched_resource *x = en->value;

        if (!x->slot)
            subscribe(g, x, mo_map_key(en));
    }
}

void mo_gw_watch_stop(struct server_slot *s)
{
    mo_map_each (en, &s->g->watched) {
        struct watched_resource *x = en->value;

        if (x->slot == s)
            x->slot = NULL;
    }
    s->nwatched = s->nheld = 0;
    stop_tasks(s);
    release_held(s);
}

/* --- log levels ---------------------------------------------------------- */

static void send_log_levels(struct mo_gateway *g, bool quieter)
{
    for (size_t i = 0; i < g->n; i++) {
        mo_list_each_entry (k, &g->v[i]->children, struct gw_child, node) {
            if (quieter || g->level < k->level)
                send_log_level(k);
        }
    }
}

static void on_quiet(struct mo_timer *t)
{
    send_log_levels(mo_container_of(t, struct mo_gateway, quiet), true);
}

void mo_gw_watch_level(void *ctx, enum mo_mcp_level lv)
{
    struct mo_gateway *g = ((struct mo_gw_view *)ctx)->g;

    g->level = lv;
    mo_list_each_entry (x, &g->eps, const struct gw_ep, node) {
        enum mo_mcp_level own = mo_endpoint_level(x->ep);

        if (own < g->level)
            g->level = own;
    }
    send_log_levels(g, false);
    mo_timer_start(g->loop, &g->quiet, GW_QUIET_MS);
}

/* --- notifications ------------------------------------------------------- */

/* Tells the clients of this process. */
static void tell_updated(struct server_slot *s, struct mo_span own)
{
    struct mo_gateway *g = s->g;
    mo_autobuf struct mo_buf uri = {.max = LISTEN_TEXT_MAX};

    mo_list_each_entry_safe (x, &g->eps, struct gw_ep, node) {
        mo_buf_reset(&uri);
        if (mo_gw_shows(x->view, s) &&
            mo_catalog_expose(mo_gw_cat(x->view), s->no, own, &uri) == 0)
            mo_endpoint_updated(x->ep, mo_buf_view(&uri));
    }
}

static void on_resource_updated(struct gw_child *k, struct mo_json v)
{
    struct server_slot *s = k->slot;
    const struct mo_gw_server *u = mo_upstream_server(s->up);
    mo_autobuf struct mo_buf own = {.max = LISTEN_TEXT_MAX};
    mo_autobuf struct mo_buf uri = {.max = LISTEN_TEXT_MAX};

    if (u->per_person)
        return; /* one person's resource: nobody has subscribed to it */
    if (!mo_json_is(v, MO_JSON_STRING) || s->no == SLOT_NONE ||
        mo_json_str_buf(v, &own) < 0)
        return;
    tell_updated(s, mo_buf_view(&own));
    if (!u->per_session && !mo_list_empty(&s->g->watch_sources) &&
        mo_catalog_expose(s->g->cat, s->no, mo_buf_view(&own), &uri) == 0)
        mo_gw_tell_others(s->g, mo_buf_view(&uri));
}

void mo_gateway_updated(struct mo_gateway *g, struct mo_span uri)
{
    mo_autobuf struct mo_buf copy = {.max = LISTEN_TEXT_MAX};
    struct server_slot *s = NULL;
    struct mo_span own;
    unsigned no;

    if (g->closing || mo_catalog_resource(g->cat, uri, &no, &own) < 0)
        return;
    s = mo_gw_slot(g, no);
    /* A copy, since the catalogue may change meanwhile. */
    if (s && mo_buf_span(&copy, own) == 0)
        tell_updated(s, mo_buf_view(&copy));
}

static bool is_method(const struct mo_rpc *m, const char *name)
{
    return mo_json_str_eq(m->method, mo_span_cstr(name));
}

void mo_gw_watch_notify(struct gw_child *k, const struct mo_rpc *m,
                        uint64_t stream_of)
{
    bool object = mo_json_is(m->params, MO_JSON_OBJECT);

    if (object && is_method(m, "notifications/message")) {
        mo_forward_log(k, stream_of, m->params);
    } else if (is_method(m, "notifications/tools/list_changed")) {
        mo_catalog_refresh_list_changed(k, MO_CAT_TOOLS);
    } else if (is_method(m, "notifications/prompts/list_changed")) {
        mo_catalog_refresh_list_changed(k, MO_CAT_PROMPTS);
    } else if (is_method(m, "notifications/resources/list_changed")) {
        mo_catalog_refresh_child(k,
                                 1u << MO_CAT_TEMPLATES | 1u << MO_CAT_SKILLS);
        mo_catalog_refresh_list_changed(k, MO_CAT_RESOURCES);
    } else if (is_method(m, "notifications/resources/updated")) {
        on_resource_updated(k, mo_json_get(m->params, "uri"));
    } else if (object && is_method(m, "notifications/elicitation/complete")) {
        mo_elicitation_done(k, m->params);
    } else if (object && is_method(m, "notifications/tasks")) {
        on_task_status(k, m->params);
    }
}

/* --- life ---------------------------------------------------------------- */

void mo_gw_watch_init(struct mo_gateway *g)
{
    mo_map_init(&g->watched, GW_WATCHED_MAX);
    mo_map_init(&g->watched_tasks, GW_WATCHED_MAX);
    mo_list_init(&g->watch_sources);
    mo_timer_init(&g->quiet, on_quiet);
    g->level = MO_MCP_LEVELS;
}

void mo_gw_watch_fini(struct mo_gateway *g)
{
    mo_timer_stop(g->loop, &g->quiet);
    mo_gw_watch_others_fini(g);
    mo_map_each (en, &g->watched)
        mo_free(en->value);
    mo_map_fini(&g->watched);
    mo_map_each (en, &g->watched_tasks)
        watched_task_free(en->value);
    mo_map_fini(&g->watched_tasks);
}
