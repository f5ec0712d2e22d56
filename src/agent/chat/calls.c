/* calls.c - the calls of a model's reply: approval, execution, outcome.
 *
 * Order of writes: a call is in the store before a person is asked about it, is
 * stored as running before it runs, and its outcome is stored before the model
 * gets it. The outcome of the last call is written in one batch with the
 * results of all. Each change of state is one compare-and-set, so an approval
 * that arrives several times, from two tabs or after a restart, runs the call
 * once.
 *
 * Arguments and results are in the rows of calls only as long as a restart
 * needs them: until the results of the step are an entry. Then the row has
 * their digest and length (audit.arguments keeps them). Every call has an audit
 * row, also one that a rule denied, and no call that a person approved runs
 * before its row is synced.
 *
 * A call that cannot run (unknown tool, bad arguments, denied by a rule,
 * rejected by a person, timed out) gets an error result that states the reason.
 */
#include "agent/chat/calls.h"

#include "agent/chat/apps.h"
#include "agent/chat/chat_write.h"
#include "agent/chat/elicit.h"
#include "agent/chat/event.h"
#include "agent/chat/script_calls.h"
#include "agent/chat/turn.h"

#include "mcp/content.h"

#define ROUTE_MAX ((size_t)4096)
#define AGAIN_MS  ((uint64_t)5000) /* until a lost decision is made again */

/* --- as documents -------------------------------------------------------- */

static bool keeps_arguments(const struct call *k)
{
    return mo_audit_has_arguments(k->chat->agent->o.audit);
}

/* bare: digests and lengths in place of arguments and results. */
static void put_args(struct mo_jw *w, const struct call *k, bool bare)
{
    char sum[MO_SHA256_HEX + 1];

    if (!bare) {
        mo_jw_member_raw(w, "args",
                         k->args.len > 0 ? mo_buf_view(&k->args)
                                         : MO_SPAN("null"));
    } else if (k->args.len > 0) {
        mo_sha256_hex(mo_buf_view(&k->args), sum);
        mo_jw_member(w, "argsDigest", mo_span_cstr(sum));
        mo_jw_member_u64(w, "argsBytes", k->args.len);
    }
    mo_jw_member_opt(w, "argsDigestBefore", mo_span_cstr(k->before));
}

static void put_call_doc(struct mo_buf *b, const struct call *k, bool bare)
{
    struct mo_jw w = mo_jw_object(b);

    mo_jw_member(&w, "turn", mo_span_cstr(k->chat->turn.id));
    mo_jw_member(&w, "name", mo_buf_view(&k->name));
    mo_jw_member_opt(&w, "id", mo_buf_view(&k->id));
    if (strcmp(k->card, k->key) != 0)
        mo_jw_member_cstr(&w, "card", k->card);
    if (k->tool) {
        mo_jw_member(&w, "server", k->tool->def.server);
        mo_jw_member(&w, "tool", k->tool->def.name);
    }
    mo_script_put_origin(&w, k);
    put_args(&w, k, bare);
    mo_jw_member(&w, "digest", mo_span_cstr(k->digest));
    mo_jw_member_u64(&w, "expires", k->expires);
    if (k->by)
        mo_jw_member(&w, "by", mo_span_cstr(k->by));
    mo_jw_member_opt(&w, "who", mo_span_cstr(k->who));
    mo_audit_row_put_door(&w, &k->door);
    mo_said_put(&w, &k->said);
    mo_jw_member_opt(&w, "reason", mo_buf_view(&k->reason));
    mo_jw_member_raw(&w, "route", mo_buf_view(&k->route));
    mo_jw_member_bool(&w, "isError", k->is_error);
    mo_jw_member_u64(&w, "ms", k->took_ms);
    if (bare && k->content.len > 0)
        mo_jw_member_u64(&w, "contentBytes", k->content.len);
    else if (!bare)
        mo_jw_member_raw(&w, "content", mo_buf_view(&k->content));
    mo_jw_end(&w);
}

