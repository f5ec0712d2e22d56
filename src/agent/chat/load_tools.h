/* load_tools.h - loads the tools of a conversation, and blocks those whose
 * definition differs from the pinned one. */
#ifndef MO_AGENT_CHAT_LOAD_TOOLS_H
#define MO_AGENT_CHAT_LOAD_TOOLS_H

#include "base/str.h"

struct chat;
struct mo_tool;

/* Values of mo_tool.source. */
enum { SOURCE_BOX, SOURCE_ROUTER, SOURCE_SERVERS };
#define ROUTER_NAME "router" /* display name of the gateway's own tools */

/* Loads the tools of all servers; mo_chat_tools() follows, from the loop. */
void mo_load_tools_start(struct chat *c);
void mo_load_tools_stop(struct chat *c); /* stops waiting for servers */

void mo_changed_tools_forget(struct chat *c);
bool mo_changed_tools_is_blocked(const struct chat *c, const struct mo_tool *t);
/* The pinned definition; empty: the tool is not blocked. */
struct mo_span mo_changed_tools_before(const struct chat *c,
                                       const struct mo_tool *t);

#endif
