/* chat_write.h - writes of a chat to the store and to the log.
 *
 * chat->writes counts the writes under way; the chat ends after the last. */
#ifndef MO_AGENT_CHAT_CHAT_WRITE_H
#define MO_AGENT_CHAT_CHAT_WRITE_H

#include "audit/audit_row.h"
#include "base/log.h"

struct call;
struct chat;

/* Writes one batch under the session's fence. done(c, arg, why) is called once,
 * later; if MO_E* is returned, never. */
typedef void chat_written(struct chat *c, void *arg, const struct mo_err *why);
int mo_chat_write(struct chat *c, const struct mo_write *v, size_t n,
                  chat_written *done, void *arg, struct mo_err *e);
/* Writes one audit row. Nothing waits for it, and a failure has no effect. */
void mo_chat_audit(struct chat *c, const struct mo_audit_row *row);

/* Lines of the log about turns and their calls, room "agent". A line names
 * session, turn, call, server, tool and who decided. It never has a message, an
 * argument or a result. ns: how long it took, or 0. why: the error, or NULL. */
void mo_chat_log(const struct chat *c, enum mo_level lv, uint64_t ns,
                 const struct mo_err *why, const char *what);
void mo_chat_log_call(const struct call *k, enum mo_level lv, uint64_t ns,
                      const char *what);
/* A rule or a person decided: it runs, waits for a person, or is refused. */
void mo_chat_log_decision(const struct call *k);
void mo_chat_log_outcome(const struct call *k); /* it ran */

#endif
