#include "gateway/call/forwarded_call.h"

#include "gateway/call/call_approval.h"
#include "gateway/call/call_budget.h"
#include "gateway/call/result_limit.h"
#include "gateway/upstream/server_overrides.h"
#include "mcp/client/mirror.h"

static const struct mo_span nothing = {NULL, 0};

/* --- life ---------------------------------------------------------------- */

void mo_forward_leave_server(struct forwarded_call *f)
{
    struct server_slot *s = f->slot;

    if (f->child)
        mo_child_release_call(f->child);
    f->child = NULL;
    f->slot = NULL;
    mo_list_del(&f->slot_node);
    if (s)
        mo_gw_slot_check(s);
}

void mo_forward_free(struct forwarded_call *f)
{
    MO_BUG_ON(f->call || f->task || f->requesting || f->down);
    mo_forward_drop_questions(f, "the call has ended");
    if (f->script)
        f->g->script.end(f);
    mo_call_trace_free(f);
    mo_call_approval_free(f);
    mo_budget_cancel(&f->budget);
    mo_forward_leave_server(f);
    if (f->id[0])
        (void)mo_map_del(&f->g->parked, mo_span_cstr(f->id));
    mo_list_del(&f->node);
    mo_timer_stop(f->g->loop, &f->gather);
    mo_timer_stop(f->g->loop, &f->expiry);
    mo_later_cancel(&f->later);
    mo_free(mo_take_ptr(&f->left_server));
    mo_buf_fini(&f->outcome);
    mo_buf_fini(&f->progress);
    mo_buf_fini(&f->route);
    mo_buf_fini(&f->lacked);
    mo_buf_fini(&f->edited);
    mo_forward_task_free(f);
    mo_failover_fini(&f->failover);
    mo_pool_give(&f->g->spare_calls, f);
}

/* The client did not return in time. */
static void on_expiry(struct mo_timer *t)
{
    mo_forward_cancel(mo_container_of(t, struct forwarded_call, expiry),
                      "the client did not return in time");
}

/* Sends questions or wakes the client, outside of the callback that caused
 * it. */
static void on_deferred(struct mo_later *d)
{
    struct forwarded_call *f = mo_container_of(d, struct forwarded_call, later);

    if (f->client == CLIENT_ASKED && f->ended)
        (void)mo_endpoint_wake(f->ep, mo_span_cstr(f->id));
    else if (f->client == CLIENT_WAITING && !f->ended)
        mo_forward_send_questions(f);
}

static void on_gather_timeout(struct mo_timer *t)
{
    on_deferred(&mo_container_of(t, struct forwarded_call, gather)->later);
}

static struct forwarded_call *forwarded_call_new(struct mo_gateway *g,
                                                 struct mo_ep_call *c,
                                                 struct server_slot *s)
{
    struct forwarded_call *f = mo_pool_take(&g->spare_calls, sizeof(*f));

    if (!f)
        return NULL;
    f->g = g;
    f->slot = s;
    f->ep = mo_ep_call_endpoint(c);
    f->peer = c->peer;
    mo_rewrite_client(c, f->who);
    f->limit.who = f->who;
    mo_list_init(&f->questions);
    mo_later_init(&f->later, on_deferred);
    mo_timer_init(&f->gather, on_gather_timeout);
    mo_timer_init(&f->expiry, on_expiry);
    mo_buf_init(&f->outcome, GW_TEXT_MAX);
    mo_buf_init(&f->progress, GW_TEXT_MAX);
    mo_buf_init(&f->route, GW_TEXT_MAX);
    mo_buf_init(&f->lacked, GW_TEXT_MAX);
    mo_list_push(&g->calls, &f->node);
    mo_list_push(&s->calls, &f->slot_node);
    mo_forward_attach(f, c);
    return f;
}

/* --- client -------------------------------------------------------------- */

static void on_canceled(struct mo_ep_call *c)
{
    struct forwarded_call *f = c->data;

    f->down = NULL;
    f->client = CLIENT_GONE;
    mo_ep_call_error(c, MO_RPC_INTERNAL, "cancelled", nothing);
    mo_forward_cancel(f, "the client cancelled it");
}

