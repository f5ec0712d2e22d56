/* run.c - runs an approved call: in the session's box, on a server behind the
 * gateway, or in the gateway itself.
 *
 * The call is already stored as running (calls.c). From here on it gets exactly
 * one outcome. If it is unknown whether the call had an effect, the outcome
 * says so. */

#include "agent/chat/apps.h"
#include "agent/chat/calls.h"
#include "agent/chat/chat_write.h"
#include "agent/chat/event.h"
#include "agent/chat/load_tools.h"
#include "agent/chat/script_calls.h"
#include "agent/chat/skills.h"
#include "gateway/inside.h"
#include "mcp/content.h"

/* Concurrent calls in one box, which refuses more than twice as many. */
#define AT_ONCE         8
#define SCRIPTS_AT_ONCE 4
#define CHECK_MS        30000 /* timeout of the check that a tool is unchanged */
#define ROUTE           "mcp-orchestrator/route"

static void on_progress(void *ctx, struct mo_json params)
{
    struct call *k = ctx;

    if (k->chat->hold)
        mo_session_touch(k->chat->hold);
    mo_chat_call_arm_idle(k);
    mo_chat_event_relay(k->chat, k, "tool:progress", params);
}

/* Restarts the idle timer. It does not run while a question is open, or a call
 * of the script. */
void mo_chat_call_arm_idle(struct call *k)
{
    struct mo_loop *l = k->chat->agent->loop;

    mo_timer_stop(l, &k->idle_timer);
    if (k->running && k->questions == 0 && !mo_script_waits(k) &&
        k->idle_ms != MO_CALL_FOREVER)
        mo_timer_start(l, &k->idle_timer, k->idle_ms);
}

void mo_chat_call_idle_timeout(struct mo_timer *t)
{
    struct call *k = mo_container_of(t, struct call, idle_timer);

    k->late = true;
    mo_call_cancel(k->running, "timeout");
}

/* Records that another server ran the call. */
static void take_route(struct call *k, struct mo_json result)
{
    struct mo_json route = mo_json_get(mo_json_get(result, "_meta"), ROUTE);

    if (k->tool->source != SOURCE_SERVERS || !route.p)
        return;
    mo_buf_reset(&k->route);
    if (mo_json_compact(route, &k->route) < 0)
        mo_buf_reset(&k->route);
}

/* Handles an error response. For errors of its own the gateway says whether the
 * call may have had an effect. */
static void take_error(struct call *k, struct mo_json error)
{
    struct mo_json outcome = mo_json_get(mo_json_get(error, "data"), "outcome");
    struct mo_span text = MO_SPAN("no reason given");
    bool ours = k->tool->source == SOURCE_SERVERS;
    mo_autoarena struct mo_arena a = {.cap = 65536};

    (void)mo_json_str(mo_json_get(error, "message"), &a, &text);
    if (ours && mo_json_str_eq(outcome, MO_SPAN("unknown")))
        mo_chat_call_fail(
            k, MO_CALL_UNKNOWN,
            "The call did not come back (%.*s). Whether it had an effect "
            "is unknown.",
            (int)text.n, text.p);
    else if (ours && mo_json_str_eq(outcome, MO_SPAN("not sent")))
        mo_chat_call_fail(k, MO_CALL_DONE, "The call was not run: %.*s",
                          (int)text.n, text.p);
    else
        mo_chat_call_fail(k, MO_CALL_DONE, "The tool refused the call: %.*s",
                          (int)text.n, text.p);
}

void mo_chat_call_no_result(struct call *k, const struct mo_reply *r)
{
    if (r->error.p) {
        take_error(k, r->error);
        return;
    }
    if (k->canceled && !k->late && k->parent && !k->chat->turn.cancel)
        mo_chat_call_fail(k, MO_CALL_UNKNOWN,
                          "The script ended while this call was running. "
                          "Whether it had an effect is unknown.");
    else if (k->canceled && !k->late)
        mo_chat_call_fail(k, MO_CALL_DONE,
                          "The person stopped this call while it was running.");
    else
        mo_chat_call_fail(
            k, MO_CALL_UNKNOWN,
            "The call did not come back (%s). Whether it had an effect "
            "is unknown.",
            k->late  ? "no progress for too long"
            : r->err ? r->err->msg
                     : "no answer");
}

