/* up.h - one server above us: its children, started when wanted, kept
 * healthy, stopped when idle.
 *
 * A child is one connection (a process, a box, a remote session). A shared
 * server has up to `instances` of them and gives each call to the one with
 * the fewest calls under way, starting another only when all are busy; a
 * per-session one has exactly one for each client session, whose name is its
 * key. Whoever wants a child waits with a struct mo_up_wish: one start serves
 * all who wait (single flight).
 *
 * States of a child: STARTING -> OPEN -> CLOSING -> gone. A failed start is
 * not tried again before a pause (backoff.h: exponential, with jitter); while
 * the breaker (breaker.h) is open a wish fails at once with the reason.
 *
 * A child without calls for stop_ms is closed, also while clients are
 * connected. A child that is lost fails its calls once each (conn.h); the next
 * wish starts another.
 *
 * Contract
 *  1. A wish is granted or failed exactly once, never from inside
 *     mo_up_want(), unless taken back by mo_up_unwant().
 *  2. A granted child stays valid until mo_child_let_go(); its conn becomes
 *     NULL when it is lost before that. */
#ifndef MO_GATEWAY_UP_H
#define MO_GATEWAY_UP_H

#include "base/list.h"
#include "gateway/gateway.h"

struct mo_up;
struct mo_child;

struct mo_up_wish {
    struct mo_list node;
    void (*ready)(struct mo_up_wish *w, struct mo_child *c,
                  const struct mo_err *why); /* c NULL: why */
};

struct mo_up_cb { /* news of any of its children; ctx as given to mo_up_new */
    void (*on_open)(void *ctx, struct mo_child *c);
    void (*on_ask)(void *ctx, struct mo_child *c, struct mo_ask *a);
    void (*on_ask_gone)(void *ctx, struct mo_ask *a);
    void (*on_notify)(void *ctx, struct mo_child *c, const struct mo_rpc *m,
                      uint64_t stream_of);
    void (*on_lost)(void *ctx, struct mo_child *c, const struct mo_err *why);
    void (*on_state)(void *ctx, struct mo_up *u); /* something to show */
};

enum mo_up_state {             /* of the server as a whole, for people */
                   MO_UP_COLD, /* never started, or stopped when idle */
                   MO_UP_STARTING,
                   MO_UP_OK,
                   MO_UP_FAILED,  /* the last start or call failed; tried again
                                     when wanted */
                   MO_UP_BROKEN,  /* the breaker is open: not tried before
                                     `retry_ms` */
                   MO_UP_SIGN_IN, /* a person must sign in first */
};

struct mo_up_status {
    enum mo_up_state state;
    unsigned children, calls; /* open; under way on them */
    uint64_t starts, fails;   /* since we run */
    uint64_t retry_ms;        /* until it may be tried again; 0: now */
    struct mo_err why;        /* the last failure; code 0: none */
};

struct mo_up *mo_up_new(const struct mo_gateway_opts *o,
                        const struct mo_gw_server *s, const struct mo_up_cb *cb,
                        void *ctx, struct mo_err *e);
/* Fails every wish, closes every child; gone(ctx) when the last is gone. */
void mo_up_close(struct mo_up *u, void (*gone)(void *ctx), void *ctx);

/* who: the client's session (per_session: the key of the child). caps: what
 * that client can do, JSON text; a shared child is told all we can carry. */
void mo_up_want(struct mo_up *u, struct mo_span who, struct mo_span caps,
                struct mo_up_wish *w);
void mo_up_unwant(struct mo_up_wish *w);
void mo_child_let_go(struct mo_child *c);
/* How a call went, for the breaker: a fault of the server's, or none. */
void mo_child_told(struct mo_child *c, bool fault);

struct mo_conn *mo_child_conn(const struct mo_child *c); /* NULL: lost */
struct mo_up *mo_child_up(const struct mo_child *c);
struct mo_span mo_child_who(const struct mo_child *c); /* empty: shared */

const struct mo_gw_server *mo_up_server(const struct mo_up *u);
void mo_up_status(const struct mo_up *u, struct mo_up_status *out);
/* Somebody's session is over: its child need not wait for its idle time. */
void mo_up_session_gone(struct mo_up *u, struct mo_span who);

#endif
