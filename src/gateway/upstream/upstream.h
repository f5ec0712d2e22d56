/* upstream.h - one MCP server: starts its children on demand, restarts and
 * stops them.
 *
 * A child is one connection: a process, a box or a remote session. A shared
 * server has up to `instances` children. A call goes to the child with the
 * fewest calls; another child is started only when all are busy. While it
 * starts, the call waits for it or for the first idle child, whichever comes
 * first. If it cannot be started, the least busy child takes the call. A
 * per-session server has exactly one child for each client session, keyed by
 * the session's name. Callers wait with a struct mo_child_request; one start
 * serves all who wait.
 *
 * A per-person server has one child for each person, keyed MO_UPSTREAM_PERSON
 * and the person's name. A start that fails because the person must sign in
 * delays nobody else, and errors of one person's child are not told to others.
 *
 * A shared server may limit its concurrent calls (max_calls). Beyond the limit
 * requests that count wait, and the caller who was served least recently is
 * next, so that a busy caller cannot starve the others (fair_queue.c). They
 * wait as long as a call may take, then fail with MO_EBUSY.
 *
 * States of a child: NEW (waits for a free place) -> STARTING -> OPEN ->
 * CLOSING -> GONE. After a failed start the next one waits for a pause
 * (breaker.h: exponential, with jitter). While the breaker (breaker.h) is open
 * a request fails at once. Both errors say why and when the server is tried
 * again.
 *
 * A child without calls for stop_ms is closed, also while clients are
 * connected. The calls of a lost child fail once each (conn.h); the next
 * request starts another child.
 *
 * Contract
 *  1. A request is granted or failed exactly once, never from inside
 *     mo_upstream_request_child(), unless mo_upstream_cancel_request() takes
 *     it back.
 *  2. A granted child stays valid until mo_child_release(), also after gone().
 *     Its conn becomes NULL if it is lost or stopped before that.
 *  3. Every on_open is followed by exactly one on_lost, also when we stop the
 *     child ourselves (MO_ECANCELED). The conn is gone by then and its calls
 *     have ended. No other callback of that child follows.
 *  4. Every error of a request begins with the server's name.
 *
 * Limits: MO_UPSTREAM_CHILDREN_MAX children of one server, and those of its
 * pool. At a limit the child that has been idle longest is closed to make
 * room; if none is idle the request fails with MO_EBUSY. A closing child still
 * counts. */
#ifndef MO_GATEWAY_UPSTREAM_UPSTREAM_H
#define MO_GATEWAY_UPSTREAM_UPSTREAM_H

#include "base/list.h"
#include "gateway/upstream/breaker.h"
#include "gateway/upstream/server_overrides.h"

#define MO_UPSTREAM_CHILDREN_MAX 128 /* of one server */
#define MO_UPSTREAM_POOL_MAX     256 /* of a pool, by default */
#define MO_UPSTREAM_PERSONS_MAX                                                \
    1024                            /* of one server with users' credentials,  \
                                     * and of all such servers */
#define MO_UPSTREAM_QUEUE_MAX  4096 /* requests waiting for max_calls */
/* Pause between two starts while a person has to sign in. */
#define MO_UPSTREAM_SIGN_IN_MS 5000
/* A child that is lost this early counts as a fault even without calls. */
#define MO_UPSTREAM_YOUNG_MS   10000
#define MO_CHILD_PING_MS       3000

#define MO_UPSTREAM_PERSON "p:" /* before a person's name in a child's key */

struct mo_upstream;
struct mo_child;

struct mo_child_request { /* zeroed before the first use, except ready */
    struct mo_list node;
    /* c NULL: the request failed, see why. */
    void (*ready)(struct mo_child_request *w, struct mo_child *c,
                  const struct mo_err *why);
    /* Private from here on, except counts. */
    struct mo_upstream *up; /* NULL: not waiting */
    struct mo_child *child;
    unsigned char refusal;
    bool granted, trial;
    bool counts; /* set by the caller: counts for max_calls */
    uint64_t who, since_ms;
};

/* Counts the children of many servers together. The owner's storage; must
 * outlive them. */
struct mo_upstream_pool {
    unsigned max;
    unsigned running, closing; /* running includes closing */
    struct mo_list idle;       /* children without a call, oldest first */
    struct mo_list queue;      /* NEW children, waiting for a place */
    unsigned queued;
    bool single; /* there is only one client: shared children are its own */
};

/* max 0: MO_UPSTREAM_POOL_MAX. */
void mo_upstream_pool_init(struct mo_upstream_pool *p, unsigned max);

struct mo_upstream_opts { /* each callback but dial may be NULL */
    struct mo_loop *loop;
    /* Makes a link to the server and passes it to mo_conn_dialed(). who: the
     * session that the child belongs to, or the person's name; empty: shared,
     * or the operator. */
    int (*dial)(void *ctx, const char *server, struct mo_span who,
                struct mo_conn *c, struct mo_err *e);
    /* The connection of such a link is gone. */
    void (*done)(void *ctx, const char *server, struct mo_span who);
    /* True if the person has credentials for the per-person server. Else the
     * address at which to connect is appended, if there is one. */
    bool (*connected)(void *ctx, const char *server, struct mo_span person,
                      struct mo_buf *address);
    /* The known era of a server, and a newly learnt one. */
    struct mo_conn_verdict (*verdict)(void *ctx, const char *server);
    void (*learnt)(void *ctx, const char *server, struct mo_conn_verdict v);
    /* Every message to and from a server, borrowed; child: number of the
     * connection. Called with tap_ctx. */
    void (*tap)(void *ctx, const char *server, uint64_t child, bool to_server,
                struct mo_span text);
    void *tap_ctx;
    /* A line of a server that is no message. */
    void (*noise)(void *ctx, const char *server, struct mo_span line);
    void *ctx;
};

