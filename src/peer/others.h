/* others.h - which other processes serve the store, and where they take HTTP
 * requests of each other (web/relay.h).
 *
 * Their socket is beside the one for conversations (address.c): NAME.http for
 * NAME.peer. Those on other machines have their port for all (cluster.h).
 * found() is called once, later. */
#ifndef MO_PEER_OTHERS_H
#define MO_PEER_OTHERS_H

#include "peer/cluster.h"
#include "peer/peer.h"
#include "session/instance.h"

#define MO_OTHERS_MAX   64 /* of one list */
#define MO_OTHER_SUFFIX ".http"

struct mo_other {
    char instance[MO_INSTANCE_MAX];
    /* "/PATH" of a socket, or "NAME@HOST:PORT" on another machine; "": it
     * cannot be reached. */
    char path[MO_INSTANCE_MAX + 1 + MO_CLUSTER_ADDRESS_MAX];
};

/* No error and n 0: it has no address. It may be dead, or about to end. */
typedef void mo_others_fn(void *ctx, const struct mo_other *v, size_t n,
                          const struct mo_err *why);

int mo_others_find(struct mo_peers *p, const char *instance,
                   mo_others_fn *found, void *ctx, struct mo_err *e);
/* All that can be reached but this process, perhaps also some that have died.
 */
int mo_others_list(struct mo_peers *p, mo_others_fn *found, void *ctx,
                   struct mo_err *e);

/* For a reader of the store: the versions that the process of an address
 * document speaks. False: we have none of them in common. */
bool mo_other_speaks(struct mo_span doc, uint64_t versions[2]);

#endif
