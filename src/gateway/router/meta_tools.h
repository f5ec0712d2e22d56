/* meta_tools.h - four tools instead of hundreds.
 *
 *   find_tool          which tool is meant by these words
 *   execute            run one: named, or meant by words
 *   list_capabilities  what there is, server by server
 *   explain_tool       all about one
 *
 * execute really executes: its target is found, its params are held against
 * the tool's schema, then it crosses as any call does
 * (gateway/call/forwarded_call.h) and its result comes back as it is, but for a
 * _meta that says where it went. Unsure is not done: the answer then names the
 * candidates with their schemas. */
#ifndef MO_GATEWAY_ROUTER_META_TOOLS_H
#define MO_GATEWAY_ROUTER_META_TOOLS_H

#include "gateway/call/rewrite.h"

#define META_TOOLS_FEW                                                         \
    25 /* tools; with MO_GW_AUTO more than that are hidden                     \
        */

/* Do clients see the four? */
bool mo_meta_tools_is_on(const struct mo_gateway *g);
/* Is it a call of one of them? */
bool mo_meta_tools_is_call(const struct mo_gateway *g,
                           const struct mo_ep_call *c);
/* Is it a call of execute? */
bool mo_meta_tools_is_execute(const struct mo_gateway *g,
                              const struct mo_ep_call *c);

/* How many tools are few. */
unsigned mo_meta_tools_few(const struct mo_gateway *g);
/* {"tools":[...]} */
struct mo_span mo_meta_tools_definitions(void);
void mo_meta_tools_list(struct mo_ep_call *c);
/* Answers it, or starts a flight. */
void mo_meta_tools_call(struct mo_gateway *g, struct mo_ep_call *c);

/* What execute is about, as mo_rewrite_target(). */
int mo_meta_tools_target(struct mo_gateway *g, const struct mo_ep_call *c,
                         struct call_target *t);
/* Where it goes, as members: what its result will say of it. */
void mo_meta_tools_put_route(struct mo_jw *w, const struct call_target *t);
/* The result of its flight. */
void mo_meta_tools_result(struct mo_ep_call *c, struct mo_json result,
                          struct mo_span route);

#endif
