/* config.h - the configuration: five layers made into one constant struct.
 *
 * Order, highest first: flags, environment, .env in the working directory,
 * the config file (JSON), defaults. Every key is one row of the table in
 * keys.c; this header only gives the values C names.
 *
 * Ownership: a struct mo_config never changes once it is loaded. It lives in
 * its own arena and is reference-counted: who keeps a pointer beyond the
 * present call takes mo_config_ref(). The holder always has a good one; a
 * reload puts a new one in its place or leaves everything as it was. Loop
 * thread only.
 *
 * Secrets: references (${secret:..}, ${env:..}, ${file:..}) are checked and
 * kept as text, never resolved in here; who uses a value resolves it then
 * (reference.h). Literal ones are masked by `config show` and can be registered
 * with the log (mo_config_hide).
 *
 * Limits: MO_CONFIG_FILE_MAX, MO_CONFIG_PROBLEMS_MAX, those in
 * keys.h. Reaching one is a problem in the report. */
#ifndef MO_CONFIG_CONFIG_H
#define MO_CONFIG_CONFIG_H

#include <limits.h>

#include "base/file.h"
#include "base/log.h"
#include "config/choices.h"
#include "config/dotenv.h"

#define MO_CONFIG_FILE          "mcp-orchestrator.json"
#define MO_CONFIG_DIR           "mcp-orchestrator" /* under XDG directories */
#define MO_CONFIG_FILE_MAX      ((size_t)1024 * 1024)
#define MO_CONFIG_ARENA_MAX     ((size_t)16 * 1024 * 1024)
#define MO_CONFIG_PROBLEMS_MAX  20
#define MO_CONFIG_PROBLEM_BYTES 400

/* --- values -------------------------------------------------------------- */

struct mo_config_list {
    const char **v;
    size_t n;
};

struct mo_config_pair {
    const char *name, *value;
};

struct mo_config_map {
    struct mo_config_pair *v;
    size_t n;
};

enum mo_driver {
    MO_DRIVER_AUTO,
    MO_DRIVER_NATIVE,
    MO_DRIVER_DOCKER,
    MO_DRIVER_NONE
};
enum mo_transport {
    MO_TRANSPORT_AUTO,
    MO_TRANSPORT_STDIO,
    MO_TRANSPORT_HTTP,
    MO_TRANSPORT_SSE,
    MO_TRANSPORT_BOX
};
enum mo_scope { MO_SCOPE_SHARED, MO_SCOPE_SESSION };
enum mo_log_format { MO_FORMAT_AUTO, MO_FORMAT_TEXT, MO_FORMAT_JSON };

/* Text is NULL and numbers are 0 where nothing was given and the table has
 * no default. Enumerations are int so that one setter can write them. */

struct mo_config_oauth {
    const char *client_id, *client_secret, *client_url, *scope, *redirect;
    int64_t sign_in_seconds;
    bool enabled;
};

struct mo_config_tool { /* one of mcpServers.NAME.tools */
    const char *name;
    const char *rename, *describe;
    struct mo_config_list fallback;
    int64_t timeout_ms, retries, result_bytes;
    bool hide, idempotent;
};

struct mo_config_tools {
    struct mo_config_tool *v;
    size_t n;
};

struct mo_config_mcp { /* one of mcpServers */
    const char *name;  /* first: the reader of dictionaries sets it */
    const char *command, *cwd, *url, *image, *description, *tool_prefix;
    const char *network; /* of its box */
    struct mo_config_list args, keywords, categories, tags, fallback;
    struct mo_config_map env, headers;
    struct mo_config_oauth oauth;
    struct mo_config_tools tools;
    int transport, sandbox, scope;
    int64_t instances, timeout_ms, start_ms, idle_seconds, memory_mb, pids,
        retries, result_bytes, max_calls;
    double cpus;
    bool enabled;
};

struct mo_config_mcps {
    struct mo_config_mcp *v;
    size_t n;
};

struct mo_config_gateway {
    int expose, prefix; /* enum mo_gw_expose, enum mo_gw_prefix */
    int approvals;      /* enum mo_gw_approvals */
    int64_t few, processes;
};

struct mo_config_audit {
    bool arguments;
    int64_t max_mb, files;
};

struct mo_config_api {
    const char *api_key, *base_url;
};

struct mo_config_llm {
    int provider;
    const char *model, *system_prompt;
    int64_t max_output_tokens, max_history_tokens, max_steps, timeout_ms;
    int tools; /* enum mo_gw_expose: which the model is offered */
    struct mo_config_api claude, gemini, openai;
};

struct mo_config_sandbox {
    int driver;
    const char *image, *docker_host;
    int64_t memory_mb, pids, warm, workspace_mb;
    double cpus;
};

struct mo_config_sessions {
    int64_t idle_minutes, sweep_seconds, history_ttl_seconds, max;
};

struct mo_config_store {
    const char *url, *dir;
};

struct mo_config_rule {
    const char *tool, *server, *reason;
    struct mo_config_map args;         /* path -> condition, codec/match.h */
    struct mo_config_list annotations; /* "readOnlyHint", "!openWorldHint" */
    int action;
    bool remember;
};

