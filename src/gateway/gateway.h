/* gateway.h - many MCP servers behind one endpoint.
 *
 * The gateway owns the servers (up.h: started when first wanted, stopped when
 * idle), what they offer (catalog.h: one merged list under names a client can
 * use, kept on disk), and the calls that cross it (flight.h). It is the
 * handler of any number of endpoints; which transports those have is not its
 * business, nor how a server is reached: the caller's dial makes the link.
 *
 * A message that crosses is not rebuilt: names, ids, tokens and cursors are
 * rewritten, everything else stays the bytes it was.
 *
 * Who asks is told apart by a client's connection or session where it has one,
 * else by the caller. What a server wants from a client (sampling,
 * elicitation, roots) goes to the client of the call it belongs to and to
 * nobody else; if nobody can say whose it is, it is refused.
 *
 * Not known here: configuration files, boxes, approval by people. */
#ifndef MO_GATEWAY_GATEWAY_H
#define MO_GATEWAY_GATEWAY_H

#include "mcp/conn.h"
#include "mcp/endpoint.h"

#define MO_GW_SERVERS_MAX 1024
#define MO_GW_NAME_MAX    65 /* of a tool or prompt as exposed, with its NUL */
#define MO_GW_WHO_MAX     192

struct mo_gateway;
struct mo_up;
struct mo_catalog;

enum mo_gw_prefix {
    MO_GW_PREFIX_COLLISION, /* only what two servers both have */
    MO_GW_PREFIX_ALWAYS,
    MO_GW_PREFIX_NEVER, /* the first in order wins; others are hidden */
};

enum mo_gw_expose {
    MO_GW_ALL,    /* every tool by its name */
    MO_GW_SEARCH, /* four tools that find and run the others (four.h) */
    MO_GW_AUTO,   /* all while they are few */
};

/* A server. Texts are copied. */
struct mo_gw_server {
    const char *name;
    const char *prefix;                 /* NULL: the name; "": never prefixed */
    const char *description, *keywords; /* for the router; may be NULL */
    char digest[65];    /* of all that makes it what it is: on a reload a
                         * server of another digest is restarted */
    bool per_session;   /* else shared by everybody */
    unsigned instances; /* shared: at most so many at once; 0: 1 */
    uint64_t start_ms;  /* 0: MO_CONN_OPEN_MS */
    uint64_t call_ms;   /* without a sign of life; 0: MO_CONN_IDLE_MS */
    uint64_t stop_ms;   /* stopped after so long without a call; 0: never */
    enum mo_conn_mode mode;
};

struct mo_gateway_opts {
    struct mo_loop *loop;
    enum mo_gw_prefix prefix;
    enum mo_gw_expose expose;
    unsigned few;                 /* tools, for MO_GW_AUTO; 0: FOUR_FEW */
    struct mo_span table, pieces; /* the router's vectors (route/vector.h), */
                                  /* borrowed; empty: words alone */
    const char *cache;  /* directory for what servers offer; NULL: none */
    uint64_t away_ms;   /* for a modern client to come back with its answers to
                         * a server's questions; 0: 15 min */
    uint64_t gather_ms; /* for more questions of a legacy server, before a
                         * modern client is asked; 0: GW_GATHER_MS */
    /* Make a link to that server and give it to mo_conn_dialed(). `who` is
     * the session it is for, empty when it is shared. */
    int (*dial)(void *ctx, const char *server, struct mo_span who,
                struct mo_conn *c, struct mo_err *e);
    /* What was learnt of a server's era by asking it; may be NULL. */
    struct mo_conn_verdict (*verdict)(void *ctx, const char *server);
    void (*learnt)(void *ctx, const char *server, struct mo_conn_verdict v);
    /* A server's state has changed; may be NULL. */
    void (*on_state)(void *ctx, const char *server);
    void *ctx;
};

int mo_gateway_new(const struct mo_gateway_opts *o, struct mo_gateway **out,
                   struct mo_err *e);
/* Children are gone when gone(ctx) comes. Endpoints must be freed before. */
void mo_gateway_close(struct mo_gateway *g, void (*gone)(void *ctx), void *ctx);

/* The servers there are from now on, in this order. Those that stay as they
 * were (same digest) keep running; calls to one that goes end with an error. */
int mo_gateway_servers(struct mo_gateway *g, const struct mo_gw_server *v,
                       size_t n, struct mo_err *e);

/* What is to be seen of them, by number; NULL: there is none. */
size_t mo_gateway_count(const struct mo_gateway *g);
struct mo_up *mo_gateway_up(const struct mo_gateway *g, size_t i);
const struct mo_catalog *mo_gateway_catalog(const struct mo_gateway *g);

/* Fill in handler, schema, task, watch, level, caps and ctx. An endpoint made
 * with it is told of changes from mo_gateway_serve() to mo_gateway_unserve().
 */
void mo_gateway_endpoint(struct mo_gateway *g, struct mo_endpoint_opts *o);
int mo_gateway_serve(struct mo_gateway *g, struct mo_endpoint *ep);
void mo_gateway_unserve(struct mo_gateway *g, struct mo_endpoint *ep);

#endif
