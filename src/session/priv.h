/* priv.h - shared by the files of session/: session (the state table, lease
 * and row), boxing (box and connection), ending (release of all that), hold
 * (the users of a session), row (the document in the store), boxlink (a box's
 * stream as an MCP link), janitor (the sweep). Nobody else includes it.
 *
 *   WAITING -> READING -> BOXING -> OPENING -> READY
 *                           ^  \       |         |
 *                           |   v      v         v
 *                        BOXLESS <---- LOSING <--+
 *
 * and from each of them to ENDING, after which the session is freed, or goes
 * to WAITING again if a hold was taken meanwhile. */
#ifndef MO_SESSION_PRIV_H
#define MO_SESSION_PRIV_H

#include "base/list.h"
#include "base/map.h"
#include "budget/budget.h"
#include "session/session.h"

#define TOUCH_MS    5000 /* least time between two writes of activity */
#define CAUSE_MS    3000 /* for the driver to say why a stream has ended */
#define DRAIN_MS    200  /* for output that is still on its way */
#define ADOPT_MS    5000 /* for the first answer of an adopted server */
#define ROW_DOC_MAX (MO_SESSION_DATA_MAX + 4096)

enum session_state {
    S_WAITING, /* for the lease */
    S_READING, /* the row */
    S_BOXING,  /* a box is on its way */
    S_OPENING, /* it runs: opening MCP, writing its name */
    S_READY,
    S_LOSING,  /* box or connection has ended, the other is ending */
    S_BOXLESS, /* leased, known, without a box */
    S_ENDING,
    S_GONE,
};

/* Ways to a box, best first. */
enum session_try { TRY_ADOPT, TRY_REVIVE, TRY_START, TRY_NONE };

enum session_end {
    END_LET_GO, /* the box lives on */
    END_TAKEN,  /* the same, but the lease is lost: write nothing */
    END_MOVED,  /* another process has the lease; the holds go there */
    END_SLEEP,  /* the box is removed; the row says asleep */
    END_CLOSE,  /* box and row are removed */
    END_FORGET, /* and the history */
};

struct boxlink;

struct session {
    struct mo_sessions *ss;
    struct mo_list node; /* in ss->all */
    char id[MO_SESSION_ID_MAX + 1];
    enum session_state state;
    struct mo_list holds;
    struct mo_list *walk;  /* next hold to be told, see hold.c */
    struct mo_list uses;   /* struct ask: waiting for a connection */
    struct mo_list kills;  /* struct kill: requests to end it */
    struct mo_list served; /* those that the present ending answers */
    bool reap;             /* opened by the janitor, to end it if idle */
    unsigned pending;      /* store and driver operations under way */

    struct mo_lease *lease; /* waited for or held */
    bool held, second;      /* second: the holder was asked for already */
    uint64_t fence;

    bool known, has_row, old_files;
    bool elsewhere; /* old files: they are where this process cannot reach */
    struct mo_session_row row;
    struct mo_buf data; /* of the row; see mo_session_keep() */
    uint64_t active;    /* wall ms */
    uint64_t warned;    /* wall ms, 0: not */
    unsigned busy;      /* over all holds */
    bool dirty;         /* activity is not written yet */
    struct mo_timer flush;

    enum session_try attempt;
    struct mo_box *box;
    struct mo_budget_ask budget; /* boxing.c */
    struct mo_conn *conn;
    struct boxlink *link; /* the connection's, once it has dialled */
    bool dialed;
    struct mo_stream *err; /* the box's stderr */
    struct mo_timer cause; /* the output has ended, the box not yet */
    bool up;               /* the box runs */
    bool files_loaded;     /* it was started with the files of an earlier one */
    bool opened, named;    /* both: ready */
    bool served_once;      /* it was ready once */
    struct mo_box_end end; /* of the last box; end.why is &end_why or NULL */
    struct mo_err end_why;
    struct mo_err fault; /* why we ended the box; code 0: we did not */
    char traceparent[MO_TRACE_PARENT_LEN + 1]; /* of the next box; or "" */
    uint64_t begun_ns; /* when opening it, or a new box, began */
    uint64_t up_ns;    /* when its box began to run; 0: it did not */
    struct mo_session_info info;

