/* forwarded_call.h - a client's request, forwarded to a server.
 *
 * A forwarded call requests a child, sends the client's request with only its
 * name changed, and returns the result as the bytes received. Progress and log
 * messages go the same way. A cancelled request is cancelled at the server.
 *
 * Requests of the server meanwhile (sampling, elicitation, roots) become
 * questions of the client's request. A legacy client is asked while its
 * request stays open (ASKED). A modern client gets the questions as the result
 * and sends the request again with its answers (AWAY): the call to the server
 * stays open, under a random id that travels sealed in the client's
 * requestState. A client that does not return within opts.away_ms is given up.
 *
 *   client:  WAITING <-> ASKED             by a question, by its answer
 *            WAITING  -> AWAY -> WAITING
 *            WAITING  -> HAS_TASK          it polls (forwarded_call_task.c)
 *            any      -> GONE              nobody waits for the result
 *
 * Owner of a question or log message: the task it names, or the call it came
 * with if the connection can tell. Otherwise, on a child of one session, the
 * newest call of that session. On a shared child, the newest call if all calls
 * on it belong to one connection or session. Else the owner is unknown, and
 * the message is refused or dropped. A call that is to be sent again is no
 * owner.
 *
 * Invariants
 *  1. A call is in g->calls, and in slot->calls while slot is set, which is
 *     until the call to the server has ended.
 *  2. down is ours in WAITING, the endpoint's in ASKED, else NULL.
 *  3. It is in g->parked from its first question on, or since HAS_TASK.
 *  4. Every question is answered or refused before the call is freed. */
#ifndef MO_GATEWAY_CALL_FORWARDED_CALL_H
#define MO_GATEWAY_CALL_FORWARDED_CALL_H

#include "base/rand.h"
#include "budget/budget.h"
#include "gateway/call/rewrite.h"
#include "mcp/client/task.h"

#define FORWARD_TOKEN 16 /* random bytes of an id */

enum client_state {
    CLIENT_WAITING,
    CLIENT_ASKED,
    CLIENT_AWAY,
    CLIENT_HAS_TASK,
    CLIENT_GONE
};

struct kept_task;

/* Most moves to a server that replaced the one of that name. */
#define FAILOVER_MOVES_MAX 8

struct failover {
    uint64_t begun_ms;      /* first written; 0: never */
    unsigned tries;         /* retries on the current server */
    unsigned next_fallback; /* first fallback that was not tried */
    unsigned moves;
    bool sent;          /* one of the tries may have been run */
    bool on_fallback;   /* the current server is a fallback */
    bool pinned;        /* a task has begun: no more moves */
    char *why;          /* why it left the first server; NULL: it did not */
    char *first_server; /* name of that server */
};

enum failover_how {
    FAILOVER_NO_CHILD, /* there was no child */
    FAILOVER_UNSENT,   /* nothing was written */
    FAILOVER_SENT,     /* the server may have run it */
};

/* A question to the client. Exactly one of own, ask and a task's input
 * (key_len > 0) is its origin. */
struct question {
    struct mo_list node;
    struct forwarded_call *f; /* NULL: belongs to a session, not a call */
    unsigned no;              /* its key is "a" and this number */
    bool asked;               /* it was sent to the client */
    bool own;               /* ours, about the call itself (call_approval.h) */
    struct mo_ask *ask;     /* the server's request */
    struct mo_ep_ask *push; /* f NULL: the request to the client */
    struct mo_buf key; /* a task's input: its key as written, its request */
    size_t key_len;
};

struct forwarded_call {
    struct mo_list node, slot_node;
    struct mo_gateway *g;
    struct server_slot *slot;
    /* The client. */
    enum client_state client;
    struct mo_ep_call *down; /* its request */
    struct mo_endpoint *ep;
    uint64_t peer;
    char who[MO_GW_WHO_MAX];
    /* The server. */
    struct mo_child_request child_request;
    bool requesting;
    bool awaits_tools; /* waits for the server's list of tools, to be sent
                        * again with the headers that its schema asks for */
    bool retried;      /* that was done once */
    struct failover failover;
    struct mo_child *child;
    struct mo_call *call;
    struct mo_task *task;
    uint64_t number;           /* of the call */
    bool as_task;              /* a legacy server was asked for a task */
    bool prefixed;             /* URIs of the result get the server's label */
    struct result_limit limit; /* of its result; max 0: none */
    struct mo_latency_row *latency;
    uint64_t sent_ns;
    struct mo_trace_span *span; /* of the request to the server; or NULL */
    char traceparent[MO_TRACE_PARENT_LEN + 1]; /* of that request */
    uint64_t asked_ns; /* traced: when the child was requested */
    /* Questions. */
    char id[MO_TOKEN_LEN(FORWARD_TOKEN) + 1];
    struct mo_list questions;
    unsigned nquestions;
    struct mo_later later;  /* sends questions, or delivers the outcome */
    struct mo_timer gather; /* waits for more questions after the first */
    struct mo_timer expiry;
    /* The outcome, while the client is not there. */
    bool ended, is_error;
    char *left_server; /* name of the server that it has left; or NULL */
    struct mo_buf outcome;
    struct mo_buf progress; /* the last notification that it missed */
    struct mo_buf route;    /* JSON for _meta: where the call went; or empty */
    struct mo_buf lacked;   /* a question that the client does not support */
    struct kept_task *kept_task;  /* HAS_TASK; else NULL */
    struct call_approval *judged; /* its case (call_approval.h), or NULL */
    struct mo_buf edited;         /* arguments changed by a person, or empty */
    struct mo_budget_ask budget;  /* under way: call_budget.c */
    const struct server_slot *counted; /* server that the call counts for */
    struct gw_script *script; /* it runs a script (script/script.h); or NULL */
};

