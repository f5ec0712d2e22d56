/* call_approval.h - a flight's case (policy/approval_hooks.h): ruled on, asked
 * about, told of.
 *
 *   NEW -> RUNS                          let
 *   NEW -> OVER                          refused
 *   NEW -> WAITS -> SAID -> WRITING -> RUNS
 *          WAITS -> SAID -> OVER         a no, or nobody in time
 *   any -> OVER                          the outcome, the end of the flight
 *
 * Invariants
 *  1. A case is there for a tools/call if the gateway has a judge, from
 *     mo_call_approval_begin() to mo_call_approval_free(). Only
 * call_approval_move() writes its state.
 *  2. done() is told once, on the way to OVER.
 *  3. A flight whose case is WAITS, SAID or WRITING has no child and no call.
 *  4. What follows from a decision happens in `later`, never inside the call
 *     that made it: a refusal may free the flight. */
#ifndef MO_GATEWAY_CALL_CALL_APPROVAL_H
#define MO_GATEWAY_CALL_CALL_APPROVAL_H

#include "gateway/call/forwarded_call.h"
#include "route/route.h"

/* May it go on now? false: it waits, or has been answered. */
bool mo_call_approval_begin(struct forwarded_call *f,
                            const struct call_target *t);
/* It is about to be sent there: is that still what was ruled on? Another server
 * that stands in (failover.h) is a case of its own, which must be let. false:
 * it has been answered. */
bool mo_call_approval_again(struct forwarded_call *f,
                            const struct call_target *t);
/* The client's answer to our question; none: it refused to answer. */
void mo_call_approval_answer(struct forwarded_call *f, struct mo_json answer);
/* The outcome is known; the first one counts. */
void mo_call_approval_done(struct forwarded_call *f, enum mo_gw_outcome what,
                           size_t bytes);
void mo_call_approval_reply(struct forwarded_call *f, const struct mo_reply *r);
void mo_call_approval_free(struct forwarded_call *f);
/* Words were taken for tools, and perhaps acted upon. */
void mo_call_approval_routed(const struct mo_gateway *g,
                             const struct mo_ep_call *c, const char *by,
                             struct mo_span words,
                             const struct mo_route_answer *found, bool acted);
/* The server is to go: nobody need decide about its calls any more. */
void mo_call_approval_leave(struct server_slot *s);

#endif
