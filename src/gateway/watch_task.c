/* watch_task.c - clients' subscriptions to tasks of modern servers.
 *
 * A client names a task by its exposed id (gateway/call/rewrite.h). The
 * children of its server include the server's own id in their listen, and
 * status notifications go to that client only. Of a per-session server only
 * the client's own child is asked.
 *
 * Limit: GW_WATCHED_MAX tasks. Beyond it a client has to poll, which it may
 * do at any time. */
#include "gateway/call/rewrite.h"
#include "gateway/gw_priv.h"
#include "mcp/edit.h"
#include "secrets/redact.h"

#define TEXT_MAX ((size_t)64 * 1024)

struct watched_task {
    unsigned n;               /* listens that subscribed */
    struct server_slot *slot; /* NULL: removed */
    char who[MO_GW_WHO_MAX];
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

    return x->slot == k->slot && (!who.n || mo_span_is(who, x->who));
}

static void renew_listens(const struct watched_task *x)
{
    mo_list_each_entry (k, &x->slot->children, struct gw_child, node) {
        if (is_for_child(x, k) && mo_conn_info(k->conn)->modern)
            mo_gw_watch_listen(k);
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
    mo_rewrite_who(c->peer, c->caller, x->who);
    mo_buf_init(&x->own, TEXT_MAX);
    mo_buf_init(&x->caller, TEXT_MAX);
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
    struct mo_gateway *g = ctx;
    struct watched_task *x = mo_map_get(&g->watched_tasks, id);
    char who[MO_GW_WHO_MAX];

    if (!x && on)
        x = watched_task_new(g, listen, id);
    mo_rewrite_who(listen->peer, listen->caller, who);
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

void mo_gw_watch_task_ids(const struct gw_child *k, struct mo_jw *w)
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

/* Sends a status under the id that the client knows. */
static void send_status(const struct mo_gateway *g,
                        const struct watched_task *x, struct mo_span id,
                        struct mo_json params)
{
    struct mo_edit ed = {"taskId", {NULL, 0}};
    struct result_limit how = {.who = x->who};
    /* Copies, since notifying a client may end it and free x. */
    mo_autobuf struct mo_buf exposed = {.max = TEXT_MAX};
    mo_autobuf struct mo_buf caller = {.max = TEXT_MAX};
    mo_autobuf struct mo_buf name = {.max = TEXT_MAX};
    mo_autobuf struct mo_buf clean = {.max = 2 * GW_TEXT_MAX};
    mo_autobuf struct mo_buf cut = {.max = GW_TEXT_MAX};
    mo_autobuf struct mo_buf b = {.max = GW_TEXT_MAX};

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
            mo_endpoint_task(p->ep, mo_buf_view(&caller), mo_buf_view(&exposed),
                             mo_buf_view(&b));
    }
}

void mo_gw_watch_task_status(struct gw_child *k, struct mo_json params)
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

void mo_gw_watch_task_stop(const struct server_slot *s)
{
    mo_map_each (en, &s->g->watched_tasks) {
        struct watched_task *x = en->value;

        if (x->slot == s)
            x->slot = NULL;
    }
}

void mo_gw_watch_task_fini(struct mo_gateway *g)
{
    mo_map_each (en, &g->watched_tasks)
        watched_task_free(en->value);
    mo_map_fini(&g->watched_tasks);
}
