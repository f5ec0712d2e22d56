/* try_tool_live.c - a tool that is being tried: its progress, the questions of
 * its server, and cancelling; see try_tool.h.
 *
 * Ownership: a question belongs to its job from on_ask until it is answered,
 * also if the server no longer waits for it. */
#include "codec/json/jschema.h"
#include "codec/rpc.h"
#include "mcp/client/form.h"
#include "servers/try_tool_priv.h"

#define LIVE_ANSWER_MAX ((size_t)256 * 1024)

static struct job *find_run(struct mo_try_tool *t, struct mo_span run)
{
    mo_list_each_entry (j, &t->jobs, struct job, node) {
        if (run.n && mo_span_eq(mo_buf_view(&j->run), run))
            return j;
    }
    return NULL;
}

/* --- progress ------------------------------------------------------------- */

void mo_try_tool_progress(void *ctx, struct mo_json params)
{
    static const char *const members[] = {"progress", "total", "message"};
    struct job *j = ctx;
    struct mo_jw w;

    mo_buf_reset(&j->progress);
    w = mo_jw_object(&j->progress);
    for (size_t i = 0; i < MO_COUNT(members); i++) {
        struct mo_json v = mo_json_get(params, members[i]);

        if (v.p)
            mo_jw_member_raw(&w, members[i], mo_json_text(v));
    }
    mo_jw_end(&w);
    if (mo_buf_err(&j->progress))
        mo_buf_reset(&j->progress);
}

/* --- questions ------------------------------------------------------------ */

static bool is_page(const struct mo_ask *a)
{
    return mo_json_str_eq(mo_json_get(a->params, "mode"), MO_SPAN("url"));
}

/* The row has the action, not the answer, which is private. */
static void end_question(struct job *j, const char *action,
                         struct mo_span result, const char *by)
{
    struct mo_ask *a = mo_take_ptr(&j->ask);
    const struct mo_audit_row row = {
        .event = "asked",
        .subject = mo_span_cstr(is_page(a) ? "url" : "form"),
        .server = mo_buf_view(&j->server),
        .tool = mo_buf_view(&j->name),
        .action = action,
        .by = by,
        .who = mo_buf_view(&j->who),
    };
    mo_autobuf struct mo_buf plain = {.max = 64};

    mo_timer_stop(j->t->o.loop, &j->ask_timer);
    mo_audit_note(j->t->o.audit, &row);
    (void)mo_buf_printf(&plain, "{\"action\":\"%s\"}", action);
    a->user = NULL;
    mo_ask_answer(a, result.n ? result : mo_buf_view(&plain));
}

static void on_question_expired(struct mo_timer *t)
{
    end_question(mo_container_of(t, struct job, ask_timer), "cancel",
                 mo_span(NULL, 0), "time");
}

void mo_try_tool_live_init(struct job *j)
{
    j->run.max = WORD_MAX;
    j->progress.max = PROGRESS_MAX;
    mo_timer_init(&j->ask_timer, on_question_expired);
}

void mo_try_tool_live_end(struct job *j)
{
    if (j->ask)
        end_question(j, "cancel", mo_span(NULL, 0), "cancel");
    mo_buf_fini(&j->run);
    mo_buf_fini(&j->progress);
}

static struct job *job_of_call(struct mo_try_tool *t, uint64_t number)
{
    mo_list_each_entry (j, &t->jobs, struct job, node) {
        if (j->call && number && mo_call_number(j->call) == number)
            return j;
    }
    return NULL;
}

void mo_try_tool_question(void *ctx, struct mo_conn *conn, struct mo_ask *a)
{
    struct mo_try_tool *t = ctx;
    struct job *j = job_of_call(t, a->call);
    const char *why = NULL;

    (void)conn;
    if (a->kind != MO_ASK_ELICIT)
        why = "this client supports elicitation only";
    else if (!j || !j->run.len)
        why = "the call that the question belongs to is unknown";
    else if (j->ask || j->canceled)
        why = "the call has an open question or is being stopped";
    else if (!mo_json_is(mo_json_get(a->params, "message"), MO_JSON_STRING))
        why = "message must be a string";
    if (why) {
        mo_ask_refuse(a, MO_RPC_INVALID_PARAMS, why);
        return;
    }
    j->ask = a;
    a->user = j;
    mo_random_token(j->ask_id, CALL_RANDOM);
    mo_timer_start(t->o.loop, &j->ask_timer, ASK_MS);
}

