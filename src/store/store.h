/* store.h - what must outlive us: sessions, conversations, calls, leases,
 * audit. One interface, two backends (SQLite in a file, Redis).
 *
 * The store keeps documents: a JSON text that it never looks into, beside the
 * few fields it sorts, finds and compares by. Who writes them is the room
 * above; so a new member of a document needs no migration.
 *
 * Promises (every backend, one and the same test suite):
 *  1. A write whose done() came without error is durable: it is there after
 *     a SIGKILL of us in the next instruction (Redis: as durable as that
 *     server is configured to be).
 *  2. A batch is all or nothing, and readers see it whole.
 *  3. done() fires exactly once, from the loop, never from inside the call
 *     that asked. Rows it is given are borrowed until it returns.
 *  4. Writes of one session happen in the order they were asked for.
 *  5. A store that is away is MO_EUNAVAIL, at once or after the deadline,
 *     never silence; whether that write happened is then unknown to us, and
 *     the callers' writes are made so that asking again is harmless (ids are
 *     the caller's; a second new call with the same id is MO_EEXISTS; an entry
 *     that is asked for `again` and is the last already stays the only one).
 *  6. A write that carries the fence of an old lease is refused (MO_EPOLICY):
 *     who was asleep while another took over cannot do harm.
 *
 * Bounds: a document MO_STORE_DOC_MAX; a batch MO_STORE_BATCH_MAX writes of
 * MO_STORE_BATCH_BYTES together; operations under way MO_STORE_OPS_MAX, their
 * bytes MO_STORE_QUEUE_MAX (more is MO_EBUSY); rows of one answer as asked, at
 * most MO_STORE_ROWS_MAX and MO_STORE_ANSWER_MAX bytes (`more` tells). */
#ifndef MO_STORE_STORE_H
#define MO_STORE_STORE_H

#include "base/str.h"
#include "loop/loop.h"

#define MO_STORE_DOC_MAX     ((size_t)4 * 1024 * 1024)
#define MO_STORE_BATCH_MAX   65 /* a model's reply and its 64 calls */
#define MO_STORE_BATCH_BYTES ((size_t)16 * 1024 * 1024)
#define MO_STORE_OPS_MAX     4096
#define MO_STORE_QUEUE_MAX   ((size_t)256 * 1024 * 1024)
#define MO_STORE_ROWS_MAX    1000
#define MO_STORE_ANSWER_MAX  ((size_t)32 * 1024 * 1024)
#define MO_STORE_ID_MAX      128 /* bytes of any id: [A-Za-z0-9_.:-] */
#define MO_STORE_DEADLINE_MS 5000

struct mo_store;

struct mo_store_opts {
    /* sqlite:PATH, redis://[user[:password]@]host[:port][/db], rediss://...,
     * redis+unix:PATH[?db=N] */
    const char *url;
    uint64_t history_ttl_ms; /* conversations end so long after their last */
                             /* entry; 0: never */
    uint64_t audit_ttl_ms;   /* 0: never */
    uint64_t deadline_ms;    /* of one operation; 0: MO_STORE_DEADLINE_MS */
    uint64_t lease_ttl_ms;   /* 0: MO_LEASE_TTL_MS; every process the same */
    struct mo_span ca_file;  /* rediss: who to trust; empty: the system's */
};

/* SQLite: the file is opened, checked and migrated here (it may take a
 * moment; progress goes to the log). Redis: connecting goes on behind; the
 * first operations wait for it up to their deadline. */
int mo_store_open(struct mo_loop *l, const struct mo_store_opts *o,
                  struct mo_store **out, struct mo_err *e);
/* Finishes what was asked for, then gone(ctx), once, later. Leases end: who
 * waits gets on_held with MO_ECANCELED, who holds on_lost with MO_ECLOSED and
 * gives it back. */
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

enum mo_write_kind {
    MO_WRITE_SESSION, /* doc, at: insert or replace the session's row */
    MO_WRITE_TOUCH,   /* at: only its last activity (never backwards) * */
    MO_WRITE_CLOSE,   /* the row goes, history and calls stay to their TTL */
    MO_WRITE_FORGET,  /* the row, history and calls go */
    MO_WRITE_ENTRY,   /* doc, text, at: appended to the conversation * */
    MO_WRITE_FRESH,   /* a new conversation begins; the old stays readable * */
    MO_WRITE_CALL,    /* id, to, doc, at: a new call; MO_EEXISTS if known * */
    MO_WRITE_MOVE,    /* id, from, to, doc (empty: unchanged): if the call's */
                      /* state is in `from`, else the batch is MO_EPOLICY; */
                      /* a call nobody knows is MO_ENOTFOUND */
    MO_WRITE_AUDIT,   /* doc, at: one row of the audit log */
};
/* Those with a star need the session's row, else the batch is MO_ENOTFOUND: a
 * session that was closed, or vanished with the server that held it, does not
 * come back by the back door. A batch is applied in order, so a SESSION in
 * front of them will do. Ids of calls are the session's own. */

