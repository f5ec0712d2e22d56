/* forwarded_call.h - a call that crosses.
 *
 * A flight takes a client's request (down) to a server (up) and its answer
 * back. It wishes for a child, sends the request with only its name changed,
 * and hands over the result as the bytes it was. Progress and log messages go
 * the same way; a cancelled request is cancelled there.
 *
 * What a server asks meanwhile (sampling, elicitation, roots) becomes questions
 * of the client's request. A client of the old kind is asked while its request
 * stays open (down WAITS); one of the new kind gets the questions as the answer
 * and comes back (down AWAY): the call up stays open and is held under a random
 * id, which travels sealed in the client's requestState. When the client comes
 * back the flight goes on; one that does not is given up after GW_AWAY_MS.
 *
 *   down:  HELD <-> WAITS     by the question, by the answer
 *          HELD  -> AWAY -> HELD
 *          HELD  -> KEPT      the client has a task, and asks
 * (forwarded_call_task.c) any   -> GONE      nobody waits for an answer
 *
 * Whose a question or log message is: the task it names, or the call it came
 * with, if the connection can say. Else, of a child that serves one session:
 * that session's newest
 * flight. Of a shared one: if every flight on it is of one connection or
 * session (or there is only one), the newest; else nobody can say, and it is
 * refused or dropped.
 *
 * Invariants
 *  1. A flight is in g->flights; in slot->flights while slot is set, which is
 *     until its call has ended.
 *  2. down is ours in HELD, the endpoint's in WAITS, else NULL.
 *  3. It is in g->parked from its first question on, or since it is KEPT.
 *  4. Every question is answered or refused before the flight is freed. */
#ifndef MO_GATEWAY_CALL_FORWARDED_CALL_H
#define MO_GATEWAY_CALL_FORWARDED_CALL_H

#include "base/rand.h"
#include "gateway/call/failover.h"
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

struct question {
    struct mo_list node;
    struct forwarded_call *f;
    unsigned no;            /* its key is aNO */
    bool asked;             /* the client has it */
    bool own;               /* ours, about the call itself (judge.h); or: */
    struct mo_ask *ask;     /* or: */
    struct mo_ep_ask *push; /* it belongs to no call: f is NULL */
    struct mo_buf key; /* of a task's input, as written, then its request */
    size_t key_len;
};

struct forwarded_call {
    struct mo_list node, slot_node;
    struct mo_gateway *g;
    struct server_slot *slot;
    enum client_state client;
    struct mo_ep_call *down;
    struct mo_endpoint *ep;
    uint64_t peer;
    char who[MO_GW_WHO_MAX];
    /* up */
    struct mo_child_request child_request;
    bool requesting;
    bool awaits_tools,
        retried; /* it waits for its server's list of tools, to be sent
                  * once more with the headers that it wants now */
    struct failover failover;
    struct mo_child *child;
    struct mo_call *call;
    struct mo_task *task;
    uint64_t number;        /* of the call */
    bool as_task;           /* legacy: it was asked for a promise */
    size_t result_max;      /* bytes of its result; 0: all */
    bool has_output_schema; /* a schema, of its structured content */
    bool by_execute;
    struct mo_latency_row *latency;
    uint64_t sent_ns;
    /* questions */
    char id[MO_TOKEN_LEN(FORWARD_TOKEN) + 1];
    struct mo_list questions;
    unsigned nquestions;
    struct mo_later later;  /* ask them, or hand over the outcome */
    struct mo_timer gather; /* more questions may follow the first */
    struct mo_timer expiry;
    /* an answer that came while the client was not there */
    bool ended, is_error;
    struct mo_buf outcome;
    struct mo_buf progress; /* the last one that it missed */
    struct mo_buf route;    /* where it went, if that is to be said */
    struct mo_buf lacked;   /* a question that the client cannot be asked */
    struct kept_task *kept_task; /* KEPT: else NULL */
    struct judged *judged;       /* its case (judge.h), or NULL */
    struct mo_buf edited;        /* arguments of a person's, or empty */
};

/* A request whose target is known. */
void mo_forward_start(struct mo_gateway *g, struct mo_ep_call *c,
                      const struct call_target *t);
/* One that has a state: a client has come back. */
void mo_forward_resume(struct mo_gateway *g, struct mo_ep_call *c);
void mo_forward_abandoned(void *ctx, struct mo_span state);
/* At the end of the gateway. */
void mo_forward_drop_all(struct mo_gateway *g);

