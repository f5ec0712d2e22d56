/* chat.h - a conversation between a person, a model and tools.
 *
 * There is one chat for each session somebody is interested in. Fronts (a
 * browser's tab, a terminal, a script) join it as members; all members see
 * the same events. A turn goes on without members; a chat that has neither
 * members nor a turn lets its session go.
 *
 *   person -> model -> calls -> approvals -> tools -> results -> model ... ->
 *   answer
 *
 * Rules of the house
 *  1. Only mo_chat_move() writes a chat's state; one turn at a time. What is
 * said meanwhile waits in line, at most MO_CHAT_QUEUE_MAX.
 *  2. Nothing is told to a member that is not durable: an acknowledgement
 *     comes after the store's.
 *  3. Nothing runs that the store does not call running already, and what was
 *     running when we died is never run again: its outcome is "unknown", and
 *     both the person and the model are told.
 *  4. A call runs at most once, and only with the exact bytes that were
 *     approved (policy/exact.h).
 *  5. A model that was being asked when we died is asked again when somebody
 *     comes back: asking has no side effect.
 *
 * Events have the names and arguments of the Socket.IO contract: `args` is
 * the inside of a JSON array ("\"text\",{...}"), so that a front passes them
 * on as they are. */
#ifndef MO_AGENT_CHAT_CHAT_H
#define MO_AGENT_CHAT_CHAT_H

#include "agent/llm/llm.h"
#include "gateway/gateway.h"
#include "policy/policy.h"
#include "servers/tools.h"
#include "session/session.h"

#define MO_CHATS_MAX      1024
#define MO_CHAT_MEMBERS   64
#define MO_CHAT_QUEUE_MAX 16
#define MO_CHAT_STEPS_MAX 50 /* of one turn: times the model is asked */
#define MO_CHAT_TEXT_MAX  ((size_t)256 * 1024) /* one message */
#define MO_CHAT_EVENT_MAX ((size_t)8 * 1024 * 1024)
#define MO_CHAT_QUESTIONS 8  /* of servers, open during one call */
#define MO_CHAT_FIELDS    64 /* of one of their forms */

/* What a server is told that we can do: ask a person. */
#define MO_AGENT_CAPABILITIES "{\"elicitation\":{\"form\":{},\"url\":{}}}"

struct mo_agent;
struct mo_member;

/* Which model, where, with whose key: the owner of the configuration says.
 * wanted: what the front asked for, may be empty. *model gets its id, as fronts
 * know it; the name that the provider knows begins at *own. */
struct mo_agent_llm {
    int (*pick)(void *ctx, struct mo_span wanted, struct mo_span key,
                struct mo_llm **out, const char **provider,
                struct mo_buf *model, size_t *own, struct mo_err *e);
    /* Before pick(), when a chat opens. 1: pick() knows all it needs; 0:
     * ready() once, later. NULL: always 1. */
    int (*prepare)(void *ctx, struct mo_span wanted, void (*ready)(void *arg),
                   void *arg, struct mo_err *e);
    /* Tokens a request to it may have, 0: unknown; or NULL. */
    uint64_t (*window)(void *ctx, struct mo_span model);
    void *ctx;
};

/* MCP servers that all conversations share, beside each one's own box: each
 * conversation is a client of that gateway, inside this program. */
struct mo_agent_servers {
    struct mo_gateway *gateway; /* NULL: there are none */
    struct mo_endpoint *endpoint;
    enum mo_gw_expose offer; /* of their tools, to the model */
};

struct mo_agent_opts {
    struct mo_agent_servers servers;
    struct mo_sessions *sessions;
    struct mo_store *store;
    struct mo_agent_llm llm;
    struct mo_policy *policy;
    uint64_t approval_ms;        /* a question nobody answers; 600 s */
    unsigned steps;              /* 0: MO_CHAT_STEPS_MAX */
    uint64_t history_tokens;     /* 0: 30000 */
    struct mo_span instructions; /* the system text; empty: ours */
};

struct mo_agent *mo_agent_new(struct mo_loop *l, const struct mo_agent_opts *o,
                              struct mo_err *e);
/* The servers' tools may be others than they were: they are read again before
 * a model is asked next. */
