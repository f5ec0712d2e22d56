/* chat_log.h - lines of the log about turns and their calls, room "agent".
 *
 * A line names session, turn, call, server, tool and who decided. It never has
 * a message, an argument or a result. */
#ifndef MO_AGENT_CHAT_CHAT_LOG_H
#define MO_AGENT_CHAT_CHAT_LOG_H

#include "base/log.h"

struct chat;
struct call;

/* ns: how long it took, or 0. why: the error, or NULL. */
void mo_chat_log(const struct chat *c, enum mo_level lv, uint64_t ns,
                 const struct mo_err *why, const char *what);
void mo_chat_log_call(const struct call *k, enum mo_level lv, uint64_t ns,
                      const char *what);
/* A rule or a person decided: it runs, waits for a person, or is refused. */
void mo_chat_log_decision(const struct call *k);
void mo_chat_log_outcome(const struct call *k); /* it ran */

#endif