/* Whose it is; NULL: nobody can say. *sure (may be NULL): that very call's, not
 * just one of the same client's. */
struct forwarded_call *mo_forward_find_owner(struct server_slot *s,
                                             const struct mo_child *c,
                                             uint64_t number, bool *sure);
void mo_forward_log(struct gw_child *k, uint64_t stream_of,
                    struct mo_json params);
/* By the task that its _meta names; NULL: it names none of ours. */
struct forwarded_call *mo_forward_find_task_owner(struct server_slot *s,
                                                  const struct mo_child *c,
                                                  struct mo_json params);
/* The connection or session that a child works for alone; 0: for several, or
 * for a caller without any. */
uint64_t mo_forward_session_of(const struct mo_gateway *g,
                               const struct mo_child *c);
/* The list of tools has been read, or cannot be. */
void mo_forward_tools_listed(struct gw_child *k);

/* --- forwarded_call_ask.c
 * -------------------------------------------------------- */

void mo_forward_ask(struct server_slot *s, struct mo_child *c,
                    struct mo_ask *a);
void mo_forward_ask_gone(struct mo_ask *a);
void mo_forward_task_input(void *ctx, struct mo_task *t,
                           struct mo_json requests);
/* Put all open questions to the client that is here. */
void mo_forward_send_questions(struct forwarded_call *f);
/* KEPT: as members of inputRequests, for a client that asks for them now. */
void mo_forward_show_questions(struct forwarded_call *f, struct mo_ep_call *c,
                               struct mo_jw *w);
void mo_forward_answer_questions(struct forwarded_call *f,
                                 struct mo_json responses);
int mo_forward_park(
    struct forwarded_call *f); /* it can be found under its id */
void mo_forward_drop_questions(struct forwarded_call *f, const char *why);
/* Ask the client something of our own; params: JSON. */
int mo_forward_question(struct forwarded_call *f, const char *method,
                        struct mo_span params);

/* The client hears what it lacks: the call failed since it could not be asked.
 * false: that was not so, and c is still to be answered. */
bool mo_forward_answer_lacking(struct forwarded_call *f, struct mo_ep_call *c,
                               bool failed);

/* --- forwarded_call_task.c
 * ------------------------------------------------------- */

/* A legacy server's task for a modern client that speaks of tasks: true: it
 * has been given one, and the flight is KEPT. task: as the server gave it. */
bool mo_forward_task_begin(struct forwarded_call *f, struct mo_json task);
/* Something has changed: questions, or the outcome is there. */
void mo_forward_task_changed(struct forwarded_call *f);
void mo_forward_task_free(struct forwarded_call *f);
/* A method of tasks; false: it is about none that is kept here. */
bool mo_forward_task_method(struct mo_gateway *g, struct mo_ep_call *c);
/* The result without what a legacy server says there of its own task. */
int mo_forward_strip_task_meta(struct mo_json result, struct mo_buf *out);

/* --- forwarded_call.c, for forwarded_call_ask.c
 * ------------------------------------------ */

/* Nobody waits: end it up there. */
void mo_forward_cancel(struct forwarded_call *f, const char *why);
void mo_forward_hold(struct forwarded_call *f, bool on);
void mo_forward_attach(struct forwarded_call *f, struct mo_ep_call *c);
/* For judge.c: it may go to its server. */
void mo_forward_go(struct forwarded_call *f);

/* --- forwarded_call.c, for forwarded_call_end.c
 * ------------------------------------------ */

void mo_forward_leave_server(
    struct forwarded_call *f); /* its child and its server */
void mo_forward_free(struct forwarded_call *f);

/* --- forwarded_call_end.c: f may be gone after any of these
 * ---------------------- */

void mo_forward_done(void *ctx, const struct mo_reply *r); /* its call's end */
/* An error of ours; sent: the call may have been done. */
void mo_forward_fail(struct forwarded_call *f, const char *why, bool sent);
/* It may not run, and this is what the model gets instead. */
void mo_forward_refuse(struct forwarded_call *f, struct mo_span text);
void mo_forward_deliver(
    struct forwarded_call *f); /* the outcome, to who is here */

/* --- forwarded_call.c, for failover.c
 * ---------------------------------------------- */

/* To that server, or to another child of its own; it wishes again. */
void mo_forward_move(struct forwarded_call *f, struct server_slot *to);

#endif
