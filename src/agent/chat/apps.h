/* apps.h - the apps of servers (MCP Apps, mcp/app.h) in conversations.
 *
 * The page shows the app of a tool below the result of its call. What the app
 * asks for goes through the conversation's own connection to the gateway, and
 * only to the server of the app. chat.h has the requests:
 * mo_agent_app_call(), mo_agent_app_read().
 *
 * Invariants
 *   1. A call of an app runs under the rules of the conversation: tools that
 *      are switched off, pins, rules, remembered rules, mode, budget. No rule
 *      that names other approvers lets it run.
 *   2. Nothing runs before the audit log has it, with the URI of the app. Then
 *      the definition, the pin and the rules are checked once more.
 *   3. Only tools for apps (`visibility`) of a server whose tools name this app
 *      can be called.
 *
 * Limits: APP_CALLS at once of a conversation; a result that is larger than
 * MO_APPS_RESULT_MAX reaches the app without its structured content. */
#ifndef MO_AGENT_CHAT_APPS_H
#define MO_AGENT_CHAT_APPS_H

#include "agent/chat/chat.h"

#define MO_APPS_RESULT_MAX ((size_t)512 * 1024)

struct call;

/* The client capabilities that servers are told. */
struct mo_span mo_apps_capabilities(const struct mo_agent *a);
/* Keeps for the app of the tool which app it is, and the parts of the result
 * that no model gets: k->app. Nothing if the tool has no app. */
void mo_apps_note(struct call *k, struct mo_json result);

#endif
