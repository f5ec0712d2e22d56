/* priv.h - shared by the files of store/; nobody else includes it.
 *
 * store.c or lease.c makes an operation (struct mo_op), copies everything it
 * needs into its arena, and gives it to the backend by submit(). The backend
 * fills in the result and returns it by mo_op_finish(), from the loop and
 * never from inside submit(). store.c answers the caller and frees it.
 *
 * The deadline is store.c's: when it passes, the caller is answered at once,
 * and the operation is freed when the backend returns it. A backend reads
 * `answered` only to skip work. */
#ifndef MO_STORE_PRIV_H
#define MO_STORE_PRIV_H

#include "base/map.h"
#include "base/rand.h"
#include "store/store.h"

enum mo_op_kind {
    MO_OP_WRITE,
    MO_OP_READ,
    MO_OP_TRY,   /* take the lease, or learn who has it */
    MO_OP_RENEW, /* its term begins again; MO_EPOLICY when it is not ours */
    MO_OP_DROP,  /* give it back if it is ours */
    MO_OP_BREAK, /* end it if it is still `owner`s under `fence` */
    MO_OP_WHO,
    MO_OP_COUNT,
    MO_OP_SWEEP,   /* remove expired rows */
    MO_OP_INDEX,   /* Redis: full text */
    MO_OP_VERSION, /* Redis: may we use it? */
};

/* Each attempt to take a lease has a random token. An attempt whose answer was
 * lost can be repeated or undone by it. */
#define MO_LEASE_TOKEN_LEN MO_TOKEN_LEN(12)

struct mo_op {
    struct mo_list node; /* the backend's */
    struct mo_store *s;
    enum mo_op_kind kind;
    struct mo_arena mem;
    size_t bytes; /* of the request, counted against MO_STORE_QUEUE_MAX */

    /* the request */
    struct mo_store_batch batch;
    struct mo_read read;
    struct mo_span name, owner; /* of the lease */
    char token[MO_LEASE_TOKEN_LEN + 1];
    const struct mo_counter *counters;
    size_t ncounters;
    uint64_t now_ms; /* wall, when it was asked */

    /* the result */
    struct mo_err err; /* code 0: none */
    struct mo_written written;
    struct mo_rows rows;
    struct mo_counted counted;
    bool held;             /* TRY: it is ours now */
    uint64_t fence;        /* of the holder; BREAK: the one to end */
    uint64_t left_ms;      /* TRY, not ours: the rest of the holder's term */
    struct mo_span holder; /* WHO, TRY: owner */

    /* whom to answer: one of these */
    struct mo_op_answer {
        void (*on_written)(void *ctx, const struct mo_written *w,
                           const struct mo_err *why);
        void (*on_rows)(void *ctx, const struct mo_rows *rows,
                        const struct mo_err *why);
        void (*on_counted)(void *ctx, const struct mo_counted *c,
                           const struct mo_err *why);
        void (*on_who)(void *ctx, struct mo_span owner, uint64_t fence,
                       const struct mo_err *why);
        void (*on_broken)(void *ctx, const struct mo_err *why);
        void (*on_op)(void *ctx, const struct mo_op *op); /* lease.c */
        void *ctx;
    } to;

    struct mo_timer deadline;
    struct mo_later later; /* mo_op_fail() */
    bool answered;
    void *back;       /* the backend's own */
    int64_t index_to; /* SQLite, SEARCH: what the index must reach first */
};

struct mo_store_ops {
    const char *name;
    bool is_shared; /* by several machines */
    void (*submit)(struct mo_store *s, struct mo_op *op);
    /* A lease is waited for: from now on call mo_lease_wake() for every
     * release anywhere. May be called again. */
    void (*listen)(struct mo_store *s);
    /* The caller has been answered: drop the operation if that is possible.
     * May be NULL. */
    void (*give_up)(struct mo_store *s, struct mo_op *op);
    /* No operation is under way; mo_store_gone() once, later. */
    void (*close)(struct mo_store *s);
};

/* Embedded first in each backend's struct. */
struct mo_store {
    const struct mo_store_ops *ops;
    struct mo_loop *loop;
    uint64_t history_ttl_ms, audit_ttl_ms, deadline_ms, lease_ttl_ms;
    struct mo_store_health health;
    unsigned nops;   /* operations that exist */
    unsigned nasked; /* of them, by callers: what MO_STORE_OPS_MAX bounds */
    size_t bytes;
    struct mo_map lines; /* lease.c: name -> struct line */
    struct mo_list leases;
    struct mo_timer sweep;
    struct mo_later later; /* close() when nothing is under way */
    bool closing, closed;
    struct mo_gone gone;
    void (*on_audit)(void *ctx, struct mo_span session, uint64_t at,
                     struct mo_span doc);
    void *on_audit_ctx;
};

/* store.c, for the backends */
void mo_store_init(struct mo_store *s, const struct mo_store_ops *ops,
                   struct mo_loop *l, const struct mo_store_opts *o);
void mo_op_finish(struct mo_op *op);
void mo_op_finish_later(struct mo_op *op); /* for use inside submit() */
void mo_store_up(struct mo_store *s);
void mo_store_down(struct mo_store *s, const struct mo_err *why);
/* The last call of a backend: frees s. The backend must have released
 * everything else. */
void mo_store_gone(struct mo_store *s);

static inline void mo_rows_reverse(struct mo_row *v, size_t n)
{
    for (size_t i = 0; v && i < n / 2; i++) {
        struct mo_row t = v[i];

        v[i] = v[n - 1 - i];
        v[n - 1 - i] = t;
    }
}

/* store.c, for lease.c */
struct mo_op *mo_op_new(struct mo_store *s, enum mo_op_kind kind, size_t mem);
/* One about a lease. NULL: no memory. */
struct mo_op *mo_op_lease(struct mo_store *s, enum mo_op_kind kind,
                          struct mo_span name, struct mo_span owner);
void mo_op_submit(struct mo_op *op, struct mo_op_answer to);
void mo_op_free(struct mo_op *op); /* one that was not submitted */
bool mo_store_id_ok(struct mo_span id);
void mo_store_settle(
    struct mo_store *s); /* frees a closing store once nothing is under way */

/* lease.c */
void mo_lease_wake(struct mo_store *s, struct mo_span name);
/* Wakes the waiters for which pick() is true; NULL: all. */
void mo_lease_wake_if(struct mo_store *s,
                      bool (*pick)(struct mo_span name, const void *arg),
                      const void *arg);
void mo_lease_close_all(struct mo_store *s);

/* The backends. 0 and *out, or an error. */
int mo_sqlite_open(struct mo_loop *l, const struct mo_store_opts *o,
                   struct mo_store **out, struct mo_err *e);
int mo_redis_open(struct mo_loop *l, const struct mo_store_opts *o,
                  struct mo_store **out, struct mo_err *e);

#endif
