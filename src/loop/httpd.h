/* httpd.h - the HTTP/1.1 server: connections, limits, one request at a time.
 *
 * A connection reads one request, passes it to the handler, sends one answer
 * and only then parses the next. Pipelined bytes wait in a limited buffer;
 * reading from the socket stops meanwhile. The handler may answer at once or
 * later.
 *
 * Lifetimes: a struct mo_req lives from handler() until its `gone` callback,
 * which fires exactly once: after the answer is complete, after an upgrade, or
 * when the connection ended. A handler that keeps a request pointer sets gone.
 * Everything in req->head is valid for the same time.
 *
 * Limits (struct mo_httpd_limits) have defaults. Reaching one has this effect:
 *   connections  accept stops until one ends
 *   per_peer     of one address (loop/peers.h), upgraded ones included: 503 and
 *                close, or, while others are being told so, close
 *   head_ms      the head is not complete in time: 408 and close
 *   body_ms      no byte of an awaited body for that long, or not all of it
 *                in ten times that (in parts: longer than that, and slower
 *                than 8 KiB a second on average): 408 and close
 *   idle_ms      no byte between requests: close
 *   send_ms      the peer takes no byte of a queued answer that long: close
 *   requests     per connection: the last answer says Connection: close
 *   body         413
 *   queue        bytes queued to one client: mo_req_write says MO_EBUSY
 *
 * While much of an answer is still queued, the next pipelined request is not
 * parsed.
 *
 * Closing: mo_httpd_close() stops accepting, closes idle connections, lets
 * running answers end (with Connection: close) for the grace period, then
 * closes the rest. */
#ifndef MO_LOOP_HTTPD_H
#define MO_LOOP_HTTPD_H

#include "codec/http/http1.h"
#include "loop/crowd.h"
#include "loop/net.h"

struct mo_httpd;
struct mo_req;
struct mo_tls_ctx;

struct mo_httpd_limits {
    unsigned connections; /* default 4096 */
    unsigned per_peer;    /* default: a quarter of them, at least 64 */
    unsigned head_ms;     /* default 10 s */
    unsigned body_ms;     /* default 30 s */
    unsigned idle_ms;     /* default 75 s */
    unsigned send_ms;     /* default 30 s */
    unsigned requests;    /* default 100000 */
    size_t body;          /* default 4 MiB; mo_req_body() may ask for less */
    size_t queue;         /* default 4 MiB */
};

#define MO_HTTPD_HEADERS_MAX ((size_t)2048)

struct mo_httpd_opts {
    struct mo_httpd_limits limits; /* a zero member means its default */
    void (*handler)(void *ctx, struct mo_req *rq);
    /* Called after each answer, for counting; may be NULL. status 0: nothing
     * was sent. rq->head is NULL if the head was rejected. */
    void (*done)(void *ctx, const struct mo_req *rq, int status, uint64_t ns);
    void *ctx;
    struct mo_tls_ctx *tls; /* NULL: no TLS; borrowed */
    /* Complete header lines added to every answer, including the server's own;
     * borrowed. At most MO_HTTPD_HEADERS_MAX bytes. */
    struct mo_span headers;
    /* Unix sockets: close connections of other users than this one and root,
     * and read nothing from them. */
    bool own_user;
    /* Limits of connections hold for all processes in it; all NULL: none. */
    struct mo_crowd_place crowd;
};

struct mo_httpd *mo_httpd_new(struct mo_loop *l, const struct mo_httpd_opts *o,
                              struct mo_err *e);
int mo_httpd_listen(struct mo_httpd *h, const struct mo_listen_opts *o,
                    struct mo_err *e);
/* Serves a connection that its giver has accepted and judged: neither `tls` nor
 * `own_user` of the options apply to it. Takes the stream, and closes it if
 * `connections` are open. Not for a server with a
 * crowd. */
void mo_httpd_take(struct mo_httpd *h, struct mo_stream *s);
/* The same for other processes of this program, which pass on what their
 * clients send: connections have no TLS, are not counted, and their requests
 * count as sent over TLS if the server has it. */
int mo_httpd_listen_inner(struct mo_httpd *h, const struct mo_listen_opts *o,
                          struct mo_err *e);
unsigned mo_httpd_port(const struct mo_httpd *h); /* of the first listener */
/* Use this context for new connections, e.g. after a certificate was renewed.
 * Borrowed. */
void mo_httpd_tls(struct mo_httpd *h, struct mo_tls_ctx *tls);
/* Change the limits (zero = default); `queue` applies to new connections
 * only. */
void mo_httpd_limit(struct mo_httpd *h, const struct mo_httpd_limits *m);
/* Close the connections whose request waits for its answer, or for more of it
 * (it has a `gone`), or whose body is still arriving, and that came from this
 * person, through that door, with that personal token; NULL: any. Upgraded
 * connections are their owner's. A `who` that ends with ':' is everybody of
 * that provider. */
void mo_httpd_abort(struct mo_httpd *h, const char *who, const char *door,
                    const char *grant);
/* True if `name` is `who` of mo_httpd_abort(). */
bool mo_httpd_is_who(const char *who, const char *name);
/* `gone` (may be NULL) fires once, later, when all memory is free. */
void mo_httpd_close(struct mo_httpd *h, uint64_t grace_ms,
                    void (*gone)(void *ctx), void *ctx);