void mo_forward_attach(struct forwarded_call *f, struct mo_ep_call *c)
{
    f->down = c;
    f->client = CLIENT_WAITING;
    c->data = f;
    c->canceled = on_canceled;
    mo_timer_stop(f->g->loop, &f->expiry);
}

void mo_forward_cancel(struct forwarded_call *f, const char *why)
{
    MO_BUG_ON(f->down);
    f->client = CLIENT_GONE;
    mo_forward_drop_questions(f, why);
    if (f->requesting) {
        f->requesting = false;
        mo_upstream_cancel_request(&f->child_request);
    }
    if (f->call)
        mo_call_cancel(f->call, why);
    else if (f->task)
        mo_task_cancel(f->task);
    else
        mo_forward_free(f);
}

void mo_forward_abandoned(void *ctx, struct mo_span state)
{
    struct mo_gateway *g = ((struct mo_gw_view *)ctx)->g;
    struct forwarded_call *f = mo_map_get(&g->parked, state);

    if (!f || f->client != CLIENT_ASKED)
        return;
    f->down = NULL;
    mo_forward_cancel(f, "the client cancelled it");
}

void mo_forward_drop_all(struct mo_gateway *g)
{
    while (!mo_list_empty(&g->calls)) {
        struct forwarded_call *f =
            mo_list_first(&g->calls, struct forwarded_call, node);

        mo_forward_cancel(f, "the gateway is shutting down");
    }
}

void mo_forward_drop_parked(struct mo_gateway *g, const struct mo_endpoint *ep)
{
    mo_list_each_entry_safe (f, &g->calls, struct forwarded_call, node) {
        if (f->ep == ep &&
            (f->client == CLIENT_AWAY || f->client == CLIENT_HAS_TASK))
            mo_forward_cancel(f, "its endpoint was closed");
    }
}

void mo_forward_end_all(const struct mo_gw_view *v, const char *why)
{
    mo_list_each_entry_safe (f, &v->g->calls, struct forwarded_call, node) {
        struct mo_ep_call *c = f->client == CLIENT_WAITING ? f->down : NULL;

        if (!c || c->scope != v)
            continue;
        f->down = NULL;
        f->client = CLIENT_GONE;
        c->canceled = NULL;
        mo_ep_call_error(c, MO_RPC_INTERNAL, why, nothing);
        mo_forward_cancel(f, why);
    }
}

/* --- server -------------------------------------------------------------- */

static void on_progress(void *ctx, struct mo_json params)
{
    struct forwarded_call *f = ctx;

    if (f->down) {
        mo_ep_call_progress_raw(f->down, params);
        return;
    }
    (void)mo_buf_set(&f->progress, mo_json_text(params));
}

void mo_forward_hold(struct forwarded_call *f, bool on)
{
    if (f->call)
        mo_call_hold(f->call, on);
}

bool mo_forward_has_headers(const struct mo_conn *conn)
{
    struct mo_link *k = conn ? mo_conn_link(conn) : NULL;

    return k && mo_link_is_http(k) && mo_conn_info(conn)->modern;
}

/* Makes the headers that repeat arguments. */
static int mirror_arguments(struct forwarded_call *f,
                            const struct call_target *t,
                            const struct mo_conn *conn, struct mo_mirror *m,
                            struct mo_err *e)
{
    struct mo_json schema;

    if (!mo_forward_has_headers(conn))
        return 0;
    schema = mo_json_get(t->item, "inputSchema");
    if (!schema.p)
        return 0;
    return mo_mirror_init(m, schema, mo_rewrite_args(f->down, t), e);
}

static bool is_script(const struct forwarded_call *f)
{
    return f->slot && f->slot->no == SLOT_SCRIPTS;
}

