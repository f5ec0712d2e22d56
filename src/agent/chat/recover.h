/* recover.h - restores the calls of an interrupted turn after a restart. */
#ifndef MO_AGENT_CHAT_RECOVER_H
#define MO_AGENT_CHAT_RECOVER_H

#include "base/err.h"
#include "codec/json/json.h"

struct chat;

/* Looks up the calls of the last entry in the store. mo_chat_calls_recovered()
 * follows, or mo_chat_fail(). */
int mo_chat_calls_recover(struct chat *c, struct mo_json entry,
                          struct mo_err *e);

#endif
