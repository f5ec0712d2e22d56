/* link_sse.h - a link over the old HTTP+SSE transport (2024-11-05).
 *
 * One GET whose event stream brings everything: first an event `endpoint`
 * with the address to post to, then messages. What we send is a POST to that
 * address, answered by 202 and nothing else. Messages sent before the address
 * is known wait for it.
 *
 * When the stream ends the link ends (on_close): there is no way to take it
 * up again. A POST that is not taken is on_failed for its request, and so is
 * an answer that is too long (overlong.h).
 *
 * Trust: the address must be of the same origin as the stream, so that a
 * server cannot make us post, with our credentials, somewhere else. Limits as
 * for link_http.h; the address must come within MO_LINK_SSE_OPEN_MS. */
#ifndef MO_MCP_LINK_LINK_SSE_H
#define MO_MCP_LINK_LINK_SSE_H

#include "mcp/link/link_http.h"

#define MO_LINK_SSE_OPEN_MS 15000u

int mo_link_sse(struct mo_loop *l, const struct mo_link_http_opts *o,
                struct mo_link **out, struct mo_err *e);

/* The address an `endpoint` event means, seen from base; MO_EPROTO when it is
 * none or of another origin. Appended to b. */
int mo_link_sse_endpoint(struct mo_buf *b, const char *base,
                         struct mo_span text, struct mo_err *e);

#endif
