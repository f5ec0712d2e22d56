/* endpoint.h - the server half of MCP: one handler, every revision.
 *
 * The endpoint speaks the protocol (handshakes, envelopes, sessions, listens,
 * version differences) and leaves the matter to one handler, which sees a
 * struct mo_ep_call in the shapes of the newest revision and answers it at once
 * or any time later. The edges translate: ep_legacy.c for revisions that open
 * with `initialize`, ep_modern.c for self-describing requests; ep_stdio.h and
 * ep_http.h carry the bytes.
 *
 * A call belongs to the handler from handler() until it says one of
 * mo_ep_call_result(), mo_ep_call_error(), mo_ep_call_wait(); after that it
 * must not be touched. A canceled call is told by c->canceled (if set) and must
 * still be answered; what is said then goes nowhere.
 *
 * Asking the client (sampling, elicitation, roots) is written as replay: the
 * handler looks for an answer with mo_ep_call_input(); if there is none it says
 * mo_ep_call_need() for each thing it wants and then mo_ep_call_wait(). Later
 * it is called again from the top, perhaps with another struct mo_ep_call, with
 * the answers present. What it must remember travels by mo_ep_call_set_state().
 * It never learns whether that was a real request (legacy) or a retry of the
 * call (modern), and should do nothing that may not be done twice before it
 * has all it needs.
 *
 * Not known here: tools, schemas, other servers. */
#ifndef MO_MCP_SERVER_ENDPOINT_H
#define MO_MCP_SERVER_ENDPOINT_H

#include "codec/json/json.h"
#include "loop/loop.h"
#include "mcp/era.h"
#include "mcp/trace.h"

struct mo_endpoint;
struct mo_ep_call;

enum {
    MO_EP_TOOLS = 1 << 0,
    MO_EP_RESOURCES = 1 << 1,
    MO_EP_SUBSCRIBE = 1 << 2, /* resources/updated is sent */
    MO_EP_PROMPTS = 1 << 3,
    MO_EP_COMPLETIONS = 1 << 4,
    MO_EP_LOGGING = 1 << 5,
    MO_EP_LISTCHANGED = 1 << 6,
    MO_EP_TASKS = 1 << 7,      /* the modern extension; the handler's own */
    MO_EP_CALL_TASKS = 1 << 8, /* 2025-11-25: a tool call as a task, which
                                * the endpoint keeps */
};

struct mo_endpoint_limits {
    unsigned calls;        /* in flight per peer, 256: then an error */
    unsigned listens;      /* in all, 1024 */
    unsigned uris;         /* subscribed per session or listen, 256 */
    unsigned rounds;       /* of asking the client in one call, 10 */
    uint64_t ask_ms;       /* a person may have to answer: 600 s */
    uint64_t state_ms;     /* a sealed state is good for: 900 s */
    size_t message;        /* the longest we send, 32 MiB */
    unsigned sessions;     /* HTTP, 4096: the longest idle one gives way */
    uint64_t session_ms;   /* HTTP, unused for: 30 min */
    size_t replay;         /* HTTP, bytes kept per session: 1 MiB */
    size_t replay_all;     /* HTTP, of all sessions: 32 MiB */
    uint64_t keepalive_ms; /* HTTP, SSE comments: 15 s */
    uint64_t soon_ms;      /* HTTP, an answer is plain JSON until: 20 ms */
    unsigned tasks;        /* MO_EP_CALL_TASKS, kept per session: 64 */
    uint64_t task_ms;      /* one is kept for at most: 1 h */
    size_t task_bytes;     /* outcomes kept, of all sessions: 32 MiB */
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

/* May a tool be called as a task (2025-11-25)? */
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
    struct mo_endpoint_limits limits; /* zero = default, one by one */
    void (*handler)(void *ctx, struct mo_ep_call *c);
    /* inputSchema of a tool, for Mcp-Param headers; none if unknown. May be
     * NULL: then they are not checked. */
    struct mo_json (*schema)(void *ctx, struct mo_span tool);
    /* With MO_EP_CALL_TASKS: what is said and checked of each tool. May be
     * NULL: each may. */
    enum mo_ep_task_support (*task)(void *ctx, struct mo_span tool);
    /* The first one wants to hear of that resource, or the last one no longer;
     * may be NULL. */
    void (*watch)(void *ctx, struct mo_span uri, bool on);
    /* With MO_EP_TASKS: a listen wants to hear of that task (of its caller's,
     * if it is any), or does no longer; may be NULL. */
    void (*watch_task)(void *ctx, const struct mo_ep_call *listen,
                       struct mo_span id, bool on);
    /* The most verbose level that anybody has asked for is another one now;
     * MO_MCP_LEVELS: nobody has. May be NULL. */
    void (*level)(void *ctx, enum mo_mcp_level lv);
    /* A connection or session (mo_ep_call.peer) is over; may be NULL. */
    void (*session_gone)(void *ctx, uint64_t peer);
    /* A legacy client's roots are others now; may be NULL. */
    void (*roots_changed)(void *ctx, uint64_t peer);
    /* A call that waits here under that state will not come back: canceled,
     * or not answered in time. May be NULL. */
    void (*abandoned)(void *ctx, struct mo_span state);
    /* The client's refusal of a question is an answer (mo_ep_call_refusal);
     * else it ends the call. */
    bool refusals;
    void *ctx;
};

