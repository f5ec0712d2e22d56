/* turn.h - the states of a turn: asking the model and storing its reply; and
 * the part of the conversation that is sent to the model.
 *
 * Every function may end the turn. Errors are sent to the members as events;
 * they never end the chat. */
#ifndef MO_AGENT_CHAT_TURN_H
#define MO_AGENT_CHAT_TURN_H

#include "agent/llm/llm.h"

struct chat;

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
void mo_turn_begin(struct chat *c);   /* gives it an id */
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

#endif
