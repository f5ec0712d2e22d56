/* chat_priv.h - what the files of the chat share.
 *
 *   agent.c   the table of chats; joining and leaving
 *   chat.c    a chat comes to life: session, tools, history; and ends
 *   entries.c the conversation in memory
 *   turn.c    the turn's states: asking the model, keeping what it said
 *   context_window.c  how much of the conversation the model is shown
 *   write_ahead.c   what it is asked about, written while it is asked
 *   load_tools.c  the tools of the box and of the servers
 *   verdict.c which calls may run
 *   calls.c   calls: asking the person, running, outcomes
 *   run.c     where a call runs; stand_in.c: at another server than was meant
 *   decide.c  a person's decision about one
 *   elicit.c  what servers ask the person meanwhile
 *   event.c   what members are told
 */
#ifndef MO_AGENT_CHAT_CHAT_PRIV_H
#define MO_AGENT_CHAT_CHAT_PRIV_H

#include <stdio.h>

#include "agent/chat/chat.h"
#include "agent/chat/entry.h"
#include "agent/chat/tally.h"
#include "base/map.h"
#include "base/rand.h"
#include "servers/tools.h"

#define ID_BYTES       18
#define ID_MAX         (MO_TOKEN_LEN(ID_BYTES) + 1)
#define REMEMBERED_MAX 64
#define WHO_MAX        64

enum chat_state {
    CHAT_OPENING, /* session, box, tools, history are on their way */
    CHAT_IDLE,
    CHAT_SAVING,  /* what the person said is being written (write_ahead.c) */
    CHAT_ASKING,  /* the model is talking */
    CHAT_KEEPING, /* what it said is being written */
    CHAT_CALLS,   /* its calls wait, run, end */
    CHAT_RESULTS, /* their results are being written (write_ahead.c) */
    CHAT_ENDING,  /* nothing begins any more */
};

struct ack { /* somebody waits for an answer */
    mo_ack_fn *fn;
    void *ctx;
};

struct remembered { /* rules of the person, for one session */
    struct mo_arena arena;
    struct mo_rule v[REMEMBERED_MAX];
    struct mo_rules rules;
};

struct message { /* said, waits in line */
    struct mo_list node;
    char id[ID_MAX];
    struct ack ack;
    size_t n;
    char text[];
};

struct call {
    struct mo_list node; /* in chat->calls, in the model's order */
    struct chat *chat;
    char key[MO_LLM_KEY_MAX];
    enum mo_call_state state, next; /* next: while it is written */
    bool writing;  /* a change of state is on its way to the store */
    bool canceled; /* asked to stop while running */
    bool in_line;  /* may run, waits for others to end */
    bool started;  /* given to the box, and not back yet */
    const struct mo_tool *tool; /* NULL: there is none of that name */
    struct owned *owned;        /* the tool is its own: router.c; or NULL */
    struct mo_buf id;           /* the provider's, may be empty */
    struct mo_buf name, args, reason, content;
    struct mo_buf route; /* another server took it: JSON; else empty */
    struct away *away;   /* its server is down: stand_in.c; or NULL */
    char digest[MO_EXACT_DIGEST];
    bool is_error;
    unsigned position, total; /* among those asked with it, from 1 */
    uint64_t expires;         /* wall ms; 0: nobody is asked */
    uint64_t began;           /* mo_now_ns() */
    uint64_t took_ms;
    struct look *look; /* its server is asked whether it changed: run.c */
    struct mo_call *running;
    const struct mo_conn *conn; /* where it runs; only to compare */
    unsigned questions;         /* of its server, open ones */
    uint64_t idle_ms;         /* without a sign of life, then it is given up */
    struct mo_timer patience; /* runs while nobody is asked anything */
    bool late;                /* it was given up */
    struct ack ack;           /* of the decision that is being written */
    int kept;                 /* 1: remembered as wished; -1: it could not be */
    const char *by;    /* "person", "rule", "remembered", "time", "cancel" */
    char who[WHO_MAX]; /* the member who decided; or empty */
};

/* An answer that came before what it answers was kept. */
struct write_ahead {
    bool there;
    struct mo_arena mem;
    struct mo_llm_reply reply;
    struct mo_llm_failure fail; /* code set: there is no reply */
};

struct mo_member {
    struct mo_list node;
    struct chat *chat;
    const struct mo_member_cb *cb;
    void *ctx;
    bool greeted; /* has had ready and history */
    char who[WHO_MAX];
};

