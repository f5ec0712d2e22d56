/* try_tool.h - the configured servers for people who look at them and try a
 * tool.
 *
 * What web/api_servers.h asks for, out of the gateway (app/gateway_setup.h),
 * the definitions that were seen first (policy/tool_pins.h) and the operator's
 * approval rules. It is a client of the gateway as conversations are
 * (mcp/link/link_inside.h).
 *
 * Rules of the house
 *  1. A tool is tried with the rules a conversation has, without what people
 *     said "always" to in theirs: allow runs, deny does not, ask asks.
 *  2. A question is answered by its digest: it covers server, tool, its
 *     definition, the exact arguments and a number that is used once. At most
 *     QUESTIONS are open; the oldest is forgotten, and each after ASK_MS.
 *  3. Nothing runs before the audit log has it.
 *  4. A tool whose definition has changed is not run before it is accepted.
 *
 * Ownership: everything given is borrowed until it is closed. Limit: TRIES at
 * once. */
#ifndef MO_SERVERS_TRY_TOOL_H
#define MO_SERVERS_TRY_TOOL_H

#include "app/gateway_setup.h"
#include "policy/tool_pins.h"
#include "store/store.h"
#include "web/api_servers.h"

struct mo_try_tool;

struct mo_try_tool_opts {
    struct mo_loop *loop;
    struct mo_gateway_setup *hub;
    struct mo_tool_pins *pins;
    struct mo_store *store;
    const struct mo_rules *rules;
    enum mo_action fallback;
    void (*accepted)(void *ctx); /* a changed tool may be used from now on */
    void *ctx;
};

int mo_try_tool_new(const struct mo_try_tool_opts *o, struct mo_try_tool **out,
                    struct mo_err *e);
/* Nothing new is begun; gone(ctx) when what was under way has ended. Before the
 * hub. */
void mo_try_tool_close(struct mo_try_tool *t, void (*gone)(void *ctx),
                       void *ctx);
struct mo_api_servers mo_try_tool_for(struct mo_try_tool *t);

#endif
