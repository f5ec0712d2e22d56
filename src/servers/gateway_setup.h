/* gateway_setup.h - the gateway of this process: what is configured, behind an
 * endpoint.
 *
 * Makes the gateway's servers out of the configuration, again whenever it
 * changes, and joins them with the ways to reach them (connect/server_link.h).
 * What the servers offer is kept below the state directory
 * (MO_GATEWAY_SETUP_CACHE). Transports are the caller's: `gateway` puts the
 * endpoint on stdio, `serve` at /mcp.
 *
 * Ownership: the loop is borrowed, configurations are referenced. Transports
 * must be closed before mo_gateway_setup_close(). */
#ifndef MO_SERVERS_GATEWAY_SETUP_H
#define MO_SERVERS_GATEWAY_SETUP_H

#include "connect/record.h"
#include "connect/stderr_tail.h"
#include "gateway/gateway.h"
#include "policy/approvals.h"

#define MO_GATEWAY_SETUP_CACHE                                                 \
    "catalog" /* in store.dir, beside tokens.json                              \
               */
#define MO_GATEWAY_SETUP_HABIT                                                 \
    "habit" /* and what is usually meant by words                              \
             */

struct mo_gateway_setup;

/* desk: who judges calls, NULL: nobody. rec: what to record them with, NULL:
 * they are not. Both live longer than the hub. */
int mo_gateway_setup_open(struct mo_loop *l, const struct mo_config *cfg,
                          struct mo_approvals *desk, struct mo_record *rec,
                          struct mo_gateway_setup **out, struct mo_err *e);
/* Children are gone when gone(ctx) comes. */
void mo_gateway_setup_close(struct mo_gateway_setup *h, void (*gone)(void *ctx),
                            void *ctx);

/* Servers that are as they were keep running. */
int mo_gateway_setup_reload(struct mo_gateway_setup *h,
                            const struct mo_config *cfg, struct mo_err *e);

struct mo_endpoint *mo_gateway_setup_endpoint(const struct mo_gateway_setup *h);
struct mo_gateway *mo_gateway_setup_gateway(const struct mo_gateway_setup *h);
/* The configuration that its servers are of; until the next
 * mo_gateway_setup_reload(). */
const struct mo_config *
mo_gateway_setup_config(const struct mo_gateway_setup *h);
/* What its servers last wrote on their standard error. */
const struct mo_stderr_tail *
mo_gateway_setup_said(const struct mo_gateway_setup *h);

/* What was learnt from choices (habit.h). 0, also if there was nothing. */
int mo_gateway_setup_forget_habit(const struct mo_config *cfg,
                                  struct mo_err *e);
/* What is remembered of a server that was taken out. */
void mo_gateway_setup_forget(const struct mo_config *cfg, const char *server);

/* One server as the gateway wants it; texts stay the configuration's. */
void mo_gateway_setup_server(const struct mo_config *cfg,
                             const struct mo_config_mcp *s,
                             struct mo_gw_server *out);

#endif
