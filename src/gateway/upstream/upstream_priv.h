/* upstream_priv.h - what the rooms of a server share: up (wishes and what is
 * shown of it), up_child (the life of one child), up_room (how many there may
 * be). Nobody else includes it.
 *
 * Invariants
 *  1. A wish is in exactly one list: up->wishes (shared), its child's wishes
 *     (per session), or up->ready, and in none once it was delivered.
 *  2. calls counts every mo_child_hold(), every grant that was not let go, and
 *     every granted wish that is still to be delivered: a child with calls is
 *     not freed.
 *  3. A child has a conn in STARTING, OPEN and CLOSING, in no other state.
 *  4. In pool->idle are exactly the OPEN children without calls, in
 *     pool->queue exactly the NEW ones.
 *  5. Nothing of ours calls a wish's ready or on_state but up->later. */
#ifndef MO_GATEWAY_UPSTREAM_UPSTREAM_PRIV_H
#define MO_GATEWAY_UPSTREAM_UPSTREAM_PRIV_H

#include "base/map.h"
#include "gateway/upstream/backoff.h"
#include "gateway/upstream/upstream.h"

enum child_state {
    CH_NEW, /* waits for room */
    CH_STARTING,
    CH_OPEN,
    CH_CLOSING,
    CH_GONE, /* still held by somebody */
    CH_STATES,
};

enum refusal { /* why a wish is not granted */
               NOT_REFUSED,
               REFUSED_START,   /* the start it waited for has failed */
               REFUSED_BACKOFF, /* after a failed start */
               REFUSED_BREAKER, /* the breaker */
               REFUSED_ROOM,
               REFUSED_QUEUE, /* too many others, for too long */
               REFUSED_MEMORY,
               REFUSED_CLOSED,
};

struct mo_child {
    struct mo_list node; /* in up->children, until it is freed */
    struct mo_list queue_node, idle_node;
    struct mo_upstream *up;
    enum child_state state;
    struct mo_conn *conn;
    struct mo_list requests; /* per session: until it is open */
    unsigned calls;
    bool opened;     /* on_open was told: on_lost will be */
    bool orphan;     /* its session is over: closed when let go */
    bool trial;      /* has the breaker's trial */
    bool retried;    /* without what was known of its era */
    bool not_dialed; /* the last dial failed at once */
    struct mo_conn_verdict known;
    uint64_t number;             /* of our starts */
    uint64_t opened_ms, idle_ms; /* since when */
    uint64_t fault_turn;         /* of the loop, of the last fault */
    struct mo_timer idle;
    char *caps; /* NULL: all we can carry */
    size_t who_len;
    char who[];
};

struct mo_upstream {
    struct mo_gateway_opts opts;
    struct mo_gw_server server; /* texts are our own */
    const struct mo_upstream_cb *cb;
    void *ctx;
    struct mo_upstream_pool own, *pool;
    struct mo_list children;
    unsigned count[CH_STATES];
    struct mo_list requests;   /* shared: for any child */
    struct mo_list ready;      /* granted or refused, to be delivered */
    struct mo_list delivering; /* being delivered */
    struct mo_backoff backoff;
    struct mo_breaker breaker;
    struct mo_err why;    /* the last failure; cleared when it works */
    struct mo_err failed; /* the last failed start */
    bool sign_in;         /* that was because a person must sign in */
    uint64_t starts, fails;
    enum mo_upstream_state shown_state;
    unsigned under_way;  /* calls that count, granted and not over */
    struct mo_map turns; /* who -> number of the turn it last had */
    uint64_t turn, hash_key0, hash_key1; /* the present one; of names */
    struct mo_timer queue_timer; /* the oldest of them has waited long enough */
    struct mo_later later;
    struct mo_timer breaker_timer; /* a pause is over: another state to show */
    bool freed_place;              /* a child is gone: others may start */
    bool closing, gone_called;
    void (*gone)(void *ctx);
    void *gone_ctx;
};

/* upstream.c */
uint64_t mo_upstream_now(void); /* ms */
void mo_upstream_schedule(
    struct mo_upstream *u); /* later: pump, deliver, show */
void mo_upstream_refuse(struct mo_child_request *w, enum refusal refusal);
void mo_upstream_refuse_all(struct mo_list *requests, enum refusal refusal);
void mo_upstream_grant(struct mo_child_request *w, struct mo_child *c);
void mo_upstream_maybe_free(struct mo_upstream *u);

/* child.c */
void mo_upstream_child_move(struct mo_child *c, enum child_state to);
/* To be settled (up_room). NULL: out of memory. */
struct mo_child *mo_upstream_child_new(struct mo_upstream *u,
                                       struct mo_span who, struct mo_span caps);
void mo_upstream_child_start(struct mo_child *c);
void mo_upstream_child_close(struct mo_child *c, int code, const char *why);
void mo_upstream_child_end(struct mo_child *c,
                           enum refusal refusal);    /* NEW: it never began */
void mo_upstream_child_released(struct mo_child *c); /* a call or a wish less */

/* fair_queue.c */
void mo_fair_queue_init(struct mo_upstream *u);
void mo_fair_queue_fini(struct mo_upstream *u);
uint64_t mo_fair_queue_caller(const struct mo_upstream *u, struct mo_span who);
bool mo_fair_queue_full(const struct mo_upstream *u); /* no more may wait */
/* Whose turn it is; NULL: nobody's, all must wait. */
struct mo_child_request *mo_fair_queue_next(struct mo_upstream *u);
void mo_fair_queue_granted(struct mo_upstream *u,
                           const struct mo_child_request *w); /* granted */
void mo_fair_queue_call_ended(struct mo_upstream *u);

/* process_limit.c */
/* A NEW child is started, waits, or (false) is dropped. */
bool mo_process_limit_admit(struct mo_child *c);
void mo_process_limit_freed(struct mo_upstream_pool *p); /* a place is free */

#endif
