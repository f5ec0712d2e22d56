/* forwarded_call_end.c - the outcome of a call: the server's result, a task,
 * an error of ours, or an unknown outcome; and its delivery.
 *
 * A result is passed on at once if the client waits for it; otherwise it is
 * kept until the client returns. Secrets are removed from everything that a
 * server returned (secrets/redact.h). */
#include <stdio.h>

#include "gateway/call/call_approval.h"
#include "gateway/call/forwarded_call.h"
#include "gateway/call/result_limit.h"
#include "gateway/call/result_links.h"
#include "gateway/call/rewrite.h"
#include "mcp/edit.h"
#include "secrets/redact.h"

#define META_ROUTE  "mcp-orchestrator/route"
#define META_BUDGET "mcp-orchestrator/budget"

static const struct mo_span nothing = {NULL, 0};

/* --- outcome ------------------------------------------------------------- */

/* Writes an error of ours: the reason, the server, and whether the call may
 * have been run. */
static void put_failure(struct forwarded_call *f, const char *why, bool sent)
{
    const struct server_slot *s = f->slot;
    struct mo_jw w;

    mo_buf_reset(&f->outcome);
    w = mo_jw_object(&f->outcome);
    mo_jw_member_i64(&w, "code", MO_RPC_INTERNAL);
    mo_jw_member_cstr(&w, "message", why);
    mo_jw_member_obj(&w, "data");
    if (s && s->up)
        mo_jw_member_cstr(&w, "server", mo_upstream_server(s->up)->name);
    if (f->failover.first_server) {
        mo_jw_member_cstr(&w, "insteadOf", f->failover.first_server);
        mo_jw_member_cstr(&w, "why", f->failover.why);
    }
    mo_jw_member_cstr(&w, "outcome",
                      sent || f->failover.sent ? "unknown" : "not sent");
    mo_jw_end_all(&w);
    f->is_error = true;
}

/* Sends the result with the route in its _meta. */
static void send_routed_result(struct mo_ep_call *c, struct mo_json result,
                               struct mo_span route)
{
    struct mo_edit in = {META_ROUTE, route}, ed = {"_meta", {NULL, 0}};
    mo_autobuf struct mo_buf meta = {.max = GW_TEXT_MAX};
    mo_autobuf struct mo_buf b = {.max = GW_TEXT_MAX};
    int rc;

    rc = mo_edit(&meta, mo_json_get(result, "_meta"), &in, 1);
    ed.to = mo_buf_view(&meta);
    if (rc == 0)
        rc = mo_edit(&b, result, &ed, 1);
    mo_ep_call_result(c, rc == 0 ? mo_buf_view(&b) : mo_json_text(result));
}

/* The name of the server that has answered; NULL: it is not known. */
static const char *answering_server(const struct forwarded_call *f)
{
    return f->slot && f->slot->up ? mo_upstream_server(f->slot->up)->name
                                  : f->left_server;
}

/* Writes the result with exposed URIs. False: it has them. */
static bool rename_uris(const struct forwarded_call *f,
                        const struct mo_ep_call *c, struct mo_json result,
                        struct mo_buf *out)
{
    const char *server = answering_server(f);

    if (f->prefixed)
        return mo_rewrite_result_uris(c, result, out) == 0;
    return server && mo_rewrite_has_links(c) &&
           mo_result_links(mo_gw_cat_of(f->g, c), server, result, out);
}

static void send_result(const struct forwarded_call *f, struct mo_ep_call *c,
                        struct mo_json result)
{
    mo_autobuf struct mo_buf cut = {.max = GW_TEXT_MAX};
    mo_autobuf struct mo_buf renamed = {.max = 2 * GW_TEXT_MAX};

    if (rename_uris(f, c, result, &renamed))
        result = (struct mo_json){renamed.p, renamed.len};
    if (f->limit.max && result.n > f->limit.max &&
        mo_result_limit_cut(f->g->results, &f->limit, result, &cut))
        result = (struct mo_json){cut.p, cut.len};
    if (f->route.len)
        send_routed_result(c, result, mo_buf_view(&f->route));
    else
        mo_ep_call_result(c, mo_json_text(result));
}

