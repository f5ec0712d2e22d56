/* store.h - durable state: sessions, conversations, calls, leases, audit. One
 * interface, two backends (SQLite in a file, Redis).
 *
 * A row is a document (JSON text that the store parses only to forget its
 * arguments and results) beside the few
 * fields that it sorts, finds and compares by. The rooms above write the
 * documents, so a new member of a document needs no migration.
 *
 * Promises (every backend, checked by one test suite):
 *  1. A write whose done() came without an error is durable: it survives a
 *     SIGKILL of this process in the next instruction (Redis: as durable as
 *     that server is configured to be).
 *  2. A batch is all or nothing, and readers see it whole.
 *  3. done() fires exactly once, from the loop, never from inside the call
 *     that asked. Its rows are borrowed until it returns.
 *  4. Writes of one session happen in the order they were asked for.
 *  5. A store that cannot be reached answers MO_EUNAVAIL, at once or after the
 *     deadline. The write may have happened or not, so callers make writes
 *     that can be repeated: ids are the caller's; a second new call with the
 *     same id is MO_EEXISTS; an entry that is written `again` and is one of
 *     the last MO_STORE_AGAIN already is not added twice.
 *  6. A write that carries the fence of an old lease is refused (MO_EPOLICY).
 *     A process that slept while another took over can do no harm.
 *
 * Bounds: a document MO_STORE_DOC_MAX; a batch MO_STORE_BATCH_MAX writes of
 * MO_STORE_BATCH_BYTES together; operations under way MO_STORE_OPS_MAX, their
 * bytes MO_STORE_QUEUE_MAX (more is MO_EBUSY); rows of one answer as asked, at
 * most MO_STORE_ROWS_MAX and MO_STORE_ANSWER_MAX bytes (`more` is set). */
#ifndef MO_STORE_STORE_H
#define MO_STORE_STORE_H

#include "base/str.h"
#include "loop/loop.h"

#define MO_STORE_DOC_MAX     ((size_t)4 * 1024 * 1024)
#define MO_STORE_BATCH_MAX   65 /* a model's reply and its 64 calls */
#define MO_STORE_BATCH_BYTES ((size_t)16 * 1024 * 1024)
#define MO_STORE_OPS_MAX     4096
#define MO_STORE_AGAIN       32
#define MO_STORE_QUEUE_MAX   ((size_t)256 * 1024 * 1024)
#define MO_STORE_ROWS_MAX    1000
#define MO_STORE_ANSWER_MAX  ((size_t)32 * 1024 * 1024)
#define MO_STORE_ID_MAX      128 /* bytes of any id: [A-Za-z0-9_.:-] */
#define MO_STORE_DEADLINE_MS 5000
#define MO_STORE_AMONG_MAX   ((size_t)128 * 1024)

struct mo_store;

/* Appends the text of an entry's document that a search looks at. */
typedef void mo_store_text_fn(struct mo_span doc, struct mo_buf *out);

struct mo_store_opts {
    /* sqlite:PATH, redis://[user[:password]@]host[:port][,...][/db],
     * redis+sentinel://...host[:port][,...]/MASTER[/db], rediss://...,
     * redis+unix:PATH[?db=N] */
    const char *url;
    uint64_t history_ttl_ms; /* conversations are removed this long */
                             /* after their last entry; 0: never */
    uint64_t audit_ttl_ms;   /* 0: never */
    uint64_t deadline_ms;    /* of one operation; 0: MO_STORE_DEADLINE_MS */
    uint64_t lease_ttl_ms;   /* 0: MO_LEASE_TTL_MS; every process the same */
    struct mo_span ca_file;  /* rediss: trusted CAs; empty: the system's */
    unsigned replicas;       /* Redis: replicas that must have a write */
                             /* before it is acknowledged */
    /* Redis, which does not keep the `text` of entries: must say the same. */
    /* NULL: nothing is indexed, and a search is MO_EUNAVAIL */
    mo_store_text_fn *text_of;
};

