/* link_sse.h - a link over the HTTP+SSE transport of 2024-11-05.
 *
 * One GET opens the event stream that carries everything: first an event
 * `endpoint` with the address to post to, then messages. Our messages are POSTs
 * to that address, answered with 202 only. Messages sent before the address is
 * known wait for it.
 *
 * The link ends with the stream (on_close), which cannot be resumed. A POST
 * that is refused is on_failed for its request, and so is an answer that is too
 * long (overlong.h).
 *
 * Trust: the address must have the same origin as the stream, so that a server
 * cannot make us post credentials somewhere else. Limits as for link_http.h;
 * the address must arrive within MO_LINK_SSE_OPEN_MS. */
#ifndef MO_MCP_LINK_LINK_SSE_H
#define MO_MCP_LINK_LINK_SSE_H

#include "mcp/link/link_http.h"

#define MO_LINK_SSE_OPEN_MS 15000u

int mo_link_sse(struct mo_loop *l, const struct mo_link_http_opts *o,
                struct mo_link **out, struct mo_err *e);

/* Append the address of an `endpoint` event to b, resolved against base.
 * MO_EPROTO: not an address, or of another origin. */
int mo_link_sse_endpoint(struct mo_buf *b, const char *base,
                         struct mo_span text, struct mo_err *e);

#endif
