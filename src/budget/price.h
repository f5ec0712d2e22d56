/* price.h - prices of models, and the cost of a reply.
 *
 * `prices` of the configuration comes first, then the built-in table
 * (data/prices.json). A name with `*` at its end fits all models that begin so;
 * the longest name that fits counts. A model without a price is not free: its
 * cost is unknown.
 *
 * All amounts are whole millionths of the unit of money (codec/money.h). A cost
 * is rounded up, and never overflows: usage is cut to MO_USAGE_MAX. */
#ifndef MO_BUDGET_PRICE_H
#define MO_BUDGET_PRICE_H

#include "codec/json/json.h"
#include "config/config.h"

#define MO_USAGE_MAX ((uint64_t)1000000000) /* tokens of one reply */

struct mo_usage {
    uint64_t input; /* all of it, cached or not */
    uint64_t output, cache_read, cache_write;
};

/* The price of the model; false: none is known. */
bool mo_price_find(const struct mo_config *c, struct mo_span model,
                   struct mo_config_price *out);
int64_t mo_price_cost(const struct mo_config_price *p,
                      const struct mo_usage *u);
/* Input and output. */
uint64_t mo_usage_tokens(const struct mo_usage *u);
/* The built-in table as JSON. */
struct mo_span mo_price_table(void);

#endif
