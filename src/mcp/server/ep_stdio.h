/* ep_stdio.h - an endpoint on a byte stream, one message a line.
 *
 * Usually stdin and stdout; any stream will do. Both eras may be spoken on
 * one stream, each message is classified by itself. A line that is no JSON is
 * answered with a parse error; one over the limit ends the stream. While more
 * than MO_EP_STDIO_MARK bytes of answers wait, nothing is read. EOF cancels
 * what is under way, sends what is queued, and closes. */
#ifndef MO_MCP_SERVER_EP_STDIO_H
#define MO_MCP_SERVER_EP_STDIO_H

#include "loop/stream.h"
#include "mcp/server/endpoint.h"

#define MO_EP_LINE_MAX   ((size_t)10 * 1024 * 1024)
#define MO_EP_STDIO_MARK ((size_t)1024 * 1024)

struct mo_ep_stdio;

/* The stream is the endpoint's from here on, also on failure. `closed` fires
 * once, last (why NULL: EOF or asked for); may be NULL. */
int mo_ep_stdio_open(struct mo_endpoint *ep, struct mo_stream *s,
                     void (*closed)(void *ctx, const struct mo_err *why),
                     void *ctx, struct mo_ep_stdio **out, struct mo_err *e);
void mo_ep_stdio_close(struct mo_ep_stdio *x);

#endif