struct mo_write {
    enum mo_write_kind kind;
    struct mo_span id;   /* of the call */
    struct mo_span doc;  /* JSON */
    struct mo_span text; /* what full-text search finds the entry by */
    uint64_t at;         /* wall ms; 0: now */
    unsigned from;       /* MO_CALL_BITs */
    enum mo_call_state to;
    bool again; /* ENTRY: asked for before, with an outcome nobody knows. If */
                /* the last entry has this very document, it is that one */
};

struct mo_store_batch {
    struct mo_span session; /* all writes are this session's; empty only for */
                            /* audit rows that belong to none */
    uint64_t fence;         /* of the lease with the session's name, which */
                            /* must be held under it now; 0: any */
    const struct mo_write *writes;
    size_t n;
};

struct mo_written {
    uint64_t conversation; /* number of the session's present one, from 1 */
    uint64_t seq;          /* of the last entry appended, from 1; or 0 */
    size_t failed;         /* which write was refused (with an error only) */
};

/* Everything is copied before this returns. 0, or a refusal (MO_EINVAL,
 * MO_ETOOBIG, MO_EBUSY, MO_ECLOSED, MO_ENOMEM) and done() never fires. */
int mo_store_write(struct mo_store *s, const struct mo_store_batch *b,
                   void (*done)(void *ctx, const struct mo_written *w,
                                const struct mo_err *why),
                   void *ctx, struct mo_err *e);

/* on_row() hears of every row for the audit log that is accepted, from inside
 * mo_store_write() and before it is durable. One listener; NULL: none. */
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
    MO_READ_HISTORY,  /* entries of a conversation (0: the present one), */
                      /* seq > `after`, in order; `newest`: the last `limit` */
    MO_READ_CALLS,    /* of the session, states in `from` (0: all), oldest */
                      /* first; `after`: seq of the last row, to go on */
    MO_READ_CALL,     /* of the session, by id */
    MO_READ_SEARCH,   /* all words of `text` in all conversations (or the */
                      /* session's), best first; `after`: so many of them */
                      /* are left out. Redis: MO_EUNAVAIL */
    MO_READ_AUDIT,    /* newest first (the session's, if given); `before`, */
                      /* `after` are times; `text`: only rows whose document */
                      /* contains it */
};

struct mo_read {
    enum mo_read_kind kind;
    struct mo_span session, id, text;
    uint64_t conversation, after, before;
    unsigned from;
    unsigned limit; /* 0: 100 */
    bool newest;
};

struct mo_row {
    struct mo_span session, id, doc;
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

/* --- leases ----------------------------------------------------------------
 *
 * The right to act for a name (a session, an instance) until it is given
 * back or not renewed in time. Renewal goes on by itself at a third of
 * MO_LEASE_TTL_MS. The fence is larger than that of every earlier holder,
 * also when the store was emptied meanwhile: it grows with the wall clock.
 *
 * A waiter is woken by the holder's release or by the end of its term, in
 * this and in other processes; not by looking again and again. First come,
 * first served within a process. */
#define MO_LEASE_TTL_MS 10000

struct mo_lease;

struct mo_lease_cb {
    /* Once: held (why NULL, the fence) or not (MO_ETIMEOUT: the message says
     * who has it; MO_ECANCELED; MO_EUNAVAIL...) and the lease is gone. */
    void (*on_held)(void *ctx, struct mo_lease *l, uint64_t fence,
                    const struct mo_err *why);
    /* Held and lost (not renewed in time, taken over): stop acting for it.
     * The lease is gone. */
    void (*on_lost)(void *ctx, const struct mo_err *why);
};

/* owner: who we say we are, [A-Za-z0-9_.:-]; wait_ms 0: only if free now. */
int mo_lease_take(struct mo_store *s, struct mo_span name, struct mo_span owner,
                  uint64_t wait_ms, const struct mo_lease_cb *cb, void *ctx,
                  struct mo_lease **out, struct mo_err *e);
/* Gives it back by compare-and-delete, or cancels the waiting (on_held with
 * MO_ECANCELED follows). Held: no callback any more. */
void mo_lease_drop(struct mo_lease *l);

/* Ends a lease whose holder is known to be dead, before its term: by compare
 * and delete, so that a newer one is not touched. done() without error also
 * when there was none any more. */
int mo_lease_break(struct mo_store *s, struct mo_span name,
                   struct mo_span owner, uint64_t fence,
                   void (*done)(void *ctx, const struct mo_err *why), void *ctx,
                   struct mo_err *e);

/* Who holds it now (owner and fence), or n == 0. */
int mo_lease_holder(struct mo_store *s, struct mo_span name,
                    void (*done)(void *ctx, struct mo_span owner,
                                 uint64_t fence, const struct mo_err *why),
                    void *ctx, struct mo_err *e);

#endif
