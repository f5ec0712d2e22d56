/* redis_priv.h - shared by the files of the Redis backend: redis.c (servers,
 * routing, the life of an operation), redis_write.c (batches, leases,
 * sweeping), redis_read.c, redis_url.c.
 *
 * An operation makes a few calls to Redis at a time. When all of them are
 * answered, its step() looks at the replies and makes the next calls; if it
 * makes none, the operation is over. The first failure ends the operation as
 * soon as no call is under way.
 *
 * Order: writes of one session go to one slot, so over one connection, in
 * order. They never wait for another key. */
#ifndef MO_STORE_REDIS_PRIV_H
#define MO_STORE_REDIS_PRIV_H

#include "store/priv.h"
#include "store/rconn.h"

#define MO_REDIS_NODES_MAX 16 /* servers of a cluster that we talk to */
#define MO_REDIS_HOPS_MAX  5  /* MOVED or ASK for one call */
#define MO_REDIS_SLOTS     16384
#define MO_REDIS_INDEX     "mcp:session:index"
#define MO_REDIS_AUDITS    "mcp:audit:index"
#define MO_REDIS_MARKS     "mcp:marks"
#define MO_REDIS_WAKE      "mcp:wake"

struct mo_redis {
    struct mo_store s; /* first */
    struct mo_rconf conf;
    struct mo_rconn *nodes[MO_REDIS_NODES_MAX]; /* 0: one of the URL */
    unsigned nnodes;
    struct mo_rconn *ear; /* NULL: no lease is waited for */
    uint8_t *slots;       /* slot -> node; NULL: no cluster */
    struct mo_list ops;
    uint64_t swept;   /* how far into the index */
    unsigned copies;  /* replicas that must have a write */
    unsigned closing; /* connections not gone yet */
    bool was_up;
};

struct mo_rop;

/* Called for a reply that is not an error. False: it has the wrong form, or
 * mo_rop_fail() has told why the operation fails. */
typedef bool mo_rgot(struct mo_rop *o, const struct mo_resp *r);

struct mo_rcall {
    struct mo_rcmd cmd;
    struct mo_list node; /* of o->calls */
    struct mo_rop *o;
    unsigned slot, hops;
    bool once;    /* not repeated on another connection */
    size_t tag;   /* the caller's; o->tag while got() runs */
    mo_rgot *got; /* NULL: the reply is ignored */
};

struct mo_rop {
    struct mo_list node; /* of r->ops */
    struct mo_redis *r;
    struct mo_op *op;
    struct mo_list calls;
    unsigned out; /* calls under way */
    void (*step)(struct mo_rop *o);
    size_t tag; /* of the call that was answered */
    /* reading */
    struct mo_row *rows; /* room for limit + 1 */
    size_t nrows, bytes;
    struct mo_span *ids; /* sessions of the page of the index */
    double *scores;
    size_t nids, next, page;
    uint64_t floor; /* audit: rows older than this may be missing */
    bool last_page;
};

/* A call of a script, or (-1) of a plain command, to the server that has
 * `route`. Then add its arguments and send it. NULL: no memory, and the
 * operation has failed; the functions below accept NULL for k. */
struct mo_rcall *mo_rcall_new(struct mo_rop *o, int script,
                              struct mo_span route, mo_rgot *got, size_t tag);
/* Adds arguments by fmt: 's' const char *, 't' struct mo_span, 'i' uint64_t,
 * 'k' const char * and struct mo_span: "mcp:lock:" and "x" make
 * mcp:lock:{x}. */
void mo_rcall_put(struct mo_rcall *k, const char *fmt, ...);
void mo_rcall_go(struct mo_rcall *k);
/* All three. */
void mo_rcall(struct mo_rop *o, int script, struct mo_span route, mo_rgot *got,
              size_t tag, const char *fmt, ...);

/* A step: the replicas have what the calls before have written. */
void mo_rop_await_copies(struct mo_rop *o);
/* Fails the operation. Later failures are ignored. Always false. */
bool mo_rop_fail(struct mo_rop *o, int code, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));
/* Copies a text of a reply; false: no memory, and the operation has failed. */
bool mo_rop_keep(struct mo_rop *o, struct mo_span from, struct mo_span *to);

void mo_redis_write(struct mo_rop *o);
void mo_redis_lease(struct mo_rop *o);
void mo_redis_sweep(struct mo_rop *o);
void mo_redis_read(struct mo_rop *o);
void mo_redis_count(struct mo_rop *o);
/* Reads the counters of a day; got() is called with its reply. */
void mo_redis_read_day(struct mo_rop *o, mo_rgot *got);
/* Asks for members of an index with their scores, o->page of them from o->next
 * on. */
void mo_redis_ask_page(struct mo_rop *o, const char *command, const char *index,
                       const char *from, const char *to, mo_rgot *got);
/* Takes the reply to that: o->ids and o->scores; o->next moves on. */
bool mo_redis_page(struct mo_rop *o, const struct mo_resp *r);

/* redis_url.c */
int mo_redis_url(struct mo_rconf *f, const struct mo_store_opts *o,
                 struct mo_err *e);

/* A number or a text of digits. */
bool mo_resp_u64(const struct mo_resp *r, uint64_t *out);

#endif
