/* load_tools.h - the tools of a conversation: loads them, blocks those whose
 * definition differs from the pinned one, and connects to the gateway. */
#ifndef MO_AGENT_CHAT_LOAD_TOOLS_H
#define MO_AGENT_CHAT_LOAD_TOOLS_H

#include "mcp/client/conn.h"

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

/* --- gateway_client.c: the connection to the gateway --------------------- */

/* Opens the connection; does nothing if it exists or there is no gateway. */
int mo_gateway_client_open(struct chat *c, struct mo_err *e);
void mo_gateway_client_drop(struct chat *c);
/* NULL: it is not open. */
struct mo_conn *mo_gateway_client_conn(const struct chat *c);
uint64_t mo_gateway_client_peer(const struct chat *c); /* 0: none */

#endif
