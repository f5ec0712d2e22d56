/* config.h - the configuration: five layers merged into one constant struct.
 *
 * Order, highest first: flags, environment, .env in the working directory,
 * the config file (JSON), defaults. Every key is one row of the tables in
 * keys.c; this header defines the C members of the values.
 *
 * Ownership: a struct mo_config never changes after loading. It lives in its
 * own arena and is reference-counted: a caller that stores a pointer beyond the
 * current call takes mo_config_ref(). The holder always has a valid one; a
 * reload replaces it or, on failure, leaves it unchanged. Loop thread only.
 *
 * Secrets: references (${secret:..}, ${env:..}, ${file:..}) are checked and
 * stored as text, never resolved here; the user of a value resolves it
 * (reference.h). Literal secrets are masked by `config show` and can be
 * registered with the log (mo_config_hide).
 *
 * Limits: MO_CONFIG_FILE_MAX, MO_CONFIG_PROBLEMS_MAX, those in keys.h. A value
 * over a limit is an error in the report. */
#ifndef MO_CONFIG_CONFIG_H
#define MO_CONFIG_CONFIG_H

#include <limits.h>

#include "base/file.h"
#include "base/log.h"
#include "config/choices.h"
#include "config/dotenv.h"

#define MO_CONFIG_FILE          "mcp-orchestrator.json"
#define MO_CONFIG_DIR           "mcp-orchestrator" /* under XDG directories */
#define MO_CONFIG_ALLOWED       "allowed"          /* file in it: trust.h */
#define MO_CONFIG_FILE_MAX      ((size_t)1024 * 1024)
#define MO_CONFIG_ARENA_MAX     ((size_t)16 * 1024 * 1024)
#define MO_CONFIG_PROBLEMS_MAX  20
#define MO_CONFIG_WORKERS_MAX   64
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
    MO_DRIVER_KUBERNETES, /* never chosen by AUTO */
    MO_DRIVER_NONE
};
enum mo_volumes { /* as enum mo_box_volumes (box/box.h) */
                  MO_VOLUMES_NONE,
                  MO_VOLUMES_LIMITED,
                  MO_VOLUMES_UNLIMITED
};
enum mo_pull { MO_PULL_IF_NOT_PRESENT, MO_PULL_ALWAYS, MO_PULL_NEVER };
enum mo_transport {
    MO_TRANSPORT_AUTO,
    MO_TRANSPORT_STDIO,
    MO_TRANSPORT_HTTP,
    MO_TRANSPORT_SSE,
    MO_TRANSPORT_BOX
};
enum mo_scope { MO_SCOPE_SHARED, MO_SCOPE_SESSION };
/* The credentials that a server gets. */
enum mo_credentials {
    MO_CREDENTIALS_SHARED,
    MO_CREDENTIALS_USER,
    MO_CREDENTIALS_EXCHANGE
};
enum mo_log_format { MO_FORMAT_AUTO, MO_FORMAT_TEXT, MO_FORMAT_JSON };

/* A key that is not set and has no default is NULL (text) or 0 (number).
 * Enumerations are int so that one setter can write them. */

enum mo_grant_kind { /* how a token is got; as enum mo_machine_grant */
                     MO_GRANT_SIGN_IN,
                     MO_GRANT_CLIENT,
                     MO_GRANT_WORKLOAD,
                     MO_GRANT_ENTERPRISE,
};

struct mo_config_idp { /* for MO_GRANT_ENTERPRISE */
    const char *token_endpoint, *client_id, *client_secret;
};

struct mo_config_oauth {
    const char *client_id, *client_secret, *client_url, *issuer, *scope;
    const char *redirect;
    const char *private_key, *assertion_file;
    struct mo_config_idp idp;
    int64_t sign_in_seconds;
    int grant; /* enum mo_grant_kind */
    bool enabled;
};

struct mo_config_exchange { /* RFC 8693 */
    const char *url, *client_id, *client_secret, *audience, *scope;
};

