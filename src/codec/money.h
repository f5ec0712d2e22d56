/* money.h - amounts of money as whole millionths.
 *
 * The text form is a decimal number without sign and exponent: "5", "0.075".
 * Nothing is ever rounded: an amount with more than six digits after the point
 * is refused. There is no floating point. */
#ifndef MO_CODEC_MONEY_H
#define MO_CODEC_MONEY_H

#include "base/str.h"

#define MO_MONEY_ONE 1000000
#define MO_MONEY_MAX ((int64_t)1000000000 * MO_MONEY_ONE)

/* 0, or MO_EINVAL: not of that form, or above MO_MONEY_MAX. */
int mo_money_read(struct mo_span s, int64_t *out);
/* "5", "0.075"; negative amounts have a minus. */
void mo_money_put(struct mo_buf *b, int64_t amount);

#endif
