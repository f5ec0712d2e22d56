/* ep_task.c - a tool call of a 2025-11-25 client as a task.
 *
 * The client asks for it in the call (params.task), gets an id at once, and
 * fetches the result later: tasks/get, tasks/result, tasks/list, tasks/cancel.
 * The handler does not know about tasks. It has a normal call whose way ends
 * here instead of at a transport: its answer is kept until the task expires;
 * its questions wait until the client has a tasks/result open, as the revision
 * requires.
 *
 * A task belongs to its session and ends with it, so no other client can see
 * it.
 *
 * Limits: limits.tasks per session (the oldest ended task is dropped, else the
 * call is refused), limits.task_ms for the life of a task, limits.task_bytes
 * for all results together: a result that does not fit fails its task.
 *
 * Invariants
 *  1. t->call is set until the task has ended, and then t->call->task == t.
 *  2. A waiter is a call in CALL_LISTENING, in t->waiters by its wnode; there
 *     is none once the task has ended.
 *  3. Only set_status() writes t->status. */
#include <stdio.h>

#include "base/rand.h"
#include "mcp/server/ep_priv.h"

#define TASK_TOKEN      18  /* random bytes of a task id */
#define TASK_POLL_MS    500 /* pollInterval sent to clients */
#define TASK_REASON_MAX 512
#define TASK_PAGE       32 /* tasks in one page of tasks/list */

enum status { WORKING, INPUT, COMPLETED, FAILED, CANCELLED };

struct ep_task {
    struct mo_list node; /* in sess->tasks, the oldest first */
    struct mo_ep_way way;
    struct mo_ep_sess *sess;
    struct call *call;
    struct mo_list waiters;
    struct mo_timer expiry;
    enum status status;
    uint64_t no;                    /* grows; the cursor of tasks/list */
    uint64_t created, updated, ttl; /* wall ms, ms */
    struct mo_buf outcome;          /* JSON: a result, or an error */
    bool is_error;
    const char *why; /* the reason if there is no result */
    char id[MO_TOKEN_LEN(TASK_TOKEN) + 1];
};

static bool has_ended(const struct ep_task *t)
{
    return t->status >= COMPLETED;
}

/* --- messages about a task ----------------------------------------------- */

static void put_time(struct mo_jw *w, const char *key, uint64_t ms)
{
    char text[MO_ISO8601_MAX];

    mo_wall_format(ms, text);
    mo_jw_member_cstr(w, key, text);
}

/* The reason of a failure: an error's message, or the first text of a tool's.
 */
static struct mo_json failure_text(const struct ep_task *t)
{
    struct mo_json v = {t->outcome.p, t->outcome.len};

    if (t->is_error)
        return mo_json_get(v, "message");
    return mo_json_get(mo_json_at(mo_json_get(v, "content"), 0), "text");
}

static void put_reason(struct mo_jw *w, const struct ep_task *t)
{
    struct mo_json text;

    if (t->why) {
        mo_jw_member_cstr(w, "statusMessage", t->why);
        return;
    }
    if (t->status != FAILED)
        return;
    text = failure_text(t);
    if (mo_json_is(text, MO_JSON_STRING) && text.n <= TASK_REASON_MAX)
        mo_jw_member_raw(w, "statusMessage", mo_json_text(text));
}

static void put_members(struct mo_jw *w, const struct ep_task *t)
{
    static const char *const words[] = {"working", "input_required",
                                        "completed", "failed", "cancelled"};

    mo_jw_member_cstr(w, "taskId", t->id);
    mo_jw_member_cstr(w, "status", words[t->status]);
    put_reason(w, t);
    put_time(w, "createdAt", t->created);
    put_time(w, "lastUpdatedAt", t->updated);
    mo_jw_member_u64(w, "ttl", t->ttl);
    mo_jw_member_u64(w, "pollInterval", TASK_POLL_MS);
}

static struct call *first_waiter(const struct ep_task *t)
{
    return mo_list_first(&t->waiters, struct call, wnode);
}

/* Send to the client that waits for the result, else on the push way. */
static void send_message(struct ep_task *t, struct mo_span msg)
{
    const struct call *c = first_waiter(t);
    struct mo_ep_way *w = c ? c->way : t->sess->push;

    if (w)
        w->note(w, msg);
}

