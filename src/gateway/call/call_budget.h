/* call_budget.h - asks the budgets (budget/budget.h) before a request is
 * forwarded.
 *
 * Every request that reaches a server is counted once, except those about
 * tasks: for its person and personal token, its view and its server. It is
 * counted before it is judged, and stays counted if it is refused or cancelled
 * then. Retries are not counted again; a fallback server counts for itself.
 *
 * Calls from inside the program are counted for their person by whoever makes
 * them; here only for their server. */
#ifndef MO_GATEWAY_CALL_CALL_BUDGET_H
#define MO_GATEWAY_CALL_CALL_BUDGET_H

#include "gateway/call/forwarded_call.h"

/* True if the call may go on now; false if it waits for the answer, or was
 * refused. */
bool mo_call_budget_begin(struct forwarded_call *f,
                          const struct call_target *t);
/* The same directly before it is sent, for a fallback server. */
bool mo_call_budget_again(struct forwarded_call *f,
                          const struct call_target *t);

#endif
