/* endpoint.h - the server side of MCP: one handler for every revision.
 *
 * The endpoint speaks the protocol (handshakes, envelopes, sessions, listens,
 * version differences) and passes each request to one handler, as a struct
 * mo_ep_call in the shape of the newest revision. The handler answers at once
 * or any time later. ep_legacy.c translates for revisions that open with
 * `initialize`, ep_modern.c for self-describing requests; ep_stdio.h and
 * ep_http.h are the transports.
 *
 * A call belongs to the handler from handler() until one of
 * mo_ep_call_result(), mo_ep_call_error(), mo_ep_call_wait(); after that the
 * handler must not touch it. c->canceled (if set) reports a canceled call,
 * which must still be answered; the answer is dropped.
 *
 * A handler asks the client (sampling, elicitation, roots) by replay: it looks
 * for an answer with mo_ep_call_input(); if there is none it calls
 * mo_ep_call_need() for each question and then mo_ep_call_wait(). Later it is
 * called again from the top, perhaps with another struct mo_ep_call, with the
 * answers present. mo_ep_call_set_state() keeps data for that. The handler does
 * not see whether the client got a request (legacy) or repeated its call
 * (modern), and must do nothing that may not be done twice before it has all
 * answers.
 *
 * The endpoint knows no tools, no schemas and no other servers. */
#ifndef MO_MCP_SERVER_ENDPOINT_H
#define MO_MCP_SERVER_ENDPOINT_H

#include "codec/json/json.h"
#include "loop/loop.h"
#include "mcp/era.h"
#include "trace/trace.h"

#define MO_EP_PERSON_MAX 193 /* of mo_ep_call.person, with a NUL */

struct mo_endpoint;
struct mo_ep_call;

enum {
    MO_EP_TOOLS = 1 << 0,
    MO_EP_RESOURCES = 1 << 1,
    MO_EP_SUBSCRIBE = 1 << 2, /* sends resources/updated */
    MO_EP_PROMPTS = 1 << 3,
    MO_EP_COMPLETIONS = 1 << 4,
    MO_EP_LOGGING = 1 << 5,
    MO_EP_LISTCHANGED = 1 << 6,
    MO_EP_TASKS = 1 << 7,      /* the modern extension; done by the handler */
    MO_EP_CALL_TASKS = 1 << 8, /* 2025-11-25; done by the endpoint */
    MO_EP_SKILLS = 1 << 9,     /* the extension, with directories */
};

struct mo_endpoint_limits {
    unsigned calls;        /* in flight per peer, 256; then an error */
    unsigned listens;      /* in total, 1024 */
    unsigned uris;         /* subscribed per session or listen, 256 */
    unsigned rounds;       /* rounds of questions in one call, 10 */
    uint64_t ask_ms;       /* wait for an answer of the client: 600 s */
    uint64_t state_ms;     /* life of a sealed state: 900 s */
    size_t message;        /* longest message sent, 32 MiB */
    unsigned sessions;     /* HTTP, 4096; the longest idle one is ended */
    uint64_t session_ms;   /* HTTP, idle time: 30 min */
    size_t replay;         /* HTTP, replay bytes per session: 1 MiB */
    size_t replay_all;     /* HTTP, replay bytes in total: 32 MiB */
    uint64_t keepalive_ms; /* HTTP, interval of SSE comments: 15 s */
    uint64_t soon_ms;      /* HTTP, time until an answer becomes SSE: 20 ms */
    unsigned tasks;        /* MO_EP_CALL_TASKS, per session: 64 */
    uint64_t task_ms;      /* life of a task: 1 h */
    size_t task_bytes;     /* results of tasks in total: 32 MiB */
};

enum mo_mcp_level {
    MO_MCP_DEBUG,
    MO_MCP_INFO,
    MO_MCP_NOTICE,
    MO_MCP_WARNING,
    MO_MCP_ERROR,
    MO_MCP_CRITICAL,
    MO_MCP_ALERT,
    MO_MCP_EMERGENCY,
    MO_MCP_LEVELS, /* also: none at all */
};

/* Whether a tool may be called as a task (2025-11-25). */
enum mo_ep_task_support {
    MO_EP_TASK_FORBIDDEN,
    MO_EP_TASK_OPTIONAL,
    MO_EP_TASK_REQUIRED,
};

