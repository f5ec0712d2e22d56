/* turn.h - the states of a turn: storing its message and its results, asking
 * the model, and storing its reply.
 *
 * Every function may end the turn. Errors are sent to the members as events;
 * they never end the chat. */
#ifndef MO_AGENT_CHAT_TURN_H
#define MO_AGENT_CHAT_TURN_H

#include "agent/chat/entry.h"
#include "agent/llm/llm.h"
#include "budget/budget.h"
#include "loop/loop.h"

struct call;
struct chat;
struct entry;
struct images;
struct message;

/* An answer that came before the entry it answers was stored. */
struct write_ahead {
    bool there;
    struct mo_arena mem;
    struct mo_llm_reply reply;
    struct mo_llm_failure fail; /* code set: there is no reply */
};

/* Starts a step: asks the model, after loading changed tools. */
void mo_turn_ask(struct chat *c);
void mo_turn_tools(struct chat *c); /* the tools are loaded: goes on asking */
void mo_turn_stop(struct chat *c);  /* a member asked to stop the turn */
void mo_turn_step(struct chat *c);  /* counts a model request */
/* Sends one request with the current conversation. mo_turn_answer() follows, or
 * mo_write_ahead_done(). */
int mo_turn_request(struct chat *c, struct mo_err *e);
/* Uses the model's answer. Exactly one of r and f is NULL. */
void mo_turn_answer(struct chat *c, const struct mo_llm_reply *r,
                    const struct mo_llm_failure *f);
void mo_turn_stopped(struct chat *c); /* ends a turn that was stopped */
/* Ends a turn with an error, which stays in the conversation as a note. */
void mo_turn_fail(struct chat *c, const char *code, struct mo_span text,
                  unsigned retry_ms);
/* The budget has room: goes on asking. */
void mo_turn_reserved(struct chat *c);
void mo_turn_begin(struct chat *c); /* gives it an id */
void mo_turn_end(struct chat *c);

struct shown { /* the entries of a request */
    struct mo_span *v;
    uint64_t *ids;
    size_t n;
};

/* Sends one request with these entries. quiet: tools must not be used. */
int mo_turn_send(struct chat *c, const struct shown *s, bool quiet,
                 const struct mo_llm_cb *cb, struct mo_err *e);
void mo_turn_usage(struct chat *c, const struct mo_llm_usage *u); /* adds it */
/* Stores a summary and asks again. Takes doc; NULL: out of memory. */
void mo_turn_summary(struct chat *c, struct mo_buf *doc);

/* --- context_window.c ---------------------------------------------------- */

/* Asks the model with the part of the conversation that fits. */
int mo_context_window_ask(struct chat *c, const struct mo_llm_cb *cb,
                          struct mo_err *e);
/* If the conversation is too long, or the provider refused it as too long,
 * replaces older turns by a summary: returns true, and mo_turn_summary()
 * follows. False: it fits, or nothing older is left. */
bool mo_context_window_shrink(struct chat *c, bool refused);
bool mo_context_window_is_over(const struct chat *c);

/* Bytes of a request with the current conversation, tools included. */
uint64_t mo_context_window_bytes(const struct chat *c);

/* --- turn_budget.c ------------------------------------------------------- */

/* True if anything limits the turns of the person who pays for this chat. */
bool mo_turn_budget_is_limited(const struct chat *c);
/* Before a model request. True: go on now. False: mo_turn_reserved() follows,
 * or the turn was ended. */
bool mo_turn_budget_reserve(struct chat *c);
/* After a model request, once: with its reply, or with the code of its
 * failure. */
void mo_turn_budget_used(struct chat *c, const struct mo_llm_reply *r);
void mo_turn_budget_failed(struct chat *c, const char *code);
/* A request that failed so costs nothing. */
bool mo_turn_budget_is_free(const char *code);
void mo_turn_budget_end(struct chat *c); /* the turn is over */
/* Another model request during the turn: reserves a share for it, and settles
 * it. used NULL: nothing was used. */
enum mo_budget_answer mo_turn_budget_share(struct chat *c,
                                           const struct mo_usage *most,
                                           struct mo_budget_share *share,
                                           struct mo_budget_ask *a,
                                           struct mo_budget_no *no);
void mo_turn_budget_settle(struct chat *c, struct mo_budget_share *share,
                           const struct mo_usage *used);
unsigned mo_turn_output_max(const struct chat *c); /* tokens of an answer */

/* --- write_ahead.c: stores messages and results --------------------------
 *
 * The answer is not used before the entry is stored (write_ahead.c explains
 * why this is safe). Limit: MO_CHAT_QUEUE_MAX waiting messages. */

/* If idle, starts a turn with the next message. */
void mo_turn_next(struct chat *c);
void mo_turn_said(struct chat *c); /* its images are read: stores it */
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
void mo_chat_queue_restored(struct chat *c); /* all of it is read */
void mo_chat_queue_drop(struct chat *c);

#endif