static void on_answer(void *ctx, const struct mo_reply *r)
{
    struct call *k = ctx;

    mo_agent_point(k->chat->agent, "outcome");
    if (!r->result.p) {
        mo_chat_call_no_result(k, r);
        return;
    }
    mo_json_bool(mo_json_get(r->result, "isError"), &k->is_error);
    mo_buf_reset(&k->content);
    mo_content_put_result(&k->content, r->result);
    if (k->parent)
        (void)mo_json_compact(r->result, &k->raw);
    take_route(k, r->result);
    mo_apps_note(k, r->result);
    mo_stand_in_note(k);
    mo_chat_call_outcome(k, MO_CALL_DONE);
}

static void fail_changed(struct call *k)
{
    char text[320];

    snprintf(text, sizeof(text),
             "%.*s was changed by its server after it was offered; the call "
             "was not run.",
             (int)k->tool->name.n, k->tool->name.p);
    mo_chat_event_message(k->chat, NULL, text);
    k->chat->stale = true; /* reload before the next step */
    mo_chat_call_skip(k, "its server changed this tool after it was offered. "
                         "Look at the tool as it is now before you call it "
                         "again");
}

/* The call is about to be sent: it is on record first. */
static int record_call(struct call *k, struct mo_err *e)
{
    const struct chat *c = k->chat;
    const struct mo_audit_row row = {
        .name = mo_buf_view(&k->name),
        .server = k->tool->def.server,
        .tool = k->tool->def.name,
        .call = mo_span_cstr(k->key),
        .args = mo_buf_view(&k->args),
        .digest = k->digest,
        .by = k->by,
        .who = mo_span_cstr(k->who),
        .script = mo_script_digest(k->parent),
        .line = k->line,
    };

    if (c->agent->o.audit == NULL || k->left)
        return 0;
    return mo_audit_begin_row(c->agent->o.audit, mo_span_cstr(c->id), &row,
                              &k->left, e);
}

bool mo_chat_call_request(struct call *k, struct mo_conn *conn,
                          const char *method, const struct mo_buf *params,
                          struct mo_call_opts *o)
{
    char traceparent[MO_TRACE_PARENT_LEN + 1];
    struct mo_err e = {0};

    if (!mo_chat_call_may_run(k))
        return false;
    mo_trace_send(k->span, &o->trace, traceparent);
    if (mo_buf_err(params) == 0 && record_call(k, &e) == 0)
        k->running = mo_conn_request(conn, method, mo_buf_view(params), o, &e);
    else if (mo_buf_err(params))
        mo_fail(&e, params->err, "out of memory");
    else
        mo_wrap(&e, "the audit log cannot be written");
    k->conn = conn;
    if (k->running == NULL)
        mo_chat_call_fail(k, MO_CALL_DONE, "The call was not sent: %s", e.msg);
    return k->running != NULL;
}

/* name: of the tool on that connection; ms: idle timeout. */
static void send_call(struct call *k, struct mo_conn *conn, struct mo_span name,
                      uint64_t ms)
{
    struct mo_call_opts o = {
        .name = name,
        .idle_ms = MO_CALL_FOREVER, /* mo_chat_call_arm_idle() replaces it */
        .hard_ms = MO_CONN_HARD_MS + k->chat->agent->o.approval_ms,
        .on_progress = on_progress,
        .done = on_answer,
        .ctx = k,
    };
    mo_autobuf struct mo_buf params = {.max = MO_EXACT_MAX * 2};
    struct mo_jw w;

    if (mo_script_is(k->tool)) {
        if (!mo_chat_call_may_run(k))
            return;
        if (mo_script_begin(k) == 0)
            o.on_script = mo_script_frame;
    }
    w = mo_jw_object(&params);
    mo_jw_member(&w, "name", name);
    mo_jw_member_raw(&w, "arguments", mo_buf_view(&k->args));
    mo_script_put_meta(&w, k);
    mo_jw_end(&w);
    k->idle_ms = ms;
    if (mo_chat_call_request(k, conn, "tools/call", &params, &o))
        mo_chat_call_arm_idle(k);
}

