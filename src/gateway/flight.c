#include "gateway/flight.h"

#include <stdio.h>

#include "gateway/four.h"
#include "gateway/pulse.h"
#include "mcp/mirror.h"

static const struct mo_span nothing = {NULL, 0};

/* --- life ---------------------------------------------------------------- */

static void leave_slot(struct flight *f)
{
    struct slot *s = f->slot;

    if (f->child)
        mo_child_let_go(f->child);
    f->child = NULL;
    f->slot = NULL;
    mo_list_del(&f->snode);
    if (s)
        gw_slot_check(s);
}

static void flight_free(struct flight *f)
{
    MO_BUG_ON(f->call || f->task || f->wishing || f->down);
    flight_drop_questions(f, "the call is over");
    leave_slot(f);
    if (f->id[0])
        (void)mo_map_del(&f->g->parked, mo_span_cstr(f->id));
    mo_list_del(&f->node);
    mo_timer_stop(f->g->loop, &f->expiry);
    mo_later_cancel(&f->later);
    mo_buf_fini(&f->outcome);
    mo_buf_fini(&f->progress);
    mo_buf_fini(&f->route);
    mo_free(f);
}

/* Nobody will come for it. */
static void on_expiry(struct mo_timer *t)
{
    flight_cancel(mo_container_of(t, struct flight, expiry),
                  "the client did not come back");
}

/* Something is to be done outside of the callback that made it so. */
static void on_later(struct mo_later *d)
{
    struct flight *f = mo_container_of(d, struct flight, later);

    if (f->how == DOWN_WAITS && f->over)
        (void)mo_endpoint_wake(f->ep, mo_span_cstr(f->id));
    else if (f->how == DOWN_HELD && !f->over)
        flight_put_questions(f);
}

static struct flight *flight_new(struct mo_gateway *g, struct mo_ep_call *c,
                                 struct slot *s)
{
    struct flight *f = mo_new(struct flight);

    if (!f)
        return NULL;
    f->g = g;
    f->slot = s;
    f->ep = mo_ep_call_endpoint(c);
    f->peer = c->peer;
    cross_who(c->peer, c->caller, f->who);
    mo_list_init(&f->questions);
    mo_later_init(&f->later, on_later);
    mo_timer_init(&f->expiry, on_expiry);
    mo_buf_init(&f->outcome, GW_TEXT_MAX);
    mo_buf_init(&f->progress, GW_TEXT_MAX);
    mo_buf_init(&f->route, GW_TEXT_MAX);
    mo_list_push(&g->flights, &f->node);
    mo_list_push(&s->flights, &f->snode);
    flight_attach(f, c);
    return f;
}

/* --- the client ---------------------------------------------------------- */

static void on_canceled(struct mo_ep_call *c)
{
    struct flight *f = c->data;

    f->down = NULL;
    f->how = DOWN_GONE;
    mo_ep_call_error(c, MO_RPC_INTERNAL, "cancelled", nothing);
    flight_cancel(f, "the client cancelled it");
}

void flight_attach(struct flight *f, struct mo_ep_call *c)
{
    f->down = c;
    f->how = DOWN_HELD;
    c->data = f;
    c->canceled = on_canceled;
    mo_timer_stop(f->g->loop, &f->expiry);
}

void flight_cancel(struct flight *f, const char *why)
{
    MO_BUG_ON(f->down);
    f->how = DOWN_GONE;
    flight_drop_questions(f, why);
    if (f->wishing) {
        f->wishing = false;
        mo_up_unwant(&f->wish);
    }
    if (f->call)
        mo_call_cancel(f->call, why);
    else if (f->task)
        mo_task_cancel(f->task);
    else
        flight_free(f);
}

void flight_abandoned(void *ctx, struct mo_span state)
{
    struct mo_gateway *g = ctx;
    struct flight *f = mo_map_get(&g->parked, state);

    if (!f || f->how != DOWN_WAITS)
        return;
    f->down = NULL;
    flight_cancel(f, "the client cancelled it");
}

void flight_drop_all(struct mo_gateway *g)
{
    while (!mo_list_empty(&g->flights)) {
        struct flight *f = mo_list_first(&g->flights, struct flight, node);

        flight_cancel(f, "the gateway ends");
    }
}

/* --- the outcome --------------------------------------------------------- */