/* SQLite: the file is opened and migrated here; a migration may take a moment.
 * Redis: connecting goes on in the background; the first operations wait for
 * it up to their deadline. */
int mo_store_open(struct mo_loop *l, const struct mo_store_opts *o,
                  struct mo_store **out, struct mo_err *e);
/* Finishes the operations under way, then gone(ctx), once, later. Leases end:
 * a waiting one gets on_held with MO_ECANCELED, a held one gets on_lost with
 * MO_ECLOSED and is given back. */
void mo_store_close(struct mo_store *s, void (*gone)(void *ctx), void *ctx);

struct mo_store_health {
    const char *backend; /* "sqlite", "redis" */
    bool up;
    char why[160];   /* when not up; nothing secret */
    unsigned queued; /* operations under way */
    uint64_t ops, failed, reconnects, group_commits;
};
struct mo_store_health mo_store_health(const struct mo_store *s);

/* --- writing ---------------------------------------------------------------
 *
 * Calls move through these states; the store only compares them. */
enum mo_call_state {
    MO_CALL_PENDING,  /* waits for a person */
    MO_CALL_APPROVED, /* may run, once */
    MO_CALL_RUNNING,  /* given to the box: its outcome may become unknown */
    MO_CALL_DONE,     /* answered, or failed with an answer */
    MO_CALL_REJECTED, /* by a person, by a rule, or expired */
    MO_CALL_UNKNOWN,  /* was running when we or the box died */
};
#define MO_CALL_BIT(state) (1u << (state))

/* "pending", "approved", ...: the name in the API and in stored entries. */
const char *mo_call_state_name(enum mo_call_state state);

enum mo_write_kind {
    MO_WRITE_SESSION, /* doc, at: insert or replace the session's row */
    MO_WRITE_TOUCH,   /* at: only its last activity (never backwards) * */
    MO_WRITE_CLOSE,   /* the row goes, history and calls stay to their TTL */
    MO_WRITE_FORGET,  /* the row, history and calls go, and the members */
                      /* `args` and `content` of its audit rows */
    MO_WRITE_ENTRY,   /* doc, text, at: appended to the conversation * */
    MO_WRITE_FRESH,   /* a new conversation begins; the old stays readable * */
    MO_WRITE_CALL,    /* id, to, doc, at: a new call; MO_EEXISTS if known * */
    MO_WRITE_MOVE,    /* id, from, to, doc (empty: unchanged): if the call's */
                      /* state is in `from`, else the batch is MO_EPOLICY; */
                      /* an unknown call is MO_ENOTFOUND */
    MO_WRITE_AUDIT,   /* doc, at: one row of the audit log */
    MO_WRITE_MARK,    /* id, doc: a document by its id, inserted or replaced, */
                      /* or removed if doc is empty; belongs to no session */
                      /* and does not expire */
    MO_WRITE_SHARE,   /* doc: who may read the session, beside its row: a */
                      /* SESSION write keeps it; it goes with the row * */
};
/* Writes with a star need the session's row, else the batch is MO_ENOTFOUND: a
 * late write must not bring back a session that was closed or lost. A batch is
 * applied in order, so a SESSION write in front of them is enough. Ids of
 * calls are unique within a session. */

struct mo_write {
    enum mo_write_kind kind;
    struct mo_span id;   /* of the call */
    struct mo_span doc;  /* JSON */
    struct mo_span text; /* indexed for full-text search */
    uint64_t at;         /* wall ms; 0: now */
    unsigned from;       /* MO_CALL_BITs */
    enum mo_call_state to;
    bool again; /* ENTRY: a repeated write whose first outcome is unknown. If */
                /* one of the last MO_STORE_AGAIN entries has the same */
                /* document, nothing is added */
};

struct mo_store_batch {
    struct mo_span session; /* of all writes; empty only for audit rows */
                            /* without a session, and for marks */
    uint64_t fence; /* of the lease with the session's name, which must */
                    /* be held under it now; 0: not checked */
    const struct mo_write *writes;
    size_t n;
};

