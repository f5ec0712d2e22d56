/* overview.h - lists all open conversations of this process: what they cost and
 * which calls wait for a person.
 *
 * Conversations that nobody opened since the program started are not included;
 * they are only in the store. */
#ifndef MO_AGENT_CHAT_OVERVIEW_H
#define MO_AGENT_CHAT_OVERVIEW_H

#include "agent/chat/chat.h"
#include "agent/chat/tally.h"

const struct mo_tally *mo_agent_tally(const struct mo_agent *a);

struct mo_chat_look { /* one conversation; valid during the callback */
    const char *session, *provider;
    struct mo_span model, title;
    struct mo_llm_usage spent; /* of the entries loaded here */
    unsigned members;
    bool busy; /* a turn is running */
};
typedef void mo_chat_look_fn(void *ctx, const struct mo_chat_look *c);
void mo_agent_chats(const struct mo_agent *a, mo_chat_look_fn *each, void *ctx);

struct mo_waiting { /* a pending call */
    const char *session, *call;
    struct mo_span title; /* title of the conversation; may be empty */
    struct mo_span server, tool;
    uint64_t since, expires; /* wall ms */
};
typedef void mo_waiting_fn(void *ctx, const struct mo_waiting *w);
void mo_agent_waiting(const struct mo_agent *a, mo_waiting_fn *each, void *ctx);

#endif
