/* chat.h - conversations between a person, a model and tools.
 *
 * There is one chat per open session. Front ends (a browser tab, a terminal, a
 * script) join it as members; all members get the same events. A turn continues
 * without members. A chat without members and without a turn releases its
 * session.
 *
 *   person -> model -> calls -> approvals -> tools -> results -> model ... ->
 *   answer
 *
 * Invariants
 *   1. Only mo_chat_move() writes the state of a chat. One turn runs at a
 *      time; further messages wait, at most MO_CHAT_QUEUE_MAX.
 *   2. Members are told only what is stored: an acknowledgement follows the
 *      store's.
 *   3. A call runs only after it is stored as running. A call that was running
 *      when the process died is never run again: its outcome is "unknown", and
 *      the person and the model are told.
 *   4. A call runs at most once, and only with the exact bytes that were
 *      approved (policy/exact.h). The rules, the pin and the digest are checked
 *      again directly before it is sent (run.c). A call that is asked about
 *      again gets a new id, so a decision means one card only.
 *   5. A model request that was interrupted when the process died is sent
 *      again when a member joins: it has no side effect.
 *
 * Events have the names and arguments of the Socket.IO contract. `args` is the
 * inside of a JSON array ("\"text\",{...}"), so that a front end can pass it on
 * unchanged. */
#ifndef MO_AGENT_CHAT_CHAT_H
#define MO_AGENT_CHAT_CHAT_H

#include "agent/chat/about.h"
#include "agent/chat/tally.h"
#include "agent/llm/models.h"
#include "audit/audit.h"
#include "base/rand.h"
#include "budget/budget.h"
#include "gateway/gateway.h"
#include "policy/approvals.h"
#include "policy/policy.h"
#include "servers/tools.h"
#include "session/session.h"

#define MO_CHATS_MAX      1024
#define MO_CHAT_MEMBERS   64
#define MO_CHAT_READERS   64   /* of one session, beside the members */
#define MO_AGENT_READERS  1024 /* of all */
#define MO_CHAT_QUEUE_MAX 16
#define MO_CHAT_STEPS_MAX 50                   /* model requests in one turn */
#define MO_CHAT_TEXT_MAX  ((size_t)256 * 1024) /* of one message */
#define MO_CHAT_EVENT_MAX ((size_t)8 * 1024 * 1024)
#define MO_CHAT_QUESTIONS 8  /* open questions of servers during one call */
#define MO_CHAT_FIELDS    64 /* fields of a form */
#define MO_CHAT_GRANT_MAX 32 /* of the id of a personal token, with the NUL */

/* Client capabilities sent to servers: asking a person, and the model. */
#define MO_AGENT_CAPABILITIES                                                  \
    "{\"elicitation\":{\"form\":{},\"url\":{}},\"sampling\":{}}"
/* The same where the page shows apps (mcp/app.h). */
#define MO_AGENT_CAPABILITIES_APPS                                             \
    "{\"elicitation\":{\"form\":{},\"url\":{}},\"sampling\":{},"               \
    "\"extensions\":{\"io.modelcontextprotocol/ui\":{\"mimeTypes\":["          \
    "\"text/html;profile=mcp-app\"]}}}"

struct mo_agent;
struct mo_member;

/* The MCP servers that all conversations share. Each conversation is a client
 * of the gateway, inside this program. */
struct mo_agent_servers {
    struct mo_gateway *gateway; /* NULL: no servers */
    struct mo_endpoint *endpoint;
    enum mo_gw_expose offer; /* which tools the model is offered */
    bool apps;               /* a page shows the apps of servers */
};

struct mo_agent_opts {
    struct mo_agent_servers servers;
    struct mo_sessions *sessions;
    struct mo_store *store;
    struct mo_models *models;
    struct mo_policy *policy;
    struct mo_approvals
        *approvals;           /* of hosts that a box asks about; or NULL */
    struct mo_budget *budget; /* limits of people; or NULL */
    struct mo_audit *audit;   /* NULL: calls are recorded in the store only */
    uint64_t approval_ms;     /* approval timeout; 0: 600 s */
    unsigned steps;           /* 0: MO_CHAT_STEPS_MAX */
    uint64_t history_tokens;  /* 0: 30000 */
    struct mo_span instructions; /* system prompt; empty: the built-in one */
    bool model_titles;           /* the model writes titles: titles.h */
};

struct mo_agent *mo_agent_new(struct mo_loop *l, const struct mo_agent_opts *o,
                              struct mo_err *e);
/* Marks the tools of servers as changed: every chat reloads them before its
 * next model request. */
