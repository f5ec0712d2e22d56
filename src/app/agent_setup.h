/* agent_setup.h - the agent of one process, built from the configuration.
 *
 * Selects the model and the calls that need a person. If no provider is
 * configured, the first one with a key is used, or the built-in demo if there
 * is none (agent/llm/models.h).
 *
 * Conversations are clients of the gateway (servers/gateway_setup.h) like any
 * MCP client: they share its children, breakers and settings.
 *
 * Ownership: runtime, configuration, approvals and gateway are borrowed until
 * gone(). If approvals and gateway are NULL, the agent opens its own. */
#ifndef MO_APP_AGENT_SETUP_H
#define MO_APP_AGENT_SETUP_H

#include "agent/chat/chat.h"
#include "agent/llm/models.h"
#include "app/runtime.h"
#include "peer/peer.h"
#include "policy/approvals.h"
#include "servers/gateway_setup.h"
#include "servers/try_tool.h"

struct mo_agent_setup;

/* approvals and gateway: both, or both NULL. */
int mo_agent_setup_open(struct mo_loop *l, const struct mo_config *cfg,
                        struct mo_runtime *h, struct mo_approvals *approvals,
                        struct mo_gateway_setup *gateway,
                        struct mo_agent_setup **out, struct mo_err *e);
/* grace_ms: as of mo_agent_close(). */
void mo_agent_setup_close(struct mo_agent_setup *c, uint64_t grace_ms,
                          void (*gone)(void *ctx), void *ctx);
/* Applies another configuration to open and new conversations. Waiting calls
 * that the current rules deny are rejected. Model settings apply from the next
 * turn. The rules themselves are reloaded with the approvals, before this
 * call. */
void mo_agent_setup_reload(struct mo_agent_setup *c,
                           const struct mo_config *cfg);
struct mo_agent *mo_agent_setup_agent(const struct mo_agent_setup *c);
struct mo_peers *mo_agent_setup_peers(const struct mo_agent_setup *c);
struct mo_models *mo_agent_setup_models(const struct mo_agent_setup *c);
struct mo_try_tool *mo_agent_setup_try_tool(const struct mo_agent_setup *c);

#endif