struct mo_written {
    uint64_t conversation; /* number of the current one, from 1 */
    uint64_t seq;          /* of the last entry appended, from 1; or 0 */
    size_t failed;         /* which write was refused (with an error only) */
};

/* Everything is copied before this returns. 0, or a refusal (MO_EINVAL,
 * MO_ETOOBIG, MO_EBUSY, MO_ECLOSED, MO_ENOMEM) and done() never fires. */
int mo_store_write(struct mo_store *s, const struct mo_store_batch *b,
                   void (*done)(void *ctx, const struct mo_written *w,
                                const struct mo_err *why),
                   void *ctx, struct mo_err *e);

/* on_row() is called for every audit row that is accepted, from inside
 * mo_store_write() and before the row is durable. One listener; NULL: none. */
void mo_store_on_audit(struct mo_store *s,
                       void (*on_row)(void *ctx, struct mo_span session,
                                      uint64_t at, struct mo_span doc),
                       void *ctx);

/* --- reading ------------------------------------------------------------- */

enum mo_read_kind {
    MO_READ_SESSION,  /* the one row, or none */
    MO_READ_SESSIONS, /* all, oldest activity first; `before`: only those */
                      /* whose last activity is before it; `after` and `id`: */
                      /* time and session of the last row, to go on; */
                      /* `newest`: the last `limit` */
    MO_READ_HISTORY,  /* entries of a conversation (0: the current one), */
                      /* seq > `after`, in order; `newest`: the last `limit` */
    MO_READ_CALLS,    /* of the session, states in `from` (0: all), oldest */
                      /* first; `after`: seq of the last row, to go on */
    MO_READ_CALL,     /* of the session, by id */
    MO_READ_SEARCH,   /* all words of `text` in all conversations (or the */
                      /* session's, or those of `among`), best first; */
                      /* `after`: so many of them are left out. It finds */
                      /* what was acknowledged before */
    MO_READ_AUDIT,    /* newest first (the session's, if given); `before`, */
                      /* `after` are times; `text`: only rows whose document */
                      /* contains it */
    MO_READ_MARK,     /* by id, or none */
    MO_READ_MARKS,    /* whose id begins with `text`, in the order of their */
                      /* ids' bytes; `id`: that of the last row, to go on */
    MO_READ_DAY,      /* counters of the day `after` whose names begin with */
                      /* `text`, by name: id and seq, the sum; `id`: the last */
                      /* name, to go on */
};

struct mo_read {
    enum mo_read_kind kind;
    struct mo_span session, id, text;
    struct mo_span among; /* ids of sessions, each with a line end; at most */
                          /* MO_STORE_AMONG_MAX bytes. Empty: all */
    uint64_t conversation, after, before;
    unsigned from;
    unsigned limit; /* 0: 100 */
    bool newest;
};

struct mo_row {
    struct mo_span session, id, doc;
    struct mo_span shares; /* of a session's row: MO_WRITE_SHARE; or empty */
    uint64_t conversation, seq;
    uint64_t at; /* wall ms: last activity, or when it was written */
    enum mo_call_state state;
};

struct mo_rows {
    const struct mo_row *v;
    size_t n;
    bool more; /* the limit cut it */
};

int mo_store_read(struct mo_store *s, const struct mo_read *r,
                  void (*done)(void *ctx, const struct mo_rows *rows,
                               const struct mo_err *why),
                  void *ctx, struct mo_err *e);

/* --- counters --------------------------------------------------------------
 *
 * Limits for all processes that share the store (budget/budget.h). A batch is
 * one step: if every limit has room, all of it is counted, else nothing. The
 * clock is that of Redis, or this machine's with SQLite. A write that failed
 * with MO_EUNAVAIL may have been counted.
 *
 * Bounds: MO_COUNTERS_MAX counters a batch, names of MO_COUNTER_NAME_MAX bytes,
 * MO_COUNTER_NAMES names a day (further ones become "other" up to their tab),
 * sums of at most MO_COUNTER_SUM_MAX: they stay there instead of overflowing.
 * Days are removed after MO_COUNTER_DAYS, the rest when its time is over. */
