/* session.h - one person's session: its box, its MCP connection, its row in
 * the store.
 *
 * To work in a session, take a hold on it (a socket, a turn under way, a
 * command). The first hold in this process takes the session's lease from the
 * store, reads its row, starts or adopts its box and opens MCP in it; later
 * holds share all that. With the last hold the box is let go and the lease
 * given back: the box lives on, and the process that is asked next adopts it
 * with its files. So a session has one box however many ask at once, and no
 * process keeps what it does not use.
 *
 * Files outlive the box where the driver keeps workspaces (spec.keep): the row
 * names the workspace, the next box of the session gets it, and it is removed
 * with the row. Workspaces that no row names are swept like boxes.
 *
 * The janitor works from the store, not from memory: every sweep_ms it takes
 * the boxes of sessions without activity for idle_ms. A session with running
 * work, here or elsewhere, is leased and so never taken. Its row stays without
 * a box ("asleep"), so that the conversation can be found and opened again,
 * until keep_ms without activity have passed. At start, and with each sweep,
 * boxes are removed that no row names and that no running instance is about to
 * use.
 *
 * Invariants
 *  1. Only mo_session_move() writes a session's state.
 *  2. The session's row names a box before any hold is told of it, and a row
 *     names at most one box.
 *  3. Every write for the session carries the lease's fence. A lost lease ends
 *     every hold at once (on_closed): another process is acting.
 *  4. on_ready or on_closed fires for each hold, on_closed once and last,
 *     unless the hold was released before; none from inside a call.
 *  5. A box that ends by itself is reported once to every hold (on_box) with
 *     its cause; calls on its connection fail with the same cause. The next
 *     mo_session_use() starts a fresh one, with the old files if the driver
 *     kept them, and says so.
 *  6. A session belongs to its first owner for good. For another owner's hold
 *     it does not exist (MO_ENOTFOUND). A new session under an id that was
 *     used before starts with nothing of the old one.
 *
 * It knows MCP connections and boxes; nothing of turns, models or the web. */
#ifndef MO_SESSION_SESSION_H
#define MO_SESSION_SESSION_H

#include "box/box.h"
#include "codec/json/json.h"
#include "mcp/client/conn.h"
#include "store/store.h"
#include "trace/trace.h"

#define MO_SESSION_ID_MAX    64 /* [A-Za-z0-9_-], as clients choose them */
#define MO_SESSIONS_MAX      1024
#define MO_SESSION_HOLDS_MAX 256
#define MO_SESSION_DATA_MAX  ((size_t)64 * 1024)
#define MO_SESSION_OWNER_MAX 97 /* bytes of a name, NUL included */

struct mo_sessions;
struct mo_budget;         /* budget/budget.h */
struct mo_budget_holding; /* likewise */
struct mo_hold;           /* one user of a session */

struct mo_sessions_opts {
    struct mo_store *store;
    struct mo_boxes *const *drivers; /* in order of preference; the first */
    size_t ndrivers;                 /* starts boxes, all are swept */
    struct mo_box_spec spec;         /* of every session's box; borrowed */
    const char *instance;            /* the name the drivers were given */
    struct mo_span capabilities;     /* what servers in boxes may ask of us */
    uint64_t idle_ms;                /* 15 min */
    uint64_t keep_ms;                /* rows without a box; 0: for ever */
    uint64_t warn_ms;                /* on_idle this long before; 60 s */
    uint64_t sweep_ms;               /* 60 s */
    uint64_t wait_ms;                /* for a lease held elsewhere; 30 s */
    unsigned max;                    /* open here; 0: MO_SESSIONS_MAX */
    unsigned warm;                   /* boxes kept ready */
    bool no_janitor;                 /* sweep only when asked: for a command */
    /* True if that instance is known to have died: its leases are not waited
     * for. NULL: leases end at their term. */
    bool (*is_dead)(void *ctx, struct mo_span instance);
    void *dead_ctx;
    uint64_t (*wall)(void *ctx); /* wall ms; NULL: the real one */
    void *wall_ctx;              /* for tests with a clock of their own */
};

