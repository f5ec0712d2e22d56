/* ep_talk.h - the endpoint of ep_kit.h on a stream of lines, and its client.
 *
 * say() sends lines, hear() returns all lines received until a ping was
 * answered. The macros at the end spell requests and their answers. */
#ifndef MO_EP_TALK_H
#define MO_EP_TALK_H

#include "ep_kit.h"
#include "mcp/server/ep_stdio.h"

struct talk {
    struct kit k;
    struct end me; /* the client */
    struct mo_ep_stdio *x;
    bool closed;
};

void talk_closed(void *ctx, const struct mo_err *why);
bool flag_up(void *ctx);
int talk_open(struct talk *t, struct mo_loop *l,
              const struct mo_endpoint_limits *limits);
void talk_close(struct talk *t);
void say(struct talk *t, const char *lines);

/* Sends a ping and returns all lines received before its answer. */
const char *hear(struct talk *t);

#define INIT(v)                                                                \
    "{\"jsonrpc\":\"2.0\",\"id\":0,\"method\":\"initialize\",\"params\":"      \
    "{\"protocolVersion\":\"" v "\",\"capabilities\":{\"elicitation\":{}},"    \
    "\"clientInfo\":{\"name\":\"t\",\"version\":\"1\"}}}\n"                    \
    "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/initialized\"}\n"

#define CALL(id, name)                                                         \
    "{\"jsonrpc\":\"2.0\",\"id\":" id ",\"method\":\"tools/call\","            \
    "\"params\":{\"name\":\"" name "\"}}\n"

#define MCALL(id, name, more)                                                  \
    "{\"jsonrpc\":\"2.0\",\"id\":" id ",\"method\":\"tools/call\","            \
    "\"params\":{\"name\":\"" name "\"," more "}}\n"

#define RES(id, r)    "{\"jsonrpc\":\"2.0\",\"id\":" id ",\"result\":" r "}\n"
#define ERR(id, c, m) ERRD(id, c, m "\"")

#define ERRD(id, c, m)                                                         \
    "{\"jsonrpc\":\"2.0\",\"id\":" id ",\"error\":{\"code\":" c                \
    ",\"message\":\"" m "}}\n"

#endif
