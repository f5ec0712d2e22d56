/* link.h - how a client's messages reach a server: the seam below
 * mcp/client/conn.h.
 *
 * A link carries whole JSON-RPC messages. For a byte stream (stdio child,
 * box) that is one line each, in both directions, and nothing more. Over
 * HTTP every request has an answer stream of its own, so a message that is
 * sent says which request it is, and a message that arrives says on whose
 * stream it came. A link knows framing and transport; it knows no MCP method
 * and no era beyond what the sender tells it in struct mo_link_msg.
 *
 * Contract
 *  1. Callbacks never fire from inside a call on the link.
 *  2. on_message: text is one validated JSON value, borrowed until it
 *     returns. What is not JSON never gets here: a byte stream counts it as
 *     noise (on_noise) and goes on until a limit.
 *  3. on_failed(id): the request with that id will get no answer (HTTP error,
 *     broken stream, an answer that is too long); the link itself lives on.
 *     `status` is the HTTP status or 0, `body` what came with it (may be a
 *     JSON-RPC error).
 *  4. on_close fires exactly once, last; the link's memory is gone after it.
 *     Requests without an answer get no on_failed then: the owner knows. */
#ifndef MO_MCP_LINK_LINK_H
#define MO_MCP_LINK_LINK_H

#include "codec/rpc.h"
#include "loop/stream.h"
#include "mcp/trace.h"

#define MO_LINK_LINE_MAX   ((size_t)4 * 1024 * 1024)
/* An answer over the limit fails its call only; it is read to its end and not
 * kept. A message so many times over the limit ends the link. */
#define MO_LINK_SKIP_TIMES 16
/* A byte stream is closed when there were so many more lines of noise than
 * good messages: a banner or a stray print now and then does no harm. */
#define MO_LINK_NOISE_MAX  20
/* Messages nobody asked for (requests, notifications, answers beyond what we
 * have asked) that a byte stream may bring: so many at once, so many a
 * second after that. More makes us stop reading for a while, which stops the
 * sender; one that is stopped so often without ever catching up is closed. */
#define MO_LINK_BURST      4000
#define MO_LINK_RATE       2000
#define MO_LINK_NOTES      16
#define MO_LINK_FLOODS_MAX 30
#define MO_LINK_BREATH_MS  100
/* So many bytes of answers waiting to be sent make us stop reading, too: who
 * does not take answers gets no more questions in, and is closed after a
 * while. */
#define MO_LINK_QUEUE_HIGH ((size_t)256 * 1024)
#define MO_LINK_STALL_MS   5000

struct mo_link;

struct mo_link_param { /* one Mcp-Param-NAME header */
    struct mo_span name, value;
};

struct mo_link_msg {
    struct mo_span text; /* one line, no newline */
    uint64_t id;         /* our request's number; 0: no answer awaited */
    const char *method;  /* NULL for answers we give */
    struct mo_span name; /* what Mcp-Name carries; empty: none */
    const char *version; /* for MCP-Protocol-Version; NULL: none yet */
    bool modern;         /* Mcp-Method and friends are sent */
    const struct mo_link_param *params;
    size_t nparams;
    struct mo_trace trace; /* for the head */
};

struct mo_link_cb {
    void (*on_message)(void *ctx, const struct mo_rpc *m, uint64_t stream_of);
    void (*on_failed)(void *ctx, uint64_t id, int status, struct mo_span body,
                      const struct mo_err *why);
    void (*on_noise)(void *ctx, struct mo_span line); /* may be NULL */
    void (*on_close)(void *ctx, const struct mo_err *why);
};

/* The present owner; nothing is delivered before this call. A later call
 * hands the link over to another owner. */
void mo_link_attach(struct mo_link *k, const struct mo_link_cb *cb, void *ctx);

/* 0, MO_EBUSY (too much is queued, try later), MO_ECLOSED. */
int mo_link_send(struct mo_link *k, const struct mo_link_msg *m);

/* No answer to that request is wanted any more. Over modern HTTP this closes
 * its stream, which is what cancels it there; a byte stream does nothing. */
void mo_link_forget(struct mo_link *k, uint64_t id);

/* HTTP: the session to name from now on (taken from the answer to
 * initialize by the link itself); opens the GET stream of a legacy session.
 * A byte stream does nothing. */
void mo_link_opened(struct mo_link *k, const char *version);

bool mo_link_is_http(const struct mo_link *k);
/* End politely (HTTP: DELETE of the session), then on_close; no message is
 * delivered any more. why may be NULL. Again = nothing. */
void mo_link_close(struct mo_link *k, const struct mo_err *why);

/* --- kinds --------------------------------------------------------------- */

/* Lines over any byte stream; the stream is the link's from here on. */
int mo_link_lines(struct mo_loop *l, struct mo_stream *s, size_t line_max,
                  struct mo_link **out, struct mo_err *e);

/* The peer outlives the link, as a box does that is let go: closing the link
 * sends what is queued and does not wait for the peer to close its end. */
void mo_link_lines_leave(struct mo_link *k);

/* What a kind provides (embedded first in its struct). */
struct mo_link_ops {
    int (*send)(struct mo_link *k, const struct mo_link_msg *m);
    void (*forget)(struct mo_link *k, uint64_t id);
    void (*opened)(struct mo_link *k, const char *version);
    void (*start)(struct mo_link *k); /* attached: deliver from now on */
    void (*close)(struct mo_link *k, const struct mo_err *why);
    bool http;
};

struct mo_link {
    const struct mo_link_ops *ops;
    const struct mo_link_cb *cb;
    void *ctx;
    bool closing; /* mo_link_close() was called; set by link.c only */
};

#endif
