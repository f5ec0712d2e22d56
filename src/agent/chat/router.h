/* router.h - replaces a call of `execute` by the tool it would run. */
#ifndef MO_AGENT_CHAT_ROUTER_H
#define MO_AGENT_CHAT_ROUTER_H

#include "codec/json/json.h"

struct call;

bool mo_chat_router_is_run(const struct call *k); /* a call of execute? */
/* Replaces tool and arguments by those execute would use. If it would run
 * nothing, nothing changes. */
void mo_chat_router_choose(struct call *k);
/* Replaces the tool by that of another server. MO_ENOTFOUND: it has no tool of
 * that name, and nothing changes. */
int mo_chat_router_swap(struct call *k, struct mo_span server,
                        struct mo_span tool);
/* Restores the replacement after a restart. */
void mo_chat_router_recall(struct call *k, struct mo_json kept);
void mo_chat_router_free(struct call *k);
/* The description the tool was found by, and the confidence. Empty: the tool
 * was named. */
struct mo_span mo_chat_router_words(const struct call *k, float *sure);

#endif
