/* ep_listen.c - subscriptions/listen: notifications for a modern client.
 *
 * A listen is a call that the endpoint holds until one side ends it. Its filter
 * is what was acknowledged; endpoint.c reads it for each notification. */
#include "mcp/server/ep_priv.h"

static const struct {
    const char *key;
    unsigned cap;
} kinds[] = {
    [MO_EP_CH_TOOLS] = {"toolsListChanged", MO_EP_TOOLS},
    [MO_EP_CH_PROMPTS] = {"promptsListChanged", MO_EP_PROMPTS},
    [MO_EP_CH_RESOURCES] = {"resourcesListChanged", MO_EP_RESOURCES},
};

/* tasks_of: the names are tasks of that call's client; those of other processes
 * are left out. */
static int read_names(struct mo_map *to, struct mo_json arr,
                      const struct call *tasks_of)
{
    if (arr.p && !mo_json_is(arr, MO_JSON_ARRAY))
        return MO_EINVAL;
    mo_json_each (m, arr) {
        mo_autobuf struct mo_buf b = {.max = EP_CALL_EXTRA};
        mo_autobuf struct mo_buf plain = {.max = EP_CALL_EXTRA};
        struct mo_span name;
        int rc;

        rc = mo_json_is(m.val, MO_JSON_STRING) ? mo_json_str_buf(m.val, &b)
                                               : MO_EINVAL;
        name = mo_buf_view(&b);
        if (rc == 0 &&
            (!tasks_of || mo_ep_task_is_here(tasks_of, &name, &plain)))
            rc = mo_map_put(to, name, to, NULL);
        if (rc < 0)
            return rc;
    }
    return 0;
}

static int read_filter(struct call *c, struct mo_json wanted)
{
    unsigned caps = c->ep->o.caps;
    struct mo_ep_filter *f = mo_new(struct mo_ep_filter);

    if (!f)
        return MO_ENOMEM;
    mo_map_init(&f->uris, c->ep->o.limits.uris);
    mo_map_init(&f->tasks, c->ep->o.limits.uris);
    c->filter = f;
    c->ep->nlistens++;
    for (size_t i = 0; i < MO_COUNT(kinds); i++)
        f->what[i] = (caps & kinds[i].cap) && (caps & MO_EP_LISTCHANGED) &&
                     mo_json_flag(wanted, kinds[i].key);
    if ((caps & MO_EP_TASKS) &&
        read_names(&f->tasks, mo_json_get(wanted, "taskIds"), c) < 0)
        return MO_EINVAL;
    if (!(caps & MO_EP_SUBSCRIBE))
        return 0;
    return read_names(&f->uris, mo_json_get(wanted, "resourceSubscriptions"),
                      NULL);
}

/* The client's own texts, without tasks of other processes. */
static void put_task_ids(const struct call *c, struct mo_jw *w,
                         struct mo_json ids)
{
    mo_jw_member_arr(w, "taskIds");
    mo_json_each (m, ids) {
        mo_autobuf struct mo_buf b = {.max = EP_CALL_EXTRA};
        mo_autobuf struct mo_buf plain = {.max = EP_CALL_EXTRA};
        struct mo_span name;

        (void)mo_json_str_buf(m.val, &b);
        name = mo_buf_view(&b);
        if (mo_ep_task_is_here(c, &name, &plain))
            mo_jw_raw(w, mo_json_text(m.val));
    }
    mo_jw_end(w);
}

static void send_ack(struct call *c, struct mo_json wanted)
{
    const struct mo_ep_filter *f = c->filter;
    struct mo_jw w =
        mo_ep_begin_note(c->ep, "notifications/subscriptions/acknowledged");

    mo_jw_member_obj(&w, "notifications");
    for (size_t i = 0; i < MO_COUNT(kinds); i++) {
        if (f->what[i])
            mo_jw_member_bool(&w, kinds[i].key, true);
    }
    if (f->uris.len)
        mo_jw_member_raw(
            &w, "resourceSubscriptions",
            mo_json_text(mo_json_get(wanted, "resourceSubscriptions")));
    if (f->tasks.len)
        put_task_ids(c, &w, mo_json_get(wanted, "taskIds"));
    mo_jw_end(&w);
    mo_ep_put_sub(&w, c->id);
    mo_jw_end_all(&w);
    mo_ep_note_scratch(c->ep, c->way);
}

