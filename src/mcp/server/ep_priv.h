/* ep_priv.h - what the files of the endpoint share.
 *
 * Three things meet here. A *way* is where the messages about one request go
 * (a line on stdout, an HTTP answer); transports embed it. A *session* is a
 * legacy connection: what initialize settled, the calls under way, what is
 * subscribed. A *call* is a request in the hands of the handler.
 *
 * Invariants
 *  1. Every call is in ep->calls, and in sess->calls if it has a session.
 *  2. way->answer or way->drop is called once per request; after it neither
 *     side uses the way for that request again. c->way is NULL from then on,
 *     and when the transport lost the way (mo_ep_call_lost).
 *  3. A call is freed when it is answered or dropped and the handler is not
 *     inside it: running is counted. A canceled call waits for its answer.
 *  4. CALL_WAITING: the endpoint owns it (asks are out), else the handler. */
#ifndef MO_MCP_SERVER_EP_PRIV_H
#define MO_MCP_SERVER_EP_PRIV_H

#include "base/map.h"
#include "codec/http/http1.h"
#include "codec/rpc.h"
#include "mcp/server/endpoint.h"
#include "mcp/server/seal.h"

#define EP_SCRATCH_KEEP ((size_t)64 * 1024)   /* more is given back */
#define EP_CALL_EXTRA   ((size_t)1024 * 1024) /* a call's own, over its text */
#define EP_INPUTS_MAX   32

struct mo_ep_way {
    /* A message that is not the answer; lost ones are lost. */
    void (*note)(struct mo_ep_way *w, struct mo_span msg);
    void (*answer)(struct mo_ep_way *w, int status, struct mo_span msg);
    void (*drop)(struct mo_ep_way *w); /* there will be no answer */
    void (*pause)(struct mo_ep_way *w);
    bool (*open)(const struct mo_ep_way *w); /* somebody hears; NULL: always */
    struct mo_ep_call *call; /* the last one; for ways of a single request */
};

struct mo_ep_sess {
    struct mo_list node; /* in ep->sessions */
    struct mo_endpoint *ep;
    struct mo_ep_way *push;      /* what no request asked for; may be NULL */
    enum mo_mcp_version version; /* MO_MCP_UNKNOWN before initialize */
    bool ready;                  /* notifications/initialized came */
    enum mo_mcp_level level;
    bool asked_level;    /* it is counted in ep->levels */
    uint64_t peer;       /* random: never 0, never another's */
    char *caps, *client; /* JSON text, owned */
    const char *id;      /* HTTP's session id, or NULL */
    struct mo_span caller;
    struct mo_span inside; /* mcp/server/link_inside.c's; else empty */
    struct mo_list calls;
    unsigned ncalls;
    struct mo_map uris; /* subscribed: uri -> &sess */
    uint64_t next_ask;
    struct mo_list tasks; /* ep_task.c's */
    unsigned ntasks;
    struct mo_list asks; /* ep_push.c's */
    unsigned nasks;
};

struct ep_task;

struct mo_ep_filter { /* what a listen wants */
    bool what[3];     /* by enum mo_ep_what */
    struct mo_map uris, tasks;
    bool counted; /* the uris, in ep->watched */
};

enum call_state { CALL_RUNNING, CALL_WAITING, CALL_LISTENING, CALL_DONE };

struct ep_input { /* an answer of the client's */
    struct mo_list node;
    struct mo_span key;
    struct mo_json value;
    bool refused; /* it is the client's error object */
};

struct ep_need { /* a question to it */
    struct mo_list node;
    struct mo_span key, method, params;
    uint64_t ask; /* legacy: our request's number; 0: not asked */
    bool answered;
};

struct ep_parts { /* members of params that we look at ourselves */
    struct mo_json meta, task;
    struct mo_json key; /* of the thing asked for, as the method says */
};

struct call { /* what is behind a struct mo_ep_call */
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
    bool oom;  /* a need or state could not be kept */
    struct mo_arena arena;
    struct mo_json id, token;
    double progress;
    bool progressed;
    enum mo_mcp_level level;
    struct mo_list inputs, needs;
    unsigned ninputs;
    struct mo_span state_bytes;
    struct mo_timer timer; /* waiting for answers */
    struct mo_later tell;  /* canceled */
    struct mo_ep_filter *filter;
    struct ep_task *task; /* it is that task's call */
    struct mo_list wnode; /* it waits for a task's outcome */
};

