/* decide.c - handles a person's decision about a pending call.
 *
 * Checks that the decision is about the call as it was shown, applies edited
 * arguments and remembers the decision if asked to. A decision about a call
 * that is not pending (any more), or has changed, is refused and audited.
 * calls.c stores an accepted decision; then the call runs or is rejected. */
#include "agent/chat/calls.h"
#include "agent/chat/chat_write.h"
#include "agent/chat/event.h"
#include "agent/chat/session_memory.h"
#include "agent/chat/verdict.h"

static int edit_args(struct call *k, struct mo_span args, struct mo_err *e)
{
    struct mo_json_doc doc;
    int rc = mo_json_parse(args, 0, &doc, e);

    if (rc == 0)
        rc = mo_chat_call_take_args(k, doc.root, e);
    if (rc == 0)
        mo_chat_calls_digest(k);
    return rc;
}

/* Audits a decision that was refused. */
static void audit_refusal(const struct mo_member *m,
                          const struct mo_decision *d, const char *code)
{
    const struct mo_audit_row row = {
        .event = "refused",
        .subject = mo_span_cstr(code),
        .call = mo_span_head(d->call, MO_LLM_KEY_MAX),
        .approved = &d->approved,
        .who = mo_span_cstr(m->who),
    };

    mo_chat_audit(m->chat, &row);
}

void mo_chat_decide(struct mo_member *m, const struct mo_decision *d,
                    mo_ack_fn *done, void *ctx)
{
    struct chat *c = m->chat;
    struct ack ack = {done, ctx};
    struct call *k = mo_chat_calls_find(c, d->call);
    struct mo_span why;
    struct mo_err e;

    if (k == NULL || k->state != MO_CALL_PENDING || k->writing ||
        c->state != CHAT_CALLS) {
        audit_refusal(m, d, "unknown_call");
        mo_chat_ack(&ack, "unknown_call", mo_chat_calls_none);
        return;
    }
    if (d->digest.n > 0 && !mo_span_eq_ct(d->digest, mo_span_cstr(k->digest))) {
        audit_refusal(m, d, "changed");
        mo_chat_ack(
            &ack, "changed",
            "the call has changed since it was shown; look at it again");
        return;
    }
    if (d->approved && k->tool && mo_chat_call_is_denied(k, d->args, &why)) {
        audit_refusal(m, d, "denied");
        mo_fail(&e, MO_EPOLICY, "this call is not allowed here%s%.*s",
                why.n > 0 ? ": " : "", (int)why.n, why.p);
        mo_chat_ack(&ack, "denied", e.msg);
        return;
    }
    if (d->args.n > 0 && edit_args(k, d->args, &e) < 0) {
        mo_chat_ack(&ack, "bad_request", e.msg);
        return;
    }
    mo_buf_set(&k->reason, mo_span_head(d->reason, REASON_MAX));
    k->ack = ack;
    k->by = "person";
    memcpy(k->who, m->who, sizeof(k->who));
    if (d->remember != MO_REMEMBER_NO)
        k->kept = mo_session_memory_decision(k, d, &e) == 0 ? 1 : -1;
    if (k->kept < 0)
        mo_chat_event_message(c, m, e.msg);
    if (d->approved)
        mo_chat_call_settle(k, MO_CALL_RUNNING);
    else
        mo_chat_call_reject(k, "person", "The person rejected this call.");
    mo_chat_calls_arm(c);
}
