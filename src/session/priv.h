/* priv.h - what the rooms of session/ share: session (the state table, lease
 * and row), boxing (box and connection), ending (the way back), hold (who is
 * told what), row (what the store keeps), boxlink (a box's stream as an MCP
 * link), janitor (the sweep). Nobody else includes it.
 *
 *   WAITING -> READING -> BOXING -> OPENING -> READY
 *                           ^  \       |         |
 *                           |   v      v         v
 *                        BOXLESS <---- LOSING <--+
 *
 * and from each of them to ENDING, which leads to the end of the memory, or
 * to WAITING again when somebody asked meanwhile. */
#ifndef MO_SESSION_PRIV_H
#define MO_SESSION_PRIV_H

#include "base/list.h"
#include "base/map.h"
#include "session/session.h"

#define TOUCH_MS    5000 /* activity reaches the store at most so often */
#define CAUSE_MS    3000 /* for the driver to say why a stream has ended */
#define DRAIN_MS    200  /* for output that is still on its way */
#define ADOPT_MS    5000 /* for the first answer of an adopted server */
#define ROW_DOC_MAX (MO_SESSION_DATA_MAX + 4096)

enum session_state {
    S_WAITING, /* for the lease */
    S_READING, /* the row */
    S_BOXING,  /* a box is on its way */
    S_OPENING, /* it runs: MCP is opened, its name written */
    S_READY,
    S_LOSING,  /* box or connection have gone, the other is going */
    S_BOXLESS, /* leased, known, without a box */
    S_ENDING,
    S_GONE,
};

/* Ways to a box, best first. */
enum session_try { TRY_ADOPT, TRY_REVIVE, TRY_START, TRY_NONE };

enum session_end {
    END_LET_GO, /* the box lives on */
    END_TAKEN,  /* so it does, and nothing may be written */
    END_SLEEP,  /* the box goes; the row stays and says so */
    END_CLOSE,  /* the box goes, and the row */
    END_FORGET, /* and the history */
};

/* What the store keeps of a session. */
struct session_row {
    char box[MO_BOX_ID_MAX]; /* "": none */
    char driver[16];
    char owner[MO_SESSION_OWNER_MAX]; /* who made it; "": nobody */
    bool asleep;                      /* the janitor has taken its box */
    uint64_t created;
    struct mo_buf data;
};

struct boxlink;

struct session {
    struct mo_sessions *ss;
    struct mo_list node; /* in ss->all */
    char id[MO_SESSION_ID_MAX + 1];
    enum session_state state;
    struct mo_list holds;
    struct mo_list *walk;  /* the hold whose turn is next, see hold.c */
    struct mo_list uses;   /* struct ask: who waits for a connection */
    struct mo_list kills;  /* struct kill: who wants it ended */
    struct mo_list served; /* of them, by the present ending */
    bool reap;             /* the janitor wants it, if it is idle */
    unsigned pending;      /* store and driver operations under way */

    struct mo_lease *lease; /* waited for or held */
    bool held, second;      /* second: who has it was asked already */
    uint64_t fence;

    bool known, has_row, old_files;
    struct session_row row;
    uint64_t active; /* wall ms */
    uint64_t warned; /* wall ms, 0: not */
    unsigned busy;   /* over all holds */
    bool dirty;      /* activity is not written yet */
    struct mo_timer flush;

    enum session_try attempt;
    struct mo_box *box;
    struct mo_conn *conn;
    struct boxlink *link; /* the connection's, once it has dialled */
    bool dialed;
    struct mo_stream *err; /* the box's stderr */
    struct mo_timer cause; /* the output has ended, the box not yet */
    bool up;               /* the box runs */
    bool opened, named;    /* both: ready */
    bool served_once;      /* it was ready */
    struct mo_box_end end; /* of the last box; end.why is &end_why or NULL */
    struct mo_err end_why;
    struct mo_err fault; /* why we ended it; code 0: we did not */
    struct mo_session_info info;

    enum session_end how; /* ENDING */
    const char *reason;
    struct mo_err why; /* code 0: none */
    bool stopping, removed, closed, dropping;
};

struct kill {
    struct mo_list node;
    struct mo_sessions *ss;
    bool forget;
    struct mo_later later;
    struct mo_err why; /* code 0: it worked */
    void (*done)(void *ctx, const struct mo_err *why);
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
    void (*used)(void *ctx, const struct mo_session_info *info,
                 const struct mo_err *why);
    void (*kept)(void *ctx, const struct mo_err *why);
    void *ctx;
};