struct mo_config_tool { /* an entry of mcpServers.NAME.tools */
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

struct mo_config_inject { /* headers for one host */
    const char *name;     /* HOST or HOST:PORT */
    struct mo_config_map headers;
};

struct mo_config_injects {
    struct mo_config_inject *v;
    size_t n;
};

struct mo_config_network { /* of a box */
    struct mo_config_list allow;
    bool ask;
    struct mo_config_injects inject;
    int64_t max_connections, max_megabytes, idle_seconds, max_seconds;
    const char *json; /* the same for egress/policy.h; NULL: no network */
};

struct mo_config_mounts { /* folders of the host in a box */
    struct mo_config_list given;
    const char *const *v; /* each "HOST:BOX:ro" (codec/mount.h), NULL at the
                             end; NULL: none */
};

struct mo_config_mcp { /* an entry of mcpServers */
    const char *name;  /* first member: the reader of dictionaries sets it */
    const char *command, *cwd, *url, *image, *description, *tool_prefix;
    struct mo_config_list args, keywords, categories, tags, fallback;
    struct mo_config_map env, headers;
    struct mo_config_oauth oauth;
    struct mo_config_exchange exchange;
    struct mo_config_tools tools;
    struct mo_config_network network;
    struct mo_config_mounts mounts;
    int transport, sandbox, scope;
    int era;         /* enum mo_server_era */
    int credentials; /* enum mo_credentials */
    int64_t instances, timeout_ms, start_ms, install_ms, idle_seconds,
        memory_mb, pids, retries, result_bytes, max_calls, calls_per_minute;
    double cpus;
    bool enabled, isolate;
    bool workspace; /* kept */
    bool boxed;     /* no key: in a box, whatever sandbox says */
};

struct mo_config_mcps {
    struct mo_config_mcp *v;
    size_t n;
};

struct mo_config_embeddings {
    const char *url, *model, *api_key; /* url NULL: off */
    int64_t timeout_ms;
};

/* The name of the server that runs scripts, in rules and records. */
#define MO_CONFIG_SCRIPTS "scripts"

struct mo_config_scripts { /* of clients: gateway/script/script.h */
    bool enabled;
    int64_t max, max_seconds, memory_mb; /* memory_mb 0: the sandbox's */
    struct mo_config_mcp *server; /* no key: the toolbox that runs them; NULL:
                                   * they are off */
};

struct mo_config_gateway {
    int expose, prefix; /* enum mo_gw_expose, enum mo_gw_prefix */
    int approvals;      /* enum mo_gw_approvals */
    int64_t few, processes;
    struct mo_config_embeddings embeddings;
    struct mo_config_scripts scripts;
};

struct mo_config_apps { /* of servers, shown in the page: docs/apps.md */
    bool enabled;
    struct mo_config_list domains; /* that they may reach; mcp/app.h */
    const char *origin;            /* of their frames; NULL: the page's */
};

struct mo_config_rule {
    const char *tool, *server, *reason;
    struct mo_config_map args;         /* path -> condition, codec/match.h */
    struct mo_config_list annotations; /* "readOnlyHint", "!openWorldHint" */
    int action;
    bool remember;
    int approver;                    /* enum mo_approver */
    struct mo_config_list approvers; /* who approve instead; empty: nobody */
    int64_t approvals;               /* how many different persons */
    bool four_eyes;                  /* none of them asked for the call */
};

struct mo_config_rules {
    struct mo_config_rule *v;
    size_t n;
};

struct mo_config_view { /* an entry of views */
    const char *name;   /* first member, as in mo_config_mcp */
    const char *description;
    struct mo_config_list servers, tools; /* empty: all */
    struct mo_config_list people;         /* empty: everybody */
    struct mo_config_rules rules;         /* can only tighten approvals.rules */
    int expose;               /* enum mo_gw_expose, or MO_GW_EXPOSE_SAME */
    int role;                 /* enum mo_role: lowest one that may use it */
    int64_t calls_per_minute; /* 0: no limit */
    bool read_only;
};

struct mo_config_views {
    struct mo_config_view *v;
    size_t n;
};

struct mo_config_audit {
    bool arguments;
    int64_t max_mb, files, keep_days;
    const char *anchor; /* "syslog", "file:/PATH"; NULL: none */
};

struct mo_config_api {
    const char *api_key, *base_url;
};

struct mo_config_llm {
    int provider;
    const char *model, *system_prompt;
    int64_t max_output_tokens, max_history_tokens, max_steps, timeout_ms;
    int tools;  /* enum mo_gw_expose, for the model */
    int images; /* enum mo_images */
    int titles; /* enum mo_titles */
    bool editable;
    struct mo_config_api claude, gemini, openai;
};

struct mo_config_kubernetes {
    const char *kubeconfig, *context, *ns, *image, *runtime_class, *pull_secret,
        *storage_class;
    int pull_policy; /* enum mo_pull */
    bool claims;     /* files are kept in them */
    struct mo_config_map node_selector;
};

struct mo_config_sandbox {
    int driver;
    const char *image, *docker_host;
    int64_t memory_mb, pids, warm, workspace_mb;
    bool keep_files;    /* of sessions, after their boxes */
    int docker_volumes; /* enum mo_volumes */
    double cpus;
    struct mo_config_network network;
    struct mo_config_mounts mounts;
    struct mo_config_kubernetes kubernetes;
};

struct mo_config_sessions {
    int64_t idle_minutes, sweep_seconds, history_ttl_seconds, max;
};

struct mo_config_store {
    const char *url, *dir;
    int64_t replicas; /* of Redis, which must have a write */
};

struct mo_config_webhook {
    const char *url, *secret; /* with references */
    int calls;                /* enum mo_webhook_calls */
    bool arguments;           /* are told */
    bool private_net;         /* may be at a private address */
};

struct mo_config_webhooks {
    struct mo_config_webhook *v;
    size_t n;
};

struct mo_config_approvals {
    int fallback; /* "default" */
    int64_t timeout_seconds;
    int modes; /* enum mo_modes */
    struct mo_config_rules rules;
    struct mo_config_webhooks webhooks;
};

struct mo_config_tls {
    const char *cert, *key;
};

struct mo_config_limits {
    int64_t connections, per_peer, head_ms, body_ms, idle_ms, send_ms, requests,
        body_bytes, queue_bytes;
};

struct mo_config_server {
    const char *listen, *token;
    const char *user; /* name or uid; app/own_user.h */
    int64_t port;
    int64_t workers; /* processes that serve; app/workers.h */
    int64_t drain_s; /* from SIGTERM to the end of connections */
    struct mo_config_tls tls;
    struct mo_config_map tokens; /* name -> token */
    struct mo_config_list origins;
    struct mo_config_limits limits;
    bool manage;      /* if not set: depends on `listen` (servers/manage.h) */
    bool share_links; /* if not set: web/api_links.c */
};

struct mo_config_cluster { /* servers on other machines; peer/cluster.h */
    const char *listen, *address, *key;
};

struct mo_config_provider { /* an entry of people.providers */
    const char *name;
    const char *title, *issuer, *client_id, *client_secret;
    const char *terminal_client; /* public client of `login`, or NULL */
    const char *name_claim, *groups_claim;
    bool introspect;              /* ask it about tokens that are not signed */
    struct mo_config_list scopes; /* asked for at sign-in */
    struct mo_config_list audiences;    /* of access tokens, besides our own */
    struct mo_config_list needs_scopes; /* of access tokens */
};

struct mo_config_providers {
    struct mo_config_provider *v;
    size_t n;
};

struct mo_config_roles { /* whom each role is given to; people/role.h */
    struct mo_config_list viewer, user, approver, op;
};

struct mo_config_people {
    const char *url; /* the address of this server as people know it */
    struct mo_config_providers providers;
    struct mo_config_roles roles;
    int64_t renew_s; /* of an identity that a provider has confirmed */
};

struct mo_config_secrets {
    const char *key; /* secrets/key.h */
};

struct mo_config_telemetry {
    const char *endpoint; /* NULL: off */
    int protocol;         /* enum mo_otlp_encoding */
    struct mo_config_map headers;
    double sample;
    int64_t forced; /* "parentsPerSecond" */
    bool traces, metrics, logs;
    int64_t metrics_s; /* "metricsSeconds" */
    const char *service, *attributes;
};

struct mo_config_registry {
    const char *url; /* install/registry.h */
};

struct mo_config_log {
    const char *level;
    int format;
};

struct mo_config_budget { /* limits of one name; 0: none (budget/budget.h) */
    const char *name;
    int64_t calls;         /* a minute */
    int64_t boxes, turns;  /* at once */
    int64_t tokens, money; /* a day; money in millionths */
};

struct mo_config_budget_list {
    struct mo_config_budget *v;
    size_t n;
};

struct mo_config_budgets {
    struct mo_config_budget_list people, tokens;
};

struct mo_config_price { /* millionths for a million tokens */
    const char *name;    /* of a model; may end with `*` */
    int64_t input, output;
    int64_t cache_read, cache_write; /* 0: as input */
};

struct mo_config_prices {
    struct mo_config_price *v;
    size_t n;
};

struct mo_config_origin;

struct mo_config {
    struct mo_config_mcps mcp;
    struct mo_config_views views;
    struct mo_config_gateway gateway;
    struct mo_config_apps apps;
    struct mo_config_llm llm;
    struct mo_config_sandbox sandbox;
    struct mo_config_sessions sessions;
    struct mo_config_store store;
    struct mo_config_approvals approvals;
    struct mo_config_server server;
    struct mo_config_cluster cluster;
    struct mo_config_people people;
    struct mo_config_budgets budgets;
    struct mo_config_prices prices;
    struct mo_config_log log;
    struct mo_config_secrets secrets;
    struct mo_config_audit audit;
    struct mo_config_registry registry;
    struct mo_config_telemetry telemetry;

