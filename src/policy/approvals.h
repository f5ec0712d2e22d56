/* approvals.h - judges the gateway's calls and keeps those that wait for a
 * person.
 *
 * Implements the gateway's hooks (policy/approval_hooks.h) with the policy
 * (rules, remembered rules, pinned tool definitions) and the audit log. The
 * process has one of each: conversations use the same ones through
 * mo_approvals_policy() and mo_approvals_audit().
 *
 * Invariants
 *  1. The first matching rule decides, as in conversations. If none matches,
 *     `gateway.approvals` decides. Its default is to run the call, because
 *     most clients ask their own user.
 *  2. If a rule could apply, arguments that two parsers could read differently
 *     are refused.
 *  3. A tool whose definition changed does not run until a person accepts it.
 *  4. A decision names the call and the digest of what was shown, and is valid
 *     once. An approval is on disk before the call runs. The rule that asks
 *     says who may approve; the credential that made the call may not, unless
 *     the rule says `client`. Where several must approve (panel.h), the call
 *     waits until the last of them has, and one no is enough.
 *  5. A call without an answer before the timeout is denied. So is a pending
 *     call that changed rules deny. A call is judged again directly before it
 *     is sent.
 *  6. A call of a conversation was judged and audited there, so no person is
 *     asked again. Operator denials and changed tools still block it.
 *
 * Limits: PENDING_MAX calls wait at once, further calls are refused.
 * MO_POLICY_CHANGED_MAX changed tools are listed. */
#ifndef MO_POLICY_APPROVALS_H
#define MO_POLICY_APPROVALS_H

#include "audit/audit.h"
#include "policy/approval_hooks.h"
#include "policy/policy.h"
#include "policy/webhook.h"

struct mo_approvals;

int mo_approvals_open(struct mo_loop *l, const struct mo_config *cfg,
                      struct mo_approvals **out, struct mo_err *e);
/* Close the gateway first. gone(ctx) is called once, later. */
void mo_approvals_close(struct mo_approvals *d, void (*gone)(void *ctx),
                        void *ctx);
/* On failure the old rules stay in effect. */
int mo_approvals_reload(struct mo_approvals *d, const struct mo_config *cfg,
                        struct mo_err *e);

struct mo_approval_hooks mo_approvals_hooks(struct mo_approvals *d);

/* A person's decision about a pending call. */
struct mo_approval_decision {
    struct mo_span id, reason;
    const struct mo_span *digest; /* of what was shown; NULL: not given */
    struct mo_json args; /* replace the call's; none: unchanged; needs digest */
    bool approved;
    enum mo_remember remember;      /* for connections only (connections.h) */
    const char *who;                /* for the audit log */
    const char *name;               /* the person's; "": unknown */
    const char *caller;             /* the same; "": the operator */
    bool is_approver;               /* decides about calls of others, too */
    const char *door;               /* as in struct mo_door; stays */
    const struct mo_people *people; /* who know the person's groups; or NULL */
    unsigned *missing; /* gets the number of persons who must still approve; or
                        * NULL */
};

/* A person accepts the changed definition of a tool. */
struct mo_approval_accept {
    struct mo_span server, tool, digest;
    const char *who;
};

/* {"approvals":[...],"changed":[...]}. A person below the operator gets the
 * calls of their own clients, those that a rule names them for, and no changed
 * tools; an approver gets all calls. */
int mo_approvals_list(struct mo_approvals *d, const struct mo_identity *who,
                      struct mo_buf *out);
/* The same list in parts: the pending calls as elements of an array. */
void mo_approvals_put_list(struct mo_approvals *d,
                           const struct mo_identity *who, struct mo_jw *w);
void mo_approvals_put_changed(struct mo_approvals *d,
                              const struct mo_identity *who, struct mo_jw *w);
/* Why this person may not approve the call; NULL: they may, or no such call is
 * pending. */
const char *mo_approvals_forbidden(struct mo_approvals *d,
                                   const struct mo_approval_decision *x);
/* MO_ENOTFOUND: the call is not pending (any more); MO_EPOLICY: the digest is
 * of another call; MO_EINVAL: the arguments do not fit the tool or a rule
 * denies them. */
int mo_approvals_decide(struct mo_approvals *d,
                        const struct mo_approval_decision *x, struct mo_err *e);
int mo_approvals_accept(struct mo_approvals *d,
                        const struct mo_approval_accept *x, struct mo_err *e);

struct mo_policy *mo_approvals_policy(const struct mo_approvals *d);
struct mo_audit *mo_approvals_audit(const struct mo_approvals *d);
/* d: NULL gives NULL. */
struct mo_webhooks *mo_approvals_webhooks(const struct mo_approvals *d);

/* Called for every call and every connection of a box that ends; each may be
 * NULL. server: `box` for the box of a session. */
struct mo_approvals_watch {
    void (*done)(void *ctx, const struct mo_gw_case *k);
    void (*connection)(void *ctx, const char *server,
                       const struct mo_egress_row *r);
    void *ctx;
};
void mo_approvals_watch(struct mo_approvals *d,
                        const struct mo_approvals_watch *w);
unsigned mo_approvals_waiting(const struct mo_approvals *d);

#endif
