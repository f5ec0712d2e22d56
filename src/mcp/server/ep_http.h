/* ep_http.h - an endpoint as Streamable HTTP: one path, POST, GET, DELETE.
 *
 * Modern requests stand alone: the answer to a POST is one JSON object, or an
 * event stream when something is said before it; closing the connection
 * cancels. Legacy peers get a session (unguessable id, bound to the caller),
 * a GET stream for what no request asked for, and events with ids that can be
 * replayed after a broken connection, as far as a capped buffer reaches back.
 * A call of a legacy peer survives its connection once its event stream has
 * begun; that is after limits.soon_ms, and the answer to one that is over by
 * then is one JSON object, too.
 *
 * Who may ask is the gate's business: it sees every request first. Without
 * one only loopback Host headers and origins equal to the Host are let in.
 *
 * A message up to limits.message gets through even if the httpd would not
 * queue so much: long ones are given to it piece by piece (its limits.queue
 * must be above 128 KiB). A client that does not read while 4 MiB more than
 * that wait loses its connection.
 *
 * A session that is not used for limits.session_ms ends; at limits.sessions
 * the one that is unused longest gives way, or the new one gets 503. */
#ifndef MO_MCP_SERVER_EP_HTTP_H
#define MO_MCP_SERVER_EP_HTTP_H

#include "loop/httpd.h"
#include "mcp/server/endpoint.h"

#define MO_EP_CALLER_MAX 128

struct mo_ep_http;

struct mo_ep_http_opts {
    /* true: let in, caller (at most MO_EP_CALLER_MAX - 1 bytes) may be
     * written; false: it has been answered. May be NULL. */
    bool (*gate)(void *ctx, struct mo_req *rq, char caller[MO_EP_CALLER_MAX]);
    void *ctx;
    size_t body;   /* 0: 4 MiB */
    bool has_cors; /* who hands us requests says which pages may read */
};

struct mo_ep_http *mo_ep_http_new(struct mo_endpoint *ep,
                                  const struct mo_ep_http_opts *o,
                                  struct mo_err *e);
/* A request whose path is ours. */
void mo_ep_http_handle(struct mo_ep_http *h, struct mo_req *rq);
/* We are about to end: streams that only bring news end now, whoever waits for
 * an answer still gets it, if it comes before mo_ep_http_free(). */
void mo_ep_http_drain(struct mo_ep_http *h);
/* Ends every session and stream; requests that are open lose their data
 * pointer, so the httpd may be closed before or after. */
void mo_ep_http_free(struct mo_ep_http *h);

#endif
