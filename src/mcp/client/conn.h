/* conn.h - a client connection to one MCP server.
 *
 * A connection hides which era the server speaks. It dials (the caller's
 * function makes the link), detects the era if asked to, opens, and then
 * carries requests. Requests of the server (sampling, elicitation, roots) reach
 * the owner as a struct mo_ask in both eras: a legacy server's own request, or
 * one of a modern server's inputRequests, whose retry the connection sends.
 * Only the envelope is interpreted: params and results keep their bytes.
 *
 * The time that a server's package is being installed (loop/runner.h) does not
 * count for open_ms and probe_ms; it has a limit of its own (install_ms).
 *
 * Era detection (auto): server/discover is sent first. A byte-stream server
 * that exits, or stays silent for probe_ms, is dialled again and opened the
 * legacy way, so the probe does no harm. The verdict has a date; the caller
 * keeps it and passes it to the next connection.
 *
 * Contract
 *  1. on_open fires at most once; on_close fires exactly once, last, and the
 *     connection is freed after it. A connection that cannot be opened gets
 *     only on_close.
 *  2. Every accepted call ends in exactly one done, never from inside the
 *     call that asked for it; the handle is invalid after it. All of them
 *     come before on_close.
 *  3. The owner must answer or refuse every ask exactly once, also after
 *     on_ask_gone and after on_close; nothing is sent then.
 *  4. A request number is never used twice on a connection. Answers are
 *     matched by a JSON number with exactly our digits: "1" and 1.0 are not
 *     1. Unmatched answers are counted and dropped.
 *
 * Limits: the MO_CONN_* below; reaching one fails only that call or ask. */
#ifndef MO_MCP_CLIENT_CONN_H
#define MO_MCP_CLIENT_CONN_H

#include "mcp/era.h"
#include "mcp/link/link.h"

#define MO_CONN_CALLS_MAX  1024 /* in flight; then MO_EBUSY */
#define MO_CONN_ASKS_MAX   32   /* open requests of a server; then an error */
#define MO_CONN_ROUNDS_MAX 10   /* rounds of input_required for one call */
#define MO_CONN_INPUTS_MAX 16   /* inputRequests in one round */
#define MO_CONN_TEXT_MAX   MO_LINK_LINE_MAX

#define MO_CONN_IDLE_MS    60000  /* a call without answer or progress */
#define MO_CONN_HARD_MS    600000 /* a call in total */
#define MO_CONN_OPEN_MS    60000  /* initialize */
#define MO_CONN_PROBE_MS   10000  /* server/discover, when auto */
#define MO_CONN_INSTALL_MS 300000 /* its installation, before either */

/* A legacy verdict older than this is ignored: servers are updated. */
#define MO_CONN_VERDICT_MS ((uint64_t)24 * 3600 * 1000)

/* A call of the toolbox's run_script asks for something meanwhile
 * (docs/scripts.md). */
#define MO_CONN_SCRIPT "notifications/mcp-orchestrator/script"

#define MO_CALL_FOREVER UINT64_MAX /* used as a timeout: no timeout */

struct mo_conn;
struct mo_call;

enum mo_conn_mode {
    MO_CONN_LEGACY, /* initialize only */
    MO_CONN_AUTO,   /* probe, then the era of the server */
    MO_CONN_MODERN, /* never initialize */
};

enum mo_conn_era { MO_ERA_UNKNOWN, MO_ERA_LEGACY, MO_ERA_MODERN };

struct mo_conn_verdict {
    enum mo_conn_era era;
    uint64_t at_ms; /* mo_wall_ms() of the probe */
};

/* --- requests of the server --------------------------------------------- */

enum mo_ask_kind { MO_ASK_SAMPLING, MO_ASK_ELICIT, MO_ASK_ROOTS, MO_ASK_KINDS };

struct mo_ask {
    enum mo_ask_kind kind;
    struct mo_json params; /* object or none; lives as long as the ask */
    uint64_t call;         /* mo_call_number() it belongs to; 0: unknown */
    struct mo_json key;    /* modern: the server's key for it, a string */
    void *user;            /* for the owner */
};

/* The kind's method name. */
const char *mo_ask_method(enum mo_ask_kind kind);
/* result: validated object text. Answering or refusing ends the ask. */
void mo_ask_answer(struct mo_ask *a, struct mo_span result);
/* A modern server cannot receive an error: its call fails (MO_EPOLICY). */
void mo_ask_refuse(struct mo_ask *a, int code, const char *message);

/* --- opening ------------------------------------------------------------- */

struct mo_conn_cb {
    void (*on_open)(void *ctx, struct mo_conn *c);
    /* NULL: the server may ask nothing, whatever the capabilities say. */
    void (*on_ask)(void *ctx, struct mo_conn *c, struct mo_ask *a);
    /* The server no longer waits for the answer. May be NULL. */
    void (*on_ask_gone)(void *ctx, struct mo_ask *a);
    /* Every notification except progress. stream_of: the call whose HTTP stream
     * carried it, or 0. May be NULL. */
    void (*on_notify)(void *ctx, struct mo_conn *c, const struct mo_rpc *m,
                      uint64_t stream_of);
    void (*on_noise)(void *ctx, struct mo_span line); /* may be NULL */
    void (*on_close)(void *ctx, const struct mo_err *why);
};

