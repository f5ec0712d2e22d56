/* gateway.h - many MCP servers behind one endpoint.
 *
 * The gateway owns the servers (gateway/upstream/upstream.h: started when first
 * wanted, stopped when idle), what they offer (gateway/catalog/catalog.h: one
 * merged list under names a client can use, kept on disk), and the calls that
 * cross it (gateway/call/forwarded_call.h). It is the handler of any number of
 * endpoints; which transports those have is not its business, nor how a server
 * is reached: the caller's dial makes the link.
 *
 * A message that crosses is not rebuilt: names, ids, tokens and cursors are
 * rewritten, everything else stays the bytes it was.
 *
 * Who asks is told apart by a client's connection or session where it has one,
 * else by the caller. What a server wants from a client (sampling,
 * elicitation, roots) goes to the client of the call it belongs to and to
 * nobody else; if nobody can say whose it is, it is refused.
 *
 * Whether a call may cross is the owner's to say (gateway/call/case.h).
 *
 * Not known here: configuration files, boxes, rules. */
#ifndef MO_GATEWAY_GATEWAY_H
#define MO_GATEWAY_GATEWAY_H

#include "gateway/call/case.h"
#include "mcp/client/conn.h"
#include "mcp/server/endpoint.h"

#define MO_GW_SERVERS_MAX 1024
#define MO_GW_NAME_MAX    65 /* of a tool or prompt as exposed, with its NUL */
#define MO_GW_WHO_MAX     192
#define MO_GW_TOOLS_MAX   10000 /* that are treated in a manner of their own */
#define MO_GW_RETRIES     1     /* unless a server says otherwise */

struct mo_gateway;
struct mo_upstream;
struct mo_catalog;

enum mo_gw_prefix {
    MO_GW_PREFIX_COLLISION, /* only what two servers both have */
    MO_GW_PREFIX_ALWAYS,
    MO_GW_PREFIX_NEVER, /* the first in order wins; others are hidden */
};

enum mo_gw_expose {
    MO_GW_ALL,    /* every tool by its name */
    MO_GW_SEARCH, /* four tools that find and run the others
                     (gateway/router/meta_tools.h) */
    MO_GW_AUTO,   /* all while they are few */
};

struct mo_gw_texts {
    const char *const *v;
    size_t n;
};

/* How one tool is treated (gateway/upstream/server_overrides.h). */
struct mo_gw_tool {
    const char *name;            /* its server's own */
    const char *rename;          /* called so instead; NULL: as it is */
    const char *describe;        /* described so instead; likewise */
    struct mo_gw_texts fallback; /* "server" or "server/tool"; none: its
                                  * server's */
    bool hide;                   /* neither listed, found nor callable */
    bool idempotent;             /* may be repeated, whatever it says */
    uint64_t call_ms;            /* 0: its server's */
    int retries;                 /* -1: its server's */
    int64_t result_bytes;        /* -1: its server's; 0: whole */
};

/* A server. Texts are copied. */
struct mo_gw_server {
    const char *name;
    const char *prefix;                 /* NULL: the name; "": never prefixed */
    const char *description, *keywords; /* for the router; may be NULL */
    const char *categories;             /* and tags, a line each; may be NULL */
    char digest[65];    /* of all that makes it what it is: on a reload a
                         * server of another digest is restarted */
    bool per_session;   /* else shared by everybody */
    unsigned instances; /* shared: at most so many at once; 0: 1 */
    uint64_t start_ms;  /* 0: MO_CONN_OPEN_MS */
    uint64_t call_ms;   /* without a sign of life; 0: MO_CONN_IDLE_MS */
    uint64_t stop_ms;   /* stopped after so long without a call; 0: never */
    enum mo_conn_mode mode;
    unsigned max_calls; /* shared: under way at once; others wait and take
                         * turns; 0: as many as connections take */
    bool off;           /* is not used, only known: for saying why not */
    /* What a change of needs no restart (gateway/upstream/server_overrides.h).
     */
    struct mo_gw_texts fallback; /* servers that stand in for it */
    int retries;          /* of what may be repeated; -1: MO_GW_RETRIES */
    int64_t result_bytes; /* -1: as the way it is called; 0: whole */
    const struct mo_gw_tool *tools;
    size_t ntools;
};