    enum session_end how; /* ENDING */
    const char *reason;
    struct mo_err why; /* code 0: none */
    bool stopping, removed, forgotten, closed, dropping;
};

struct kill {
    struct mo_list node;
    struct mo_sessions *ss;
    enum session_end how; /* END_SLEEP or more */
    struct mo_later later;
    struct mo_err why; /* code 0: it worked */
    mo_done_fn *done;
    void *ctx;
};

/* A use or a keep under way. */
struct ask {
    struct mo_list node; /* in s->uses; uses only */
    struct mo_list mine; /* in the hold's */
    struct session *s;
    struct mo_hold *h; /* NULL: released */
    struct mo_later later;
    struct mo_err why;
    mo_session_used_fn *used;
    mo_done_fn *kept;
    void *ctx;
};

/* A box or a kept workspace that may have to be removed. */
struct suspect {
    struct mo_list node;
    char id[MO_BOX_ID_MAX], session[MO_SESSION_ID_MAX + 1];
    char instance[MO_STORE_ID_MAX + 1];
    bool named; /* by the row of a session */
};

struct sweep {
    bool on, again, first_over;
    unsigned rounds;
    unsigned reaping; /* sessions of the present batch */
    bool more;        /* there is another batch */
    uint64_t after;   /* where the next page of rows begins */
    char after_id[MO_SESSION_ID_MAX + 1];
    size_t driver;
    bool files;                   /* suspects are kept workspaces, else boxes */
    char place[MO_BOX_PLACE_MAX]; /* where their next part begins, or "" */
    struct mo_list suspects;
    char alive[MO_STORE_ID_MAX + 1], dead[MO_STORE_ID_MAX + 1]; /* last seen */
    char
        looked[MO_STORE_ID_MAX + 1]; /* dead one for which rows were searched */
    struct mo_gone done;             /* who waits for it */
};

struct mo_sessions {
    struct mo_loop *loop;
    struct mo_sessions_opts o;
    struct mo_arena arena; /* the options' texts */
    struct mo_map map;     /* id -> struct session */
    struct mo_list all;
    unsigned n, nkills;
    struct mo_list parting; /* holds whose on_closed is on its way */
    struct mo_timer tick;
    struct sweep sweep;
    struct mo_sessions_stats stats;
    struct mo_budget *budget; /* limits of people; or NULL */
    const struct mo_budget_holding *holding;
    bool closing;
    struct mo_later later; /* the end */
    struct mo_gone gone;
};

static inline uint64_t wall_now(const struct mo_sessions *ss)
{
    return ss->o.wall ? ss->o.wall(ss->o.wall_ctx) : mo_wall_ms();
}

/* A line of the log about a session; ns and why may be 0 and NULL. */
#define session_log(s, lv, took_ns, error, ...)                                \
    mo_log_about(mo_loop_log((s)->ss->loop), (lv), "session",                  \
                 &(struct mo_log_facts){.session = (s)->id,                    \
                                        .who = (s)->row.owner,                 \
                                        .ns = (took_ns),                       \
                                        .err = (error)},                       \
                 __VA_ARGS__)

/* sessions.c */
int mo_session_new(struct mo_sessions *ss, struct mo_span id,
                   struct session **out, struct mo_err *e);
void mo_session_free(struct session *s);
void mo_sessions_settle(struct mo_sessions *ss); /* frees it if it is over */

/* session.c */
void mo_session_move(struct session *s, enum session_state to);
/* True: the session is ENDING or LOSING and has taken its next step; the caller
 * must stop. */
bool mo_session_ends(struct session *s);
/* The same after an operation has returned. */
bool mo_session_landed(struct session *s);
void mo_session_begin(struct session *s); /* from WAITING */

/* boxing.c */
void mo_session_start_box(struct session *s); /* from READING, BOXLESS */
void mo_session_uncount_box(struct session *s, bool stays);
void mo_session_losing_step(struct session *s);
struct mo_boxes *mo_session_driver(const struct session *s); /* the row's */
void mo_session_cause_due(struct mo_timer *t);