void mo_agent_stale(struct mo_agent *a);
/* Takes approval_ms, steps, history_tokens, instructions and model_titles of
 * `o` and ignores the rest. They hold from the next call and the next request
 * on. A pending call that is denied now is rejected. Each conversation picks
 * its model again before its next turn. */
void mo_agent_reload(struct mo_agent *a, const struct mo_agent_opts *o);
/* Changes what is said about an open conversation (about.h); change: the text
 * of a mo_about_change(). One that is not open here is refused (MO_EPOLICY):
 * its chat, opened elsewhere, has it in memory and would overwrite it. done()
 * is called once, from the loop, when it is stored. */
int mo_agent_about(struct mo_agent *a, struct mo_span session,
                   struct mo_span change, mo_done_fn *done, void *ctx,
                   struct mo_err *e);
/* Switches servers and tools off in an open conversation: the list replaces
 * the one before (tools_off.h). It is stored, and counts from the next request
 * to the model on. */
int mo_agent_tools_off(struct mo_agent *a, struct mo_span session,
                       struct mo_json list, struct mo_err *e);

/* --- prompts and resources of servers: offers.c -------------------------- */

#define MO_OFFERS_MAX 1000 /* of each kind; the rest is left out */
/* Writes {"prompts":[...],"resources":[...],"templates":[...]}. Each has its
 * server and `id`, the name, URI or template by which it is asked for. */
int mo_agent_put_offers(const struct mo_agent *a, struct mo_buf *out);
/* The result of the server, borrowed; or why there is none. */
typedef void mo_offer_fn(void *ctx, struct mo_span json,
                         const struct mo_err *why);
/* Sends a request of MCP for an open conversation; done() is called once, from
 * the loop. MO_EPROTO: the server refused it. */
int mo_agent_ask_server(struct mo_agent *a, struct mo_span session,
                        const char *method, struct mo_span params,
                        mo_offer_fn *done, void *ctx, struct mo_err *e);
/* --- apps of servers: apps.c --------------------------------------------- */

struct mo_app_ask {
    struct mo_span session, server;
    struct mo_span app;    /* the URI of the app, as its tool names it */
    struct mo_span tool;   /* to call: the server's own name */
    struct mo_json args;   /* of the tool; none: no arguments */
    struct mo_span digest; /* of the question that is answered; or empty */
    struct mo_span uri;    /* to read, the server's own or the gateway's */
    const char *who;       /* the person, for the audit log */
    const char *door;      /* how they were admitted: struct mo_door; static */
    bool is_operator;
};
/* Calls a tool for an app. The answer says what became of the call:
 *
 *   {"state":"done","result":{...}}       the result of the server
 *   {"state":"ask","digest":"...","name":"...","args":{...}}
 *                                         a person must approve: ask again with
 *                                         the digest
 *   {"state":"denied","reason":"..."}     by a rule, or the tool is not for
 *                                         apps
 *   {"state":"changed"}                   its server changed the tool
 *   {"state":"failed","reason":"..."}     the server refused, or did not answer
 *
 * done() is called once, from the loop. */
int mo_agent_app_call(struct mo_agent *a, const struct mo_app_ask *q,
                      mo_offer_fn *done, void *ctx, struct mo_err *e);
/* Reads a resource of the app's server:
 * {"result":{...},"ui":{...},"refused":["https://..."]}; ui: the metadata of
 * the resource, refused: domains that it asks for and does not get. */
int mo_agent_app_read(struct mo_agent *a, const struct mo_app_ask *q,
                      mo_offer_fn *done, void *ctx, struct mo_err *e);
/* For crash tests: on_point() is called with the name of every step ("saving",
 * "asking", "keeping", "calls", "running", "outcome", "results", ...) before
 * the step does anything. */
void mo_agent_watch(struct mo_agent *a,
                    void (*on_point)(void *ctx, const char *name), void *ctx);
/* Closes every member (on_closed) and stops turns where they are; then calls
 * gone(ctx). A turn whose call runs goes on until the result is there, grace_ms
 * at most; after that the call is cancelled. */
void mo_agent_close(struct mo_agent *a, uint64_t grace_ms,
                    void (*gone)(void *ctx), void *ctx);

/* --- members ------------------------------------------------------------- */

struct mo_member_cb {
    void (*on_event)(void *ctx, const char *name, struct mo_span args);
    /* The member is freed; it must not be used any more. */
    void (*on_closed)(void *ctx, const char *reason, const struct mo_err *why);
};

