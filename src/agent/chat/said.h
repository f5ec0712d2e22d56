/* said.h - recognises a message that was sent before.
 *
 * A member whose process relays to this one may send a message again after it
 * has lost the process that it was sent to (peer/peer.h). The message keeps its
 * id, and the id is in every entry that stores it. */
#ifndef MO_AGENT_CHAT_SAID_H
#define MO_AGENT_CHAT_SAID_H

#include "agent/chat/chat_priv.h"

bool mo_chat_message_id_ok(struct mo_span id);
/* queued: its place in the queue; 0: it does not wait. */
void mo_chat_ack_stored(struct ack *ack, struct mo_span id, unsigned queued);
/* True: the chat has this message. It is acknowledged, now or when it is
 * stored. The chat's history must have been read. */
bool mo_chat_was_said(struct chat *c, struct mo_span id, struct ack *ack);

#endif
