/* local.h - calls of the last minute and holders, counted in this process.
 *
 * Used when no Redis counts them for all replicas. Calls are counted by second;
 * a call is let through if the last 61 seconds, the current one included, had
 * fewer than the limit. So no 60 seconds ever have more, wherever they begin,
 * and a call may wait up to a second longer than strictly needed. The clock is
 * the monotonic one.
 *
 * Limits: MO_LOCAL_NAMES names at a time. If there are more with calls in the
 * last minute, further ones share one count. */
#ifndef MO_BUDGET_LOCAL_H
#define MO_BUDGET_LOCAL_H

#include "base/list.h"
#include "base/map.h"

#define MO_LOCAL_NAMES   4096
#define MO_LOCAL_SECONDS 61

struct mo_local_window {
    uint64_t last;                     /* second of the newest count */
    uint32_t counts[MO_LOCAL_SECONDS]; /* by second modulo */
    uint64_t sum;
};

struct mo_local {
    struct mo_map windows; /* name -> struct mo_local_window * */
    struct mo_local_window others;
    struct mo_list holds; /* struct mo_hold_row */
};

struct mo_hold_row {
    struct mo_list node;
    char *name, *holder;
    uint64_t until; /* ns; 0: until it is released */
};

void mo_local_init(struct mo_local *l);
void mo_local_fini(struct mo_local *l);

/* True if one more call fits; else *wait_ms. Counts nothing. now: ns. */
bool mo_local_has_room(struct mo_local *l, struct mo_span name, uint64_t limit,
                       uint64_t now, uint64_t *wait_ms);
/* The same for one window, which is rolled to the present second. */
void mo_local_roll(struct mo_local_window *w, uint64_t second);
bool mo_local_fits(const struct mo_local_window *w, uint64_t limit,
                   uint64_t now, uint64_t *wait_ms);
void mo_local_add(struct mo_local_window *w, uint64_t now);
void mo_local_count(struct mo_local *l, struct mo_span name, uint64_t now);

/* NULL: out of memory. It is not held before mo_local_hold(). */
struct mo_hold_row *mo_hold_row_new(struct mo_span name, struct mo_span holder);
void mo_hold_row_free(struct mo_hold_row *h); /* may be NULL */
void mo_local_hold(struct mo_local *l, struct mo_hold_row *h);
/* True if it is held; from now on until it is released. */
bool mo_local_hold_on(const struct mo_local *l, struct mo_span name,
                      struct mo_span holder);
struct mo_hold_row *mo_local_held(const struct mo_local *l, struct mo_span name,
                                  struct mo_span holder); /* or NULL */
/* Releases those whose time is over. */
void mo_local_expire(struct mo_local *l, uint64_t now);
uint64_t mo_local_holders(const struct mo_local *l, struct mo_span name);

#endif