struct mo_endpoint_opts {
    const char *name, *version;       /* serverInfo */
    const char *title;                /* may be NULL */
    const char *instructions;         /* may be NULL */
    unsigned caps;                    /* MO_EP_* */
    struct mo_endpoint_limits limits; /* 0: the default of that limit */
    void (*handler)(void *ctx, struct mo_ep_call *c);
    /* Returns the inputSchema of a tool, for Mcp-Param headers; none if
     * unknown. May be NULL: the headers are not checked then. */
    struct mo_json (*schema)(void *ctx, struct mo_span tool);
    /* With MO_EP_CALL_TASKS: returns the task support of a tool. May be NULL:
     * every tool may be called as a task. */
    enum mo_ep_task_support (*task)(void *ctx, struct mo_span tool);
    /* The first client subscribed to this resource, or the last one
     * unsubscribed; may be NULL. */
    void (*watch)(void *ctx, struct mo_span uri, bool on);
    /* With MO_EP_TASKS: a listen begins or stops to watch this task (if it
     * belongs to the caller); may be NULL. */
    void (*watch_task)(void *ctx, const struct mo_ep_call *listen,
                       struct mo_span id, bool on);
    /* The most verbose log level that any client asked for has changed;
     * MO_MCP_LEVELS: none. May be NULL. */
    void (*level)(void *ctx, enum mo_mcp_level lv);
    /* A connection or session (mo_ep_call.peer) has ended; may be NULL. */
    void (*session_gone)(void *ctx, uint64_t peer);
    /* The roots of a legacy client changed; may be NULL. */
    void (*roots_changed)(void *ctx, uint64_t peer);
    /* A call waiting under this state will not come back: canceled, or not
     * answered in time. May be NULL. */
    void (*abandoned)(void *ctx, struct mo_span state);
    /* A client's refusal counts as an answer (mo_ep_call_refusal); else it ends
     * the call. */
    bool refusals;
    void *ctx;
};

struct mo_endpoint *mo_endpoint_new(struct mo_loop *l,
                                    const struct mo_endpoint_opts *o,
                                    struct mo_err *e);
/* Close every transport first. Calls that the handler still holds are canceled;
 * it may answer them until mo_endpoint_free() returns, which frees them. */
void mo_endpoint_free(struct mo_endpoint *ep);
/* Change limits.ask_ms for later questions. */
void mo_endpoint_ask_ms(struct mo_endpoint *ep, uint64_t ms);

enum mo_ep_what { MO_EP_CH_TOOLS, MO_EP_CH_PROMPTS, MO_EP_CH_RESOURCES };

/* Notify every client that subscribed. Safe from inside the handler. */
void mo_endpoint_changed(struct mo_endpoint *ep, enum mo_ep_what what);
void mo_endpoint_updated(struct mo_endpoint *ep, struct mo_span uri);
/* A list has changed, for listens of modern clients only. */
void mo_endpoint_changed_listens(struct mo_endpoint *ep, enum mo_ep_what what);
/* A task of the modern extension has changed: task is the answer to tasks/get
 * (a JSON object). Sent to the listens of its caller that watch it. */
void mo_endpoint_task(struct mo_endpoint *ep, struct mo_span caller,
                      struct mo_span id, struct mo_span task);

/* Send a notification that belongs to no call to one legacy connection or
 * session; params: JSON text. The params of a log message are those of
 * mo_ep_call_log_raw(). */
void mo_endpoint_tell(struct mo_endpoint *ep, uint64_t peer, const char *method,
                      struct mo_span params);
void mo_endpoint_log(struct mo_endpoint *ep, uint64_t peer,
                     struct mo_json params);
/* Ask one legacy connection or session a question that belongs to no call.
 * Returns NULL if there is no such peer, it did not declare the capability, or
 * too many questions are open. If the peer is not connected just now the
 * question waits for that. done is called once, later: with result or error, or
 * neither (no answer in time, or the peer is gone). */
struct mo_ep_ask;
typedef void mo_ep_ask_done(void *ctx, struct mo_json result,
                            struct mo_json error);
