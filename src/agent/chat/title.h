/* title.h - a conversation gets the name a person gives it.
 *
 * Only one that is open: its chat keeps the name, and would write the old one
 * again over what somebody else had written. */
#ifndef MO_AGENT_CHAT_TITLE_H
#define MO_AGENT_CHAT_TITLE_H

#include "agent/chat/chat.h"

#define MO_TITLE_MAX 120 /* bytes; what is longer is cut */

/* done() once, from the loop, when it is durable. MO_EINVAL: it is empty;
 * MO_EPOLICY: the conversation is not open here. */
int mo_agent_title(struct mo_agent *a, struct mo_span session,
                   struct mo_span title,
                   void (*done)(void *ctx, const struct mo_err *why), void *ctx,
                   struct mo_err *e);

#endif
