/* forwarded_call_task.c - shows a legacy server's task to a modern client as
 * a task of the modern extension.
 *
 * The two kinds differ too much to be passed on: a task of 2025-11-25 sends
 * its questions as requests and has a method for its result; a modern task
 * returns both by tasks/get. So the call continues without its client,
 * follows the server's task (mcp/client/task.h) and keeps open questions and
 * then the outcome. The client's tasks/... methods are answered from that,
 * under the call's id and only for the client that was given it.
 *
 * Limits: a task is kept for the time that its server names, at most
 * TASK_KEEP_MS. There are at most GW_AWAY_MAX tasks and waiting calls
 * together. Outcomes have at most TASK_BYTES_MAX bytes in all; a longer one
 * is dropped and replaced by an error. */
#include "gateway/call/forwarded_call.h"
#include "gateway/call/result_limit.h"
#include "gateway/call/result_links.h"
#include "mcp/edit.h"

#define TASK_KEEP_MS   ((uint64_t)3600 * 1000)
#define TASK_POLL_MS   500 /* default pollIntervalMs */
#define TASK_BYTES_MAX ((size_t)32 * 1024 * 1024)

struct kept_task {
    uint64_t created, updated; /* wall ms */
    uint64_t ttl_ms, poll_ms;
    size_t bytes; /* counted in g->kept_bytes */
    bool cancelled;
    struct mo_span caller;
    char text[];
};

/* --- status -------------------------------------------------------------- */

static const char *status_of(const struct forwarded_call *f)
{
    if (f->kept_task->cancelled)
        return "cancelled";
    if (f->ended)
        return f->is_error ? "failed" : "completed";
    return mo_list_empty(&f->questions) ? "working" : "input_required";
}

static void put_time(struct mo_jw *w, const char *key, uint64_t ms)
{
    char text[MO_ISO8601_MAX];

    mo_wall_format(ms, text);
    mo_jw_member_cstr(w, key, text);
}

static void put_task(struct mo_jw *w, const struct forwarded_call *f)
{
    mo_jw_member_cstr(w, "taskId", f->id);
    mo_jw_member_cstr(w, "status", status_of(f));
    put_time(w, "createdAt", f->kept_task->created);
    put_time(w, "lastUpdatedAt", f->kept_task->updated);
    mo_jw_member_u64(w, "ttlMs", f->kept_task->ttl_ms);
    mo_jw_member_u64(w, "pollIntervalMs", f->kept_task->poll_ms);
}

static void put_outcome(struct mo_jw *w, const struct forwarded_call *f)
{
    if (!f->ended || f->kept_task->cancelled)
        return;
    mo_jw_member_raw(w, f->is_error ? "error" : "result",
                     mo_buf_view(&f->outcome));
}

/* Writes the task's status. c: the request of the client, which gets the
 * questions; NULL: a notification without them. */
static void put_status(struct mo_buf *b, struct forwarded_call *f,
                       struct mo_ep_call *c)
{
    struct mo_jw w = mo_jw_object(b);

    put_task(&w, f);
    put_outcome(&w, f);
    if (c && !f->ended && !mo_list_empty(&f->questions)) {
        mo_jw_member_obj(&w, "inputRequests");
        mo_forward_show_questions(f, c, &w);
        mo_jw_end(&w);
    }
    mo_jw_end(&w);
}

/* --- life ---------------------------------------------------------------- */

/* Notifies the client. Questions are not included, since it is not known
 * here whether the client supports them: it fetches them by tasks/get. */
static void notify_client(struct forwarded_call *f)
{
    mo_autobuf struct mo_buf b = {.max = 2 * GW_TEXT_MAX};
    bool serves = false;

    mo_list_each_entry (x, &f->g->eps, struct gw_ep, node)
        serves |= x->ep == f->ep;
    if (!serves)
        return;
    put_status(&b, f, NULL);
    if (!mo_buf_err(&b))
        mo_endpoint_task(f->ep, f->kept_task->caller, mo_span_cstr(f->id),
                         mo_buf_view(&b));
}

/* Gives the outcome exposed URIs. The client's view is not known here; a
 * prefixed URI is found in every view. */
static void link_outcome(struct forwarded_call *f)
{
    struct mo_json whole = {f->outcome.p, f->outcome.len};
    struct mo_buf b = {.max = 2 * GW_TEXT_MAX};

    if (f->is_error || mo_buf_err(&f->outcome) || !f->left_server)
        return;
    mo_forward_set_outcome(
        f, &b, mo_result_links(f->g->cat, f->left_server, whole, &b));
}

/* Cuts the outcome to the tool's result limit. */
static void limit_outcome(struct forwarded_call *f)
{
    struct mo_json whole = {f->outcome.p, f->outcome.len};
    struct mo_buf cut = {.max = GW_TEXT_MAX};

    if (f->is_error || !f->limit.max || mo_buf_err(&f->outcome) ||
        whole.n <= f->limit.max)
        return;
    mo_forward_set_outcome(
        f, &cut, mo_result_limit_cut(f->g->results, &f->limit, whole, &cut));
}

/* Counts the outcome's bytes; one that is too big becomes an error. */
static void count_outcome(struct forwarded_call *f)
{
    struct mo_gateway *g = f->g;

    if (mo_buf_err(&f->outcome) ||
        g->kept_bytes + f->outcome.len > TASK_BYTES_MAX) {
        mo_buf_fini(&f->outcome);
        mo_buf_init(&f->outcome, GW_TEXT_MAX);
        (void)mo_buf_puts(&f->outcome,
                          "{\"code\":-32603,\"message\":"
                          "\"the outcome is too big to be kept\"}");
        f->is_error = true;
    }
    f->kept_task->bytes = f->outcome.len;
    g->kept_bytes += f->kept_task->bytes;
}

