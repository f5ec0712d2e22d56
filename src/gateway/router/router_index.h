/* router_index.h - the router over what all servers offer.
 *
 * The index of src/route follows the catalogue: whoever changes that says
 * mo_router_index_stale(), and the next question brings it up to date. Only
 * servers whose tools or description have changed are read again. */
#ifndef MO_GATEWAY_ROUTER_ROUTER_INDEX_H
#define MO_GATEWAY_ROUTER_ROUTER_INDEX_H

#include "gateway/gw_priv.h"
#include "route/route.h"

struct router_index;

/* One more, over all servers and tools, also those that are not offered; it
 * borrows the vectors of the first. A server that was never read is in it as
 * a tool of its own name. */
struct router_index *mo_router_index_new_all(struct router_index *of);

/* The bytes of its vectors, borrowed, or empty. Nothing is read before the
 * first question. NULL: no memory. */
struct router_index *mo_router_index_new(struct mo_span table,
                                         struct mo_span pieces);
void mo_router_index_free(struct router_index *d); /* NULL is fine */
void mo_router_index_stale(struct router_index *d);

/* The best tools for that. 0 or MO_ENOMEM; hits are the servers' configured
 * names and the tools' own, borrowed until the next question. */
int mo_router_index_find(struct router_index *d, const struct mo_gateway *g,
                         struct mo_span words, size_t limit,
                         struct mo_route_answer *out);

#endif