/* An error of ours: what went wrong with which server, and whether the call
 * may have been done. */
static void put_failure(struct flight *f, const char *why, bool sent)
{
    const struct slot *s = f->slot;
    struct mo_jw w;

    mo_buf_reset(&f->outcome);
    mo_jw_init(&w, &f->outcome);
    mo_jw_obj(&w);
    mo_jw_key(&w, "code");
    mo_jw_i64(&w, MO_RPC_INTERNAL);
    mo_jw_key(&w, "message");
    mo_jw_cstr(&w, why);
    mo_jw_key(&w, "data");
    mo_jw_obj(&w);
    if (s && s->up) {
        mo_jw_key(&w, "server");
        mo_jw_cstr(&w, mo_up_server(s->up)->name);
    }
    mo_jw_key(&w, "outcome");
    mo_jw_cstr(&w, sent ? "unknown" : "not sent");
    mo_jw_end(&w);
    mo_jw_end(&w);
    f->is_error = true;
}

static void give(const struct flight *f, struct mo_ep_call *c,
                 struct mo_json result)
{
    if (f->route.len)
        four_result(c, result, mo_buf_view(&f->route));
    else
        mo_ep_call_result(c, mo_json_text(result));
}

void flight_deliver(struct flight *f)
{
    struct mo_ep_call *c = f->down;
    struct mo_json v = {f->outcome.p, f->outcome.len};

    f->down = NULL;
    f->how = DOWN_GONE;
    if (mo_buf_err(&f->outcome))
        mo_ep_call_error(c, MO_RPC_INTERNAL, "out of memory", nothing);
    else if (f->is_error)
        mo_ep_call_error_raw(c, v);
    else
        give(f, c, v);
    flight_free(f);
}

/* The outcome is in the buffer. */
static void settle(struct flight *f)
{
    f->over = true;
    flight_drop_questions(f, "the call is over");
    leave_slot(f);
    if (f->how == DOWN_HELD)
        flight_deliver(f);
    else if (f->how == DOWN_WAITS)
        mo_loop_defer(f->g->loop, &f->later);
    else if (f->how == DOWN_GONE)
        flight_free(f);
}

static void fail(struct flight *f, const char *why, bool sent)
{
    put_failure(f, why, sent);
    settle(f);
}

/* The usual case: the client waits, the bytes go straight through. */
static void hand_over(struct flight *f, const struct mo_reply *r)
{
    struct mo_ep_call *c = f->down;

    f->down = NULL;
    f->how = DOWN_GONE;
    if (r->error.p)
        mo_ep_call_error_raw(c, r->error);
    else
        give(f, c, r->result);
    flight_free(f);
}

static void no_answer(struct flight *f, const struct mo_err *why)
{
    const char *name =
        f->slot && f->slot->up ? mo_up_server(f->slot->up)->name : "the server";
    char text[sizeof(why->msg) + 160];

    (void)snprintf(text, sizeof(text),
                   "%s: %s; it is not known whether the call was done", name,
                   why->msg);
    fail(f, text, true);
}

/* What a call says of its server. */
static void tell_breaker(struct flight *f, const struct mo_reply *r)
{
    if (!f->child)
        return;
    if (!r->err)
        mo_child_told(f->child, false);
    else if (r->err->code == MO_ETIMEOUT || r->err->code == MO_EPROTO)
        mo_child_fault(f->child, r->err);
    if (r->err && r->err->code == MO_ETIMEOUT)
        mo_pulse(f->child);
}

/* Its headers did not fit: the schema that we know is old. */
static void look_again(struct flight *f)
{
    struct kid *k = f->slot && f->child ? gw_kid(f->slot, f->child) : NULL;

    if (k)
        refresh_kid(k, 1u << MO_CAT_TOOLS);
}

static void finish(struct flight *f, const struct mo_reply *r)
{
    tell_breaker(f, r);
    if (r->error.p && r->code == MO_MCP_HEADER_MISMATCH)
        look_again(f);
    if (r->err) {
        no_answer(f, r->err);
    } else if (f->how == DOWN_HELD && mo_list_empty(&f->questions)) {
        hand_over(f, r);
    } else {
        f->is_error = r->error.p != NULL;
        mo_buf_reset(&f->outcome);
        (void)mo_buf_span(&f->outcome,
                          mo_json_text(f->is_error ? r->error : r->result));
        settle(f);
    }
}

