/* link.h - a transport of the client: carries messages to and from a server.
 *
 * A link carries whole JSON-RPC messages below mcp/client/conn.h. On a byte
 * stream (stdio child, box) a message is one line, in both directions. Over
 * HTTP every request has its own answer stream, so a sent message names its
 * request, and a received message names the stream it came on. A link knows
 * framing and transport; it knows no MCP method, and of the era only what the
 * sender tells it in struct mo_link_msg.
 *
 * Contract
 *  1. Callbacks never fire from inside a call on the link.
 *  2. on_message: text is one validated JSON value, borrowed until it
 *     returns. Anything else never gets here: a byte stream reports it as
 *     noise (on_noise) and continues, up to a rate.
 *  3. on_failed(id): the request with that id will get no answer (HTTP error,
 *     broken stream, an answer that is too long); the link itself continues.
 *     `status` is the HTTP status or 0, `body` the body of the answer (may be
 *     a JSON-RPC error).
 *  4. on_close fires exactly once, last; the link is freed after it.
 *     Unanswered requests get no on_failed then: the owner knows them. */
#ifndef MO_MCP_LINK_LINK_H
#define MO_MCP_LINK_LINK_H

#include "codec/rpc.h"
#include "loop/stream.h"
#include "trace/context.h"

#define MO_LINK_LINE_MAX   ((size_t)4 * 1024 * 1024)
/* An answer over the limit fails only its call; the link reads it to its end
 * and keeps nothing. A message this many times over the limit ends the link. */
#define MO_LINK_SKIP_TIMES 16
/* A byte stream is closed when it began with this many lines of noise and no
 * message: the program is no MCP server. After its first message noise is
 * counted with the unrequested messages: servers print logs, and clients are
 * expected to ignore them. */
#define MO_LINK_NOISE_MAX  100
/* Unrequested messages (requests, notifications, surplus answers) and lines of
 * noise that a stream may bring: this many at once, this many a second after
 * that. Beyond it the link stops reading for a while, which stops the sender; a
 * peer that was stopped this often without catching up is closed. */
#define MO_LINK_BURST      4000
#define MO_LINK_RATE       2000
#define MO_LINK_NOTES      16
#define MO_LINK_FLOODS_MAX 30
#define MO_LINK_BREATH_MS  100
/* The link also stops reading while this many bytes of answers wait to be sent.
 * A peer that does not read them is closed after a while. */
#define MO_LINK_QUEUE_HIGH ((size_t)256 * 1024)
#define MO_LINK_STALL_MS   5000

struct mo_link;

struct mo_link_param { /* one Mcp-Param-NAME header */
    struct mo_span name, value;
};

struct mo_link_msg {
    struct mo_span text; /* one line, no newline */
    uint64_t id;         /* our request's id; 0: expects no answer */
    const char *method;  /* NULL: the message is an answer */
    struct mo_span name; /* value of Mcp-Name; empty: none */
    const char *version; /* for MCP-Protocol-Version; NULL: none yet */
    bool modern;         /* send Mcp-Method and the other modern headers */
    const struct mo_link_param *params;
    size_t nparams;
    struct mo_trace trace; /* for the HTTP headers */
};

struct mo_link_cb {
    void (*on_message)(void *ctx, const struct mo_rpc *m, uint64_t stream_of);
    void (*on_failed)(void *ctx, uint64_t id, int status, struct mo_span body,
                      const struct mo_err *why);
    void (*on_noise)(void *ctx, struct mo_span line); /* may be NULL */
    void (*on_close)(void *ctx, const struct mo_err *why);
};

/* Set the owner; nothing is delivered before this call. A later call passes the
 * link to another owner. */
void mo_link_attach(struct mo_link *k, const struct mo_link_cb *cb, void *ctx);

/* Returns 0, MO_EBUSY (too much is queued, try later) or MO_ECLOSED. */
int mo_link_send(struct mo_link *k, const struct mo_link_msg *m);

/* Drop the answer to that request. Over modern HTTP this closes its stream,
 * which cancels the request; a byte stream does nothing. */
void mo_link_forget(struct mo_link *k, uint64_t id);

/* The handshake is done. HTTP: sends the session id from now on (the link took
 * it from the answer to initialize) and opens the GET stream of a legacy
 * session. A byte stream does nothing. */
void mo_link_opened(struct mo_link *k, const char *version);

bool mo_link_is_http(const struct mo_link *k);
/* True while the server's package is being installed: it does not run yet
 * (loop/runner.h). */
bool mo_link_is_installing(const struct mo_link *k);
/* Close cleanly (HTTP: DELETE of the session), then on_close; no message is
 * delivered any more. why may be NULL. Repeating it has no effect. */
void mo_link_close(struct mo_link *k, const struct mo_err *why);

/* --- kinds --------------------------------------------------------------- */

/* Lines over any byte stream; the link owns the stream, also on failure. */
int mo_link_lines(struct mo_loop *l, struct mo_stream *s, size_t line_max,
                  struct mo_link **out, struct mo_err *e);

/* The peer outlives the link, like a box that continues without us: closing
 * sends the queue and does not wait for the peer to close its end. */
void mo_link_lines_leave(struct mo_link *k);

/* Operations of a kind of link; struct mo_link is the first member of its
 * struct. */
struct mo_link_ops {
    /* NULL: the message goes to the inner link */
    int (*send)(struct mo_link *k, const struct mo_link_msg *m);
    void (*forget)(struct mo_link *k, uint64_t id);
    void (*opened)(struct mo_link *k, const char *version);
    void (*start)(struct mo_link *k); /* start delivering; may be NULL */
    void (*close)(struct mo_link *k); /* k->why: the reason, or code 0 */
    bool (*installing)(const struct mo_link *k); /* NULL: never */
    bool http;
};

struct mo_link {
    const struct mo_link_ops *ops;
    const struct mo_link_cb *cb;
    void *ctx;
    struct mo_link *inner; /* of a kind on top of another link; NULL: ended */
    /* Set by link.c only: */
    bool closing;      /* mo_link_close() was called */
    bool failing;      /* mo_link_fail() was called */
    struct mo_err why; /* the reason of either; code 0: none */
};

/* Nothing is delivered any more. */
static inline bool mo_link_dead(const struct mo_link *k)
{
    return k->closing || k->failing;
}

/* For a kind whose transport failed. False: it is dead already. */
bool mo_link_fail(struct mo_link *k, const struct mo_err *why);
/* The last step of a kind: frees the link and calls on_close. */
void mo_link_gone(struct mo_link *k);

/* For a kind on top of another link: callbacks that pass on what the inner link
 * delivers. ctx is the outer link. */
void mo_link_pass_message(void *ctx, const struct mo_rpc *m,
                          uint64_t stream_of);
void mo_link_pass_failed(void *ctx, uint64_t id, int status,
                         struct mo_span body, const struct mo_err *why);
void mo_link_pass_noise(void *ctx, struct mo_span line);

#endif
