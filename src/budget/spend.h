/* spend.h - what people and their tokens spent on models on a day, as JSON:
 *
 *   {"day":"2026-11-16","people":[{"name":"bob","tokens":120,"money":"0.075",
 *    "unpricedTokens":0,"limits":{"tokensPerDay":1000,...}}],"tokens":[...]}
 *
 * money: decimal text; null if all tokens were of models without a price. */
#ifndef MO_BUDGET_SPEND_H
#define MO_BUDGET_SPEND_H

#include "budget/budget.h"

#define MO_SPEND_TEXT_MAX ((size_t)8 * 1024 * 1024)

typedef void mo_spend_fn(void *ctx, struct mo_span json,
                         const struct mo_err *why);
/* person: only this one, without tokens; NULL: everybody. ago: days before
 * today. done() is called once, later. */
int mo_spend_read(struct mo_budget *b, const char *person, unsigned ago,
                  mo_spend_fn *done, void *ctx, struct mo_err *e);

#endif
