/* router_index.h - search index over the tools of all servers.
 *
 * The index (src/route) follows the catalogue: after a change
 * mo_router_index_stale() is called, and the next query updates it. Only
 * servers whose tools or description have changed are read again. */
#ifndef MO_GATEWAY_ROUTER_ROUTER_INDEX_H
#define MO_GATEWAY_ROUTER_ROUTER_INDEX_H

#include "gateway/state/state.h"
#include "route/route.h"

struct router_index;

/* Another index that borrows the vectors of `of`, which must outlive it. all:
 * over all servers and tools, also those that are not offered; a server whose
 * lists are unknown is indexed as one tool with the server's name. */
struct router_index *mo_router_index_new_like(struct router_index *of,
                                              bool all);

/* The same over skills instead of tools: the hits have names of skills, and
 * nothing is learnt about them. */
struct router_index *mo_router_index_new_skills(struct router_index *of);

/* table, pieces: bytes of the vectors, borrowed, or empty. They are not read
 * before the first query. NULL: out of memory. */
struct router_index *mo_router_index_new(struct mo_span table,
                                         struct mo_span pieces);
void mo_router_index_free(struct router_index *d); /* may be NULL */
/* The vectors that it uses; NULL: none. */
const struct mo_vectors *mo_router_index_vectors(struct router_index *d);
void mo_router_index_stale(struct router_index *d);

/* Finds the best tools of the catalogue that this index follows. 0 or
 * MO_ENOMEM. The hits have configured server names and given tool names,
 * borrowed until the next query. */
int mo_router_index_find(struct router_index *d, const struct mo_gateway *g,
                         const struct mo_catalog *cat, struct mo_span words,
                         size_t limit, struct mo_route_answer *out);
/* The same for the tools of a view, by an index of its own. */
int mo_router_view_find(struct mo_gw_view *v, struct mo_span words,
                        size_t limit, struct mo_route_answer *out);
/* The same for its skills. */
int mo_router_skills_find(struct mo_gw_view *v, struct mo_span words,
                          size_t limit, struct mo_route_answer *out);

#endif