/* --- a promise instead of an answer -------------------------------------- */

static void on_task_done(void *ctx, const struct mo_reply *r)
{
    struct flight *f = ctx;

    f->task = NULL;
    finish(f, r);
}

/* The client speaks of tasks itself: it gets the task, under a name of ours. */
static bool pass_task(struct flight *f, struct mo_json result)
{
    struct mo_conn *conn = mo_child_conn(f->child);
    struct mo_ep_call *c = f->how == DOWN_HELD ? f->down : NULL;

    if (!c || !mo_conn_info(conn)->modern || !mo_mcp_is_modern(c->version) ||
        !mo_ep_call_has_ext(c, MO_MCP_EXT_TASKS))
        return false;
    mo_buf_reset(&f->outcome);
    (void)cross_task_result(f->g, c, f->slot, result, &f->outcome);
    settle(f);
    return true;
}

static void watch_task(struct flight *f, struct mo_json result)
{
    struct mo_task_opts o = {
        .on_input = flight_task_asks,
        .done = on_task_done,
        .ctx = f,
    };
    struct mo_err e;

    if (mo_task_watch(mo_child_conn(f->child), result, &o, &f->task, &e) < 0)
        no_answer(f, &e);
    else if (f->how == DOWN_GONE)
        mo_task_cancel(f->task);
}

/* Results may be long: they are only looked into if that can be. */
static bool is_promise(const struct flight *f, const struct mo_conn *conn,
                       const struct mo_reply *r)
{
    return (r->task || f->as_task) && mo_task_is(conn, r->result);
}

static void on_done(void *ctx, const struct mo_reply *r)
{
    struct flight *f = ctx;
    struct mo_conn *conn = f->child ? mo_child_conn(f->child) : NULL;

    f->call = NULL;
    if (!r->result.p || !conn) {
        finish(f, r);
    } else if (f->down && f->how == DOWN_HELD &&
               cross_is_task_method(f->down)) {
        mo_buf_reset(&f->outcome);
        (void)cross_task_result(f->g, f->down, f->slot, r->result, &f->outcome);
        tell_breaker(f, r);
        settle(f);
    } else if (!is_promise(f, conn, r)) {
        finish(f, r);
    } else if (!pass_task(f, r->result)) {
        watch_task(f, r->result);
    }
}

/* --- up ------------------------------------------------------------------ */

static void on_progress(void *ctx, struct mo_json params)
{
    struct flight *f = ctx;

    if (f->down) {
        mo_ep_call_progress_raw(f->down, params);
        return;
    }
    mo_buf_reset(&f->progress);
    (void)mo_buf_span(&f->progress, mo_json_text(params));
}

void flight_hold(struct flight *f, bool on)
{
    if (f->call)
        mo_call_hold(f->call, on);
}

/* Headers that repeat arguments, for a modern server reached by HTTP. */
static int mirror(struct flight *f, const struct target *t,
                  const struct mo_conn *conn, struct mo_mirror *m,
                  struct mo_err *e)
{
    struct mo_link *k = mo_conn_link(conn);
    struct mo_json schema;

    if (!k || !mo_link_is_http(k) || !mo_conn_info(conn)->modern)
        return 0;
    schema = mo_json_get(t->item, "inputSchema");
    if (!schema.p)
        return 0;
    return mo_mirror_init(
        m, schema, t->arguments.p ? t->arguments : f->down->arguments, e);
}

static int send(struct flight *f, const struct target *t, struct mo_span params,
                const struct mo_mirror *m, struct mo_err *e)
{
    struct mo_ep_call *c = f->down;
    struct mo_span caps = mo_json_text(c->caps);
    char method[64];
    struct mo_call_opts o = {
        .idle_ms = mo_up_server(f->slot->up)->call_ms,
        .name = t->own,
        .params = m->v,
        .nparams = m->n,
        .log_level = mo_ep_call_log_level(c),
        .capabilities = mo_mcp_is_modern(c->version)
                            ? (caps.n ? caps : MO_SPAN("{}"))
                            : nothing,
        .on_progress = mo_ep_call_wants_progress(c) ? on_progress : NULL,
        .done = on_done,
        .ctx = f,
    };

    (void)snprintf(method, sizeof(method), "%.*s", (int)c->method.n,
                   c->method.p);
    f->call = mo_conn_request(mo_child_conn(f->child), method, params, &o, e);
    if (!f->call)
        return e->code;
    f->number = mo_call_number(f->call);
    return 0;
}