/* Forwards a request whose target is known. */
void mo_forward_start(struct mo_gateway *g, struct mo_ep_call *c,
                      const struct call_target *t);
/* Continues a request that has a requestState: the client has returned. */
void mo_forward_resume(struct mo_gateway *g, struct mo_ep_call *c);
void mo_forward_abandoned(void *ctx, struct mo_span state);
/* Cancels all calls; the gateway is being closed. */
void mo_forward_drop_all(struct mo_gateway *g);
/* Cancels the calls of an endpoint whose clients were to return for them. */
void mo_forward_drop_parked(struct mo_gateway *g, const struct mo_endpoint *ep);
/* Answers the waiting calls of a view with that error and cancels them. */
void mo_forward_end_all(const struct mo_gw_view *v, const char *why);

/* The owner of a message on that child; NULL: unknown. *sure (may be NULL):
 * false if it is only some call of the same client. */
struct forwarded_call *mo_forward_find_owner(struct server_slot *s,
                                             const struct mo_child *c,
                                             uint64_t number, bool *sure);
void mo_forward_log(struct gw_child *k, uint64_t stream_of,
                    struct mo_json params);
/* The call whose task is named in _meta of params; NULL: none. */
struct forwarded_call *mo_forward_find_task_owner(struct server_slot *s,
                                                  const struct mo_child *c,
                                                  struct mo_json params);
/* The only connection or session that uses the child of that server; 0:
 * several, a caller without one, or one whose view does not show the server. */
uint64_t mo_forward_session_of(const struct server_slot *s,
                               const struct mo_child *c);
/* The child's list of tools was read, or could not be. */
void mo_forward_tools_listed(struct gw_child *k);

/* --- forwarded_call_ask.c ------------------------------------------------ */

/* Callbacks of struct mo_upstream_cb; ctx: the slot. */
void mo_forward_ask(void *ctx, struct mo_child *c, struct mo_ask *a);
void mo_forward_ask_gone(void *ctx, struct mo_ask *a);
void mo_forward_task_input(void *ctx, struct mo_task *t,
                           struct mo_json requests);
/* Sends all open questions to the client, which is WAITING. */
void mo_forward_send_questions(struct forwarded_call *f);
/* HAS_TASK: writes the questions as members of inputRequests. */
void mo_forward_show_questions(struct forwarded_call *f, struct mo_ep_call *c,
                               struct mo_jw *w);
void mo_forward_answer_questions(struct forwarded_call *f,
                                 struct mo_json responses);
/* Gives the call an id under which g->parked finds it. */
int mo_forward_park(struct forwarded_call *f);
void mo_forward_drop_questions(struct forwarded_call *f, const char *why);
/* Asks the client a question of our own; params: JSON. */
int mo_forward_question(struct forwarded_call *f, const char *method,
                        struct mo_span params);

/* If the call failed because the client lacks a capability, answers c with the
 * error for that. False: c is still to be answered. */
bool mo_forward_answer_lacking(struct forwarded_call *f, struct mo_ep_call *c,
                               bool failed);

/* --- forwarded_call_owner.c ---------------------------------------------- */

/* The client of the call is asked to open a URL. */
void mo_elicitation_begin(const struct forwarded_call *f,
                          struct mo_json params);
/* The server says that the person has finished there. */
void mo_elicitation_done(struct gw_child *k, struct mo_json params);
/* Forgets those of one client; peer 0: of the whole endpoint. */
void mo_elicitation_forget(struct mo_gateway *g, const struct mo_endpoint *ep,
                           uint64_t peer);

/* --- connect_ask.c: servers with credentials of their users -------------- */

/* True if the caller of c may use the server now. */
bool mo_connect_has(struct mo_gateway *g, const struct mo_ep_call *c,
                    const struct server_slot *s);
/* The same; else the person is asked to connect, or told where to. False: c is
 * answered, or handled again later. */
bool mo_connect_ready(struct mo_gateway *g, struct mo_ep_call *c,
                      const struct server_slot *s);
/* Somebody has connected: calls that waited go on. */
void mo_connect_check(struct mo_gateway *g);
/* Ends the waiting calls of a view, or all (v NULL). */
void mo_connect_end(struct mo_gateway *g, const struct mo_gw_view *v,
                    const char *why);