struct mo_conn_opts {
    enum mo_conn_mode mode;
    enum mo_mcp_version
        pin; /* the only version to accept; MO_MCP_UNKNOWN: any */
    struct mo_conn_verdict known; /* from an earlier probe */
    const char *name, *version;   /* our clientInfo; NULL: the program's */
    struct mo_span capabilities;  /* object text; empty: none */
    const char
        *log_level; /* modern: the level of log messages to ask for; or NULL */
    uint64_t open_ms, probe_ms; /* 0: the defaults above */
    uint64_t install_ms;        /* likewise */
    /* Request numbers begin after this one. For a server that had another
     * client before: a late answer to that client must not match our calls. */
    uint64_t after_id;
    /* Make a link and pass it to mo_conn_dialed(), now or later. Returns an
     * error if it fails at once. Called again after a probe that cost the link.
     */
    int (*dial)(void *ctx, struct mo_conn *c, struct mo_err *e);
    /* Sees every message sent and received, borrowed. May be NULL. */
    void (*tap)(void *ctx, bool to_server, struct mo_span text);
    const struct mo_conn_cb *cb;
    void *ctx;
};

/* Texts are copied. The connection does nothing before the loop runs. */
int mo_conn_open(struct mo_loop *l, const struct mo_conn_opts *o,
                 struct mo_conn **out, struct mo_err *e);
/* Hand over the link made by dial; the connection owns it. k NULL: dialling
 * failed, why says how. */
void mo_conn_dialed(struct mo_conn *c, struct mo_link *k,
                    const struct mo_err *why);
/* True if it ends: a link that was not made yet is not needed. */
bool mo_conn_is_closing(const struct mo_conn *c);
/* Close the connection; calls in flight fail with why (may be NULL). */
void mo_conn_close(struct mo_conn *c, const struct mo_err *why);

/* --- once open ----------------------------------------------------------- */

struct mo_conn_info {
    enum mo_mcp_version version;
    bool modern;
    struct mo_conn_verdict
        verdict; /* from this connection's probe, or opts.known */
    struct mo_json capabilities; /* object, or none */
    struct mo_json server;       /* serverInfo: display only */
    struct mo_json instructions; /* string, or none */
    struct mo_json opened;       /* the whole result that holds these values */
};

struct mo_conn_stats {
    uint64_t calls, answers; /* sent; matched */
    uint64_t late;           /* answers to a call that was given up */
    uint64_t duplicate;      /* answers to a call already answered */
    uint64_t unknown;        /* answers to no call of ours */
    uint64_t invalid;        /* JSON, but no message a server may send */
    uint64_t noise;          /* lines that are not JSON */
    uint64_t asks, refused;  /* requests of the server; refused here */
    uint64_t stray_progress; /* unknown token, or not increasing */
};

const struct mo_conn_info *mo_conn_info(const struct mo_conn *c);
const struct mo_conn_stats *mo_conn_stats(const struct mo_conn *c);
struct mo_link *
mo_conn_link(const struct mo_conn *c); /* NULL: no link at present */
/* True if the server declared the capability: "tools", "resources", ... */
bool mo_conn_can(const struct mo_conn *c, const char *capability);
/* The declaration of the server for an extension; none: it does not speak it.
 */
struct mo_json mo_conn_extension(const struct mo_conn *c, const char *id);

/* --- calls --------------------------------------------------------------- */

struct mo_reply {
    const struct mo_err *err; /* why there is no answer; NULL: there is one */
    int status;               /* HTTP status of a failure, or 0 */
    struct mo_json result;    /* object; none if the answer is an error */
    bool task;                /* modern: the result is a task (task.h) */
    struct mo_json error;     /* the server's error object, or none */
    int64_t code;             /* the code of error */
};

struct mo_call_opts {
    uint64_t idle_ms, hard_ms;          /* 0: the defaults; MO_CALL_FOREVER */
    struct mo_span name;                /* value of Mcp-Name (HTTP) */
    const struct mo_link_param *params; /* Mcp-Param-* (HTTP) */
    size_t nparams;
    const char *log_level; /* modern, a constant: replaces the connection's */
    struct mo_span capabilities; /* modern, object text: likewise; or empty */
    struct mo_trace
        trace;      /* for HTTP headers, and for _meta if that has none */
    bool own_trace; /* traceparent and tracestate replace those in _meta */
    /* Progress is requested only when set. Each report restarts the idle
     * timeout. */
    void (*on_progress)(void *ctx, struct mo_json params);
    /* MO_CONN_SCRIPT notifications with the progressToken of this call, which
     * must have on_progress. They restart no timeout. */
    void (*on_script)(void *ctx, struct mo_json params);
    void (*done)(void *ctx, const struct mo_reply *r);
    void *ctx;
};

/* params: validated object text, or empty. Its _meta is kept except for the
 * keys that the connection sets (progressToken and the envelope). Returns NULL
 * and calls no done on MO_EBUSY, MO_ECLOSED (also: not open yet), MO_ETOOBIG,
 * MO_ENOMEM. */
struct mo_call *mo_conn_request(struct mo_conn *c, const char *method,
                                struct mo_span params,
                                const struct mo_call_opts *o, struct mo_err *e);
/* Ends with MO_ECANCELED; reason (may be NULL) is sent to the server. */
void mo_call_cancel(struct mo_call *k, const char *reason);
uint64_t mo_call_number(const struct mo_call *k);
/* Suspend the timeouts while a person decides; releasing restarts both. */
void mo_call_hold(struct mo_call *k, bool on);

/* Send a notification. Returns 0, MO_EBUSY, MO_ECLOSED, ... */
int mo_conn_notify(struct mo_conn *c, const char *method,
                   struct mo_span params);

#endif
