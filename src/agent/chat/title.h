/* title.h - renames an open conversation.
 *
 * A conversation that is not open is refused: its chat, opened elsewhere, keeps
 * the title in memory and would overwrite the new one. */
#ifndef MO_AGENT_CHAT_TITLE_H
#define MO_AGENT_CHAT_TITLE_H

#include "agent/chat/chat.h"

#define MO_TITLE_MAX 120 /* bytes; longer titles are cut */

/* done() is called once, from the loop, when the title is stored. MO_EINVAL: it
 * is empty; MO_EPOLICY: the conversation is not open here. */
int mo_agent_title(struct mo_agent *a, struct mo_span session,
                   struct mo_span title, mo_done_fn *done, void *ctx,
                   struct mo_err *e);

#endif