void mo_ep_listen(struct call *c)
{
    struct mo_json wanted = mo_json_get(c->pub.params, "notifications");
    int code = MO_RPC_INVALID_PARAMS;
    const char *why = NULL;

    if ((c->ep->o.caps & MO_EP_TASKS) && mo_json_get(wanted, "taskIds").p &&
        mo_ep_call_lacks_tasks(c))
        return;
    if ((c->ep->o.caps & MO_EP_TASKS) &&
        mo_ep_tasks_are_away(c, mo_json_get(wanted, "taskIds")))
        return;
    if (!mo_json_is(wanted, MO_JSON_OBJECT)) {
        why = "params.notifications must be an object";
    } else if (c->ep->nlistens >= c->ep->o.limits.listens) {
        code = MO_RPC_INTERNAL;
        why = "too many listens";
    } else if (read_filter(c, wanted) < 0) {
        why = "params.notifications is malformed or too long";
    } else if (mo_ep_watch_all(c->ep, &c->filter->uris) < 0) {
        code = MO_RPC_INTERNAL;
        why = "out of memory";
    }
    if (why) {
        mo_ep_call_refuse(c, 200, code, why);
        return;
    }
    c->filter->counted = true;
    c->state = CALL_LISTENING;
    mo_ep_watch_tasks(c, true);
    send_ack(c, wanted);
}

/* --- a task has changed -------------------------------------------------- */

static void send_task(struct call *c, struct mo_json task)
{
    struct mo_jw w = mo_ep_begin_note(c->ep, "notifications/tasks");

    mo_ep_put_task_id(c, &w, mo_json_get(task, "taskId"));
    mo_ep_put_members(&w, task, EP_KEYS("_meta", "taskId"));
    mo_jw_member_obj(&w, "_meta");
    mo_ep_put_members(&w, mo_json_get(task, "_meta"), EP_KEYS(MO_MCP_P_SUB));
    mo_jw_member_raw(&w, MO_MCP_P_SUB, mo_json_text(c->id));
    mo_jw_end_all(&w);
    mo_ep_note_scratch(c->ep, c->way);
}

void mo_endpoint_task(struct mo_endpoint *ep, struct mo_span caller,
                      struct mo_span id, struct mo_span task)
{
    mo_list_each_entry_safe (c, &ep->calls, struct call, node) {
        if (c->state == CALL_LISTENING && c->filter && c->way &&
            mo_span_eq(c->pub.caller, caller) &&
            mo_map_get(&c->filter->tasks, id))
            send_task(c, (struct mo_json){task.p, task.n});
    }
}

/* --- the end ------------------------------------------------------------- */

/* {"resultType":"complete","_meta":{subscriptionId}}: no more notifications
 * follow, and none was lost. */
static void put_end_result(struct call *c)
{
    struct mo_jw w = mo_ep_begin_result(c->ep, c->id);

    mo_jw_member_cstr(&w, "resultType", "complete");
    mo_ep_put_sub(&w, c->id);
    mo_jw_end_all(&w);
}

/* On stdio the specification requires this as well (cancellation page). */
static void send_cancelled(struct call *c)
{
    struct mo_jw w = mo_ep_begin_note(c->ep, "notifications/cancelled");

    mo_jw_member_raw(&w, "requestId", mo_json_text(c->id));
    mo_jw_member_cstr(&w, "reason", "the server ends");
    mo_jw_end_all(&w);
    mo_ep_note_scratch(c->ep, c->way);
}

void mo_ep_listen_end(struct call *c, bool on_line)
{
    if (c->state != CALL_LISTENING || !c->filter || !c->way) {
        mo_ep_call_cancel(c);
        return;
    }
    if (on_line)
        send_cancelled(c);
    put_end_result(c);
    mo_ep_call_answer(c, 200);
}
