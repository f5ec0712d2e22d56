/* network.h - hosts that the box of a conversation asks about, for its members.
 *
 * The questions are those of policy/connections.h. Members get them as
 * "network:approval_required" and "network:resolved", and answer as they answer
 * calls: the id of a question is a callId. */
#ifndef MO_AGENT_CHAT_NETWORK_H
#define MO_AGENT_CHAT_NETWORK_H

#include "agent/chat/chat_priv.h"

void mo_chat_network_watch(struct mo_agent *a);   /* from now on */
void mo_chat_network_unwatch(struct mo_agent *a); /* not any more */
/* Sends the open questions to a new member. */
void mo_chat_network_send_open(struct mo_member *m);
/* False: it is not about such a question. Otherwise acknowledged. */
bool mo_chat_network_decide(struct mo_member *m, const struct mo_decision *d,
                            struct ack *ack);

#endif
