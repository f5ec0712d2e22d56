/* changed_tools.h - tools whose definition differs from the pinned one. */
#ifndef MO_AGENT_CHAT_CHANGED_TOOLS_H
#define MO_AGENT_CHAT_CHANGED_TOOLS_H

#include "base/str.h"

struct chat;
struct mo_tool;

int mo_changed_tools_find(struct chat *c); /* after the tools were loaded */
void mo_changed_tools_forget(struct chat *c);
bool mo_changed_tools_is_blocked(const struct chat *c, const struct mo_tool *t);
/* For a tool outside chat->tools: true if it matches its pin. */
bool mo_changed_tools_is_same(const struct chat *c, const struct mo_tool *t);
/* The pinned definition; empty: the tool is not blocked. */
struct mo_span mo_changed_tools_before(const struct chat *c,
                                       const struct mo_tool *t);

#endif
