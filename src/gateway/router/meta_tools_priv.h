/* meta_tools_priv.h - shared by meta_tools.c (find_tool, execute) and
 * meta_tools_list.c (list_capabilities, explain_tool). Not included
 * elsewhere. */
#ifndef MO_GATEWAY_ROUTER_META_TOOLS_PRIV_H
#define MO_GATEWAY_ROUTER_META_TOOLS_PRIV_H

#include "gateway/router/meta_tools.h"
#include "gateway/router/unavailable_reason.h"

#define NO_SUCH_TOOL                                                           \
    "there is no such tool; search with find_tool, or list all tools with "    \
    "list_capabilities"

/* A string argument, or empty; unescaped into the arena. */
struct mo_span mo_meta_tools_arg(const struct mo_ep_call *c, struct mo_arena *a,
                                 const char *key);
/* Answers with `made` as structured content and as text. */
void mo_meta_tools_answer(struct mo_ep_call *c, struct mo_buf *made,
                          bool is_error);

/* Finds a tool by server and tool name. Without a server: by exposed name,
 * or by its own name, of the first server that has it. Tools for apps only are
 * not found: a model asks. */
const struct mo_cat_item *mo_meta_tools_find(const struct mo_catalog *cat,
                                             struct mo_span server,
                                             struct mo_span tool);

/* True if the definition must not be shown to a model until a person has
 * accepted its change. */
bool mo_meta_tools_is_held_back(const struct unavailable_reason *v);

/* --- meta_tools_list.c --------------------------------------------------- */

void mo_meta_tools_run_list_capabilities(struct mo_gateway *g,
                                         struct mo_ep_call *c,
                                         struct mo_arena *a);
void mo_meta_tools_run_explain_tool(struct mo_gateway *g, struct mo_ep_call *c,
                                    struct mo_arena *a);

#endif
