/*
 * run.c - a call that may run: the box it runs in, its progress, its answer.
 *
 * The store calls it running already (calls.c). Whatever happens from here
 * on, it has exactly one outcome; when nobody can say whether it had an
 * effect, that is the outcome.
 */
#include "agent/chat_priv.h"

/* At once in one box, which refuses more than twice as many. */
#define AT_ONCE 8

static void on_progress(void *ctx, struct mo_json params)
{
    struct call *k = ctx;

    if (k->chat->hold)
        mo_session_touch(k->chat->hold);
    call_patience(k);
    event_progress(k, params);
}

/* Begins anew. Who waits for a person is not late. */
void call_patience(struct call *k)
{
    struct mo_loop *l = k->chat->agent->loop;

    mo_timer_stop(l, &k->patience);
    if (k->running && k->questions == 0)
        mo_timer_start(l, &k->patience, k->idle_ms);
}

void call_late(struct mo_timer *t)
{
    struct call *k = mo_container_of(t, struct call, patience);

    k->late = true;
    mo_call_cancel(k->running, "timeout");
}

/* content, or what stands for it in an answer that has none. */
static void take_content(struct call *k, struct mo_json result)
{
    struct mo_json content = mo_json_get(result, "content");
    struct mo_json structured = mo_json_get(result, "structuredContent");

    mo_buf_reset(&k->content);
    if (mo_json_is(content, MO_JSON_ARRAY) &&
        (mo_json_len(content) > 0 || structured.p == NULL))
        mo_json_compact(content, &k->content);
    else if (structured.p)
        mo_entry_text_content(&k->content, mo_json_text(structured));
    else
        mo_buf_puts(&k->content, "[]");
}

static void on_answer(void *ctx, const struct mo_reply *r)
{
    struct call *k = ctx;
    struct mo_arena a;
    struct mo_span text = MO_SPAN("no reason given");

    agent_point(k->chat->agent, "outcome");
    if (r->result.p) {
        mo_json_bool(mo_json_get(r->result, "isError"), &k->is_error);
        take_content(k, r->result);
        call_outcome(k, MO_CALL_DONE);
        return;
    }
    if (r->error.p) {
        mo_arena_init(&a, 65536);
        (void)mo_json_str(mo_json_get(r->error, "message"), &a, &text);
        call_fail(k, MO_CALL_DONE, "The tool refused the call: %.*s",
                  (int)text.n, text.p);
        mo_arena_fini(&a);
        return;
    }
    if (k->canceled && !k->late)
        call_fail(k, MO_CALL_DONE,
                  "The person stopped this call while it was running.");
    else
        call_fail(k, MO_CALL_UNKNOWN,
                  "The call did not come back (%s). Whether it had an effect "
                  "is unknown.",
                  k->late  ? "no sign of life"
                  : r->err ? r->err->msg
                           : "no answer");
}

static void call_changed(struct call *k)
{
    char text[320];

    snprintf(text, sizeof(text),
             "%.*s was changed by its server after it was offered; the call "
             "was not run.",
             (int)k->name.len, k->name.p);
    event_message(k->chat, NULL, text);
    k->chat->stale = true; /* what it is now is read before the next step */
    call_fail(k, MO_CALL_DONE,
              "The call was not run: its server changed this tool after it "
              "was offered. Look at the tool as it is now before you call it "
              "again.");
}

static void send_call(struct call *k, struct mo_conn *conn, uint64_t ms)
{
    struct mo_call_opts o = {
        .name = k->tool->def.name,
        .idle_ms = MO_CALL_FOREVER, /* call_patience() looks after it */
        .hard_ms = MO_CONN_HARD_MS + k->chat->agent->o.approval_ms,
        .on_progress = on_progress,
        .done = on_answer,
        .ctx = k,
    };
    struct mo_buf params;
    struct mo_jw w;
    struct mo_err e = {0};

    mo_buf_init(&params, MO_EXACT_MAX * 2);
    mo_jw_init(&w, &params);
    mo_jw_obj(&w);
    mo_jw_key(&w, "name");
    mo_jw_str(&w, k->tool->def.name);
    mo_jw_key(&w, "arguments");
    mo_jw_raw(&w, mo_buf_view(&k->args));
    mo_jw_end(&w);
    if (mo_buf_err(&params) == 0)
        k->running =
            mo_conn_request(conn, "tools/call", mo_buf_view(&params), &o, &e);
    else
        mo_fail(&e, params.err, "out of memory");
    mo_buf_fini(&params);
    k->conn = conn;
    k->idle_ms = ms ? ms : MO_CONN_IDLE_MS;
    call_patience(k);
    if (k->running == NULL)
        call_fail(k, MO_CALL_DONE, "The call was not sent: %s", e.msg);
}

static void on_box_there(void *ctx, const struct mo_session_info *info,
                         const struct mo_err *why)
{
    struct call *k = ctx;

    k->chat->writes--;
    if (why)
        call_fail(k, MO_CALL_DONE, "The call was not run: no box (%s).",
                  why->msg);
    else if (k->canceled)
        call_fail(k, MO_CALL_DONE, "The person stopped this call.");
    else
        send_call(k, info->conn, 0);
}

