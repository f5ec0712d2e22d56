/* verdict.c - turns the calls of a reply into struct call, each with its
 * verdict: run, ask a person, or refused with an error result; and handles a
 * person's decision about a pending call.
 *
 * A decision must be about the call as it was shown. A decision about a call
 * that is not pending (any more), or has changed, is refused and audited.
 * calls.c stores an accepted decision; then the call runs or is rejected. */

#include "agent/chat/calls.h"
#include "agent/chat/chat_write.h"
#include "agent/chat/event.h"
#include "agent/chat/load_tools.h"
#include "agent/chat/network.h"
#include "agent/chat/script_calls.h"
#include "agent/chat/script_grant.h"
#include "agent/chat/session_memory.h"
#include "agent/chat/tools_off.h"
#include "mcp/content.h"

void mo_chat_call_refuse(struct call *k, const char *by, const char *fmt, ...)
{
    mo_autobuf struct mo_buf text = {.max = REASON_MAX * 2};
    va_list ap;

    va_start(ap, fmt);
    mo_buf_vprintf(&text, fmt, ap);
    va_end(ap);
    k->state = MO_CALL_REJECTED;
    k->by = by;
    k->is_error = true;
    mo_buf_reset(&k->content);
    mo_content_put_text(&k->content, mo_buf_view(&text));
}

void mo_chat_calls_digest(struct call *k)
{
    const struct mo_exact_call what = {
        .session = mo_span_cstr(k->chat->id),
        .call = mo_span_cstr(k->card),
        .server = k->tool->def.server,
        .tool = k->tool->def.name,
        .args = mo_buf_view(&k->args),
        .tool_digest = k->tool->digest,
    };

    mo_exact_call(&what, k->digest);
}

int mo_chat_call_take_args(struct call *k, struct mo_json args,
                           struct mo_err *e)
{
    mo_autobuf struct mo_buf exact = {.max = MO_EXACT_MAX};
    struct mo_buf old = k->args;
    int rc = mo_exact_args(args, &exact, e);

    if (rc == 0) {
        k->args = exact;
        exact = old; /* freed */
    }
    return rc;
}

struct mo_policy_call mo_chat_call_for_policy(const struct call *k)
{
    return (struct mo_policy_call){
        .from = k->tool->source == SOURCE_ROUTER ? MO_POLICY_CHAT_META
                                                 : MO_POLICY_CHAT,
        .server = k->tool->def.server,
        .tool = k->tool->def.name,
        .claims = k->tool->claims,
        .args_text = mo_buf_view(&k->args),
        .schema = {k->tool->def.schema.p, k->tool->def.schema.n},
        .session = &k->chat->remembered.rules,
    };
}

struct mo_verdict mo_chat_call_verdict(const struct call *k)
{
    struct mo_policy_call c = mo_chat_call_for_policy(k);
    struct mo_verdict v = mo_policy_judge(k->chat->agent->o.policy, &c);

    if (mo_chat_mode_allows(k, &v) || mo_script_is_granted(k, &v)) {
        v.action = MO_ACTION_ALLOW;
        v.of_mode = true;
    }
    return v;
}

void mo_chat_call_allowed(struct call *k, const struct mo_verdict *v)
{
    bool ahead = v->of_mode && k->grant;

    k->of_mode = v->of_mode;
    k->by = ahead           ? "ahead"
            : v->of_mode    ? mo_chat_mode_by(k->chat)
            : v->remembered ? "remembered"
                            : "rule";
    snprintf(k->who, sizeof(k->who), "%s",
             ahead        ? mo_script_granter(k)
             : v->of_mode ? k->chat->mode.who
                          : "");
}

static struct mo_span reason_of(const struct mo_verdict *v)
{
    return v->rule ? v->rule->reason : MO_SPAN("");
}

static void call_deny(struct call *k, struct mo_span why)
{
    k->is_denied = true;
    mo_chat_call_refuse(k, "rule", "This call is not allowed here%s%.*s.",
                        why.n > 0 ? ": " : "", (int)why.n, why.p);
}