static void send_status(struct ep_task *t)
{
    struct mo_endpoint *ep = t->sess->ep;
    struct mo_jw w = mo_ep_begin_note(ep, "notifications/tasks/status");

    put_members(&w, t);
    mo_jw_end_all(&w);
    if (!mo_buf_err(&ep->scratch))
        send_message(t, mo_buf_view(&ep->scratch));
    mo_ep_scratch_done(ep);
}

static void set_status(struct ep_task *t, enum status to)
{
    MO_BUG_ON(has_ended(t));
    if (t->status == to)
        return;
    t->status = to;
    t->updated = mo_wall_ms();
    send_status(t);
}

void mo_ep_task_meta(const struct ep_task *t, struct mo_jw *w)
{
    mo_jw_member_obj(w, MO_MCP_P_TASK);
    mo_jw_member_cstr(w, "taskId", t->id);
    mo_jw_end(w);
}

/* --- the outcome --------------------------------------------------------- */

static void put_result(const struct ep_task *t, struct mo_json id)
{
    struct mo_json v = {t->outcome.p, t->outcome.len};
    struct mo_jw w = mo_ep_begin_result(t->sess->ep, id);

    mo_ep_put_members(&w, v, EP_KEYS("_meta"));
    mo_jw_member_obj(&w, "_meta");
    mo_ep_put_members(&w, mo_json_get(v, "_meta"), EP_KEYS(MO_MCP_P_TASK));
    mo_ep_task_meta(t, &w);
    mo_jw_end_all(&w);
}

/* Write the answer of the call into the scratch buffer. */
static void put_outcome(const struct ep_task *t, struct mo_json id)
{
    struct mo_buf *b;

    if (!t->why && !t->is_error) {
        put_result(t, id);
        return;
    }
    b = mo_ep_scratch(t->sess->ep);
    if (t->why) {
        (void)mo_rpc_put_error(b, mo_json_text(id), MO_RPC_INTERNAL,
                               mo_span_cstr(t->why), mo_span(NULL, 0));
        return;
    }
    (void)mo_buf_puts(b, "{\"jsonrpc\":\"2.0\",\"id\":");
    (void)mo_buf_span(b, mo_json_text(id));
    (void)mo_buf_puts(b, ",\"error\":");
    (void)mo_buf_span(b, mo_buf_view(&t->outcome));
    (void)mo_buf_putc(b, '}');
}

static void end_task(struct ep_task *t, enum status how)
{
    if (t->call)
        t->call->task = NULL;
    t->call = NULL;
    set_status(t, how);
    for (struct call *c = first_waiter(t); c; c = first_waiter(t)) {
        mo_list_del(&c->wnode);
        put_outcome(t, c->id);
        mo_ep_call_answer(c, 200);
    }
}

static void keep_outcome(struct ep_task *t, struct mo_json v)
{
    struct mo_endpoint *ep = t->sess->ep;
    size_t left = ep->o.limits.task_bytes - ep->task_bytes;

    if (v.n > left)
        t->why = "the outcome is too big to be kept";
    else if (mo_buf_span(&t->outcome, mo_json_text(v)) < 0)
        t->why = "out of memory";
    else
        ep->task_bytes += v.n;
}

/* --- the way of the task's call ------------------------------------------ */

static void on_note(struct mo_ep_way *w, struct mo_span msg)
{
    send_message(mo_container_of(w, struct ep_task, way), msg);
}

static void on_answer(struct mo_ep_way *w, int status, struct mo_span msg)
{
    struct ep_task *t = mo_container_of(w, struct ep_task, way);
    struct mo_json m = {msg.p, msg.n};
    struct mo_json v = mo_json_get(m, "result");
    bool failed = !v.p || mo_json_flag(v, "isError");

    (void)status;
    t->is_error = !v.p;
    keep_outcome(t, v.p ? v : mo_json_get(m, "error"));
    end_task(t, failed || t->why ? FAILED : COMPLETED);
}

static void on_drop(struct mo_ep_way *w)
{
    struct ep_task *t = mo_container_of(w, struct ep_task, way);

    if (!t->call)
        return; /* stop_call() did that */
    t->why = "the call ended without an answer";
    end_task(t, FAILED);
}

