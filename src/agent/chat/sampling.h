/* sampling.h - a server asks for an answer of the model during a call.
 *
 * The person sees the whole request (the server, its messages and instructions,
 * the model, the longest answer), may change its texts and the longest answer,
 * and decides. An approved request goes to the model of the conversation: as it
 * was approved, without the conversation and without tools. The audit log has
 * the digest of what was sent, and of what the server asked for if that was
 * changed. The person sees the answer before the server does, and may keep it
 * back.
 *
 *   asked --approve--> running --answer--> review --approve--> answered
 *
 * A request belongs to one running call, as questions do (elicit.c). It is kept
 * in memory only: it ends with its call.
 *
 * Limits: MO_SAMPLES_MAX open requests of a call, MO_SAMPLE_MESSAGES messages
 * and MO_SAMPLE_BYTES bytes each; as many tokens as the server asks for, but no
 * more than the longest answer of the configuration; the budget of the person
 * who pays for the conversation. A request with tools is refused: none are
 * declared. */
#ifndef MO_AGENT_CHAT_SAMPLING_H
#define MO_AGENT_CHAT_SAMPLING_H

#include "agent/chat/chat.h"
#include "mcp/client/conn.h"

#define MO_SAMPLES_MAX     4
#define MO_SAMPLE_MESSAGES 64
#define MO_SAMPLE_BYTES    ((size_t)1024 * 1024)

struct ack;
struct call;
struct chat;

/* Takes the request. NULL, or the reason why it is refused. */
const char *mo_chat_sampling_take(struct call *k, struct mo_ask *a);
/* The server withdrew it. False: it is none of these. */
bool mo_chat_sampling_gone(struct chat *c, const struct mo_ask *a);
void mo_chat_sampling_drop(struct call *k);           /* ends its requests */
void mo_chat_sampling_send_open(struct mo_member *m); /* sends the open ones */
/* A member's answer. False: there is no such request. */
bool mo_chat_sampling_answer(struct mo_member *m, const struct mo_answer *a,
                             struct ack *ack);

/* The entries of a request for a model, comma-joined (pure); returns how many,
 * or MO_EINVAL if the messages are not of the protocol. */
int mo_sampling_entries(struct mo_json messages, struct mo_buf *out,
                        size_t ends[MO_SAMPLE_MESSAGES], struct mo_err *e);

/* The request as it is sent: {messages, systemPrompt?, modelPreferences?,
 * maxTokens} (pure). edit: {systemPrompt?, texts?, maxTokens?} of the person,
 * or empty; texts: one for each text of the messages, in order. tokens: the
 * longest answer, which an edit changes to `most` at most. MO_EINVAL: the edit
 * is not valid. */
int mo_sampling_edit(struct mo_json params, struct mo_span edit, unsigned most,
                     unsigned *tokens, struct mo_buf *out, struct mo_err *e);

#endif