struct mo_ep_ask *mo_endpoint_ask(struct mo_endpoint *ep, uint64_t peer,
                                  const char *method, struct mo_span params,
                                  mo_ep_ask_done *done, void *ctx);
/* True if the peer is connected and can be asked now. */
bool mo_endpoint_hears(struct mo_endpoint *ep, uint64_t peer);
/* Take the question back: the client is told, done is not called. */
void mo_endpoint_unask(struct mo_ep_ask *a);
/* The only legacy connection or session; 0: none, or several. */
uint64_t mo_endpoint_only(const struct mo_endpoint *ep);
/* Stop the waiting of a call (MO_EP_WAITS) under this state: open questions are
 * taken back and the handler is called again, now. False: there is no such
 * call. */
bool mo_endpoint_wake(struct mo_endpoint *ep, struct mo_span state);

/* The most verbose log level that any client asked for; MO_MCP_LEVELS: none. */
enum mo_mcp_level mo_endpoint_level(const struct mo_endpoint *ep);

struct mo_endpoint_stats {
    unsigned calls, listens, sessions;
    size_t replay;     /* bytes kept */
    size_t task_bytes; /* likewise */
};
struct mo_endpoint_stats mo_endpoint_stats(const struct mo_endpoint *ep);

/* --- one call ------------------------------------------------------------ */

struct mo_ep_call {
    struct mo_span method;
    struct mo_json params;    /* object, or none */
    struct mo_json arguments; /* params.arguments: object, or none */
    struct mo_span name;      /* params.name, .uri or .taskId; may be empty */
    enum mo_mcp_version version; /* of the peer */
    struct mo_json caps;         /* the client's capabilities, object or none */
    struct mo_json client;       /* its clientInfo, or none */
    struct mo_span caller;       /* the caller as the transport identified it */
    struct mo_span grant;  /* id of the caller's personal token; or empty */
    struct mo_span person; /* whose credentials it may use: the caller's,
                            * or those of link_inside.h */
    struct mo_trace trace; /* from its HTTP headers */
    struct mo_trace_span *span;  /* NULL: it is not recorded */
    uint64_t request;            /* number of its HTTP request, or 0 */
    const char *session;         /* legacy over HTTP; else NULL */
    uint64_t peer;               /* its connection or session; 0: modern HTTP */
    struct mo_span inside;       /* the name given to link_inside.h, or empty */
    void *scope;                 /* opts.ctx of its endpoint */
    void *data;                  /* for the handler */
    bool counted;                /* likewise */
    struct mo_ep_origin *within; /* the handler made it, for a call that it
                                  * holds; else NULL */
    /* Set by the handler, may stay NULL: the client no longer waits. Not called
     * from inside a call on c. */
    void (*canceled)(struct mo_ep_call *c);
};

/* Results have the modern shape; resultType, ttlMs, cacheScope and serverInfo
 * are added if missing. The text must be a valid JSON object. */
void mo_ep_call_result(struct mo_ep_call *c, struct mo_span json);
/* data: JSON text or empty. */
void mo_ep_call_error(struct mo_ep_call *c, int code, const char *msg,
                      struct mo_span data);
/* Answer with another server's error object. Its code is translated where the
 * revisions differ or where it must not be forwarded; the rest is kept. */
void mo_ep_call_error_raw(struct mo_ep_call *c, struct mo_json error);
/* Answer with a failure of the tool, for the model to read: isError and one
 * text. */
void mo_ep_call_fail(struct mo_ep_call *c, const char *text);

/* Dropped when the client gave no token, or progress does not grow. total < 0
 * and msg == NULL: omitted. */
void mo_ep_call_progress(struct mo_ep_call *c, double progress, double total,
                         const char *msg);

/* Forward the params of another server's notifications/progress or /message,
 * unchanged except for the token. Dropped like the others. */
void mo_ep_call_progress_raw(struct mo_ep_call *c, struct mo_json params);
void mo_ep_call_log_raw(struct mo_ep_call *c, struct mo_json params);
bool mo_ep_call_wants_progress(const struct mo_ep_call *c);
/* The least log level that its client wants; NULL: no messages at all. */
const char *mo_ep_call_log_level(const struct mo_ep_call *c);
struct mo_endpoint *mo_ep_call_endpoint(const struct mo_ep_call *c);
/* Pass a call that has no answer yet to another process of the store, whole.
 * True: it has ended here; its client gets the answer of that process, or
 * `gone` as an error if it has ended. False: it cannot be passed, because it
 * was passed here already or its client can only use this process. */