struct chat {
    struct mo_agent *agent;
    enum chat_state state;
    char id[MO_SESSION_ID_MAX + 1];
    char owner[MO_SESSION_OWNER_MAX]; /* opening: of who wants it */
    struct mo_list members;
    unsigned nmembers;

    struct mo_hold *hold;
    struct mo_session_info info; /* texts are the session's */
    bool ready;                  /* info is valid */
    struct mo_tools *tools;
    bool stale;            /* another box or server since the tools were read */
    struct gather *gather; /* they are being read */
    struct reach *reach;   /* the way to the servers; or NULL */
    struct mo_list blocked; /* of them, changed: changed_tools.c */
    struct mo_buf troubles; /* which are missing and why; each with a NUL */

    struct mo_llm *llm;
    const char *provider;
    struct mo_buf model, wanted, key, title;

    struct mo_list entries; /* of the present conversation */
    size_t nentries;
    uint64_t last_id; /* of an entry */
    uint64_t seq;
    struct entry *summary; /* the newest, or NULL: context_window.c */
    uint64_t until;        /* it stands for what is before and at this seq */
    uint64_t cut;          /* the next one, while it is made */

    struct mo_list queue; /* struct message */
    unsigned nqueue;
    struct message *saying; /* being written, or the turn's own */
    struct message *unsure; /* the last; whether it was kept nobody knows */
    struct entry *unkept;   /* being written; the last of entries */

    char turn[ID_MAX];
    unsigned steps;
    bool cancel; /* the person wants it to stop */
    bool busy;   /* mo_session_busy() was told */
    bool stuck;  /* mo_turn_stuck() is to come, from the loop */
    struct mo_llm_x *asking;
    struct write_ahead ahead;
    bool unheard;              /* asked in vain: its end is the turn's */
    struct mo_buf shown;       /* text of the present reply so far */
    struct mo_llm_usage usage; /* of the turn */
    struct mo_llm_usage spent; /* in all entries that were ever in memory */
    struct mo_list calls;      /* of the present step */
    struct mo_timer expiry;    /* the next unanswered question */
    struct mo_list questions;  /* of servers: elicit.c */
    struct mo_later later;     /* leave, or go on, from the loop */
    struct mo_later soon;      /* mo_write_ahead_ask() is to come */
    unsigned writes;           /* what must come back before it can end */
    unsigned recovering;       /* calls being looked up */
    struct remembered remembered;
};

struct entry { /* one document of the conversation, in memory */
    struct mo_list node;
    uint64_t seq, at; /* seq 0: it is being written */
    size_t cost;      /* bytes a model is sent of it, about */
    enum mo_entry_role role;
    uint64_t id; /* its own as long as there is the chat */
    struct mo_json doc;
    char text[];
};

struct mo_agent {
    struct mo_loop *loop;
    struct mo_agent_opts o;
    struct mo_map chats; /* session id -> struct chat * */
    struct mo_tally tally;
    bool closing;
    unsigned nreach; /* connections to the gateway */
    void (*gone)(void *ctx);
    void *gone_ctx;
    struct mo_later later;
    void (*on_point)(void *ctx, const char *name);
    void *point_ctx;
};

/* --- agent.c ------------------------------------------------------------- */
void mo_agent_forget(struct chat *c);    /* it is over: out of the table */
void mo_agent_check(struct mo_agent *a); /* may it go? */
void mo_agent_point(struct mo_agent *a, const char *name);

/* --- chat.c -------------------------------------------------------------- */
extern const struct mo_hold_cb mo_chat_hold_cb;
struct chat *mo_chat_new(struct mo_agent *a, const struct mo_join *j,
                         struct mo_err *e);
void mo_chat_free(struct chat *c);
void mo_chat_wants(struct chat *c, const struct mo_join *j);
void mo_chat_tools(struct chat *c, const struct mo_err *why); /* were read */
void mo_chat_opened(struct chat *c); /* calls were recovered */
void mo_chat_finish(struct chat *c, const char *reason,
                    const struct mo_err *why);
void mo_chat_move(struct chat *c, enum chat_state to);
/* One batch under the session's fence. done(c, arg, why) once, later; MO_E*
 * and no done() when it was refused. */
typedef void chat_written(struct chat *c, void *arg, const struct mo_err *why);
int mo_chat_write(struct chat *c, const struct mo_write *v, size_t n,
                  chat_written *done, void *arg, struct mo_err *e);
void mo_chat_fail(struct chat *c,
                  const struct mo_err *why); /* it cannot go on */
void mo_chat_settle(struct chat *c); /* idle or over: see what comes next */
void mo_chat_ack(struct ack *a, const char *code, const char *message);
void mo_chat_ack_ok(struct ack *a, struct mo_span extra);