    uint64_t generation;  /* number of this load of the holder, from 1 */
    const char *file;     /* the file that was read, or NULL */
    struct mo_dotenv env; /* .env */
    char *const *environ; /* borrowed */
    int helper;           /* socket of the privileged helper of this process
                             (box/privileged_helper.h); 0: none */
    const struct mo_config_origin *origins; /* newest first */
};

/* --- the source of a value ----------------------------------------------- */

enum mo_layer {
    MO_LAYER_DEFAULT,
    MO_LAYER_FILE,
    MO_LAYER_DOTENV,
    MO_LAYER_ENV,
    MO_LAYER_FLAG
};

struct mo_config_origin {
    const struct mo_config_origin *next;
    const void *field; /* member of the mo_config */
    enum mo_layer layer;
    const char *name;   /* file, variable or flag */
    unsigned line, col; /* in a file; else 0 */
};

/* NULL: not given; a default of the table may apply. */
const struct mo_config_origin *mo_config_origin(const struct mo_config *c,
                                                const void *field);

/* --- problems ------------------------------------------------------------ */

struct mo_config_problem {
    bool warning;
    unsigned line, col;                 /* 0: not in a file */
    char text[MO_CONFIG_PROBLEM_BYTES]; /* "file:4:7: problem; advice" */
};

struct mo_config_report {
    unsigned errors, warnings; /* found; the array may have fewer */
    unsigned kept;
    struct mo_config_problem v[MO_CONFIG_PROBLEMS_MAX];
    /* Files that are there and were not used (config/trust.h). reason:
     * "not_confirmed", or "not_trusted" for owner and mode. */
    struct mo_config_untrusted {
        char path[PATH_MAX];
        const char *reason;
    } untrusted[2];
    unsigned nuntrusted;
};

/* --- loading ------------------------------------------------------------- */

struct mo_config_flag {
    const char *key;  /* "server.port" */
    const char *flag; /* "port", for messages */
    const char *value;
};

/* All pointers are borrowed for the life of the holder. */
struct mo_config_input {
    const char *file; /* --config, or NULL: search */
    const char *dir;  /* working directory, NULL: "." */
    bool trusts_dir;  /* its files need no confirmation: root has given
                         it (app/own_user.h), or a test */
    /* Use the home directory's file alone; nor that one. For a command that was
     * refused another file. */
    bool only_home, no_files;
    char *const *environ; /* NULL: empty */
    const struct mo_config_flag *flags;
    size_t nflags;

