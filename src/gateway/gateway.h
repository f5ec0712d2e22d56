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

#include "gateway/router/router.h"
#include "gateway/state/opts.h"
#include "mcp/server/endpoint.h"
#include "mcp/server/ep_id.h"

struct mo_catalog;

int mo_gateway_new(const struct mo_gateway_opts *o, struct mo_gateway **out,
                   struct mo_err *e);
/* Calls gone(ctx) when all children are gone. Free the endpoints before. */
void mo_gateway_close(struct mo_gateway *g, void (*gone)(void *ctx), void *ctx);

/* Replaces the table of servers, in this order; disabled ones come last. A
 * server with the same name and digest keeps running; a removed one may finish
 * its calls. On failure the old table stays. */
int mo_gateway_servers(struct mo_gateway *g, const struct mo_gw_server *v,
                       size_t n, struct mo_err *e);

/* Scripts of clients (gateway/script/script.h). */
struct mo_gw_script {
    struct mo_gw_server server; /* the toolbox in a box, per_session */
    unsigned max;               /* scripts at a time */
    uint64_t max_seconds;       /* of one */
};
/* Offers run_script to clients; NULL: no longer. Running scripts may finish. */
int mo_gateway_scripts(struct mo_gateway *g, const struct mo_gw_script *v,
                       struct mo_err *e);

/* Starts every server and reads its lists again. */
void mo_gateway_refresh(struct mo_gateway *g);
/* A person has connected to that server, or is disconnected from it: calls that
 * waited for it go on; the person's connection is closed. */
void mo_gateway_person(struct mo_gateway *g, const char *server,
                       const char *person, bool connected);
/* Reads the lists of a server over the connection of a person who has connected
 * in another process, unless they are known. */
void mo_gateway_learn(struct mo_gateway *g, const char *server,
                      const char *person);
/* Shares the lists of servers with other workers, whose caches are the same
 * directory: those that one of them has read are known to all. tell(ctx) wakes
 * the others, which then catch up; they also do so before each request. */
void mo_gateway_share(struct mo_gateway *g, struct mo_lists_shared *lists,
                      void (*tell)(void *ctx), void *ctx);
/* The same for what the router has learnt. */
void mo_gateway_share_learning(struct mo_gateway *g, atomic_uint *changes);
/* Subscriptions to resources are those of all processes of the store. */
void mo_gateway_share_watching(struct mo_gateway *g,
                               const struct mo_gw_watching *w);
/* Clients of the process `from` have subscribed to these URIs, each of which
 * ends with a NUL; anew: to no others any longer. */
void mo_gateway_others_watch(struct mo_gateway *g, const char *from,
                             struct mo_span uris, bool anew);
/* Append those of clients here in the same form, as many as out->max allows. */
void mo_gateway_put_watched(const struct mo_gateway *g, struct mo_buf *out);
/* Another process says that a resource was updated. */
void mo_gateway_updated(struct mo_gateway *g, struct mo_span uri);
/* Handles of long results name this process, and calls for those of another
 * process are passed there. Borrowed. */
void mo_gateway_home(struct mo_gateway *g, const struct mo_ep_home *h);
/* Reads the lists that others have written. Cheap if there are none. */
void mo_gateway_catch_up(struct mo_gateway *g);
/* True while any list is being read. */
bool mo_gateway_busy(const struct mo_gateway *g);

/* The servers, by number; NULL: no such number. */
size_t mo_gateway_count(const struct mo_gateway *g);
struct mo_upstream *mo_gateway_up(const struct mo_gateway *g, size_t i);
const struct mo_catalog *mo_gateway_catalog(const struct mo_gateway *g);

/* Fills in handler, schema, task, watch, level, caps and ctx. An endpoint gets
 * notifications from mo_gateway_serve() to mo_gateway_unserve(). */
void mo_gateway_endpoint(struct mo_gateway *g, struct mo_endpoint_opts *o);
int mo_gateway_serve(struct mo_gateway *g, struct mo_endpoint *ep);

/* --- views ---------------------------------------------------------------
 *
 * A view shows the clients of its endpoints a part of the gateway
 * (gateway/catalog/filter.h). A server or tool outside of it is treated as one
 * that does not exist: in lists, calls, searches, fallbacks, subscriptions and
 * notifications. A call is looked up in the view again directly before it is
 * sent. Its servers and children are those of the gateway. */

struct mo_config_view;
struct mo_gw_view;

/* The texts are copied. NULL: out of memory. Free its endpoints, then the view,
 * before the gateway is closed. */
struct mo_gw_view *mo_gateway_view_new(struct mo_gateway *g,
                                       const struct mo_config_view *c,
                                       struct mo_err *e);
/* Uses other settings: clients are told of changed lists, and calls that wait
 * for a person end if their tool is no longer shown. 0 or MO_ENOMEM: the old
 * settings stay. */
int mo_gateway_view_change(struct mo_gw_view *v, const struct mo_config_view *c,
                           struct mo_err *e);
/* Answers all calls that came through it with that error, and stops them. */
void mo_gateway_view_end(struct mo_gw_view *v, const char *why);
void mo_gateway_view_free(struct mo_gw_view *v);
/* As mo_gateway_endpoint() and mo_gateway_serve(). */
void mo_gateway_view_endpoint(struct mo_gw_view *v, struct mo_endpoint_opts *o);
int mo_gateway_view_serve(struct mo_gw_view *v, struct mo_endpoint *ep);
/* The offer that its clients see now; starts no server. */
const struct mo_catalog *mo_gateway_view_catalog(const struct mo_gw_view *v);
/* True if they see the four meta tools instead of the tools. */
bool mo_gateway_view_searches(const struct mo_gw_view *v);

/* There will never be more than one client, so shared servers are its own. */
void mo_gateway_single(struct mo_gateway *g);
void mo_gateway_unserve(struct mo_gateway *g, struct mo_endpoint *ep);

#endif