struct mo_join {
    struct mo_span session;
    struct mo_span model; /* empty: the session's model, or the default */
    struct mo_span key;   /* for the provider; empty: the configured one */
    struct mo_span who;   /* for the audit log: "127.0.0.1:4711", "terminal" */
    const char *door;     /* likewise: struct mo_door; static, or NULL */
    /* The member can join in another process: if one has the session, it is
     * told so (on_closed, "elsewhere") after that time, which may be 0. */
    bool may_move;
    uint64_t move_ms;
    /* The user's name. Sessions of other users do not exist for them
     * (MO_ENOTFOUND). Empty: the operator, who may join every session. */
    struct mo_span owner;
    struct mo_identity person; /* the same person for rules that name some */
    struct mo_span grant;      /* id of their personal token; or empty */
    bool reads;                /* for peer/peer.h: mo_chat_follow() */
};

/* Joins the chat of a session, opening it if needed. "system:ready" and
 * "session:history" follow when the chat is open. MO_EEXISTS: the chat is just
 * ending, or being opened for somebody else; try again in a moment. */
int mo_chat_join(struct mo_agent *a, const struct mo_join *j,
                 const struct mo_member_cb *cb, void *ctx,
                 struct mo_member **out, struct mo_err *e);
void mo_chat_leave(struct mo_member *m); /* no callback follows */
/* The member's groups as another process knows them now (people/identity.h).
 * Without memory for them it has none. */
void mo_member_groups(struct mo_member *m, struct mo_span lines);

/* Follows a session that is shared with the person (people/share.h) without
 * opening it: "session:shared" says that it is not open, and "system:ready" and
 * "session:history" follow when it is. on_closed() with MO_ENOTFOUND: it is not
 * shared with them (any more). A reader can use mo_chat_decide() if
 * mo_member_may_decide(), and no other command. j->owner and j->model are
 * ignored. */
int mo_chat_follow(struct mo_agent *a, const struct mo_join *j,
                   const struct mo_member_cb *cb, void *ctx,
                   struct mo_member **out, struct mo_err *e);
bool mo_member_reads(const struct mo_member *m);
bool mo_member_may_decide(const struct mo_member *m);
/* The shares of a session have changed: readers who lost it are closed. */
void mo_agent_shared(struct mo_agent *a, struct mo_span session,
                     const char *owner, struct mo_span shares);

/* --- commands of members; done() is called once, from the loop ----------- */

struct mo_ack {
    bool ok;
    const char *code; /* "busy", "unknown_call", "bad_request", ... */
    struct mo_span message;
    struct mo_span extra; /* extra members of the answer ("\"queued\":1") */
};
typedef void mo_ack_fn(void *ctx, const struct mo_ack *a);

void mo_chat_say(struct mo_member *m, struct mo_span text, mo_ack_fn *done,
                 void *ctx);
/* The same with an id that the caller has chosen, MO_MESSAGE_ID characters of
 * base64url. again: the message was sent before, perhaps to another process,
 * and it is not known whether it was stored. If the conversation has it, it is
 * acknowledged and not added. */
#define MO_MESSAGE_BYTES 18
#define MO_MESSAGE_ID    MO_TOKEN_LEN(MO_MESSAGE_BYTES)
struct mo_saying {
    struct mo_span text, id;
    bool again;
};
void mo_chat_say_as(struct mo_member *m, const struct mo_saying *s,
                    mo_ack_fn *done, void *ctx);

struct mo_decision {
    struct mo_span call; /* as it was shown: a call that is asked about again
                          * has another id */
    bool approved;
    const struct mo_span *digest; /* NULL: not sent */
    struct mo_span reason;
    struct mo_span args; /* edited arguments, need the digest; empty:
                          * unchanged */
    enum mo_remember remember;
    struct mo_span conditions; /* MO_REMEMBER_ALWAYS: on the arguments;
                                * MO_REMEMBER_NO: further calls of the script
                                * (script_grant.h) */
};

void mo_chat_decide(struct mo_member *m, const struct mo_decision *d,
                    mo_ack_fn *done, void *ctx);

/* --- what runs in a conversation without asking (chat_mode.h) ------------- */

enum mo_chat_mode { MO_CHAT_ASK, MO_CHAT_READS, MO_CHAT_BOX, MO_CHAT_MODES };
const char *mo_chat_mode_name(enum mo_chat_mode m);
int mo_chat_mode_named(struct mo_json name); /* -1: no such name */

