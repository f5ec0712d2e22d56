/* call.c - the calls in flight.
 *
 *   in flight (in a bucket, id != 0) --answer--> done
 *      |  input_required                ^
 *      v                                | retry under a new id
 *   parked (id 0, asks open) -----------+
 *   either --timeout, cancel, link lost--> done with err
 *
 * A cancelled call leaves its bucket at once, so that an answer that arrives
 * now counts as late; its done follows from the loop (ended, later). */
#include "mcp/client/conn_priv.h"

#define REASON_MAX 1024                  /* bytes of a reason that are sent */
#define KEEP_MAX   ((size_t)1024 * 1024) /* bytes of headers kept for a retry */

static const char *const may_ask[] = {"tools/call", "prompts/get",
                                      "resources/read"};

/* --- the table ----------------------------------------------------------- */

static void park_call(struct mo_call *k)
{
    mo_list_del(&k->node);
    k->id = 0;
    mo_list_push(&k->c->parked, &k->node);
}

struct mo_call *mo_conn_call_find(struct mo_conn *c, uint64_t id)
{
    mo_list_each_entry (k, &c->calls[id % CALL_BUCKETS], struct mo_call, node) {
        if (k->id == id)
            return k;
    }
    return NULL;
}

/* The call in flight, if there is exactly one. */
struct mo_call *mo_conn_call_only(struct mo_conn *c)
{
    struct mo_call *k = NULL;

    if (c->ncalls != 1)
        return NULL;
    for (size_t i = 0; i < CALL_BUCKETS && !k; i++)
        k = mo_list_first(&c->calls[i], struct mo_call, node);
    return k && !k->internal ? k : NULL;
}

static void remember_given_up(struct mo_conn *c, uint64_t id)
{
    c->given_up[c->ngiven++ % GIVEN_UP_MAX] = id;
}

static bool was_given_up(const struct mo_conn *c, uint64_t id)
{
    for (size_t i = 0; i < GIVEN_UP_MAX; i++) {
        if (c->given_up[i] == id)
            return true;
    }
    return false;
}

/* --- birth and death ----------------------------------------------------- */

static void stop_timers(struct mo_call *k)
{
    mo_timer_stop(k->c->loop, &k->idle);
    mo_timer_stop(k->c->loop, &k->hard);
}

static void call_free(struct mo_call *k)
{
    stop_timers(k);
    mo_later_cancel(&k->later);
    mo_list_del(&k->node);
    mo_conn_ask_orphan(&k->asks);
    mo_buf_fini(&k->params);
    mo_buf_fini(&k->input);
    mo_buf_fini(&k->state);
    mo_arena_fini(&k->keep);
    k->c->ncalls--;
    mo_free(k->method);
    mo_pool_give(&k->c->spare, k);
}

/* done runs while the call is out of the table but not freed yet. */
static void call_end(struct mo_call *k, const struct mo_reply *r)
{
    mo_list_del(&k->node);
    k->ended = true;
    stop_timers(k);
    k->o.done(k->o.ctx, r);
    call_free(k);
}

static void call_fail(struct mo_call *k, const struct mo_err *why)
{
    struct mo_reply r = {.err = why};

    call_end(k, &r);
}

static void on_later(struct mo_later *d)
{
    struct mo_call *k = mo_container_of(d, struct mo_call, later);
    struct mo_err why = k->why;

    call_fail(k, &why);
}

void mo_conn_call_end_later(struct mo_call *k, const struct mo_err *why)
{
    if (k->ended)
        return;
    k->ended = true;
    k->why = *why;
    mo_conn_ask_orphan(&k->asks);
    park_call(k);
    stop_timers(k);
    mo_loop_defer(k->c->loop, &k->later);
}

static void end_calls(struct mo_list *calls, const struct mo_err *why)
{
    mo_list_drain (k, calls, struct mo_call, node) {
        struct mo_err own = k->why;

        call_fail(k, k->ended ? &own : why);
    }
}

void mo_conn_call_end_all(struct mo_conn *c, const struct mo_err *why)
{
    for (size_t i = 0; i < CALL_BUCKETS; i++)
        end_calls(&c->calls[i], why);
    end_calls(&c->parked, why);
}

/* Free the handshake's call after its link is gone, without calling done. */
void mo_conn_call_drop_internal(struct mo_conn *c)
{
    for (size_t i = 0; i < CALL_BUCKETS; i++) {
        mo_list_each_safe (it, &c->calls[i])
            call_free(mo_container_of(it, struct mo_call, node));
    }
    mo_list_each_safe (it, &c->parked)
        call_free(mo_container_of(it, struct mo_call, node));
}

