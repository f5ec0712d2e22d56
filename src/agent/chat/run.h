/* run.h - runs an approved call in the box, on a server or in the gateway.
 *
 * Every call that is started gets exactly one outcome (mo_chat_call_outcome()).
 * Limit: AT_ONCE concurrent calls per chat; the others wait. */
#ifndef MO_AGENT_CHAT_RUN_H
#define MO_AGENT_CHAT_RUN_H

#include "base/err.h"
#include "base/str.h"
#include "loop/loop.h"

struct call;
struct chat;

void mo_chat_call_run(struct call *k);   /* now, or when its turn comes */
void mo_chat_calls_next(struct chat *c); /* a call ended: runs waiting ones */

/* Reads the tool list of a server; then mo_stand_in_list_read() follows, or the
 * call is sent. 0 or MO_ENOMEM. */
int mo_chat_call_check_tool(struct call *k, struct mo_span server,
                            struct mo_err *e);
void mo_chat_call_send(struct call *k); /* to its tool's server */
/* Stops reading the list and ends the call. */
void mo_chat_call_stop_check(struct call *k);
/* Restarts the idle timer, or pauses it while a question is open. */
void mo_chat_call_arm_idle(struct call *k);
void mo_chat_call_idle_timeout(struct mo_timer *t); /* its callback */

#endif