/* Records the tool's limits for when the result comes. */
static void note_tool(struct forwarded_call *f, const struct call_target *t)
{
    f->limit.by_execute = t->arguments.p != NULL;
    if (!mo_span_is(f->down->method, "tools/call"))
        return;
    f->limit.max =
        mo_overrides_result_bytes(t->slot->overrides, t->own,
                                  f->limit.by_execute ? RESULT_EXECUTE_MAX : 0);
    f->limit.has_output_schema = !f->limit.by_execute && t->has_output_schema;
    f->latency = mo_latency_row(&f->g->latency,
                                mo_upstream_server(t->slot->up)->name, t->own);
}

static void copy_method(char *to, size_t size, struct mo_span method)
{
    size_t n = method.n < size ? method.n : size - 1;

    if (n)
        memcpy(to, method.p, n);
    to[n] = '\0';
}

static int send_request(struct forwarded_call *f, const struct call_target *t,
                        struct mo_span params, const struct mo_mirror *m,
                        struct mo_err *e)
{
    struct mo_ep_call *c = f->down;
    struct mo_span caps = mo_json_text(c->caps);
    char method[64];
    struct mo_call_opts o = {
        .idle_ms = mo_failover_time_left(f, t),
        .name = t->own,
        .params = m->v,
        .nparams = m->n,
        .log_level = mo_ep_call_log_level(c),
        .capabilities = mo_mcp_is_modern(c->version)
                            ? (caps.n ? caps : MO_SPAN("{}"))
                            : nothing,
        .trace = c->trace,
        .on_progress = mo_ep_call_wants_progress(c) ? on_progress : NULL,
        .done = mo_forward_done,
        .ctx = f,
    };

    copy_method(method, sizeof(method), c->method);
    if (is_script(f)) {
        o.idle_ms = f->g->script.time(f, t);
        o.hard_ms = MO_CALL_FOREVER; /* while its calls wait for a person */
        o.on_progress = on_progress;
        o.on_script = f->g->script.frame;
    }
    if (c->span)
        mo_call_trace_send(f, t, &o);
    f->call = mo_conn_request(mo_child_conn(f->child), method, params, &o, e);
    if (!f->call)
        return e->code;
    f->number = mo_call_number(f->call);
    f->sent_ns = mo_now_ns();
    return 0;
}

static int forward_to_child(struct forwarded_call *f,
                            const struct call_target *t, struct mo_err *e)
{
    struct mo_conn *conn = mo_child_conn(f->child);
    struct mo_mirror m = {.n = 0};
    struct mo_span params = nothing;
    mo_autobuf struct mo_buf b = {.max = GW_TEXT_MAX};
    int rc;

    if (!conn)
        return mo_fail(e, MO_ECLOSED, "the connection to the server is closed");
    mo_arena_init(&m.a, 0);
    f->as_task = mo_rewrite_is_task(t, conn);
    if (is_script(f))
        rc = f->g->script.begin(f, t, &b);
    else
        rc = mo_rewrite_params(f->down, t, f->as_task, &b, &params);
    if (is_script(f))
        params = mo_buf_view(&b);
    if (rc == 0)
        rc = mo_failover_route(f, t);
    if (rc < 0)
        (void)mo_fail(e, rc, "the request cannot be forwarded");
    else
        rc = mirror_arguments(f, t, conn, &m, e);
    if (rc == 0) {
        note_tool(f, t);
        rc = send_request(f, t, params, &m, e);
    }
    mo_mirror_fini(&m);
    return rc;
}

static void request_child(struct forwarded_call *f);

void mo_forward_restart(struct forwarded_call *f)
{
    struct mo_gateway *g = f->g;
    struct mo_ep_call *c = f->down;

    mo_call_approval_done(f, MO_GW_ERROR, 0);
    f->down = NULL;
    f->client = CLIENT_GONE;
    c->data = NULL;
    c->canceled = NULL;
    mo_forward_free(f);
    g->restart(g, c);
}

