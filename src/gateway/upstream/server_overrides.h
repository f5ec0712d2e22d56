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

#define MANNER_TEXT_MAX ((size_t)4 * 1024 * 1024) /* of one server */

struct manner;

/* NULL: out of memory. */
struct manner *manner_new(const struct mo_gw_server *s);
void manner_free(struct manner *m); /* NULL is fine */

/* By the server's own name for it. Never NULL, also without a manner. */
const struct mo_gw_tool *manner_tool(const struct manner *m,
                                     struct mo_span own);
/* The i-th that stands in for that tool; false: there are no more. *own is
 * its name there. */
bool manner_fallback(const struct manner *m, struct mo_span tool, size_t i,
                     struct mo_span *server, struct mo_span *own);
/* How often a call of it may be repeated. */
unsigned manner_retries(const struct manner *m, struct mo_span tool);
/* Bytes of its results that a client gets; 0: all; the third is the usual. */
size_t manner_result_bytes(const struct manner *m, struct mo_span tool,
                           size_t usual);
/* Has any of its tools a limit that was asked for? */
bool manner_has_limit(const struct manner *m);

#endif
