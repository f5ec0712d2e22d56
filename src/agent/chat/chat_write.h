/* chat_write.h - writes of a chat to the store.
 *
 * chat->writes counts the writes under way; the chat ends after the last. */
#ifndef MO_AGENT_CHAT_CHAT_WRITE_H
#define MO_AGENT_CHAT_CHAT_WRITE_H

#include "audit/audit_row.h"

struct chat;

/* Writes one batch under the session's fence. done(c, arg, why) is called once,
 * later; if MO_E* is returned, never. */
typedef void chat_written(struct chat *c, void *arg, const struct mo_err *why);
int mo_chat_write(struct chat *c, const struct mo_write *v, size_t n,
                  chat_written *done, void *arg, struct mo_err *e);
/* Writes one audit row. Nothing waits for it, and a failure has no effect. */
void mo_chat_audit(struct chat *c, const struct mo_audit_row *row);

#endif
