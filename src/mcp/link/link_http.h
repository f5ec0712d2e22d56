/* link_http.h - a link over Streamable HTTP (client side).
 *
 * Every message is a POST. The answer to a request is one JSON text or a
 * stream of events; what comes on that stream is delivered with the request's
 * number. A legacy server may also have a session (named in its answer to
 * the handshake, echoed until it says 404), a stream for messages that belong
 * to no request (GET, opened by mo_link_opened(); 405 is no failure), and
 * streams that can be taken up again: a stream that ends before its answer is
 * asked for with Last-Event-ID, after exactly the time the server named in
 * `retry`, else after a growing pause. In the modern era a stream that ends
 * early has lost its request.
 *
 * The first message behind mo_link_opened() that awaits no answer (which is
 * notifications/initialized) is a gate: what is sent later waits until the
 * server has taken it, since two POSTs may overtake each other.
 *
 * Failures of single requests are told by on_failed; the link itself ends
 * only by mo_link_close(), which sends DELETE for a session. After a 404 the
 * session is forgotten. For 401 and 403 `why` ends in the server's challenge,
 * and mo_link_http_challenge() has all of it. Who gives an authorizer
 * (mcp/oauth/auth.h) has it asked first, and the message sent again with what
 * it got; the message waits meanwhile, and its refusal counts only when that
 * fails.
 *
 * Trust: the server is a peer. Message size, number of streams, tries,
 * session and challenge length are limited; headers that hold secrets are
 * never logged; redirects are not followed. */
#ifndef MO_MCP_LINK_LINK_HTTP_H
#define MO_MCP_LINK_LINK_HTTP_H

#include "loop/httpc.h"
#include "mcp/link/link.h"
#include "mcp/oauth/auth.h"

#define MO_LINK_HTTP_STREAMS   48  /* requests at once; then MO_EBUSY */
#define MO_LINK_HTTP_EXTRA     128 /* more for what awaits no answer */
#define MO_LINK_HTTP_OWN_MAX   16  /* headers of the owner */
#define MO_LINK_HTTP_PARAMS    32  /* Mcp-Param-* in one message */
#define MO_LINK_HTTP_SESSION   512 /* bytes of a session id */
#define MO_LINK_HTTP_CHALLENGE ((size_t)4096)
#define MO_LINK_HTTP_BODY_MAX  ((size_t)64 * 1024) /* of an error; cut */
#define MO_LINK_HTTP_TRIES     5                   /* to take up a stream */
#define MO_LINK_HTTP_REFUSALS  4 /* of one message that auth may overcome */
#define MO_LINK_HTTP_RETRY_MAX 3600000 /* ms we are willing to wait */

struct mo_link_http_opts {
    struct mo_httpc *http; /* borrowed; should allow STREAMS + EXTRA at once */
    const char *url;
    const struct mo_http_header *headers; /* Authorization and the like */
    size_t nheaders;
    size_t message_max;   /* 0: MO_LINK_LINE_MAX */
    unsigned streams;     /* 0: MO_LINK_HTTP_STREAMS */
    struct mo_auth *auth; /* gives Authorization; NULL: nobody. Borrowed */
};

int mo_link_http(struct mo_loop *l, const struct mo_link_http_opts *o,
                 struct mo_link **out, struct mo_err *e);

/* Set, replace or (value.p == NULL) remove one of the owner's headers, from
 * the next message on: a token that was renewed. 0, MO_EBUSY, MO_ENOMEM. */
int mo_link_http_header(struct mo_link *k, struct mo_span name,
                        struct mo_span value);

/* WWW-Authenticate of the last 401 or 403; empty: none. */
struct mo_span mo_link_http_challenge(const struct mo_link *k);

/* A value as Mcp-Name and Mcp-Param-* carry it: plain if it can be, else
 * =?base64?...?= . */
int mo_link_http_value(struct mo_buf *b, struct mo_span value);

#endif