void mo_forward_deliver(struct forwarded_call *f)
{
    struct mo_ep_call *c = f->down;
    struct mo_json v = {f->outcome.p, f->outcome.len};

    f->down = NULL;
    f->client = CLIENT_GONE;
    if (mo_buf_err(&f->outcome))
        mo_ep_call_error(c, MO_RPC_INTERNAL, "out of memory", nothing);
    else if (mo_forward_answer_lacking(
                 f, c, f->is_error || mo_json_flag(v, "isError")))
        mo_buf_reset(&f->outcome);
    else if (f->is_error)
        mo_ep_call_error_raw(c, v);
    else
        send_result(f, c, v);
    mo_forward_free(f);
}

/* Ends the call; its outcome is in the buffer. */
static void end_call(struct forwarded_call *f)
{
    const char *server = answering_server(f);

    f->ended = true;
    mo_forward_drop_questions(f, "the call has ended");
    if (server && !f->left_server)
        f->left_server = mo_strndup(server, strlen(server));
    mo_forward_leave_server(f);
    if (f->client == CLIENT_WAITING)
        mo_forward_deliver(f);
    else if (f->client == CLIENT_ASKED)
        mo_loop_defer(f->g->loop, &f->later);
    else if (f->client == CLIENT_HAS_TASK)
        mo_forward_task_changed(f);
    else if (f->client == CLIENT_GONE)
        mo_forward_free(f);
}

void mo_forward_set_outcome(struct forwarded_call *f, struct mo_buf *b,
                            bool use)
{
    struct mo_buf old = use ? f->outcome : *b;

    if (use)
        f->outcome = *b;
    mo_buf_fini(&old);
}

/* Removes secrets from the outcome. */
static void redact_outcome(struct forwarded_call *f)
{
    struct mo_json said = {f->outcome.p, f->outcome.len};
    struct mo_buf b = {.max = 2 * GW_TEXT_MAX};

    if (mo_buf_err(&f->outcome))
        return;
    said = mo_redact(f->g->loop, said, &b);
    if (!said.p)
        f->outcome.err = MO_ENOMEM;
    mo_forward_set_outcome(f, &b, said.p && said.p == b.p);
}

void mo_forward_fail(struct forwarded_call *f, const char *why, bool sent)
{
    mo_call_approval_done(f, sent ? MO_GW_LOST : MO_GW_ERROR, 0);
    put_failure(f, why, sent);
    redact_outcome(f);
    end_call(f);
}

void mo_forward_refuse(struct forwarded_call *f, struct mo_span text)
{
    struct mo_jw w;

    mo_buf_reset(&f->outcome);
    w = mo_jw_object(&f->outcome);
    mo_rewrite_put_text(&w, text);
    mo_jw_member_bool(&w, "isError", true);
    mo_jw_end(&w);
    f->is_error = false;
    end_call(f);
}

/* {"limit":"callsPerMinute","retryAfterMs":1200} */
static void put_limit(struct mo_jw *w, const struct mo_budget_no *no)
{
    mo_jw_member_cstr(w, "limit", mo_budget_kind_name(no->kind));
    if (no->wait_ms)
        mo_jw_member_u64(w, "retryAfterMs", no->wait_ms);
}

void mo_forward_over_budget(struct forwarded_call *f,
                            const struct mo_budget_no *no)
{
    struct mo_jw w;

    mo_buf_reset(&f->outcome);
    w = mo_jw_object(&f->outcome);
    f->is_error = !mo_span_is(f->down->method, "tools/call");
    if (f->is_error) {
        mo_jw_member_i64(&w, "code", MO_RPC_INTERNAL);
        mo_jw_member_cstr(&w, "message", no->text);
        mo_jw_member_obj(&w, "data");
        mo_jw_member_cstr(&w, "outcome", "not sent");
    } else {
        mo_rewrite_put_text(&w, mo_span_cstr(no->text));
        mo_jw_member_bool(&w, "isError", true);
        mo_jw_member_obj(&w, "_meta");
        mo_jw_member_obj(&w, META_BUDGET);
    }
    put_limit(&w, no);
    mo_jw_end_all(&w);
    mo_call_approval_done(f, MO_GW_DENIED, 0);
    end_call(f);
}

/* Common case: passes the reply to the waiting client at once. The client
 * gets it before the outcome is recorded, so that it does not wait for that. */