bool mo_ep_call_elsewhere(struct mo_ep_call *c, const char *instance,
                          const char *gone);
/* Dropped below the log level of the client. logger may be NULL. */
void mo_ep_call_log(struct mo_ep_call *c, enum mo_mcp_level lv,
                    const char *logger, struct mo_span data);
/* Let the client reconnect for the answer (legacy SSE polling); no effect where
 * that is not possible. */
void mo_ep_call_pause(struct mo_ep_call *c);

/* --- calls of a call ------------------------------------------------------
 *
 * The handler may call tools itself on behalf of a call that it holds, such as
 * one of a script. These calls have the same client, session and caller. They
 * are given to the handler as all others are, in the shape of a legacy
 * revision, and may end after the outer call. Their questions go to a legacy
 * client with the outer call; a modern client cannot be asked. */

/* Origin and outcome of such a call. */
struct mo_ep_origin {
    struct mo_span script; /* SHA-256 of the script's code, in hex */
    uint64_t line;         /* of the script; 0: unknown */
    bool asks;             /* the client can be asked */
    /* Set by the handler before it answers: "denied" by a rule, "rejected" by a
     * person or because nobody decided in time; and why. */
    const char *refused;
    struct mo_span reason; /* borrowed until the answer */
};

struct mo_ep_within {
    const char *script; /* as above */
    uint64_t line;
    /* Called once, perhaps from inside mo_ep_call_within(): with the result or
     * the error object; with neither if it was cancelled. about: NULL without
     * a result. */
    void (*done)(struct mo_ep_within *w, struct mo_json result,
                 struct mo_json error, const struct mo_ep_origin *about);
    struct mo_ep_call *call; /* private */
};

/* params: of tools/call, a JSON object. w is used until done(). MO_EINVAL: the
 * params are no JSON; MO_ECANCELED: c was cancelled; MO_ENOMEM: done() is not
 * called. */
int mo_ep_call_within(struct mo_ep_call *c, struct mo_span params,
                      struct mo_ep_within *w);
/* done() is called at once, and the call is cancelled. */
void mo_ep_within_cancel(struct mo_ep_within *w);

/* --- asking the client --------------------------------------------------- */

/* True if the client declared "sampling", "elicitation" or "roots". */
bool mo_ep_call_can(const struct mo_ep_call *c, const char *what);
/* True if the client accepts a question of that method with these params. A
 * call that asks for an undeclared capability ends with an error that names
 * it. */
bool mo_ep_call_takes(const struct mo_ep_call *c, const char *method,
                      struct mo_json params);
/* False for modern requests that must be answered at once. */
bool mo_ep_call_may_ask(const struct mo_ep_call *c);
/* True if the client declared that extension (MO_MCP_EXT_*). */
bool mo_ep_call_has_ext(const struct mo_ep_call *c, const char *id);
/* The answer to an earlier need, or none. The client wrote it; trust it no more
 * than the client. */
struct mo_json mo_ep_call_input(struct mo_ep_call *c, const char *key);
/* The error object that the client sent instead of an answer (opts.refusals).
 */
struct mo_json mo_ep_call_refusal(struct mo_ep_call *c, const char *key);
/* params: JSON object text, or empty. Copied. */
void mo_ep_call_need(struct mo_ep_call *c, const char *key, const char *method,
                     struct mo_span params);
/* Result of waiting: the call waits here and accepts progress and logs until
 * the handler or opts.abandoned is called; or it was answered and may come back
 * as another call; or it ended with an error that says why. */
enum mo_ep_waiting { MO_EP_WAITS, MO_EP_AWAY, MO_EP_ENDED };
enum mo_ep_waiting mo_ep_call_wait(struct mo_ep_call *c);
/* Text (UTF-8) that the handler keeps between rounds; empty on the first round.
 */
struct mo_span mo_ep_call_state(const struct mo_ep_call *c);
void mo_ep_call_set_state(struct mo_ep_call *c, struct mo_span state);

#endif
