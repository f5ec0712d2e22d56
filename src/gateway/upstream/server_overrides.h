/* server_overrides.h - how a server and its tools are to be treated.
 *
 * What the configuration says beyond what makes a server what it is: who
 * stands in for it, how often a call may be repeated, and for single tools
 * other names, other words, other limits. None of it restarts a server: a
 * reload makes a new one of these and throws the old one away.
 *
 * Texts are copied. Looking up a tool never fails: who is not named is treated
 * as its server has it. */
#ifndef MO_GATEWAY_UPSTREAM_SERVER_OVERRIDES_H
#define MO_GATEWAY_UPSTREAM_SERVER_OVERRIDES_H

#include "base/map.h"
#include "gateway/gateway.h"

#define OVERRIDES_TEXT_MAX ((size_t)4 * 1024 * 1024) /* of one server */

struct server_overrides;

/* NULL: out of memory. */
struct server_overrides *mo_overrides_new(const struct mo_gw_server *s);
void mo_overrides_free(struct server_overrides *m); /* NULL is fine */

/* By the server's own name for it. Never NULL, also without a manner. */
const struct mo_gw_tool *mo_overrides_tool(const struct server_overrides *m,
                                           struct mo_span own);
/* The i-th that stands in for that tool; false: there are no more. *own is
 * its name there. */
bool mo_overrides_fallback(const struct server_overrides *m,
                           struct mo_span tool, size_t i,
                           struct mo_span *server, struct mo_span *own);
/* How often a call of it may be repeated. */
unsigned mo_overrides_retries(const struct server_overrides *m,
                              struct mo_span tool);
/* Bytes of its results that a client gets; 0: all; the third is the usual. */
size_t mo_overrides_result_bytes(const struct server_overrides *m,
                                 struct mo_span tool, size_t usual);
/* Has any of its tools a limit that was asked for? */
bool mo_overrides_has_limit(const struct server_overrides *m);

#endif