static void on_box_ready(void *ctx, const struct mo_session_info *info,
                         const struct mo_err *why)
{
    struct call *k = ctx;

    k->chat->writes--;
    k->times.box_ms = (mo_now_ns() - k->used_ns) / MO_MS;
    if (why)
        mo_chat_call_skip(k, "no box (%s)", why->msg);
    else if (k->canceled)
        mo_chat_call_fail(k, MO_CALL_DONE, "%s", mo_chat_call_stopped(k));
    else
        send_call(k, info->conn, k->tool->def.name, MO_CONN_IDLE_MS);
}

/* --- check that the tool is unchanged ------------------------------------ */

/* A list request to a server. While a call waited for approval its server may
 * have changed the tool, so the list is read again before the call is sent; so
 * it is for a call that a mode lets through, about which nobody was asked. A
 * call that a rule allowed is checked only if the gateway reported a change. */
struct tool_check {
    struct mo_gw_read read; /* the server's name follows this struct */
    struct call *call;
};

static const struct mo_cat_item *find_item(const struct call *k)
{
    return mo_gateway_tool(k->chat->agent->o.servers.gateway,
                           k->tool->def.server, k->tool->def.name);
}

static bool is_tool_unchanged(const struct call *k,
                              const struct mo_cat_item *it)
{
    struct mo_tool now = {.source = SOURCE_SERVERS};
    mo_autoarena struct mo_arena a = {.cap = MO_TOOLS_BYTES_MAX};

    return mo_tool_read(&a, k->tool->def.server, k->tool->def.name, it->item,
                        &now) == 0 &&
           strcmp(now.digest, k->tool->digest) == 0;
}

/* Sends the call to its server. The gateway sets the timeout. */
void mo_chat_call_send(struct call *k)
{
    struct mo_conn *conn = mo_gateway_client_conn(k->chat);
    const struct mo_cat_item *it = find_item(k);

    if (conn == NULL)
        mo_chat_call_skip(k, "the gateway cannot be reached");
    else if (it == NULL)
        mo_chat_call_skip(k, "its server is not configured any more, or does "
                             "not have this tool any more");
    else if (!is_tool_unchanged(k, it))
        fail_changed(k);
    else
        send_call(k, conn, it->name, MO_CALL_FOREVER);
}

/* Returns why the list could not be read, or NULL. */
static const char *list_failure(const struct mo_gw_read *r)
{
    size_t i = mo_gateway_server(r->g, mo_span_cstr(r->server));

    if (i >= mo_gateway_count(r->g))
        return "it is not configured any more";
    return r->late ? "no answer in time"
                   : mo_catalog_failed(mo_gateway_catalog(r->g), (unsigned)i);
}

static void end_check(struct call *k)
{
    mo_free(mo_take_ptr(&k->tool_check));
    k->chat->writes--;
}

void mo_chat_call_stop_check(struct call *k)
{
    mo_gateway_unread(&k->tool_check->read);
    end_check(k);
    mo_chat_call_fail(k, MO_CALL_DONE, "%s", mo_chat_call_stopped(k));
}

/* The server is down: tries a stand-in. */
static void try_stand_in(struct call *k, const char *why)
{
    if (!mo_stand_in_next(k, why))
        mo_chat_call_skip(k,
                          "its server did not say whether the tool is still "
                          "the same (%s)",
                          mo_stand_in_why(k, why));
}

static void on_list_read(struct mo_gw_read *r)
{
    struct call *k = mo_container_of(r, struct tool_check, read)->call;
    const char *said = list_failure(r);
    char why[240];

    (void)snprintf(why, sizeof(why), "%s", said ? said : "");
    end_check(k);
    if (said)
        try_stand_in(k, why);
    else if (mo_stand_in_is_checking(k))
        mo_stand_in_list_read(k);
    else
        mo_chat_call_send(k);
}

