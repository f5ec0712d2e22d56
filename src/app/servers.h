/* servers.h - the configured MCP servers, as conversations use them.
 *
 * One connection to each, shared by all conversations, opened when first
 * wanted and again after it was lost. A server that could not be opened is
 * left alone for a while (1 s, doubled up to a minute). Servers that ask for
 * an image are not started here.
 *
 * Ownership: configuration and HTTP client are borrowed until it is closed. */
#ifndef MO_APP_SERVERS_H
#define MO_APP_SERVERS_H

#include "agent/chat.h"
#include "app/config.h"
#include "loop/httpc.h"

#define MO_SERVERS_MAX 63

struct mo_servers;

int mo_servers_open(struct mo_loop *l, const struct mo_config *cfg,
                    struct mo_httpc *http, struct mo_servers **out,
                    struct mo_err *e);
/* Children are gone when gone(ctx) comes. */
void mo_servers_close(struct mo_servers *s, void (*gone)(void *ctx), void *ctx);

/* What an agent asks them for, and whom to tell that tools have changed. */
struct mo_agent_servers mo_servers_for(struct mo_servers *s);
void mo_servers_tell(struct mo_servers *s, struct mo_agent *a);

#endif
