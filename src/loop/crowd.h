/* crowd.h - connections of several processes that serve one address.
 *
 * Memory that the processes share: how many connections each of them has, in
 * all and of each peer (loop/peers.h), so that limits hold for all together.
 *
 * Each process writes only its own counts, without a lock. The counts of one
 * that has died are cleared before its successor starts.
 *
 * Peers are counted by two keyed hashes; the smaller count is taken. Nobody
 * outside can choose addresses that are counted together, and two addresses are
 * by chance once in 2^24. */
#ifndef MO_LOOP_CROWD_H
#define MO_LOOP_CROWD_H

#include <stdatomic.h>
#include <stdint.h>

#include "base/str.h"

#define MO_CROWD_MAX   64 /* processes */
#define MO_CROWD_SLOTS 4096

struct mo_crowd {
    uint64_t k0, k1;
    struct mo_crowd_part {
        atomic_uint open;
        atomic_uint peers[2][MO_CROWD_SLOTS];
    } v[MO_CROWD_MAX];
};

/* The place of one process; all NULL: there is one process. */
struct mo_crowd_place {
    struct mo_crowd *all;
    unsigned me, count; /* me: from 0 */
};

/* The memory is zero. */
void mo_crowd_init(struct mo_crowd *c);
/* Forgets what a dead process had. */
void mo_crowd_clear(struct mo_crowd *c, unsigned which);

/* Counts a connection; false: all have `limit` already. */
bool mo_crowd_enter(const struct mo_crowd_place *p, unsigned limit);
void mo_crowd_leave(const struct mo_crowd_place *p);
unsigned mo_crowd_open(const struct mo_crowd_place *p);

/* Counts a connection of a peer, or (add < 0) its end. */
void mo_crowd_peer(const struct mo_crowd_place *p, struct mo_span peer,
                   int add);
/* How many connections of a peer the other processes have. */
unsigned mo_crowd_others(const struct mo_crowd_place *p, struct mo_span peer);

#endif
