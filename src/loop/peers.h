/* peers.h - how many connections each address has.
 *
 * A peer is an IPv4 address, or the first half of an IPv6 address: a single
 * host usually has all addresses of a /64. Peers of unix sockets are not
 * counted; they are local and few.
 *
 * Ownership: a peer lives while something has joined it, and the table as long
 * as its peers. Limit: one peer for each connection, so the table is as large
 * as the number of connections. No memory: the connection is not counted. */
#ifndef MO_LOOP_PEERS_H
#define MO_LOOP_PEERS_H

#include "base/map.h"
#include "loop/crowd.h"

struct mo_peers;

struct mo_peer {
    struct mo_peers *table;
    unsigned char key[8];
    size_t len;
    unsigned n; /* joined, in this process */
};

/* NULL: no memory. crowd: where to count for other processes; or NULL. */
struct mo_peers *mo_peers_new(const struct mo_crowd_place *crowd);
void mo_peers_free(struct mo_peers *t);

/* Count one more for "ADDRESS:PORT"; NULL: it is not counted. */
struct mo_peer *mo_peers_join(struct mo_peers *t, const char *peer);
void mo_peers_leave(struct mo_peer *p); /* NULL is fine */
/* In all processes. */
unsigned mo_peers_count(const struct mo_peer *p);

#endif
