/* calls.h - the calls of the current step: verdict, approval, execution,
 * outcome.
 *
 * Ownership: calls belong to the chat, from mo_chat_calls_new() until
 * mo_chat_calls_drop(). Limits: MO_LLM_CALLS_MAX calls per reply; AT_ONCE
 * (run.c) calls of a chat run at once, the others wait. */
#ifndef MO_AGENT_CHAT_CALLS_H
#define MO_AGENT_CHAT_CALLS_H

#include "agent/chat/chat_priv.h"

#define REASON_MAX ((size_t)8 * 1024)

struct call {
    struct mo_list node; /* in chat->calls.list, in the model's order */
    struct chat *chat;
    char key[MO_LLM_KEY_MAX];
    char card[MO_LLM_KEY_MAX];      /* its id for people: the key, or, if it was
                                     * asked about again, a new one */
    enum mo_call_state state, next; /* next: while it is being written */
    unsigned doubt;                 /* states (MO_CALL_BIT) that decisions whose
                                     * write has no answer may have set */
    bool writing;                   /* a change of state is being written */
    bool noting;                    /* that one more person approved, is */
    bool canceled;                  /* asked to stop while running */
    bool in_line;                   /* may run, waits for other calls to end */
    bool started;                   /* sent, not yet answered */
    bool of_mode;                   /* chat_mode.h lets it through */
    const struct mo_tool *tool;     /* NULL: there is no tool of that name */
    struct routed_tool *routed;     /* owns the tool: router.c; or NULL */
    struct mo_buf id;               /* the provider's, may be empty */
    struct mo_buf name, args, reason, content;
    struct mo_buf route;       /* JSON, if another server ran it; else empty */
    struct mo_buf app;         /* JSON for the tool's app: apps.h; or empty */
    struct stand_in *stand_in; /* its server is down: router.c; or NULL */
    char digest[MO_EXACT_DIGEST];
    char before[MO_EXACT_DIGEST]; /* of the arguments before an edit; or "" */
    struct mo_audit_open *left;   /* its record since it was sent; or NULL */
    bool is_error;
    unsigned position, total; /* among the pending calls, from 1 */
    uint64_t expires;         /* wall ms, shown; 0: needs no approval */
    uint64_t deadline;        /* mo_now_ns(): the approval times out */
    uint64_t began;           /* mo_now_ns() */
    uint64_t took_ms;
    uint64_t held_ns;              /* when a person was asked; or 0 */
    uint64_t used_ns;              /* when its box was asked for; or 0 */
    struct mo_entry_times times;   /* of the trace */
    struct mo_trace_span *span;    /* while it runs; NULL: it is not recorded */
    struct tool_check *tool_check; /* checks whether the tool changed: run.c */
    struct mo_call *running;
    const struct mo_conn *conn;  /* where it runs; only compared */
    unsigned questions;          /* open questions of its server */
    uint64_t idle_ms;            /* idle timeout */
    struct mo_timer idle_timer;  /* the idle timer; paused by questions */
    bool late;                   /* the idle timer has fired */
    struct mo_budget_ask budget; /* turn_budget.c */
    struct ack ack;              /* of the decision that is being written */
    int kept;          /* 1: the decision is remembered; -1: it failed */
    const char *by;    /* "person", "rule", "remembered", "time", "cancel",
                        * "ahead" (script_grant.h; `who` gave it),
                        * or a mode of chat_mode.h ("mode:reads"), which the
                        * person `who` has set */
    char who[WHO_MAX]; /* the member who decided; or empty */
    struct mo_door door;
    enum mo_answered answered; /* who approved these bytes */
    uint64_t panel;            /* MO_ANSWERED_PANEL: its digest */
    struct mo_said said;       /* who have approved, of a panel; stored */
    struct mo_buf shown; /* arguments before an edit that is being written */
    bool is_denied;      /* refused by a rule, a pin or a switch */
    /* script_calls.h: */
    struct script *script; /* it runs a script that may make calls; or NULL */
    struct call *parent;   /* the script that made this call; or NULL */
    uint64_t frame;        /* its id there */
    uint64_t line;         /* of the script; 0: unknown */
    struct mo_buf raw;     /* the result as the script gets it */
    struct script_grants *grants; /* of a script: script_grant.c; or NULL */
    size_t grant;  /* number of the grant it took, from 1; or 0 */
    bool is_fresh; /* it is not stored yet */
    bool is_noted; /* in the list of the script */
    bool is_over;  /* answered: it is freed from the loop */
};

struct call *mo_chat_calls_new(struct chat *c); /* NULL: out of memory */
void mo_chat_calls_drop(struct chat *c); /* frees all; none may be running */
struct call *mo_chat_calls_find(struct chat *c, struct mo_span card);
bool mo_chat_calls_running(const struct chat *c);
/* The only running call; NULL if none or several run. */
struct call *mo_chat_calls_only(struct chat *c);
/* The call that runs on conn under that number; or NULL. */
struct call *mo_chat_calls_running_as(struct chat *c,
                                      const struct mo_conn *conn,
                                      uint64_t number);

