/* shared.h - calls of the last minute and holders, counted by several processes
 * together: the workers of one server, when no Redis counts them.
 *
 * The table is in memory that the processes share, behind one lock. A question
 * and its count are one step under the lock, so no limit is passed, however
 * many ask at once. The holders of a process that has died are released before
 * its successor starts; calls stay counted for their minute.
 *
 * Limits: MO_SHARED_NAMES names with calls in the last minute; further ones
 * share one count. MO_SHARED_HOLDS holders; further ones are refused. */
#ifndef MO_BUDGET_SHARED_H
#define MO_BUDGET_SHARED_H

#include "base/lock.h"
#include "budget/local.h"
#include "store/store.h"

#define MO_SHARED_NAMES      4096
#define MO_SHARED_HOLDS      4096
#define MO_SHARED_HOLDER_MAX ((size_t)160)

struct mo_shared_hold {
    unsigned owner; /* number of the process */
    uint64_t until; /* ns; 0: until it is released */
    char name[MO_COUNTER_NAME_MAX + 1];
    char holder[MO_SHARED_HOLDER_MAX + 1];
};

struct mo_budget_shared {
    struct mo_lock lock;
    uint64_t k0, k1;
    struct mo_shared_window {
        char name[MO_COUNTER_NAME_MAX + 1]; /* "": free */
        struct mo_local_window w;
    } windows[MO_SHARED_NAMES];
    struct mo_local_window others;
    size_t nholds;
    struct mo_shared_hold holds[MO_SHARED_HOLDS];
};

/* The memory is zero. */
int mo_budget_shared_init(struct mo_budget_shared *s, struct mo_err *e);
/* Releases what a dead process holds. */
void mo_budget_shared_clear(struct mo_budget_shared *s, unsigned owner);

/* One thing to count: a call, or (with a holder) something held. */
struct mo_shared_want {
    struct mo_span name, holder; /* holder.p NULL: a call */
    uint64_t limit;
};

/* Counts all of them, or none: then the place of the first one that has no room
 * is in *which, and *wait_ms says when to ask again; 0: not known. MO_EBUSY:
 * refused. MO_ENOMEM: the table is full. now: ns. */
int mo_budget_shared_count(struct mo_budget_shared *s, unsigned owner,
                           const struct mo_shared_want *v, size_t n,
                           uint64_t now, size_t *which, uint64_t *wait_ms);
/* Also for what is not held. */
void mo_budget_shared_release(struct mo_budget_shared *s, struct mo_span name,
                              struct mo_span holder);
/* until: ns; holding it again undoes this. */
void mo_budget_shared_release_at(struct mo_budget_shared *s,
                                 struct mo_span name, struct mo_span holder,
                                 uint64_t until);

#endif