/* One box the janitor must think about. */
struct suspect {
    struct mo_list node;
    char id[MO_BOX_ID_MAX], session[MO_SESSION_ID_MAX + 1];
    char instance[MO_STORE_ID_MAX + 1];
};

struct sweep {
    bool on, again, first_over;
    unsigned rounds;
    unsigned reaping; /* sessions of the present batch */
    bool more;        /* there is another batch */
    uint64_t after;   /* where it begins */
    char after_id[MO_SESSION_ID_MAX + 1];
    size_t driver;
    struct mo_list suspects;
    char alive[MO_STORE_ID_MAX + 1], dead[MO_STORE_ID_MAX + 1]; /* last seen */
    void (*done)(void *ctx);
    void *done_ctx;
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
    bool closing;
    struct mo_later later; /* the end */
    void (*gone)(void *ctx);
    void *gone_ctx;
};

static inline uint64_t wall_now(const struct mo_sessions *ss)
{
    return ss->o.wall ? ss->o.wall(ss->o.wall_ctx) : mo_wall_ms();
}

/* sessions.c */
struct session *mo_session_find(struct mo_sessions *ss, struct mo_span id);
int mo_session_new(struct mo_sessions *ss, struct mo_span id,
                   struct session **out, struct mo_err *e);
void mo_session_free(struct session *s);
void mo_sessions_settle(struct mo_sessions *ss); /* closing: is it over? */

/* session.c */
void mo_session_move(struct session *s, enum session_state to);
bool mo_session_landed(struct session *s);
void mo_session_begin(struct session *s); /* from WAITING */

/* boxing.c */
void mo_session_start_box(struct session *s); /* from READING, BOXLESS */
void mo_session_losing_step(struct session *s);
struct mo_boxes *mo_session_driver(const struct session *s); /* the row's */
void mo_session_cause_due(struct mo_timer *t);

/* ending.c */
void mo_session_answer_kills(struct session *s, const struct mo_err *why);
/* reason and why are what the holds are told; NULL: there are none. */
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
    unsigned news; /* enum news, to be told */
    unsigned busy, idle_left;
    bool ready;                       /* was told so */
    char owner[MO_SESSION_OWNER_MAX]; /* for whom; "": for anybody */
    struct mo_list asks;
    const char *reason;
    struct mo_err why;
};

void mo_hold_tell(struct mo_hold *h, enum news what);
void mo_holds_tell(struct session *s, enum news what);
void mo_holds_part(struct session *s, const char *reason,
                   const struct mo_err *why);
/* The row was read: to whom it is somebody else's, it is not there. The
 * first to come owns one that is new. */
void mo_holds_sort(struct session *s);
bool mo_holds_owned(const struct session *s); /* any of them for a person? */
void mo_holds_notify(struct session *s, const struct mo_rpc *m);
bool mo_holds_ask(struct session *s, struct mo_ask *a);
void mo_session_answer_uses(struct session *s, const struct mo_err *why);

/* row.c */
void mo_session_row_init(struct session_row *r);
void mo_session_row_fini(struct session_row *r);
int mo_session_row_read(struct session_row *r, struct mo_span doc,
                        struct mo_err *e);
int mo_session_row_write(const struct session_row *r, struct mo_buf *b);
/* The row as it is now, to the store; pending until done. */
int mo_session_keep_row(struct session *s,
                        void (*done)(void *ctx, const struct mo_written *w,
                                     const struct mo_err *why),
                        void *ctx, struct mo_err *e);
void mo_session_touched(struct session *s); /* now */
void mo_session_flush(struct session *s);   /* activity to the store */
void mo_session_flush_due(struct mo_timer *t);

/* boxlink.c */
/* io is the link's in any case. on_eof: its output ended, of the box's end
 * nothing is known. */
int mo_boxlink_new(struct mo_loop *l, struct mo_stream *io,
                   void (*on_eof)(void *ctx, const struct mo_err *why),
                   void *ctx, struct boxlink **out, struct mo_err *e);
struct mo_link *mo_boxlink_link(struct boxlink *b);
/* The box has ended: what calls in flight are told once its last output has
 * been read. The link may be gone after DRAIN_MS. */
void mo_boxlink_cause(struct boxlink *b, const struct mo_err *why);

/* janitor.c */
void mo_janitor_start(struct mo_sessions *ss);
void mo_janitor_stop(struct mo_sessions *ss);
/* Leased and read: what is to become of it? */
enum session_end mo_janitor_judge(struct session *s, uint64_t now);
/* Reaping of a session was tried and is over. */
void mo_janitor_reaped(struct mo_sessions *ss);

#endif
