/* gateway_client.h - the connection of a conversation to the gateway. */
#ifndef MO_AGENT_CHAT_GATEWAY_CLIENT_H
#define MO_AGENT_CHAT_GATEWAY_CLIENT_H

#include "mcp/client/conn.h"

struct chat;

/* Opens the connection; does nothing if it exists or there is no gateway. */
int mo_gateway_client_open(struct chat *c, struct mo_err *e);
void mo_gateway_client_drop(struct chat *c);
/* NULL: it is not open. */
struct mo_conn *mo_gateway_client_conn(const struct chat *c);
uint64_t mo_gateway_client_peer(const struct chat *c); /* 0: none */

#endif
