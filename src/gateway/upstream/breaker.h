/* breaker.h - a circuit breaker: calls to a server that fails are not made.
 *
 *            faults                    pause over, somebody asks
 *   CLOSED ----------> OPEN ---------------------------------> HALF
 *     ^                 ^                                      |  |
 *     |                 +-------------- a fault ---------------+  |
 *     +------------------------ a good call ----------------------+
 *
 * It opens after MO_BREAKER_ROW faults in a row, or when of at least
 * MO_BREAKER_MIN calls within MO_BREAKER_WINDOW_MS more than MO_BREAKER_SHARE
 * percent were faults. The pause is MO_BREAKER_MS, doubled with every trial
 * that fails up to MO_BREAKER_MOST_MS.
 *
 * Half open, one call is let through. If nothing is heard of it, another one
 * is let through after one more pause: a trial that is forgotten must not
 * keep a server out for ever. Any call that ends while it is half open is
 * evidence, also one that began earlier.
 *
 * No clock of its own: now is ms of any clock that never goes back. */
#ifndef MO_GATEWAY_UPSTREAM_BREAKER_H
#define MO_GATEWAY_UPSTREAM_BREAKER_H

#include <stdbool.h>
#include <stdint.h>

#define MO_BREAKER_ROW       5
#define MO_BREAKER_MIN       20
#define MO_BREAKER_SHARE     50 /* percent */
#define MO_BREAKER_WINDOW_MS 30000
#define MO_BREAKER_SLICES    10 /* the window moves in so many steps */
#define MO_BREAKER_MS        5000
#define MO_BREAKER_MOST_MS   60000

enum mo_breaker_state {
    MO_BREAKER_CLOSED,
    MO_BREAKER_OPEN,
    MO_BREAKER_HALF,
    MO_BREAKER_STATES,
};

struct mo_breaker { /* zeroed: closed, nothing known */
    enum mo_breaker_state state;
    unsigned row;   /* faults since the last good call */
    unsigned opens; /* in a row: how often it opened without closing */
    uint64_t until; /* OPEN: of the pause; HALF: of waiting for the trial */
    bool trial;     /* HALF: one is under way */
    struct {
        uint64_t slice; /* which one this is, counted since time began */
        uint32_t good, bad;
    } seen[MO_BREAKER_SLICES];
};

/* May a call be made? True half open: this is the trial. */
bool mo_breaker_allow(struct mo_breaker *b, uint64_t now);
/* The trial was not made after all. */
void mo_breaker_cancel_trial(struct mo_breaker *b);
/* How a call went. True: it is open because of this. */
bool mo_breaker_report(struct mo_breaker *b, uint64_t now, bool fault);
void mo_breaker_reset(struct mo_breaker *b);

/* ms until a call may be made; 0: now. */
uint64_t mo_breaker_wait(const struct mo_breaker *b, uint64_t now);
const char *mo_breaker_name(enum mo_breaker_state s);

#endif
