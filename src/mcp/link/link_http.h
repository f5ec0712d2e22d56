/* link_http.h - a link over Streamable HTTP (client side).
 *
 * Every message is a POST. The answer to a request is one JSON text or an event
 * stream; messages on that stream are delivered with the request's id. A legacy
 * server may also have
 *  - a session, named in its answer to the handshake and repeated until it
 *    answers 404;
 *  - a stream for messages that belong to no request (GET, opened by
 *    mo_link_opened(); 405 is not a failure);
 *  - streams that can be resumed: a stream that ends before its answer is
 *    requested again with Last-Event-ID, after exactly the time the server
 *    gave in `retry`, else after a growing pause. In the modern era a stream
 *    that ends early fails its request.
 *
 * The first message after mo_link_opened() that expects no answer
 * (notifications/initialized) is a gate: later messages wait until the server
 * has accepted it, since two POSTs may overtake each other.
 *
 * on_failed reports failures of single requests; the link itself ends only by
 * mo_link_close(), which sends DELETE for a session. A 404 drops the session.
 * For 401 and 403 `why` ends in the server's challenge. An authorizer
 * (mcp/oauth/auth.h), if given, is asked first while the message waits, and the
 * message is sent again with the new header; the refusal counts only when that
 * fails.
 *
 * Trust: the server is a peer. Message size, number of streams, retries,
 * session and challenge length are limited; headers that hold secrets are never
 * logged; redirects are not followed. */
#ifndef MO_MCP_LINK_LINK_HTTP_H
#define MO_MCP_LINK_LINK_HTTP_H

#include "loop/httpc.h"
#include "mcp/link/link.h"
#include "mcp/oauth/auth.h"

#define MO_LINK_HTTP_STREAMS   48  /* requests at once; then MO_EBUSY */
#define MO_LINK_HTTP_EXTRA     128 /* more for messages without answer */
#define MO_LINK_HTTP_OWN_MAX   16  /* headers set by the owner */
#define MO_LINK_HTTP_MORE      3   /* headers that a link adds to them */
#define MO_LINK_HTTP_PARAMS    32  /* Mcp-Param-* in one message */
#define MO_LINK_HTTP_SESSION   512 /* bytes of a session id */
#define MO_LINK_HTTP_CHALLENGE ((size_t)4096)
#define MO_LINK_HTTP_BODY_MAX  ((size_t)64 * 1024) /* of an error */
#define MO_LINK_HTTP_TRIES     5 /* attempts to resume a stream */
#define MO_LINK_HTTP_REFUSALS  4 /* refusals of one message passed to auth */
#define MO_LINK_HTTP_RETRY_MAX 3600000 /* longest `retry` accepted, ms */

struct mo_link_http_opts {
    struct mo_httpc *http; /* borrowed; must allow STREAMS + EXTRA at once */
    const char *url;
    const struct mo_http_header *headers; /* Authorization and the like */
    size_t nheaders;
    size_t message_max;   /* 0: MO_LINK_LINE_MAX */
    unsigned streams;     /* 0: MO_LINK_HTTP_STREAMS */
    struct mo_auth *auth; /* provides Authorization, or NULL; borrowed */
};

int mo_link_http(struct mo_loop *l, const struct mo_link_http_opts *o,
                 struct mo_link **out, struct mo_err *e);

/* Encode a value for Mcp-Name and Mcp-Param-*: plain if possible, else
 * =?base64?...?= . */
int mo_link_http_value(struct mo_buf *b, struct mo_span value);

#endif
