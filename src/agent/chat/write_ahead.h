/* write_ahead.h - stores messages and results while the model is asked, and
 * the messages that wait for the end of a turn.
 *
 * The answer is not used before the entry is stored (write_ahead.c explains
 * why this is safe). Limit: MO_CHAT_QUEUE_MAX waiting messages. */
#ifndef MO_AGENT_CHAT_WRITE_AHEAD_H
#define MO_AGENT_CHAT_WRITE_AHEAD_H

#include "agent/chat/entry.h"
#include "agent/llm/llm.h"
#include "loop/loop.h"

struct call;
struct chat;
struct entry;
struct message;

/* An answer that came before the entry it answers was stored. */
struct write_ahead {
    bool there;
    struct mo_arena mem;
    struct mo_llm_reply reply;
    struct mo_llm_failure fail; /* code set: there is no reply */
};

/* If idle, starts a turn with the next message. */
void mo_turn_next(struct chat *c);
/* All calls have ended: stores their results. last: a call whose outcome is
 * written in the same batch; or NULL. */
void mo_turn_results(struct chat *c, const struct mo_entry_result *v, size_t n,
                     struct call *last);
/* The results could not be written: ends the turn. Called from the loop. */
void mo_turn_stuck(struct chat *c);
/* The model has answered while the entry is still being written. */
void mo_write_ahead_done(struct chat *c, const struct mo_llm_reply *r,
                         const struct mo_llm_failure *f);
void mo_write_ahead_drop(struct chat *c); /* frees an early answer */
/* Callback of chat->soon: sends the early request. */
void mo_write_ahead_ask(struct mo_later *d);

void mo_chat_queue_push(struct chat *c, struct message *m);
/* Stores the messages that wait while a turn runs. */
void mo_chat_queue_store(struct chat *c);
/* While the history is read, oldest first: true if this is a queued entry,
 * which is in the queue now. */
bool mo_chat_queue_restore(struct chat *c, const struct entry *en);
void mo_chat_queue_drop(struct chat *c);

#endif