/* --- forwarded_call_task.c ----------------------------------------------- */

/* Gives a modern client with tasks a task of its own for a legacy server's
 * task. True: it has one, and the call is HAS_TASK. task: the server's. */
bool mo_forward_task_begin(struct forwarded_call *f, struct mo_json task);
/* A question came, or the call ended. */
void mo_forward_task_changed(struct forwarded_call *f);
void mo_forward_task_free(struct forwarded_call *f);
/* Answers a tasks/... method; false: it names none of these tasks. */
bool mo_forward_task_method(struct mo_gateway *g, struct mo_ep_call *c);
/* Removes the legacy server's task id from the result's _meta. out stays empty
 * if there is none. */
int mo_forward_strip_task_meta(struct mo_json result, struct mo_buf *out);

/* --- forwarded_call.c ---------------------------------------------------- */

/* Cancels the call at its server; nobody waits for it. */
void mo_forward_cancel(struct forwarded_call *f, const char *why);
/* Stops or restarts the clock of the call's timeout. */
void mo_forward_hold(struct forwarded_call *f, bool on);
void mo_forward_attach(struct forwarded_call *f, struct mo_ep_call *c);
/* The server was replaced, or the view changed, and nothing was sent: handles
 * the request again as if it had just arrived. f is freed. */
void mo_forward_restart(struct forwarded_call *f);
/* True if that server, a modern one over HTTP, gets headers that repeat
 * arguments. conn may be NULL. */
bool mo_forward_has_headers(const struct mo_conn *conn);
/* Called before f->down is used after a wait. False: the client is not WAITING,
 * and the call has failed. */
bool mo_forward_is_awaited(struct forwarded_call *f);
/* Sends it to its child, which is ready. */
void mo_forward_resend(struct forwarded_call *f);
/* Sends an approved call (call_approval.c). */
void mo_forward_go(struct forwarded_call *f);
/* Releases its child and leaves its slot. */
void mo_forward_leave_server(struct forwarded_call *f);
void mo_forward_free(struct forwarded_call *f);
/* Moves it to that server, or to another child of its own one, and requests a
 * child there. */
void mo_forward_move(struct forwarded_call *f, struct server_slot *to);

/* --- forwarded_call_end.c: f may be freed by any of these ---------------- */

/* The call to the server has ended. */
void mo_forward_done(void *ctx, const struct mo_reply *r);
/* Ends it with an error of ours; sent: the server may have run it. */
void mo_forward_fail(struct forwarded_call *f, const char *why, bool sent);
/* Ends it without running it; the model gets text as a tool error. */
void mo_forward_refuse(struct forwarded_call *f, struct mo_span text);
/* Ends it without running it, because a limit is reached. */
void mo_forward_over_budget(struct forwarded_call *f,
                            const struct mo_budget_no *no);
/* Replaces the outcome by b, or frees b if it is not used. */
void mo_forward_set_outcome(struct forwarded_call *f, struct mo_buf *b,
                            bool use);
/* Delivers the outcome to the client, which is WAITING. */
void mo_forward_deliver(struct forwarded_call *f);

/* --- call_trace.c: spans of a call; each does nothing if it is not traced --
 */

/* Begins the client span of a request to the server. */
void mo_call_trace_send(struct forwarded_call *f, const struct call_target *t,
                        struct mo_call_opts *o);
void mo_call_trace_done(struct forwarded_call *f, const struct mo_reply *r);
void mo_call_trace_free(struct forwarded_call *f);
/* The child that was requested is there, or is not (why). */
void mo_call_trace_child(struct forwarded_call *f, const struct mo_err *why);
/* A person has decided about a call that was held since then. */
void mo_call_trace_approval(struct forwarded_call *f, uint64_t since, bool yes,
                            const char *by);
/* The target was found, or was not (rc), since then. */
void mo_call_trace_route(const struct mo_ep_call *c, uint64_t since,
                         const struct call_target *t, int rc);

/* --- failover.c: retries a failed call, or moves it to a fallback server ---
 */

void mo_failover_fini(struct failover *d);
/* Call after a failure. True: the call is being tried again. */
bool mo_failover_retry(struct forwarded_call *f, enum failover_how how,
                       const struct mo_err *why);
/* The current target. 0; MO_EBUSY: the call was moved and requests a child
 * again; MO_ENOTFOUND: the target no longer exists. */
int mo_failover_target(struct forwarded_call *f, struct call_target *t);

/* Call before sending. Returns how long to wait for an answer, in ms. */
uint64_t mo_failover_time_left(struct forwarded_call *f,
                               const struct call_target *t);
/* True if the error occurred before anything was sent. */
bool mo_failover_is_unsent(const struct mo_reply *r);
/* Writes f->route: where the call goes, for _meta of its result; empty if it
 * runs unchanged on the server that the client named. */
int mo_failover_route(struct forwarded_call *f, const struct call_target *t);

#endif