/* ending.c */
/* Answers those requests to end the session. */
void mo_session_answer_kills(struct mo_list *kills, const struct mo_err *why);
/* The reason that holds are told for an end that was asked for. */
const char *mo_session_end_reason(enum session_end how);
/* Begins to end the session. reason and why are passed to the holds; NULL:
 * there are none. */
void mo_session_finish(struct session *s, enum session_end how,
                       const char *reason, const struct mo_err *why);
void mo_session_fail(struct session *s, const struct mo_err *why);
void mo_session_finish_step(struct session *s);

/* hold.c */
enum news { N_READY = 1, N_LOST = 2, N_BOX = 4, N_IDLE = 8, N_CLOSED = 16 };

struct mo_hold {
    struct mo_list node; /* in s->holds or ss->parting */
    struct mo_sessions *ss;
    struct session *s; /* NULL: it is over */
    const struct mo_hold_cb *cb;
    void *ctx;
    struct mo_later later;
    unsigned news; /* enum news still to be told */
    unsigned busy, idle_left;
    bool ready;    /* on_ready was called */
    bool visits;   /* it starts no box */
    bool may_move; /* and waits so long for the lease: */
    uint64_t move_ms;
    char owner[MO_SESSION_OWNER_MAX]; /* "": the operator */
    struct mo_list asks;
    const char *reason;
    struct mo_err why;
};

void mo_hold_tell(struct mo_hold *h, enum news what);
void mo_holds_tell(struct session *s, enum news what);
void mo_holds_part(struct session *s, const char *reason,
                   const struct mo_err *why);
/* Called when the row was read. Ends the holds of other owners with
 * MO_ENOTFOUND. The first hold owns a new session. */
void mo_holds_sort(struct session *s);
bool mo_holds_owned(const struct session *s); /* does any hold name an owner? */
/* True if there are holds and all may move; wait_ms: the longest of theirs. */
bool mo_holds_may_move(const struct session *s, uint64_t *wait_ms);
bool mo_holds_only_visit(const struct session *s); /* likewise */
/* Why a hold that only visits gets no box. */
#define MO_SESSION_NO_BOX                                                      \
    "no box of this conversation is running; its owner can start one"
void mo_holds_notify(struct session *s, const struct mo_rpc *m);
bool mo_holds_ask(struct session *s, struct mo_ask *a);
void mo_session_answer_uses(struct session *s, const struct mo_err *why);

/* row.c */
/* Reads the row's document into row and data. */
int mo_session_row_read(struct session *s, struct mo_span doc,
                        struct mo_err *e);
typedef void session_written_fn(void *ctx, const struct mo_written *w,
                                const struct mo_err *why);
/* Writes to the store; s->pending counts it until done. */
int mo_session_write(struct session *s, const struct mo_write *w, size_t n,
                     session_written_fn *done, void *ctx, struct mo_err *e);
/* The same for the row. */
int mo_session_keep_row(struct session *s, session_written_fn *done, void *ctx,
                        struct mo_err *e);
void mo_session_touched(struct session *s); /* now */
void mo_session_flush(struct session *s);   /* activity to the store */
void mo_session_flush_due(struct mo_timer *t);

/* boxlink.c */
/* Owns io also after a failure. on_eof: the output has ended; whether the box
 * has is not known yet. */
int mo_boxlink_new(struct mo_loop *l, struct mo_stream *io, mo_done_fn *on_eof,
                   void *ctx, struct boxlink **out, struct mo_err *e);
struct mo_link *mo_boxlink_link(struct boxlink *b);
/* The box has ended for this reason: calls in flight fail with it once the
 * last output has been read. The link may be freed after DRAIN_MS. */
void mo_boxlink_cause(struct boxlink *b, const struct mo_err *why);

/* janitor.c */
void mo_janitor_start(struct mo_sessions *ss);
/* How to end a session that is leased and read. */
enum session_end mo_janitor_judge(struct session *s, uint64_t now);
/* One session of the batch is done. */
void mo_janitor_reaped(struct mo_sessions *ss);

#endif
