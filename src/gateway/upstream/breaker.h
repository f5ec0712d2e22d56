/* breaker.h - the pauses of a server that fails: the circuit breaker stops
 * calls to a server that keeps failing, the backoff delays its next start.
 *
 *            faults                    pause over, next call
 *   CLOSED ----------> OPEN ---------------------------------> HALF
 *     ^                 ^                                      |  |
 *     |                 +-------------- a fault ---------------+  |
 *     +------------------------ a good call ----------------------+
 *
 * It opens after MO_BREAKER_ROW faults in a row, or when more than
 * MO_BREAKER_SHARE percent of at least MO_BREAKER_MIN calls within
 * MO_BREAKER_WINDOW_MS were faults. The pause is MO_BREAKER_MS and doubles
 * with every failed trial, up to MO_BREAKER_MOST_MS.
 *
 * Half open, it lets one trial call through. If no outcome of the trial is
 * reported, another call is let through after one more pause, so that a lost
 * trial cannot keep a server out forever. While half open, the end of any call
 * counts, also of one that began earlier.
 *
 * Backoff: each failed start in a row doubles the pause, from MO_BACKOFF_MS up
 * to MO_BACKOFF_MOST_MS. A random part of it is left out, so that servers that
 * failed for one reason are not retried all at once. A success resets it.
 *
 * The caller passes in the clock and the random number: now is ms of any
 * monotonic clock. */
#ifndef MO_GATEWAY_UPSTREAM_BREAKER_H
#define MO_GATEWAY_UPSTREAM_BREAKER_H

#include <stdbool.h>
#include <stdint.h>

#define MO_BREAKER_ROW       5
#define MO_BREAKER_MIN       20
#define MO_BREAKER_SHARE     50 /* percent */
#define MO_BREAKER_WINDOW_MS 30000
#define MO_BREAKER_SLICES    10 /* steps in which the window moves */
#define MO_BREAKER_MS        5000
#define MO_BREAKER_MOST_MS   60000

enum mo_breaker_state {
    MO_BREAKER_CLOSED,
    MO_BREAKER_OPEN,
    MO_BREAKER_HALF,
    MO_BREAKER_STATES,
};

struct mo_breaker { /* zeroed: closed, no history */
    enum mo_breaker_state state;
    unsigned row;   /* faults since the last good call */
    unsigned opens; /* times it opened since it was last closed */
    uint64_t until; /* OPEN: end of the pause; HALF: end of the trial's wait */
    bool trial;     /* HALF: a trial is under way */
    struct {
        uint64_t slice; /* number of this slice since time 0 */
        uint32_t good, bad;
    } seen[MO_BREAKER_SLICES];
};

/* True if a call may be made. When half open, that call is the trial. */
bool mo_breaker_allow(struct mo_breaker *b, uint64_t now);
/* The trial was not made; the next call may be the trial. */
void mo_breaker_cancel_trial(struct mo_breaker *b);
/* Reports the end of a call. True if this call opened the breaker. */
bool mo_breaker_report(struct mo_breaker *b, uint64_t now, bool fault);
void mo_breaker_reset(struct mo_breaker *b);

/* Time in ms until a call may be made; 0: now. */
uint64_t mo_breaker_wait(const struct mo_breaker *b, uint64_t now);
const char *mo_breaker_name(enum mo_breaker_state s);

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
