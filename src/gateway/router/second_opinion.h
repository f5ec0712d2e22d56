/* second_opinion.h - the router's candidates, compared with an embeddings
 * server (embeddings.h).
 *
 * If both find the same tool first, the confidence rises a little, but nothing
 * becomes sure by it. If not, the candidates are put in a common order, and
 * none of them is sure. So a second opinion never makes a call run: a verdict
 * about the call may have been made without it. */
#ifndef MO_GATEWAY_ROUTER_SECOND_OPINION_H
#define MO_GATEWAY_ROUTER_SECOND_OPINION_H

#include "gateway/router/embeddings.h"
#include "gateway/state/state.h"
#include "route/route.h"

#define OPINION_AGREES 0.1f
#define OPINION_MOST   (MO_ROUTE_SURE - 0.01f)
#define OPINION_SCORE  0.2f /* for a standard deviation of the cosines */

/* Have the vector of a tool. m may be NULL. */
void mo_second_opinion_want(struct embeddings *m, struct mo_span server,
                            const struct mo_route_tool *t);
/* Changes nothing if the vectors are not there. */
void mo_second_opinion_apply(struct embeddings *m, const struct mo_catalog *cat,
                             struct mo_span words, struct mo_route_answer *a);

/* Waits for the vector of these words, then calls run(g, c). False: there is
 * nothing to wait for. */
bool mo_second_opinion_wait(struct mo_gateway *g, struct mo_ep_call *c,
                            struct mo_span words,
                            void (*run)(struct mo_gateway *g,
                                        struct mo_ep_call *c));

#endif