void mo_chat_call_put(struct mo_buf *docs, const struct call *k)
{
    put_call_doc(docs, k, false);
}

const char *mo_chat_call_stopped(const struct call *k)
{
    return k->parent && !k->chat->turn.cancel ? "The script ended."
                                              : "The person stopped this call.";
}

/* --- making and dropping ------------------------------------------------- */

struct call *mo_chat_calls_new(struct chat *c)
{
    struct call *k = mo_new(struct call);

    if (k == NULL)
        return NULL;
    k->chat = c;
    mo_timer_init(&k->idle_timer, mo_chat_call_idle_timeout);
    mo_buf_init(&k->id, 512);
    mo_buf_init(&k->name, 256);
    mo_buf_init(&k->args, MO_EXACT_MAX);
    mo_buf_init(&k->shown, MO_EXACT_MAX);
    mo_buf_init(&k->reason, REASON_MAX);
    mo_buf_init(&k->content, MO_STORE_DOC_MAX);
    mo_buf_init(&k->route, ROUTE_MAX);
    mo_buf_init(&k->raw, MO_SCRIPT_RESULT_MAX);
    mo_buf_init(&k->app, MO_APPS_RESULT_MAX);
    mo_list_push(&c->calls.list, &k->node);
    return k;
}

void mo_chat_call_free(struct call *k)
{
    mo_chat_ack(&k->ack, "closed", "the session ended");
    mo_call_span_end(k);
    mo_chat_elicit_drop(k);
    mo_timer_stop(k->chat->agent->loop, &k->idle_timer);
    mo_list_del(&k->node);
    mo_buf_fini(&k->id);
    mo_buf_fini(&k->name);
    mo_buf_fini(&k->args);
    mo_buf_fini(&k->shown);
    mo_buf_fini(&k->reason);
    mo_buf_fini(&k->content);
    mo_buf_fini(&k->route);
    mo_buf_fini(&k->raw);
    mo_script_free(k);
    mo_buf_fini(&k->app);
    mo_chat_router_free(k);
    mo_stand_in_free(k);
    mo_free(k);
}

void mo_chat_calls_drop(struct chat *c)
{
    mo_list_each_entry_safe (k, &c->calls.list, struct call, node)
        mo_chat_call_free(k);
    mo_timer_stop(c->agent->loop, &c->calls.expiry);
}

bool mo_chat_calls_running(const struct chat *c)
{
    mo_list_each_entry (k, &c->calls.list, struct call, node)
        if (k->running)
            return true;
    return false;
}

struct call *mo_chat_calls_only(struct chat *c)
{
    struct call *only = NULL;

    mo_list_each_entry (k, &c->calls.list, struct call, node) {
        if (k->state != MO_CALL_RUNNING)
            continue;
        if (only)
            return NULL;
        only = k;
    }
    return only;
}

struct call *mo_chat_calls_running_as(struct chat *c,
                                      const struct mo_conn *conn,
                                      uint64_t number)
{
    mo_list_each_entry (k, &c->calls.list, struct call, node) {
        if (k->running && k->conn == conn &&
            mo_call_number(k->running) == number)
            return k;
    }
    return NULL;
}

struct call *mo_chat_calls_find(struct chat *c, struct mo_span card)
{
    mo_list_each_entry (k, &c->calls.list, struct call, node) {
        if (mo_span_eq_ct(mo_span_cstr(k->card), card))
            return k;
    }
    return NULL;
}

/* --- writing them down --------------------------------------------------- */

size_t mo_chat_calls_writes(struct chat *c, struct mo_write *v,
                            struct mo_buf *docs)
{
    size_t n = 0, at[MO_LLM_CALLS_MAX + 1] = {0};

    mo_list_each_entry (k, &c->calls.list, struct call, node) {
        put_call_doc(docs, k, false);
        at[++n] = docs->len;
    }
    n = 0;
    mo_list_each_entry (k, &c->calls.list, struct call, node) {
        v[n] = (struct mo_write){
            .kind = MO_WRITE_CALL,
            .id = mo_span_cstr(k->key),
            .to = k->state,
            .at = mo_wall_ms(),
            .doc = mo_span(docs->p + at[n], at[n + 1] - at[n]),
        };
        n++;
    }
    return n;
}

