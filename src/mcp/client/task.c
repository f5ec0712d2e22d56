/* task.c - poll a task until it ends.
 *
 * Invariants
 *  1. Until the end there is either a call in flight (t->call), or the poll
 *     timer runs, or `later` is due: there is always a next event.
 *  2. t is in its connection's list, so that the connection's end ends it.
 *  3. finish_task() is the only place that frees a running task; it runs from
 *     the loop. */
#include "mcp/client/task.h"

#include "base/map.h"
#include "mcp/client/conn_priv.h"

struct mo_task {
    struct mo_list node; /* in c->tasks */
    struct mo_conn *c;
    struct mo_task_opts o;
    struct mo_call *call; /* tasks/get or tasks/result */
    struct mo_buf params; /* {"taskId":...} */
    struct mo_buf name;   /* the task id, unescaped */
    struct mo_map seen;   /* keys of questions passed to the owner */
    struct mo_timer poll, hard;
    struct mo_later later;
    enum mo_task_status status;
    uint64_t poll_ms;
    unsigned tries;
    bool over; /* ended; why has the error */
    struct mo_err why;
};

static enum mo_task_status status_of(struct mo_json task)
{
    static const char *const names[MO_TASK_STATUSES] = {
        [MO_TASK_WORKING] = "working",     [MO_TASK_INPUT] = "input_required",
        [MO_TASK_COMPLETED] = "completed", [MO_TASK_FAILED] = "failed",
        [MO_TASK_CANCELLED] = "cancelled",
    };
    struct mo_json v = mo_json_get(task, "status");
    int s = 0;

    while (s < MO_TASK_STATUSES && !mo_json_str_eq(v, mo_span_cstr(names[s])))
        s++;
    return (enum mo_task_status)s;
}

/* The task in the answer to a call. */
static struct mo_json task_in(const struct mo_conn *c, struct mo_json result)
{
    if (!c->modern)
        return mo_json_get(result, "task");
    return mo_json_str_eq(mo_json_get(result, "resultType"), MO_SPAN("task"))
               ? result
               : (struct mo_json){NULL, 0};
}

bool mo_task_is(const struct mo_conn *c, struct mo_json result)
{
    return mo_json_is(mo_json_get(task_in(c, result), "taskId"),
                      MO_JSON_STRING);
}

bool mo_task_is_named(const struct mo_task *t, struct mo_json id)
{
    return mo_json_str_eq(id, mo_buf_view(&t->name));
}

/* --- the end ------------------------------------------------------------- */

static void task_free(struct mo_task *t)
{
    mo_list_del(&t->node);
    mo_timer_stop(t->c->loop, &t->poll);
    mo_timer_stop(t->c->loop, &t->hard);
    mo_later_cancel(&t->later);
    mo_buf_fini(&t->params);
    mo_buf_fini(&t->name);
    mo_map_fini(&t->seen);
    mo_free(t);
}

static void finish_task(struct mo_task *t, const struct mo_reply *r)
{
    struct mo_task_opts o = t->o;

    task_free(t);
    o.done(o.ctx, r);
}

static void finish_with_error(struct mo_task *t, const struct mo_err *why)
{
    struct mo_err e = *why; /* why may point into the task */
    struct mo_reply r = {.err = &e};

    finish_task(t, &r);
}

static void on_later(struct mo_later *d)
{
    struct mo_task *t = mo_container_of(d, struct mo_task, later);

    finish_with_error(t, &t->why);
}

void mo_conn_task_end_all(struct mo_conn *c, const struct mo_err *why)
{
    mo_list_drain (t, &c->tasks, struct mo_task, node)
        finish_with_error(t, t->over ? &t->why : why);
}

static void on_ignored(void *ctx, const struct mo_reply *r)
{
    (void)ctx;
    (void)r;
}

/* Send a request and ignore its answer. */
static int send_and_ignore(struct mo_task *t, const char *method,
                           struct mo_span params)
{
    struct mo_call_opts o = {.name = mo_buf_view(&t->name), .done = on_ignored};
    struct mo_err e;

    return mo_conn_request(t->c, method, params, &o, &e) ? 0 : e.code;
}

/* Cancel the task at the server and end it with an error. */
static void give_up(struct mo_task *t, int code, const char *what)
{
    if (t->over)
        return;
    t->over = true;
    (void)mo_fail(&t->why, code, "task: %s", what);
    (void)send_and_ignore(t, "tasks/cancel",
                          mo_buf_view(&t->params)); /* best effort */
    mo_timer_stop(t->c->loop, &t->poll);
    mo_timer_stop(t->c->loop, &t->hard);
    if (t->call)
        mo_call_cancel(t->call, NULL); /* its done ends the task */
    else
        mo_loop_defer(t->c->loop, &t->later);
}

