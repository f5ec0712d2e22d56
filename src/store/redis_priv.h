/* redis_priv.h - shared by the files of the Redis backend: redis.c (servers,
 * routing, the life of an operation), redis_write.c (batches, leases,
 * sweeping), redis_read.c, redis_index.c and redis_search.c (full text),
 * redis_version.c.
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
#define MO_REDIS_CLOSED    "mcp:session:closed"
#define MO_REDIS_AUDITS    "mcp:audit:index"
#define MO_REDIS_MARKS     "mcp:marks"
#define MO_REDIS_WAKE      "mcp:wake"

/* Format of the keys (codec/state_version.h). 1: without a record of it. */
#define MO_REDIS_VERSION 2
#define MO_REDIS_READS   1

/* Full-text search: redis_index.c. */
#define MO_REDIS_CONVS    256 /* newest conversations of a session */
#define MO_REDIS_PART     128 /* entries; part of the stored format */
#define MO_REDIS_WORD_MAX 64  /* bytes of a word in the index */
#define MO_REDIS_TEXT_MAX ((size_t)256 * 1024) /* of an entry */

struct mo_fts;

struct mo_rindex {
    mo_store_text_fn *text_of; /* NULL: there is no index */
    struct mo_fts *words;      /* NULL: not loaded yet */
    struct mo_map dirty;       /* sessions that may have entries behind it */
    struct mo_timer soon;      /* index them */
    uint64_t since;            /* ns: the oldest of them; 0: none */
    bool busy;
    struct mo_timer walk; /* the next page of all sessions */
    struct mo_lease *lease;
    struct mo_read page;
    char last[MO_STORE_ID_MAX]; /* page.id */
};

/* May this program use what is stored? redis_version.c. */
struct mo_rversion {
    enum {
        MO_RVERSION_UNKNOWN,
        MO_RVERSION_ASKED,
        MO_RVERSION_GOOD,
        MO_RVERSION_BAD, /* asked again after a while */
    } state;
    struct mo_list held; /* operations that wait for the answer, in order */
    struct mo_err why;   /* BAD */
    uint64_t asked;      /* ns */
};

struct mo_redis {
    struct mo_store s; /* first */
    struct mo_rindex index;
    struct mo_rversion version;
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
    struct mo_search *search;
    /* ids[i] is indexed; NULL: nobody waits for it */
    void (*indexed)(struct mo_rop *o, size_t i);
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
void mo_redis_search(struct mo_rop *o);
/* A row of the answer is copied; false: no room or memory. */
bool mo_redis_add_row(struct mo_rop *o, struct mo_row row);
/* Makes o->rows the answer; a row over the limit sets `more`. */
void mo_redis_give_rows(struct mo_rop *o);

/* redis_index.c */
void mo_redis_index_init(struct mo_redis *r, const struct mo_store_opts *o);
void mo_redis_index_stop(struct mo_redis *r);
/* The batch is written: its entries are indexed soon. */
void mo_redis_index_later(struct mo_redis *r, const struct mo_store_batch *b);
/* MO_OP_INDEX: op->back are struct mo_rids. */
struct mo_rids {
    size_t n;
    struct mo_span v[];
};
void mo_redis_index(struct mo_rop *o, struct mo_rids *ids);
/* Brings the index of session ids[i] up to date, then calls o->indexed(). */
void mo_redis_index_session(struct mo_rop *o, size_t i);
/* NULL: the library is missing; the operation has failed. */
struct mo_fts *mo_redis_words(struct mo_rop *o);
unsigned mo_redis_bucket(struct mo_span word);
/* The text of an entry to search in, at most MO_REDIS_TEXT_MAX; empty on
 * failure. */
struct mo_span mo_redis_text(const struct mo_redis *r, struct mo_span doc,
                             struct mo_buf *room);
/* Reads the counters of a day; got() is called with its reply. */
void mo_redis_read_day(struct mo_rop *o, mo_rgot *got);
/* Asks for members of an index with their scores, o->page of them from o->next
 * on. */
void mo_redis_ask_page(struct mo_rop *o, const char *command, const char *index,
                       const char *from, const char *to, mo_rgot *got);
/* Takes the reply to that: o->ids and o->scores; o->next moves on. */
bool mo_redis_page(struct mo_rop *o, const struct mo_resp *r);

/* redis_version.c */
void mo_redis_version_init(struct mo_redis *r);
/* False: the operation is kept until the version is known, or has failed. */
bool mo_redis_version_pass(struct mo_redis *r, struct mo_op *op);
/* True: it was kept, and is over. */
bool mo_redis_version_drop(struct mo_redis *r, struct mo_op *op);
void mo_redis_version_lost(struct mo_redis *r); /* ask again when it is back */
void mo_redis_version(struct mo_rop *o);        /* MO_OP_VERSION */

/* A number or a text of digits. */
bool mo_resp_u64(const struct mo_resp *r, uint64_t *out);

#endif
