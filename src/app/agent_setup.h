/* agent_setup.h - the agent of one process, as the configuration wants it:
 * which model answers, which calls need a person.
 *
 * Where no provider is named, the first that has a key is taken, and the
 * built-in demo where there is none (agent/llm/models.h).
 *
 * Conversations are clients of the gateway (servers/gateway_setup.h) like any
 * other: the same children, breakers and settings serve them and MCP clients.
 *
 * Ownership: house, configuration, desk and hub are borrowed until it is
 * closed. Without a desk it has one of its own, and a gateway too. */
#ifndef MO_APP_AGENT_SETUP_H
#define MO_APP_AGENT_SETUP_H

#include "agent/chat/chat.h"
#include "agent/llm/models.h"
#include "app/runtime.h"
#include "policy/approvals.h"
#include "servers/gateway_setup.h"
#include "web/api_rules.h"
#include "web/api_servers.h"

struct mo_agent_setup;

/* desk and hub: both, or neither. */
int mo_agent_setup_open(struct mo_loop *l, const struct mo_config *cfg,
                        struct mo_runtime *h, struct mo_approvals *desk,
                        struct mo_gateway_setup *hub,
                        struct mo_agent_setup **out, struct mo_err *e);
void mo_agent_setup_close(struct mo_agent_setup *c, void (*gone)(void *ctx),
                          void *ctx);
/* Another configuration for the conversations that go on and those to come.
 * Calls that wait and are denied by the policy's present rules are rejected,
 * model settings hold from the next turn on. The policy is reloaded with the
 * approvals, before this. */
void mo_agent_setup_reload(struct mo_agent_setup *c,
                           const struct mo_config *cfg);
struct mo_agent *mo_agent_setup_agent(const struct mo_agent_setup *c);
struct mo_models *mo_agent_setup_models(const struct mo_agent_setup *c);
struct mo_try_tool *mo_agent_setup_try_tool(const struct mo_agent_setup *c);

#endif
