/* tools_off.h - servers and tools that a person has switched off in one
 * conversation.
 *
 * The model is not offered them, and its calls of them are refused. Rules of
 * the operator stand above: a switch only takes away. The list is stored with
 * the session (session_memory.c) and counts from the next request to the model
 * on.
 *
 * Limit: MO_TOOLS_OFF_MAX rows; a longer list is refused. */
#ifndef MO_AGENT_CHAT_TOOLS_OFF_H
#define MO_AGENT_CHAT_TOOLS_OFF_H

#include "codec/json/json.h"

#define MO_TOOLS_OFF_MAX   256
#define MO_TOOLS_OFF_BYTES ((size_t)32 * 1024)

struct chat;
struct mo_tool;
struct tools_off;

/* Takes a list [{"server":"...","tool":"..."}]; a row without a tool means the
 * whole server; a tool has the name that the model sees. Something else:
 * MO_EINVAL, and the old list stays. */
int mo_tools_off_read(struct chat *c, struct mo_json list, struct mo_err *e);
void mo_tools_off_free(struct chat *c);
bool mo_tools_off_has(const struct chat *c, const struct mo_tool *t);
/* Writes the list as the member "toolsOff". */
void mo_tools_off_put(struct mo_jw *w, const struct chat *c);

#endif
