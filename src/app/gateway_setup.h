/* gateway_setup.h - the gateway of this process: what is configured, behind an
 * endpoint.
 *
 * Makes the gateway's servers out of the configuration, again whenever it
 * changes, and joins them with the ways to reach them (connect/server_link.h).
 * What the servers offer is kept below the state directory (MO_HUB_CACHE).
 * Transports are the caller's: `gateway` puts the endpoint on stdio, `serve` at
 * /mcp.
 *
 * Ownership: the loop is borrowed, configurations are referenced. Transports
 * must be closed before mo_hub_close(). */
#ifndef MO_APP_GATEWAY_SETUP_H
#define MO_APP_GATEWAY_SETUP_H

#include "connect/record.h"
#include "connect/stderr_tail.h"
#include "policy/approvals.h"

#define MO_HUB_CACHE "catalog" /* in store.dir, beside tokens.json */
#define MO_HUB_HABIT "habit"   /* and what is usually meant by words */

struct mo_hub;

/* desk: who judges calls, NULL: nobody. rec: what to record them with, NULL:
 * they are not. Both live longer than the hub. */
int mo_hub_open(struct mo_loop *l, const struct mo_config *cfg,
                struct mo_approvals *desk, struct mo_record *rec,
                struct mo_hub **out, struct mo_err *e);
/* Children are gone when gone(ctx) comes. */
void mo_hub_close(struct mo_hub *h, void (*gone)(void *ctx), void *ctx);

/* Servers that are as they were keep running. */
int mo_hub_reload(struct mo_hub *h, const struct mo_config *cfg,
                  struct mo_err *e);

struct mo_endpoint *mo_hub_endpoint(const struct mo_hub *h);
struct mo_gateway *mo_hub_gateway(const struct mo_hub *h);
/* The configuration that its servers are of; until the next mo_hub_reload(). */
const struct mo_config *mo_hub_config(const struct mo_hub *h);
/* What its servers last wrote on their standard error. */
const struct mo_tails *mo_hub_said(const struct mo_hub *h);

/* What was learnt from choices (habit.h). 0, also if there was nothing. */
int mo_hub_forget_habit(const struct mo_config *cfg, struct mo_err *e);
/* What is remembered of a server that was taken out. */
void mo_hub_forget(const struct mo_config *cfg, const char *server);

/* One server as the gateway wants it; texts stay the configuration's. */
void mo_hub_server(const struct mo_config *cfg, const struct mo_config_mcp *s,
                   struct mo_gw_server *out);

#endif