struct mo_endpoint {
    struct mo_loop *loop;
    struct mo_endpoint_opts o;
    struct mo_list calls, sessions;
    unsigned ncalls, nlistens, nsessions;
    size_t replay, task_bytes;
    uint64_t next_task;
    struct mo_buf scratch; /* one message while it is written */
    struct mo_seal seal;
    struct mo_map watched;              /* uri -> how many want it */
    unsigned levels[MO_MCP_LEVELS + 1]; /* who asked for each; the last: 0 */
    enum mo_mcp_level level;            /* told to opts.level */
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

enum { M_CACHE = 1, M_MRTR = 2, M_MODERN = 4 };

struct ep_method {
    const char *name;
    unsigned cap;    /* needed, MO_EP_* */
    const char *key; /* the parameter that names the thing; NULL: none */
    unsigned flags;
};

const struct ep_method *mo_ep_method(const struct mo_endpoint *ep,
                                     struct mo_json method, bool modern);
struct mo_buf *mo_ep_scratch(struct mo_endpoint *ep);
void mo_ep_scratch_done(struct mo_endpoint *ep);
void mo_ep_put_info(const struct mo_endpoint *ep, struct mo_jw *w);
void mo_ep_put_caps(const struct mo_endpoint *ep, struct mo_jw *w,
                    enum mo_mcp_version v);
/* What is in the scratch buffer is the answer; 200. */
void mo_ep_answer_scratch(struct mo_endpoint *ep, struct mo_ep_way *w);
/* Answer without a call. id none: null. */
void mo_ep_refuse(struct mo_endpoint *ep, struct mo_ep_way *w, int status,
                  struct mo_json id, int code, const char *msg,
                  struct mo_span data);
enum mo_mcp_level mo_ep_level(struct mo_json v); /* MO_MCP_LEVELS: none */
const char *mo_ep_level_text(enum mo_mcp_level lv);

/* --- ep_watch.c: what is wanted of the handler as a whole ----------------- */

/* One more wants that resource; 0, MO_ENOMEM, MO_EBUSY. */
int mo_ep_watch(struct mo_endpoint *ep, struct mo_span uri);
void mo_ep_unwatch(struct mo_endpoint *ep, struct mo_span uri);
int mo_ep_watch_all(struct mo_endpoint *ep, const struct mo_map *uris);
void mo_ep_unwatch_all(struct mo_endpoint *ep, const struct mo_map *uris);
/* The tasks that a listen is about. */
void mo_ep_watch_tasks(struct call *c, bool on);
/* Somebody asked for that level, or does no longer. */
void mo_ep_level_wanted(struct mo_endpoint *ep, enum mo_mcp_level lv, bool on);

/* --- where a message belongs, endpoint.c --------------------------------- */

enum mo_ep_era { EP_LEGACY, EP_MODERN };

/* By the message alone: does it carry the modern envelope? */
enum mo_ep_era mo_ep_classify(const struct mo_rpc *m);

struct mo_ep_from { /* how a message came */
    struct mo_ep_way *way;
    struct mo_span caller;
    const struct mo_http_head *head; /* NULL: not HTTP */
    struct mo_ep_sess *sess;         /* modern: only for cancelling (stdio) */
};

/* --- ep_legacy.c --------------------------------------------------------- */

void mo_ep_sess_init(struct mo_ep_sess *s, struct mo_endpoint *ep);
void mo_ep_sess_fini(struct mo_ep_sess *s); /* cancels its calls */
/* A request, notification, result or error on a session. */
void mo_ep_legacy(struct mo_ep_sess *s, const struct mo_ep_from *from,
                  const struct mo_rpc *m);
void mo_ep_legacy_result(struct call *c, struct mo_json result);

/* --- ep_ask.c ------------------------------------------------------------ */

enum mo_ep_waiting mo_ep_legacy_wait(struct call *c);
void mo_ep_legacy_unask(struct call *c);
/* Ask what has not been asked yet. */
void mo_ep_legacy_ask(struct call *c);
/* What the call's questions need and the client did not declare; 0: nothing.
 * As an object: {"requiredCapabilities":{...}}. */
unsigned mo_ep_missing(const struct call *c);
void mo_ep_put_missing(const struct call *c, unsigned missing,
                       struct mo_buf *b);
/* Does its client take such a question? */
bool mo_ep_sess_takes(const struct mo_ep_sess *s, const char *method,
                      struct mo_json params);
/* A result or error that answers us, perhaps. */
void mo_ep_legacy_reply(struct mo_ep_sess *s, const struct mo_rpc *m);

/* --- ep_push.c: questions of no call ---------------------------------------
 */

void mo_ep_push_reply(struct mo_ep_sess *s, uint64_t id,
                      const struct mo_rpc *m);
void mo_ep_push_end(struct mo_ep_sess *s); /* there will be no answers */
/* Somebody is connected where its news go. */
void mo_ep_push_open(struct mo_ep_sess *s);

/* --- ep_task.c: 2025-11-25 ----------------------------------------------- */

void mo_ep_task_begin(struct call *c); /* instead of mo_ep_call_run() */
void mo_ep_tasks_end(struct mo_ep_sess *s);
/* The task's call has questions; they are answered. */
void mo_ep_task_ask(struct ep_task *t);
void mo_ep_task_goes_on(struct ep_task *t);
/* The member of _meta that says which task a message is about. */
void mo_ep_task_meta(const struct ep_task *t, struct mo_jw *w);
void mo_ep_task_get(struct mo_ep_sess *s, const struct mo_ep_from *from,
                    const struct mo_rpc *m);
void mo_ep_task_result(struct mo_ep_sess *s, const struct mo_ep_from *from,
                       const struct mo_rpc *m);
void mo_ep_task_list(struct mo_ep_sess *s, const struct mo_ep_from *from,
                     const struct mo_rpc *m);
void mo_ep_task_cancel(struct mo_ep_sess *s, const struct mo_ep_from *from,
                       const struct mo_rpc *m);

/* --- ep_modern.c --------------------------------------------------------- */

void mo_ep_modern(struct mo_endpoint *ep, const struct mo_ep_from *from,
                  const struct mo_rpc *m);
void mo_ep_modern_result(struct call *c, struct mo_json result);

void mo_ep_put_members(struct mo_jw *w, struct mo_json obj,
                       bool (*skip)(struct mo_json key));
/* A result in the scratch buffer, up to its members; its end with _meta. */
void mo_ep_begin_result(struct mo_endpoint *ep, struct mo_jw *w,
                        struct mo_json id);
void mo_ep_end_result(struct mo_endpoint *ep, struct mo_jw *w,
                      struct mo_json meta);

/* --- ep_listen.c --------------------------------------------------------- */

void mo_ep_listen(struct call *c);
/* We end: a listen is told so, anything else is canceled. */
void mo_ep_listen_end(struct call *c, bool on_line);

#define EP_NEEDS_TASKS                                                         \
    "{\"requiredCapabilities\":{\"extensions\":{\"" MO_MCP_EXT_TASKS "\":{}}}" \
    "}"

/* --- ep_rounds.c --------------------------------------------------------- */

enum mo_ep_waiting mo_ep_modern_wait(struct call *c);
/* requestState and inputResponses of a request; NULL, or what is wrong. */
const char *mo_ep_take_answers(struct call *c);

/* --- ep_header.c --------------------------------------------------------- */

/* The mirrored headers of a modern request; 0, or an error that *why says. */
int mo_ep_headers(const struct mo_http_head *h, const struct mo_rpc *m,
                  const struct ep_method *em, const char **why);
int mo_ep_params(const struct mo_endpoint *ep, const struct mo_http_head *h,
                 const struct call *c, const char **why);

/* --- ep_down.c ----------------------------------------------------------- */

/* A result as a peer of that legacy revision can read it. */
int mo_ep_downgrade(const struct mo_endpoint *ep, struct mo_buf *b,
                    enum mo_mcp_version v, struct mo_json result);

/* --- ep_call.c ----------------------------------------------------------- */

struct call *mo_ep_call_new(struct mo_endpoint *ep,
                            const struct mo_ep_from *from,
                            const struct mo_rpc *m, const struct ep_method *em);
void mo_ep_call_run(struct call *c);
/* The request as text is wrong: the method's own parameters. NULL: fine. */
const char *mo_ep_call_check(struct call *c);
void mo_ep_call_end(struct call *c); /* answered: free when possible */
/* Nobody waits: tell the handler, end what we own. */
void mo_ep_call_cancel(struct call *c);
/* The transport lost the way; modern: that cancels. */
void mo_ep_call_lost(struct mo_ep_call *c);
struct call *mo_ep_call_find(struct mo_list *calls, struct mo_json id);
int mo_ep_call_add_input(struct call *c, struct mo_span key, struct mo_json v,
                         bool refused);
/* It waits no longer: tell the handler that it will not come back. */
void mo_ep_call_abandon(struct call *c);
/* The least level of log messages that its client wants. */
enum mo_mcp_level mo_ep_call_least(const struct call *c);
struct mo_span mo_ep_call_dup(struct call *c,
                              struct mo_span s); /* p NULL: oom */
/* The message in the scratch buffer is the answer; ends the call. */
void mo_ep_call_answer(struct call *c, int status);
void mo_ep_call_refuse(struct call *c, int status, int code, const char *msg,
                       struct mo_span data);
/* At the end of the endpoint: free it, whoever holds it. */
void mo_ep_call_bury(struct call *c);

#endif
