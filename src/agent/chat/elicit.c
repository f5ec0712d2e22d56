/* elicit.c - a server asks the person a question while it runs a call.
 *
 * A question belongs to one running call, found by the connection and the
 * number of the call. If the server cannot name the call (two calls at once
 * over one stream), the question is refused, by the gateway for servers behind
 * it, so that it is never shown to another person. While a question is open,
 * the idle timeout of the call is paused and the approval timeout counts
 * instead.
 *
 * Ownership: this file owns the ask until it is answered, even if the server no
 * longer waits for it. end_question() is the only place that frees a question.
 *
 * Limits: MO_CHAT_QUESTIONS open questions per call, MO_CHAT_FIELDS fields in a
 * form. A form that is not of the protocol's flat kind is refused. */
#include "agent/chat/elicit.h"

#include "agent/chat/calls.h"
#include "agent/chat/chat_write.h"
#include "agent/chat/event.h"
#include "agent/chat/sampling.h"
#include "codec/json/jschema.h"
#include "codec/rpc.h"
#include "mcp/client/form.h"

#define ANSWER_MAX ((size_t)256 * 1024)

struct question {
    struct mo_list node; /* in chat->calls.questions */
    struct call *call;
    struct mo_ask *ask;
    char id[ID_MAX];
    bool page;        /* a URL to open instead of a form */
    uint64_t expires; /* wall ms */
    struct mo_timer timer;
};

static const char *const actions[] = {
    [MO_ANSWER_ACCEPT] = "accept",
    [MO_ANSWER_DECLINE] = "decline",
    [MO_ANSWER_CANCEL] = "cancel",
};

/* --- forms --------------------------------------------------------------- */

static bool is_type(struct mo_json v, const char *name)
{
    return mo_json_str_eq(mo_json_get(v, "type"), mo_span_cstr(name));
}

/* True for a string, number, boolean, or a choice from a list; nested fields
 * are refused. */
static bool is_form_field(struct mo_json v)
{
    static const char *const plain[] = {"string", "number", "integer",
                                        "boolean", NULL};
    struct mo_json items = mo_json_get(v, "items");

    return mo_json_str_in(mo_json_get(v, "type"), plain) ||
           (is_type(v, "array") &&
            (is_type(items, "string") || mo_json_get(items, "anyOf").p));
}

static bool is_form(struct mo_json schema)
{
    struct mo_json all = mo_json_get(schema, "properties");

    if (!is_type(schema, "object") || !mo_json_is(all, MO_JSON_OBJECT) ||
        mo_json_len(all) > MO_CHAT_FIELDS)
        return false;
    mo_json_each (at, all)
        if (!is_form_field(at.val))
            return false;
    return true;
}

/* Fails if content has a member that the form did not ask for. */
static int check_members(struct mo_json schema, struct mo_json content,
                         struct mo_err *e)
{
    struct mo_json all = mo_json_get(schema, "properties");
    mo_autobuf struct mo_buf name = {.max = ANSWER_MAX};
    int rc = 0;

    mo_json_each_while (at, content, rc == 0) {
        bool found = false;

        mo_buf_reset(&name);
        (void)mo_json_str_buf(at.key, &name);
        mo_json_each_while (known, all, !found)
            found = mo_json_str_eq(known.key, mo_buf_view(&name));
        if (!found)
            rc = mo_fail(e, MO_EINVAL, "%.*s was not asked for", (int)at.key.n,
                         at.key.p);
    }
    return rc;
}

static int check_content(struct mo_json schema, struct mo_json content,
                         struct mo_err *e)
{
    const struct mo_jschema_opts o = {.name = "content", .formats = true};
    struct mo_jschema_result r;

    if (check_members(schema, content, e) < 0 ||
        mo_jschema_check(schema, content, &o, &r, e) < 0)
        return e->code;
    return r.valid ? 0
                   : mo_fail(e, MO_EINVAL, "%s: %s", r.errors[0].path,
                             r.errors[0].text);
}

