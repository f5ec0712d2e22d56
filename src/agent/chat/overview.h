/* overview.h - what goes on in all conversations of this process, for a person
 * who looks at them from above: what they have cost, and whom they wait for.
 *
 * Only those that are open here are known: one that nobody has opened since
 * the program started waits in the store, and is seen when it is opened. */
#ifndef MO_AGENT_CHAT_OVERVIEW_H
#define MO_AGENT_CHAT_OVERVIEW_H

#include "agent/chat/chat.h"
#include "agent/chat/tally.h"

const struct mo_tally *mo_agent_tally(const struct mo_agent *a);

struct mo_chat_look { /* one conversation; borrowed during the call */
    const char *session, *provider;
    struct mo_span model, title;
    struct mo_llm_usage spent; /* in what is known of it here */
    unsigned members;
    bool busy; /* a turn is under way */
};
void mo_agent_chats(const struct mo_agent *a,
                    void (*each)(void *ctx, const struct mo_chat_look *c),
                    void *ctx);

struct mo_waiting { /* a call that waits for a person */
    const char *session, *call;
    struct mo_span title; /* of the conversation, may be empty */
    struct mo_span server, tool;
    uint64_t since, expires; /* wall ms */
};
void mo_agent_waiting(const struct mo_agent *a,
                      void (*each)(void *ctx, const struct mo_waiting *w),
                      void *ctx);

#endif