int mo_chat_call_check_tool(struct call *k, struct mo_span server,
                            struct mo_err *e)
{
    struct tool_check *l = mo_zalloc(sizeof(*l) + server.n + 1);
    char *name = NULL;

    if (l == NULL)
        return mo_fail(e, MO_ENOMEM, "out of memory");
    name = (char *)(l + 1);
    memcpy(name, server.p, server.n);
    l->call = k;
    l->read = (struct mo_gw_read){.server = name,
                                  .peer = mo_gateway_client_peer(k->chat),
                                  .person = mo_span_cstr(k->chat->owner),
                                  .caps = mo_apps_capabilities(k->chat->agent),
                                  .ms = CHECK_MS,
                                  .done = on_list_read};
    k->tool_check = l;
    mo_gateway_read(k->chat->agent->o.servers.gateway, &l->read);
    return 0;
}

/* Calls one of the gateway's own tools. */
static void send_to_router(struct call *k)
{
    struct mo_conn *conn = mo_gateway_client_conn(k->chat);
    char name[sizeof(MO_GW_OURS) + MO_LLM_NAME_MAX];

    (void)snprintf(name, sizeof(name), MO_GW_OURS "%.*s",
                   (int)k->tool->def.name.n, k->tool->def.name.p);
    if (conn)
        send_call(k, conn, mo_span_cstr(name), MO_CALL_FOREVER);
    else
        mo_chat_call_skip(k, "the gateway cannot be reached");
}

/* Starts the call in the box, on a server, or in the gateway. Returns 0 if a
 * callback follows, 1 if it has started or ended. */
static int start_call(struct call *k, struct mo_err *e)
{
    if (k->tool->source == SOURCE_BOX)
        mo_session_trace(k->chat->hold, k->span);
    k->used_ns = mo_now_ns();
    if (k->tool->source == SOURCE_BOX)
        return mo_session_use(k->chat->hold, on_box_ready, k, e);
    if (mo_gateway_client_open(k->chat, e) < 0)
        return e->code;
    if (k->tool->source == SOURCE_SERVERS &&
        (k->expires != 0 || k->of_mode || k->chat->stale))
        return mo_chat_call_check_tool(k, k->tool->def.server, e);
    if (k->tool->source == SOURCE_SERVERS)
        mo_chat_call_send(k);
    else if (mo_read_skill_is_call(k))
        mo_read_skill_run(k);
    else
        send_to_router(k);
    return 1;
}

/* Scripts have places of their own: their calls must find one. */
static bool has_place(const struct call *k)
{
    bool script = mo_script_is(k->tool);
    unsigned n = 0;

    mo_list_each_entry (x, &k->chat->calls.list, struct call, node)
        n += x->started && mo_script_is(x->tool) == script;
    return n < (script ? SCRIPTS_AT_ONCE : AT_ONCE);
}

void mo_chat_calls_next(struct chat *c)
{
    mo_list_each_entry_safe (k, &c->calls.list, struct call, node) {
        if (k->in_line && !k->canceled && !c->turn.cancel && has_place(k))
            mo_chat_call_run(k);
    }
}

void mo_chat_call_start(struct call *k)
{
    struct mo_err e;
    int rc = start_call(k, &e);

    if (rc < 0)
        mo_chat_call_fail(k, MO_CALL_DONE, "The call was not run: %s", e.msg);
    else if (rc == 0)
        k->chat->writes++;
}

void mo_chat_call_run(struct call *k)
{
    struct chat *c = k->chat;

    mo_agent_point(c->agent, "running");
    k->state = MO_CALL_RUNNING;
    k->began = mo_now_ns();
    k->in_line = !has_place(k);
    if (k->in_line)
        return;
    k->started = true;
    mo_call_span_begin(k);
    mo_chat_log_call(k, MO_INFO, 0, "call runs");
    mo_chat_call_count(k);
}
