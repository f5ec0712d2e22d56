/* upstream.h - one server above us: its children, started when wanted, kept
 * healthy, stopped when idle.
 *
 * A child is one connection (a process, a box, a remote session). A shared
 * server has up to `instances` of them and gives each call to the one with
 * the fewest calls under way, starting another only when all are busy; a
 * per-session one has exactly one for each client session, whose name is its
 * key. Whoever wants a child waits with a struct mo_child_request: one start
 * serves all who wait (single flight). While another child of a shared server
 * is being started, a call waits for it or for the first one to become idle,
 * whichever is sooner; if it cannot be started, the least busy one takes all.
 *
 * A shared server may have a limit of calls under way (max_calls). Beyond it
 * wishes that count wait, and whoever has been served least lately is next, so
 * that nobody with many calls keeps out one with few (fair_queue.c). They wait
 * as long as a call may take, then they fail with MO_EBUSY.
 *
 * States of a child: NEW (waits for room) -> STARTING -> OPEN -> CLOSING ->
 * GONE. A failed start is not tried again before a pause (backoff.h:
 * exponential, with jitter); while the breaker (breaker.h) is open a wish
 * fails at once. Both errors say why, and when it is tried again.
 *
 * A child without calls for stop_ms is closed, also while clients are
 * connected. A child that is lost fails its calls once each (conn.h); the next
 * wish starts another.
 *
 * Contract
 *  1. A wish is granted or failed exactly once, never from inside
 *     mo_upstream_request_child(), unless taken back by
 * mo_upstream_cancel_request().
 *  2. A granted child stays valid until mo_child_release(), also after gone();
 *     its conn becomes NULL when it is lost or stopped before that.
 *  3. For every on_open there is exactly one on_lost, also when we stop the
 *     child ourselves (MO_ECANCELED); the conn is gone then, its calls have
 *     ended. Nothing more is heard of that child.
 *  4. Every error of a wish begins with the server's name.
 *
 * Limits: MO_UPSTREAM_CHILDREN_MAX of one server, and those of its pool. At a
 * limit the child that is idle for longest is closed to make room; if none is
 * idle a wish fails with MO_EBUSY. A child that is on its way out still counts.
 */
#ifndef MO_GATEWAY_UPSTREAM_UPSTREAM_H
#define MO_GATEWAY_UPSTREAM_UPSTREAM_H

#include "base/list.h"
#include "gateway/gateway.h"
#include "gateway/upstream/breaker.h"

#define MO_UPSTREAM_CHILDREN_MAX 128  /* of one server */
#define MO_UPSTREAM_POOL_MAX     256  /* of a pool, unless told otherwise */
#define MO_UPSTREAM_QUEUE_MAX    4096 /* wishes that wait for their turn */
#define MO_UPSTREAM_SIGN_IN_MS                                                 \
    5000                           /* between two looks whether somebody did   \
                                    */
#define MO_UPSTREAM_YOUNG_MS 10000 /* who ends before without a call is ill */

struct mo_upstream;
struct mo_child;

struct mo_child_request { /* zeroed before the first use, but for ready */
    struct mo_list node;
    void (*ready)(struct mo_child_request *w, struct mo_child *c,
                  const struct mo_err *why); /* c NULL: why */
    struct mo_upstream *up; /* from here on ours: NULL: not waiting */
    struct mo_child *child;
    unsigned char refusal;
    bool granted, trial;
    bool counts; /* set before: it is a call, for max_calls */
    uint64_t who, since_ms;
};

/* The children of many servers, counted together. The owner's storage; lives
 * longer than they do. */
struct mo_upstream_pool {
    unsigned max;
    unsigned running, closing; /* closing are running, too */
    struct mo_list idle;       /* children without a call, oldest first */
    struct mo_list queue;      /* those that wait for room */
    unsigned queued;
};

void mo_upstream_pool_init(struct mo_upstream_pool *p,
                           unsigned max); /* 0: the usual */