struct mo_endpoint *mo_endpoint_new(struct mo_loop *l,
                                    const struct mo_endpoint_opts *o,
                                    struct mo_err *e);
/* Every transport must be closed before; calls that the handler still holds
 * are canceled and may be answered until mo_endpoint_free() returns from
 * telling them: they are gone then. */
void mo_endpoint_free(struct mo_endpoint *ep);
/* Another limits.ask_ms, for questions to come. */
void mo_endpoint_ask_ms(struct mo_endpoint *ep, uint64_t ms);

enum mo_ep_what { MO_EP_CH_TOOLS, MO_EP_CH_PROMPTS, MO_EP_CH_RESOURCES };

/* Tell everybody who asked. Safe from inside the handler. */
void mo_endpoint_changed(struct mo_endpoint *ep, enum mo_ep_what what);
void mo_endpoint_updated(struct mo_endpoint *ep, struct mo_span uri);
/* A task of the modern extension has changed: what tasks/get would say now (a
 * JSON object). Told to those listens for it that are its caller's. */
void mo_endpoint_task(struct mo_endpoint *ep, struct mo_span caller,
                      struct mo_span id, struct mo_span task);

/* A notification that belongs to no call, for one connection or session if it
 * is a legacy one; params: JSON text. A log message has params as in
 * mo_ep_call_log_raw(). */
void mo_endpoint_tell(struct mo_endpoint *ep, uint64_t peer, const char *method,
                      struct mo_span params);
void mo_endpoint_log(struct mo_endpoint *ep, uint64_t peer,
                     struct mo_json params);
/* A question that belongs to no call, for one connection or session that is
 * legacy and said that it takes such; NULL: there is none, or it does not, or
 * too many are open. If it is not connected to hear it just now the question
 * waits for that. done is called once, later: result or error is there, or
 * neither (it did not answer, or is gone). */
struct mo_ep_ask;
typedef void mo_ep_ask_done(void *ctx, struct mo_json result,
                            struct mo_json error);
struct mo_ep_ask *mo_endpoint_ask(struct mo_endpoint *ep, uint64_t peer,
                                  const char *method, struct mo_span params,
                                  mo_ep_ask_done *done, void *ctx);
/* Is it connected to hear such a question now? */
bool mo_endpoint_hears(struct mo_endpoint *ep, uint64_t peer);
/* It need not be answered any more: the client is told, done is not called. */
void mo_endpoint_unask(struct mo_ep_ask *a);
/* The one legacy connection or session that there is; 0: none, or several. */
uint64_t mo_endpoint_only(const struct mo_endpoint *ep);
/* A call that waits here (MO_EP_WAITS) under that state need not: questions
 * that are out are taken back and the handler is called again, now. False:
 * there is none. */
bool mo_endpoint_wake(struct mo_endpoint *ep, struct mo_span state);

/* The most verbose level that anybody has asked for; MO_MCP_LEVELS: nobody. */
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
    struct mo_json params;       /* object, or none */
    struct mo_json arguments;    /* params.arguments: object, or none */
    struct mo_span name;         /* params.name, .uri or .taskId; or empty */
    enum mo_mcp_version version; /* of the peer */
    struct mo_json caps;         /* the client's capabilities, object or none */
    struct mo_json client;       /* its clientInfo, or none */
    struct mo_span caller;       /* who, as the transport knows it */
    struct mo_trace trace;       /* as the head of its request says */
    const char *session;         /* legacy over HTTP; else NULL */
    uint64_t peer;               /* the connection or session it came by, a
                                  * random number; 0: none (modern HTTP) */
    struct mo_span inside;       /* it came from this very program: by whom
                                  * (mcp/server/link_inside.h); else empty */
    void *data;                  /* the handler's */
    /* Set by the handler, may stay NULL: nobody waits any more. Not called
     * from inside a call on c. */
    void (*canceled)(struct mo_ep_call *c);
};

