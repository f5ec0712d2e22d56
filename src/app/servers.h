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

/* How a server is, for people; i as in mo_servers_for(). */
struct mo_server_look {
    const struct mo_config_mcp *cfg;
    const char *state;          /* "cold", "starting", "ok", "failed" */
    struct mo_conn *conn;       /* "ok": open; else NULL */
    struct mo_span stderr_tail; /* of a child; borrowed until the loop runs */
    struct mo_err why;          /* the last failure; code 0: none */
    uint64_t retry_ms;          /* not tried before; 0: at once when wanted */
};
void mo_servers_look(struct mo_servers *s, size_t i,
                     struct mo_server_look *out);
/* Tools may be others than conversations think. */
void mo_servers_stale(struct mo_servers *s);
/* The pause after a failure is over. */
void mo_servers_retry(struct mo_servers *s, size_t i);

#endif