static void on_child_ready(struct mo_child_request *w, struct mo_child *c,
                           const struct mo_err *why)
{
    struct forwarded_call *f =
        mo_container_of(w, struct forwarded_call, child_request);
    struct call_target t;
    struct mo_err e;
    int rc;

    f->requesting = false;
    f->child = c;
    if (f->asked_ns)
        mo_call_trace_child(f, c ? NULL : why);
    if (!c) {
        if (why->code == MO_EPOLICY && !f->failover.sent &&
            !mo_connect_has(f->g, f->down, f->slot)) {
            mo_forward_restart(f); /* which asks the person to connect */
            return;
        }
        if (!mo_failover_retry(f, FAILOVER_NO_CHILD, why))
            mo_forward_fail(f, why->msg, false);
        return;
    }
    rc = mo_failover_target(f, &t);
    if (rc == MO_EBUSY)
        return;
    if (rc < 0 && !f->failover.sent) {
        mo_forward_restart(f);
        return;
    }
    if (rc < 0) {
        mo_forward_fail(f, "the called item is not offered any more", true);
        return;
    }
    if (!mo_call_budget_again(f, &t) || !mo_call_approval_again(f, &t))
        return;
    if (forward_to_child(f, &t, &e) == 0)
        return;
    if (e.code == MO_ECLOSED) /* else the retry could be given the same one */
        mo_child_lost(f->child);
    if (e.code != MO_ECLOSED || !mo_failover_retry(f, FAILOVER_UNSENT, &e))
        mo_forward_fail(f, e.msg, false);
}

static void request_child(struct forwarded_call *f)
{
    const char *who = f->who;
    char key[MO_GW_WHO_MAX];

    if (mo_upstream_server(f->slot->up)->per_person) {
        mo_rewrite_person(f->down->person, key);
        who = key;
    }
    if (is_script(f)) { /* a child of its own */
        mo_random_token(key, FORWARD_TOKEN);
        who = key;
    }
    f->requesting = true;
    if (f->down->span)
        f->asked_ns = mo_now_ns();
    f->child_request =
        (struct mo_child_request){.ready = on_child_ready, .counts = true};
    mo_upstream_request_child(f->slot->up, mo_span_cstr(who),
                              mo_rewrite_caps(f->g, f->down),
                              &f->child_request);
}

void mo_forward_go(struct forwarded_call *f)
{
    if (f->slot->up)
        request_child(f);
    else
        mo_forward_fail(f, "its server was removed from the configuration",
                        false);
}

bool mo_forward_is_awaited(struct forwarded_call *f)
{
    bool is = f->client == CLIENT_WAITING;

    if (!is)
        mo_forward_fail(f, "the client was asked before the call was sent",
                        false);
    return is;
}

void mo_forward_resend(struct forwarded_call *f)
{
    struct call_target t;
    struct mo_err e;
    int rc;

    f->awaits_tools = false;
    if (!mo_forward_is_awaited(f))
        return;
    rc = mo_failover_target(f, &t);
    if (rc == MO_EBUSY)
        return;
    if (rc < 0)
        mo_forward_fail(f, "the called item is not offered any more", false);
    else if (mo_call_approval_again(f, &t) && forward_to_child(f, &t, &e) < 0)
        mo_forward_fail(f, e.msg, false);
}

void mo_forward_tools_listed(struct gw_child *k)
{
    mo_list_each_entry_safe (f, &k->slot->calls, struct forwarded_call,
                             slot_node) {
        if (f->awaits_tools && f->child == k->child)
            mo_forward_resend(f);
    }
}

void mo_forward_move(struct forwarded_call *f, struct server_slot *to)
{
    mo_forward_leave_server(f);
    f->slot = to;
    mo_list_push(&to->calls, &f->slot_node);
    request_child(f);
}

void mo_forward_start(struct mo_gateway *g, struct mo_ep_call *c,
                      const struct call_target *t)
{
    struct forwarded_call *f;

    if (mo_upstream_server(t->slot->up)->per_person &&
        !mo_connect_ready(g, c, t->slot))
        return;
    f = forwarded_call_new(g, c, t->slot);
    if (f)
        f->prefixed = mo_rewrite_is_prefixed(c, t);
    if (!f)
        mo_ep_call_error(c, MO_RPC_INTERNAL, "out of memory", nothing);
    else if (mo_call_budget_begin(f, t) && mo_call_approval_begin(f, t))
        request_child(f);
}