void mo_chat_calls_judge_again(struct chat *c)
{
    if (c->state != CHAT_CALLS)
        return;
    mo_list_each_entry_safe (k, &c->calls.list, struct call, node) {
        struct mo_verdict v;

        if (k->state != MO_CALL_PENDING || k->writing || !k->tool)
            continue;
        v = mo_chat_call_verdict(k);
        if (v.action != MO_ACTION_DENY || v.remembered)
            continue;
        call_deny(k, reason_of(&v));
        mo_chat_call_settle(k, MO_CALL_REJECTED);
    }
    mo_chat_calls_arm(c);
}

static int fit_schema(const struct call *k, struct mo_err *e)
{
    const struct mo_span schema = k->tool->def.schema;

    return mo_exact_fits((struct mo_json){schema.p, schema.n},
                         (struct mo_json){k->args.p, k->args.len}, e);
}

static void judge_call(struct call *k)
{
    struct mo_verdict v = mo_chat_call_verdict(k);
    struct mo_err e;

    if (mo_script_take_grant(k, &v)) {
        v = mo_chat_call_verdict(k);
        mo_chat_event_grants(k->parent);
    }
    switch (v.action) {
    case MO_ACTION_ALLOW:
        k->state = MO_CALL_RUNNING;
        mo_chat_call_allowed(k, &v);
        return;
    case MO_ACTION_DENY:
        call_deny(k, reason_of(&v));
        return;
    default:
        if (fit_schema(k, &e) < 0) { /* a yes could not make it run */
            mo_chat_call_refuse(k, "rule", "The call was not run: %s.", e.msg);
            return;
        }
        k->state = MO_CALL_PENDING;
        mo_chat_call_set_expiry(k, UINT64_MAX);
    }
}

/* Says why the text is not a valid arguments object. */
static void explain_bad_args(struct mo_span text, struct mo_err *why)
{
    struct mo_json_doc doc;
    mo_autobuf struct mo_buf exact = {.max = MO_EXACT_MAX};

    if (mo_json_parse(text, 0, &doc, NULL) < 0 ||
        !mo_json_is(doc.root, MO_JSON_OBJECT) ||
        mo_exact_args(doc.root, &exact, why) == 0)
        mo_fail(why, MO_EPROTO, "its arguments are no JSON object");
}

static void refuse_off(struct call *k)
{
    k->is_denied = true;
    mo_chat_call_refuse(k, "rule",
                        "The person has switched this tool off in this "
                        "conversation.");
}

static void refuse_changed(struct call *k)
{
    k->is_denied = true;
    mo_chat_call_refuse(
        k, "rule",
        "This tool was changed by its server and is not used until a "
        "person has accepted it.");
}

int mo_chat_call_take(struct call *k, const struct mo_llm_call *from,
                      struct mo_err *e)
{
    struct chat *c = k->chat;
    struct mo_json_doc doc;
    struct mo_err bad;

    if (from->key.n >= sizeof(k->key))
        return mo_fail(e, MO_ENOMEM, "out of memory");
    memcpy(k->key, from->key.p, from->key.n);
    memcpy(k->card, k->key, sizeof(k->card));
    mo_buf_span(&k->name, from->name);
    k->tool = mo_tools_find(c->tools, from->name);
    if (k->tool == NULL && k->parent)
        mo_chat_router_named(k, from->name);
    if (from->bad.n > 0) {
        explain_bad_args(from->bad, &bad);
        mo_chat_call_refuse(k, "rule", "The call was not run: %s.", bad.msg);
        return 0;
    }
    if (mo_json_parse(from->args, 0, &doc, &bad) < 0 ||
        mo_exact_args(doc.root, &k->args, &bad) < 0) {
        mo_buf_reset(&k->args);
        mo_chat_call_refuse(k, "rule", "The call was not run: %s.", bad.msg);
        return 0;
    }
    if (k->tool == NULL || k->tool->app_only) {
        k->tool = NULL;
        mo_chat_call_refuse(k, "rule", "There is no tool named \"%.*s\".",
                            (int)from->name.n, from->name.p);
        return 0;
    }
    if (mo_chat_router_is_run(k))
        mo_chat_router_choose(k);
    mo_chat_calls_digest(k);
    if (k->parent && mo_script_is(k->tool))
        mo_chat_call_refuse(k, "rule", "A script cannot run another script.");
    else if (mo_tools_off_has(c, k->tool))
        refuse_off(k);
    else if (mo_changed_tools_is_blocked(c, k->tool) ||
             (k->routed &&
              !mo_policy_tool_is_pinned(c->agent->o.policy, k->tool, NULL)))
        refuse_changed(k);
    else
        judge_call(k);
    return mo_buf_err(&k->name) ? mo_fail(e, MO_ENOMEM, "out of memory") : 0;
}

