/* calls.h - the calls of the current step: approval, execution, outcome.
 *
 * Ownership: calls belong to the chat, from mo_chat_calls_new() until
 * mo_chat_calls_drop(). Limit: MO_LLM_CALLS_MAX calls per reply. */
#ifndef MO_AGENT_CHAT_CALLS_H
#define MO_AGENT_CHAT_CALLS_H

#include "agent/chat/chat_priv.h"

struct call {
    struct mo_list node; /* in chat->calls.list, in the model's order */
    struct chat *chat;
    char key[MO_LLM_KEY_MAX];
    enum mo_call_state state, next; /* next: while it is being written */
    bool writing;                   /* a change of state is being written */
    bool canceled;                  /* asked to stop while running */
    bool in_line;                   /* may run, waits for other calls to end */
    bool started;                   /* sent, not yet answered */
    const struct mo_tool *tool;     /* NULL: there is no tool of that name */
    struct routed_tool *routed;     /* owns the tool: router.c; or NULL */
    struct mo_buf id;               /* the provider's, may be empty */
    struct mo_buf name, args, reason, content;
    struct mo_buf route;       /* JSON, if another server ran it; else empty */
    struct stand_in *stand_in; /* its server is down: router.c; or NULL */
    char digest[MO_EXACT_DIGEST];
    bool is_error;
    unsigned position, total; /* among the pending calls, from 1 */
    uint64_t expires;         /* wall ms; 0: needs no approval */
    uint64_t began;           /* mo_now_ns() */
    uint64_t took_ms;
    struct tool_check *tool_check; /* checks whether the tool changed: run.c */
    struct mo_call *running;
    const struct mo_conn *conn; /* where it runs; only compared */
    unsigned questions;         /* open questions of its server */
    uint64_t idle_ms;           /* idle timeout */
    struct mo_timer idle_timer; /* the idle timer; paused by questions */
    bool late;                  /* the idle timer has fired */
    struct ack ack;             /* of the decision that is being written */
    int kept;          /* 1: the decision is remembered; -1: it failed */
    const char *by;    /* "person", "rule", "remembered", "time", "cancel" */
    char who[WHO_MAX]; /* the member who decided; or empty */
};

struct call *mo_chat_calls_new(struct chat *c); /* NULL: out of memory */
void mo_chat_calls_drop(struct chat *c); /* frees all; none may be running */
struct call *mo_chat_calls_find(struct chat *c, struct mo_span key);
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
/* After a restart: looks up the calls of the last entry in the store.
 * mo_chat_calls_recovered() follows, or mo_chat_fail(). */
int mo_chat_calls_recover(struct chat *c, struct mo_json entry,
                          struct mo_err *e);
void mo_chat_calls_recovered(struct chat *c); /* all were read: goes on */
void mo_chat_calls_cancel(struct chat *c);

#define MO_OUTCOME_WRITES 2
/* The outcome of a call as MO_OUTCOME_WRITES writes; doc must live as long as
 * they. */
size_t mo_chat_calls_outcome(struct call *k, struct mo_write *w,
                             struct mo_buf *doc);
void mo_chat_calls_outcome_written(struct call *k); /* sends the event */
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
/* Starts the timer of the next approval timeout. */
void mo_chat_calls_arm(struct chat *c);
void mo_chat_calls_expire(struct mo_timer *t); /* its callback */
/* Stores the decision about a pending call: it runs, or (after
 * mo_chat_call_refuse()) is rejected. */
void mo_chat_call_settle(struct call *k, enum mo_call_state to);
void mo_chat_call_reject(struct call *k, const char *by, const char *text);
/* The tool of a running call was replaced: makes it pending again. */
void mo_chat_call_ask_again(struct call *k);

#endif
