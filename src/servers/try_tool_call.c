/* try_tool_call.c - decides whether a tool may be tried, and calls it; see
 * try_tool.h. */
#include "mcp/content.h"
#include "servers/try_tool_priv.h"

/* Begins {"state":state, ...; the caller adds the rest. */
static void begin_state(struct mo_jw *w, struct mo_buf *b, const char *state)
{
    mo_buf_init(b, ANSWER_MAX);
    *w = mo_jw_object(b);
    mo_jw_member_cstr(w, "state", state);
}

static void finish_state(struct job *j, const char *state, struct mo_span why)
{
    struct mo_buf b;
    struct mo_jw w;

    begin_state(&w, &b, state);
    mo_jw_member_opt(&w, "reason", why);
    mo_jw_end(&w);
    mo_try_tool_finish_buf(j, &b);
}

/* --- audit log ------------------------------------------------------------ */

static struct mo_audit_row row_of(const struct job *j)
{
    return (struct mo_audit_row){
        .name = j->tool->def.name,
        .server = j->tool->def.server,
        .tool = j->tool->def.name,
        .args = j->args.len ? mo_buf_view(&j->args) : MO_SPAN("null"),
        .by = j->by,
        .who = mo_buf_view(&j->who),
        .door = &j->door,
    };
}

/* --- the call ------------------------------------------------------------- */

static void audit_result(struct job *j, struct mo_span content, bool is_error,
                         uint64_t ms)
{
    struct mo_audit_row row = row_of(j);
    const struct mo_audit_result result = {
        is_error, ms, content.n <= AUDIT_MAX ? content : MO_SPAN("[]")};

    row.result = &result;
    mo_audit_note(j->t->o.audit, &row);
}

static void put_refusal(struct mo_buf *b, struct mo_json error)
{
    mo_autobuf struct mo_buf text = {.max = (size_t)64 * 1024};

    mo_buf_puts(&text, "The server refused the call: ");
    (void)mo_json_str_buf(mo_json_get(error, "message"), &text);
    mo_content_put_text(b, mo_buf_view(&text));
}

/* True if the gateway reports that the call may have run. */
static bool is_unknown(struct mo_json error)
{
    return mo_json_str_eq(mo_json_get(mo_json_get(error, "data"), "outcome"),
                          MO_SPAN("unknown"));
}

static void finish_unknown(struct job *j, const struct mo_reply *r)
{
    mo_autobuf struct mo_buf why = {.max = (size_t)64 * 1024};

    if (r->error.p)
        (void)mo_json_str_buf(mo_json_get(r->error, "message"), &why);
    else
        mo_buf_puts(&why, r->err ? r->err->msg : "no answer");
    finish_state(j, "unknown", mo_buf_view(&why));
}

static void on_answer(void *ctx, const struct mo_reply *r)
{
    struct job *j = ctx;
    uint64_t ms = (mo_now_ns() - j->began) / MO_MS;
    bool is_error = r->result.p == NULL;
    mo_autobuf struct mo_buf content = {.max = ANSWER_MAX};
    struct mo_buf b;
    struct mo_jw w;

    j->call = NULL;
    if (j->canceled && r->result.p == NULL) {
        audit_result(j, MO_SPAN("[]"), true, ms);
        finish_state(j, "canceled", mo_span(NULL, 0));
        return;
    }
    if (r->result.p == NULL && (r->error.p == NULL || is_unknown(r->error))) {
        audit_result(j, MO_SPAN("[]"), true, ms);
        finish_unknown(j, r);
        return;
    }
    if (r->result.p) {
        (void)mo_json_bool(mo_json_get(r->result, "isError"), &is_error);
        mo_content_put_result(&content, r->result);
    } else {
        put_refusal(&content, r->error);
    }
    audit_result(j, mo_buf_view(&content), is_error, ms);
    begin_state(&w, &b, "done");
    mo_try_tool_put_json(&w, "content", mo_buf_view(&content));
    mo_jw_member_bool(&w, "isError", is_error);
    mo_jw_member_u64(&w, "durationMs", ms);
    mo_jw_end(&w);
    mo_try_tool_finish_buf(j, &b);
}

static struct mo_verdict verdict_of(const struct job *j)
{
    const struct mo_tool_def *d = &j->tool->def;

    return mo_policy_judge(j->t->o.policy,
                           &(struct mo_policy_call){
                               .from = MO_POLICY_PAGE,
                               .server = d->server,
                               .tool = d->name,
                               .claims = j->tool->claims,
                               .args_text = mo_buf_view(&j->args),
                               .schema = {d->schema.p, d->schema.n},
                           });
}

static struct mo_span reason_of(const struct mo_verdict *v)
{
    return v->rule ? v->rule->reason : MO_SPAN("");
}

