/* approvals_priv.h - what approvals.c (judging) and approvals_list.c (looking
 * at what waits, deciding) share.
 *
 * Invariants
 *  1. A matter is k->data of its case while k is set; k is NULL when the case
 *     is over and the matter only waits for the disk.
 *  2. A matter is in d->held while its case can be seen by people. */
#ifndef MO_POLICY_APPROVALS_PRIV_H
#define MO_POLICY_APPROVALS_PRIV_H

#include "policy/approvals.h"
#include "policy/exact.h"

#define HELD_MAX 256
#define WHO_MAX  128
#define LIST_MAX ((size_t)32 * 1024 * 1024)

struct pending_call {
    struct mo_list node;
    struct mo_approvals *d;
    struct mo_gw_case *k;
    struct mo_buf args; /* exact; empty: not kept */
    struct mo_buf def;  /* of the tool: what people want to see of it */
    struct mo_buf rule; /* that wants a person to be asked, JSON */
    char digest[MO_EXACT_DIGEST];
    char tool_digest[MO_EXACT_DIGEST];
    char who[WHO_MAX], why[MO_GW_REASON_MAX]; /* who decided; why asked */
    uint64_t at, expires;                     /* wall ms */
    bool writing;
};

struct mo_approvals {
    struct mo_loop *loop;
    struct mo_policy *policy;
    struct mo_audit *audit;
    struct mo_approvals_watch watch;
    struct mo_list held;
    unsigned nheld;
    struct mo_later ending; /* if there is no audit log to wait for */
    void (*gone)(void *ctx);
    void *ctx;
};

/* approvals.c: do the rules let people run this call with such arguments? 0, or
 * MO_EINVAL and which does not. */
int mo_approvals_may_be(const struct mo_approvals *d,
                        const struct pending_call *m, struct mo_span args,
                        struct mo_err *e);

/* approvals_list.c */
/* The question as text: what would run, nothing in it that hides. */
int mo_approvals_question(const struct pending_call *m, struct mo_buf *out);
#endif
