/* ep_priv.h - structs and functions shared by the files of the endpoint.
 *
 * A *way* is where the messages about one request go (a line on stdout, an HTTP
 * answer); transports embed it. A *session* is a legacy connection: the result
 * of initialize, the running calls, the subscriptions. A *call* is a request
 * that the handler works on.
 *
 * Invariants
 *  1. Every call is in ep->calls, and in sess->calls if it has a session.
 *  2. way->answer or way->drop is called once per request; after it neither
 *     side uses the way for that request again. c->way is NULL from then on,
 *     and when the transport lost the way (mo_ep_call_lost).
 *  3. A call is freed when it is answered or dropped and the handler is not
 *     inside it: running is counted. A canceled call waits for its answer.
 *  4. CALL_WAITING: the endpoint owns it (questions are out), else the
 *     handler. */
#ifndef MO_MCP_SERVER_EP_PRIV_H
#define MO_MCP_SERVER_EP_PRIV_H

#include "base/map.h"
#include "codec/http/http1.h"
#include "codec/rpc.h"
#include "mcp/server/endpoint.h"
#include "mcp/server/ep_http.h"
#include "mcp/server/seal.h"

#define EP_SCRATCH_KEEP ((size_t)64 * 1024)   /* a bigger buffer is freed */
#define EP_CALL_EXTRA   ((size_t)1024 * 1024) /* of a call, beyond its text */
#define EP_INPUTS_MAX   32

struct mo_ep_way {
    /* Send a message that is not the answer; may be lost. */
    void (*note)(struct mo_ep_way *w, struct mo_span msg);
    void (*answer)(struct mo_ep_way *w, int status, struct mo_span msg);
    void (*drop)(struct mo_ep_way *w); /* no answer will follow */
    void (*pause)(struct mo_ep_way *w);
    bool (*open)(const struct mo_ep_way *w); /* NULL: always */
    /* Give the request to another process. True: it answers, and the way is
     * gone. May be NULL. */
    bool (*pass)(struct mo_ep_way *w, const struct mo_ep_away *to);
    struct mo_ep_call *call; /* the last call; for ways of a single request */
};

struct mo_ep_sess {
    struct mo_list node; /* in ep->sessions */
    struct mo_endpoint *ep;
    struct mo_ep_way *push;      /* way of unrequested messages; may be NULL */
    enum mo_mcp_version version; /* MO_MCP_UNKNOWN before initialize */
    bool ready;                  /* notifications/initialized came */
    bool missed[3]; /* by enum mo_ep_what: changed while there was no push */
    enum mo_mcp_level level;
    bool asked_level;    /* counted in ep->levels */
    uint64_t peer;       /* random, unique, never 0 */
    char *caps, *client; /* JSON text, owned */
    const char *id;      /* HTTP's session id, or NULL */
    struct mo_span caller;
    struct mo_span inside; /* set by link_inside.c; else empty */
    struct mo_span person; /* likewise; of others it is the caller */
    struct mo_list calls;
    unsigned ncalls;
    struct mo_map uris; /* subscriptions: uri -> &sess */
    uint64_t next_ask;
    struct mo_list tasks; /* used by ep_task.c */
    unsigned ntasks;
    struct mo_list asks; /* used by ep_push.c */
    unsigned nasks;
};

struct ep_task;

struct mo_ep_filter { /* the filter of a listen */
    bool what[3];     /* by enum mo_ep_what */
    struct mo_map uris, tasks;
    bool counted; /* the uris, in ep->watched */
};

enum call_state { CALL_RUNNING, CALL_WAITING, CALL_LISTENING, CALL_DONE };

struct ep_input { /* an answer of the client */
    struct mo_list node;
    struct mo_span key;
    struct mo_json value;
    bool refused; /* an error object of the client */
};

struct ep_need { /* a question to the client */
    struct mo_list node;
    struct mo_span key, method, params;
    uint64_t ask; /* legacy: id of our request; 0: not sent */
    bool answered;
};

struct ep_parts { /* members of params that the endpoint reads */
    struct mo_json meta, task;
    struct mo_json key; /* the requested object, by the method's parameter */
};

