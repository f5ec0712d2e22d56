/* ep_sess.h - HTTP sessions and event streams that outlive their connections;
 * private to ep_http.c and ep_sess.c.
 *
 * Invariants
 *  1. An answer lives while requests are unanswered (pending) or a connection
 *     is attached (rq); rq->data points back at it exactly as long.
 *  2. The GET stream of a session is an answer that stays pending until the
 *     session ends; its number is 0.
 *  3. Kept events are in order of sending, in one list per session.
 *  4. Bytes in `out` go before anything else: a connection gets a piece when
 *     it has taken the previous one, so a message may be longer than the
 *     httpd would queue.
 *  5. An answer in h->young has not begun and becomes an event stream when it
 *     is limits.soon_ms old. Most calls end before: their answer is one piece
 *     of JSON, of which nothing has to be kept. */
#ifndef MO_MCP_SERVER_EP_SESS_H
#define MO_MCP_SERVER_EP_SESS_H

#include "base/rand.h"
#include "mcp/server/ep_http.h"
#include "mcp/server/ep_priv.h"

#define SESS_TOKEN    24 /* random bytes of a session id */
#define SESS_KEY      32 /* its first bytes: random, the key in by_id */
#define SESS_RETRY_MS 1000
#define SESS_PIECE    ((size_t)64 * 1024)       /* bytes passed in one piece */
#define SESS_OUT_MORE ((size_t)4 * 1024 * 1024) /* beyond a message */

struct mo_ep_http {
    struct mo_endpoint *ep;
    struct mo_ep_http_opts o;
    struct mo_map by_id;
    struct mo_list sessions; /* the longest idle first */
    struct mo_list answers;
    struct mo_list young; /* the oldest first */
    struct mo_list posts; /* requests whose bodies are still arriving */
    struct mo_timer soon; /* fires for the oldest of them, or earlier */
    struct mo_timer sweep;
    struct mo_buf sse; /* buffer for one event */
};

struct kept { /* an event kept for replay */
    struct mo_list node;
    uint64_t stream, seq;
    size_t n;
    char text[];
};

struct answer {
    struct mo_ep_way way;
    struct mo_list node, snode, ynode;
    uint64_t since; /* ns, when it became young */
    struct mo_ep_http *h;
    struct hsess *sess; /* NULL: modern, or the session has ended */
    struct mo_req *rq;  /* NULL: no connection */
    uint64_t no, seq;
    unsigned pending;
    bool modern;
    bool streaming;    /* rq has a started event stream */
    bool held;         /* not freed before mo_answer_release() */
    bool fresh;        /* the answer to initialize: carries the session id */
    bool ending;       /* ends when `out` is empty */
    struct mo_buf out; /* bytes the connection has not taken yet */
    size_t sent;       /* bytes of out already passed on */
};

struct hsess {
    struct mo_ep_sess s;
    struct mo_ep_http *h;
    struct mo_list node;    /* in h->sessions */
    struct mo_list answers; /* the GET stream is one of them */
    struct mo_list kept;
    size_t kept_bytes;
    struct answer *get;
    uint64_t next_stream;
    uint64_t used; /* ns */
    char *id;      /* a random token, or from a home (ep_id.h) */
    char caller[MO_EP_CALLER_MAX];
};

/* --- ep_sess.c ----------------------------------------------------------- */

struct answer *mo_answer_new(struct mo_ep_http *h, struct hsess *s,
                             struct mo_req *rq);
/* No further request will use it; frees it when none is pending. */
void mo_answer_done(struct answer *a);
/* Release the hold. True: an answer is still pending; else it may be freed. */
bool mo_answer_release(struct answer *a);
/* Start its primed event stream after limits.soon_ms, unless it has ended. */
void mo_answer_soon(struct answer *a);
void mo_answer_on_soon(struct mo_timer *t);
void mo_answer_keepalive(struct answer *a);
/* End its stream cleanly; pending requests stay pending. */
void mo_answer_stop(struct answer *a);
/* Drop the connection, whatever waits; nothing is pending. */
void mo_answer_cut(struct answer *a);

struct hsess *mo_hsess_new(struct mo_ep_http *h, const char *caller);
struct hsess *mo_hsess_find(const struct mo_ep_http *h, struct mo_span id);
/* Replace its id. The old one stays valid if this fails. */
int mo_hsess_rename(struct hsess *s, struct mo_span id);
void mo_hsess_free(struct hsess *s);
void mo_hsess_touch(struct hsess *s);
bool mo_hsess_idle(const struct hsess *s); /* no connection is attached */
/* Answer a GET with Last-Event-ID: replay later events, then continue the
 * stream. */
void mo_hsess_resume(struct hsess *s, struct mo_req *rq, struct mo_span last);
void mo_hsess_listen(struct hsess *s, struct mo_req *rq);

#endif