/* --- giving up ----------------------------------------------------------- */

static void notify_cancelled(struct mo_call *k, const char *reason)
{
    struct mo_conn *c = k->c;
    mo_autobuf struct mo_buf b = {.max = (size_t)8 * REASON_MAX};
    struct mo_jw w;

    if (k->id == 0 || k->internal)
        return;
    remember_given_up(c, k->id);
    if (!c->link)
        return;
    mo_link_forget(c->link, k->id);
    if (c->modern && mo_link_is_http(c->link))
        return;
    w = mo_jw_object(&b);
    mo_jw_member_u64(&w, "requestId", k->id);
    if (reason)
        mo_jw_member(&w, "reason",
                     mo_span_head(mo_span_cstr(reason), REASON_MAX));
    mo_jw_end(&w);
    if (!mo_buf_err(&b)) /* best effort */
        (void)mo_conn_notify(c, "notifications/cancelled", mo_buf_view(&b));
}

static void time_out_call(struct mo_call *k, const char *what)
{
    if (!k->internal)
        notify_cancelled(k, "timeout");
    else if (k->id)
        remember_given_up(k->c, k->id);
    call_fail(k, mo_error(MO_ETIMEOUT, "%s: %s", k->method, what));
}

static void on_idle(struct mo_timer *t)
{
    time_out_call(mo_container_of(t, struct mo_call, idle), "no sign of life");
}

static void on_hard(struct mo_timer *t)
{
    struct mo_call *k = mo_container_of(t, struct mo_call, hard);
    uint64_t more = k->internal ? mo_conn_more_time(k->c, k->o.hard_ms) : 0;

    if (more)
        mo_timer_start(k->c->loop, t, more);
    else
        time_out_call(k, "no answer in time");
}

void mo_call_cancel(struct mo_call *k, const char *reason)
{
    if (k->ended)
        return;
    notify_cancelled(k, reason);
    mo_conn_call_end_later(k,
                           mo_error(MO_ECANCELED, "%s: cancelled", k->method));
}

uint64_t mo_call_number(const struct mo_call *k)
{
    return k->number;
}

/* --- sending ------------------------------------------------------------- */

static void start_timer(struct mo_call *k, struct mo_timer *t, uint64_t ms,
                        uint64_t usual)
{
    if (ms != MO_CALL_FOREVER && !k->held)
        mo_timer_start(k->c->loop, t, ms ? ms : usual);
}

void mo_call_hold(struct mo_call *k, bool on)
{
    if (k->ended)
        return;
    k->held = on;
    if (on) {
        stop_timers(k);
        return;
    }
    if (k->id)
        start_timer(k, &k->idle, k->o.idle_ms, MO_CONN_IDLE_MS);
    start_timer(k, &k->hard, k->o.hard_ms, MO_CONN_HARD_MS);
}

/* Send the call under a new id. */
static int call_send(struct mo_call *k, struct mo_span params)
{
    struct mo_conn *c = k->c;
    struct mo_json v = {params.p, params.n};
    struct mo_link_msg m = {
        .method = k->method,
        .name = k->o.name,
        .params = k->o.params,
        .nparams = k->o.nparams,
    };
    int rc;

    mo_list_del(&k->node);
    k->id = ++c->last_id;
    mo_list_push(&c->calls[k->id % CALL_BUCKETS], &k->node);
    rc = mo_conn_codec_request(c, k, params);
    if (rc < 0)
        return rc;
    m.text = mo_buf_view(&c->out);
    m.id = k->id;
    m.trace = k->o.trace;
    if (c->link && mo_link_is_http(c->link) &&
        !k->o.own_trace) /* headers equal _meta */
        mo_trace_meta(mo_json_get(v, "_meta"), &m.trace);
    k->told = false;
    rc = mo_conn_write(c, &m);
    if (rc < 0)
        return rc;
    start_timer(k, &k->idle, k->o.idle_ms, MO_CONN_IDLE_MS);
    return 0;
}

static int keep_headers(struct mo_call *k)
{
    size_t n = k->o.nparams;
    struct mo_link_param *v =
        mo_arena_alloc(&k->keep, (n ? n : 1) * sizeof(*v));
    int rc = v ? mo_arena_span(&k->keep, k->o.name, &k->o.name) : MO_ENOMEM;

    if (rc == 0)
        rc = mo_arena_span(&k->keep, k->o.capabilities, &k->o.capabilities);
    for (size_t i = 0; i < MO_TRACE_KEYS && rc == 0; i++)
        rc = mo_arena_span(&k->keep, k->o.trace.v[i], &k->o.trace.v[i]);
    for (size_t i = 0; i < n && rc == 0; i++) {
        v[i] = k->o.params[i];
        rc = mo_arena_span(&k->keep, v[i].name, &v[i].name);
        if (rc == 0)
            rc = mo_arena_span(&k->keep, v[i].value, &v[i].value);
    }
    k->o.params = v;
    return rc;
}