struct mo_approval_change {
    struct mo_span session;
    struct mo_span grant;   /* to revoke; empty: the mode is set */
    enum mo_chat_mode mode; /* else MO_CHAT_ASK */
    struct mo_json tools;   /* MO_CHAT_READS: an array of names of the tools
                             * that the person saw; none: all of now */
    const char *who;        /* who may do that, for the audit log */
    const char *door;       /* static, or NULL */
};
/* The conversation must be open here (MO_EPOLICY; see mo_agent_title()).
 * MO_EPOLICY: also if the mode is not permitted; MO_ENOTFOUND: no such grant.
 * done() is called once, from the loop, when the change holds and is stored. */
int mo_agent_change_approvals(struct mo_agent *a,
                              const struct mo_approval_change *by,
                              mo_done_fn *done, void *ctx, struct mo_err *e);

/* A person who need not be a member: one whom a rule names (policy/panel.h). */
struct mo_decider {
    struct mo_identity person;
    const char *who;  /* for the audit log */
    const char *door; /* static, or NULL */
};

/* Writes the pending calls that a rule lets this person see as elements of an
 * array, as in mo_approvals_list(). Their ids are "SESSION.CALL". */
void mo_agent_put_panel_calls(const struct mo_agent *a,
                              const struct mo_identity *who, struct mo_jw *w);
/* True if one of that id waits, and they may see it. */
bool mo_agent_has_call(const struct mo_agent *a, const struct mo_identity *who,
                       struct mo_span id);
/* Decides one of them. False: there is none of that id (d->call) for them. */
bool mo_agent_decide(struct mo_agent *a, const struct mo_decider *by,
                     const struct mo_decision *d, mo_ack_fn *done, void *ctx);
/* Answers a server's question ("elicitation:required"). The content is checked
 * against the form that was shown. */
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
/* Builds the answer sent to the server (pure):
 * {"action":"accept","content":...} with defaults for missing fields.
 * MO_EINVAL: content does not match the form. */
int mo_elicit_accept(struct mo_buf *out, struct mo_json schema,
                     struct mo_span content, struct mo_err *e);
/* Accepts the new definition of a changed tool (listed in system:ready). */
void mo_chat_accept(struct mo_member *m, struct mo_span tool,
                    struct mo_span digest, mo_ack_fn *done, void *ctx);
void mo_chat_cancel(struct mo_member *m, mo_ack_fn *done, void *ctx);
void mo_chat_reset(struct mo_member *m, mo_ack_fn *done, void *ctx);
/* Requests about the conversation itself (wish.c). */
enum mo_wish_kind {
    MO_WISH_MODEL, /* text: another model, now or when the turn is over */
    MO_WISH_SLEEP, /* the box ends, and what waits; the conversation stays */
    MO_WISH_EDIT,  /* text in place of the message `seq`, on a new branch */
    MO_WISH_REGENERATE, /* a new answer to the message `seq` (0: the last) */
    MO_WISH_CONTINUE,   /* after an answer that was cut off, or a failure */
    MO_WISH_SWITCH,     /* the branch of the entry `seq` is the current one */
    MO_WISHES,
};

struct mo_wish {
    enum mo_wish_kind kind;
    uint64_t seq;
    struct mo_span text;
};

void mo_chat_wish(struct mo_member *m, const struct mo_wish *w, mo_ack_fn *done,
                  void *ctx);
/* Ends the session: its box is removed, its history is kept until it
 * expires. */
void mo_chat_end(struct mo_member *m, mo_ack_fn *done, void *ctx);

/* --- all open conversations of this process ------------------------------
 *
 * Conversations that nobody opened since the program started are not included;
 * they are only in the store. */

const struct mo_tally *mo_agent_tally(const struct mo_agent *a);

struct mo_chat_look { /* one conversation; valid during the callback */
    const char *session, *provider;
    struct mo_span model, title;
    struct mo_llm_usage spent; /* of the entries loaded here */
    unsigned members;
    bool busy; /* a turn is running */
};
typedef void mo_chat_look_fn(void *ctx, const struct mo_chat_look *c);
void mo_agent_chats(const struct mo_agent *a, mo_chat_look_fn *each, void *ctx);
/* Is the conversation open in this process? */
bool mo_agent_is_open(const struct mo_agent *a, struct mo_span session);
/* opened(): a conversation is being opened here. */
void mo_agent_on_open(struct mo_agent *a,
                      void (*opened)(void *ctx, struct mo_span session),
                      void *ctx);

struct mo_waiting { /* a pending call */
    const char *session, *call;
    struct mo_span title; /* title of the conversation; may be empty */
    struct mo_span server, tool;
    uint64_t since, expires; /* wall ms */
};
typedef void mo_waiting_fn(void *ctx, const struct mo_waiting *w);
void mo_agent_waiting(const struct mo_agent *a, mo_waiting_fn *each, void *ctx);

#endif
