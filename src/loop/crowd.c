#include "loop/crowd.h"

#include "base/map.h"
#include "base/rand.h"

void mo_crowd_init(struct mo_crowd *c)
{
    c->k0 = mo_random_u64();
    c->k1 = mo_random_u64();
}

void mo_crowd_clear(struct mo_crowd *c, unsigned which)
{
    struct mo_crowd_part *p = &c->v[which];

    atomic_store(&p->open, 0);
    for (size_t row = 0; row < MO_COUNT(p->peers); row++)
        for (size_t i = 0; i < MO_CROWD_SLOTS; i++)
            atomic_store(&p->peers[row][i], 0);
}

/* --- all connections ------------------------------------------------------ */

unsigned mo_crowd_open(const struct mo_crowd_place *p)
{
    unsigned n = 0;

    for (unsigned i = 0; i < p->count; i++)
        n += atomic_load(&p->all->v[i].open);
    return n;
}

/* First counted, then compared: two processes at once may both be refused, but
 * never both be let in to the last place. */
bool mo_crowd_enter(const struct mo_crowd_place *p, unsigned limit)
{
    (void)atomic_fetch_add(&p->all->v[p->me].open, 1);
    if (mo_crowd_open(p) <= limit)
        return true;
    mo_crowd_leave(p);
    return false;
}

void mo_crowd_leave(const struct mo_crowd_place *p)
{
    (void)atomic_fetch_sub(&p->all->v[p->me].open, 1);
}

/* --- of one peer ---------------------------------------------------------- */

static void slots_of(const struct mo_crowd *c, struct mo_span peer,
                     size_t out[2])
{
    uint64_t h = mo_siphash(c->k0, c->k1, peer);

    out[0] = h % MO_CROWD_SLOTS;
    out[1] = (h >> 32) % MO_CROWD_SLOTS;
}

void mo_crowd_peer(const struct mo_crowd_place *p, struct mo_span peer, int add)
{
    size_t at[2];

    slots_of(p->all, peer, at);
    for (size_t row = 0; row < MO_COUNT(at); row++)
        (void)atomic_fetch_add(&p->all->v[p->me].peers[row][at[row]],
                               (unsigned)add);
}

unsigned mo_crowd_others(const struct mo_crowd_place *p, struct mo_span peer)
{
    unsigned sum = 0;
    size_t at[2];

    slots_of(p->all, peer, at);
    for (unsigned i = 0; i < p->count; i++) {
        unsigned a = atomic_load(&p->all->v[i].peers[0][at[0]]);
        unsigned b = atomic_load(&p->all->v[i].peers[1][at[1]]);

        if (i != p->me)
            sum += a < b ? a : b;
    }
    return sum;
}
