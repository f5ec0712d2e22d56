#include "base/pool.h"

#include <string.h>

#include "base/build.h"

#ifdef MO_BUILD_SANITIZED
#    define KEPT 0
#else
#    define KEPT MO_POOL_MAX
#endif

/* A kept block starts with the address of the next one. */
static void *pop_block(struct mo_pool *p)
{
    void *piece = p->first;

    memcpy(&p->first, piece, sizeof(p->first));
    p->n--;
    return piece;
}

void *mo_pool_take(struct mo_pool *p, size_t size)
{
    void *piece;

    MO_BUG_ON(size < sizeof(p->first));
    if (!p->first)
        return mo_zalloc(size);
    piece = pop_block(p);
    memset(piece, 0, size);
    return piece;
}

void mo_pool_give(struct mo_pool *p, void *piece)
{
    if (!piece || p->n + 1 > KEPT) {
        mo_free(piece);
        return;
    }
    memcpy(piece, &p->first, sizeof(p->first));
    p->first = piece;
    p->n++;
}

void mo_pool_fini(struct mo_pool *p)
{
    while (p->first)
        mo_free(pop_block(p));
}