/* Capabilities that came over HTTP may hold newlines; a line must not. */
static int flatten_caps(struct mo_call *k)
{
    struct mo_json v = {k->o.capabilities.p, k->o.capabilities.n};
    mo_autobuf struct mo_buf b = {.max = MO_CONN_TEXT_MAX};
    int rc;

    if (mo_span_find(k->o.capabilities, '\n') < 0 &&
        mo_span_find(k->o.capabilities, '\r') < 0)
        return 0;
    rc = mo_json_compact(v, &b);
    k->o.capabilities = mo_buf_view(&b);
    return rc < 0
               ? rc
               : mo_arena_span(&k->keep, k->o.capabilities, &k->o.capabilities);
}

/* Copy everything borrowed for the call if a retry may need it again. */
static int keep_for_retry(struct mo_call *k, struct mo_span params)
{
    for (size_t i = 0; i < MO_COUNT(may_ask); i++)
        k->may_ask |= k->c->modern && strcmp(k->method, may_ask[i]) == 0;
    if (!k->may_ask)
        return 0;
    mo_buf_span(&k->params, params.n ? params : MO_SPAN("{}"));
    return mo_buf_err(&k->params) ? mo_buf_err(&k->params) : keep_headers(k);
}

static struct mo_call *call_new(struct mo_conn *c, const char *method,
                                const struct mo_call_opts *o)
{
    struct mo_call *k = mo_pool_take(&c->spare, sizeof(*k));

    if (!k)
        return NULL;
    mo_list_init(&k->node);
    mo_list_init(&k->asks);
    mo_timer_init(&k->idle, on_idle);
    mo_timer_init(&k->hard, on_hard);
    mo_later_init(&k->later, on_later);
    mo_buf_init(&k->params, MO_CONN_TEXT_MAX);
    mo_buf_init(&k->input, MO_CONN_TEXT_MAX);
    mo_buf_init(&k->state, MO_CONN_TEXT_MAX);
    mo_arena_init(&k->keep, KEEP_MAX);
    k->c = c;
    k->o = *o;
    c->ncalls++;
    k->method = mo_strndup(method, strlen(method));
    if (!k->method) {
        call_free(k);
        return NULL;
    }
    return k;
}

struct mo_call *mo_conn_call_start(struct mo_conn *c, const char *method,
                                   struct mo_span params,
                                   const struct mo_call_opts *o, bool internal,
                                   struct mo_err *e)
{
    struct mo_call *k;
    int rc;

    if (c->ncalls >= MO_CONN_CALLS_MAX)
        return mo_null(mo_fail(e, MO_EBUSY, "%s: %d calls in flight", method,
                               MO_CONN_CALLS_MAX));
    k = call_new(c, method, o);
    if (!k)
        return mo_null(mo_fail(e, MO_ENOMEM, "%s", method));
    k->internal = internal;
    params = mo_conn_codec_one_line(c, params);
    rc = mo_buf_err(&c->compact);
    if (rc == 0)
        rc = flatten_caps(k);
    if (rc == 0)
        rc = keep_for_retry(k, params);
    if (rc == 0)
        rc = call_send(k, params);
    if (rc < 0) {
        (void)mo_fail(e, rc, "%s: cannot send (%s)", method, mo_err_name(rc));
        call_free(k);
        return NULL;
    }
    k->number = k->id;
    start_timer(k, &k->hard, k->o.hard_ms, MO_CONN_HARD_MS);
    c->stats.calls++;
    return k;
}

struct mo_call *mo_conn_request(struct mo_conn *c, const char *method,
                                struct mo_span params,
                                const struct mo_call_opts *o, struct mo_err *e)
{
    if (c->state != C_OPEN)
        return mo_null(
            mo_fail(e, MO_ECLOSED, "%s: the connection is not open", method));
    return mo_conn_call_start(c, method, params, o, false, e);
}

/* --- answers ------------------------------------------------------------- */

static void fail_call(struct mo_call *k, int code, const char *what)
{
    call_fail(k, mo_error(code, "%s: %s", k->method, what));
}