/* Appends one write per call to v and returns their number. docs must live as
 * long as v. */
size_t mo_chat_calls_writes(struct chat *c, struct mo_write *v,
                            struct mo_buf *docs);
/* The calls are stored: asks for approval, runs the allowed ones. */
void mo_chat_calls_begin(struct chat *c);
/* The same for one call of a script. */
void mo_chat_call_begin(struct call *k);
void mo_chat_call_free(struct call *k);
/* Appends the document of the call's row. */
void mo_chat_call_put(struct mo_buf *docs, const struct call *k);
/* The words for a call that was stopped before it was sent. */
const char *mo_chat_call_stopped(const struct call *k);
/* Its move to another state with the audit row, as MO_OUTCOME_WRITES writes. */
size_t mo_chat_call_put_move(struct call *k, unsigned from,
                             enum mo_call_state to, struct mo_write *w,
                             struct mo_buf *doc);
/* After a restart: looks up the calls of the last entry in the store.
 * mo_chat_calls_recovered() follows, or mo_chat_fail(). */
int mo_chat_calls_recover(struct chat *c, struct mo_json entry,
                          struct mo_err *e);
void mo_chat_calls_recovered(struct chat *c); /* all were read: goes on */
void mo_chat_calls_cancel(struct chat *c);
/* If all calls have ended, passes their results on. */
void mo_chat_calls_check(struct chat *c);

#define MO_OUTCOME_WRITES 2
/* The outcome of a call as MO_OUTCOME_WRITES writes; doc must live as long as
 * they. */
size_t mo_chat_calls_outcome(struct call *k, struct mo_write *w,
                             struct mo_buf *doc);
void mo_chat_calls_outcome_written(struct call *k); /* sends the event */
/* The results of all calls are stored in an entry: removes arguments and
 * results from the rows of all calls but `last`, unless audit.arguments is
 * set. mo_chat_calls_outcome() wrote that one without them. */
void mo_chat_calls_strip(struct chat *c, const struct call *last);
/* Ends a running call. mo_chat_call_fail() sets an error text as its result. */
void mo_chat_call_outcome(struct call *k, enum mo_call_state to);
void mo_chat_call_fail(struct call *k, enum mo_call_state to, const char *fmt,
                       ...) __attribute__((format(printf, 3, 4)));
/* The same for a call that was not run; fmt: why. */
#define mo_chat_call_skip(k, fmt, ...)                                         \
    mo_chat_call_fail(k, MO_CALL_DONE, "The call was not run: " fmt ".",       \
                      ##__VA_ARGS__)

extern const char
    mo_chat_calls_none[]; /* error text: the call is not pending */
/* Sets how long the call waits: left ms of the configured time. */
void mo_chat_call_set_expiry(struct call *k, uint64_t left);
/* Starts the timer of the next approval timeout. */
void mo_chat_calls_arm(struct chat *c);
void mo_chat_calls_expire(struct mo_timer *t); /* its callback */
/* Stores the decision about a pending call: it runs, or (after
 * mo_chat_call_refuse()) is rejected. */
void mo_chat_call_settle(struct call *k, enum mo_call_state to);
void mo_chat_call_reject(struct call *k, const char *by, const char *text);
/* The running call needs another approval: makes it pending again, under a new
 * id. */
void mo_chat_call_ask_again(struct call *k);

/* --- call_span.c: spans of a call; nothing if the turn is not traced ------ */

/* The call begins to run, now. */
void mo_call_span_begin(struct call *k);
void mo_call_span_end(struct call *k);
/* A person has decided, or time has. */
void mo_call_span_decided(struct call *k, bool yes);
/* Its tool was chosen by the router, since then. */
void mo_call_span_route(struct call *k, uint64_t since);

/* --- verdict.c: which calls may run ----------------------------------------
 */

/* Adds the calls of a reply to the chat, each with its verdict. */
int mo_chat_calls_take(struct chat *c, const struct mo_llm_reply *r,
                       struct mo_err *e);
/* Fills in a new call and judges it. A call of a script may name any tool of
 * the conversation's servers. */
int mo_chat_call_take(struct call *k, const struct mo_llm_call *from,
                      struct mo_err *e);
/* Rejects a call. The text is the result the model gets. */
void mo_chat_call_refuse(struct call *k, const char *by, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));
struct mo_verdict mo_chat_call_verdict(const struct call *k);
/* Notes by what the call is allowed. */
void mo_chat_call_allowed(struct call *k, const struct mo_verdict *v);
/* The call in the form that policy/policy.h judges. */
struct mo_policy_call mo_chat_call_for_policy(const struct call *k);
/* After the rules changed: rejects pending calls that are denied now. */
void mo_chat_calls_judge_again(struct chat *c);
void mo_chat_calls_count(struct chat *c); /* numbers the pending calls */
void mo_chat_calls_digest(struct call *k);
/* Directly before the call is sent: true if the rules, the pin and the digest
 * permit exactly these bytes. False: it was ended or asked about again. */
