/* others.h - which other processes serve the store, and where they take HTTP
 * requests of each other (web/relay.h).
 *
 * Their socket is beside the one for conversations (address.c): NAME.http for
 * NAME.peer. found() is called once, later. */
#ifndef MO_PEER_OTHERS_H
#define MO_PEER_OTHERS_H

#include <sys/un.h>

#include "peer/peer.h"
#include "session/instance.h"

#define MO_OTHERS_MAX   64 /* of one list */
#define MO_OTHER_SUFFIX ".http"

struct mo_other {
    char instance[MO_INSTANCE_MAX];
    char path[sizeof(((struct sockaddr_un *)NULL)->sun_path)];
    bool is_near; /* on this machine; else its path means nothing here */
};

/* No error and n 0: it has no address. It may be dead, or about to end. */
typedef void mo_others_fn(void *ctx, const struct mo_other *v, size_t n,
                          const struct mo_err *why);

int mo_others_find(struct mo_peers *p, const char *instance,
                   mo_others_fn *found, void *ctx, struct mo_err *e);
/* All on this machine but this process, perhaps also some that have died. */
int mo_others_list(struct mo_peers *p, mo_others_fn *found, void *ctx,
                   struct mo_err *e);

#endif