void mo_task_cancel(struct mo_task *t)
{
    give_up(t, MO_ECANCELED, "cancelled");
}

static void on_hard(struct mo_timer *timer)
{
    give_up(mo_container_of(timer, struct mo_task, hard), MO_ETIMEOUT,
            "not finished in time");
}

/* --- asking -------------------------------------------------------------- */

static void pause_task(struct mo_task *t)
{
    mo_timer_start(t->c->loop, &t->poll, t->poll_ms);
}

/* Handle a failed poll. True: the task continues or has already ended. */
static bool tolerate_failure(struct mo_task *t, const struct mo_reply *r)
{
    t->call = NULL;
    if (t->over) {
        finish_with_error(t, &t->why);
    } else if (!r->err) {
        return false;
    } else if (++t->tries < MO_TASK_TRIES) {
        pause_task(t);
    } else {
        finish_with_error(t, r->err);
    }
    return true;
}

static void on_result(void *ctx, const struct mo_reply *r)
{
    struct mo_task *t = ctx;

    if (!tolerate_failure(t, r))
        finish_task(t, r);
}

static void send_poll(struct mo_task *t, const char *method,
                      void (*done)(void *ctx, const struct mo_reply *r),
                      uint64_t idle_ms)
{
    struct mo_call_opts o = {
        .name = mo_buf_view(&t->name),
        .idle_ms = idle_ms,
        .hard_ms = idle_ms,
        .done = done,
        .ctx = t,
    };
    struct mo_err e;

    t->call = mo_conn_request(t->c, method, mo_buf_view(&t->params), &o, &e);
    if (t->call)
        return;
    t->over = true;
    t->why = e;
    mo_loop_defer(t->c->loop, &t->later);
}

/* --- questions (modern) -------------------------------------------------- */

/* Write the questions that the owner has not seen. Returns 0, MO_ETOOBIG, ...
 */
static int put_new_questions(struct mo_task *t, struct mo_json all,
                             struct mo_buf *b)
{
    struct mo_jw w = mo_jw_object(b);
    int rc = 0;

    mo_json_each_while (m, all, rc == 0) {
        if (!m.key.p || mo_map_get(&t->seen, mo_json_text(m.key)))
            continue;
        rc = mo_map_put(&t->seen, mo_json_text(m.key), t, NULL);
        mo_jw_key_raw(&w, m.key);
        mo_jw_raw(&w, mo_json_text(m.val));
    }
    mo_jw_end(&w);
    return rc < 0 ? rc : mo_buf_err(b);
}

static void handle_questions(struct mo_task *t, struct mo_json all)
{
    mo_autobuf struct mo_buf b = {.max = MO_CONN_TEXT_MAX};
    int rc;

    if (!t->o.on_input) {
        give_up(t, MO_EPOLICY,
                "the task needs input that this client cannot give");
        return;
    }
    rc = put_new_questions(t, all, &b);
    t->tries = 0;
    pause_task(t); /* the task may end without an answer, too */
    if (rc < 0)
        give_up(t, MO_ETOOBIG, "the task asks too many questions");
    else if (b.len > 2)
        t->o.on_input(t->o.ctx, t, (struct mo_json){b.p, b.len});
}

int mo_task_input(struct mo_task *t, struct mo_span responses)
{
    struct mo_span id = mo_buf_view(&t->params);
    mo_autobuf struct mo_buf b = {.max = MO_CONN_TEXT_MAX};

    if (t->over)
        return MO_ECLOSED;
    mo_buf_span(&b, mo_span_head(id, id.n - 1));
    mo_buf_puts(&b, ",\"inputResponses\":");
    mo_buf_span(&b, responses);
    mo_buf_putc(&b, '}');
    return mo_buf_err(&b) ? mo_buf_err(&b)
                          : send_and_ignore(t, "tasks/update", mo_buf_view(&b));
}

/* --- status -------------------------------------------------------------- */

static void set_poll_interval(struct mo_task *t, struct mo_json task)
{
    const char *key = t->c->modern ? "pollIntervalMs" : "pollInterval";
    uint64_t ms;

    if (mo_json_u64(mo_json_get(task, key), &ms) < 0)
        return;
    if (ms < MO_TASK_POLL_MIN_MS)
        ms = MO_TASK_POLL_MIN_MS;
    t->poll_ms = ms < MO_TASK_POLL_MAX_MS ? ms : MO_TASK_POLL_MAX_MS;
}

static void deliver_outcome(struct mo_task *t, struct mo_json task)
{
    struct mo_reply r = {.err = NULL};

    if (t->status == MO_TASK_COMPLETED)
        r.result = mo_json_get(task, "result");
    else
        r.error = mo_json_get(task, "error");
    if (mo_json_i64(mo_json_get(r.error, "code"), &r.code) < 0)
        r.code = r.error.p ? MO_RPC_INTERNAL : 0;
    if (mo_json_is(r.result, MO_JSON_OBJECT) ||
        mo_json_is(r.error, MO_JSON_OBJECT))
        finish_task(t, &r);
    else
        finish_with_error(
            t,
            mo_error(MO_EPROTO, "task: the task has ended without a result"));
}

