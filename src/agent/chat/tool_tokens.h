/* tool_tokens.h - what tools cost a request to a model, and what the same calls
 * would have cost as plain calls of tools that are all offered.
 *
 * Both are estimates by the same measure, MO_TOKEN_BYTES bytes a token: only
 * the provider counts exactly, and only the sum of a request. They are stored
 * in the entry of the reply, so every reader sees the same:
 *
 *   "toolTokens":{"sent":N,"plain":N}
 *
 *   sent   the definitions that were offered, the words about scripts, and the
 *          calls of this turn with their results, those of a script being its
 *          code and its output
 *   plain  the definitions of all tools but run_script; for a script its calls
 *          and their results; nothing for a search
 *
 * A request sends the calls and results of its turn again; a call is also
 * counted once as output of the model, with the request that follows it. A
 * turn of plain calls is taken to need as many requests, so calls that depend
 * on each other would have cost more than `plain`. Results of earlier turns are
 * not counted. An entry whose numbers are equal has no such member. */
#ifndef MO_AGENT_CHAT_TOOL_TOKENS_H
#define MO_AGENT_CHAT_TOOL_TOKENS_H

#include "base/str.h"

#define MO_TOKEN_BYTES 4u

struct chat;

struct mo_tool_tokens {
    uint64_t sent, plain;
};

/* Of the last request, before its reply is appended. */
struct mo_tool_tokens mo_tool_tokens_count(const struct chat *c);
/* Adds the member to the document of a reply, an object. */
void mo_tool_tokens_put(struct mo_buf *doc, const struct mo_tool_tokens *t);

#endif