/* --- outcomes ------------------------------------------------------------ */

static bool call_has_ended(const struct call *k)
{
    return !k->writing &&
           (k->state == MO_CALL_DONE || k->state == MO_CALL_REJECTED ||
            k->state == MO_CALL_UNKNOWN);
}

/* If all calls have ended, passes their results on, with the outcome of
 * `last`. */
static bool send_results_if_ended(struct chat *c, struct call *last)
{
    struct mo_entry_result v[MO_LLM_CALLS_MAX];
    size_t n = 0;

    if (c->state != CHAT_CALLS)
        return false;
    mo_list_each_entry (k, &c->calls.list, struct call, node) {
        if (!call_has_ended(k))
            return false;
        if (k->parent) /* its result is the script's */
            continue;
        v[n++] = (struct mo_entry_result){
            mo_span_cstr(k->key),  mo_buf_view(&k->id),
            mo_buf_view(&k->name), mo_buf_view(&k->content),
            k->is_error,           mo_call_state_name(k->state),
            mo_buf_view(&k->app),  k->times};
    }
    mo_turn_results(c, v, n, last);
    return true;
}

void mo_chat_calls_check(struct chat *c)
{
    (void)send_results_if_ended(c, NULL);
}

/* Writes for one change of state: the move and its audit row. last: the results
 * of all calls are written in the same batch. */
static size_t put_move(struct call *k, unsigned from, enum mo_call_state to,
                       bool last, struct mo_write *w, struct mo_buf *doc)
{
    bool bare = !keeps_arguments(k);
    struct mo_span row;
    size_t n = 0;

    if (bare && !last) {
        put_call_doc(doc, k, false);
        n = doc->len;
    }
    put_call_doc(doc, k, bare);
    row = mo_span_skip(mo_buf_view(doc), n);
    w[0] = (struct mo_write){.kind = MO_WRITE_MOVE,
                             .id = mo_span_cstr(k->key),
                             .from = from,
                             .to = to,
                             .doc = n ? mo_span(doc->p, n) : row};
    w[1] = mo_audit_row_write(row);
    return 2;
}

size_t mo_chat_call_put_move(struct call *k, unsigned from,
                             enum mo_call_state to, struct mo_write *w,
                             struct mo_buf *doc)
{
    return put_move(k, from, to, k->parent != NULL, w, doc);
}

size_t mo_chat_calls_outcome(struct call *k, struct mo_write *w,
                             struct mo_buf *doc)
{
    return put_move(k, MO_CALL_BIT(MO_CALL_RUNNING), k->state, true, w, doc);
}

static int write_move(struct call *k, unsigned from, enum mo_call_state to,
                      chat_written *done, struct mo_err *e)
{
    struct mo_write w[MO_OUTCOME_WRITES];
    mo_autobuf struct mo_buf doc = {.max = 2 * MO_STORE_DOC_MAX};
    bool last = k->parent && to != MO_CALL_PENDING && to != MO_CALL_RUNNING;
    size_t n = put_move(k, from, to, last, w, &doc);
    int rc = mo_buf_err(&doc)
                 ? mo_fail(e, doc.err, "the call is too large to store")
                 : mo_chat_write(k->chat, w, n, done, k, e);

    k->writing = rc == 0;
    return rc;
}

static void on_row_written(struct chat *c, void *arg, const struct mo_err *why)
{
    (void)c;
    (void)arg;
    (void)why; /* nothing waits for it */
}

/* A call that a rule denied runs nothing, and so has no move. */
static void audit_denied(struct call *k)
{
    mo_autobuf struct mo_buf doc = {.max = MO_STORE_DOC_MAX};
    struct mo_write w;
    struct mo_err e;

    put_call_doc(&doc, k, !keeps_arguments(k));
    w = mo_audit_row_write(mo_buf_view(&doc));
    if (mo_buf_err(&doc) == 0)
        (void)mo_chat_write(k->chat, &w, 1, on_row_written, NULL, &e);
}

