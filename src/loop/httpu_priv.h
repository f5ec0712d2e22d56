/* httpu_priv.h - shared by httpu.c (requests) and httpu_conn.c (connections).
 *
 * A request (x) waits, dials or takes an idle connection, is sent, receives its
 * answer and ends. A connection serves one request at a time and is idle
 * between two.
 *
 * Invariants:
 *  1. x->conn and conn->x point at each other or are both NULL.
 *  2. A request ends through mo_httpu_x_end() only; its on_done is called from
 * its `later` only, where it is freed.
 *  3. A connection is freed after its stream's on_close, or after a hijack.
 *  4. nconns counts dials and connections together: the limit of `conns`.
 *  5. A connection is in `idle` only while it can be used. */
#ifndef MO_LOOP_HTTPU_PRIV_H
#define MO_LOOP_HTTPU_PRIV_H

#include "loop/httpu.h"
#include "loop/priv.h"

struct mo_httpu {
    struct mo_loop *loop;
    char *addr, *host, *sni; /* sni may be NULL */
    struct mo_tls_ctx *tls;
    unsigned max_conns, max_waiting, max_idle, keep_ms;
    bool own_user;
    unsigned loss_ms;
    struct mo_list waiting; /* requests in order of arrival */
    struct mo_list busy;    /* requests that dial, use a connection or end */
    struct mo_list idle;    /* connections; the most recent is last */
    struct mo_list used;    /* connections with a request, or closing */
    unsigned nwaiting, nidle, nconns;
    struct mo_later later; /* start waiting requests, or finish closing */
    bool closing;
    struct mo_gone gone;
};

enum x_state { X_WAITING, X_DIALING, X_SENT, X_ANSWER, X_ENDED };

struct mo_httpu_x {
    struct mo_list node;
    struct mo_httpu *u;
    enum x_state state;
    struct mo_httpu_conn *conn;
    struct mo_dial *dial;
    struct mo_buf out; /* the whole request, kept for a retry */
    const struct mo_http_cb *cb;
    void *ctx;
    struct mo_timer total, idle;
    struct mo_later later;
    struct mo_err err; /* code 0: none */
    struct mo_span early;
    unsigned connect_ms, idle_ms;
    uint64_t got, max_bytes;
    size_t queued; /* at the last check of the idle timer */
    bool in_head, bodiless, idempotent, fresh;
    bool sent; /* on a connection that was ready; known at the end */
};

struct mo_httpu_conn {
    struct mo_list node;
    struct mo_httpu *u;
    struct mo_stream *s; /* NULL: hijacked */
    struct mo_http1 *http;
    struct mo_httpu_x *x;
    struct mo_timer keep;
    bool is_idle; /* in u->idle, keep is running */
    bool used;    /* has served a request before */
};

void mo_httpu_x_move(struct mo_httpu_x *x, enum x_state to);
/* End the request with a reason or with success; only the first end counts. */
void mo_httpu_x_end(struct mo_httpu_x *x, const struct mo_err *why);
/* The same, and close its connection. */
void mo_httpu_x_fail(struct mo_httpu_x *x, const struct mo_err *why);
/* Put it back at the front of the queue. */
void mo_httpu_x_again(struct mo_httpu_x *x);
void mo_httpu_x_idle_start(struct mo_httpu_x *x);

/* Takes the stream, also on failure. */
struct mo_httpu_conn *mo_httpu_conn_new(struct mo_httpu *u, struct mo_stream *s,
                                        struct mo_err *e);
void mo_httpu_conn_kill(struct mo_httpu_conn *c);
struct mo_httpu_conn *mo_httpu_conn_idle(struct mo_httpu *u); /* or NULL */
void mo_httpu_conn_send(struct mo_httpu_conn *c, struct mo_httpu_x *x);

#endif