int mo_elicit_accept(struct mo_buf *out, struct mo_json schema,
                     struct mo_span content, struct mo_err *e)
{
    struct mo_json_doc given, whole;
    mo_autobuf struct mo_buf exact = {.max = ANSWER_MAX};
    int rc = 0;

    if (content.n == 0)
        content = MO_SPAN("{}");
    if (mo_json_parse(content, 0, &given, e) < 0 ||
        mo_exact_args(given.root, &exact, e) < 0 || /* no duplicate members */
        mo_json_parse(mo_buf_view(&exact), 0, &given, e) < 0)
        return e->code;
    rc = mo_form_accept(out, schema, given.root);
    if (rc < 0)
        return mo_fail(e, rc, "the answer is too large");
    if (mo_json_parse(mo_buf_view(out), 0, &whole, e) < 0)
        return e->code;
    return check_content(schema, mo_json_get(whole.root, "content"), e);
}

/* --- audit --------------------------------------------------------------- */

/* Records the question and the action taken, but not the content of the answer,
 * which is private. */
static void audit_question(const struct question *q,
                           enum mo_answer_action action, const char *by,
                           const char *who)
{
    struct chat *c = q->call->chat;
    const struct mo_audit_row row = {
        .event = "asked",
        .subject = mo_span_cstr(q->page ? "url" : "form"),
        .server = q->call->tool->def.server,
        .tool = q->call->tool->def.name,
        .call = mo_span_cstr(q->call->key),
        .action = actions[action],
        .by = by,
        .who = mo_span_cstr(who),
    };

    if (c->state != CHAT_ENDING)
        mo_chat_audit(c, &row);
}

/* --- open and close ------------------------------------------------------ */

static void send_question(const struct question *q, struct mo_member *only)
{
    struct mo_json p = q->ask->params;
    const struct elicit_view v = {
        .id = q->id,
        .call = q->call->key,
        .server = q->call->tool->def.server,
        .page = q->page,
        .message = mo_json_get(p, "message"),
        .what = mo_json_get(p, q->page ? "url" : "requestedSchema"),
        .expires = q->expires,
    };

    mo_chat_event_elicit(q->call->chat, only, &v);
}

/* Ends a question: answered, expired or cancelled. The answer may make the call
 * go on or end. */
static void end_question(struct question *q, enum mo_answer_action action,
                         struct mo_span result, const char *by, const char *who)
{
    struct call *k = q->call;
    struct mo_ask *a = q->ask;
    char plain[32];

    audit_question(q, action, by, who);
    mo_chat_event_elicited(k->chat, q->id, actions[action], by);
    mo_timer_stop(k->chat->agent->loop, &q->timer);
    mo_list_del(&q->node);
    mo_free(q);
    k->questions--;
    mo_chat_call_arm_idle(k);
    (void)snprintf(plain, sizeof(plain), "{\"action\":\"%s\"}",
                   actions[action]);
    a->user = NULL;
    mo_ask_answer(a, result.n > 0 ? result : mo_span_cstr(plain));
}

static void on_question_expired(struct mo_timer *t)
{
    end_question(mo_container_of(t, struct question, timer), MO_ANSWER_CANCEL,
                 mo_span(NULL, 0), "time", "");
}

void mo_chat_elicit_drop(struct call *k)
{
    mo_list_each_entry_safe (q, &k->chat->calls.questions, struct question,
                             node) {
        if (q->call == k)
            end_question(q, MO_ANSWER_CANCEL, mo_span(NULL, 0), "cancel", "");
    }
    mo_chat_sampling_drop(k);
}

void mo_chat_elicit_send_open(struct mo_member *m)
{
    mo_list_each_entry (q, &m->chat->calls.questions, struct question, node)
        send_question(q, m);
    mo_chat_sampling_send_open(m);
}

