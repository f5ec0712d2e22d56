/* gateway_setup.h - the gateway of this process, built from the configuration.
 *
 * Creates the gateway's servers from the configuration, again on every reload,
 * and connects them with their links (connect/server_link.h). The catalogues of
 * the servers are cached in the state directory (MO_GATEWAY_SETUP_CACHE). The
 * caller adds the transports: `gateway` serves the endpoint on stdio, `serve`
 * at /mcp.
 *
 * Ownership: the loop is borrowed, configurations are referenced. Transports
 * must be closed before mo_gateway_setup_close(). */
#ifndef MO_SERVERS_GATEWAY_SETUP_H
#define MO_SERVERS_GATEWAY_SETUP_H

#include "budget/budget.h"
#include "connect/record.h"
#include "connect/server_link.h"
#include "gateway/gateway.h"
#include "policy/approvals.h"
#include "servers/view_table.h"

/* Files in store.dir: cached catalogues, what the router learnt, and vectors of
 * an embeddings server. */
#define MO_GATEWAY_SETUP_CACHE   "catalog"
#define MO_GATEWAY_SETUP_HABIT   "habit"
#define MO_GATEWAY_SETUP_VECTORS "embeddings"

struct mo_gateway_setup;

/* How a request about servers is answered: once, from the loop, with a JSON
 * object or the reason of failure. */
typedef void mo_job_done_fn(void *arg, struct mo_span json,
                            const struct mo_err *why);

/* approvals: decides which calls may run; NULL: calls are not judged. rec:
 * records all messages; NULL: no recording. Both must outlive the gateway. */
int mo_gateway_setup_open(struct mo_loop *l, const struct mo_config *cfg,
                          struct mo_approvals *approvals, struct mo_record *rec,
                          struct mo_gateway_setup **out, struct mo_err *e);
/* Stops all children, then calls gone(ctx), later. */
void mo_gateway_setup_close(struct mo_gateway_setup *h, void (*gone)(void *ctx),
                            void *ctx);

/* Servers whose settings did not change keep running. */
int mo_gateway_setup_reload(struct mo_gateway_setup *h,
                            const struct mo_config *cfg, struct mo_err *e);

struct mo_endpoint *mo_gateway_setup_endpoint(const struct mo_gateway_setup *h);
/* The views, to add transports. */
struct mo_view_table *mo_gateway_setup_views(struct mo_gateway_setup *h);
struct mo_gateway *mo_gateway_setup_gateway(const struct mo_gateway_setup *h);
/* Knows the configuration of the current servers, which is valid until the next
 * mo_gateway_setup_reload(), and their last stderr output. */
struct mo_server_link *mo_gateway_setup_link(const struct mo_gateway_setup *h);

/* The limits of calls, boxes and turns, which live as long as the gateway. */
struct mo_budget *mo_gateway_setup_budget(const struct mo_gateway_setup *h);

/* Removes what the router learnt (gateway/router/router_learning.h). 0, also if
 * there was nothing. */
int mo_gateway_setup_forget_habit(const struct mo_config *cfg,
                                  struct mo_err *e);
/* Removes the cached catalogue and the workspace of a server that was removed.
 * Blocks. */
void mo_gateway_setup_forget(const struct mo_config *cfg, const char *server);

/* Fills the settings of one server for the gateway; the texts are borrowed from
 * the configuration. */
void mo_gateway_setup_server(const struct mo_config *cfg,
                             const struct mo_config_mcp *s,
                             struct mo_gw_server *out);

#endif
