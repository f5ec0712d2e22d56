/* meta_tools_priv.h - what the files of the four tools share: four (finding and
 * running), four_tell (telling). Nobody else includes it. */
#ifndef MO_GATEWAY_ROUTER_META_TOOLS_PRIV_H
#define MO_GATEWAY_ROUTER_META_TOOLS_PRIV_H

#include "gateway/router/meta_tools.h"
#include "gateway/upstream/unavailable_reason.h"

/* A string among the arguments, or empty; unescaped into the arena. */
struct mo_span mo_meta_tools_arg(const struct mo_ep_call *c, struct mo_arena *a,
                                 const char *key);
/* The structured answer, and the same as text for those who read only that. */
void mo_meta_tools_answer(struct mo_ep_call *c, struct mo_buf *made,
                          bool is_error);
void mo_meta_tools_put_json(struct mo_jw *w, const char *key, struct mo_json v);
void mo_meta_tools_put_text(struct mo_jw *w, const char *key, struct mo_span s);

const struct mo_gw_server *mo_meta_tools_server(const struct mo_gateway *g,
                                                unsigned no);
/* By its server's name and its own; or, without a server, by the name it is
 * exposed under, or its own if only one server has that. */
const struct mo_cat_item *mo_meta_tools_find(const struct mo_gateway *g,
                                             struct mo_span server,
                                             struct mo_span tool);

/* What its server says of it now is not for a model before a person saw it. */
bool mo_meta_tools_is_held_back(const struct unavailable_reason *v);

/* --- meta_tools_list.c
 * --------------------------------------------------------- */

void mo_meta_tools_run_list_capabilities(struct mo_gateway *g,
                                         struct mo_ep_call *c,
                                         struct mo_arena *a);
void mo_meta_tools_run_explain_tool(struct mo_gateway *g, struct mo_ep_call *c,
                                    struct mo_arena *a);

#endif
