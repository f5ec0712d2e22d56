/* pool.h - pieces of one size that come and go with every request.
 *
 * Those given back are kept, MO_POOL_MAX of them, and cost no search and no
 * lock when they are taken again. A pool of zeroes is an empty one; it holds
 * pieces of one type only. One thread.
 *
 * Builds that look for mistakes (ASan) keep none, so that what is used after it
 * was given back is seen, and every piece can be the one that there is no
 * memory for. */
#ifndef MO_BASE_POOL_H
#define MO_BASE_POOL_H

#include "base/mem.h"

#define MO_POOL_MAX 64

struct mo_pool {
    void *first;
    unsigned n;
};

void *mo_pool_take(struct mo_pool *p, size_t size); /* zeroed; or NULL */
void mo_pool_give(struct mo_pool *p, void *piece);  /* NULL is fine */
void mo_pool_fini(struct mo_pool *p);               /* those that are kept */

#endif