void mo_agent_stale(struct mo_agent *a);
/* Takes approval_ms, steps, history_tokens and instructions of `o`; the rest is
 * not looked at. They hold from the next call and the next
 * request on. A call that waits for a person and is denied now is rejected.
 * Each conversation picks its model again before its next turn. */
void mo_agent_change(struct mo_agent *a, const struct mo_agent_opts *o);
/* on_point() hears of every place where a turn stands ("saving", "asking",
 * "keeping", "calls", "running", "outcome", "results", ...), before anything
 * of it is done: for tests of what a sudden end leaves. */
void mo_agent_watch(struct mo_agent *a,
                    void (*on_point)(void *ctx, const char *name), void *ctx);
/* Every member leaves (on_closed), turns stop where they are; gone(ctx). */
void mo_agent_close(struct mo_agent *a, void (*gone)(void *ctx), void *ctx);

/* --- members ------------------------------------------------------------- */

struct mo_member_cb {
    void (*on_event)(void *ctx, const char *name, struct mo_span args);
    /* The member is gone. */
    void (*on_closed)(void *ctx, const char *reason, const struct mo_err *why);
};

struct mo_join {
    struct mo_span session;
    struct mo_span model; /* empty: as the session has it, or the default */
    struct mo_span key;   /* of the model's provider; empty: ours */
    struct mo_span who;   /* for the audit: "127.0.0.1:4711", "terminal" */
    /* The person by name; to others the session is not there (MO_ENOTFOUND).
     * Empty: the operator, who may join every one. [A-Za-z0-9_.@-] */
    struct mo_span owner;
};

/* "system:ready" and "session:history" follow when all is there. */
int mo_chat_join(struct mo_agent *a, const struct mo_join *j,
                 const struct mo_member_cb *cb, void *ctx,
                 struct mo_member **out, struct mo_err *e);
void mo_chat_leave(struct mo_member *m); /* no callback any more */

/* --- what a member can do; done() once, from the loop -------------------- */

struct mo_ack {
    bool ok;
    const char *code; /* not ok: "busy", "unknown_call", "bad_request", ... */
    struct mo_span message;
    struct mo_span extra; /* ok: members of the answer ("\"queued\":1") */
};
typedef void mo_ack_fn(void *ctx, const struct mo_ack *a);

void mo_chat_say(struct mo_member *m, struct mo_span text, mo_ack_fn *done,
                 void *ctx);

enum mo_remember { MO_REMEMBER_NO, MO_REMEMBER_SESSION, MO_REMEMBER_ALWAYS };

struct mo_decision {
    struct mo_span call;
    bool approved;
    struct mo_span digest; /* empty: of what was shown last */
    struct mo_span reason;
    struct mo_span args; /* edited; empty: as they were */
    enum mo_remember remember;
    struct mo_span conditions; /* always: only for such arguments */
};

void mo_chat_decide(struct mo_member *m, const struct mo_decision *d,
                    mo_ack_fn *done, void *ctx);
/* What a server asked ("elicitation:required") and the person answers. The
 * content is held against the form that was shown. */
enum mo_answer_action {
    MO_ANSWER_ACCEPT,
    MO_ANSWER_DECLINE,
    MO_ANSWER_CANCEL,
};

struct mo_answer {
    struct mo_span request;
    enum mo_answer_action action;
    struct mo_span content; /* accept: an object, or empty */
};

void mo_chat_answer(struct mo_member *m, const struct mo_answer *a,
                    mo_ack_fn *done, void *ctx);
/* The answer a server gets (pure): {"action":"accept","content":...} with the
 * defaults of what was left out; MO_EINVAL: content is not what was asked. */
int mo_elicit_accept(struct mo_buf *out, struct mo_json schema,
                     struct mo_span content, struct mo_err *e);
/* A tool that changed (system:ready says which) may be used as it is now. */
void mo_chat_accept(struct mo_member *m, struct mo_span tool,
                    struct mo_span digest, mo_ack_fn *done, void *ctx);
void mo_chat_cancel(struct mo_member *m, mo_ack_fn *done, void *ctx);
void mo_chat_reset(struct mo_member *m, mo_ack_fn *done, void *ctx);
/* The session ends: its box goes, its history stays until its time. */
void mo_chat_end(struct mo_member *m, mo_ack_fn *done, void *ctx);

#endif