/* Returns NULL, or the reason why the question is refused. */
static const char *open_question(struct call *k, struct mo_ask *a)
{
    struct chat *c = k->chat;
    bool page = mo_json_str_eq(mo_json_get(a->params, "mode"), MO_SPAN("url"));
    struct question *q = NULL;

    if (c->state != CHAT_CALLS || k->canceled)
        return "the call is being stopped";
    if (k->questions >= MO_CHAT_QUESTIONS)
        return "too many open questions for this call";
    if (!page && !is_form(mo_json_get(a->params, "requestedSchema")))
        return "requestedSchema must be an object with flat fields";
    if (!mo_json_is(mo_json_get(a->params, "message"), MO_JSON_STRING))
        return "message must be a string";
    q = mo_new(struct question);
    if (q == NULL)
        return "out of memory";
    q->call = k;
    q->ask = a;
    q->page = page;
    q->expires = mo_wall_ms() + c->agent->o.approval_ms;
    a->user = q;
    mo_random_token(q->id, ID_BYTES);
    mo_list_push(&c->calls.questions, &q->node);
    k->questions++;
    mo_chat_call_arm_idle(k);
    mo_timer_init(&q->timer, on_question_expired);
    mo_timer_start(c->agent->loop, &q->timer, c->agent->o.approval_ms);
    send_question(q, NULL);
    return NULL;
}

/* --- requests from servers ----------------------------------------------- */

static void take_ask(struct call *k, struct mo_ask *a)
{
    const char *why = "the call that the question belongs to is unknown";

    if (a->kind == MO_ASK_ROOTS)
        why = "this client has no roots";
    else if (k && a->kind == MO_ASK_SAMPLING)
        why = mo_chat_sampling_take(k, a);
    else if (k)
        why = open_question(k, a);
    if (why)
        mo_ask_refuse(a, MO_RPC_INVALID_PARAMS, why);
}

void mo_chat_elicit_box(void *ctx, struct mo_hold *h, struct mo_ask *a)
{
    struct chat *c = ctx;

    (void)h;
    take_ask(mo_chat_calls_running_as(c, c->info.conn, a->call), a);
}

void mo_chat_elicit_ask(struct chat *c, const struct mo_conn *conn,
                        struct mo_ask *a)
{
    take_ask(c && a->call ? mo_chat_calls_running_as(c, conn, a->call) : NULL,
             a);
}

void mo_chat_elicit_gone(struct chat *c, struct mo_ask *ask)
{
    if (c && mo_chat_sampling_gone(c, ask))
        return;
    if (ask->user)
        end_question(ask->user, MO_ANSWER_CANCEL, mo_span(NULL, 0), "server",
                     "");
}

/* --- answers from members ------------------------------------------------ */

static struct question *find_question(struct chat *c, struct mo_span id)
{
    mo_list_each_entry (q, &c->calls.questions, struct question, node) {
        if (mo_span_eq_ct(mo_span_cstr(q->id), id))
            return q;
    }
    return NULL;
}

void mo_chat_answer(struct mo_member *m, const struct mo_answer *a,
                    mo_ack_fn *done, void *ctx)
{
    struct question *q = find_question(m->chat, a->request);
    struct ack ack = {done, ctx};
    mo_autobuf struct mo_buf result = {.max = ANSWER_MAX * 2};
    struct mo_err e;
    int rc = 0;

    if (q == NULL && mo_chat_sampling_answer(m, a, &ack))
        return;
    if (q == NULL) {
        mo_chat_ack(&ack, "unknown_request",
                    "this question is not open any more");
        return;
    }
    if (a->action == MO_ANSWER_ACCEPT && !q->page)
        rc = mo_elicit_accept(&result,
                              mo_json_get(q->ask->params, "requestedSchema"),
                              a->content, &e);
    if (rc < 0) {
        mo_chat_ack(&ack, "bad_request", e.msg);
    } else {
        if (m->chat->hold)
            mo_session_touch(m->chat->hold);
        mo_chat_ack_ok(&ack, mo_span(NULL, 0));
        end_question(q, a->action, mo_buf_view(&result), "person", m->who);
    }
}
