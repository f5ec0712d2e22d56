/* owner.h - adds the owner's name to the audit rows of a conversation. */
#ifndef MO_AGENT_CHAT_OWNER_H
#define MO_AGENT_CHAT_OWNER_H

#include "store/store.h"

struct chat;

/* Copies the writes to out; audit rows get the owner's name. docs holds the new
 * rows and must live as long as out. */
int mo_chat_owner_mark(const struct chat *c, const struct mo_write *v, size_t n,
                       struct mo_write *out, struct mo_buf *docs);

#endif