static int take_call(struct chat *c, const struct mo_llm_call *from,
                     struct mo_err *e)
{
    struct call *k = mo_chat_calls_new(c);

    return k ? mo_chat_call_take(k, from, e)
             : mo_fail(e, MO_ENOMEM, "out of memory");
}

void mo_chat_calls_count(struct chat *c)
{
    unsigned total = 0, at = 0;

    mo_list_each_entry (k, &c->calls.list, struct call, node)
        total += k->state == MO_CALL_PENDING;
    mo_list_each_entry (k, &c->calls.list, struct call, node) {
        if (k->state != MO_CALL_PENDING)
            continue;
        k->position = ++at;
        k->total = total;
    }
}

int mo_chat_calls_take(struct chat *c, const struct mo_llm_reply *r,
                       struct mo_err *e)
{
    int rc = 0;

    for (size_t i = 0; rc == 0 && i < r->ncalls; i++)
        rc = take_call(c, &r->calls[i], e);
    mo_list_each_entry (k, &c->calls.list, struct call, node)
        mo_chat_log_decision(k);
    mo_chat_calls_count(c);
    return rc;
}

/* --- the last check ------------------------------------------------------ */

static bool is_digest_true(struct call *k)
{
    char approved[MO_EXACT_DIGEST];

    memcpy(approved, k->digest, sizeof(approved));
    mo_chat_calls_digest(k);
    return strcmp(approved, k->digest) == 0;
}

bool mo_chat_call_may_run(struct call *k)
{
    struct mo_verdict v = mo_chat_call_verdict(k);
    struct mo_span why = reason_of(&v);
    struct mo_err e;

    if (!is_digest_true(k)) {
        mo_chat_call_skip(k, "it is not the call that was approved");
    } else if (k->tool->source != SOURCE_ROUTER &&
               !mo_policy_tool_is_pinned(k->chat->agent->o.policy, k->tool,
                                         NULL)) {
        mo_chat_call_skip(k, "its server changed this tool, and a person must "
                             "accept it");
    } else if (v.action == MO_ACTION_DENY) {
        mo_chat_call_skip(k, "it is not allowed here%s%.*s",
                          why.n > 0 ? ": " : "", (int)why.n, why.p);
    } else if (k->answered != MO_ANSWERED_NOT && fit_schema(k, &e) < 0) {
        mo_chat_call_skip(k, "%s", e.msg);
    } else if (!mo_verdict_may_run(&v, k->answered, k->panel)) {
        mo_chat_call_ask_again(k);
    } else {
        return true;
    }
    return false;
}

/* --- decisions ----------------------------------------------------------- */

/* Takes other arguments; k->shown has the old ones. On failure nothing
 * changes. */
static int edit_args(struct call *k, struct mo_span args, struct mo_err *e)
{
    struct mo_json_doc doc;
    struct mo_buf old;
    int rc = mo_json_parse(args, 0, &doc, e);

    if (rc < 0)
        return rc;
    if (!mo_json_is(doc.root, MO_JSON_OBJECT))
        return mo_fail(e, MO_EINVAL, "arguments must be a JSON object");
    old = k->args;
    mo_buf_init(&k->args, MO_EXACT_MAX);
    rc = mo_exact_args(doc.root, &k->args, e);
    if (rc == 0)
        rc = fit_schema(k, e);
    if (rc < 0) {
        mo_buf_fini(&k->args);
        k->args = old;
        return rc;
    }
    mo_buf_fini(&k->shown);
    k->shown = old;
    mo_sha256_hex(mo_buf_view(&k->shown), k->before);
    mo_chat_calls_digest(k);
    return 0;
}