void mo_try_tool_question_gone(void *ctx, struct mo_ask *a)
{
    (void)ctx;
    if (a->user)
        end_question(a->user, "cancel", mo_span(NULL, 0), "server");
}

/* --- what the page sees --------------------------------------------------- */

int mo_try_tool_look(struct mo_try_tool *t, struct mo_span run,
                     struct mo_buf *out)
{
    const struct job *j = find_run(t, run);
    struct mo_jw w;

    if (!j)
        return MO_ENOTFOUND;
    w = mo_jw_object(out);
    mo_jw_member_bool(&w, "calling", j->call != NULL);
    if (j->progress.len)
        mo_jw_member_raw(&w, "progress", mo_buf_view(&j->progress));
    if (j->ask) {
        struct mo_json p = j->ask->params;
        struct mo_json what =
            mo_json_get(p, is_page(j->ask) ? "url" : "requestedSchema");

        mo_jw_member_obj(&w, "question");
        mo_jw_member_cstr(&w, "id", j->ask_id);
        mo_jw_member_cstr(&w, "mode", is_page(j->ask) ? "url" : "form");
        mo_jw_member_raw(&w, "message",
                         mo_json_text(mo_json_get(p, "message")));
        if (what.p)
            mo_jw_member_raw(&w, is_page(j->ask) ? "url" : "schema",
                             mo_json_text(what));
        mo_jw_end(&w);
    }
    mo_jw_end(&w);
    return mo_buf_err(out);
}

/* --- what the person says ------------------------------------------------- */

static int accept_form(struct job *j, struct mo_json content,
                       struct mo_buf *out, struct mo_err *e)
{
    const struct mo_jschema_opts o = {.name = "content", .formats = true};
    struct mo_json schema = mo_json_get(j->ask->params, "requestedSchema");
    struct mo_jschema_result r;
    struct mo_json_doc whole;

    if (content.p && !mo_json_is(content, MO_JSON_OBJECT))
        return mo_fail(e, MO_EINVAL, "content is an object");
    if (mo_form_accept(out, schema, content) < 0)
        return mo_fail(e, MO_EINVAL, "the answer is too large");
    if (mo_json_parse(mo_buf_view(out), 0, &whole, e) < 0 ||
        mo_jschema_check(schema, mo_json_get(whole.root, "content"), &o, &r,
                         e) < 0)
        return e->code;
    return r.valid ? 0
                   : mo_fail(e, MO_EINVAL, "%s: %s", r.errors[0].path,
                             r.errors[0].text);
}

static int answer_question(struct job *j, const struct mo_try_tool_word *w,
                           struct mo_err *e)
{
    static const char *const actions[] = {"accept", "decline", "cancel"};
    mo_autobuf struct mo_buf result = {.max = LIVE_ANSWER_MAX};
    const char *action = NULL;

    for (size_t i = 0; i < MO_COUNT(actions); i++)
        if (mo_span_is(w->action, actions[i]))
            action = actions[i];
    if (!action)
        return mo_fail(e, MO_EINVAL, "action is accept, decline or cancel");
    if (!j->ask || !mo_span_eq_ct(mo_span_cstr(j->ask_id), w->question))
        return mo_fail(e, MO_ENOTFOUND, "this question is not open any more");
    if (action == actions[0] && !is_page(j->ask) &&
        accept_form(j, w->content, &result, e) < 0)
        return e->code;
    end_question(j, action, mo_buf_view(&result), "person");
    return 0;
}

int mo_try_tool_tell(struct mo_try_tool *t, struct mo_span run,
                     const struct mo_try_tool_word *w, struct mo_err *e)
{
    struct job *j = find_run(t, run);

    if (!j)
        return mo_fail(e, MO_ENOTFOUND, "the call has ended");
    if (w->question.n)
        return answer_question(j, w, e);
    if (!mo_span_is(w->action, "cancel"))
        return mo_fail(e, MO_EINVAL,
                       "the body is {action: \"cancel\"} or {question, action, "
                       "content?}");
    if (!j->canceled && j->call)
        mo_call_cancel(j->call, "canceled by the person");
    j->canceled = true;
    return 0;
}