struct mo_config_rules {
    struct mo_config_rule *v;
    size_t n;
};

struct mo_config_approvals {
    int fallback; /* "default" */
    int64_t timeout_seconds;
    struct mo_config_rules rules;
};

struct mo_config_tls {
    const char *cert, *key;
};

struct mo_config_limits {
    int64_t connections, head_ms, body_ms, idle_ms, send_ms, requests,
        body_bytes, queue_bytes;
};

struct mo_config_server {
    const char *listen, *token;
    int64_t port;
    struct mo_config_tls tls;
    struct mo_config_map tokens; /* name -> token */
    struct mo_config_list origins;
    struct mo_config_limits limits;
    bool manage; /* where nobody set it: by `listen` (servers/manage.h) */
};

struct mo_config_secrets {
    const char *key; /* secrets/key.h */
};

struct mo_config_log {
    const char *level;
    int format;
};

struct mo_config_origin;

struct mo_config {
    struct mo_config_mcps mcp;
    struct mo_config_gateway gateway;
    struct mo_config_llm llm;
    struct mo_config_sandbox sandbox;
    struct mo_config_sessions sessions;
    struct mo_config_store store;
    struct mo_config_approvals approvals;
    struct mo_config_server server;
    struct mo_config_log log;
    struct mo_config_secrets secrets;
    struct mo_config_audit audit;

    uint64_t generation;  /* counts loads of one holder, from 1 */
    const char *file;     /* the one that was read, or NULL */
    struct mo_dotenv env; /* .env */
    char *const *environ; /* borrowed */
    const struct mo_config_origin *origins; /* newest first */
};

/* --- where a value came from --------------------------------------------- */

enum mo_layer {
    MO_LAYER_DEFAULT,
    MO_LAYER_FILE,
    MO_LAYER_DOTENV,
    MO_LAYER_ENV,
    MO_LAYER_FLAG
};

struct mo_config_origin {
    const struct mo_config_origin *next;
    const void *field; /* in the mo_config */
    enum mo_layer layer;
    const char *name;   /* file, variable or flag */
    unsigned line, col; /* in a file; else 0 */
};

/* NULL: nobody set it, not even a default. */
const struct mo_config_origin *mo_config_origin(const struct mo_config *c,
                                                const void *field);

/* --- what is wrong with it ----------------------------------------------- */

struct mo_config_problem {
    bool warning;
    unsigned line, col;                 /* 0: not in a file */
    char text[MO_CONFIG_PROBLEM_BYTES]; /* "file:4:7: what, and what to do" */
};

struct mo_config_report {
    unsigned errors, warnings; /* found; the array may hold fewer */
    unsigned kept;
    struct mo_config_problem v[MO_CONFIG_PROBLEMS_MAX];
};

/* --- loading ------------------------------------------------------------- */

struct mo_config_flag {
    const char *key;  /* "server.port" */
    const char *flag; /* "port", for messages */
    const char *value;
};

/* Everything is borrowed for the life of the holder. */
struct mo_config_input {
    const char *file;     /* --config, or NULL: look for one */
    const char *dir;      /* working directory, NULL: "." */
    char *const *environ; /* NULL: empty */
    const struct mo_config_flag *flags;
    size_t nflags;
};

struct mo_config_holder {
    struct mo_config_input in;
    const struct mo_config *now;
    uint64_t generation;
    char path[PATH_MAX]; /* where the file was looked for last */
    bool named;          /* by --config or the environment */
    struct mo_file_stamp file, dotenv;
};

/* MO_EINVAL when there are errors in the report, MO_ENOMEM, MO_EIO; e has
 * one sentence for the log. h->now is NULL then; nothing needs closing. */
int mo_config_open(struct mo_config_holder *h, const struct mo_config_input *in,
                   struct mo_config_report *rep, struct mo_err *e);
void mo_config_close(struct mo_config_holder *h);

/* Read everything again. On failure h->now stays and e says so. */
int mo_config_reload(struct mo_config_holder *h, struct mo_config_report *rep,
                     struct mo_err *e);
/* Has a file changed, come or gone since the last (re)load, good or bad? */
bool mo_config_stale(const struct mo_config_holder *h);

const struct mo_config *mo_config_ref(const struct mo_config *c);
void mo_config_unref(const struct mo_config *c); /* NULL is fine */

/* The environment as the configuration sees it: real one, then .env.
 * An empty value counts as unset. */
const char *mo_config_getenv(const struct mo_config *c, const char *name);

/* Register every literal secret with the log. MO_EBUSY: not all fit. */
int mo_config_hide(const struct mo_config *c, struct mo_log *log);

/* Every text in which references may stand, with its key's path
 * ("mcpServers.x.env.TOKEN"). Both are valid during the call. */
typedef void mo_config_text_fn(void *ctx, const char *path, const char *text);
void mo_config_texts(const struct mo_config *c, mo_config_text_fn *fn,
                     void *ctx);

/* What differs between two; said once per key, server or list. */
typedef void mo_config_diff_fn(void *ctx, const char *path, bool restart);
void mo_config_diff(const struct mo_config *a, const struct mo_config *b,
                    mo_config_diff_fn *say, void *ctx);

#endif