/* Times of 0 are the defaults above. The first sweep begins at once. */
int mo_sessions_open(struct mo_loop *l, const struct mo_sessions_opts *o,
                     struct mo_sessions **out, struct mo_err *e);
/* Limits how many boxes people have: hold asks b. Borrowed; NULL: no limits. */
void mo_sessions_budget(struct mo_sessions *ss, struct mo_budget *b,
                        const struct mo_budget_holding *hold);
/* Ends every hold (on_closed) and lets the boxes go; gone(ctx) once, later.
 * Store and drivers stay the caller's. */
void mo_sessions_close(struct mo_sessions *ss, void (*gone)(void *ctx),
                       void *ctx);
/* Takes idle_ms, sweep_ms and max of `o` (0: the default); the rest is not
 * looked at. Sessions above max stay open. */
void mo_sessions_change(struct mo_sessions *ss,
                        const struct mo_sessions_opts *o);
/* Sweeps now (or after the sweep under way); done() when it is over. MO_EBUSY:
 * a caller waits for one already. For tests and the command `sessions`. */
int mo_sessions_sweep(struct mo_sessions *ss, void (*done)(void *ctx),
                      void *ctx, struct mo_err *e);

/* --- holds --------------------------------------------------------------- */

enum mo_workspace {
    MO_WORKSPACE_FRESH, /* a new session */
    MO_WORKSPACE_KEPT,  /* its files are unchanged */
    MO_WORKSPACE_LOST,  /* its files were lost with its box */
};

struct mo_session_info {
    const char *id, *box, *driver;
    const char *owner;         /* "": none */
    const char *const *mounts; /* of its box (box/box.h), or NULL */
    bool resumed;              /* the session was known to the store */
    enum mo_workspace workspace;
    bool elsewhere;       /* lost: its files are on another machine */
    bool keeps_files;     /* its files outlive its box */
    uint64_t fence;       /* for writes to the store */
    struct mo_span data;  /* what mo_session_keep() kept */
    struct mo_conn *conn; /* NULL: no box; see */
};

struct mo_hold_cb {
    void (*on_ready)(void *ctx, struct mo_hold *h,
                     const struct mo_session_info *info);
    /* The box has ended (end: "oom", "killed", ...), or a new one is ready
     * (info). One of both is NULL. */
    void (*on_box)(void *ctx, struct mo_hold *h, const struct mo_box_end *end,
                   const struct mo_session_info *info);
    void (*on_idle)(void *ctx, struct mo_hold *h, unsigned seconds_left);
    /* Notifications and requests of the server in the box; both may be NULL.
     * Every hold gets a notification. A request goes to the oldest hold that
     * takes requests, and is refused if there is none. */
    void (*on_notify)(void *ctx, struct mo_hold *h, const struct mo_rpc *m);
    void (*on_ask)(void *ctx, struct mo_hold *h, struct mo_ask *a);
    /* The hold has ended and is freed. reason: "idle", "closed", "killed",
     * "taken over", "shutdown", "failed" with why, or "elsewhere" with why (see
     * mo_session_may_move()). */
    void (*on_closed)(void *ctx, const char *reason, const struct mo_err *why);
};

/* On behalf of `owner`. Empty: the operator, who may use every session. */
int mo_session_hold(struct mo_sessions *ss, struct mo_span id,
                    struct mo_span owner, const struct mo_hold_cb *cb,
                    void *ctx, struct mo_hold **out, struct mo_err *e);
/* Call it directly after mo_session_hold(), for a hold whose user can go to the
 * process that has the session. If a living process has the lease, the hold
 * waits wait_ms for it instead of wait_ms of the options, and then ends with
 * the reason "elsewhere". */
void mo_session_may_move(struct mo_hold *h, uint64_t wait_ms);
/* Call it directly after mo_session_hold(), for a hold that must not start a
 * box: it uses one that runs. If there is none and nobody else wants one, the
 * hold ends, or its use fails, with MO_EPOLICY. */