void mo_forward_task_changed(struct forwarded_call *f)
{
    f->kept_task->updated = mo_wall_ms();
    if (f->ended && !f->kept_task->bytes) {
        link_outcome(f);
        limit_outcome(f);
        count_outcome(f);
    }
    notify_client(f);
}

void mo_forward_task_free(struct forwarded_call *f)
{
    if (!f->kept_task)
        return;
    f->g->kept_bytes -= f->kept_task->bytes;
    mo_free(f->kept_task);
    f->kept_task = NULL;
}

static uint64_t read_ms(struct mo_json v, uint64_t usual, uint64_t most)
{
    uint64_t ms;

    if (mo_json_u64(v, &ms) < 0 || ms == 0)
        ms = usual;
    return ms < most ? ms : most;
}

static struct kept_task *kept_task_new(const struct mo_ep_call *c,
                                       struct mo_json task)
{
    struct kept_task *k = mo_zalloc(sizeof(*k) + c->caller.n + 1);

    if (!k)
        return NULL;
    if (c->caller.n)
        memcpy(k->text, c->caller.p, c->caller.n);
    k->caller = mo_span(k->text, c->caller.n);
    k->created = k->updated = mo_wall_ms();
    k->ttl_ms = read_ms(mo_json_get(task, "ttl"), TASK_KEEP_MS, TASK_KEEP_MS);
    k->poll_ms = read_ms(mo_json_get(task, "pollInterval"), TASK_POLL_MS,
                         MO_TASK_POLL_MAX_MS);
    return k;
}

bool mo_forward_task_begin(struct forwarded_call *f, struct mo_json task)
{
    struct mo_ep_call *c = f->client == CLIENT_WAITING ? f->down : NULL;
    mo_autobuf struct mo_buf b = {.max = GW_TEXT_MAX};
    struct mo_jw w;

    if (!c || f->route.len || !mo_mcp_is_modern(c->version) ||
        !mo_ep_call_has_ext(c, MO_MCP_EXT_TASKS) || mo_forward_park(f) < 0)
        return false;
    f->kept_task = kept_task_new(c, task);
    if (!f->kept_task)
        return false;
    w = mo_jw_object(&b);
    mo_jw_member(&w, "resultType", MO_SPAN("task"));
    put_task(&w, f);
    mo_jw_end(&w);
    f->down = NULL;
    f->client = CLIENT_HAS_TASK;
    mo_timer_start(f->g->loop, &f->expiry, f->kept_task->ttl_ms);
    mo_rewrite_answer(c, &b);
    return true;
}

/* --- tasks/... methods --------------------------------------------------- */

static void answer_get(struct forwarded_call *f, struct mo_ep_call *c)
{
    mo_autobuf struct mo_buf b = {.max = 2 * GW_TEXT_MAX};

    put_status(&b, f, c);
    mo_rewrite_answer(c, &b);
}

static void answer_update(struct forwarded_call *f, struct mo_ep_call *c)
{
    mo_forward_answer_questions(f, mo_json_get(c->params, "inputResponses"));
    f->kept_task->updated = mo_wall_ms();
    mo_ep_call_result(c, MO_SPAN("{}"));
}

/* The task is kept until it expires, so that its client can see the status. */
static void answer_cancel(struct forwarded_call *f, struct mo_ep_call *c)
{
    if (!f->ended && !f->kept_task->cancelled) {
        f->kept_task->cancelled = true;
        mo_forward_drop_questions(f, "the client cancelled it");
        if (f->task)
            mo_task_cancel(f->task);
        mo_forward_task_changed(f);
    }
    mo_ep_call_result(c, MO_SPAN("{}"));
}

bool mo_forward_task_method(struct mo_gateway *g, struct mo_ep_call *c)
{
    static const struct {
        const char *method;
        void (*run)(struct forwarded_call *f, struct mo_ep_call *c);
    } task_methods[] = {
        {"tasks/get", answer_get},
        {"tasks/update", answer_update},
        {"tasks/cancel", answer_cancel},
    };
    struct forwarded_call *f = NULL;
    char who[MO_GW_WHO_MAX];

    if (!mo_rewrite_is_task_method(c))
        return false;
    f = mo_map_get(&g->parked, c->name);
    mo_rewrite_client(c, who);
    if (!f || f->client != CLIENT_HAS_TASK || strcmp(who, f->who) != 0)
        return false;
    for (size_t i = 0; i < MO_COUNT(task_methods); i++) {
        if (mo_span_is(c->method, task_methods[i].method)) {
            task_methods[i].run(f, c);
            return true;
        }
    }
    return false;
}

/* --- _meta of a legacy task ---------------------------------------------- */

int mo_forward_strip_task_meta(struct mo_json result, struct mo_buf *out)
{
    struct mo_json meta = mo_json_get(result, "_meta");
    struct mo_edit id = {MO_MCP_P_TASK, {NULL, 0}}, ed = {"_meta", {NULL, 0}};
    mo_autobuf struct mo_buf b = {.max = GW_TEXT_MAX};
    int rc = 0;

    if (!mo_json_get(meta, MO_MCP_P_TASK).p)
        return 0;
    if (mo_json_len(meta) > 1) {
        rc = mo_edit(&b, meta, &id, 1);
        ed.to = mo_buf_view(&b);
    }
    if (rc == 0)
        rc = mo_edit(out, result, &ed, 1);
    return rc;
}