struct mo_upstream_cb { /* news of any of its children; ctx as given to
                           mo_upstream_new */
    /* c is not held: mo_child_hold() it for calls of your own, or it may be
     * stopped as idle under them. */
    void (*on_open)(void *ctx, struct mo_child *c);
    void (*on_ask)(void *ctx, struct mo_child *c, struct mo_ask *a);
    void (*on_ask_gone)(void *ctx, struct mo_ask *a);
    void (*on_notify)(void *ctx, struct mo_child *c, const struct mo_rpc *m,
                      uint64_t stream_of);
    void (*on_lost)(void *ctx, struct mo_child *c, const struct mo_err *why);
    void (*on_state)(void *ctx, struct mo_upstream *u); /* something to show */
};

enum mo_upstream_state { /* of the server as a whole, for people */
                         MO_UPSTREAM_COLD, /* never started, or stopped when
                                              idle */
                         MO_UPSTREAM_STARTING,
                         MO_UPSTREAM_OK,
                         MO_UPSTREAM_FAILED,  /* the last start or call failed;
                                           tried again  when wanted */
                         MO_UPSTREAM_BROKEN,  /* the breaker is open: not tried
                                           before  `retry_ms` */
                         MO_UPSTREAM_SIGN_IN, /* a person must sign in first */
};

struct mo_upstream_status {
    enum mo_upstream_state state;
    unsigned children, calls; /* open; under way on them */
    unsigned waiting;         /* wishes */
    uint64_t starts, fails;   /* since we run; fails: starts and losses */
    uint64_t retry_ms;        /* until it may be tried again; 0: now */
    enum mo_breaker_state breaker;
    struct mo_err why; /* the last failure; code 0: none since it worked */
};

struct mo_upstream *mo_upstream_new(const struct mo_gateway_opts *o,
                                    const struct mo_gw_server *s,
                                    const struct mo_upstream_cb *cb, void *ctx,
                                    struct mo_err *e);
/* Count its children in that pool, from the beginning on. Without it they have
 * a pool of their own. */
void mo_upstream_join_pool(struct mo_upstream *u, struct mo_upstream_pool *p);
/* Fails every wish, closes every child; gone(ctx) when the last is gone. */
void mo_upstream_close(struct mo_upstream *u, void (*gone)(void *ctx),
                       void *ctx);

/* who: the client's session (per_session: the key of the child). caps: what
 * that client can do, JSON text; a shared child, and one whose client did not
 * say it once and for all (empty), is told all we can carry. */
void mo_upstream_request_child(struct mo_upstream *u, struct mo_span who,
                               struct mo_span caps, struct mo_child_request *w);
void mo_upstream_cancel_request(struct mo_child_request *w);
void mo_child_release(struct mo_child *c);
/* The same for a wish that counted. */
void mo_child_release_call(struct mo_child *c);
/* Once more granted: one more mo_child_release(). */
void mo_child_hold(struct mo_child *c);
/* How a call went, for the breaker: a fault of the server's, or none. What
 * several calls on a child say in one turn of the loop has one cause and
 * counts as one fault; so does the loss of the child. */
void mo_child_report(struct mo_child *c, bool fault);
/* The same fault with its reason, to be shown to people. */
void mo_child_report_fault(struct mo_child *c, const struct mo_err *why);

struct mo_conn *mo_child_conn(const struct mo_child *c); /* NULL: lost */
struct mo_upstream *mo_child_upstream(const struct mo_child *c);
struct mo_span mo_child_who(const struct mo_child *c); /* empty: shared */

const struct mo_gw_server *mo_upstream_server(const struct mo_upstream *u);
void mo_upstream_status(const struct mo_upstream *u,
                        struct mo_upstream_status *out);
/* What only people and the router read of it; without memory it stays. */
void mo_upstream_reconfigure(struct mo_upstream *u,
                             const struct mo_gw_server *s);
/* A person says so, or has signed in: no pause holds any more. */
void mo_upstream_retry_now(struct mo_upstream *u);
/* Somebody's session is over: its child need not wait for its idle time. */
void mo_upstream_session_gone(struct mo_upstream *u, struct mo_span who);

#endif
