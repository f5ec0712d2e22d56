/* server_overrides.h - configured overrides of a server and its tools.
 *
 * Fallback servers, retries, and for single tools another name, description
 * or limit. No change of these restarts a server: a reload makes a new
 * struct server_overrides and frees the old one.
 *
 * Texts are copied. Looking up a tool never fails: tools without an entry use
 * the server's settings. */
#ifndef MO_GATEWAY_UPSTREAM_SERVER_OVERRIDES_H
#define MO_GATEWAY_UPSTREAM_SERVER_OVERRIDES_H

#include "base/map.h"
#include "gateway/upstream/server.h"

#define OVERRIDES_TEXT_MAX ((size_t)4 * 1024 * 1024) /* of one server */

struct server_overrides;

/* NULL: out of memory. */
struct server_overrides *mo_overrides_new(const struct mo_gw_server *s);
void mo_overrides_free(struct server_overrides *m); /* may be NULL */

/* The overrides of a tool, by the server's name for it. Never NULL, also if m
 * is NULL. */
const struct mo_gw_tool *mo_overrides_tool(const struct server_overrides *m,
                                           struct mo_span own);
/* The i-th fallback of a tool: the server and the tool's name there. False:
 * there are no more. */
bool mo_overrides_fallback(const struct server_overrides *m,
                           struct mo_span tool, size_t i,
                           struct mo_span *server, struct mo_span *own);
/* How often a call of the tool may be repeated. */
unsigned mo_overrides_retries(const struct server_overrides *m,
                              struct mo_span tool);
/* Most bytes of its results that a client gets; 0: no limit. usual: the value
 * if neither the tool nor the server sets one. */
size_t mo_overrides_result_bytes(const struct server_overrides *m,
                                 struct mo_span tool, size_t usual);
/* True if the server or any of its tools has a configured result limit. */
bool mo_overrides_has_limit(const struct server_overrides *m);

#endif
