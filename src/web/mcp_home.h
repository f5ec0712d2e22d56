/* mcp_home.h - MCP sessions, tasks and waiting calls on any process of a store.
 *
 * The id of a session says which process has it (mcp/server/ep_id.h). Another
 * one that gets a request for it passes the request there (relay.h). If that
 * process is gone, one of the others begins the session again, under the same
 * id, from what the id contains. What the session had under way is lost.
 *
 * Tasks and waiting calls of modern clients are found in the same way: their
 * names say which process has them (mcp/server/ep_ref.h). They end with it; the
 * client is told so, and nothing is run again.
 *
 * Documents in the store:
 *
 *   mcp-key      {"key"}: the secret of the seals, made by the first process
 *   mcp:DIGEST   {"to","at"}: the session of that id was begun again there
 *                {"ended":true,"at"}: its client has ended it
 *
 * A lease of the same name is held while a session is moved, so two processes
 * do not both begin it. A process counts as gone if nobody listens at its
 * socket, or if it has neither an address nor a lease; one that is stopped does
 * not.
 *
 * Limits: a session is begun again at most MO_MCP_LIFE_MS after its
 * initialize; the documents are removed after MO_MCP_KEEP_MS, which is longer,
 * so an ended session never comes back. */
#ifndef MO_WEB_MCP_HOME_H
#define MO_WEB_MCP_HOME_H

#include "mcp/server/ep_http.h"
#include "peer/peer.h"
#include "web/relay.h"

#define MO_MCP_LIFE_MS ((uint64_t)24 * 3600 * 1000)
#define MO_MCP_KEEP_MS ((uint64_t)48 * 3600 * 1000)

struct mo_mcp_home;

struct mo_mcp_home_opts { /* borrowed until it is closed */
    struct mo_loop *loop;
    struct mo_store *store;
    struct mo_peers *peers;
    struct mo_relay *relay;
    const char *instance;
    /* Gets the key, later; from then on ids of sessions name this process. */
    struct mo_ep_home *ep;
    /* The endpoint of a view ("": of none); NULL: there is none. */
    struct mo_ep_http *(*door)(void *ctx, const char *view);
    void (*keyed)(void *ctx); /* ep has the key; once */
    void *ctx;
};

int mo_mcp_home_open(const struct mo_mcp_home_opts *o, struct mo_mcp_home **out,
                     struct mo_err *e);
/* When all clients are gone. gone(ctx) once, later. */
void mo_mcp_home_close(struct mo_mcp_home *h, void (*gone)(void *ctx),
                       void *ctx);

/* For mo_ep_http_opts; h may be NULL. */
bool mo_mcp_home_elsewhere(struct mo_mcp_home *h, const char *view,
                           struct mo_req *rq, struct mo_span id,
                           struct mo_span body);
bool mo_mcp_home_pass(struct mo_mcp_home *h, struct mo_req *rq,
                      const struct mo_ep_away *to);
void mo_mcp_home_ended(struct mo_mcp_home *h, struct mo_req *rq,
                       struct mo_span id);

#endif
