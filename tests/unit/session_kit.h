/* session_kit.h - sessions on the store of session_store.h and an engine made
 * of timers whose boxes hold a tiny MCP server, all on one loop.
 *
 * struct world owns the store, the engine and the switches that make an
 * operation fail. The engine's boxes (struct record) outlive every driver, as
 * real ones do. struct user holds a session and records its callbacks. */
#ifndef MO_SESSION_KIT_H
#define MO_SESSION_KIT_H

#include "box/driver.h"
#include "codec/frame.h"
#include "codec/rpc.h"
#include "mo_test.h"
#include "session/instance.h"
#include "session/session.h"
#include "session_store.h"

#define LONG    20000 /* ms; a deadline for hanging, not for speed */
#define RECORDS 64

/* --- the engine ---------------------------------------------------------- */

struct world;

struct record {
    bool used, running, kept;
    char id[16], session[MO_SESSION_ID_MAX + 1], instance[24];
    int files;               /* what is in the workspace */
    struct mo_stream *inner; /* the server's end, NULL: nobody is attached */
    struct mo_frame f;
    unsigned lines, newlines;
    struct world *w;
    struct fake_box *by;
};

struct world {
    struct mo_loop *l;
    struct mo_store store;
    struct mo_boxes bs;
    struct record recs[RECORDS];
    unsigned started, adopted, revived, stopped, let_go, removed, most;
    bool refuse_start, refuse_init, no_kept, mute;
    bool no_stats, slow_stats;
    size_t part;                      /* rows in a part of the list; 0: all */
    unsigned parts;                   /* that were told */
    struct weighed *weighed[RECORDS]; /* slow_stats: not answered yet */
    size_t nweighed;
    bool closed;
    uint64_t now;
    const char *dead; /* an instance */
    struct mo_sessions *ss;
    bool ss_gone, swept;
};

struct fake_box {
    struct mo_box box;
    struct mo_timer up, down;
    struct mo_box_end end;
    struct record *rec;
};

unsigned running(const struct world *w);
struct record *record_of(struct world *w, const char *id);
struct record *record_new(struct world *w, const char *session,
                          const char *instance);
void go_down(struct fake_box *f, enum mo_box_cause cause);

/* The box ends by itself. */
void die(struct record *r, enum mo_box_cause cause, bool kept);

/* A request for statistics. The loop answers it, or weigh() if slow_stats. */
struct weighed {
    struct mo_later later;
    struct world *w;
    void (*done)(void *, const struct mo_box_stats *, const struct mo_err *);
    void *ctx;
};

/* Sends the answers that slow_stats holds back. */
void weigh(struct world *w);

/* --- the world ----------------------------------------------------------- */

int world_sessions(struct world *w, uint64_t wait_ms);
void world_init(struct world *w);
void world_open(struct world *w);
void world_close_sessions(struct world *w);
void world_fini(struct world *w);
void world_close(struct world *w);
void sweep(struct world *w);

/* Turns the loop n times, so that messages in transit arrive. */
void turns(struct world *w, int n);

/* --- a user of a session ------------------------------------------------- */

struct user {
    struct mo_hold *h;
    unsigned ready, lost, again, idle, closed, notified, used;
    bool resumed, elsewhere;
    enum mo_workspace workspace;
    struct mo_conn *conn;
    char box[16], reason[32], data[64];
    enum mo_box_cause cause;
    unsigned seconds;
    struct mo_err why, used_why;
};

void user_take(struct user *u, const struct mo_session_info *i);
extern const struct mo_hold_cb user_cb;
bool is_settled(void *ctx);
bool is_user_closed(void *ctx);
int hold(struct world *w, struct user *u, const char *id);
void hold_ready(struct world *w, struct user *u, const char *id);
bool none_open(void *ctx);
void release(struct world *w, struct user *u);

struct answer {
    unsigned n;
    int64_t files;
    struct mo_err err;
};

bool has_answer(void *ctx);
bool call(struct user *u, struct answer *a, const char *method);
int64_t files(struct world *w, struct user *u);

#endif