/* --- owner.c ------------------------------------------------------------- */
/* The same writes, rows of the audit with the owner's name in them. */
int mo_chat_owner_mark(const struct chat *c, const struct mo_write *v, size_t n,
                       struct mo_write *out, struct mo_buf *docs);

/* --- entries.c ----------------------------------------------------------- */
#define CHAT_HISTORY_MAX 1000 /* entries of a conversation kept in memory */
struct entry *
mo_chat_entries_read(struct mo_span doc); /* NULL: no memory, no JSON */
void mo_chat_entries_add(struct chat *c, struct entry *en);
/* Into memory, after it was written. doc is copied. */
int mo_chat_append(struct chat *c, struct mo_span doc);
void mo_chat_entries_kept(struct chat *c,
                          struct entry *en); /* is written: is seen */
void mo_chat_entries_lost(struct chat *c, struct entry *en);
struct entry *mo_chat_newest(struct chat *c); /* or NULL */
struct entry *mo_chat_last(struct chat *c);   /* the last word: no summary */
void mo_chat_forget_entries(struct chat *c); /* but one that is being written */

/* --- turn.c -------------------------------------------------------------- */
void mo_turn_ask(struct chat *c);   /* the model, with what there is */
void mo_turn_tools(struct chat *c); /* the tools are there: go on asking */
void mo_turn_stop(struct chat *c);  /* the person wants it to end */
void mo_turn_step(struct chat *c);  /* the model is asked once more */
/* One request of what there is; mo_turn_answer() follows, or
 * mo_write_ahead_done(). */
int mo_turn_request(struct chat *c, struct mo_err *e);
void mo_turn_answer(struct chat *c, const struct mo_llm_reply *r,
                    const struct mo_llm_failure *f);
void mo_turn_stopped(struct chat *c); /* the person wanted it to */
void mo_turn_end(struct chat *c);
/* One request with these entries; quiet: no tool is to be used. */
struct shown {
    struct mo_span *v;
    uint64_t *ids;
    size_t n;
};
int mo_turn_send(struct chat *c, const struct shown *s, bool quiet,
                 const struct mo_llm_cb *cb, struct mo_err *e);
void mo_turn_usage(struct chat *c, const struct mo_llm_usage *u); /* on top */
/* Keep it and ask again; doc is taken, NULL: there was no memory. */
void mo_turn_summary(struct chat *c, struct mo_buf *doc);

/* --- write_ahead.c
 * ------------------------------------------------------------- */
void mo_turn_next(struct chat *c); /* idle: the next message in line */
/* All calls ended; last: the outcome of this one is still to be written. */
void mo_turn_results(struct chat *c, const struct mo_entry_result *v, size_t n,
                     struct call *last);
void mo_turn_stuck(struct chat *c); /* the results were refused: it ends */
/* The model has ended, and what it was asked is still being written. */
void mo_write_ahead_done(struct chat *c, const struct mo_llm_reply *r,
                         const struct mo_llm_failure *f);
void mo_write_ahead_drop(struct chat *c);
void mo_write_ahead_ask(
    struct mo_later *d); /* what is being written: ask about it */

/* --- context_window.c
 * ------------------------------------------------------------ */
/* The model, with what it is shown of the conversation. */
int mo_context_window_ask(struct chat *c, const struct mo_llm_cb *cb,
                          struct mo_err *e);
/* Too long, or refused as that? Then older turns make room (mo_turn_summary()
 * follows); false: it fits, or nothing older is left. */
bool mo_context_window_shrink(struct chat *c, bool refused);
bool mo_context_window_is_over(const struct chat *c);

/* --- verdict.c ----------------------------------------------------------- */
#define REASON_MAX ((size_t)8 * 1024)
/* It will not run; this is what the model gets instead. */
void mo_chat_call_refuse(struct call *k, const char *by, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));
struct mo_verdict mo_chat_call_verdict(const struct call *k);
/* The call as policy/policy.h judges it. */
struct mo_policy_call mo_chat_call_for_policy(const struct call *k);
void mo_chat_calls_count(
    struct chat *c); /* those that wait: which of how many */

/* --- calls.c ------------------------------------------------------------- */
/* A reply's calls become ours, each with its verdict. */
int mo_chat_calls_take(struct chat *c, const struct mo_llm_reply *r,
                       struct mo_err *e);
/* One write for each of them, doc and all, appended to v. */
size_t mo_chat_calls_writes(struct chat *c, struct mo_write *v,
                            struct mo_buf *docs);
