/* load_tools.h - loads the tools of a conversation. */
#ifndef MO_AGENT_CHAT_LOAD_TOOLS_H
#define MO_AGENT_CHAT_LOAD_TOOLS_H

struct chat;

/* Values of mo_tool.source. */
enum { SOURCE_BOX, SOURCE_ROUTER, SOURCE_SERVERS };
#define ROUTER_NAME "router" /* display name of the gateway's own tools */

/* Loads the tools of all servers; mo_chat_tools() follows, from the loop. */
void mo_load_tools_start(struct chat *c);
void mo_load_tools_stop(struct chat *c); /* stops waiting for servers */

#endif
