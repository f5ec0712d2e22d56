/* conn.h - an MCP server as its client sees it: requests out, answers in.
 *
 * A connection hides which era the server speaks. It dials (the caller's
 * function makes the link), finds out the era if asked to, opens, and then
 * carries requests. What a server wants from us (sampling, elicitation,
 * roots) comes up as a struct mo_ask in both eras: a legacy server's own
 * request, or one of a modern server's inputRequests, whose retry is done in
 * here. Nothing below the envelope is interpreted: params and results stay
 * the bytes they were.
 *
 * Finding out the era (auto): server/discover is sent first. A byte-stream
 * server that exits, or stays silent for probe_ms, is dialled anew and
 * opened the legacy way, so the probe can do it no harm. The verdict has a
 * date and is the caller's to keep and to give to the next connection.
 *
 * Contract
 *  1. on_open fires once, or never; on_close exactly once, last, and the
 *     connection is gone after it. A connection that cannot be opened has
 *     only its on_close.
 *  2. Every call that was accepted ends in exactly one done, never from
 *     inside the call that asked for it; the handle is gone after it. All of
 *     them come before on_close.
 *  3. Every ask that was handed up must be answered or refused exactly once,
 *     also after on_ask_gone and after on_close; nothing is sent then.
 *  4. A request's number is never used twice on a connection. Answers are
 *     matched by a JSON number with exactly our digits: "1" and 1.0 are not
 *     1. What does not match is counted and dropped.
 *
 * Limits: the MO_CONN_* below; reaching one fails the one call or ask. */
#ifndef MO_MCP_CLIENT_CONN_H
#define MO_MCP_CLIENT_CONN_H

#include "mcp/era.h"
#include "mcp/link/link.h"

#define MO_CONN_CALLS_MAX  1024 /* in flight; then MO_EBUSY */
#define MO_CONN_ASKS_MAX   32   /* a server's open requests; then an error */
#define MO_CONN_ROUNDS_MAX 10   /* of input_required for one call */
#define MO_CONN_INPUTS_MAX 16   /* inputRequests in one round */
#define MO_CONN_TEXT_MAX   MO_LINK_LINE_MAX

#define MO_CONN_IDLE_MS  60000  /* a call without a sign of life */
#define MO_CONN_HARD_MS  600000 /* a call, whatever happens */
#define MO_CONN_OPEN_MS  60000  /* initialize */
#define MO_CONN_PROBE_MS 10000  /* server/discover, when auto */

/* A legacy verdict older than this is not believed: servers are updated. */
#define MO_CONN_VERDICT_MS ((uint64_t)24 * 3600 * 1000)

#define MO_CALL_FOREVER UINT64_MAX /* as a timeout: none */

struct mo_conn;
struct mo_call;

enum mo_conn_mode {
    MO_CONN_LEGACY, /* initialize, nothing else */
    MO_CONN_AUTO,   /* probe, then as the server likes */
    MO_CONN_MODERN, /* no initialize, ever */
};

enum mo_conn_era { MO_ERA_UNKNOWN, MO_ERA_LEGACY, MO_ERA_MODERN };

struct mo_conn_verdict {
    enum mo_conn_era era;
    uint64_t at_ms; /* mo_wall_ms() of the probe */
};

/* --- what a server asks of us -------------------------------------------- */

enum mo_ask_kind { MO_ASK_SAMPLING, MO_ASK_ELICIT, MO_ASK_ROOTS, MO_ASK_KINDS };

struct mo_ask {
    enum mo_ask_kind kind;
    struct mo_json params; /* object or none; lives as long as the ask */
    uint64_t call;         /* mo_call_number() it belongs to; 0: nobody knows */
    struct mo_json key;    /* modern: the server's name for it, a string */
    void *user;            /* the owner's */
};

/* The kind's method name. */
const char *mo_ask_method(enum mo_ask_kind kind);
/* result: validated object text. Either ends the ask. */
void mo_ask_answer(struct mo_ask *a, struct mo_span result);
/* A modern server cannot be told an error: its call fails (MO_EPOLICY). */
void mo_ask_refuse(struct mo_ask *a, int code, const char *message);

/* --- opening ------------------------------------------------------------- */

struct mo_conn_cb {
    void (*on_open)(void *ctx, struct mo_conn *c);
    /* NULL: nothing is offered, whatever the capabilities say. */
    void (*on_ask)(void *ctx, struct mo_conn *c, struct mo_ask *a);
    /* Nobody waits for it any more; may be NULL. */
    void (*on_ask_gone)(void *ctx, struct mo_ask *a);
    /* All but progress; stream_of: the call on whose HTTP stream it came,
     * or 0. May be NULL. */
    void (*on_notify)(void *ctx, struct mo_conn *c, const struct mo_rpc *m,
                      uint64_t stream_of);
    void (*on_noise)(void *ctx, struct mo_span line); /* may be NULL */
    void (*on_close)(void *ctx, const struct mo_err *why);
};

