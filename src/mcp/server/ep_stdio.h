/* ep_stdio.h - an endpoint on a byte stream, one message a line.
 *
 * Usually stdin and stdout; any stream works. One stream may carry both eras;
 * each message is classified by itself. A line that is not JSON gets a parse
 * error; a line over the limit ends the stream. Reading stops while more than
 * MO_EP_STDIO_MARK bytes of answers wait. EOF cancels running calls, sends the
 * queue, and closes. */
#ifndef MO_MCP_SERVER_EP_STDIO_H
#define MO_MCP_SERVER_EP_STDIO_H

#include "loop/stream.h"
#include "mcp/server/endpoint.h"

#define MO_EP_LINE_MAX   ((size_t)10 * 1024 * 1024)
#define MO_EP_STDIO_MARK ((size_t)1024 * 1024)

struct mo_ep_stdio;

/* The endpoint owns the stream, also on failure. `closed` fires once, last (why
 * NULL: EOF or closed by the owner); may be NULL. */
int mo_ep_stdio_open(struct mo_endpoint *ep, struct mo_stream *s,
                     mo_done_fn *closed, void *ctx, struct mo_ep_stdio **out,
                     struct mo_err *e);
void mo_ep_stdio_close(struct mo_ep_stdio *x);

#endif