    /* For root and for a process that was root (app/own_user.h) */
    bool makes_system_dir; /* see state_dir.h */
    const char *state_dir; /* default of store.dir; NULL: state_dir.h */
    int helper;            /* becomes mo_config.helper */
    /* Reads a file that this user cannot read; out NULL: only its stamp.
     * NULL: nobody can. */
    int (*reopen)(void *ctx, const char *path, struct mo_buf *out,
                  struct mo_file_stamp *stamp, struct mo_err *e);
    void *ctx;
};

struct mo_config_holder {
    struct mo_config_input in;
    const struct mo_config *now;
    uint64_t generation;
    char path[PATH_MAX]; /* the file, or where it would be */
    bool named;          /* by --config or the environment */
    bool is_dirs;        /* it is the working directory's */
    bool uses_dotenv;    /* .env was confirmed */
    struct mo_file_stamp file, dotenv;
};

/* MO_EINVAL: the report has errors; or MO_ENOMEM, MO_EIO. e has one sentence
 * for the log. On failure h->now is NULL and nothing needs closing. */
int mo_config_open(struct mo_config_holder *h, const struct mo_config_input *in,
                   struct mo_config_report *rep, struct mo_err *e);
void mo_config_close(struct mo_config_holder *h);

/* Confirm the present files of the working directory (trust.h). record() is
 * called before each; if it fails, the file is not confirmed. */
int mo_config_allow(const struct mo_config_input *in,
                    int (*record)(void *ctx, const char *path,
                                  struct mo_span text, struct mo_err *e),
                    void *ctx, struct mo_err *e);
/* We have written the file ourselves: what is in it now counts as confirmed. */
int mo_config_written(const struct mo_config_holder *h, struct mo_err *e);

/* Reads all layers again. On failure h->now is unchanged. */
int mo_config_reload(struct mo_config_holder *h, struct mo_config_report *rep,
                     struct mo_err *e);
/* True if a file was changed, created or removed since the last (re)load,
 * successful or not. */
bool mo_config_stale(const struct mo_config_holder *h);

const struct mo_config *mo_config_ref(const struct mo_config *c);
void mo_config_unref(const struct mo_config *c); /* NULL is fine */

/* A variable of the environment, else of .env. An empty value counts as
 * unset. */
const char *mo_config_getenv(const struct mo_config *c, const char *name);
/* The variable of an environment; NULL also for an empty one, because compose
 * files often set empty ones. */
const char *mo_config_find_env(char *const *envp, const char *name);

/* Path of a file, or with NULL of the directory itself, in our directory below
 * the user's configuration directory; false and "" if that is unknown. */
bool mo_config_home(char *const *envp, const char *file, char out[PATH_MAX]);
/* The home of the person who owns the configuration, without links: HOME, or
 * that of the file's owner if it is somebody else. False: there is none. */
bool mo_config_owner_home(const struct mo_config *c, char out[PATH_MAX]);

/* Registers every literal secret with the log. MO_EBUSY: the log has too
 * many. */
int mo_config_hide(const struct mo_config *c, struct mo_log *log);

/* Calls fn for every text that may contain references, with its key's path
 * ("mcpServers.x.env.TOKEN"). Both are valid during the call. */
typedef void mo_config_text_fn(void *ctx, const char *path, const char *text);
void mo_config_texts(const struct mo_config *c, mo_config_text_fn *fn,
                     void *ctx);

/* Calls say once for each key, server or list that differs. restart: the
 * change takes effect after a restart. */
typedef void mo_config_diff_fn(void *ctx, const char *path, bool restart);
void mo_config_diff(const struct mo_config *a, const struct mo_config *b,
                    mo_config_diff_fn *say, void *ctx);

#endif
