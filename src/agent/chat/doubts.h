/* doubts.h - messages whose sender was told that the store did not answer.
 *
 * Nobody knows whether such a message is stored. Two promises hold anyway:
 *
 *   1. The same words of the same person within DOUBT_MS are that message: it
 *      keeps its id and is stored once.
 *   2. Nothing is said after it before it is known. If the next message is
 *      another one, the store is asked first (mo_doubts_settle()). A message
 *      that is there gets its answer, as after a restart; one that is not is
 *      forgotten.
 *
 * A process that takes a conversation over does not know what senders were told
 * before. So the message whose turn it resumes, and those that wait behind it,
 * count as one of these, too.
 *
 * Limit: DOUBTS_MAX; then the oldest is forgotten. */
#ifndef MO_AGENT_CHAT_DOUBTS_H
#define MO_AGENT_CHAT_DOUBTS_H

#include "agent/chat/chat_priv.h"
#include "agent/chat/entries.h"

#define DOUBTS_MAX (MO_CHAT_QUEUE_MAX + 1)
#define DOUBT_MS   60000

/* m may be stored: as the entry that begins a turn, or as a waiting one. It is
 * copied. */
void mo_doubts_add(struct chat *c, const struct message *m, bool begins);
/* True if m is a message in doubt, sent again; then it gets its id. */
bool mo_doubts_know(struct chat *c, struct message *m);
/* The message is stored now, and acknowledged. */
void mo_doubts_over(struct chat *c, const struct message *m);
/* True: the words are those of a message that was found in the store. It is
 * acknowledged. */
bool mo_doubts_was_said(struct chat *c, const char *by, struct mo_span text,
                        struct ack *ack);
/* Before the turn of m begins. True: the store is asked first; the chat is
 * settled again then. */
bool mo_doubts_settle(struct chat *c, const struct message *m);
/* After a restart: the turn of this user entry is resumed; this message waits.
 */
void mo_doubts_resumed(struct chat *c, const struct entry *en);
void mo_doubts_restored(struct chat *c, const struct message *m);
void mo_doubts_drop(struct chat *c);

#endif
