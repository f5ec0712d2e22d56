/* lock.h - a lock in memory that several processes share.
 *
 * For tables that the workers of one server keep together. It is held for a few
 * steps at a time, never over I/O. If its holder dies, the next one is told so
 * and repairs the table; nobody waits for the dead. */
#ifndef MO_BASE_LOCK_H
#define MO_BASE_LOCK_H

#include <pthread.h>
#include <stdbool.h>

#include "base/err.h"

struct mo_lock {
    pthread_mutex_t mutex;
};

/* Before the processes are forked; the memory is mapped shared. */
int mo_lock_init(struct mo_lock *l, struct mo_err *e);
/* False: the last holder died inside, so the table may be half-written. The
 * lock is held either way. */
bool mo_lock_take(struct mo_lock *l);
void mo_lock_drop(struct mo_lock *l);

#endif