void mo_chat_calls_strip(struct chat *c, const struct call *last)
{
    mo_autobuf struct mo_buf docs = {.max = MO_STORE_BATCH_BYTES};
    struct mo_write w[MO_LLM_CALLS_MAX];
    size_t n = 0, at[MO_LLM_CALLS_MAX + 1] = {0};
    struct mo_err e;

    mo_list_each_entry (k, &c->calls.list, struct call, node) {
        if (k == last || k->parent || keeps_arguments(k))
            continue;
        put_call_doc(&docs, k, true);
        w[n] = (struct mo_write){.kind = MO_WRITE_MOVE,
                                 .id = mo_span_cstr(k->key),
                                 /* running: its outcome was not stored */
                                 .from = MO_CALL_BIT(k->state) |
                                         MO_CALL_BIT(MO_CALL_RUNNING),
                                 .to = k->state};
        at[++n] = docs.len;
    }
    for (size_t i = 0; i < n; i++)
        w[i].doc = mo_span(docs.p + at[i], at[i + 1] - at[i]);
    if (n && mo_buf_err(&docs) == 0)
        (void)mo_chat_write(c, w, n, on_row_written, NULL, &e);
}

/* Tells members, and the script that made the call. */
static void tell_outcome(struct call *k)
{
    mo_chat_event_output(k);
    mo_script_call_ended(k);
}

void mo_chat_calls_outcome_written(struct call *k)
{
    k->writing = false;
    tell_outcome(k);
}

/* An outcome that is not stored does not end the turn: it is in the results,
 * and if those cannot be stored either, that is told. */
static void on_outcome(struct chat *c, void *arg, const struct mo_err *why)
{
    struct call *k = arg;

    if (why)
        mo_chat_log(c, MO_WARN, 0, why, "the outcome of a call is not stored");
    mo_chat_calls_outcome_written(k);
    (void)send_results_if_ended(c, NULL);
}

/* Stores the outcome of a call that ran. The write is under way before the next
 * call starts. */
void mo_chat_call_outcome(struct call *k, enum mo_call_state to)
{
    struct chat *c = k->chat;
    struct mo_audit_open *left;
    struct mo_err e;
    bool ended;

    k->running = NULL;
    k->started = k->in_line = false;
    mo_script_end(k);
    k->state = to;
    mo_chat_elicit_drop(k);
    mo_chat_call_arm_idle(k);
    mo_call_span_end(k);
    k->took_ms = (mo_now_ns() - k->began) / MO_MS;
    k->times.ended = mo_wall_ms();
    k->times.began = k->times.ended - k->took_ms;
    mo_tally_call(&c->agent->tally, k->took_ms, k->is_error, mo_wall_ms());
    mo_chat_log_outcome(k);
    if (c->state == CHAT_ENDING) {
        mo_chat_settle(c);
        return;
    }
    if (mo_buf_err(&k->content)) {
        mo_buf_reset(&k->content);
        mo_content_put_text(
            &k->content, MO_SPAN("The tool's result is too large to store."));
        k->is_error = true;
    }
    mo_script_note(k);
    left = mo_take_ptr(&k->left);
    ended = send_results_if_ended(c, k);
    if (!ended &&
        write_move(k, MO_CALL_BIT(MO_CALL_RUNNING), to, on_outcome, &e) < 0)
        on_outcome(c, k, &e);
    mo_audit_end(c->agent->o.audit, left); /* its row was just written */
    if (!ended)
        mo_chat_calls_next(c);
}

void mo_chat_call_fail(struct call *k, enum mo_call_state to, const char *fmt,
                       ...)
{
    char text[512];
    va_list ap;

    va_start(ap, fmt);
    vsnprintf(text, sizeof(text), fmt, ap);
    va_end(ap);
    k->is_error = true;
    mo_buf_reset(&k->content);
    mo_content_put_text(&k->content, mo_span_cstr(text));
    mo_chat_call_outcome(k, to);
}

