/* pool.h - a free list of equally sized blocks.
 *
 * For objects that are allocated and freed with every request. Up to
 * MO_POOL_MAX freed blocks are kept and reused without search or lock. A zeroed
 * pool is empty and valid. A pool holds blocks of one type only and belongs to
 * one thread.
 *
 * AddressSanitizer builds keep none, so that use after free is detected and
 * every allocation can be made to fail. */
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
void mo_pool_fini(struct mo_pool *p);               /* frees the kept blocks */

#endif