struct call { /* a call; pub is the handler's view */
    struct mo_ep_call pub;
    struct ep_parts parts;
    struct mo_endpoint *ep;
    struct mo_list node, snode;
    struct mo_ep_sess *sess;
    struct mo_ep_way *way;
    const struct ep_method *m;
    enum call_state state;
    unsigned running, rounds;
    bool gone; /* canceled */
    bool oom;  /* a need or state could not be stored */
    struct mo_arena arena;
    struct mo_span text; /* the whole request */
    struct mo_json id, token;
    /* Modern: of its names (ep_away.c); NULL: they are of this process. */
    const struct mo_ep_home *home;
    const char *view;
    double progress;
    bool progressed;
    enum mo_mcp_level level;
    struct mo_list inputs, needs;
    unsigned ninputs;
    struct mo_span state_bytes;
    struct mo_timer timer; /* waiting for answers */
    struct mo_later tell;  /* canceled */
    struct mo_ep_filter *filter;
    struct ep_task *task;  /* the call runs as this task */
    struct mo_list wnode;  /* it waits for the result of a task */
    struct mo_list within; /* calls on its behalf (ep_within.c) */
};

struct mo_endpoint {
    struct mo_loop *loop;
    struct mo_endpoint_opts o;
    struct mo_list calls, sessions;
    unsigned ncalls, nlistens, nsessions;
    size_t replay, task_bytes;
    uint64_t next_task;
    struct mo_buf scratch; /* buffer for one message */
    struct mo_seal seal;
    struct mo_map watched;              /* uri -> number of subscribers */
    unsigned levels[MO_MCP_LEVELS + 1]; /* peers by level */
    enum mo_mcp_level level;            /* last value passed to opts.level */
};

static inline struct call *call_of(const struct mo_ep_call *c)
{
    return mo_container_of(c, struct call, pub);
}

static inline bool call_is_tool(const struct call *c)
{
    return mo_span_is(c->pub.method, "tools/call");
}

/* --- endpoint.c ---------------------------------------------------------- */

/* M_UNNAMED: Mcp-Name may be absent over HTTP. */
enum { M_CACHE = 1, M_MRTR = 2, M_MODERN = 4, M_UNNAMED = 8 };

struct ep_method {
    const char *name;
    unsigned cap;    /* required MO_EP_* capability */
    const char *key; /* the parameter that names the object; NULL: none */
    unsigned flags;
};

const struct ep_method *mo_ep_method(const struct mo_endpoint *ep,
                                     struct mo_json method, bool modern);
struct mo_buf *mo_ep_scratch(struct mo_endpoint *ep);
/* The message was sent: free a buffer that has grown. */
static inline void mo_ep_scratch_done(struct mo_endpoint *ep)
{
    mo_buf_shrink(&ep->scratch, EP_SCRATCH_KEEP);
}
void mo_ep_put_info(const struct mo_endpoint *ep, struct mo_jw *w);
void mo_ep_put_caps(const struct mo_endpoint *ep, struct mo_jw *w,
                    enum mo_mcp_version v);
/* Answer with the scratch buffer. */
void mo_ep_answer_scratch(struct mo_endpoint *ep, struct mo_ep_way *w,
                          int status);
/* Send it as a message that is not the answer. */
void mo_ep_note_scratch(struct mo_endpoint *ep, struct mo_ep_way *w);
/* Answer a request that has no call. id none: null. */
void mo_ep_refuse(struct mo_endpoint *ep, struct mo_ep_way *w, int status,
                  struct mo_json id, int code, const char *msg);
enum mo_mcp_level mo_ep_level(struct mo_json v); /* MO_MCP_LEVELS: none */
const char *mo_ep_level_text(enum mo_mcp_level lv);

/* The legacy session with this number, if its handshake is done; else NULL. */
struct mo_ep_sess *mo_ep_find_peer(struct mo_endpoint *ep, uint64_t peer);
/* Tells the changes of lists that came while there was no push. */
void mo_ep_tell_missed(struct mo_ep_sess *s);
/* Take back a request of ours: notifications/cancelled. */
void mo_ep_send_cancelled(struct mo_endpoint *ep, struct mo_ep_way *way,
                          uint64_t id);

/* --- ep_note.c ----------------------------------------------------------- */

/* Begin a notification in the scratch buffer, up to the members of its params.
 */
struct mo_jw mo_ep_begin_note(struct mo_endpoint *ep, const char *method);
/* Write _meta, which names a listen. */
void mo_ep_put_sub(struct mo_jw *w, struct mo_json id);

/* --- subscriptions and log levels of all clients, endpoint.c ------------- */

