/* script.h - run_script for clients of the gateway: scripts that call tools.
 *
 * The owner gives the gateway a server for scripts (mo_gateway_scripts()),
 * which is in no catalogue: a toolbox in a box. A client's call of run_script
 * is forwarded to it as any call is (call/forwarded_call.h), with two
 * differences. It gets a box of its own, which ends with the call: two scripts
 * share nothing. And the box reports what the script asks for (MO_CONN_SCRIPT).
 *
 * A call of the script becomes a call of the same client, made on behalf of its
 * call of run_script (mcp/server/endpoint.h): found in the same view, checked
 * against the tool's schema, judged, counted, forwarded and recorded as if the
 * client had sent it. Its outcome goes back to the script. A search is answered
 * at once. While a call is open, the timeout of the script is paused. When the
 * script ends, its open calls are cancelled.
 *
 * Conversations do not use this: run_script is a tool of their own box
 * (agent/chat/script_calls.h).
 *
 * Limits: MO_GW_SCRIPT_CALLS calls of a script, MO_GW_SCRIPT_OPEN of them open,
 * MO_GW_SCRIPT_RESULT bytes of a result; more are answered with an error.
 * MO_GW_SCRIPT_CODE bytes of code, and mo_gw_scripts.max scripts at a time:
 * beyond, run_script fails and nothing is run. */
#ifndef MO_GATEWAY_SCRIPT_SCRIPT_H
#define MO_GATEWAY_SCRIPT_SCRIPT_H

#include "gateway/call/forwarded_call.h"

#define MO_GW_SCRIPT_CALLS  10000
#define MO_GW_SCRIPT_OPEN   64
#define MO_GW_SCRIPT_RESULT ((size_t)4 * 1024 * 1024 - 4096)
#define MO_GW_SCRIPT_CODE   ((size_t)1024 * 1024)

/* Sets the hooks of g->script. */
void mo_gw_script_init(struct mo_gateway *g);

/* True if clients of the view have run_script. */
bool mo_gw_script_is_on(const struct mo_gw_view *v);
/* True if c calls it. */
bool mo_gw_script_is_call(struct mo_gateway *g, const struct mo_ep_call *c);
/* False: the arguments are wrong, or too many scripts run; c is answered. */
bool mo_gw_script_check(struct mo_gateway *g, struct mo_ep_call *c);
/* Writes a list {"tools":[...]} again, with run_script as its last tool. */
int mo_gw_script_list(const struct mo_gw_view *v, struct mo_span page,
                      struct mo_buf *out);

/* --- script_tools.c: the tools as a script sees them ---------------------- */

/* Writes the member files: the library, names and declarations. */
void mo_gw_script_put_files(struct mo_jw *w, const struct mo_gw_view *v,
                            struct mo_json arguments);
/* Answers {"find": words, "limit"?} as a CallToolResult. 0 or MO_ENOMEM. */
int mo_gw_script_find(struct mo_gw_view *v, struct mo_json params,
                      struct mo_buf *out);
/* Writes the member "declaration" of a tool for Python, if clients of the view
 * are to write scripts. */
void mo_gw_script_put_declaration(struct mo_jw *w, const struct mo_gw_view *v,
                                  const struct mo_cat_item *it);

#endif
