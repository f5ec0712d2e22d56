/* upstream_priv.h - shared by the files of an upstream: upstream.c (requests,
 * the number of children and the shown state), child.c (one child) and
 * fair_queue.c (order of waiting requests). Not included elsewhere, except by
 * tests.
 *
 * Invariants
 *  1. A request is in exactly one list: up->requests (shared), its child's
 *     requests (per session) or up->ready, and in none after its delivery.
 *  2. calls counts every mo_child_hold(), every grant that was not released,
 *     and every granted request that is not delivered yet. A child with calls
 *     is not freed.
 *  3. A child has a conn in STARTING, OPEN and CLOSING, in no other state.
 *  4. pool->idle holds exactly the OPEN children without calls, pool->queue
 *     exactly the NEW ones.
 *  5. Only up->later calls a request's ready(). */
#ifndef MO_GATEWAY_UPSTREAM_UPSTREAM_PRIV_H
#define MO_GATEWAY_UPSTREAM_UPSTREAM_PRIV_H

#include "base/map.h"
#include "gateway/upstream/upstream.h"

enum child_state {
    CH_NEW, /* waits for a place in the pool */
    CH_STARTING,
    CH_OPEN,
    CH_CLOSING,
    CH_GONE, /* still held */
    CH_STATES,
};

/* Why a request is not granted. */
enum refusal {
    NOT_REFUSED,
    REFUSED_START,   /* the awaited start failed */
    REFUSED_SIGN_IN, /* likewise: the person must sign in */
    REFUSED_BACKOFF, /* pause after a failed start */
    REFUSED_BREAKER, /* breaker open */
    REFUSED_ROOM,
    REFUSED_QUEUE, /* too many calls, for too long */
    REFUSED_MEMORY,
    REFUSED_CLOSED,
};

struct mo_child {
    struct mo_list node; /* in up->children until freed */
    struct mo_list queue_node, idle_node;
    struct mo_upstream *up;
    enum child_state state;
    struct mo_conn *conn;
    struct mo_list requests; /* per session: wait for it to open */
    unsigned calls;
    bool opened;     /* on_open was called: on_lost will be */
    bool orphan;     /* its session ended: close when released */
    bool trial;      /* runs the breaker's trial */
    bool retried;    /* retried without the known era */
    bool not_dialed; /* the last dial failed immediately */
    unsigned dials;  /* links that were made for its conn */
    struct mo_conn_verdict known;
    uint64_t number;             /* counts starts of this server */
    uint64_t opened_ms, idle_ms; /* when it opened; became idle */
    uint64_t began_ns;           /* when its start began */
    uint64_t fault_turn;         /* loop turn of the last fault */
    struct mo_timer idle;
    char *caps; /* NULL: CAPS_ALL */
    size_t who_len;
    char who[];
};

struct mo_upstream {
    struct mo_upstream_opts opts;
    struct mo_gw_server server; /* without texts, but for its name */
    const struct mo_upstream_cb *cb;
    void *ctx;
    struct mo_upstream_pool own, *pool;
    struct mo_list children;
    unsigned count[CH_STATES];
    struct mo_list requests;   /* shared server: wait for any child */
    struct mo_list ready;      /* granted or refused, not delivered */
    struct mo_list delivering; /* being delivered */
    char *caps; /* of the only client, for shared children; NULL: unknown */
    struct mo_backoff backoff;
    struct mo_breaker breaker;
    struct mo_err why;    /* last failure; cleared when it works */
    struct mo_err failed; /* last failed start */
    bool sign_in;         /* it failed because a person must sign in */
    uint64_t starts, fails;
    uint64_t heard_at, good_at; /* as in struct mo_upstream_status */
    unsigned row;
    unsigned under_way;          /* counted calls, granted and not ended */
    struct mo_map turns;         /* caller hash -> its last turn */
    uint64_t turn;               /* the current one */
    uint64_t hash_key[2];        /* of the caller hash; 0: not drawn yet */
    struct mo_timer queue_timer; /* the oldest request has waited too long */
    struct mo_later later;
    bool freed_place; /* a child is gone: start a queued one */
    bool closing, gone_called;
    struct mo_gone gone;
};

/* upstream.c */
uint64_t mo_upstream_now(void);                   /* ms */
void mo_upstream_schedule(struct mo_upstream *u); /* runs on_later() soon */
void mo_upstream_refuse(struct mo_child_request *w, enum refusal refusal);
void mo_upstream_refuse_all(struct mo_list *requests, enum refusal refusal);
void mo_upstream_grant(struct mo_child_request *w, struct mo_child *c);
void mo_upstream_maybe_free(struct mo_upstream *u);

/* child.c */
/* Adds a NEW child, which upstream.c admits. NULL: out of memory. */
struct mo_child *mo_upstream_child_new(struct mo_upstream *u,
                                       struct mo_span who, struct mo_span caps);
void mo_upstream_child_start(struct mo_child *c);
/* A client's capabilities and the gateway's own extensions. NULL: out of memory
 * or too long; a child is told CAPS_ALL then. */
char *mo_upstream_own_caps(struct mo_span caps);
void mo_upstream_child_close(struct mo_child *c, int code, const char *why);
/* The child is gone: fails its requests and frees it unless it is held. */
void mo_upstream_child_end(struct mo_child *c, enum refusal refusal);
/* Call after a call or request of it ended. */
void mo_upstream_child_released(struct mo_child *c);

/* fair_queue.c */
void mo_fair_queue_init(struct mo_upstream *u);
void mo_fair_queue_fini(struct mo_upstream *u);
uint64_t mo_fair_queue_caller(struct mo_upstream *u, struct mo_span who);
bool mo_fair_queue_full(const struct mo_upstream *u); /* the queue is full */
/* Next request to grant; NULL: all must wait. */
struct mo_child_request *mo_fair_queue_next(struct mo_upstream *u);
void mo_fair_queue_granted(struct mo_upstream *u,
                           const struct mo_child_request *w);
void mo_fair_queue_call_ended(struct mo_upstream *u);

#endif
