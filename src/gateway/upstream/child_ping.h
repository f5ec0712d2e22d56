/* pulse.h - does a child still live that let a call wait in vain?
 *
 * A call without a sign of life may be slow, or its server hangs. So it is
 * asked for something that costs nothing; who does not answer that either is
 * given up, and the next call starts another. */
#ifndef MO_GATEWAY_UPSTREAM_CHILD_PING_H
#define MO_GATEWAY_UPSTREAM_CHILD_PING_H

#include "gateway/upstream/upstream.h"

#define MO_CHILD_PING_MS 3000

/* Takes its own time; the child is held meanwhile. */
void mo_child_ping(struct mo_child *c);

#endif