/* --- asking the person --------------------------------------------------- */

/* A clock that is set back or forth does not change how long a call waits. */
void mo_chat_call_set_expiry(struct call *k, uint64_t left)
{
    uint64_t most = k->chat->agent->o.approval_ms;

    left = left < most ? left : most;
    k->expires = mo_wall_ms() + left;
    k->deadline = mo_now_ns() + left * MO_MS;
}

void mo_chat_calls_arm(struct chat *c)
{
    uint64_t now = mo_now_ns(), next = 0;

    mo_list_each_entry (k, &c->calls.list, struct call, node) {
        if (k->state == MO_CALL_PENDING && !k->writing &&
            (next == 0 || k->deadline < next))
            next = k->deadline;
    }
    mo_timer_stop(c->agent->loop, &c->calls.expiry);
    if (next > 0)
        mo_timer_start(c->agent->loop, &c->calls.expiry,
                       next > now ? (next - now) / MO_MS + 1 : 1);
}

static void ask_person(struct call *k)
{
    k->held_ns = mo_now_ns();
    k->times.asked = mo_wall_ms();
    mo_chat_event_approval(k);
    mo_chat_call_tell(k, "approval.waiting", false);
}

void mo_chat_call_begin(struct call *k)
{
    if (k->state == MO_CALL_RUNNING) {
        mo_chat_call_run(k);
    } else if (k->state == MO_CALL_PENDING && !k->chat->turn.cancel) {
        ask_person(k);
    } else if (k->state == MO_CALL_REJECTED) {
        audit_denied(k);
        tell_outcome(k);
    }
}

void mo_chat_calls_begin(struct chat *c)
{
    bool runs = false;

    mo_list_each_entry (k, &c->calls.list, struct call, node) {
        if (k->state == MO_CALL_RUNNING)
            runs = true;
        else
            mo_chat_call_begin(k);
    }
    if (runs)
        mo_chat_event_thinking(c);
    mo_list_each_entry_safe (k, &c->calls.list, struct call, node) {
        if (k->state == MO_CALL_RUNNING)
            mo_chat_call_run(k);
    }
    mo_chat_calls_arm(c);
    if (c->turn.cancel)
        mo_chat_calls_cancel(c);
    (void)send_results_if_ended(c, NULL);
}

/* After a restart: writes the outcome of interrupted calls first. */
void mo_chat_calls_recovered(struct chat *c)
{
    struct mo_err e;

    mo_chat_calls_count(c);
    mo_chat_move(c, CHAT_CALLS);
    mo_chat_opened(c);
    mo_list_each_entry_safe (k, &c->calls.list, struct call, node) {
        enum mo_call_state to = k->state;

        if (to != MO_CALL_UNKNOWN && to != MO_CALL_REJECTED)
            continue;
        if (write_move(k, ~0u, to, on_outcome, &e) < 0)
            on_outcome(c, k, &e);
    }
    mo_chat_calls_judge_again(c); /* the rules may be other ones by now */
    (void)send_results_if_ended(c, NULL);
}

const char mo_chat_calls_none[] = "no such call is waiting for approval";

/* The call is as it was shown, and nobody has decided. */
static void forget_decision(struct call *k)
{
    k->by = NULL;
    k->who[0] = '\0';
    k->door = (struct mo_door){NULL, false};
    k->answered = MO_ANSWERED_NOT;
    k->panel = 0;
    mo_buf_reset(&k->reason);
    k->is_error = k->is_denied = false; /* of a rejection, as its text */
    mo_buf_reset(&k->content);
    mo_chat_call_undo_edit(k);
}

/* The approval is on disk, or could not be recorded. */
static void on_recorded(void *ctx, const struct mo_err *why)
{
    struct call *k = ctx;
    struct chat *c = k->chat;

    c->writes--;
    if (c->state == CHAT_ENDING)
        mo_chat_settle(c);
    else if (why)
        mo_chat_call_skip(k, "the audit log cannot be written (%s)", why->msg);
    else if (k->canceled)
        mo_chat_call_fail(k, MO_CALL_DONE, "%s", mo_chat_call_stopped(k));
    else
        mo_chat_call_run(k);
}