/* An open tasks/result also lets a legacy server send its questions. */
static void fetch_result(struct mo_task *t, struct mo_json task)
{
    if (t->c->modern)
        deliver_outcome(t, task);
    else
        send_poll(t, "tasks/result", on_result, MO_CALL_FOREVER);
}

static void handle_status(struct mo_task *t, struct mo_json task)
{
    switch (t->status) {
    case MO_TASK_WORKING:
        t->tries = 0;
        pause_task(t);
        break;
    case MO_TASK_INPUT:
        if (t->c->modern)
            handle_questions(t, mo_json_get(task, "inputRequests"));
        else
            fetch_result(t, task);
        break;
    case MO_TASK_COMPLETED:
    case MO_TASK_FAILED:
        fetch_result(t, task);
        break;
    case MO_TASK_CANCELLED:
        finish_with_error(
            t, mo_error(MO_ECANCELED, "task: cancelled by the server"));
        break;
    case MO_TASK_STATUSES:
        finish_with_error(
            t, mo_error(MO_EPROTO, "task: the task has an unknown status"));
        break;
    }
}

static void on_get(void *ctx, const struct mo_reply *r)
{
    struct mo_task *t = ctx;
    enum mo_task_status was = t->status;

    if (tolerate_failure(t, r))
        return;
    if (!r->result.p) {
        finish_task(t, r);
        return;
    }
    t->status = status_of(r->result);
    set_poll_interval(t, r->result);
    if (t->status != was && t->status != MO_TASK_STATUSES && t->o.on_status)
        t->o.on_status(t->o.ctx, t->status,
                       mo_json_get(r->result, "statusMessage"));
    if (!t->over) /* the owner may have cancelled it in the callback */
        handle_status(t, r->result);
}

static void on_poll(struct mo_timer *timer)
{
    send_poll(mo_container_of(timer, struct mo_task, poll), "tasks/get", on_get,
              0);
}

/* The server reports a change: poll now. */
void mo_conn_task_news(struct mo_conn *c, struct mo_json id)
{
    mo_list_each_entry (t, &c->tasks, struct mo_task, node) {
        if (!t->over && !t->call && mo_timer_on(&t->poll) &&
            mo_task_is_named(t, id))
            mo_timer_start(c->loop, &t->poll, 0);
    }
}

/* --- the beginning ------------------------------------------------------- */

static int copy_task_id(struct mo_task *t, struct mo_json id, struct mo_err *e)
{
    int rc;

    if (!mo_json_is(id, MO_JSON_STRING) || id.n > MO_TASK_ID_MAX)
        return mo_fail(e, MO_EPROTO, "task: taskId is missing or too long");
    mo_buf_puts(&t->params, "{\"taskId\":");
    mo_buf_span(&t->params, mo_json_text(id));
    rc = mo_buf_putc(&t->params, '}');
    if (rc == 0)
        rc = mo_json_str_buf(id, &t->name);
    return rc < 0 ? mo_fail(e, rc, "task") : 0;
}

int mo_task_watch(struct mo_conn *c, struct mo_json result,
                  const struct mo_task_opts *o, struct mo_task **out,
                  struct mo_err *e)
{
    struct mo_json task = task_in(c, result);
    struct mo_task *t = mo_new(struct mo_task);
    int rc;

    if (!t)
        return mo_fail(e, MO_ENOMEM, "task");
    *t = (struct mo_task){
        .c = c, .o = *o, .poll_ms = MO_TASK_POLL_MS, .status = MO_TASK_WORKING};
    mo_list_push(&c->tasks, &t->node);
    mo_buf_init(&t->params, (size_t)2 * MO_TASK_ID_MAX);
    mo_buf_init(&t->name, MO_TASK_ID_MAX);
    mo_map_init(&t->seen, MO_TASK_INPUTS_MAX);
    mo_timer_init(&t->poll, on_poll);
    mo_timer_init(&t->hard, on_hard);
    mo_later_init(&t->later, on_later);
    rc = copy_task_id(t, mo_json_get(task, "taskId"), e);
    if (rc < 0) {
        task_free(t);
        return rc;
    }
    set_poll_interval(t, task);
    mo_timer_start(c->loop, &t->poll,
                   status_of(task) == MO_TASK_WORKING ? t->poll_ms : 0);
    if (o->hard_ms != MO_CALL_FOREVER)
        mo_timer_start(c->loop, &t->hard,
                       o->hard_ms ? o->hard_ms : MO_TASK_HARD_MS);
    *out = t;
    return 0;
}
