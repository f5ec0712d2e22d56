#include "base/lock.h"

#include <errno.h>

int mo_lock_init(struct mo_lock *l, struct mo_err *e)
{
    pthread_mutexattr_t attr;
    int rc = pthread_mutexattr_init(&attr);

    if (rc)
        return mo_fail(e, MO_ENOMEM, "lock");
    rc = pthread_mutexattr_setpshared(&attr, PTHREAD_PROCESS_SHARED);
    if (rc == 0)
        rc = pthread_mutexattr_setrobust(&attr, PTHREAD_MUTEX_ROBUST);
    if (rc == 0)
        rc = pthread_mutex_init(&l->mutex, &attr);
    (void)pthread_mutexattr_destroy(&attr);
    if (rc == 0)
        return 0;
    errno = rc;
    return mo_fail_sys(e, "lock");
}

bool mo_lock_take(struct mo_lock *l)
{
    int rc = pthread_mutex_lock(&l->mutex);

    if (rc == EOWNERDEAD)
        (void)pthread_mutex_consistent(&l->mutex);
    MO_BUG_ON(rc != 0 && rc != EOWNERDEAD);
    return rc == 0;
}

void mo_lock_drop(struct mo_lock *l)
{
    (void)pthread_mutex_unlock(&l->mutex);
}
