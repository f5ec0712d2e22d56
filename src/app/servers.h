/* servers.h - the configured MCP servers, as conversations use them.
 *
 * One connection to each, shared by all conversations, opened when first
 * wanted and again after it was lost. A server that could not be opened is
 * left alone for a while (1 s, doubled up to a minute). Servers that ask for
 * an image are not started here.
 *
 * Another configuration may be given at any time: servers that are as they
 * were keep their connection, others lose it and their calls. Numbers (i) are
 * those of the present configuration: who keeps one over a turn of the loop
 * may find another server behind it, or none.
 *
 * Ownership: configurations are referenced, the HTTP client is borrowed until
 * it is closed. */
#ifndef MO_APP_SERVERS_H
#define MO_APP_SERVERS_H

#include "agent/chat.h"
#include "app/config.h"
#include "app/tails.h"
#include "loop/httpc.h"

#define MO_SERVERS_MAX 63

struct mo_servers;

int mo_servers_open(struct mo_loop *l, const struct mo_config *cfg,
                    struct mo_httpc *http, struct mo_servers **out,
                    struct mo_err *e);
/* Those there are from now on; on failure nothing has changed. */
int mo_servers_reload(struct mo_servers *s, const struct mo_config *cfg,
                      struct mo_err *e);
/* Children are gone when gone(ctx) comes. */
void mo_servers_close(struct mo_servers *s, void (*gone)(void *ctx), void *ctx);

/* What an agent asks them for, and whom to tell that tools have changed. */
struct mo_agent_servers mo_servers_for(struct mo_servers *s);
void mo_servers_tell(struct mo_servers *s, struct mo_agent *a);

/* How a server is, for people; i as in mo_servers_for(). */
struct mo_server_look {
    const struct mo_config_mcp *cfg;
    const char *state;    /* "cold", "starting", "ok", "failed" */
    struct mo_conn *conn; /* "ok": open; else NULL */
    struct mo_err why;    /* the last failure; code 0: none */
    uint64_t retry_ms;    /* not tried before; 0: at once when wanted */
};
/* False: there is none of that name; not enabled, or one too many. */
bool mo_servers_find(const struct mo_servers *s, struct mo_span name,
                     size_t *out);
void mo_servers_look(struct mo_servers *s, size_t i,
                     struct mo_server_look *out);
/* What they last wrote on their standard error. */
const struct mo_tails *mo_servers_said(const struct mo_servers *s);
/* Tools may be others than conversations think. */
void mo_servers_stale(struct mo_servers *s);
/* The pause after a failure is over. */
void mo_servers_retry(struct mo_servers *s, size_t i);

#endif
