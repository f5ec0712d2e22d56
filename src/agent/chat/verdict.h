/* verdict.h - which calls may run, and with which arguments. */
#ifndef MO_AGENT_CHAT_VERDICT_H
#define MO_AGENT_CHAT_VERDICT_H

#include "agent/llm/llm.h"
#include "codec/json/json.h"
#include "policy/policy.h"

struct call;
struct chat;

#define REASON_MAX ((size_t)8 * 1024)

/* Adds the calls of a reply to the chat, each with its verdict. */
int mo_chat_calls_take(struct chat *c, const struct mo_llm_reply *r,
                       struct mo_err *e);
/* Rejects a call. The text is the result the model gets. */
void mo_chat_call_refuse(struct call *k, const char *by, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));
struct mo_verdict mo_chat_call_verdict(const struct call *k);
/* The call in the form that policy/policy.h judges. */
struct mo_policy_call mo_chat_call_for_policy(const struct call *k);
/* After the rules changed: rejects pending calls that are denied now. */
void mo_chat_calls_judge_again(struct chat *c);
void mo_chat_calls_count(struct chat *c); /* numbers the pending calls */
void mo_chat_calls_digest(struct call *k);
/* Replaces the arguments; on failure nothing changes. */
int mo_chat_call_take_args(struct call *k, struct mo_json args,
                           struct mo_err *e);

#endif
