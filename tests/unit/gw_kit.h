/* gw_kit.h - a gateway between clients and servers that exchange lines, all
 * on one loop.
 *
 * A server is the scripted peer of conn_kit.h; each dial makes the next one,
 * with the rules of its name. A client is a stream to the gateway's endpoint
 * that records every line. tell() sends a line as a client, hears() waits for
 * text at a client, arrives() for text at a server, settle() delivers
 * everything in transit. */
#ifndef MO_GW_KIT_H
#define MO_GW_KIT_H

#include "conn_kit.h"
#include "gateway/catalog/catalog.h"
#include "gateway/gateway.h"
#include "gateway/upstream/upstream.h"
#include "mcp/server/ep_stdio.h"
#include "mo_net.h"

#define CLIENTS 2
#define PEERS   8

struct world;

struct client {
    struct world *w;
    struct end me;
    struct mo_ep_stdio *x;
    bool closed;
};

struct world {
    struct mo_loop *l;
    struct mo_gateway *g;
    struct mo_endpoint *ep;
    struct client clients[CLIENTS];
    size_t nclients;
    struct peer peers[PEERS];
    size_t npeers;
    const struct rule *rules[PEERS]; /* of each dial */
    char names[PEERS][16];           /* of the servers that were dialled */
    const char *refused; /* a server that cannot be dialled; or NULL */
    bool no_dial, gone;
    uint64_t away_ms, gather_ms;
    struct mo_approval_hooks judge;
};

#define INIT_OK(caps)                                                          \
    {                                                                          \
        "initialize",                                                          \
            "{\"jsonrpc\":\"2.0\",\"id\":$id,\"result\":"                      \
            "{\"protocolVersion\":\"2025-11-25\",\"capabilities\":" caps ","   \
            "\"serverInfo\":{\"name\":\"fake\",\"version\":\"1\"}}}"           \
    }

#define LIST(method, key, items)                                               \
    {                                                                          \
        method, "{\"jsonrpc\":\"2.0\",\"id\":$id,\"result\":{\"" key           \
                "\":[" items "]}}"                                             \
    }

bool flag_is_up(void *ctx);
void client_close(struct client *c);
int world_open(struct world *w, struct mo_loop *l, const struct mo_gw_server *v,
               size_t n);
void world_close(struct world *w);

/* --- messages ------------------------------------------------------------ */

void tell(struct client *c, const char *line);

struct seen {
    struct mo_buf *in;
    const char *text;
};

bool has_seen(void *ctx);

/* A macro, so that a failure names its line and the missing text. */
#define hears(c, what)                                                         \
    do {                                                                       \
        struct seen seen_ = {&(c)->me.got, (what)};                            \
        if (!mo_loop_until((c)->w->l, has_seen, &seen_, WAIT_MS))              \
            fail_msg("line %d: '%s' did not come; got: %s", __LINE__, (what),  \
                     mo_buf_cstr(&(c)->me.got));                               \
    } while (0)

#define arrives(w_, p, what)                                                   \
    do {                                                                       \
        struct seen seen_ = {&(p)->log, (what)};                               \
        if (!mo_loop_until((w_)->l, has_seen, &seen_, WAIT_MS))                \
            fail_msg("line %d: server did not get '%s'; got: %s", __LINE__,    \
                     (what), mo_buf_cstr(&(p)->log));                          \
    } while (0)

bool heard(const struct client *c, const char *text);

/* Delivers everything in transit: waits for a ping and its answer. */
void settle(struct client *c);

#define HELLO(caps)                                                            \
    "{\"jsonrpc\":\"2.0\",\"id\":0,\"method\":\"initialize\",\"params\":"      \
    "{\"protocolVersion\":\"2025-11-25\",\"capabilities\":" caps ","           \
    "\"clientInfo\":{\"name\":\"t\",\"version\":\"1\"}}}\n"                    \
    "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/initialized\"}"

void hello(struct client *c, const char *init);

#endif