/* The store has the approval; the log must have it before the call runs. */
static void run_recorded(struct call *k)
{
    struct chat *c = k->chat;
    struct mo_err e;

    if (k->canceled) {
        mo_chat_call_fail(k, MO_CALL_DONE, "%s", mo_chat_call_stopped(k));
        return;
    }
    if (c->agent->o.audit == NULL) {
        mo_chat_call_run(k);
        return;
    }
    if (mo_audit_sure(c->agent->o.audit, on_recorded, k, &e) == 0)
        c->writes++;
    else
        mo_chat_call_skip(k, "the audit log cannot be written (%s)", e.msg);
}

/* The decision about k was not stored. A rejection that nobody asks for again
 * is due after a pause: each attempt has an audit row. */
static void decide_later(struct call *k, const struct mo_err *why)
{
    uint64_t soon = mo_now_ns() + AGAIN_MS * MO_MS;

    if (why->code == MO_EUNAVAIL)
        k->doubt |= MO_CALL_BIT(k->next);
    if (k->deadline < soon || k->chat->turn.cancel || k->canceled)
        k->deadline = soon;
    mo_chat_calls_arm(k->chat);
}

/* The store answered. MO_EPOLICY means that another decision came first. */
static void on_decided(struct chat *c, void *arg, const struct mo_err *why)
{
    struct call *k = arg;
    bool approved = k->next == MO_CALL_RUNNING;
    bool by_person = k->by && strcmp(k->by, "person") == 0;

    k->writing = false;
    if (why) {
        k->state = MO_CALL_PENDING;
        forget_decision(k);
        k->said.n -= approved && k->said.n; /* the last one, of a panel */
        mo_chat_ack(&k->ack,
                    why->code == MO_EPOLICY ? "unknown_call"
                                            : "state_unavailable",
                    why->code == MO_EPOLICY ? mo_chat_calls_none : why->msg);
        /* Others were told meanwhile that it is decided. */
        if (by_person && why->code != MO_EPOLICY && c->state == CHAT_CALLS)
            mo_chat_event_approval(k);
        decide_later(k, why);
        return;
    }
    mo_buf_reset(&k->shown);
    k->state = k->next;
    k->doubt = 0;
    mo_chat_ack_ok(&k->ack, k->kept > 0   ? MO_SPAN("\"remembered\":true")
                            : k->kept < 0 ? MO_SPAN("\"remembered\":false")
                                          : mo_span(NULL, 0));
    mo_chat_event_resolved(k, approved);
    mo_chat_call_tell(k, "approval.decided", approved);
    mo_chat_log_decision(k);
    if (c->state == CHAT_ENDING)
        return;
    if (!approved) {
        tell_outcome(k);
        (void)send_results_if_ended(c, NULL);
        return;
    }
    mo_chat_event_thinking(c);
    run_recorded(k);
}

/* One of several persons has approved. */
static void on_noted(struct chat *c, void *arg, const struct mo_err *why)
{
    struct call *k = arg;
    mo_autobuf struct mo_buf extra = {.max = 64};
    struct mo_verdict v;

    k->writing = k->noting = false;
    forget_decision(k);
    if (why) {
        k->said.n -= k->said.n > 0;
        mo_chat_ack(&k->ack,
                    why->code == MO_EPOLICY ? "unknown_call"
                                            : "state_unavailable",
                    why->code == MO_EPOLICY ? mo_chat_calls_none : why->msg);
    } else {
        v = mo_chat_call_verdict(k);
        mo_buf_printf(&extra, "\"missing\":%u",
                      mo_said_missing(&k->said, &v.panel));
        mo_chat_ack_ok(&k->ack, mo_buf_view(&extra));
        mo_chat_event_approved_by(k);
    }
    if (c->state == CHAT_ENDING)
        return;
    if (c->turn.cancel || k->canceled)
        mo_chat_call_reject(k, "cancel", mo_chat_call_stopped(k));
    mo_chat_calls_arm(c);
}