static void request_input(struct mo_call *k, struct mo_json result)
{
    struct mo_err e;
    int rc;

    k->rounds++;
    if (k->rounds > MO_CONN_ROUNDS_MAX) {
        fail_call(k, MO_EPROTO, "the server asks for input too many times");
        return;
    }
    mo_timer_stop(k->c->loop,
                  &k->idle); /* people are slow; the hard timeout continues */
    park_call(k);
    rc = mo_conn_ask_inputs(k, result, &e);
    if (rc < 0)
        call_fail(k, &e);
    else if (k->open_asks == 0)
        mo_conn_call_again(k);
    else
        mo_conn_ask_hand_up(k);
}

void mo_conn_call_again(struct mo_call *k)
{
    int rc = mo_buf_err(&k->input);

    if (rc == 0)
        rc = call_send(k, mo_buf_view(&k->params));
    if (rc < 0) {
        mo_conn_call_end_later(k, mo_error(rc, "%s: cannot send again (%s)",
                                           k->method, mo_err_name(rc)));
    }
}

/* Handle a result by its kind; only modern servers name one. */
static void handle_result(struct mo_call *k, struct mo_json result)
{
    struct mo_reply r = {.result = result};
    struct mo_json type = {NULL, 0};

    if (k->c->modern) /* looking it up scans the whole result */
        type = mo_json_get(result, "resultType");
    r.task = mo_json_str_eq(type, MO_SPAN("task"));
    if (!mo_json_is(result, MO_JSON_OBJECT))
        fail_call(k, MO_EPROTO, "the result is not an object");
    else if (!type.p || mo_json_str_eq(type, MO_SPAN("complete")))
        call_end(k, &r);
    else if (r.task && k->c->can & CAN_TASKS)
        call_end(k, &r);
    else if (mo_json_str_eq(type, MO_SPAN("input_required")) && k->may_ask)
        request_input(k, result);
    else
        fail_call(k, MO_EPROTO, "the result has an unknown resultType");
}

static void handle_error(struct mo_call *k, struct mo_json error, int status)
{
    struct mo_reply r = {.error = error, .status = status};

    if (mo_json_i64(mo_json_get(error, "code"), &r.code) < 0)
        r.code = MO_RPC_INTERNAL;
    call_end(k, &r);
}

/* id 0: not an id that we could have sent. */
static void count_stray(struct mo_conn *c, uint64_t id)
{
    if (id == 0 || id > c->last_id)
        c->stats.unknown++;
    else if (was_given_up(c, id))
        c->stats.late++;
    else
        c->stats.duplicate++;
}

void mo_conn_call_answer(struct mo_conn *c, const struct mo_rpc *m)
{
    uint64_t id = 0;
    struct mo_call *k =
        mo_json_u64(m->id, &id) == 0 ? mo_conn_call_find(c, id) : NULL;

    if (!k) {
        count_stray(c, id);
        return;
    }
    c->stats.answers++;
    if (m->kind == MO_RPC_RESULT)
        handle_result(k, m->result);
    else
        handle_error(k, m->error, 0);
}

void mo_conn_call_failed(struct mo_conn *c, uint64_t id, int status,
                         struct mo_span body, const struct mo_err *why)
{
    struct mo_call *k = mo_conn_call_find(c, id);
    struct mo_reply r = {.err = why, .status = status};
    struct mo_rpc m;

    if (!k)
        count_stray(c, id);
    else if (body.n && mo_rpc_parse(body, &m, NULL) == 0 &&
             m.kind == MO_RPC_ERROR)
        handle_error(k, m.error, status);
    else
        call_end(k, &r);
}

void mo_conn_call_progress(struct mo_conn *c, struct mo_json params)
{
    struct mo_call *k = NULL;
    uint64_t token;
    double at;

    if (mo_json_u64(mo_json_get(params, "progressToken"), &token) == 0)
        k = mo_conn_call_find(c, token);
    if (!k || !k->o.on_progress ||
        mo_json_f64(mo_json_get(params, "progress"), &at) < 0 ||
        (k->told && at <= k->last_progress)) {
        c->stats.stray_progress++;
        return;
    }
    k->told = true;
    k->last_progress = at;
    start_timer(k, &k->idle, k->o.idle_ms, MO_CONN_IDLE_MS);
    k->o.on_progress(k->o.ctx, params);
}

void mo_conn_call_script(struct mo_conn *c, struct mo_json params)
{
    struct mo_call *k = NULL;
    uint64_t token;

    if (mo_json_u64(mo_json_get(params, "progressToken"), &token) == 0)
        k = mo_conn_call_find(c, token);
    if (!k || !k->o.on_script)
        c->stats.stray_progress++;
    else
        k->o.on_script(k->o.ctx, params);
}
