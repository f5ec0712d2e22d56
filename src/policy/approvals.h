/* approvals.h - where calls of the gateway are judged and wait for a person.
 *
 * Joins the gateway's seam (policy/judge.h) with what this program knows:
 * the operator's rules, what people said "always" to, the definitions of tools
 * as they were first seen, and the audit log. Those last three are one for the
 * process: conversations use the same (mo_approvals_pins() and so on).
 *
 * Rules of the house
 *  1. The first rule that fits decides, as in conversations. Where none does,
 *     `gateway.approvals` says: a client asks its own person most of the time,
 *     so the call runs unless the operator wants otherwise.
 *  2. Arguments that two readers could read differently are refused where a
 *     rule could be about them.
 *  3. A tool whose definition changed is not run before a person accepted it.
 *  4. A decision names the call and the digest of what was shown; it is used
 *     up by that. A yes is on the disk before the call runs.
 *  5. Nobody's answer in time is a no.
 *  6. A call of a conversation was judged there, is not asked about again and
 *     has its rows in the log from there; what the operator denies, or what
 *     changed, does not run for it either.
 *
 * Limits: HELD_MAX calls wait at once, one more is refused; CHANGED_MAX tools
 * that changed are remembered for being looked at. */
#ifndef MO_POLICY_APPROVALS_H
#define MO_POLICY_APPROVALS_H

#include "audit/audit.h"
#include "policy/judge.h"
#include "policy/policy.h"

struct mo_approvals;

int mo_approvals_open(struct mo_loop *l, const struct mo_config *cfg,
                      struct mo_approvals **out, struct mo_err *e);
/* After the gateway. gone(ctx) once, later. */
void mo_approvals_close(struct mo_approvals *d, void (*gone)(void *ctx),
                        void *ctx);
/* On failure the old rules stay. */
int mo_approvals_reload(struct mo_approvals *d, const struct mo_config *cfg,
                        struct mo_err *e);

struct mo_gw_judge mo_approvals_judge(struct mo_approvals *d);

/* A person's decision about a call that waits. */
struct mo_approval_decision {
    struct mo_span id, digest, reason;
    struct mo_json args; /* to run it with; none: as they are */
    bool approved;
    const char *who;
};

/* A person accepts the changed definition of a tool. */
struct mo_approval_accept {
    struct mo_span server, tool, digest;
    const char *who;
};

/* {"approvals":[...],"changed":[...]} */
int mo_approvals_list(struct mo_approvals *d, struct mo_buf *out);
/* MO_ENOTFOUND: the call does not wait any more; MO_EPOLICY: it is not what
 * was shown; MO_EINVAL: those arguments are not for this tool. */
int mo_approvals_decide(struct mo_approvals *d,
                        const struct mo_approval_decision *x, struct mo_err *e);
int mo_approvals_accept(struct mo_approvals *d,
                        const struct mo_approval_accept *x, struct mo_err *e);

struct mo_policy *mo_approvals_policy(const struct mo_approvals *d);
struct mo_audit *mo_approvals_audit(const struct mo_approvals *d);

/* Hears of every call that is over, and how many wait; may be NULL. */
struct mo_approvals_watch {
    void (*done)(void *ctx, const struct mo_gw_case *k);
    void *ctx;
};
void mo_approvals_watch(struct mo_approvals *d,
                        const struct mo_approvals_watch *w);
unsigned mo_approvals_waiting(const struct mo_approvals *d);

#endif
