/* peers.h - how many connections each address has.
 *
 * A peer is an IPv4 address, or the first half of an IPv6 address: a single
 * host usually has all addresses of a /64. Peers of unix sockets are not
 * counted; they are local and few.
 *
 * Ownership: a peer lives while something has joined it. Limit: one peer for
 * each connection, so the map is as large as the number of connections. No
 * memory: the connection is not counted. */
#ifndef MO_LOOP_PEERS_H
#define MO_LOOP_PEERS_H

#include "base/map.h"

struct mo_peer {
    unsigned char key[8];
    size_t len;
    unsigned n; /* joined */
};

void mo_peers_init(struct mo_map *peers);
void mo_peers_fini(struct mo_map *peers); /* nobody is joined any more */

/* Count one more for "ADDRESS:PORT"; NULL: it is not counted. */
struct mo_peer *mo_peers_join(struct mo_map *peers, const char *peer);
void mo_peers_leave(struct mo_map *peers, struct mo_peer *p); /* NULL is fine */

#endif
