/* child_ping.h - checks whether a child still answers after a call timed out.
 *
 * A call without progress may be slow, or its server may hang. mo_child_ping()
 * sends a cheap request ("ping", or "server/discover" to a modern server). A
 * child that does not answer within MO_CHILD_PING_MS is closed; the next call
 * starts another one. */
#ifndef MO_GATEWAY_UPSTREAM_CHILD_PING_H
#define MO_GATEWAY_UPSTREAM_CHILD_PING_H

#include "gateway/upstream/upstream.h"

#define MO_CHILD_PING_MS 3000

/* Asynchronous; holds the child until the answer or the timeout. */
void mo_child_ping(struct mo_child *c);

#endif