/* Add a subscriber of the resource; 0, MO_ENOMEM, MO_EBUSY. */
int mo_ep_watch(struct mo_endpoint *ep, struct mo_span uri);
void mo_ep_unwatch(struct mo_endpoint *ep, struct mo_span uri);
int mo_ep_watch_all(struct mo_endpoint *ep, const struct mo_map *uris);
void mo_ep_unwatch_all(struct mo_endpoint *ep, const struct mo_map *uris);
/* Start or stop watching the tasks of a listen. */
void mo_ep_watch_tasks(struct call *c, bool on);
/* Count a peer that set this level, or no longer has it. */
void mo_ep_level_wanted(struct mo_endpoint *ep, enum mo_mcp_level lv, bool on);

/* --- classification of messages, endpoint.c ------------------------------ */

/* True if the message carries the modern envelope. */
bool mo_ep_is_modern(const struct mo_rpc *m);

struct mo_ep_from { /* the origin of a message */
    struct mo_ep_way *way;
    struct mo_span caller, grant;
    const struct mo_http_head *head; /* NULL: not HTTP */
    uint64_t request;                /* number of the HTTP request, or 0 */
    struct mo_ep_sess *sess; /* modern: used for cancelling only (stdio) */
    const struct mo_ep_home *home; /* modern HTTP: see struct call */
    const char *view;
    const struct call *outer; /* NULL: a client's; else see ep_within.c */
};

/* A request of a session that the endpoint handles itself. Returns NULL, or
 * what is wrong with its params: then it was not answered. */
typedef const char *ep_plumbing_fn(struct mo_ep_sess *s,
                                   const struct mo_ep_from *from,
                                   const struct mo_rpc *m);

/* --- ep_legacy.c --------------------------------------------------------- */

void mo_ep_sess_init(struct mo_ep_sess *s, struct mo_endpoint *ep);
void mo_ep_sess_fini(struct mo_ep_sess *s); /* cancels its calls */
/* As if it had been initialized: with the outcome of an earlier handshake. */
int mo_ep_sess_revive(struct mo_ep_sess *s, enum mo_mcp_version version,
                      struct mo_span caps, struct mo_span client);
/* Handle a request, notification, result or error of a session. */
void mo_ep_legacy(struct mo_ep_sess *s, const struct mo_ep_from *from,
                  const struct mo_rpc *m);
void mo_ep_legacy_result(struct call *c, struct mo_json result);

/* --- ep_ask.c ------------------------------------------------------------ */

enum mo_ep_waiting mo_ep_legacy_wait(struct call *c);
void mo_ep_legacy_unask(struct call *c);
/* Send the questions that were not sent yet. */
void mo_ep_legacy_ask(struct call *c);
/* The capabilities that the call's questions need and the client did not
 * declare; 0: none. As an object: {"requiredCapabilities":{...}}. */
unsigned mo_ep_missing(const struct call *c);
void mo_ep_put_missing(const struct call *c, unsigned missing,
                       struct mo_buf *b);
/* True if its client accepts such a question. */
bool mo_ep_sess_takes(const struct mo_ep_sess *s, const char *method,
                      struct mo_json params);
/* Handle a result or error that may answer a question. */
void mo_ep_legacy_reply(struct mo_ep_sess *s, const struct mo_rpc *m);

/* --- ep_push.c: questions that belong to no call ------------------------- */

void mo_ep_push_reply(struct mo_ep_sess *s, uint64_t id,
                      const struct mo_rpc *m);
void mo_ep_push_end(struct mo_ep_sess *s); /* end them without answers */
/* A client connected to the session's push way. */
void mo_ep_push_open(struct mo_ep_sess *s);

/* --- ep_task.c: 2025-11-25 ----------------------------------------------- */

void mo_ep_task_begin(struct call *c); /* used instead of mo_ep_call_run() */
void mo_ep_tasks_end(struct mo_ep_sess *s);
/* The task's call has questions, or they were answered. */
void mo_ep_task_asks(struct ep_task *t, bool on);
/* Write the member of _meta that names the task of a message. */
void mo_ep_task_meta(const struct ep_task *t, struct mo_jw *w);
/* Its methods. */
ep_plumbing_fn mo_ep_task_get, mo_ep_task_result, mo_ep_task_list,
    mo_ep_task_cancel;

/* --- ep_modern.c --------------------------------------------------------- */

void mo_ep_modern(struct mo_endpoint *ep, const struct mo_ep_from *from,
                  const struct mo_rpc *m);
void mo_ep_modern_result(struct call *c, struct mo_json result);