static void pass_reply(struct forwarded_call *f, const struct mo_reply *r)
{
    struct mo_ep_call *c = f->down;
    mo_autobuf struct mo_buf b = {.max = 2 * GW_TEXT_MAX};
    struct mo_json said;

    f->down = NULL;
    said = mo_redact_reply(f->g->loop, r, &b);
    if (!said.p)
        mo_ep_call_error(c, MO_RPC_INTERNAL, "out of memory", nothing);
    else if (r->error.p)
        mo_ep_call_error_raw(c, said);
    else
        send_result(f, c, said);
    mo_call_approval_reply(f, r);
    f->client = CLIENT_GONE;
    mo_forward_free(f);
}

static void fail_without_answer(struct forwarded_call *f,
                                const struct mo_err *why, bool sent)
{
    const char *name = f->slot && f->slot->up
                           ? mo_upstream_server(f->slot->up)->name
                           : "the server";
    char text[sizeof(why->msg) + 160];

    (void)snprintf(text, sizeof(text), "%s: %s; %s", name, why->msg,
                   sent ? "it is not known whether the call was done"
                        : "nothing was done");
    mo_forward_fail(f, text, sent);
}

/* True if a call over HTTP was cut off while the connection object lives on. */
static bool is_cut_off(const struct forwarded_call *f, const struct mo_reply *r)
{
    struct mo_conn *conn = mo_child_conn(f->child);
    struct mo_link *k = conn ? mo_conn_link(conn) : NULL;

    return k && mo_link_is_http(k) &&
           (r->err->code == MO_ECLOSED || mo_failover_is_unsent(r));
}

/* Reports the end of a call to the server's breaker. */
static void report_to_breaker(struct forwarded_call *f,
                              const struct mo_reply *r)
{
    if (!f->child)
        return;
    if (!r->err)
        mo_child_report(f->child, false);
    else if (r->err->code == MO_ETIMEOUT || r->err->code == MO_EPROTO ||
             is_cut_off(f, r))
        mo_child_report_fault(f->child, r->err);
    if (r->err && r->err->code == MO_ETIMEOUT)
        mo_child_ping(f->child);
}

/* True if the headers did not match: our schema of the tool is outdated. The
 * number means that only from a server that gets such headers; a legacy server
 * may use it for anything. */
static bool is_header_mismatch(const struct forwarded_call *f,
                               const struct mo_reply *r)
{
    return r->error.p && r->code == MO_MCP_HEADER_MISMATCH && f->child &&
           mo_forward_has_headers(mo_child_conn(f->child));
}

/* The call was not run, so it is sent once more after the list was read again.
 * True: it will be. */
static bool reread_tools(struct forwarded_call *f)
{
    struct gw_child *k =
        f->slot && f->child ? mo_gw_child(f->slot, f->child) : NULL;
    bool again = k && !f->retried && f->client == CLIENT_WAITING &&
                 mo_list_empty(&f->questions);

    f->awaits_tools = again;
    f->retried = f->retried || again;
    if (k)
        f->g->read_lists(k, 1u << MO_CAT_TOOLS);
    return again;
}

/* Keeps the outcome for a client that is not waiting. */
static void keep_outcome(struct forwarded_call *f, const struct mo_reply *r)
{
    struct mo_json said;
    mo_autobuf struct mo_buf b = {.max = 2 * GW_TEXT_MAX};

    said = mo_redact_reply(f->g->loop, r, &b);
    f->is_error = r->error.p != NULL;
    mo_buf_reset(&f->outcome);
    if (said.p)
        (void)mo_buf_span(&f->outcome, mo_json_text(said));
    else
        f->outcome.err = MO_ENOMEM;
}

static void finish_call(struct forwarded_call *f, const struct mo_reply *r)
{
    if (f->latency)
        mo_latency_add(f->latency, (mo_now_ns() - f->sent_ns) / 1000,
                       r->err != NULL);
    report_to_breaker(f, r);
    if (is_header_mismatch(f, r) && reread_tools(f))
        return;
    if (r->err) {
        enum failover_how how =
            mo_failover_is_unsent(r) ? FAILOVER_NO_CHILD : FAILOVER_SENT;

        if (!mo_failover_retry(f, how, r->err))
            fail_without_answer(f, r->err, f->failover.sent);
        return;
    }
    if (f->client == CLIENT_WAITING && mo_list_empty(&f->questions) &&
        !f->lacked.len) {
        pass_reply(f, r);
    } else {
        mo_call_approval_reply(f, r);
        keep_outcome(f, r);
        end_call(f);
    }
}

