/* ep_http.h - an endpoint over Streamable HTTP: one path, POST, GET, DELETE.
 *
 * Modern requests are independent: the answer to a POST is one JSON object, or
 * an event stream if a notification precedes it; closing the connection
 * cancels. Legacy peers get a session (unguessable id, bound to the caller), a
 * GET stream for messages that belong to no request, and events with ids that
 * can be replayed after a broken connection, as far as a capped buffer reaches
 * back. A call of a legacy peer survives its connection once its event stream
 * has begun, which happens after limits.soon_ms; an answer before that is one
 * JSON object, too.
 *
 * The gate sees every request first and decides who may send it. Without a gate
 * only loopback Host headers and origins equal to the Host are accepted.
 *
 * A message up to limits.message is sent even if the httpd would not queue so
 * much: long ones are passed to it piece by piece (its limits.queue must be
 * above 128 KiB). A client that does not read while 4 MiB more than that wait
 * loses its connection.
 *
 * With a home the id of a session says which process has it (ep_id.h). Requests
 * for sessions of other processes go to opts.elsewhere. Of a modern client the
 * ids of tasks and requestState say it (ep_ref.h); requests that name those of
 * other processes go to opts.pass.
 *
 * A session ends when it was idle for limits.session_ms. At limits.sessions the
 * longest idle one is ended, or the new one gets 503. */
#ifndef MO_MCP_SERVER_EP_HTTP_H
#define MO_MCP_SERVER_EP_HTTP_H

#include "loop/httpd.h"
#include "mcp/server/endpoint.h"
#include "mcp/server/ep_id.h"

struct mo_ep_http;

/* A modern request for a process of the store that has what it names. Valid
 * during the call. */
struct mo_ep_away {
    const char *instance;
    const char *gone; /* the error if that process has ended; static */
    struct mo_span body;
};

struct mo_ep_http_opts {
    /* True: accepted; caller (at most MO_EP_CALLER_MAX - 1 bytes) may be
     * written. False: the gate has answered. May be NULL. */
    bool (*gate)(void *ctx, struct mo_req *rq, char caller[MO_EP_CALLER_MAX]);
    void *ctx;
    size_t body;   /* 0: 4 MiB */
    bool has_cors; /* the owner sets the CORS headers */
    /* The server whose name and key the ids carry; borrowed, may be NULL. */
    const struct mo_ep_home *home;
    const char *view; /* in them, too; borrowed. NULL: none */
    /* The request names a session that is not here. True: it will be answered,
     * perhaps after mo_ep_http_revive() by mo_ep_http_again(). body: of a POST;
     * valid during the call. May be NULL. */
    bool (*elsewhere)(void *ctx, const char *view, struct mo_req *rq,
                      struct mo_span id, struct mo_span body);
    /* True: it will be answered. May be NULL. */
    bool (*pass)(void *ctx, struct mo_req *rq, const struct mo_ep_away *to);
    /* The client has ended the session; the request, a DELETE, must be
     * answered. Only for ids of a home. May be NULL. */
    void (*ended)(void *ctx, struct mo_req *rq, struct mo_span id);
};

struct mo_ep_http *mo_ep_http_new(struct mo_endpoint *ep,
                                  const struct mo_ep_http_opts *o,
                                  struct mo_err *e);
/* Handle a request for the endpoint's path. */
void mo_ep_http_handle(struct mo_ep_http *h, struct mo_req *rq);
bool mo_ep_http_has(const struct mo_ep_http *h, struct mo_span id);
/* Begin a session again that another process has lost, under the same id. What
 * it had under way is lost, and so are its subscriptions and log level. */
int mo_ep_http_revive(struct mo_ep_http *h, const struct mo_ep_id *was,
                      struct mo_span id);
/* Handle a request again that `elsewhere` took. */
void mo_ep_http_again(struct mo_ep_http *h, struct mo_req *rq,
                      struct mo_span body);
/* Prepare to stop: streams that carry only notifications end now; other
 * requests still get their answer if it comes before mo_ep_http_free(). */
void mo_ep_http_drain(struct mo_ep_http *h);
/* Ends every session and stream; open requests lose their data pointer, so the
 * httpd may be closed before or after. */
void mo_ep_http_free(struct mo_ep_http *h);

#endif