void mo_chat_call_undo_edit(struct call *k)
{
    if (k->shown.len == 0)
        return;
    mo_buf_fini(&k->args);
    k->args = k->shown;
    mo_buf_init(&k->shown, MO_EXACT_MAX);
    k->before[0] = '\0';
    mo_chat_calls_digest(k);
}

void mo_chat_audit_refusal(struct chat *c, const struct mo_decider *by,
                           const struct mo_decision *d, const char *code)
{
    const struct mo_door door = {by->door, false};
    const struct mo_audit_row row = {
        .event = "refused",
        .subject = mo_span_cstr(code),
        .call = mo_span_head(d->call, MO_LLM_KEY_MAX),
        .approved = &d->approved,
        .who = mo_span_cstr(by->who),
        .door = &door,
    };

    mo_chat_audit(c, &row);
}

struct mo_decider mo_chat_decider(const struct mo_member *m)
{
    return (struct mo_decider){
        .person = {.name = m->name,
                   .role = m->role,
                   .people = m->people,
                   .groups = m->groups},
        .who = m->who,
        .door = m->door,
    };
}

static enum mo_answered answered_by(const struct mo_decider *by,
                                    const struct mo_member *m)
{
    return m ? m->is_operator ? MO_ANSWERED_OPERATOR : MO_ANSWERED_OWNER
           : by->person.role >= MO_ROLE_OPERATOR ? MO_ANSWERED_OPERATOR
                                                 : MO_ANSWERED_NOT;
}

const char *mo_chat_call_panel_refuses(const struct call *k,
                                       const struct mo_panel *p,
                                       const struct mo_identity *who)
{
    const struct chat *c = k->chat;
    const struct mo_span askers[] = {mo_span_cstr(c->turn.asker),
                                     mo_span_cstr(c->owner)};

    if (!p->need)
        return NULL;
    return mo_panel_refuses(p, &k->said, who, askers, *c->owner ? 2 : 1);
}

/* Checks that the decision is about what was shown. Returns NULL, or the code
 * of the refusal with its text. */
static const char *check_shown(const struct call *k,
                               const struct mo_decision *d, struct mo_err *e)
{
    if (d->args.n > 0 && d->digest == NULL) {
        mo_fail(e, MO_EINVAL,
                "edited arguments need the digest of the call that was shown");
        return "digest_required";
    }
    if (d->digest && d->digest->n == 0) {
        mo_fail(e, MO_EINVAL,
                "the digest is empty; send the one that was shown, or none");
        return "bad_digest";
    }
    if (d->digest && !mo_span_eq_ct(*d->digest, mo_span_cstr(k->digest))) {
        mo_fail(e, MO_EPOLICY,
                "the call has changed since it was shown; look at it again");
        return "changed";
    }
    return NULL;
}

/* Checks a yes against the rules as they are now, for the arguments that the
 * call has now. */
static const char *check_rules(const struct mo_decider *by,
                               enum mo_answered answered, const struct call *k,
                               struct mo_err *e)
{
    struct mo_verdict v = mo_chat_call_verdict(k);
    struct mo_span why = reason_of(&v);
    const char *other = mo_chat_call_panel_refuses(k, &v.panel, &by->person);

    if (v.action == MO_ACTION_DENY) {
        mo_fail(e, MO_EPOLICY, "this call is not allowed here%s%.*s",
                why.n > 0 ? ": " : "", (int)why.n, why.p);
        return "denied";
    }
    if (other) {
        mo_fail(e, MO_EPOLICY, "%s", other);
        return "not_the_approver";
    }
    if (!v.panel.need && !mo_verdict_may_run(&v, answered, 0)) {
        mo_fail(e, MO_EPOLICY, "only the operator may approve this call");
        return "operator_only";
    }
    return NULL;
}

/* Takes the edited arguments and judges the call. Returns NULL, or the code of
 * the refusal with its text; then the call is as it was. */