void mo_session_visits(struct mo_hold *h);
/* Frees the hold; no callback fires any more, those of use and keep included.
 * A keep under way is still written. */
void mo_session_release(struct mo_hold *h);

/* Notes activity: the session is not idle. Cheap; written to the store at most
 * every few seconds. */
void mo_session_touch(struct mo_hold *h);

/* Work begins (the session is never reaped) or ends. Calls nest. */
void mo_session_busy(struct mo_hold *h, bool busy);

typedef void mo_session_used_fn(void *ctx, const struct mo_session_info *info,
                                const struct mo_err *why);
/* Gives a connection: the present one, or that of a fresh box. done() once;
 * info is borrowed. */
/* If mo_session_use() has to start a box, that is a part of this span. */
void mo_session_trace(struct mo_hold *h, const struct mo_trace_span *span);
int mo_session_use(struct mo_hold *h, mo_session_used_fn *done, void *ctx,
                   struct mo_err *e);

/* Stores a JSON document with the session, replacing the last. done() when it
 * is durable. Not before on_ready. */
int mo_session_keep(struct mo_hold *h, struct mo_span data, mo_done_fn *done,
                    void *ctx, struct mo_err *e);

/* The current state; NULL before on_ready. */
const struct mo_session_info *mo_session_info(const struct mo_hold *h);

/* --- from outside -------------------------------------------------------- */

bool mo_session_id_ok(struct mo_span id); /* may be a session's id */

/* The owner of a session that is open here; "": the operator, or it is not. */
const char *mo_session_owner(const struct mo_sessions *ss, struct mo_span id);

/* Ends a session and its box if it is idle or held here; forget: deletes its
 * history too. Held by another process: MO_EBUSY, the message names it.
 * Unknown: MO_ENOTFOUND. */
int mo_session_end(struct mo_sessions *ss, struct mo_span id, bool forget,
                   mo_done_fn *done, void *ctx, struct mo_err *e);

/* Ends only its box, with its files: the session stays known ("asleep"), and
 * its next hold starts a new box. Otherwise as mo_session_end(). */
int mo_session_sleep(struct mo_sessions *ss, struct mo_span id,
                     mo_done_fn *done, void *ctx, struct mo_err *e);

/* Changes the data of a session that nobody has open (mo_session_keep()):
 * change() is called once at most, later, with the present data, and writes the
 * new. done() once. In use: MO_EBUSY, the message names by whom. */
typedef int mo_session_edit_fn(void *ctx, struct mo_json data,
                               struct mo_buf *out, struct mo_err *e);
int mo_session_edit(struct mo_sessions *ss, struct mo_span id,
                    mo_session_edit_fn *change, mo_done_fn *done, void *ctx,
                    struct mo_err *e);

/* A session's row in the store (MO_READ_SESSION), parsed. */
struct mo_session_row {
    char box[MO_BOX_ID_MAX]; /* "": none */
    char driver[16];         /* of its box, or of the last it had */
    char
        files[MO_BOX_ID_MAX]; /* its kept workspace, of that driver; "": none */
    char where[MO_BOX_WHERE_MAX]; /* of both: mo_boxes_where() */
    char owner[MO_SESSION_OWNER_MAX];
    bool asleep;      /* the janitor has taken its box */
    uint64_t created; /* wall ms */
};
int mo_session_row(struct mo_span doc, struct mo_session_row *out,
                   struct mo_err *e);
/* Writes such a row; data: as mo_session_keep() keeps it. */
int mo_session_row_put(const struct mo_session_row *r, struct mo_span data,
                       struct mo_buf *b);

struct mo_sessions_stats {
    unsigned open, ready, holds, warm;
    uint64_t started, adopted, revived, swept, lost;
    uint64_t reaped;  /* boxes taken */
    uint64_t expired; /* rows without a box that were removed */
};
struct mo_sessions_stats mo_sessions_stats(const struct mo_sessions *ss);

#endif