static void send_call(struct job *j)
{
    const struct mo_cat_item *it = mo_gateway_tool(
        mo_try_tool_gateway(j->t), j->tool->def.server, j->tool->def.name);
    struct mo_call_opts o = {
        .idle_ms = MO_CALL_FOREVER, /* the gateway enforces the timeout */
        .on_progress = j->run.len ? mo_try_tool_progress : NULL,
        .done = on_answer,
        .ctx = j};
    struct mo_err e = {0};
    mo_autobuf struct mo_buf b = {.max = MO_TRY_TOOL_ARGS_MAX * 2};
    struct mo_jw w;

    if (it == NULL || !j->t->open) {
        mo_try_tool_finish_fail(j, MO_EUNAVAIL,
                                "the tool is no longer available");
        return;
    }
    o.name = it->name;
    w = mo_jw_object(&b);
    mo_jw_member(&w, "name", it->name);
    mo_try_tool_put_json(&w, "arguments", mo_buf_view(&j->args));
    mo_jw_end(&w);
    j->began = mo_now_ns();
    if (mo_buf_err(&b))
        mo_fail(&e, b.err, "out of memory");
    else
        j->call =
            mo_conn_request(j->t->conn, "tools/call", mo_buf_view(&b), &o, &e);
    if (j->call)
        e.code = 0;
    if (e.code)
        mo_try_tool_finish(j, mo_span(NULL, 0), &e);
}

/* The rules may have changed while the row was written. The gateway checks the
 * pin of the tool that it calls. */
static void send_if_allowed(struct job *j)
{
    struct mo_verdict v = verdict_of(j);

    if (j->canceled)
        finish_state(j, "canceled", mo_span(NULL, 0));
    else if (mo_verdict_may_run(&v, j->answered, 0))
        send_call(j);
    else
        finish_state(j, "denied", reason_of(&v));
}

static void on_audited(void *ctx, const struct mo_err *why)
{
    struct job *j = ctx;

    if (why)
        mo_try_tool_finish(j, mo_span(NULL, 0), why);
    else if (j->t->stopped)
        mo_try_tool_finish_fail(j, MO_ECLOSED, "the program is ending");
    else
        send_if_allowed(j);
}

static void run_call(struct job *j, const char *by)
{
    struct mo_audit_row row;
    struct mo_err e;

    j->by = by;
    row = row_of(j);
    if (mo_audit_first(j->t->o.audit, &row, on_audited, j, &e) < 0)
        mo_try_tool_finish(j, mo_span(NULL, 0), &e);
}

/* --- decision ------------------------------------------------------------- */

static void digest_of(const struct job *j, const char *call,
                      char out[MO_EXACT_DIGEST])
{
    const struct mo_exact_call what = {
        .session = MO_SPAN("try"),
        .call = mo_span_cstr(call),
        .server = j->tool->def.server,
        .tool = j->tool->def.name,
        .args = mo_buf_view(&j->args),
        .tool_digest = j->tool->digest,
    };

    mo_exact_call(&what, out);
}

/* True if these exact bytes were asked about; consumes the question. */
static bool use_question(struct job *j)
{
    char now[MO_EXACT_DIGEST];

    for (size_t i = 0; i < QUESTIONS; i++) {
        struct question *q = &j->t->asked[i];

        if (q->digest[0] == '\0' ||
            !mo_span_eq_ct(mo_buf_view(&j->digest), mo_span_cstr(q->digest)))
            continue;
        digest_of(j, q->call, now);
        q->digest[0] = '\0';
        return q->expires > mo_now_ns() &&
               mo_span_eq_ct(mo_span_cstr(now), mo_buf_view(&j->digest));
    }
    return false;
}

static void ask_person(struct job *j, struct mo_span reason)
{
    struct mo_try_tool *t = j->t;
    struct question *q = &t->asked[t->next];
    struct mo_buf b;
    struct mo_jw w;

    t->next = (t->next + 1) % QUESTIONS;
    mo_random_token(q->call, CALL_RANDOM);
    digest_of(j, q->call, q->digest);
    q->expires = mo_now_ns() + ASK_MS * MO_MS;
    begin_state(&w, &b, "ask");
    mo_jw_member_cstr(&w, "digest", q->digest);
    mo_try_tool_put_json(&w, "args", mo_buf_view(&j->args));
    mo_jw_member_opt(&w, "reason", reason);
    mo_jw_end(&w);
    mo_try_tool_finish_buf(j, &b);
}

static void run_approved(struct job *j, const struct mo_verdict *v)
{
    if (v->approver != MO_APPROVER_CLIENT && j->from &&
        strcmp(j->from, "token") == 0) {
        finish_state(j, "denied",
                     MO_SPAN("a token cannot approve its own call; sign in to "
                             "the page"));
        return;
    }
    j->answered = MO_ANSWERED_OPERATOR;
    j->door = (struct mo_door){j->from, true};
    run_call(j, "person");
}

static void judge_call(struct job *j)
{
    struct mo_verdict v = verdict_of(j);

    if (v.action == MO_ACTION_DENY)
        finish_state(j, "denied", reason_of(&v));
    else if (v.action == MO_ACTION_ALLOW)
        run_call(j, "rule");
    else if (v.panel.need)
        finish_state(j, "denied",
                     MO_SPAN("a rule says that other persons approve this "
                             "call; it cannot be tried here"));
    else if (j->digest.len > 0 && use_question(j))
        run_approved(j, &v);
    else
        ask_person(j, reason_of(&v));
}

void mo_try_tool_run(struct job *j)
{
    bool same = mo_policy_tool_is_pinned(j->t->o.policy, j->tool, NULL);

    mo_policy_flush_pins(j->t->o.policy);
    if (same)
        judge_call(j);
    else
        finish_state(j, "changed", mo_span(NULL, 0));
}