static const char *check_decision(const struct mo_decider *by,
                                  enum mo_answered answered, struct call *k,
                                  const struct mo_decision *d, struct mo_err *e)
{
    const char *code = check_shown(k, d, e);

    if (code || !d->approved || k->tool == NULL)
        return code;
    if (d->args.n > 0 && mo_chat_call_verdict(k).panel.need > 1) {
        mo_fail(e, MO_EINVAL,
                "the arguments cannot be changed where several persons must "
                "approve");
        return "bad_request";
    }
    if (d->args.n > 0 && edit_args(k, d->args, e) < 0)
        return "bad_request";
    code = check_rules(by, answered, k, e);
    if (code)
        mo_chat_call_undo_edit(k);
    return code;
}

/* Counts a yes for the panel of the rule. True: the call waits for others. */
static bool waits_for_others(struct call *k, const struct mo_decider *by)
{
    struct mo_verdict v = mo_chat_call_verdict(k);

    k->panel = mo_panel_digest(&v.panel);
    if (!k->panel || mo_said_add(&k->said, &v.panel, by->person.name)) {
        k->answered = k->panel ? MO_ANSWERED_PANEL : k->answered;
        return false;
    }
    mo_chat_call_note(k);
    return true;
}

static void take_decision(struct call *k, const struct mo_decider *by,
                          enum mo_answered answered,
                          const struct mo_decision *d)
{
    mo_buf_set(&k->reason, mo_span_head(d->reason, REASON_MAX));
    k->by = "person";
    snprintf(k->who, sizeof(k->who), "%s", by->who);
    k->door = (struct mo_door){by->door, false};
    k->answered = d->approved ? answered : MO_ANSWERED_NOT;
    k->kept = 0;
}

/* A yes to further calls of a script (script_grant.h). */
static bool is_ahead(const struct mo_decision *d)
{
    return d->approved && d->remember == MO_REMEMBER_NO && d->conditions.n > 0;
}

void mo_chat_call_decide(struct chat *c, const struct mo_decider *by,
                         struct mo_member *only, const struct mo_decision *d,
                         struct ack *ack)
{
    enum mo_answered answered = answered_by(by, only);
    struct call *k = mo_chat_calls_find(c, d->call);
    const char *code = NULL;
    struct mo_err e;

    if (k == NULL || k->state != MO_CALL_PENDING || k->writing ||
        c->state != CHAT_CALLS) {
        code = k && k->writing && k->noting ? "busy" : "unknown_call";
        mo_chat_audit_refusal(c, by, d, code);
        mo_chat_ack(ack, code,
                    *code == 'b' ? "another decision is being stored; try again"
                                 : mo_chat_calls_none);
        return;
    }
    code = check_decision(by, answered, k, d, &e);
    if (code) {
        mo_chat_audit_refusal(c, by, d, code);
        mo_chat_ack(ack, code, e.msg);
        return;
    }
    k->ack = *ack;
    take_decision(k, by, answered, d);
    if (d->approved && waits_for_others(k, by)) {
        mo_chat_calls_arm(c);
        return;
    }
    if (is_ahead(d))
        k->kept = only && !only->reads
                      ? mo_script_grant(k, d->conditions, &e) == 0 ? 1 : -1
                      : 0;
    if (d->remember != MO_REMEMBER_NO)
        k->kept = mo_session_memory_decision(k, d, &e) == 0 ? 1 : -1;
    if (k->kept < 0 && only)
        mo_chat_event_message(c, only, e.msg);
    if (d->approved)
        mo_chat_call_settle(k, MO_CALL_RUNNING);
    else
        mo_chat_call_reject(k, "person", "The person rejected this call.");
    mo_chat_calls_arm(c);
}

void mo_chat_decide(struct mo_member *m, const struct mo_decision *d,
                    mo_ack_fn *done, void *ctx)
{
    struct mo_decider by = mo_chat_decider(m);
    struct ack ack = {done, ctx};

    if (!mo_chat_calls_find(m->chat, d->call) &&
        mo_chat_network_decide(m, d, &ack))
        return;
    mo_chat_call_decide(m->chat, &by, m, d, &ack);
}
