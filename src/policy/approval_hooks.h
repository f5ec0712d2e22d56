/* approval_hooks.h - hooks that the gateway calls before a tool call is
 * forwarded, while it waits for a person, and when it is over.
 *
 * The gateway knows no rules. Before it forwards a tools/call, rule() allows
 * the call, refuses it, or requires a person's approval. The call waits, its
 * client gets progress notifications, and a person decides elsewhere with
 * mo_gw_decide(). Only if rule() gives a question may the client that made the
 * call ask its own person (an elicitation). An approval is recorded before the
 * call runs: agreed(), then mo_gw_run(). A call without an answer before the
 * timeout is denied.
 *
 * When the server is ready, the gateway looks the call up again. If tool,
 * definition or arguments differ from those that were shown, the call does not
 * run. Otherwise again() has the last word, with the bytes that are sent.
 *
 * Ownership: the gateway owns a case from rule() until done() returns. The case
 * owns its texts; `item` and `arguments` are valid during rule() and again()
 * only.
 * Callbacks must not free or decide their case, except that agreed() may call
 * mo_gw_run() at once. */
#ifndef MO_POLICY_APPROVAL_HOOKS_H
#define MO_POLICY_APPROVAL_HOOKS_H

#include "audit/gateway_call.h"

#define MO_GW_WAIT_MS ((uint64_t)600 * 1000) /* default timeout */

enum mo_gw_ruling {
    MO_GW_LET,
    MO_GW_REFUSE, /* reason is set */
    MO_GW_ASK,    /* a person must approve it first */
};

struct mo_approval_hooks { /* each may be NULL */
    /* question: for MO_GW_ASK, the text that the client shows. If it is left
     * empty, the client is not asked. */
    enum mo_gw_ruling (*rule)(void *ctx, struct mo_gw_case *k,
                              struct mo_buf *question);
    /* Directly before the call is sent: false if it may not run (any more);
     * k->reason is set. */
    bool (*again)(void *ctx, struct mo_gw_case *k);
    /* The call waits from now on, for mo_gw_decide() or (by_client) for its
     * client. */
    void (*held)(void *ctx, struct mo_gw_case *k);
    /* A person approved: record it, then call mo_gw_run(). Without this hook
     * the call runs at once. */
    void (*agreed)(void *ctx, struct mo_gw_case *k);
    /* The call is about to be sent, for the first time. Not 0: it cannot be
     * recorded, so it must not be sent. */
    int (*leaves)(void *ctx, struct mo_gw_case *k, struct mo_err *e);
    /* Once for every call, with its outcome; then the case is freed. */
    void (*done)(void *ctx, struct mo_gw_case *k);
    void (*routed)(void *ctx, const struct mo_gw_routing *r);
    /* True if the definition differs from the pinned one; rule() would refuse
     * the tool. */
    bool (*changed)(void *ctx, struct mo_span server, struct mo_span tool,
                    struct mo_json item);
    void *ctx;
};

/* The gateway's functions for a pending call. */
struct mo_gw_case_ops {
    bool (*decide)(struct mo_gw_case *k, bool yes, const char *by);
    int (*edit)(struct mo_gw_case *k, struct mo_span args, struct mo_err *e);
    void (*run)(struct mo_gw_case *k, const struct mo_err *why);
};

/* Decides a pending call that is not by_client. False: it was decided
 * before. */
static inline bool mo_gw_decide(struct mo_gw_case *k, bool yes, const char *by)
{
    return k->ops->decide(k, yes, by);
}

/* Replaces the arguments of a pending call. args: in the exact form
 * (policy/exact.h). MO_EINVAL: they do not fit the tool; MO_EPOLICY: the tool
 * differs from the one that was shown. */
static inline int mo_gw_edit(struct mo_gw_case *k, struct mo_span args,
                             struct mo_err *e)
{
    return k->ops->edit(k, args, e);
}

/* Ends agreed(). why: NULL, or the error because of which the call does not
 * run. */
static inline void mo_gw_run(struct mo_gw_case *k, const struct mo_err *why)
{
    k->ops->run(k, why);
}

#endif