struct mo_gateway_opts {
    struct mo_loop *loop;
    enum mo_gw_prefix prefix;
    enum mo_gw_expose expose;
    unsigned few;                 /* tools, for MO_GW_AUTO; 0: META_TOOLS_FEW */
    unsigned most;                /* children of all servers; 0: the usual */
    struct mo_span table, pieces; /* the router's vectors (route/vector.h), */
                                  /* borrowed; empty: words alone */
    const char *cache; /* directory for what servers offer; NULL: none */
    const char *learning_file; /* file of what is usually meant; NULL: none */
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
    /* Every message between us and a server, borrowed; child: which of its
     * connections. May be NULL. */
    void (*tap)(void *ctx, const char *server, uint64_t child, bool to_server,
                struct mo_span text);
    void *tap_ctx;
    /* A line of a server that is no message; may be NULL. */
    void (*noise)(void *ctx, const char *server, struct mo_span line);
    /* A server's state has changed; may be NULL. */
    void (*on_state)(void *ctx, const char *server);
    void *ctx;
    struct mo_gw_judge judge; /* of calls; with a context of its own */
};

int mo_gateway_new(const struct mo_gateway_opts *o, struct mo_gateway **out,
                   struct mo_err *e);
/* Children are gone when gone(ctx) comes. Endpoints must be freed before. */
void mo_gateway_close(struct mo_gateway *g, void (*gone)(void *ctx), void *ctx);

/* The servers there are from now on, in this order. Those that stay as they
 * were (same digest) keep running; one that goes may finish its calls. Those
 * that are off stand last. */
int mo_gateway_servers(struct mo_gateway *g, const struct mo_gw_server *v,
                       size_t n, struct mo_err *e);

struct mo_gw_find {
    struct mo_span words;
    size_t limit;     /* 0: 5 */
    double threshold; /* what is less sure is left out */
    /* Is that tool not what people saw first? NULL: nobody knows. */
    bool (*changed)(void *ctx, struct mo_span server, struct mo_span tool,
                    struct mo_json item);
    void *ctx;
};

/* What the router would choose, and what it cannot and why: JSON. 0 or
 * MO_ENOMEM. Starts nothing. */
int mo_gateway_find(struct mo_gateway *g, const struct mo_gw_find *f,
                    struct mo_buf *out);

/* A person says what words mean, or do not mean. false: no such tool. */
struct mo_gw_lesson {
    struct mo_span words, server, tool;
    bool right;
};
bool mo_gateway_teach(struct mo_gateway *g, const struct mo_gw_lesson *l);
/* All that was learnt from choices and lessons. */
void mo_gateway_forget_learning(struct mo_gateway *g);

/* Start every server and read its lists anew; whether any are on the way. */
void mo_gateway_refresh(struct mo_gateway *g);
bool mo_gateway_busy(const struct mo_gateway *g);

/* What is to be seen of them, by number; NULL: there is none. */
size_t mo_gateway_count(const struct mo_gateway *g);
struct mo_upstream *mo_gateway_up(const struct mo_gateway *g, size_t i);
const struct mo_catalog *mo_gateway_catalog(const struct mo_gateway *g);
/* Tokens of definitions, about, that a client does not get since four tools
 * stand for all of them; 0: they do not. */
uint64_t mo_gateway_saved(const struct mo_gateway *g);

/* Fill in handler, schema, task, watch, level, caps and ctx. An endpoint made
 * with it is told of changes from mo_gateway_serve() to mo_gateway_unserve().
 */
void mo_gateway_endpoint(struct mo_gateway *g, struct mo_endpoint_opts *o);
int mo_gateway_serve(struct mo_gateway *g, struct mo_endpoint *ep);
/* There will never be more than one client: shared servers are its own, too. */
void mo_gateway_single(struct mo_gateway *g);
void mo_gateway_unserve(struct mo_gateway *g, struct mo_endpoint *ep);

#endif
