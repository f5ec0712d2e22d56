/* call_approval.h - the approval of a forwarded call: judged, pending, decided,
 * ended.
 *
 *   NEW -> RUNS                          allowed
 *   NEW -> OVER                          refused
 *   NEW -> WAITS -> SAID -> WRITING -> RUNS
 *          WAITS -> SAID -> OVER         rejected, or nobody answered in time
 *   any -> OVER                          the call ended
 *
 * Invariants
 *  1. If the gateway has approval hooks (policy/approval_hooks.h), every
 *     tools/call has one, from mo_call_approval_begin() to
 *     mo_call_approval_free(). Only call_approval_move() writes its state.
 *  2. done() is called once, on the way to OVER.
 *  3. A call whose approval is WAITS, SAID or WRITING has no child and was not
 *     sent.
 *  4. A call is sent only after leaves() has recorded it.
 *  5. The effect of a decision happens in `later`, never inside the call that
 *     decided: a refusal may free the forwarded call. */
#ifndef MO_GATEWAY_CALL_CALL_APPROVAL_H
#define MO_GATEWAY_CALL_CALL_APPROVAL_H

#include "gateway/call/forwarded_call.h"
#include "route/route.h"

/* Judges the call. True if it may be sent now; false if it waits or was
 * refused. */
bool mo_call_approval_begin(struct forwarded_call *f,
                            const struct call_target *t);
/* Called just before the call is sent. True if it is still the call that was
 * judged. A fallback server (failover.c) is judged again and must be allowed.
 * False: the call was refused. */
bool mo_call_approval_again(struct forwarded_call *f,
                            const struct call_target *t);
/* The client's answer to the question whether the call may run; none: the
 * client refused to answer. */
void mo_call_approval_answer(struct forwarded_call *f, struct mo_json answer);
/* Records the outcome. Only the first one counts. */
void mo_call_approval_done(struct forwarded_call *f, enum mo_gw_outcome what,
                           size_t bytes);
void mo_call_approval_reply(struct forwarded_call *f, const struct mo_reply *r);
void mo_call_approval_free(struct forwarded_call *f);
/* Reports which tools were found for words. acted: the first one is called. */
void mo_call_approval_routed(struct mo_gateway *g, const struct mo_ep_call *c,
                             const char *by, struct mo_span words,
                             const struct mo_route_answer *found, bool acted);
/* The view has changed: ends its pending calls of tools that it does not show
 * any more, as calls of unknown tools. */
void mo_call_approval_look_again(struct mo_gw_view *v);
/* The server is being removed: refuses its pending calls. */
void mo_call_approval_leave(struct server_slot *s);

#endif
