/* approvals_priv.h - shared by approvals.c (judging) and approvals_list.c
 * (listing and deciding pending calls).
 *
 * Invariants
 *  1. A pending call is k->data of its case while k is set. k is NULL when the
 *     case is over and only the audit write is still running.
 *  2. A pending call is in d->pending while people can see and decide it. */
#ifndef MO_POLICY_APPROVALS_PRIV_H
#define MO_POLICY_APPROVALS_PRIV_H

#include "policy/approvals.h"
#include "policy/exact.h"

#define PENDING_MAX 256
#define WHO_MAX     128

struct pending_call {
    struct mo_list node;
    struct mo_approvals *d;
    struct mo_gw_case *k;
    struct mo_buf args; /* in the exact form; empty: not kept */
    struct mo_buf def;  /* tool: title, description, annotations; JSON */
    struct mo_buf rule; /* the rule that asks for a person, JSON */
    char digest[MO_EXACT_DIGEST];
    char tool_digest[MO_EXACT_DIGEST];
    char who[WHO_MAX], why[MO_GW_REASON_MAX]; /* decided by; asked because */
    enum mo_approver approver;
    uint64_t at, expires; /* wall ms */
    bool writing;
};

struct mo_approvals {
    struct mo_loop *loop;
    struct mo_policy *policy;
    struct mo_audit *audit;
    struct mo_approvals_watch watch;
    struct mo_list pending;
    unsigned npending;
    struct mo_later ending; /* calls gone() if there is no audit log */
    struct mo_gone gone;
};

/* approvals.c: what the rules say now about the call with such arguments. */
struct mo_verdict mo_approvals_verdict(const struct mo_approvals *d,
                                       const struct pending_call *p,
                                       struct mo_span args);

/* approvals_list.c: refuses the pending calls that the rules deny now. */
void mo_approvals_drop_denied(struct mo_approvals *d);
/* The question as text, invisible characters escaped.
 * MO_ETOOBIG: the arguments are too long for a form. */
int mo_approvals_question(const struct pending_call *p, struct mo_buf *out);
#endif