bool mo_chat_call_may_run(struct call *k);
/* Audits a decision that was refused. */
void mo_chat_audit_refusal(struct chat *c, const struct mo_decider *by,
                           const struct mo_decision *d, const char *code);
struct mo_decider mo_chat_decider(const struct mo_member *m);
/* Decides a call of the chat, and acknowledges. only: the member who decides,
 * or NULL. */
void mo_chat_call_decide(struct chat *c, const struct mo_decider *by,
                         struct mo_member *only, const struct mo_decision *d,
                         struct ack *ack);
/* Stores that one more person of a panel has approved; the call stays
 * pending. */
void mo_chat_call_note(struct call *k);
/* Tells webhooks that the call waits, or was decided. */
void mo_chat_call_tell(const struct call *k, const char *kind, bool approved);
/* Why this person's yes does not count; NULL: it does, or no panel. */
const char *mo_chat_call_panel_refuses(const struct call *k,
                                       const struct mo_panel *p,
                                       const struct mo_identity *who);
/* Takes back the edit of a decision that was not stored. */
void mo_chat_call_undo_edit(struct call *k);
/* Replaces the arguments; on failure nothing changes. */
int mo_chat_call_take_args(struct call *k, struct mo_json args,
                           struct mo_err *e);

/* --- run.c: runs an approved call ---------------------------------------- */

/* Runs it now, or when its turn comes. It gets exactly one outcome
 * (mo_chat_call_outcome()). */
void mo_chat_call_run(struct call *k);
/* Counts it for its person; then mo_chat_call_start() follows, or it ends. */
void mo_chat_call_count(struct call *k);
/* Counts a call for the person who pays. */
enum mo_budget_answer mo_turn_budget_call(const struct chat *c,
                                          struct mo_budget_ask *ask,
                                          struct mo_budget_no *no);
void mo_chat_call_start(struct call *k);
void mo_chat_calls_next(struct chat *c); /* a call ended: runs waiting ones */

/* Reads the tool list of a server; then mo_stand_in_list_read() follows, or the
 * call is sent. 0 or MO_ENOMEM. */
int mo_chat_call_check_tool(struct call *k, struct mo_span server,
                            struct mo_err *e);
void mo_chat_call_send(struct call *k); /* to its tool's server */
/* Checks the call, records it and sends a request for it. False: it was ended
 * instead, and o->done will not be called. */
bool mo_chat_call_request(struct call *k, struct mo_conn *conn,
                          const char *method, const struct mo_buf *params,
                          struct mo_call_opts *o);
/* Ends a running call whose request got no result. */
void mo_chat_call_no_result(struct call *k, const struct mo_reply *r);
/* Stops reading the list and ends the call. */
void mo_chat_call_stop_check(struct call *k);
/* Restarts the idle timer, or pauses it while a question is open. */
void mo_chat_call_arm_idle(struct call *k);
void mo_chat_call_idle_timeout(struct mo_timer *t); /* its callback */

/* --- router.c: replaces the tool of a call ------------------------------- */

bool mo_chat_router_is_run(const struct call *k); /* a call of execute? */
/* Replaces tool and arguments by those execute would use. If it would run
 * nothing, nothing changes. */
void mo_chat_router_choose(struct call *k);
/* Takes the tool of a server by its name; none: nothing changes. */
void mo_chat_router_named(struct call *k, struct mo_span name);
/* Restores the replacement after a restart. */
void mo_chat_router_recall(struct call *k, struct mo_json kept);
void mo_chat_router_free(struct call *k);
/* The description the tool was found by, and the confidence. Empty: the tool
 * was named. */
struct mo_span mo_chat_router_words(const struct call *k, float *sure);

/* The server of the call is down. True: a stand-in is being checked. */
bool mo_stand_in_next(struct call *k, const char *why);
bool mo_stand_in_is_checking(const struct call *k);
void mo_stand_in_list_read(struct call *k); /* the stand-in's list was read */
/* Why the first server is down; or `other`. */
const char *mo_stand_in_why(const struct call *k, const char *other);
/* Adds a note to the result: which server ran the call. */
void mo_stand_in_note(struct call *k);
/* After a restart: true if the call was pending for another server. */
bool mo_stand_in_recall(struct call *k, struct mo_json kept);
void mo_stand_in_free(struct call *k);

#endif