struct mo_upstream_cb { /* all set; ctx as given to mo_upstream_new() */
    /* c is not held: mo_child_hold() it for calls of your own, or it may be
     * stopped as idle during them. */
    void (*on_open)(void *ctx, struct mo_child *c);
    void (*on_ask)(void *ctx, struct mo_child *c, struct mo_ask *a);
    void (*on_ask_gone)(void *ctx, struct mo_ask *a);
    void (*on_notify)(void *ctx, struct mo_child *c, const struct mo_rpc *m,
                      uint64_t stream_of);
    void (*on_lost)(void *ctx, struct mo_child *c, const struct mo_err *why);
};

/* State of the server as a whole, shown to people. */
enum mo_upstream_state {
    MO_UPSTREAM_COLD, /* never started, or stopped when idle */
    MO_UPSTREAM_STARTING,
    MO_UPSTREAM_OK,
    MO_UPSTREAM_FAILED,     /* last start or call failed; retried on demand */
    MO_UPSTREAM_BROKEN,     /* breaker open: not tried before retry_ms */
    MO_UPSTREAM_SIGN_IN,    /* a person must sign in first */
    MO_UPSTREAM_INSTALLING, /* starting: its package is being installed */
};

struct mo_upstream_status {
    enum mo_upstream_state state;
    unsigned children, calls;   /* open children; calls under way on them */
    unsigned waiting;           /* requests */
    uint64_t starts, fails;     /* fails: failed starts and lost children */
    uint64_t heard_at, good_at; /* wall ms: the last outcome of a start or a
                                 * call, the last good one; 0: none yet */
    unsigned row;               /* bad outcomes since the last good one */
    uint64_t retry_ms;          /* time until the next try; 0: now */
    enum mo_breaker_state breaker;
    struct mo_err why; /* last failure; code 0: none since it worked */
};

/* Copies o and s, but of its texts only the name; cb must stay valid. NULL: out
 * of memory. */
struct mo_upstream *mo_upstream_new(const struct mo_upstream_opts *o,
                                    const struct mo_gw_server *s,
                                    const struct mo_upstream_cb *cb, void *ctx,
                                    struct mo_err *e);
/* Counts its children in pool p. Call before the first request; without it the
 * server has a pool of its own. */
void mo_upstream_join_pool(struct mo_upstream *u, struct mo_upstream_pool *p);
/* Fails every request and closes every child; gone(ctx) after the last one. */
void mo_upstream_close(struct mo_upstream *u, void (*gone)(void *ctx),
                       void *ctx);

/* who: the client's session (per_session: the key of the child). caps: the
 * client's capabilities, JSON text; empty: not known. A per-session child is
 * told these, and so is a shared child if there is only one client (those of
 * its first request). Any other child is told all that the gateway can carry.
 */
void mo_upstream_request_child(struct mo_upstream *u, struct mo_span who,
                               struct mo_span caps, struct mo_child_request *w);
void mo_upstream_cancel_request(struct mo_child_request *w);
void mo_child_release(struct mo_child *c);
/* The same for a request that counts. */
void mo_child_release_call(struct mo_child *c);
/* Takes one more reference: one more mo_child_release(). */
void mo_child_hold(struct mo_child *c);
/* Reports the end of a call to the breaker. All faults of a child in one turn
 * of the loop have one cause and count once, as does the loss of the child. */
void mo_child_report(struct mo_child *c, bool fault);
/* A fault with its reason, which people are shown. */
void mo_child_report_fault(struct mo_child *c, const struct mo_err *why);
/* Nothing can be sent to it any more, though its end was not reported yet:
 * requests go to another child from now on. */
void mo_child_lost(struct mo_child *c);
/* Checks whether a child still answers after a call without progress timed
 * out: sends "ping", or "server/discover" to a modern server. A child that does
 * not answer within MO_CHILD_PING_MS is closed; the next call starts another
 * one. Holds the child meanwhile. */
void mo_child_ping(struct mo_child *c);

struct mo_conn *mo_child_conn(const struct mo_child *c); /* NULL: lost */
struct mo_span mo_child_who(const struct mo_child *c);   /* empty: shared */

const struct mo_gw_server *mo_upstream_server(const struct mo_upstream *u);
void mo_upstream_status(const struct mo_upstream *u,
                        struct mo_upstream_status *out);
/* Takes over max_calls without a restart. */
void mo_upstream_reconfigure(struct mo_upstream *u,
                             const struct mo_gw_server *s);
/* Ends every pause: a person asks for it, or has signed in. */
void mo_upstream_retry_now(struct mo_upstream *u);
/* Closes the child of that key now; its calls fail. */
void mo_upstream_close_child_of(struct mo_upstream *u, struct mo_span who);
/* The session ended: its child is closed as soon as it is unused. */
void mo_upstream_session_gone(struct mo_upstream *u, struct mo_span who);

#endif
