/* router_index.h - the router over what all servers offer.
 *
 * The index of src/route follows the catalogue: whoever changes that says
 * guide_stale(), and the next question brings it up to date. Only servers
 * whose tools or description have changed are read again. */
#ifndef MO_GATEWAY_ROUTER_ROUTER_INDEX_H
#define MO_GATEWAY_ROUTER_ROUTER_INDEX_H

#include "gateway/gw_priv.h"
#include "route/route.h"

struct guide;

/* One more, over all servers and tools, also those that are not offered; it
 * borrows the vectors of the first. A server that was never read is in it as
 * a tool of its own name. */
struct guide *guide_new_all(struct guide *of);

/* The bytes of its vectors, borrowed, or empty. Nothing is read before the
 * first question. NULL: no memory. */
struct guide *guide_new(struct mo_span table, struct mo_span pieces);
void guide_free(struct guide *d); /* NULL is fine */
void guide_stale(struct guide *d);

/* The best tools for that. 0 or MO_ENOMEM; hits are the servers' configured
 * names and the tools' own, borrowed until the next question. */
int guide_find(struct guide *d, const struct mo_gateway *g,
               struct mo_span words, size_t limit, struct mo_route_answer *out);

#endif
