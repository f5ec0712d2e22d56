/* judge.h - hooks that the gateway calls before a tool call is forwarded, while
 * it waits for a person, and when it is over.
 *
 * The gateway knows no rules. Before a tools/call leaves for its server the
 * owner's judge looks at it and lets it go, refuses it, or wants a person's
 * yes. The person is asked through the client (an elicitation) where that is
 * possible; else the call is held, its client hears progress, and somebody
 * decides elsewhere with mo_gw_decide(). A yes is written down before the call
 * runs: agreed(), then mo_gw_run(). Nobody's answer in time is a no.
 *
 * What was agreed to is what runs: when its server is ready the call is looked
 * up once more, and if tool, definition or arguments are not those that were
 * shown it does not run.
 *
 * Ownership: a case is the gateway's from rule() to done(); after that it is
 * gone. Its texts are its own, `item` and `arguments` are valid during rule()
 * only. Callbacks must not free or decide the case they are given, but for
 * agreed(), which may say mo_gw_run() at once. */
#ifndef MO_POLICY_JUDGE_H
#define MO_POLICY_JUDGE_H

#include "audit/gateway_call.h"

#define MO_GW_WAIT_MS ((uint64_t)600 * 1000) /* for a person */

enum mo_gw_ruling {
    MO_GW_LET,
    MO_GW_REFUSE, /* reason says why */
    MO_GW_ASK,    /* a person must agree first */
};

struct mo_gw_judge { /* each may be NULL */
    /* question: for ask, what the client shows to its person; left empty the
     * client is not asked. */
    enum mo_gw_ruling (*rule)(void *ctx, struct mo_gw_case *k,
                              struct mo_buf *question);
    /* It waits from now on: for mo_gw_decide(), or (by_client) its client. */
    void (*held)(void *ctx, struct mo_gw_case *k);
    /* A person agreed: write it down, then mo_gw_run(). Without it the call
     * runs at once. */
    void (*agreed)(void *ctx, struct mo_gw_case *k);
    /* Once for every call, with its outcome; the case is gone after it. */
    void (*done)(void *ctx, struct mo_gw_case *k);
    void (*routed)(void *ctx, const struct mo_gw_routing *r);
    /* Is that tool not what people saw first? rule() would refuse it. */
    bool (*changed)(void *ctx, struct mo_span server, struct mo_span tool,
                    struct mo_json item);
    void *ctx;
    uint64_t wait_ms; /* 0: MO_GW_WAIT_MS */
};

/* How a decision reaches the gateway. */
struct mo_gw_case_ops {
    bool (*decide)(struct mo_gw_case *k, bool yes, const char *by);
    int (*edit)(struct mo_gw_case *k, struct mo_span args, struct mo_err *e);
    void (*run)(struct mo_gw_case *k, const struct mo_err *why);
};

/* Decides a call that is held and not by_client. False: it is decided
 * already. */
static inline bool mo_gw_decide(struct mo_gw_case *k, bool yes, const char *by)
{
    return k->ops->decide(k, yes, by);
}

/* Before that: replaces the arguments by others in the exact form
 * (policy/exact.h). MO_EINVAL: they do not fit the tool; MO_EPOLICY: the tool
 * is not what was shown. */
static inline int mo_gw_edit(struct mo_gw_case *k, struct mo_span args,
                             struct mo_err *e)
{
    return k->ops->edit(k, args, e);
}

/* agreed() has finished. why: it failed, and the call does not run. */
static inline void mo_gw_run(struct mo_gw_case *k, const struct mo_err *why)
{
    k->ops->run(k, why);
}

#endif