/* --- is it still what was offered? --------------------------------------- */

/* Whoever waited for a person may have been overtaken by the server: its list
 * is read once more before the call is sent. One that was allowed at once is
 * only looked at when the server said that something changed. */
struct look {
    struct call *call;
    struct mo_tools *tools;
};

static const struct mo_tool *now_called(const struct look *l)
{
    for (size_t i = 0; i < mo_tools_count(l->tools); i++) {
        const struct mo_tool *t = mo_tools_at(l->tools, i);

        if (mo_span_eq(t->def.name, l->call->tool->def.name))
            return t;
    }
    return NULL;
}

static void send_to_server(struct call *k)
{
    const struct mo_agent_servers *s = &k->chat->agent->o.servers;
    struct mo_conn *conn = NULL;
    struct mo_err e = {0};
    size_t i = 0;

    if (gather_server(k->chat, k->tool, &i))
        conn = s->conn(s->ctx, i, &e);
    if (conn)
        send_call(k, conn, s->timeout_ms(s->ctx, i));
    else
        call_fail(k, MO_CALL_DONE, "The call was not run: %s", e.msg);
}

static void on_looked(void *ctx, const struct mo_err *why)
{
    struct look *l = ctx;
    struct call *k = l->call;
    const char *failed = why ? why->msg : mo_tools_failed(l->tools, 0);
    const struct mo_tool *t = failed ? NULL : now_called(l);
    bool same = t && strcmp(t->digest, k->tool->digest) == 0;

    k->chat->writes--;
    if (k->canceled)
        call_fail(k, MO_CALL_DONE, "The person stopped this call.");
    else if (failed)
        call_fail(k, MO_CALL_DONE,
                  "The call was not run: its server did not say whether the "
                  "tool is still the same (%s).",
                  failed);
    else if (!same)
        call_changed(k);
    else
        send_to_server(k);
    mo_tools_free(l->tools);
    mo_free(l);
}

static int look_again(struct call *k, struct mo_conn *conn, struct mo_err *e)
{
    const struct mo_tool_source from = {k->tool->def.server, conn, false};
    struct look *l = mo_new(struct look);
    int rc = MO_ENOMEM;

    if (l)
        l->tools = mo_tools_new(k->chat->agent->loop);
    if (l && l->tools) {
        l->call = k;
        rc = mo_tools_load(l->tools, &from, 1, on_looked, l, e);
    } else {
        mo_fail(e, MO_ENOMEM, "out of memory");
    }
    if (rc == 0) {
        k->chat->writes++;
        return 0;
    }
    if (l)
        mo_tools_free(l->tools);
    mo_free(l);
    return rc;
}

static void on_server_there(void *arg, const struct mo_err *why)
{
    struct call *k = arg;
    const struct mo_agent_servers *s = &k->chat->agent->o.servers;
    struct mo_conn *conn = NULL;
    struct mo_err e = {0};
    size_t i = 0;

    k->chat->writes--;
    if (why)
        e = *why;
    else if (gather_server(k->chat, k->tool, &i))
        conn = s->conn(s->ctx, i, &e);
    if (k->canceled)
        call_fail(k, MO_CALL_DONE, "The person stopped this call.");
    else if (conn && k->expires == 0 && !k->chat->stale)
        send_call(k, conn, s->timeout_ms(s->ctx, i));
    else if (conn == NULL || look_again(k, conn, &e) < 0)
        call_fail(k, MO_CALL_DONE, "The call was not run: %s", e.msg);
}

/* Where it runs: in the session's box, or at a server all share. */
static int go_there(struct call *k, struct mo_err *e)
{
    const struct mo_agent_servers *s = &k->chat->agent->o.servers;
    size_t i = 0;

    if (k->tool->source == 0)
        return mo_session_use(k->chat->hold, on_box_there, k, e);
    if (!gather_server(k->chat, k->tool, &i))
        return mo_fail(e, MO_ENOTFOUND, "its server is not configured");
    return s->use(s->ctx, i, on_server_there, k, e);
}

static unsigned under_way(const struct chat *c)
{
    unsigned n = 0;

    mo_list_each (it, &c->calls)
        n += mo_container_of(it, struct call, node)->started;
    return n;
}

void calls_next(struct chat *c)
{
    mo_list_each_safe (it, &c->calls) {
        struct call *k = mo_container_of(it, struct call, node);

        if (k->in_line && !c->cancel && under_way(c) < AT_ONCE)
            call_run(k);
    }
}

void call_run(struct call *k)
{
    struct chat *c = k->chat;
    struct mo_err e;

    agent_point(c->agent, "running");
    k->state = MO_CALL_RUNNING;
    k->began = mo_now_ns();
    k->in_line = under_way(c) >= AT_ONCE;
    if (k->in_line)
        return;
    k->started = true;
    if (go_there(k, &e) < 0)
        call_fail(k, MO_CALL_DONE, "The call was not run: %s", e.msg);
    else
        c->writes++;
}