/* Questions are sent while a tasks/result is open. */
void mo_ep_task_asks(struct ep_task *t, bool on)
{
    set_status(t, on ? INPUT : WORKING);
    if (on && !mo_list_empty(&t->waiters))
        mo_ep_legacy_ask(t->call);
}

/* --- life ---------------------------------------------------------------- */

static void stop_call(struct ep_task *t)
{
    struct call *c = t->call;

    if (!c)
        return;
    t->call = NULL;
    c->task = NULL;
    mo_ep_call_cancel(c); /* takes back its questions */
}

static void free_task(struct ep_task *t)
{
    struct mo_endpoint *ep = t->sess->ep;

    stop_call(t);
    while (!mo_list_empty(&t->waiters))
        mo_list_del(t->waiters.next); /* their session ends too */
    mo_timer_stop(ep->loop, &t->expiry);
    mo_list_del(&t->node);
    t->sess->ntasks--;
    ep->task_bytes -= t->outcome.len;
    mo_buf_fini(&t->outcome);
    mo_free(t);
}

void mo_ep_tasks_end(struct mo_ep_sess *s)
{
    mo_list_each_safe (n, &s->tasks)
        free_task(mo_container_of(n, struct ep_task, node));
}

static void on_expiry(struct mo_timer *timer)
{
    struct ep_task *t = mo_container_of(timer, struct ep_task, expiry);

    for (struct call *c = first_waiter(t); c; c = first_waiter(t))
        mo_ep_call_refuse(c, 200, MO_RPC_INVALID_PARAMS,
                          "the task has expired");
    free_task(t);
}

static bool make_room(struct mo_ep_sess *s)
{
    if (s->ntasks < s->ep->o.limits.tasks)
        return true;
    mo_list_each_entry (t, &s->tasks, struct ep_task, node) {
        if (has_ended(t)) {
            free_task(t);
            return true;
        }
    }
    return false;
}

static struct ep_task *new_task(struct call *c, uint64_t ttl)
{
    struct mo_endpoint *ep = c->ep;
    struct ep_task *t = mo_new(struct ep_task);

    if (!t)
        return NULL;
    t->way =
        (struct mo_ep_way){on_note, on_answer, on_drop, NULL, NULL, NULL, NULL};
    t->sess = c->sess;
    t->call = c;
    mo_list_init(&t->waiters);
    mo_timer_init(&t->expiry, on_expiry);
    mo_buf_init(&t->outcome, ep->o.limits.task_bytes);
    t->no = ++ep->next_task;
    t->created = mo_wall_ms();
    t->updated = t->created;
    t->ttl = ttl && ttl < ep->o.limits.task_ms ? ttl : ep->o.limits.task_ms;
    mo_random_token(t->id, TASK_TOKEN);
    mo_list_push(&t->sess->tasks, &t->node);
    t->sess->ntasks++;
    mo_timer_start(ep->loop, &t->expiry, t->ttl);
    return t;
}

/* Answer the request with the task id; from now on the request id is free and
 * the call speaks to the task. */
static void move_call_to_task(struct ep_task *t, struct call *c)
{
    static const struct mo_json null_id = {"null", 4};
    struct mo_ep_way *w = c->way;
    struct mo_jw jw = mo_ep_begin_result(c->ep, c->id);

    mo_jw_member_obj(&jw, "task");
    put_members(&jw, t);
    mo_jw_end_all(&jw);
    c->task = t;
    c->id = null_id;
    c->way = &t->way;
    t->way.call = &c->pub;
    if (w->call == &c->pub)
        w->call = NULL;
    mo_ep_answer_scratch(c->ep, w, 200);
}

void mo_ep_task_begin(struct call *c)
{
    struct mo_json wish = c->parts.task;
    struct mo_json ms = mo_json_get(wish, "ttl");
    struct ep_task *t;
    double ttl = 0;

    if (!mo_json_is(wish, MO_JSON_OBJECT) ||
        (ms.p && !mo_json_is(ms, MO_JSON_NULL) &&
         (mo_json_f64(ms, &ttl) < 0 || ttl < 0))) {
        mo_ep_call_refuse(c, 200, MO_RPC_INVALID_PARAMS,
                          "params.task must be {\"ttl\":milliseconds}");
        return;
    }
    t = make_room(c->sess) ? new_task(c, ttl < 1e15 ? (uint64_t)ttl : 0) : NULL;
    if (!t) {
        mo_ep_call_refuse(c, 200, MO_RPC_INTERNAL,
                          "too many tasks, or too little memory");
        return;
    }
    move_call_to_task(t, c);
    mo_ep_call_run(c);
}

