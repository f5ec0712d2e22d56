/* stand_in.h - runs a call on a stand-in when its server is down. */
#ifndef MO_AGENT_CHAT_STAND_IN_H
#define MO_AGENT_CHAT_STAND_IN_H

#include "codec/json/json.h"

struct call;

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