void mo_chat_call_note(struct call *k)
{
    struct mo_err e;

    mo_agent_point(k->chat->agent, "noting");
    k->noting = true;
    if (write_move(k, MO_CALL_BIT(MO_CALL_PENDING), MO_CALL_PENDING, on_noted,
                   &e) < 0)
        on_noted(k->chat, k, &e);
}

/* In memory the call is pending, so nothing has run: whatever a lost decision
 * has set in the store is replaced. */
void mo_chat_call_settle(struct call *k, enum mo_call_state to)
{
    unsigned from = MO_CALL_BIT(MO_CALL_PENDING) | MO_CALL_BIT(to) | k->doubt;
    struct mo_err e;

    mo_agent_point(k->chat->agent, "deciding");
    mo_call_span_decided(k, to == MO_CALL_RUNNING);
    k->next = to;
    if (write_move(k, from, to, on_decided, &e) < 0)
        on_decided(k->chat, k, &e);
}

void mo_chat_call_reject(struct call *k, const char *by, const char *text)
{
    if (k->reason.len > 0)
        mo_chat_call_refuse(k, by, "%s Their reason: %.*s", text,
                            (int)k->reason.len, k->reason.p);
    else
        mo_chat_call_refuse(k, by, "%s", text);
    mo_chat_call_settle(k, MO_CALL_REJECTED);
}

static void on_asked_again(struct chat *c, void *arg, const struct mo_err *why)
{
    struct call *k = arg;

    k->writing = false;
    if (why) {
        mo_chat_call_fail(k, MO_CALL_DONE, "The call was not run: %s",
                          why->msg);
        return;
    }
    k->state = MO_CALL_PENDING;
    mo_chat_calls_count(c);
    if (c->state == CHAT_ENDING)
        return;
    if (c->turn.cancel || k->canceled) {
        mo_chat_call_reject(k, "cancel", mo_chat_call_stopped(k));
        return;
    }
    ask_person(k);
    mo_chat_calls_arm(c);
    mo_chat_calls_next(c);
}

void mo_chat_call_ask_again(struct call *k)
{
    struct mo_err e;

    k->started = false;
    mo_buf_reset(&k->shown);
    forget_decision(k);
    k->said = (struct mo_said){.n = 0};
    mo_random_token(k->card, ID_BYTES);
    mo_chat_calls_digest(k);
    mo_chat_call_set_expiry(k, UINT64_MAX);
    if (write_move(k, MO_CALL_BIT(MO_CALL_RUNNING), MO_CALL_PENDING,
                   on_asked_again, &e) < 0)
        on_asked_again(k->chat, k, &e);
}

void mo_chat_calls_expire(struct mo_timer *t)
{
    struct chat *c = mo_container_of(t, struct chat, calls.expiry);
    uint64_t now = mo_now_ns();

    mo_list_each_entry_safe (k, &c->calls.list, struct call, node) {
        if (k->state != MO_CALL_PENDING || k->writing || k->deadline > now)
            continue;
        if (c->turn.cancel || k->canceled)
            mo_chat_call_reject(k, "cancel", mo_chat_call_stopped(k));
        else
            mo_chat_call_reject(k, "time",
                                "Nobody answered in time, so it was not run.");
    }
    mo_chat_calls_arm(c);
}

void mo_chat_calls_cancel(struct chat *c)
{
    mo_list_each_entry_safe (k, &c->calls.list, struct call, node) {
        k->canceled = true;
        if (k->running)
            mo_call_cancel(k->running, "stopped by the person");
        else if (k->tool_check)
            mo_chat_call_stop_check(k);
        else if (k->in_line)
            mo_chat_call_fail(k, MO_CALL_DONE, "%s", mo_chat_call_stopped(k));
        else if (k->state == MO_CALL_PENDING && !k->writing &&
                 c->state == CHAT_CALLS)
            mo_chat_call_reject(k, "cancel", "The person stopped the turn.");
    }
}
