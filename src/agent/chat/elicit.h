/* elicit.h - questions of servers to the person during a call.
 *
 * Ownership: an ask passed in belongs to elicit.c until it is answered. */
#ifndef MO_AGENT_CHAT_ELICIT_H
#define MO_AGENT_CHAT_ELICIT_H

#include "codec/json/json.h"
#include "mcp/client/conn.h"
#include "session/session.h"

struct call;
struct chat;
struct mo_member;

struct elicit_view { /* a question, as members see it */
    const char *id, *call;
    struct mo_span server;
    bool page;
    struct mo_json message, what; /* what: the form, or the URL */
    uint64_t expires;
};

struct sampling_view { /* a request for the model, as members see it */
    const char *id, *call, *state;
    struct mo_span server;
    struct mo_json params; /* of the server, or as the person changed it */
    bool is_edited;
    unsigned tokens;
    struct mo_span text; /* the answer, in review */
    uint64_t expires;
};

/* A question from the box; ctx is the chat. */
void mo_chat_elicit_box(void *ctx, struct mo_hold *h, struct mo_ask *a);
/* A question from a server behind the gateway. c NULL: the chat was freed. */
void mo_chat_elicit_ask(struct chat *c, const struct mo_conn *conn,
                        struct mo_ask *a);
/* The server withdrew it. c NULL: the chat was freed. */
void mo_chat_elicit_gone(struct chat *c, struct mo_ask *a);
void mo_chat_elicit_drop(struct call *k);           /* ends its questions */
void mo_chat_elicit_send_open(struct mo_member *m); /* sends the open ones */

#endif
