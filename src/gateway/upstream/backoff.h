/* backoff.h - how long to leave alone what could not be started.
 *
 * Each failure in a row doubles the pause, from MO_BACKOFF_MS up to
 * MO_BACKOFF_MOST_MS; a part of it is left to chance, so that many who were
 * hurt by one cause do not come back at once. A success forgets all.
 *
 * No clock and no dice of its own: both are passed in. Times are ms of any
 * clock that never goes back. */
#ifndef MO_GATEWAY_UPSTREAM_BACKOFF_H
#define MO_GATEWAY_UPSTREAM_BACKOFF_H

#include <stdint.h>

#define MO_BACKOFF_MS      1000
#define MO_BACKOFF_MOST_MS 60000

struct mo_backoff { /* zeroed: never failed */
    unsigned fails; /* in a row */
    uint64_t until; /* not tried before */
};

/* The pause is between half and all of what the row asks for; dice: any
 * number. */
void mo_backoff_failed(struct mo_backoff *b, uint64_t now, uint64_t dice);
/* A failure that no pause mends: so long, and it does not count. */
void mo_backoff_pause(struct mo_backoff *b, uint64_t now, uint64_t ms);
void mo_backoff_reset(struct mo_backoff *b);

/* ms until it may be tried; 0: now. */
uint64_t mo_backoff_wait(const struct mo_backoff *b, uint64_t now);

#endif