/* Write the members of obj except those: EP_KEYS("_meta"). */
void mo_ep_put_members(struct mo_jw *w, struct mo_json obj,
                       const char *const *without);
#define EP_KEYS(...) ((const char *const[]){__VA_ARGS__, NULL})
/* Begin a result in the scratch buffer, up to its members; end it with _meta.
 */
struct mo_jw mo_ep_begin_result(struct mo_endpoint *ep, struct mo_json id);
void mo_ep_end_result(struct mo_endpoint *ep, struct mo_jw *w,
                      struct mo_json meta);

/* --- ep_listen.c --------------------------------------------------------- */

void mo_ep_listen(struct call *c);
/* The endpoint ends: a listen gets its answer, other calls are canceled. */
void mo_ep_listen_end(struct call *c, bool on_line);

/* --- ep_rounds.c --------------------------------------------------------- */

enum mo_ep_waiting mo_ep_modern_wait(struct call *c);
/* Read requestState and inputResponses of a request; *bad: the fault, or NULL.
 * False: the request was passed on. */
bool mo_ep_take_answers(struct call *c, const char **bad);

/* --- ep_away.c ----------------------------------------------------------- */

/* Write the member taskId as the client knows it. id: the handler's; none:
 * nothing is written. */
void mo_ep_put_task_id(const struct call *c, struct mo_jw *w,
                       struct mo_json id);
/* Replace the client's id of a task by the handler's, which may point into
 * plain. False: another process has the task. */
bool mo_ep_task_is_here(const struct call *c, struct mo_span *id,
                        struct mo_buf *plain);
/* The same for the request's name. True: the request was passed on. */
bool mo_ep_task_is_away(struct call *c);
/* True: all of these tasks are of one other process, and the listen was passed
 * there. */
bool mo_ep_tasks_are_away(struct call *c, struct mo_json ids);
/* Append the part of a requestState that says where its call is. */
int mo_ep_put_state_home(const struct call *c, struct mo_buf *out);
/* Remove it. True: the request was passed on. */
bool mo_ep_state_is_away(struct call *c, struct mo_span *text);

/* --- ep_within.c --------------------------------------------------------- */

/* The outer call is being freed. */
void mo_ep_within_outer_gone(struct call *outer);
/* The call on whose behalf c was made; NULL: it has ended. */
struct call *mo_ep_within_outer(const struct call *c);

/* --- ep_down.c ----------------------------------------------------------- */

/* Write a result for a peer of that legacy revision. */
int mo_ep_downgrade(const struct mo_endpoint *ep, struct mo_buf *b,
                    enum mo_mcp_version v, struct mo_json result);

/* --- ep_call.c ----------------------------------------------------------- */

/* NULL: out of memory; the request was refused. */
struct call *mo_ep_call_new(struct mo_endpoint *ep,
                            const struct mo_ep_from *from,
                            const struct mo_rpc *m, const struct ep_method *em);
void mo_ep_call_run(struct call *c);
/* Check the method's own parameters. Returns NULL, or the fault. */
const char *mo_ep_call_check(struct call *c);
void mo_ep_call_end(struct call *c); /* answered: free it when possible */
/* The client no longer waits: notify the handler, end calls that the endpoint
 * owns. */
void mo_ep_call_cancel(struct call *c);
/* The transport lost the way; cancels a modern call. */
void mo_ep_call_lost(struct mo_ep_call *c);
/* Give the request to another process; gone: the error if that has ended. True:
 * the call is freed. */
bool mo_ep_call_pass(struct call *c, const char *instance, const char *gone);
struct call *mo_ep_call_find(struct mo_list *calls, struct mo_json id);
int mo_ep_call_add_input(struct call *c, struct mo_span key, struct mo_json v,
                         bool refused);
/* The call stops waiting: notify the handler that it will not come back. */
void mo_ep_call_abandon(struct call *c);
/* Answer with the scratch buffer; ends the call. */
void mo_ep_call_answer(struct call *c, int status);
void mo_ep_call_refuse(struct call *c, int status, int code, const char *msg);
void mo_ep_call_refuse_data(struct call *c, int status, int code,
                            const char *msg, struct mo_span data);
/* True: the client did not declare the tasks extension; the call was refused.
 */
bool mo_ep_call_lacks_tasks(struct call *c);
/* The endpoint ends: free the call, whoever holds it. */
void mo_ep_call_bury(struct call *c);

#endif
