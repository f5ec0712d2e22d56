/* link_inside.h - a link to an endpoint of this same program.
 *
 * A message is copied once, in either direction, and delivered from the loop.
 * Otherwise the link is a legacy session like any other, with its own way for
 * every request, as over HTTP: so the request that a question or log message
 * belongs to is always known.
 *
 * mo_ep_call.inside of its calls is the text given here, which no outside
 * client can have. Trust it as far as this program.
 *
 * Ownership: the endpoint is borrowed until on_close. Limit: MO_INSIDE_QUEUE
 * bytes wait to be delivered; sending more returns MO_EBUSY, and an endpoint
 * that sends more ends the link. */
#ifndef MO_MCP_SERVER_LINK_INSIDE_H
#define MO_MCP_SERVER_LINK_INSIDE_H

#include "mcp/link/link.h"
#include "mcp/server/endpoint.h"

#define MO_INSIDE_QUEUE   ((size_t)128 * 1024 * 1024)
#define MO_INSIDE_WHO_MAX 192

/* who: 1 to MO_INSIDE_WHO_MAX bytes. person: whose credentials its calls use
 * (mo_ep_call.person), at most as long; "": the operator's. */
int mo_link_inside(struct mo_loop *l, struct mo_endpoint *ep,
                   struct mo_span who, struct mo_span person,
                   struct mo_link **out, struct mo_err *e);
/* The mo_ep_call.peer of its calls. */
uint64_t mo_link_inside_peer(const struct mo_link *k);

#endif
