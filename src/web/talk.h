/* talk.h - conversations over Socket.IO.
 *
 * One socket is one member of one session's chat. Events of the agent are sent
 * unchanged; an event of the client becomes a call of chat.h, and its ack
 * carries the answer: {ok:true,...} or {ok:false,code,message}.
 *
 * A client names its session in the handshake (`sessionId` and `model`, in
 * `auth` or in the query; `auth.token` may be a key of the model's provider).
 * Without one it gets an `error` event and is disconnected, as older clients
 * expect.
 *
 * With `read` in the handshake, and always for viewers, the socket follows a
 * session that is shared with the person (people/share.h): it gets the events,
 * and may at most decide about calls. It opens nothing.
 *
 * A person (gate.h) can join only their own sessions. Decisions that affect
 * everybody ("always", a changed definition of a tool) are reserved for the
 * operator. */
#ifndef MO_WEB_TALK_H
#define MO_WEB_TALK_H

#include "agent/chat/chat.h"
#include "base/list.h"
#include "web/gate.h"
#include "web/siod.h"

#define MO_TALK_EARLY_MAX 16 /* events of one client before we are ready */

struct mo_talk {
    struct mo_agent *agent;     /* NULL: not there yet; clients wait */
    struct mo_list waiting;     /* private */
    char why[240];              /* there will be none: clients are told */
    const struct mo_gate *gate; /* who has which token; or NULL */
};

/* Why there is no agent; NULL: there is one. ctx: struct mo_talk. */
const char *mo_talk_why(void *ctx);

/* Fill in the callbacks; t must outlive the Socket.IO server. */
void mo_talk_opts(struct mo_siod_opts *o, struct mo_talk *t);

/* The agent is there (or never will be, and why): who waits is served, and
 * so is what they have said meanwhile. */
void mo_talk_begin(struct mo_talk *t, struct mo_agent *agent,
                   const struct mo_err *why);

#endif
