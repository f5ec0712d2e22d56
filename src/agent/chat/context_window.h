/* context_window.h - the part of a conversation that is sent to the model. */
#ifndef MO_AGENT_CHAT_CONTEXT_WINDOW_H
#define MO_AGENT_CHAT_CONTEXT_WINDOW_H

#include "agent/llm/llm.h"

struct chat;

/* Asks the model with the part of the conversation that fits. */
int mo_context_window_ask(struct chat *c, const struct mo_llm_cb *cb,
                          struct mo_err *e);
/* If the conversation is too long, or the provider refused it as too long,
 * replaces older turns by a summary: returns true, and mo_turn_summary()
 * follows. False: it fits, or nothing older is left. */
bool mo_context_window_shrink(struct chat *c, bool refused);
bool mo_context_window_is_over(const struct chat *c);

#endif