#define MO_COUNTERS_MAX     8
#define MO_COUNTER_NAME_MAX ((size_t)320)
#define MO_COUNTER_NAMES    20000
#define MO_COUNTER_SUM_MAX  ((int64_t)4000000000000000) /* exact as a double */
#define MO_COUNTER_DAYS     32
#define MO_COUNTER_TERM_MS  ((uint64_t)60 * 1000)

enum mo_counter_kind {
    MO_COUNTER_RATE, /* at most `limit` in any 60 seconds; Redis only */
    MO_COUNTER_HELD, /* at most `limit` holders at once; Redis only. A holder */
                     /* is renewed by counting it again; one that is not is */
                     /* gone after MO_COUNTER_TERM_MS. add < 0: it is done */
    MO_COUNTER_DAY,  /* sum of `add` in a UTC day, at most `limit` */
};

struct mo_counter {
    enum mo_counter_kind kind;
    struct mo_span name, holder;
    uint64_t limit; /* 0: none, it is only counted */
    int64_t add;    /* DAY: may be negative; a sum does not fall below 0 */
    uint64_t day;   /* DAY: days since 1970; 0: today */
};

struct mo_counted {
    bool refused;
    size_t which;     /* counter that has no room */
    uint64_t wait_ms; /* until it may have; 0: not known (HELD) */
    uint64_t day;     /* today */
};

/* False: only processes of this machine use the store. */
bool mo_store_is_shared(const struct mo_store *s);
int mo_store_count(struct mo_store *s, const struct mo_counter *v, size_t n,
                   void (*done)(void *ctx, const struct mo_counted *c,
                                const struct mo_err *why),
                   void *ctx, struct mo_err *e);

/* --- leases ----------------------------------------------------------------
 *
 * The right to act for a name (a session, an instance) until it is given
 * back or not renewed in time. The store renews it by itself at a third of
 * MO_LEASE_TTL_MS. The fence is larger than that of every earlier holder, also
 * after the store was emptied: it grows with the wall clock.
 *
 * A waiter is woken by the holder's release or by the end of its term, in this
 * and in other processes; nothing polls. First come, first served within a
 * process. */
#define MO_LEASE_TTL_MS 10000

struct mo_lease;

struct mo_lease_cb {
    /* Once: held (why NULL, the fence), or not (MO_ETIMEOUT: the message names
     * the holder; MO_ECANCELED; MO_EUNAVAIL...) and the lease is freed. */
    void (*on_held)(void *ctx, struct mo_lease *l, uint64_t fence,
                    const struct mo_err *why);
    /* Held and lost (not renewed in time, taken over): stop acting for the
     * name. The lease is freed. */
    void (*on_lost)(void *ctx, const struct mo_err *why);
};

/* owner: the caller's name, [A-Za-z0-9_.:-]; wait_ms 0: only if free now. */
int mo_lease_take(struct mo_store *s, struct mo_span name, struct mo_span owner,
                  uint64_t wait_ms, const struct mo_lease_cb *cb, void *ctx,
                  struct mo_lease **out, struct mo_err *e);
/* Gives it back by compare-and-delete, or cancels the waiting (on_held with
 * MO_ECANCELED follows). After a held one no callback fires. */
void mo_lease_drop(struct mo_lease *l);

/* Ends a lease before its term because its holder is known to be dead: by
 * compare and delete, so that a newer one is not touched. done() has no error
 * if there was none any more. */
int mo_lease_break(struct mo_store *s, struct mo_span name,
                   struct mo_span owner, uint64_t fence,
                   void (*done)(void *ctx, const struct mo_err *why), void *ctx,
                   struct mo_err *e);

/* The holder now (owner and fence), or n == 0. */
int mo_lease_holder(struct mo_store *s, struct mo_span name,
                    void (*done)(void *ctx, struct mo_span owner,
                                 uint64_t fence, const struct mo_err *why),
                    void *ctx, struct mo_err *e);

#endif