struct mo_conn_opts {
    enum mo_conn_mode mode;
    enum mo_mcp_version pin; /* this one and no other; MO_MCP_UNKNOWN: any */
    struct mo_conn_verdict known; /* from an earlier probe */
    const char *name, *version;   /* our clientInfo; NULL: the program's */
    struct mo_span capabilities;  /* object text; empty: none */
    const char *log_level;        /* modern: what we want to hear; or NULL */
    uint64_t open_ms, probe_ms;   /* 0: the defaults above */
    /* Our numbers begin after this one. For a server that others have asked
     * before us: a late answer to them must never look like one to us. */
    uint64_t after_id;
    /* Make a link and give it to mo_conn_dialed(), now or later. A failure
     * now is returned. Called again after a probe that cost the link. */
    int (*dial)(void *ctx, struct mo_conn *c, struct mo_err *e);
    /* Every message as it comes and goes, borrowed; may be NULL. */
    void (*tap)(void *ctx, bool to_server, struct mo_span text);
    const struct mo_conn_cb *cb;
    void *ctx;
};

/* Texts are copied. Nothing happens before the loop runs. */
int mo_conn_open(struct mo_loop *l, const struct mo_conn_opts *o,
                 struct mo_conn **out, struct mo_err *e);
/* The answer to dial; the link is the connection's. NULL: why not. */
void mo_conn_dialed(struct mo_conn *c, struct mo_link *k,
                    const struct mo_err *why);
/* End it; why (may be NULL) is what calls in flight will hear. */
void mo_conn_close(struct mo_conn *c, const struct mo_err *why);

/* --- once open ----------------------------------------------------------- */

struct mo_conn_info {
    enum mo_mcp_version version;
    bool modern;
    struct mo_conn_verdict verdict; /* of this connection's probe, or known */
    struct mo_json capabilities;    /* object, or none */
    struct mo_json server;          /* serverInfo: display only */
    struct mo_json instructions;    /* string, or none */
    struct mo_json opened;          /* the whole result they are from */
};

struct mo_conn_stats {
    uint64_t calls, answers; /* sent; matched */
    uint64_t late;           /* for a call that was given up */
    uint64_t duplicate;      /* for a call that has its answer */
    uint64_t unknown;        /* for no call of ours */
    uint64_t invalid;        /* JSON, but nothing we may be sent */
    uint64_t noise;          /* not even JSON */
    uint64_t asks, refused;  /* requests of the server; by ourselves */
    uint64_t stray_progress; /* no such token, or not increasing */
};

const struct mo_conn_info *mo_conn_info(const struct mo_conn *c);
const struct mo_conn_stats *mo_conn_stats(const struct mo_conn *c);
struct mo_link *mo_conn_link(const struct mo_conn *c); /* NULL: none now */
/* Did the server declare it? "tools", "resources", ... */
bool mo_conn_can(const struct mo_conn *c, const char *capability);

/* --- calls --------------------------------------------------------------- */

struct mo_reply {
    const struct mo_err *err; /* no answer: why; else NULL */
    int status;               /* HTTP status of a failure, or 0 */
    struct mo_json result;    /* object, or none: it is an error */
    bool task;                /* modern: its kind is a promise (task.h) */
    struct mo_json error;     /* the server's error object, or none */
    int64_t code;             /* of error */
};

struct mo_call_opts {
    uint64_t idle_ms, hard_ms;          /* 0: the defaults; MO_CALL_FOREVER */
    struct mo_span name;                /* what Mcp-Name carries (HTTP) */
    const struct mo_link_param *params; /* Mcp-Param-* (HTTP) */
    size_t nparams;
    const char *log_level; /* modern, a constant: instead of the connection's */
    struct mo_span capabilities; /* modern, object text: likewise; or empty */
    struct mo_trace trace; /* for _meta where that has none, and heads (HTTP) */
    /* Asked for only when set. Each one restarts the idle timeout. */
    void (*on_progress)(void *ctx, struct mo_json params);
    void (*done)(void *ctx, const struct mo_reply *r);
    void *ctx;
};

/* params: validated object text, or empty. Its _meta is kept but for the
 * keys that are ours to set (progressToken and the envelope). NULL: MO_EBUSY,
 * MO_ECLOSED (also: not open yet), MO_ETOOBIG, MO_ENOMEM, and no done. */
struct mo_call *mo_conn_request(struct mo_conn *c, const char *method,
                                struct mo_span params,
                                const struct mo_call_opts *o, struct mo_err *e);
/* done follows with MO_ECANCELED; the server is told why (may be NULL). */
void mo_call_cancel(struct mo_call *k, const char *reason);
uint64_t mo_call_number(const struct mo_call *k);
/* The answer waits for a person: no timeout while held; after it they begin
 * anew. */
void mo_call_hold(struct mo_call *k, bool on);

/* As on_ask's and on_notify's counterpart; 0, MO_EBUSY, MO_ECLOSED, ... */
int mo_conn_notify(struct mo_conn *c, const char *method,
                   struct mo_span params);

#endif
