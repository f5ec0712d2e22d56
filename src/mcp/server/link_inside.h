/* link_inside.h - a link to an endpoint of this very program.
 *
 * No bytes leave: a message is copied once, in either direction, and delivered
 * from the loop. Beside that it is a legacy session like any other, with a way
 * of its own for every request, as over HTTP: so it is always known to which
 * request a question or a log message belongs.
 *
 * What comes by it says so: mo_ep_call.inside is the text given here, which no
 * client outside can have. Trust it as far as you trust this program.
 *
 * Ownership: the endpoint is borrowed until on_close. Limit: MO_INSIDE_QUEUE
 * bytes wait to be delivered; who sends more hears MO_EBUSY, and an endpoint
 * that says more ends the link. */
#ifndef MO_MCP_SERVER_LINK_INSIDE_H
#define MO_MCP_SERVER_LINK_INSIDE_H

#include "mcp/link/link.h"
#include "mcp/server/endpoint.h"

#define MO_INSIDE_QUEUE   ((size_t)128 * 1024 * 1024)
#define MO_INSIDE_WHO_MAX 192

/* who: 1 to MO_INSIDE_WHO_MAX bytes. */
int mo_link_inside(struct mo_loop *l, struct mo_endpoint *ep,
                   struct mo_span who, struct mo_link **out, struct mo_err *e);
/* The mo_ep_call.peer of all that comes by it. */
uint64_t mo_link_inside_peer(const struct mo_link *k);

#endif
