#include "people/logins_ended.h"

#include <stdio.h>

int mo_logins_ended_init(struct mo_logins_ended *t, struct mo_err *e)
{
    return mo_lock_init(&t->lock, e);
}

/* A row counts when its time is written, which is last: one of a process that
 * died before is overwritten in its turn. */
void mo_logins_ended_add(struct mo_logins_ended *t, const char *digest,
                         const char *who, uint64_t now_ms)
{
    struct mo_login_ended *x;

    (void)mo_lock_take(&t->lock);
    x = &t->v[t->next++ % MO_LOGINS_ENDED];
    x->at_ms = 0;
    (void)snprintf(x->digest, sizeof(x->digest), "%s", digest);
    (void)snprintf(x->who, sizeof(x->who), "%s", who);
    x->at_ms = now_ms;
    (void)atomic_fetch_add(&t->changes, 1);
    mo_lock_drop(&t->lock);
}

static bool is_meant(const struct mo_login_ended *x, const char *digest,
                     const char *who, uint64_t began_ms)
{
    if (x->digest[0])
        return strcmp(x->digest, digest) == 0;
    return strcmp(x->who, who) == 0 && began_ms <= x->at_ms;
}

bool mo_logins_ended_has(struct mo_logins_ended *t, const char *digest,
                         const char *who, uint64_t began_ms, uint64_t now_ms)
{
    bool is_ended = false;

    (void)mo_lock_take(&t->lock);
    for (size_t i = 0; i < MO_LOGINS_ENDED && !is_ended; i++)
        is_ended = t->v[i].at_ms + MO_LOGINS_ENDED_MS >= now_ms &&
                   is_meant(&t->v[i], digest, who, began_ms);
    mo_lock_drop(&t->lock);
    return is_ended;
}
