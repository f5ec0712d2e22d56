/* approvals_priv.h - shared by approvals.c (judging) and approvals_list.c
 * (listing and deciding pending calls).
 *
 * Invariants
 *  1. A pending call is k->data of its case while k is set. k is NULL when the
 *     case is over and only the audit write is still running.
 *  2. A pending call is in d->pending while people can see and decide it. */
#ifndef MO_POLICY_APPROVALS_PRIV_H
#define MO_POLICY_APPROVALS_PRIV_H

#include "base/map.h"
#include "egress/relay.h"
#include "policy/approvals.h"
#include "policy/connection_log.h"
#include "policy/connections.h"
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
    struct mo_said said;  /* who have approved, of a panel */
    uint64_t at, expires; /* wall ms */
    bool writing;
    bool told; /* webhooks know that it waits, not yet how it ended */
    enum mo_policy_from from;
    const struct mo_rules *session;      /* answers for the session, or NULL */
    char request[MO_EGRESS_REQUEST_MAX]; /* of a connection; or "" */
    char program[MO_EGRESS_PROGRAM_MAX]; /* likewise, as the box says */
    bool tls;
};

struct mo_approvals {
    struct mo_loop *loop;
    struct mo_policy *policy;
    struct mo_audit *audit;
    struct mo_webhooks *webhooks;
    struct mo_approvals_watch watch;
    struct mo_connections_watch net;
    struct mo_connection_log log;
    struct mo_map boxes; /* that ask: id -> struct asking_box */
    struct mo_list pending;
    unsigned npending;
    struct mo_later ending; /* calls gone() if there is no audit log */
    struct mo_gone gone;
};

/* approvals.c: what the rules say now about the call with such arguments. */
struct mo_verdict mo_approvals_verdict(const struct mo_approvals *d,
                                       const struct pending_call *p,
                                       struct mo_span args);

/* A pending call of this case; freed by the caller. */
struct pending_call *mo_approvals_pending_new(struct mo_approvals *d,
                                              struct mo_gw_case *k);
void mo_approvals_pending_free(struct pending_call *p); /* NULL is fine */
void mo_approvals_unlist(struct pending_call *p);
/* Lists a connection that the rules ask about. */
void mo_approvals_list_connection(struct pending_call *p,
                                  const struct mo_verdict *v);

/* connections.c */
void mo_connections_init(struct mo_approvals *d);
void mo_connections_fini(struct mo_approvals *d); /* refuses all that wait */
void mo_connections_free(struct mo_approvals *d);
int mo_connections_remember(struct pending_call *p,
                            const struct mo_approval_decision *x,
                            struct mo_err *e);
static inline bool mo_pending_is_connection(const struct pending_call *p)
{
    return p->from == MO_POLICY_SESSION_NET || p->from == MO_POLICY_SERVER_NET;
}

/* Tells webhooks that the call was decided; once. */
void mo_approvals_tell_decided(struct pending_call *p, bool approved);

/* approvals_list.c */
void mo_approvals_put_pending(struct mo_jw *w, const struct pending_call *p);
/* approvals_list.c: refuses the pending calls that the rules deny now. */
void mo_approvals_drop_denied(struct mo_approvals *d);
/* The question as text, invisible characters escaped.
 * MO_ETOOBIG: the arguments are too long for a form. */
int mo_approvals_question(const struct pending_call *p, struct mo_buf *out);
#endif
