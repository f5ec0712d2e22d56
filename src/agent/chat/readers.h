/* readers.h - members who follow a conversation that is shared with them.
 *
 * A reader never opens a session and never keeps one open: it waits in the
 * agent's list until the session is open in this process, is then among the
 * members of its chat, and waits again when the chat is freed. Every reader is
 * judged by the session's row in the store: when it comes, when the chat opens
 * (the id may be another session by then) and when the shares change.
 *
 * Limits: MO_CHAT_READERS of one session, MO_AGENT_READERS in all. */
#ifndef MO_AGENT_CHAT_READERS_H
#define MO_AGENT_CHAT_READERS_H

#include "agent/chat/chat_priv.h"

/* The chat knows its session: readers who wait for it are judged again. */
void mo_readers_chat_ready(struct chat *c);
/* The chat is being freed: its readers wait again. */
void mo_readers_chat_gone(struct chat *c);
void mo_readers_close_all(struct mo_agent *a); /* the agent is closing */

#endif