/* --- tasks --------------------------------------------------------------- */

static void on_task_done(void *ctx, const struct mo_reply *r)
{
    struct forwarded_call *f = ctx;
    struct mo_reply plain = *r;
    mo_autobuf struct mo_buf b = {.max = GW_TEXT_MAX};

    f->task = NULL;
    if (r->result.p && mo_forward_strip_task_meta(r->result, &b) == 0 && b.len)
        plain.result = (struct mo_json){b.p, b.len};
    finish_call(f, &plain);
}

/* Passes the task to a client that supports tasks, under an exposed id. */
static bool pass_task(struct forwarded_call *f, struct mo_json result)
{
    struct mo_conn *conn = mo_child_conn(f->child);
    struct mo_ep_call *c = f->client == CLIENT_WAITING ? f->down : NULL;

    if (!c || !mo_conn_info(conn)->modern || !mo_mcp_is_modern(c->version) ||
        !mo_ep_call_has_ext(c, MO_MCP_EXT_TASKS))
        return false;
    mo_buf_reset(&f->outcome);
    (void)mo_rewrite_task_result(f->g, c, f->slot, &f->limit, result,
                                 &f->outcome);
    f->limit.max = 0; /* the limit is for the task's result */
    mo_call_approval_done(f, MO_GW_OK,
                          result.n); /* the client follows the task itself */
    end_call(f);
    return true;
}

/* Makes the result of a tasks/... method: with the exposed id, and with the
 * result limit of the task's tool. */
static void make_task_outcome(struct forwarded_call *f, struct mo_json task)
{
    struct result_limit how = {.who = f->who};
    struct mo_buf cut = {.max = 2 * GW_TEXT_MAX};
    struct mo_json said;

    mo_buf_reset(&f->outcome);
    mo_rewrite_task_limit(f->down->name, &how);
    (void)mo_rewrite_task_result(f->g, f->down, f->slot, &how, task,
                                 &f->outcome);
    if (mo_redact_task_failed(task))
        redact_outcome(f);
    said = (struct mo_json){f->outcome.p, f->outcome.len};
    mo_forward_set_outcome(
        f, &cut,
        !mo_buf_err(&f->outcome) &&
            mo_result_limit_task(f->g->results, &how, said, &cut));
}

static void watch_task(struct forwarded_call *f, struct mo_json result)
{
    struct mo_task_opts o = {
        .on_input = mo_forward_task_input,
        .done = on_task_done,
        .ctx = f,
    };
    struct mo_err e;

    f->failover.pinned = true;
    if (mo_task_watch(mo_child_conn(f->child), result, &o, &f->task, &e) < 0)
        fail_without_answer(f, &e, true);
    else if (f->client == CLIENT_GONE)
        mo_task_cancel(f->task);
    else
        (void)mo_forward_task_begin(f, mo_json_get(result, "task"));
}

/* Parses the result, which may be long, only if it can be a task. */
static bool is_task_result(const struct forwarded_call *f,
                           const struct mo_conn *conn, const struct mo_reply *r)
{
    return (r->task || f->as_task) && mo_task_is(conn, r->result);
}

void mo_forward_done(void *ctx, const struct mo_reply *r)
{
    struct forwarded_call *f = ctx;
    struct mo_conn *conn = f->child ? mo_child_conn(f->child) : NULL;

    f->call = NULL;
    if (f->span)
        mo_call_trace_done(f, r);
    if (!r->result.p || !conn) {
        finish_call(f, r);
    } else if (f->down && f->client == CLIENT_WAITING &&
               mo_rewrite_is_task_method(f->down)) {
        make_task_outcome(f, r->result);
        report_to_breaker(f, r);
        end_call(f);
    } else if (!is_task_result(f, conn, r)) {
        finish_call(f, r);
    } else if (!pass_task(f, r->result)) {
        watch_task(f, r->result);
    }
}
