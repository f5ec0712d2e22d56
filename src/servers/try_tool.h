/* try_tool.h - the configured servers for people who look at them and try a
 * tool.
 *
 * What web/api_servers.h asks for, out of the gateway
 * (servers/gateway_setup.h), the definitions that were seen first
 * (policy/tool_pins.h) and the operator's approval rules. It is a client of the
 * gateway as conversations are (mcp/server/link_inside.h).
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

#include "policy/policy.h"
#include "servers/gateway_setup.h"
#include "servers/job_done.h"
#include "store/store.h"

#define MO_TRY_TOOL_ARGS_MAX ((size_t)1024 * 1024) /* body of a call */

struct mo_try_tool;

struct mo_try_tool_opts {
    struct mo_loop *loop;
    struct mo_gateway_setup *hub;
    struct mo_policy *policy;
    struct mo_store *store;
    void (*accepted)(void *ctx); /* a changed tool may be used from now on */
    void *ctx;
};

int mo_try_tool_new(const struct mo_try_tool_opts *o, struct mo_try_tool **out,
                    struct mo_err *e);
/* Nothing new is begun; gone(ctx) later, when what was under way has ended.
 * Before the hub. */
void mo_try_tool_close(struct mo_try_tool *t, void (*gone)(void *ctx),
                       void *ctx);

struct mo_try_tool_ask {
    struct mo_span server, tool;
    struct mo_span args;   /* object text; empty: none */
    struct mo_span digest; /* of what was asked before; empty: not yet */
    struct mo_span who;    /* for the audit */
};

/* All configured servers and their states. */
int mo_try_tool_list(struct mo_try_tool *t, struct mo_buf *out);
/* done() once, later; everything given is copied before they return.
 * now: also ask a server that is being left alone after a failure. */
int mo_try_tool_tools(struct mo_try_tool *t, struct mo_span server, bool now,
                      mo_job_done_fn *done, void *arg, struct mo_err *e);
int mo_try_tool_call(struct mo_try_tool *t, const struct mo_try_tool_ask *a,
                     mo_job_done_fn *done, void *arg, struct mo_err *e);
int mo_try_tool_accept(struct mo_try_tool *t, const struct mo_try_tool_ask *a,
                       mo_job_done_fn *done, void *arg, struct mo_err *e);

#endif
