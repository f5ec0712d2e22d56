/* gateway.h - many MCP servers behind one MCP endpoint.
 *
 * The gateway owns the servers (gateway/upstream/upstream.h: started on
 * demand, stopped when idle), the merged list of what they offer
 * (gateway/catalog/catalog.h: under names that clients can use, cached on
 * disk), and the calls it forwards (gateway/call/forwarded_call.h). It is the
 * handler of any number of endpoints and does not know their transports, nor
 * how a server is reached: the caller's dial() makes the link.
 *
 * A forwarded message is not rebuilt. Names, ids, tokens and cursors are
 * rewritten; all other bytes stay as they were.
 *
 * A client is identified by its connection or session, or else by its caller.
 * A server's requests to a client (sampling, elicitation, roots) go only to
 * the client of the call they belong to. If that client is unknown they are
 * refused.
 *
 * The owner decides which calls may run (policy/approval_hooks.h). The gateway
 * knows no configuration files, boxes or rules. */
#ifndef MO_GATEWAY_GATEWAY_H
#define MO_GATEWAY_GATEWAY_H

#include "config/choices.h"
#include "gateway/catalog/name.h"
#include "gateway/upstream/server.h"
#include "mcp/server/endpoint.h"
#include "policy/approval_hooks.h"

#define MO_GW_WHO_MAX 192 /* key of a client, with its NUL */

struct mo_gateway;
struct mo_upstream;
struct mo_catalog;

struct mo_gateway_opts {
    struct mo_loop *loop;
    enum mo_gw_prefix prefix;
    enum mo_gw_expose expose;
    unsigned few;                 /* tools, for MO_GW_AUTO; 0: META_TOOLS_FEW */
    unsigned most;                /* children of all servers; 0: default */
    struct mo_span table, pieces; /* the router's vectors (route/vector.h), */
                                  /* borrowed; empty: words only */
    const char *cache;            /* directory of the list cache; NULL: none */
    const char *learning_file;    /* of the router; NULL: none */
    uint64_t away_ms;   /* for a modern client to return with its answers to
                         * a server's questions; 0: 15 min */
    uint64_t gather_ms; /* wait for more questions of a legacy server before
                         * asking a modern client; 0: GW_GATHER_MS */
    /* Callbacks of mo_upstream_opts (gateway/upstream/upstream.h). */
    int (*dial)(void *ctx, const char *server, struct mo_span who,
                struct mo_conn *c, struct mo_err *e);
    struct mo_conn_verdict (*verdict)(void *ctx, const char *server);
    void (*learnt)(void *ctx, const char *server, struct mo_conn_verdict v);
    void (*tap)(void *ctx, const char *server, uint64_t child, bool to_server,
                struct mo_span text);
    void *tap_ctx;
    void (*noise)(void *ctx, const char *server, struct mo_span line);
    /* A server's state changed; may be NULL. */
    void (*on_state)(void *ctx, const char *server);
    void *ctx;
    struct mo_approval_hooks judge; /* approves calls; has its own context */
};

int mo_gateway_new(const struct mo_gateway_opts *o, struct mo_gateway **out,
                   struct mo_err *e);
/* Calls gone(ctx) when all children are gone. Free the endpoints before. */
void mo_gateway_close(struct mo_gateway *g, void (*gone)(void *ctx), void *ctx);

/* Replaces the table of servers, in this order; disabled ones come last. A
 * server with the same name and digest keeps running; a removed one may finish
 * its calls. On failure the old table stays. */
int mo_gateway_servers(struct mo_gateway *g, const struct mo_gw_server *v,
                       size_t n, struct mo_err *e);

struct mo_gw_find {
    struct mo_span words;
    size_t limit;     /* 0: 5 */
    double threshold; /* least confidence of a result */
    /* True if the tool's definition differs from the pinned one. NULL: not
     * checked. */
    bool (*changed)(void *ctx, struct mo_span server, struct mo_span tool,
                    struct mo_json item);
    void *ctx;
};

/* Writes as JSON which tools the router would choose, and which it rules out
 * and why. Starts no server. 0 or MO_ENOMEM. */
int mo_gateway_find(struct mo_gateway *g, const struct mo_gw_find *f,
                    struct mo_buf *out);

/* A person says that words mean a tool, or do not. False: no such tool. */
struct mo_gw_lesson {
    struct mo_span words, server, tool;
    bool right;
};
bool mo_gateway_teach(struct mo_gateway *g, const struct mo_gw_lesson *l);
/* Deletes everything learnt from choices and lessons, also the file. */
void mo_gateway_forget_learning(struct mo_gateway *g);

/* Starts every server and reads its lists again. */
void mo_gateway_refresh(struct mo_gateway *g);
/* True while any list is being read. */
bool mo_gateway_busy(const struct mo_gateway *g);

/* The servers, by number; NULL: no such number. */
size_t mo_gateway_count(const struct mo_gateway *g);
struct mo_upstream *mo_gateway_up(const struct mo_gateway *g, size_t i);
const struct mo_catalog *mo_gateway_catalog(const struct mo_gateway *g);
/* About how many tokens of tool definitions the meta-tools save a client; 0:
 * the meta-tools are off. */
uint64_t mo_gateway_saved(const struct mo_gateway *g);

/* Fills in handler, schema, task, watch, level, caps and ctx. An endpoint gets
 * notifications from mo_gateway_serve() to mo_gateway_unserve(). */
void mo_gateway_endpoint(struct mo_gateway *g, struct mo_endpoint_opts *o);
int mo_gateway_serve(struct mo_gateway *g, struct mo_endpoint *ep);
/* There will never be more than one client, so shared servers are its own. */
void mo_gateway_single(struct mo_gateway *g);
void mo_gateway_unserve(struct mo_gateway *g, struct mo_endpoint *ep);

#endif
