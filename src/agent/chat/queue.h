/* queue.h - messages that wait for the end of a turn.
 *
 * A waiting message is stored at once, as an entry of role `queued`; its turn
 * stores the user entry under the same id. Limit: MO_CHAT_QUEUE_MAX. */
#ifndef MO_AGENT_CHAT_QUEUE_H
#define MO_AGENT_CHAT_QUEUE_H

#include "agent/chat/chat_priv.h"

void mo_chat_queue_push(struct chat *c, struct message *m);
/* Removes and returns the first message; NULL: none can be taken now. */
struct message *mo_chat_queue_take(struct chat *c);
/* Puts a message back to the front because its user entry could not be stored.
 * It is taken again with the next message that is sent. */
void mo_chat_queue_return(struct chat *c, struct message *m);
/* Stores the messages that wait while a turn runs. */
void mo_chat_queue_store(struct chat *c);
/* While the history is read, oldest first: true if this is a queued entry,
 * which is in the queue now. */
bool mo_chat_queue_restore(struct chat *c, const struct entry *en);
void mo_chat_queue_drop(struct chat *c);

#endif
