/* router.h - replaces the tool of a call: `execute` by the tool it would run,
 * the tool of a server that is down by that of a stand-in. */
#ifndef MO_AGENT_CHAT_ROUTER_H
#define MO_AGENT_CHAT_ROUTER_H

#include "codec/json/json.h"

struct call;

bool mo_chat_router_is_run(const struct call *k); /* a call of execute? */
/* Replaces tool and arguments by those execute would use. If it would run
 * nothing, nothing changes. */
void mo_chat_router_choose(struct call *k);
/* Restores the replacement after a restart. */
void mo_chat_router_recall(struct call *k, struct mo_json kept);
void mo_chat_router_free(struct call *k);
/* The description the tool was found by, and the confidence. Empty: the tool
 * was named. */
struct mo_span mo_chat_router_words(const struct call *k, float *sure);

/* The server of the call is down. True: a stand-in is being checked. */
bool mo_stand_in_next(struct call *k, const char *why);
bool mo_stand_in_is_checking(const struct call *k);
void mo_stand_in_list_read(struct call *k); /* the stand-in's list was read */
/* Why the first server is down; or `other`. */
const char *mo_stand_in_why(const struct call *k, const char *other);
/* Adds a note to the result: which server ran the call. */
void mo_stand_in_note(struct call *k);
/* After a restart: true if the call was pending for another server. */
bool mo_stand_in_recall(struct call *k, struct mo_json kept);
void mo_stand_in_free(struct call *k);

#endif