void mo_chat_calls_begin(struct chat *c); /* they are written: ask, run */
void mo_chat_calls_check(struct chat *c); /* have all ended? */
#define MO_OUTCOME_WRITES 2
/* What a call came to, as so many writes; doc must live as long as they. */
size_t mo_chat_calls_outcome(struct call *k, struct mo_write *w,
                             struct mo_buf *doc);
void mo_chat_calls_told(
    struct call *k); /* that was written: members hear of it */
void mo_chat_calls_cancel(struct chat *c);
void mo_chat_calls_drop(struct chat *c); /* out of memory; none runs */
struct call *mo_chat_calls_find(struct chat *c, struct mo_span key);
bool mo_chat_calls_running(const struct chat *c);
struct call *
mo_chat_calls_only(struct chat *c); /* the one that runs, or NULL */
/* The one that runs there under that number; or NULL. */
struct call *mo_chat_calls_running_as(struct chat *c,
                                      const struct mo_conn *conn,
                                      uint64_t number);
struct call *mo_chat_calls_new(struct chat *c);
void mo_chat_calls_digest(struct call *k);
/* Others in the place of its arguments; where they are none nothing changes. */
int mo_chat_call_take_args(struct call *k, struct mo_json args,
                           struct mo_err *e);
void mo_chat_calls_refuse(struct call *k, const char *text);
void mo_chat_calls_recovered(struct chat *c); /* each is as the store has it */
/* After a restart: the calls of the last entry, as the store has them. */
int mo_chat_calls_recover(struct chat *c, struct mo_json entry,
                          struct mo_err *e);
void mo_chat_calls_expire(struct mo_timer *t);

/* What came of a call that ran; with mo_chat_call_fail() an error text. */
void mo_chat_call_outcome(struct call *k, enum mo_call_state to);
void mo_chat_call_fail(struct call *k, enum mo_call_state to, const char *fmt,
                       ...) __attribute__((format(printf, 3, 4)));

extern const char
    mo_chat_calls_none[]; /* what is said of a call that does not wait */
void mo_chat_calls_arm(
    struct chat *c); /* the timer of the next that nobody answers */
/* It waits: write that it runs, or (after mo_chat_call_refuse()) that it does
 * not. */
void mo_chat_call_settle(struct call *k, enum mo_call_state to);
void mo_chat_call_reject(struct call *k, const char *by, const char *text);
/* Its tool is another one now: it waits for a person (again). */
void mo_chat_call_ask_again(struct call *k);

/* --- run.c --------------------------------------------------------------- */

void mo_chat_call_run(struct call *k); /* now, or when it is its turn */
void mo_chat_calls_next(
    struct chat *c); /* one has ended: who is next in line */

/* That server's list is read; then mo_stand_in_there(), or it is sent. 0 or
 * MO_ENOMEM. */
int mo_chat_call_look(struct call *k, struct mo_span server, struct mo_err *e);
void mo_chat_call_send(struct call *k);         /* to its tool's server */
void mo_chat_call_stop_looking(struct call *k); /* if it does: it is stopped */
void mo_chat_call_patience(
    struct call *k); /* runs, or is paused by a question */
void mo_chat_call_late(struct mo_timer *t);

/* --- stand_in.c ---------------------------------------------------------- */

/* Its server is down, and why. true: another one is looked at, or whether it
 * may run there is decided. */
bool mo_stand_in_next(struct call *k, const char *why);
bool mo_stand_in_is_looked_at(const struct call *k);
void mo_stand_in_there(struct call *k); /* its list was read */
/* Why the first one is down; or `other`. */
const char *mo_stand_in_why(const struct call *k, const char *other);
void mo_stand_in_note(struct call *k); /* the model is told who really ran it */
/* After a restart: was it to run elsewhere? */
bool mo_stand_in_recall(struct call *k, struct mo_json kept);
void mo_stand_in_free(struct call *k);

/* --- elicit.c ------------------------------------------------------------ */

struct elicit_view { /* what members are shown of a question */
    const char *id, *call;
    struct mo_span server;
    bool page;
    struct mo_json message, what; /* what: the form, or the address */
    uint64_t expires;
};

void mo_chat_elicit_box(void *ctx, struct mo_hold *h, struct mo_ask *a);
/* A server behind the gateway asks, and does not want to know any more. c may
 * be NULL: it has gone. The ask is ours from here on. */
void mo_chat_elicit_ask(struct chat *c, const struct mo_conn *conn,
                        struct mo_ask *a);