/* --- the methods --------------------------------------------------------- */

static const char no_task[] = "no such task, or it has expired";

static struct ep_task *find_task(struct mo_ep_sess *s, const struct mo_rpc *m)
{
    struct mo_json id = mo_json_get(m->params, "taskId");

    mo_list_each_entry (t, &s->tasks, struct ep_task, node) {
        if (mo_json_is(id, MO_JSON_STRING) &&
            mo_json_str_eq(id, mo_span_cstr(t->id)))
            return t;
    }
    return NULL;
}

static const char *answer_task(const struct ep_task *t,
                               const struct mo_ep_from *from,
                               const struct mo_rpc *m)
{
    struct mo_endpoint *ep = t->sess->ep;
    struct mo_jw w = mo_ep_begin_result(ep, m->id);

    put_members(&w, t);
    mo_jw_end_all(&w);
    mo_ep_answer_scratch(ep, from->way, 200);
    return NULL;
}

const char *mo_ep_task_get(struct mo_ep_sess *s, const struct mo_ep_from *from,
                           const struct mo_rpc *m)
{
    struct ep_task *t = find_task(s, m);

    return t ? answer_task(t, from, m) : no_task;
}

const char *mo_ep_task_cancel(struct mo_ep_sess *s,
                              const struct mo_ep_from *from,
                              const struct mo_rpc *m)
{
    struct ep_task *t = find_task(s, m);

    if (!t || has_ended(t))
        return t ? "the task has ended already" : no_task;
    stop_call(t);
    t->why = "the task was cancelled";
    end_task(t, CANCELLED);
    return answer_task(t, from, m);
}

/* tasks/result: blocks until the task has ended; carries its questions. */
const char *mo_ep_task_result(struct mo_ep_sess *s,
                              const struct mo_ep_from *from,
                              const struct mo_rpc *m)
{
    struct ep_task *t = find_task(s, m);
    struct call *c;

    if (!t)
        return no_task;
    if (has_ended(t)) {
        put_outcome(t, m->id);
        mo_ep_answer_scratch(s->ep, from->way, 200);
        return NULL;
    }
    c = mo_ep_call_new(s->ep, from, m, NULL);
    if (!c)
        return NULL;
    c->pub.version = s->version;
    c->state = CALL_LISTENING;
    mo_list_push(&t->waiters, &c->wnode);
    if (t->status == INPUT)
        mo_ep_legacy_ask(t->call);
    return NULL;
}

/* Write one page of tasks after number `after`. */
static void put_page(struct mo_ep_sess *s, struct mo_jw *w, uint64_t after)
{
    char cursor[24];
    unsigned left = TASK_PAGE;
    const struct ep_task *last = NULL, *more = NULL;

    mo_jw_member_arr(w, "tasks");
    mo_list_each_entry (t, &s->tasks, struct ep_task, node) {
        if (t->no <= after)
            continue;
        more = t;
        if (left == 0)
            break;
        left--;
        last = t;
        mo_jw_obj(w);
        put_members(w, t);
        mo_jw_end(w);
    }
    mo_jw_end(w);
    if (more == last)
        return;
    (void)snprintf(cursor, sizeof(cursor), "%llu",
                   (unsigned long long)last->no);
    mo_jw_member_cstr(w, "nextCursor", cursor);
}

const char *mo_ep_task_list(struct mo_ep_sess *s, const struct mo_ep_from *from,
                            const struct mo_rpc *m)
{
    struct mo_json cursor = mo_json_get(m->params, "cursor");
    uint64_t after = 0;
    struct mo_jw w;

    if (cursor.p &&
        (!mo_json_is(cursor, MO_JSON_STRING) ||
         mo_span_u64(mo_span(cursor.p + 1, cursor.n - 2), &after) < 0 ||
         after > s->ep->next_task))
        return "no such cursor";
    w = mo_ep_begin_result(s->ep, m->id);
    put_page(s, &w, after);
    mo_jw_end_all(&w);
    mo_ep_answer_scratch(s->ep, from->way, 200);
    return NULL;
}