struct mo_httpd_stats {
    unsigned open;                    /* connections */
    uint64_t crowded;                 /* refused by per_peer */
    uint64_t accepted, requests, bad; /* bad: rejected by the server with 4xx */
    uint64_t bytes_in, bytes_out;
};
struct mo_httpd_stats mo_httpd_stats(const struct mo_httpd *h);

/* --- one request --------------------------------------------------------- */

#define MO_REQ_CALLER_MAX 97
#define MO_REQ_GRANT_MAX  24

struct mo_req {
    const struct mo_http_head *head;
    struct mo_span path;  /* target up to '?', still percent-encoded */
    struct mo_span query; /* after '?', or empty */
    uint64_t number;      /* of all requests of the loop, from 1 */
    void *data;           /* for the handler */
    int arg;              /* the same, of its route (web/site.h) */
    const char *tag;      /* the handler's label for it, passed to `done` */
    /* The person as authentication found it, for the record; "": unknown. */
    char who[MO_REQ_CALLER_MAX];
    /* The same, whose data it may use; "": everybody's. */
    char caller[MO_REQ_CALLER_MAX];
    int role; /* of the caller, for the handler */
    /* Id of the personal token it came with; "": none. */
    char grant[MO_REQ_GRANT_MAX];
    /* How it was admitted: "token", "page" (a cookie), "socket", "open" (no
     * authentication); static. */
    const char *door;
    /* Of a request that another process passed on (web/relay.h): the address
     * of its client and the person's groups, both in `facts`, which is freed
     * with the request. NULL: it came directly. */
    const char *from, *groups;
    char *facts;
    /* Set by the handler; may stay NULL. hangup: the client closed its side
     * before the answer was complete. A streamed answer is ended by the
     * server. */
    void (*gone)(struct mo_req *rq);
    void (*hangup)(struct mo_req *rq);
};

const char *mo_req_peer(const struct mo_req *rq);
/* Another process of this program passed it on (mo_httpd_listen_inner()). */
bool mo_req_is_inner(const struct mo_req *rq);
bool mo_req_is_tls(const struct mo_req *rq);
/* A process of this user or of root sent it, over a unix socket. */
bool mo_req_is_own_user(const struct mo_req *rq);

/* Collect the whole body, up to max (0: the server's limit). done fires once,
 * later, unless the connection ends first (then only gone fires). The server
 * itself answers bodies that are too big, too slow or malformed; done does not
 * fire then. */
void mo_req_body(struct mo_req *rq, size_t max,
                 void (*done)(struct mo_req *rq, struct mo_span body));

/* The same part by part, for bodies that are too big for memory; max is not
 * limited by the server's. part() is called from the loop, with last = true
 * and nothing once at the end. */
void mo_req_body_parts(struct mo_req *rq, uint64_t max,
                       void (*part)(struct mo_req *rq, struct mo_span part,
                                    bool last));
/* No parts while paused: reading from the socket stops, and no time runs. */
void mo_req_body_pause(struct mo_req *rq, bool paused);

/* Answer: first any number of headers, then one of reply / start. A value with
 * CR, LF or NUL is a bug in the handler. Without a Cache-Control header the
 * answer is marked as not to be stored. A Content-Security-Policy replaces that
 * of mo_httpd_opts.headers. */
void mo_req_header(struct mo_req *rq, const char *name, struct mo_span value);
/* Sends Content-Length; leaves out the body for HEAD. ctype may be NULL if
 * there is no body. */
void mo_req_reply(struct mo_req *rq, int status, const char *ctype,
                  struct mo_span body);
/* The same for a body of any length, which is sent as the client reads it. It
 * must stay until `gone`. */
void mo_req_reply_long(struct mo_req *rq, int status, const char *ctype,
                       struct mo_span body);
/* An application/problem+json answer with a stable code. */
void mo_req_problem(struct mo_req *rq, int status, const char *code,
                    const char *detail);

/* Start a streamed answer (chunked for 1.1, until close for 1.0). */
void mo_req_start(struct mo_req *rq, int status, const char *ctype);
/* The same with a Content-Length. If fewer bytes were written at the end, the
 * connection is closed; more are a bug. */
void mo_req_start_sized(struct mo_req *rq, int status, const char *ctype,
                        uint64_t length);
int mo_req_write(struct mo_req *rq, struct mo_span data); /* 0, MO_EBUSY,
                                                             MO_ECLOSED */
size_t mo_req_queued(const struct mo_req *rq);
void mo_req_on_drain(struct mo_req *rq, void (*drain)(struct mo_req *rq));
void mo_req_end(struct mo_req *rq);
/* Close the connection without an answer. */
void mo_req_abort(struct mo_req *rq);

/* Answer 101 with the headers set so far (Connection: Upgrade is added) and
 * hand over the stream: paused, with *early holding bytes the client has sent
 * already (valid until the next call into the loop). gone fires soon after. */
int mo_req_upgrade(struct mo_req *rq, const char *protocol,
                   struct mo_stream **out, struct mo_span *early,
                   struct mo_err *e);
/* The same without an answer: the new owner of the stream sends it. */
int mo_req_take(struct mo_req *rq, struct mo_stream **out,
                struct mo_span *early, struct mo_err *e);

#endif
