/* meta_tools.h - the meta-tools: four tools that find and run all others.
 *
 *   find_tool          finds tools that fit a request in plain words
 *   execute            runs a tool that is named or described
 *   list_capabilities  lists servers and their tools
 *   explain_tool       describes one tool
 *
 * execute finds its target, checks params against the tool's schema, and
 * forwards the call like any other (gateway/call/forwarded_call.h). The
 * result is unchanged except for a _meta that says where it came from. If
 * the choice is not clear nothing is run, and the result lists the
 * candidates with their schemas. */
#ifndef MO_GATEWAY_ROUTER_META_TOOLS_H
#define MO_GATEWAY_ROUTER_META_TOOLS_H

#include "gateway/call/rewrite.h"

#define META_TOOLS_FEW 25 /* default of opts.few */

/* True if clients of the view see the meta-tools instead of all tools. */
bool mo_meta_tools_is_on(const struct mo_gw_view *v);
/* True if they are also to write scripts (gateway/script/script.h). */
bool mo_meta_tools_is_code(const struct mo_gw_view *v);
/* True if c calls a meta-tool. */
bool mo_meta_tools_is_call(struct mo_gateway *g, const struct mo_ep_call *c);
/* The definitions: {"tools":[...]} */
struct mo_span mo_meta_tools_definitions(void);
/* Answers the call, or forwards it. */
void mo_meta_tools_call(struct mo_gateway *g, struct mo_ep_call *c);

/* If c calls execute, finds its target like mo_rewrite_target(), with the
 * result in *rc. False: c is another call. For mo_gateway.execute_target. */
bool mo_meta_tools_execute_target(struct mo_gateway *g,
                                  const struct mo_ep_call *c,
                                  struct call_target *t, int *rc);

#endif