void mo_chat_elicit_gone(struct mo_ask *a);
void mo_chat_elicit_drop(struct call *k);      /* its questions are over */
void mo_chat_elicit_tell(struct mo_member *m); /* a member came: what is open */

/* --- load_tools.c -------------------------------------------------------- */

/* Where a tool is from, mo_tool.source. */
enum { SOURCE_BOX, SOURCE_ROUTER, SOURCE_SERVERS };
#define ROUTER_NAME "router" /* for people: the gateway's own tools */

/* Reads the tools of all servers; mo_chat_tools() follows, from the loop. */
void mo_load_tools_start(struct chat *c);
void mo_load_tools_stop(struct chat *c); /* it is not waited for any longer */

/* --- gateway_client.c
 * ------------------------------------------------------------- */
int mo_gateway_client_open(struct chat *c,
                           struct mo_err *e); /* again: nothing */
void mo_gateway_client_drop(struct chat *c);
struct mo_conn *
mo_gateway_client_conn(const struct chat *c); /* NULL: it is not open */
uint64_t mo_gateway_client_peer(const struct chat *c); /* 0: there is none */

/* --- router.c ------------------------------------------------------------ */
bool mo_chat_router_is_run(const struct call *k);
/* The tool that execute would run takes its place, with its arguments; where
 * there is none nothing changes. */
void mo_chat_router_choose(struct call *k);
/* Another server's tool takes the place of the one it is; MO_ENOTFOUND: it has
 * none of that name, and nothing changes. */
int mo_chat_router_swap(struct call *k, struct mo_span server,
                        struct mo_span tool);
/* The same after a restart, by what was kept of it. */
void mo_chat_router_recall(struct call *k, struct mo_json kept);
void mo_chat_router_free(struct call *k);
/* What it was found for, and how sure that is; empty: it was named. */
struct mo_span mo_chat_router_words(const struct call *k, float *sure);

/* --- changed_tools.c
 * ------------------------------------------------------------ */
int mo_changed_tools_look(struct chat *c); /* after the tools were read */
void mo_changed_tools_forget(struct chat *c);
bool mo_changed_tools_is_blocked(const struct chat *c, const struct mo_tool *t);
/* One that is in no list: is it what it was? */
bool mo_changed_tools_is_same(const struct chat *c, const struct mo_tool *t);
/* Its definition when it was first seen; empty: it is not blocked. */
struct mo_span mo_changed_tools_before(const struct chat *c,
                                       const struct mo_tool *t);

/* --- session_memory.c
 * ---------------------------------------------------------- */
void mo_session_memory_init(struct remembered *r);
void mo_session_memory_fini(struct remembered *r);
void mo_session_memory_read(struct chat *c, struct mo_json doc);
/* As the person wishes; why not, when it cannot be. */
int mo_session_memory_decision(struct call *k, const struct mo_decision *d,
                               struct mo_err *e);
void mo_session_memory_title(struct chat *c, struct mo_span text);
void mo_session_memory_save(struct chat *c);

/* --- event.c ------------------------------------------------------------- */
void mo_chat_event_greet(struct mo_member *m);
void mo_chat_event_greet_all(
    struct chat *c); /* it is another conversation now */
void mo_chat_event_entry(struct chat *c, const struct entry *en);
void mo_chat_event_thinking(struct chat *c);
void mo_chat_event_compacted(struct chat *c, const struct entry *summary);
void mo_chat_event_delta(struct chat *c, struct mo_span text);
void mo_chat_event_response(struct chat *c, struct mo_span text,
                            const char *stop);
void mo_chat_event_error(struct chat *c, const char *code, struct mo_span text,
                         unsigned retry_ms);
void mo_chat_event_message(struct chat *c, struct mo_member *only,
                           const char *text);
void mo_chat_event_troubles(struct chat *c, struct mo_member *only);
void mo_chat_event_queued(struct mo_member *m, unsigned position);
void mo_chat_event_idle(struct chat *c, unsigned seconds);
void mo_chat_event_closed(struct chat *c, const char *reason);
void mo_chat_event_approval(struct call *k);
void mo_chat_event_resolved(struct call *k, bool approved);
void mo_chat_event_progress(struct call *k, struct mo_json params);
void mo_chat_event_log(struct chat *c, const struct call *k,
                       struct mo_json params);
void mo_chat_event_output(struct call *k);
void mo_chat_event_elicit(struct chat *c, struct mo_member *only,
                          const struct elicit_view *v);
void mo_chat_event_elicited(struct chat *c, const char *id, const char *action,
                            const char *by);

#endif