static int forward(struct flight *f, const struct target *t, struct mo_err *e)
{
    struct mo_conn *conn = mo_child_conn(f->child);
    struct mo_mirror m = {.n = 0};
    struct mo_span params;
    struct mo_buf b;
    int rc;

    if (!conn)
        return mo_fail(e, MO_ECLOSED, "the server has gone");
    mo_arena_init(&m.a, 0);
    mo_buf_init(&b, GW_TEXT_MAX);
    f->as_task = cross_is_task(t, conn);
    rc = cross_params(f->down, t, f->as_task, &b, &params);
    if (rc == 0 && t->arguments.p) {
        mo_buf_reset(&f->route);
        rc = four_route(t, &f->route);
    }
    if (rc < 0)
        (void)mo_fail(e, rc, "the request cannot be passed on");
    else
        rc = mirror(f, t, conn, &m, e);
    if (rc == 0)
        rc = send(f, t, params, &m, e);
    mo_mirror_fini(&m);
    mo_buf_fini(&b);
    return rc;
}

static void wish(struct flight *f);

static void on_ready(struct mo_up_wish *w, struct mo_child *c,
                     const struct mo_err *why)
{
    struct flight *f = mo_container_of(w, struct flight, wish);
    struct target t;
    struct mo_err e;

    f->wishing = false;
    f->child = c;
    if (!c) {
        fail(f, why->msg, false);
        return;
    }
    if (cross_target(f->g, f->down, &t) < 0 || t.slot != f->slot) {
        fail(f, "it is not offered any more", false);
        return;
    }
    if (forward(f, &t, &e) == 0)
        return;
    if (e.code != MO_ECLOSED || f->again) {
        fail(f, e.msg, false);
        return;
    }
    /* Nothing was sent: another child may have it. */
    f->again = true;
    mo_child_let_go(f->child);
    f->child = NULL;
    wish(f);
}

static void wish(struct flight *f)
{
    struct mo_span caps = mo_json_text(f->down->caps);

    f->wishing = true;
    f->wish = (struct mo_up_wish){.ready = on_ready};
    mo_up_want(f->slot->up, mo_span_cstr(f->who), caps.n ? caps : MO_SPAN("{}"),
               &f->wish);
}

void flight_start(struct mo_gateway *g, struct mo_ep_call *c,
                  const struct target *t)
{
    struct flight *f = flight_new(g, c, t->slot);

    if (!f)
        mo_ep_call_error(c, MO_RPC_INTERNAL, "out of memory", nothing);
    else
        wish(f);
}

/* --- whose it is --------------------------------------------------------- */

/* Of one connection, or the same flight. */
static bool is_one(const struct flight *a, const struct flight *b)
{
    return a == b || (a->peer && a->peer == b->peer);
}

struct flight *flight_of(struct slot *s, const struct mo_child *c,
                         uint64_t number)
{
    bool shared = !mo_child_who(c).n;
    struct flight *newest = NULL;

    mo_list_each (n, &s->flights) {
        struct flight *f = mo_container_of(n, struct flight, snode);

        if (f->child == c && number && f->number == number)
            return f;
    }
    mo_list_each (n, &s->flights) {
        struct flight *f = mo_container_of(n, struct flight, snode);

        if (f->child != c)
            continue;
        if (newest && shared && !is_one(newest, f))
            return NULL;
        newest = f;
    }
    return newest;
}

/* Of a child that serves one connection or session: to that one. A caller
 * without any is not there. */
static bool log_to_session(struct kid *k, struct mo_json params)
{
    struct mo_span who = mo_child_who(k->child);
    uint64_t peer = cross_peer(who);

    if (!peer)
        return false;
    mo_list_each_safe (n, &k->slot->g->eps)
        mo_endpoint_log(mo_container_of(n, struct gw_ep, node)->ep, peer,
                        params);
    return true;
}

void flight_log(struct kid *k, uint64_t stream_of, struct mo_json params)
{
    struct flight *f = flight_of(k->slot, k->child, stream_of);

    if (f && f->down)
        mo_ep_call_log_raw(f->down, params);
    else if (f || !log_to_session(k, params))
        k->slot->g->lost_logs++;
}
