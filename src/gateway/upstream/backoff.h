/* backoff.h - exponential pause after failed starts.
 *
 * Each failure in a row doubles the pause, from MO_BACKOFF_MS up to
 * MO_BACKOFF_MOST_MS. A random part of it is left out, so that servers that
 * failed for one reason are not retried all at once. A success resets it.
 *
 * The caller passes in the clock and the random number. Times are ms of any
 * monotonic clock. */
#ifndef MO_GATEWAY_UPSTREAM_BACKOFF_H
#define MO_GATEWAY_UPSTREAM_BACKOFF_H

#include <stdint.h>

#define MO_BACKOFF_MS      1000
#define MO_BACKOFF_MOST_MS 60000

struct mo_backoff { /* zeroed: never failed */
    unsigned fails; /* in a row */
    uint64_t until; /* no start before this time */
};

/* Starts a pause between half and all of the current step. random: any
 * number. */
void mo_backoff_failed(struct mo_backoff *b, uint64_t now, uint64_t random);
/* Starts a pause of ms without counting a failure: for failures that waiting
 * does not repair. */
void mo_backoff_pause(struct mo_backoff *b, uint64_t now, uint64_t ms);
void mo_backoff_reset(struct mo_backoff *b);

/* Remaining pause in ms; 0: none. */
uint64_t mo_backoff_wait(const struct mo_backoff *b, uint64_t now);

#endif