/* Modern shapes; resultType, ttlMs, cacheScope and serverInfo are added where
 * they are missing. The text must be valid JSON, an object. */
void mo_ep_call_result(struct mo_ep_call *c, struct mo_span json);
/* data: JSON text or empty. */
void mo_ep_call_error(struct mo_ep_call *c, int code, const char *msg,
                      struct mo_span data);
/* Another server's error object, as it came: its code is translated where the
 * revisions differ or where it is not to be passed on, all else is kept. */
void mo_ep_call_error_raw(struct mo_ep_call *c, struct mo_json error);
/* A tool's own failure, for the model to read: isError and one text. */
void mo_ep_call_fail(struct mo_ep_call *c, const char *text);

/* Dropped when the client gave no token, or progress does not grow.
 * total < 0 and msg == NULL: left out. */
void mo_ep_call_progress(struct mo_ep_call *c, double progress, double total,
                         const char *msg);

/* The params of another server's notifications/progress or /message, kept as
 * they are but for the token. Dropped like the others. */
void mo_ep_call_progress_raw(struct mo_ep_call *c, struct mo_json params);
void mo_ep_call_log_raw(struct mo_ep_call *c, struct mo_json params);
bool mo_ep_call_wants_progress(const struct mo_ep_call *c);
/* The least level that its client wants; NULL: no messages at all. */
const char *mo_ep_call_log_level(const struct mo_ep_call *c);
struct mo_endpoint *mo_ep_call_endpoint(const struct mo_ep_call *c);
/* Dropped below the level that the client wants. logger may be NULL. */
void mo_ep_call_log(struct mo_ep_call *c, enum mo_mcp_level lv,
                    const char *logger, struct mo_span data);
/* Let the client come back for the answer (legacy SSE polling); nothing
 * happens where that is not possible. */
void mo_ep_call_pause(struct mo_ep_call *c);
bool mo_ep_call_is_canceled(const struct mo_ep_call *c);

/* --- asking the client --------------------------------------------------- */

/* Does the client say it can do "sampling", "elicitation", "roots"? */
bool mo_ep_call_can(const struct mo_ep_call *c, const char *what);
/* May a person be sent to a page (elicitation of mode url)? A call that asks
 * for what its client did not declare ends with an error that says so. */
bool mo_ep_call_can_url(const struct mo_ep_call *c);
/* Does it take a question of that method with these params? */
bool mo_ep_call_takes(const struct mo_ep_call *c, const char *method,
                      struct mo_json params);
/* May it be asked at all? Some modern requests must be answered at once. */
bool mo_ep_call_may_ask(const struct mo_ep_call *c);
/* Does it speak that extension (MO_MCP_EXT_*)? */
bool mo_ep_call_has_ext(const struct mo_ep_call *c, const char *id);
/* The answer to an earlier need, or none. Trust it as you trust the client. */
struct mo_json mo_ep_call_input(struct mo_ep_call *c, const char *key);
/* Instead of an answer: the error object the client sent (opts.refusals). */
struct mo_json mo_ep_call_refusal(struct mo_ep_call *c, const char *key);
/* params: JSON object text, or empty. Copied. */
void mo_ep_call_need(struct mo_ep_call *c, const char *key, const char *method,
                     struct mo_span params);
/* What has become of the call: it waits here and may be told progress and logs
 * until the handler or opts.abandoned is called; it has been answered and may
 * come back as another one; it has ended with an error that says why. */
enum mo_ep_waiting { MO_EP_WAITS, MO_EP_AWAY, MO_EP_ENDED };
enum mo_ep_waiting mo_ep_call_wait(struct mo_ep_call *c);
/* Opaque text (UTF-8) of the handler's; empty on the first round. */
struct mo_span mo_ep_call_state(const struct mo_ep_call *c);
void mo_ep_call_set_state(struct mo_ep_call *c, struct mo_span state);

#endif
