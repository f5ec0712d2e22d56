/* keys.c - the tables of the configuration keys; see keys.h. */
#include "config/keys.h"
#include "codec/match.h"
#include "codec/tool_claims.h"
#include "egress/policy.h"
#include "mcp/app.h"
#include "mcp/oauth/oauth_back.h"
#include "trace/otlp.h"

/* --- macros for rows ----------------------------------------------------- */

/* T is the struct that the rows of a table describe. AT: offsetof, and a
 * compile error unless the member has the type CT. */
#define AT(m, CT)                                                              \
    (offsetof(struct T, m) + 0 * sizeof(_Generic(&((struct T *)0)->m, CT *     \
                                                 : (char)0)))

#define BOOL(m) .type = MO_KEY_BOOL, .off = AT(m, bool)
#define INT(m, lo, hi)                                                         \
    .type = MO_KEY_INT, .off = AT(m, int64_t), .min = (lo), .max = (hi)
#define NUM(m, lo, hi)                                                         \
    .type = MO_KEY_NUM, .off = AT(m, double), .min = (lo), .max = (hi)
#define MONEY(m, hi)                                                           \
    .type = MO_KEY_MONEY, .off = AT(m, int64_t), .min = 0, .max = (hi)
#define STR(m) .type = MO_KEY_STR, .off = AT(m, const char *)
#define WORD(m, w)                                                             \
    .type = MO_KEY_WORD, .off = AT(m, int), .words = (w), .nwords = MO_COUNT(w)
#define LIST(m)                                                                \
    .type = MO_KEY_LIST, .off = AT(m, struct mo_config_list),                  \
    .max_items = MO_KEY_ITEMS_MAX
#define MAP(m)                                                                 \
    .type = MO_KEY_MAP, .off = AT(m, struct mo_config_map),                    \
    .max_items = MO_KEY_ITEMS_MAX
#define SECTION(m, ST, s)                                                      \
    .type = MO_KEY_SECTION, .off = AT(m, struct ST), .sub = &(s)
#define DICT(m, ST, s, most)                                                   \
    .type = MO_KEY_DICT, .off = AT(m, struct ST), .sub = &(s),                 \
    .max_items = (most)
#define ARRAY(m, ST, s, most)                                                  \
    .type = MO_KEY_ARRAY, .off = AT(m, struct ST), .sub = &(s),                \
    .max_items = (most)
#define RESTART .flags = MO_KEY_RESTART
#define KEYS(rows)                                                             \
    {                                                                          \
        .v = (rows), .n = MO_COUNT(rows), .size = sizeof(struct T)             \
    }

static const char *check_not_empty(const char *s)
{
    return *s ? NULL : "must not be empty";
}

/* --- words --------------------------------------------------------------- */

static const struct mo_key_word providers[] = {
    {"auto", MO_LLM_AUTO},
    {"claude", MO_LLM_CLAUDE},
    {"anthropic", MO_LLM_CLAUDE, true},
    {"gemini", MO_LLM_GEMINI},
    {"google", MO_LLM_GEMINI, true},
    {"openai", MO_LLM_OPENAI},
    {"chatgpt", MO_LLM_OPENAI, true},
    {"demo", MO_LLM_DEMO},
};
static const struct mo_key_word drivers[] = {
    {"auto", MO_DRIVER_AUTO},     {"native", MO_DRIVER_NATIVE},
    {"docker", MO_DRIVER_DOCKER}, {"kubernetes", MO_DRIVER_KUBERNETES},
    {"none", MO_DRIVER_NONE},
};
static const struct mo_key_word volumes[] = {
    {"none", MO_VOLUMES_NONE},
    {"limited", MO_VOLUMES_LIMITED},
    {"unlimited", MO_VOLUMES_UNLIMITED},
};
static const struct mo_key_word pulls[] = {
    {"IfNotPresent", MO_PULL_IF_NOT_PRESENT},
    {"Always", MO_PULL_ALWAYS},
    {"Never", MO_PULL_NEVER},
};
static const struct mo_key_word transports[] = {
    {"auto", MO_TRANSPORT_AUTO},
    {"stdio", MO_TRANSPORT_STDIO},
    {"http", MO_TRANSPORT_HTTP},
    {"streamable-http", MO_TRANSPORT_HTTP, true},
    {"sse", MO_TRANSPORT_SSE},
    {"box", MO_TRANSPORT_BOX},
    {"stdio-docker", MO_TRANSPORT_BOX, true},
};
static const struct mo_key_word scopes[] = {
    {"shared", MO_SCOPE_SHARED},
    {"session", MO_SCOPE_SESSION},
};
static const struct mo_key_word grants[] = {
    {"sign-in", MO_GRANT_SIGN_IN},
    {"client-credentials", MO_GRANT_CLIENT},
    {"workload", MO_GRANT_WORKLOAD},
    {"enterprise", MO_GRANT_ENTERPRISE},
};
static const struct mo_key_word credentials[] = {
    {"shared", MO_CREDENTIALS_SHARED},
    {"user", MO_CREDENTIALS_USER},
    {"exchange", MO_CREDENTIALS_EXCHANGE},
};
static const struct mo_key_word eras[] = {
    {"auto", MO_SERVER_ERA_AUTO},
    {"modern", MO_SERVER_ERA_MODERN},
    {"legacy", MO_SERVER_ERA_LEGACY},
};
static const struct mo_key_word actions[] = {
    {"ask", MO_ACTION_ASK},
    {"allow", MO_ACTION_ALLOW},
    {"deny", MO_ACTION_DENY},
};
static const struct mo_key_word modes[] = {
    {"all", MO_MODES_ALL},
    {"reads", MO_MODES_READS},
    {"box", MO_MODES_BOX},
    {"none", MO_MODES_NONE},
};
static const struct mo_key_word webhook_calls[] = {
    {"team", MO_WEBHOOK_TEAM},
    {"all", MO_WEBHOOK_ALL},
};
static const struct mo_key_word approvers[] = {
    {"auto", MO_APPROVER_AUTO},
    {"operator", MO_APPROVER_OPERATOR},
    {"owner", MO_APPROVER_OWNER},
    {"client", MO_APPROVER_CLIENT},
};
static const struct mo_key_word formats[] = {
    {"auto", MO_FORMAT_AUTO},
    {"text", MO_FORMAT_TEXT},
    {"json", MO_FORMAT_JSON},
};
static const struct mo_key_word titles[] = {
    {"rule", MO_TITLES_RULE},
    {"model", MO_TITLES_MODEL},
};

static const struct mo_key_word images[] = {
    {"auto", MO_IMAGES_AUTO},
    {"always", MO_IMAGES_ALWAYS},
    {"never", MO_IMAGES_NEVER},
};
static const struct mo_key_word exposures[] = {
    {"all", MO_GW_ALL},
    {"search", MO_GW_SEARCH},
    {"code", MO_GW_CODE},
    {"auto", MO_GW_AUTO},
};
static const struct mo_key_word view_exposures[] = {
    {"gateway", MO_GW_EXPOSE_SAME}, {"all", MO_GW_ALL},
    {"search", MO_GW_SEARCH},       {"code", MO_GW_CODE},
    {"auto", MO_GW_AUTO},
};
static const struct mo_key_word roles[] = {
    {"viewer", MO_ROLE_VIEWER},
    {"user", MO_ROLE_USER},
    {"approver", MO_ROLE_APPROVER},
    {"operator", MO_ROLE_OPERATOR},
};
static const struct mo_key_word prefixes[] = {
    {"collision", MO_GW_PREFIX_COLLISION},
    {"always", MO_GW_PREFIX_ALWAYS},
    {"never", MO_GW_PREFIX_NEVER},
};
static const struct mo_key_word gateway_approvals[] = {
    {"rules", MO_GW_BY_RULES},
    {"ask", MO_GW_ASK_REST},
    {"off", MO_GW_NO_RULES},
};

static const struct mo_key_word otlp_protocols[] = {
    {"http/protobuf", MO_OTLP_PROTOBUF},
    {"http/json", MO_OTLP_JSON},
};

/* --- checks of texts ----------------------------------------------------- */

/* kinds: prefixes with a blank between. */
static bool starts_with(const char *s, const char *kinds)
{
    struct mo_span rest = mo_span_cstr(kinds);

    while (rest.p)
        if (mo_span_starts(mo_span_cstr(s), mo_span_cut(&rest, ' ')))
            return true;
    return false;
}

static const char *check_http(const char *s)
{
    return starts_with(s, "http:// https://")
               ? NULL
               : "must start with http:// or https://";
}

static const char *check_https(const char *s)
{
    return starts_with(s, "https://") ? NULL : "must start with https://";
}

static const char *check_store(const char *s)
{
    return starts_with(s, "sqlite: redis:// rediss:// redis+sentinel:// "
                          "rediss+sentinel:// redis+unix:")
               ? NULL
               : "must be sqlite:FILE, redis://HOST:PORT, rediss://HOST:PORT, "
                 "redis+sentinel://HOST:PORT/MASTER or redis+unix:SOCKET";
}

static const char *check_docker(const char *s)
{
    return starts_with(s, "unix:// tcp:// http:// https://")
               ? NULL
               : "must be unix:///path/to/docker.sock or tcp://HOST:PORT";
}

/* The places that secrets/key.c can read a key from. */
static const char *check_place(const char *s)
{
    return starts_with(s, "file: env: keyring:") && strchr(s, ':')[1]
               ? NULL
               : "must be file:PATH, env:NAME or keyring:NAME";
}

/* As audit/audit_anchor.h takes them. */
static const char *check_anchor(const char *s)
{
    return strcmp(s, "syslog") == 0 || starts_with(s, "file:/")
               ? NULL
               : "must be syslog or file:/PATH";
}

static const char *check_levels(const char *s)
{
    struct mo_log l = {.fd = -1};

    return mo_log_levels(&l, mo_span_cstr(s), NULL) < 0
               ? "must be error, warn, info or debug, or levels per component "
                 "as in \"info,httpd=debug\""
               : NULL;
}

static const char *check_condition(const char *s)
{
    if (mo_match_check(MO_SPAN("x"), mo_span_cstr(s), NULL) == 0)
        return NULL;
    return "must be a pattern, or a condition such as \"<= 30\", \"= text\", "
           "\"! pattern\" or \"absent\"";
}

static const char *check_annotation(const char *s)
{
    return mo_claim_bit(mo_span_cstr(*s == '!' ? s + 1 : s))
               ? NULL
               : "must be readOnlyHint, destructiveHint, idempotentHint or "
                 "openWorldHint, with or without a ! before it";
}

/* As gateway/catalog/filter.h reads them. */
static const char *check_tool_pattern(const char *s)
{
    const char *at = *s == '!' ? s + 1 : s;
    const char *slash = strchr(at, '/');

    return slash && slash > at && slash[1]
               ? NULL
               : "must be SERVER/TOOL with * and ? for other characters, and "
                 "a ! before it to leave tools out";
}

/* RFC 6749: visible ASCII except quote and backslash, separated by blanks. */
static const char *check_scope(const char *s)
{
    for (const char *p = s; *p; p++) {
        if (*p < ' ' || *p > '~' || *p == '"' || *p == '\\')
            return "must be scopes with blanks between";
    }
    return check_not_empty(s);
}

/* An address or a name; the port is a separate key. */
static const char *check_listen(const char *s)
{
    struct mo_span v = mo_span_cstr(s);
    bool v6 = mo_span_search(v, MO_SPAN("::")) >= 0 || v.p[0] == '[';

    if (v.n == 0 || mo_span_find(v, ' ') >= 0)
        return "must be an address such as 127.0.0.1, ::1 or 0.0.0.0";
    if (!v6 && mo_span_find(v, ':') >= 0 &&
        !mo_span_starts(v, MO_SPAN("unix:")))
        return "must be an address without a port (the port is server.port)";
    return NULL;
}

/* As mo_listen() takes it, but no unix socket: it is for other machines. */
static const char *check_host_port(const char *s)
{
    const char *colon = strrchr(s, ':');
    uint64_t port;

    return colon && colon > s && !starts_with(s, "unix:") &&
                   !strpbrk(s, " /") &&
                   mo_span_u64(mo_span_cstr(colon + 1), &port) == 0 &&
                   port <= 65535
               ? NULL
               : "must be HOST:PORT, such as 0.0.0.0:8788 or [::]:8788";
}

static const char *check_app_domain(const char *s)
{
    return mo_app_is_domain(s) ? NULL
                               : "must be * or a domain such as "
                                 "https://api.example.com or *.example.com";
}

static const char *check_app_origin(const char *s)
{
    bool ok = (starts_with(s, "https://") || starts_with(s, "http://")) &&
              mo_app_is_domain(s) && !strchr(s, '*');

    return ok ? NULL : "must be an origin such as https://apps.example.net";
}

static const char *check_host(const char *s)
{
    return *s && !starts_with(s, "unix:") && !strpbrk(s, " /")
               ? NULL
               : "must be HOST:PORT or HOST";
}

/* --- rows ---------------------------------------------------------------- */

#define DAY_MS   86400000.0
#define MIB_MAX  1048576.0 /* 1 TiB in MiB */
#define CPUS_MIN 0.01
#define CPUS_MAX 1024.0

#define T mo_config_idp
static const struct mo_key idp_rows[] = {
    {.name = "tokenEndpoint", STR(token_endpoint), .check = check_http},
    {.name = "clientId",
     STR(client_id),
     .check = check_not_empty,
     .flags = MO_KEY_REF},
    {.name = "clientSecret",
     STR(client_secret),
     .check = check_not_empty,
     .flags = MO_KEY_REF | MO_KEY_SECRET},
};
static const struct mo_keys idp_keys = KEYS(idp_rows);
#undef T

#define T mo_config_oauth
static const struct mo_key oauth_rows[] = {
    {.name = "enabled", BOOL(enabled), .def = "true"},
    {.name = "clientId",
     STR(client_id),
     .check = check_not_empty,
     .flags = MO_KEY_REF},
    {.name = "clientSecret",
     STR(client_secret),
     .check = check_not_empty,
     .flags = MO_KEY_REF | MO_KEY_SECRET},
    {.name = "clientMetadataUrl", STR(client_url), .check = check_https},
    {.name = "issuer", STR(issuer), .check = check_http},
    {.name = "scope", STR(scope), .check = check_scope},
    {.name = "redirectUri",
     STR(redirect),
     .check = mo_back_check,
     .def = MO_BACK_URI},
    {.name = "signInSeconds", INT(sign_in_seconds, 1, 86400), .def = "300"},
    {.name = "grant", WORD(grant, grants), .def = "sign-in"},
    {.name = "privateKey",
     STR(private_key),
     .check = check_not_empty,
     .flags = MO_KEY_REF | MO_KEY_SECRET},
    {.name = "assertionFile", STR(assertion_file), .check = check_not_empty},
    {.name = "identityProvider", SECTION(idp, mo_config_idp, idp_keys)},
};
static const struct mo_keys oauth_keys = KEYS(oauth_rows);
#undef T

#define T mo_config_exchange
static const struct mo_key exchange_rows[] = {
    {.name = "url", STR(url), .check = check_http},
    {.name = "clientId",
     STR(client_id),
     .check = check_not_empty,
     .flags = MO_KEY_REF},
    {.name = "clientSecret",
     STR(client_secret),
     .check = check_not_empty,
     .flags = MO_KEY_REF | MO_KEY_SECRET},
    {.name = "audience", STR(audience), .check = check_not_empty},
    {.name = "scope", STR(scope), .check = check_scope},
};
static const struct mo_keys exchange_keys = KEYS(exchange_rows);
#undef T

#define T mo_config_tool
static const struct mo_key tools_rows[] = {
    {.name = "rename", STR(rename), .check = check_not_empty},
    {.name = "describe", STR(describe), .check = check_not_empty},
    {.name = "hide", BOOL(hide), .def = "false"},
    {.name = "timeoutMs", INT(timeout_ms, 0, DAY_MS), .def = "0"},
    {.name = "idempotent", BOOL(idempotent), .def = "false"},
    {.name = "retries", INT(retries, -1, MO_KEY_RETRIES_MAX), .def = "-1"},
    {.name = "resultBytes", INT(result_bytes, -1, 1e9), .def = "-1"},
    {.name = "fallback", LIST(fallback), .check = check_not_empty},
};
static const struct mo_keys tools_keys = KEYS(tools_rows);
#undef T

#define T mo_config_inject
static const struct mo_key inject_rows[] = {
    {.name = "", MAP(headers), .flags = MO_KEY_REF | MO_KEY_SECRET},
};
static const struct mo_keys inject_keys = KEYS(inject_rows);
#undef T

#define T mo_config_network
#define NETWORK(var, more)                                                     \
    static const struct mo_key var##_rows[] = {                                \
        {.name = "allow", LIST(allow), .flags = (more)},                       \
        {.name = "ask", BOOL(ask), .flags = (more), .def = "false"},           \
        {.name = "inject",                                                     \
         DICT(inject, mo_config_injects, inject_keys, MO_EGRESS_INJECT_MAX),   \
         .flags = (more) | MO_KEY_HOST},                                       \
        {.name = "maxConnections",                                             \
         INT(max_connections, 1, MO_EGRESS_CONNECTIONS_MAX),                   \
         .flags = (more),                                                      \
         .def = "128"},                                                        \
        {.name = "maxMegabytes",                                               \
         INT(max_megabytes, 1, MIB_MAX),                                       \
         .flags = (more),                                                      \
         .def = "10240"},                                                      \
        {.name = "idleSeconds",                                                \
         INT(idle_seconds, 1, 86400 * 7),                                      \
         .flags = (more),                                                      \
         .def = "900"},                                                        \
        {.name = "maxSeconds",                                                 \
         INT(max_seconds, 1, 86400 * 366),                                     \
         .flags = (more),                                                      \
         .def = "86400"},                                                      \
    };                                                                         \
    static const struct mo_keys var##_keys = KEYS(var##_rows)

NETWORK(network, 0);
NETWORK(session_network, MO_KEY_RESTART);
#undef T

#define T mo_config_mcp
static const struct mo_key mcp_rows[] = {
    {.name = "command", STR(command), .check = check_not_empty},
    {.name = "args", LIST(args)},
    {.name = "env", MAP(env), .flags = MO_KEY_REF | MO_KEY_SECRET},
    {.name = "cwd", STR(cwd), .check = check_not_empty},
    {.name = "url",
     STR(url),
     .check = check_http,
     .flags = MO_KEY_REF | MO_KEY_URL},
    {.name = "headers", MAP(headers), .flags = MO_KEY_REF | MO_KEY_SECRET},
    {.name = "oauth", SECTION(oauth, mo_config_oauth, oauth_keys)},
    {.name = "exchange", SECTION(exchange, mo_config_exchange, exchange_keys)},
    {.name = "credentials", WORD(credentials, credentials), .def = "shared"},
    {.name = "image", STR(image), .check = check_not_empty},
    {.name = "transport", WORD(transport, transports), .def = "auto"},
    {.name = "type", WORD(transport, transports), .flags = MO_KEY_ALIAS},
    {.name = "description", STR(description)},
    {.name = "keywords", LIST(keywords)},
    {.name = "categories", LIST(categories)},
    {.name = "tags", LIST(tags)},
    {.name = "toolPrefix", STR(tool_prefix)},
    {.name = "enabled", BOOL(enabled), .def = "true"},
    {.name = "scope", WORD(scope, scopes), .def = "shared"},
    {.name = "instances", INT(instances, 1, 64), .def = "1"},
    {.name = "timeoutMs", INT(timeout_ms, 1, DAY_MS), .def = "60000"},
    {.name = "startTimeoutMs", INT(start_ms, 1, DAY_MS), .def = "30000"},
    {.name = "installTimeoutMs", INT(install_ms, 1, DAY_MS), .def = "300000"},
    {.name = "era", WORD(era, eras), .def = "auto"},
    {.name = "idleSeconds", INT(idle_seconds, 0, 86400 * 7), .def = "300"},
    {.name = "fallback", LIST(fallback)},
    {.name = "retries", INT(retries, 0, MO_KEY_RETRIES_MAX), .def = "1"},
    {.name = "maxCalls", INT(max_calls, 0, 100000), .def = "0"},
    {.name = "callsPerMinute", INT(calls_per_minute, 0, 1e6), .def = "0"},
    {.name = "resultBytes", INT(result_bytes, -1, 1e9), .def = "-1"},
    {.name = "tools",
     DICT(tools, mo_config_tools, tools_keys, MO_KEY_TOOLS_MAX),
     .flags = MO_KEY_TOOL},
    {.name = "sandbox", WORD(sandbox, drivers), .def = "auto"},
    {.name = "network",
     SECTION(network, mo_config_network, network_keys),
     .flags = MO_KEY_NONE},
    {.name = "mounts", LIST(mounts.given)},
    {.name = "workspace", BOOL(workspace), .def = "false"},
    {.name = "isolate", BOOL(isolate), .def = "true"},
    {.name = "memoryMb", INT(memory_mb, 4, MIB_MAX)},
    {.name = "cpus", NUM(cpus, CPUS_MIN, CPUS_MAX)},
    {.name = "pids", INT(pids, 1, 1000000)},
};
static const struct mo_keys mcp_keys = KEYS(mcp_rows);
#undef T

#define T mo_config_api
#define API(var, key_env, url_env)                                             \
    static const struct mo_key var##_rows[] = {                                \
        {.name = "apiKey",                                                     \
         STR(api_key),                                                         \
         .flags = MO_KEY_REF | MO_KEY_SECRET,                                  \
         .env = (key_env)},                                                    \
        {.name = "baseUrl",                                                    \
         STR(base_url),                                                        \
         .check = check_http,                                                  \
         .flags = MO_KEY_REF | MO_KEY_URL,                                     \
         .env = (url_env)},                                                    \
    };                                                                         \
    static const struct mo_keys var##_keys = KEYS(var##_rows)

API(claude, "ANTHROPIC_API_KEY", "ANTHROPIC_BASE_URL");
API(gemini, "GEMINI_API_KEY,GOOGLE_API_KEY",
    "GEMINI_BASE_URL,GOOGLE_GEMINI_BASE_URL");
API(openai, "OPENAI_API_KEY", "OPENAI_BASE_URL");
#undef T

#define T mo_config_llm
static const struct mo_key llm_rows[] = {
    {.name = "provider",
     WORD(provider, providers),
     .def = "auto",
     .env = "LLM_PROVIDER"},
    {.name = "model", STR(model), .check = check_not_empty, .env = "LLM_MODEL"},
    {.name = "systemPrompt", STR(system_prompt)},
    {.name = "maxOutputTokens",
     INT(max_output_tokens, 1, 10000000),
     .def = "8192",
     .env = "MAX_OUTPUT_TOKENS"},
    {.name = "maxHistoryTokens",
     INT(max_history_tokens, 100, 100000000),
     .def = "30000",
     .env = "MAX_HISTORY_TOKENS"},
    {.name = "maxSteps", INT(max_steps, 1, 1000), .def = "32"},
    {.name = "tools", WORD(tools, exposures), RESTART, .def = "auto"},
    {.name = "images", WORD(images, images), .def = "auto"},
    {.name = "titles", WORD(titles, titles), .def = "rule"},
    {.name = "timeoutMs", INT(timeout_ms, 1000, DAY_MS), .def = "600000"},
    {.name = "editable", BOOL(editable)},
    {.name = "claude", SECTION(claude, mo_config_api, claude_keys)},
    {.name = "gemini", SECTION(gemini, mo_config_api, gemini_keys)},
    {.name = "openai", SECTION(openai, mo_config_api, openai_keys)},
};
static const struct mo_keys llm_keys = KEYS(llm_rows);
#undef T

#define T mo_config_kubernetes
static const struct mo_key kubernetes_rows[] = {
    {.name = "kubeconfig", STR(kubeconfig), RESTART, .check = check_not_empty},
    {.name = "context", STR(context), RESTART, .check = check_not_empty},
    {.name = "namespace", STR(ns), RESTART, .check = check_not_empty},
    {.name = "image", STR(image), RESTART, .check = check_not_empty},
    {.name = "pullPolicy",
     WORD(pull_policy, pulls),
     RESTART,
     .def = "IfNotPresent"},
    {.name = "pullSecret", STR(pull_secret), RESTART, .check = check_not_empty},
    {.name = "runtimeClass",
     STR(runtime_class),
     RESTART,
     .check = check_not_empty},
    {.name = "nodeSelector", MAP(node_selector), RESTART},
    {.name = "claims", BOOL(claims), RESTART, .def = "false"},
    {.name = "storageClass",
     STR(storage_class),
     RESTART,
     .check = check_not_empty},
};
static const struct mo_keys kubernetes_keys = KEYS(kubernetes_rows);
#undef T

#define T mo_config_sandbox
static const struct mo_key sandbox_rows[] = {
    {.name = "driver", WORD(driver, drivers), RESTART, .def = "auto"},
    {.name = "image", STR(image), RESTART, .check = check_not_empty},
    {.name = "memoryMb", INT(memory_mb, 16, MIB_MAX), RESTART, .def = "512"},
    {.name = "cpus", NUM(cpus, CPUS_MIN, CPUS_MAX), RESTART, .def = "0.5"},
    {.name = "pids", INT(pids, 4, 32768), RESTART, .def = "128"},
    {.name = "workspaceMb",
     INT(workspace_mb, 1, MIB_MAX),
     RESTART,
     .def = "256"},
    {.name = "keepFiles", BOOL(keep_files), RESTART, .def = "true"},
    {.name = "network",
     SECTION(network, mo_config_network, session_network_keys),
     .flags = MO_KEY_NONE},
    {.name = "mounts", LIST(mounts.given), RESTART},
    {.name = "warm", INT(warm, 0, 32), RESTART, .def = "2"},
    {.name = "dockerVolumes",
     WORD(docker_volumes, volumes),
     RESTART,
     .def = "limited"},
    {.name = "dockerHost",
     STR(docker_host),
     RESTART,
     .check = check_docker,
     .env = "DOCKER_HOST",
     .def = "unix:///var/run/docker.sock"},
    {.name = "kubernetes",
     SECTION(kubernetes, mo_config_kubernetes, kubernetes_keys)},
};
static const struct mo_keys sandbox_keys = KEYS(sandbox_rows);
#undef T

#define T mo_config_sessions
static const struct mo_key sessions_rows[] = {
    {.name = "idleMinutes", INT(idle_minutes, 1, 525600), .def = "15"},
    {.name = "sweepSeconds", INT(sweep_seconds, 1, 86400), .def = "60"},
    {.name = "historyTtlSeconds",
     INT(history_ttl_seconds, 1, 3.2e9),
     RESTART,
     .def = "86400",
     .env = "HISTORY_TTL_SECONDS"},
    {.name = "max", INT(max, 1, 1024), .def = "1000"},
};
static const struct mo_keys sessions_keys = KEYS(sessions_rows);
#undef T

#define T mo_config_store
static const struct mo_key store_rows[] = {
    {.name = "url",
     STR(url),
     .check = check_store,
     .flags = MO_KEY_REF | MO_KEY_URL | MO_KEY_RESTART,
     .env = "REDIS_URL",
     .def = "sqlite:mcp-orchestrator.db"},
    {.name = "dir",
     STR(dir),
     .check = check_not_empty,
     RESTART,
     .env = "MCP_ORCHESTRATOR_STATE_DIR,STATE_DIRECTORY"},
    {.name = "replicas", INT(replicas, 0, 16), RESTART, .def = "0"},
};
static const struct mo_keys store_keys = KEYS(store_rows);
#undef T

#define T mo_config_rule
static const struct mo_key rule_rows[] = {
    {.name = "tool", STR(tool), .check = check_not_empty},
    {.name = "server", STR(server), .check = check_not_empty},
    {.name = "args", MAP(args), .check = check_condition},
    {.name = "annotations", LIST(annotations), .check = check_annotation},
    {.name = "remember", BOOL(remember), .def = "true"},
    {.name = "approver", WORD(approver, approvers), .def = "auto"},
    {.name = "approvers", LIST(approvers), .check = check_not_empty},
    {.name = "approvals", INT(approvals, 1, MO_KEY_PERSONS_MAX), .def = "1"},
    {.name = "fourEyes", BOOL(four_eyes), .def = "false"},
    {.name = "action", WORD(action, actions), .def = "ask"},
    {.name = "reason", STR(reason)},
};
static const struct mo_keys rule_keys = KEYS(rule_rows);
#undef T

#define T mo_config_webhook
static const struct mo_key webhook_rows[] = {
    {.name = "url",
     STR(url),
     .check = check_http,
     .flags = MO_KEY_REF | MO_KEY_URL},
    {.name = "secret",
     STR(secret),
     .check = check_not_empty,
     .flags = MO_KEY_REF | MO_KEY_SECRET},
    {.name = "calls", WORD(calls, webhook_calls), .def = "team"},
    {.name = "arguments", BOOL(arguments), .def = "false"},
    {.name = "private", BOOL(private_net), .def = "false"},
};
static const struct mo_keys webhook_keys = KEYS(webhook_rows);
#undef T

#define T mo_config_approvals
static const struct mo_key approvals_rows[] = {
    {.name = "default", WORD(fallback, actions), .def = "ask"},
    {.name = "timeoutSeconds",
     INT(timeout_seconds, 1, 86400 * 7),
     .def = "600"},
    {.name = "modes", WORD(modes, modes), .def = "all"},
    {.name = "rules",
     ARRAY(rules, mo_config_rules, rule_keys, MO_KEY_RULES_MAX)},
    {.name = "webhooks",
     ARRAY(webhooks, mo_config_webhooks, webhook_keys, MO_KEY_WEBHOOKS_MAX)},
};
static const struct mo_keys approvals_keys = KEYS(approvals_rows);
#undef T

#define T mo_config_view
static const struct mo_key view_rows[] = {
    {.name = "description", STR(description)},
    {.name = "servers",
     LIST(servers),
     .check = check_not_empty,
     .flags = MO_KEY_FILLED},
    {.name = "tools",
     LIST(tools),
     .check = check_tool_pattern,
     .flags = MO_KEY_FILLED},
    {.name = "readOnly", BOOL(read_only), .def = "false"},
    {.name = "expose", WORD(expose, view_exposures), .def = "gateway"},
    {.name = "rules",
     ARRAY(rules, mo_config_rules, rule_keys, MO_KEY_RULES_MAX)},
    {.name = "callsPerMinute", INT(calls_per_minute, 0, 1e6), .def = "0"},
    {.name = "role", WORD(role, roles), .def = "user"},
    {.name = "people",
     LIST(people),
     .check = check_not_empty,
     .flags = MO_KEY_FILLED},
};
static const struct mo_keys view_keys = KEYS(view_rows);
#undef T

#define T mo_config_log
static const struct mo_key log_rows[] = {
    {.name = "level",
     STR(level),
     .check = check_levels,
     .env = "MCP_ORCHESTRATOR_LOG",
     .def = "info"},
    {.name = "format", WORD(format, formats), .def = "auto"},
};
static const struct mo_keys log_keys = KEYS(log_rows);
#undef T

#define T mo_config_embeddings
static const struct mo_key embeddings_rows[] = {
    {.name = "url",
     STR(url),
     .check = check_http,
     .flags = MO_KEY_REF | MO_KEY_URL | MO_KEY_RESTART},
    {.name = "model", STR(model), RESTART, .def = "nomic-embed-text"},
    {.name = "apiKey",
     STR(api_key),
     .flags = MO_KEY_REF | MO_KEY_SECRET | MO_KEY_RESTART},
    {.name = "timeoutMs", INT(timeout_ms, 10, 10000), RESTART, .def = "300"},
};
static const struct mo_keys embeddings_keys = KEYS(embeddings_rows);
#undef T

#define T mo_config_scripts
static const struct mo_key scripts_rows[] = {
    {.name = "enabled", BOOL(enabled), .def = "false"},
    {.name = "max", INT(max, 1, 128), .def = "8"},
    {.name = "maxSeconds", INT(max_seconds, 1, 86400), .def = "300"},
    {.name = "memoryMb", INT(memory_mb, 16, MIB_MAX)},
};
static const struct mo_keys scripts_keys = KEYS(scripts_rows);
#undef T

#define T mo_config_gateway
static const struct mo_key gateway_rows[] = {
    {.name = "expose", WORD(expose, exposures), RESTART, .def = "all"},
    {.name = "few", INT(few, 1, 10000), RESTART, .def = "25"},
    {.name = "processes", INT(processes, 1, 10000), RESTART, .def = "256"},
    {.name = "prefix", WORD(prefix, prefixes), RESTART, .def = "collision"},
    {.name = "approvals", WORD(approvals, gateway_approvals), .def = "rules"},
    {.name = "embeddings",
     SECTION(embeddings, mo_config_embeddings, embeddings_keys)},
    {.name = "scripts", SECTION(scripts, mo_config_scripts, scripts_keys)},
};
static const struct mo_keys gateway_keys = KEYS(gateway_rows);
#undef T

#define T mo_config_apps
static const struct mo_key apps_rows[] = {
    {.name = "enabled", BOOL(enabled), RESTART, .def = "true"},
    {.name = "domains", LIST(domains), .check = check_app_domain},
    {.name = "origin", STR(origin), RESTART, .check = check_app_origin},
};
static const struct mo_keys apps_keys = KEYS(apps_rows);
#undef T

#define T mo_config_audit
static const struct mo_key audit_rows[] = {
    {.name = "arguments", BOOL(arguments), .def = "false"},
    {.name = "maxMb", INT(max_mb, 1, 4096), RESTART, .def = "64"},
    {.name = "files", INT(files, 2, 1000), RESTART, .def = "16"},
    {.name = "keepDays", INT(keep_days, 0, 36500), RESTART, .def = "0"},
    {.name = "anchor", STR(anchor), RESTART, .check = check_anchor},
};
static const struct mo_keys audit_keys = KEYS(audit_rows);
#undef T

#define T mo_config_telemetry
static const struct mo_key telemetry_rows[] = {
    {.name = "endpoint",
     STR(endpoint),
     .check = check_http,
     .flags = MO_KEY_REF | MO_KEY_URL | MO_KEY_RESTART,
     .env = "OTEL_EXPORTER_OTLP_ENDPOINT"},
    {.name = "protocol",
     WORD(protocol, otlp_protocols),
     RESTART,
     .def = "http/protobuf"},
    {.name = "headers",
     MAP(headers),
     .flags = MO_KEY_REF | MO_KEY_SECRET | MO_KEY_RESTART},
    {.name = "traces", BOOL(traces), RESTART, .def = "true"},
    {.name = "metrics", BOOL(metrics), RESTART, .def = "false"},
    {.name = "metricsSeconds", INT(metrics_s, 1, 3600), RESTART, .def = "60"},
    {.name = "logs", BOOL(logs), RESTART, .def = "false"},
    {.name = "sample", NUM(sample, 0, 1), RESTART, .def = "1"},
    {.name = "parentsPerSecond", INT(forced, 0, 1000000), RESTART, .def = "50"},
    {.name = "serviceName",
     STR(service),
     RESTART,
     .check = check_not_empty,
     .def = "mcp-orchestrator",
     .env = "OTEL_SERVICE_NAME"},
    {.name = "resourceAttributes",
     STR(attributes),
     RESTART,
     .env = "OTEL_RESOURCE_ATTRIBUTES"},
};
static const struct mo_keys telemetry_keys = KEYS(telemetry_rows);
#undef T

#define T mo_config_secrets
static const struct mo_key secrets_rows[] = {
    {.name = "key", STR(key), .check = check_place},
};
static const struct mo_keys secrets_keys = KEYS(secrets_rows);
#undef T

#define T mo_config_registry
static const struct mo_key registry_rows[] = {
    {.name = "url",
     STR(url),
     .check = check_http,
     .flags = MO_KEY_URL,
     .env = "MCP_REGISTRY_URL",
     .def = "https://registry.modelcontextprotocol.io"},
};
static const struct mo_keys registry_keys = KEYS(registry_rows);
#undef T

#define T mo_config_tls
static const struct mo_key tls_rows[] = {
    {.name = "cert", STR(cert), .check = check_not_empty, RESTART},
    {.name = "key", STR(key), .check = check_not_empty, RESTART},
};
static const struct mo_keys tls_keys = KEYS(tls_rows);
#undef T

#define T mo_config_limits
static const struct mo_key limits_rows[] = {
    {.name = "connections", INT(connections, 1, 1000000), .def = "4096"},
    {.name = "connectionsPerPeer", INT(per_peer, 0, 1000000), .def = "0"},
    {.name = "headMs", INT(head_ms, 1, DAY_MS), .def = "10000"},
    {.name = "bodyMs", INT(body_ms, 1, DAY_MS), .def = "30000"},
    {.name = "idleMs", INT(idle_ms, 1, DAY_MS), .def = "75000"},
    {.name = "sendMs", INT(send_ms, 1, DAY_MS), .def = "30000"},
    {.name = "requests", INT(requests, 1, 1e9), .def = "100000"},
    {.name = "bodyBytes", INT(body_bytes, 1024, 1e9), .def = "4194304"},
    {.name = "queueBytes", INT(queue_bytes, 65536, 1e9), .def = "4194304"},
};
static const struct mo_keys limits_keys = KEYS(limits_rows);
#undef T

#define T mo_config_server
static const struct mo_key server_rows[] = {
    {.name = "listen",
     STR(listen),
     .check = check_listen,
     RESTART,
     .env = "MCP_ORCHESTRATOR_LISTEN",
     .def = "127.0.0.1"},
    {.name = "port",
     INT(port, 0, 65535),
     RESTART,
     .env = "PORT",
     .def = "3000"},
    {.name = "user", STR(user), .check = check_not_empty, RESTART},
    {.name = "workers",
     INT(workers, 1, MO_CONFIG_WORKERS_MAX),
     RESTART,
     .def = "1"},
    {.name = "drainSeconds", INT(drain_s, 0, 600), RESTART, .def = "0"},
    {.name = "token",
     STR(token),
     .flags = MO_KEY_REF | MO_KEY_SECRET,
     .check = check_not_empty,
     .env = "MCP_ORCHESTRATOR_TOKEN"},
    {.name = "tokens",
     MAP(tokens),
     .flags = MO_KEY_REF | MO_KEY_SECRET,
     .check = check_not_empty},
    {.name = "origins", LIST(origins)},
    {.name = "manage", BOOL(manage)},
    {.name = "shareLinks", BOOL(share_links)},
    {.name = "tls", SECTION(tls, mo_config_tls, tls_keys)},
    {.name = "limits", SECTION(limits, mo_config_limits, limits_keys)},
};
static const struct mo_keys server_keys = KEYS(server_rows);
#undef T

#define T mo_config_cluster
static const struct mo_key cluster_rows[] = {
    {.name = "listen",
     STR(listen),
     .check = check_host_port,
     .flags = MO_KEY_REF | MO_KEY_RESTART,
     .env = "MCP_ORCHESTRATOR_CLUSTER_LISTEN"},
    {.name = "address",
     STR(address),
     .check = check_host,
     .flags = MO_KEY_REF | MO_KEY_RESTART,
     .env = "MCP_ORCHESTRATOR_CLUSTER_ADDRESS"},
    {.name = "key",
     STR(key),
     .check = check_not_empty,
     .flags = MO_KEY_REF | MO_KEY_SECRET | MO_KEY_RESTART,
     .env = "MCP_ORCHESTRATOR_CLUSTER_KEY"},
};
static const struct mo_keys cluster_keys = KEYS(cluster_rows);
#undef T

#define T mo_config_provider
static const struct mo_key provider_rows[] = {
    {.name = "title", STR(title), .check = check_not_empty},
    {.name = "issuer", STR(issuer), .check = check_http},
    {.name = "clientId",
     STR(client_id),
     .check = check_not_empty,
     .flags = MO_KEY_REF},
    {.name = "clientSecret",
     STR(client_secret),
     .check = check_not_empty,
     .flags = MO_KEY_REF | MO_KEY_SECRET},
    {.name = "terminalClientId",
     STR(terminal_client),
     .check = check_not_empty},
    {.name = "scopes", LIST(scopes), .check = check_scope},
    {.name = "nameClaim",
     STR(name_claim),
     .check = check_not_empty,
     .def = "sub"},
    {.name = "groupsClaim",
     STR(groups_claim),
     .check = check_not_empty,
     .def = "groups"},
    {.name = "audiences", LIST(audiences), .check = check_not_empty},
    {.name = "requiredScopes", LIST(needs_scopes), .check = check_scope},
    {.name = "introspect", BOOL(introspect), .def = "false"},
};
static const struct mo_keys provider_keys = KEYS(provider_rows);
#undef T

#define T mo_config_roles
static const struct mo_key roles_rows[] = {
    {.name = "viewer", LIST(viewer), .check = check_not_empty},
    {.name = "user", LIST(user), .check = check_not_empty},
    {.name = "approver", LIST(approver), .check = check_not_empty},
    {.name = "operator", LIST(op), .check = check_not_empty},
};
static const struct mo_keys roles_keys = KEYS(roles_rows);
#undef T

#define T mo_config_people
static const struct mo_key people_rows[] = {
    {.name = "url", STR(url), .check = check_http},
    {.name = "providers",
     DICT(providers, mo_config_providers, provider_keys, MO_KEY_PROVIDERS_MAX)},
    {.name = "roles", SECTION(roles, mo_config_roles, roles_keys)},
    {.name = "renewSeconds", INT(renew_s, 10, 43200), .def = "3600"},
};
static const struct mo_keys people_keys = KEYS(people_rows);
#undef T

#define T mo_config_budget
static const struct mo_key budget_rows[] = {
    {.name = "callsPerMinute", INT(calls, 0, 1e6), .def = "0"},
    {.name = "boxes", INT(boxes, 0, 1e6), .def = "0"},
    {.name = "turns", INT(turns, 0, 1e6), .def = "0"},
    {.name = "tokensPerDay", INT(tokens, 0, 1e12), .def = "0"},
    {.name = "moneyPerDay", MONEY(money, 1e9), .def = "0"},
};
static const struct mo_keys budget_keys = KEYS(budget_rows);
#undef T

#define T mo_config_budgets
static const struct mo_key budgets_rows[] = {
    {.name = "people",
     DICT(people, mo_config_budget_list, budget_keys, MO_KEY_BUDGETS_MAX),
     .flags = MO_KEY_ANY},
    {.name = "tokens",
     DICT(tokens, mo_config_budget_list, budget_keys, MO_KEY_BUDGETS_MAX),
     .flags = MO_KEY_ANY},
};
static const struct mo_keys budgets_keys = KEYS(budgets_rows);
#undef T

#define T mo_config_price
static const struct mo_key price_rows[] = {
    {.name = "input", MONEY(input, 1e6), .def = "0"},
    {.name = "output", MONEY(output, 1e6), .def = "0"},
    {.name = "cacheRead", MONEY(cache_read, 1e6), .def = "0"},
    {.name = "cacheWrite", MONEY(cache_write, 1e6), .def = "0"},
};
static const struct mo_keys price_keys = KEYS(price_rows);
#undef T

#define T mo_config
static const struct mo_key root_rows[] = {
    {.name = "mcpServers", DICT(mcp, mo_config_mcps, mcp_keys, MO_KEY_MCP_MAX)},
    {.name = "views",
     DICT(views, mo_config_views, view_keys, MO_KEY_VIEWS_MAX)},
    {.name = "gateway", SECTION(gateway, mo_config_gateway, gateway_keys)},
    {.name = "apps", SECTION(apps, mo_config_apps, apps_keys)},
    {.name = "llm", SECTION(llm, mo_config_llm, llm_keys)},
    {.name = "sandbox", SECTION(sandbox, mo_config_sandbox, sandbox_keys)},
    {.name = "sessions", SECTION(sessions, mo_config_sessions, sessions_keys)},
    {.name = "store", SECTION(store, mo_config_store, store_keys)},
    {.name = "approvals",
     SECTION(approvals, mo_config_approvals, approvals_keys)},
    {.name = "server", SECTION(server, mo_config_server, server_keys)},
    {.name = "cluster", SECTION(cluster, mo_config_cluster, cluster_keys)},
    {.name = "people", SECTION(people, mo_config_people, people_keys)},
    {.name = "budgets", SECTION(budgets, mo_config_budgets, budgets_keys)},
    {.name = "prices",
     DICT(prices, mo_config_prices, price_keys, MO_KEY_PRICES_MAX),
     .flags = MO_KEY_ANY},
    {.name = "log", SECTION(log, mo_config_log, log_keys)},
    {.name = "secrets", SECTION(secrets, mo_config_secrets, secrets_keys)},
    {.name = "audit", SECTION(audit, mo_config_audit, audit_keys)},
    {.name = "registry", SECTION(registry, mo_config_registry, registry_keys)},
    {.name = "telemetry",
     SECTION(telemetry, mo_config_telemetry, telemetry_keys)},
};
const struct mo_keys mo_config_keys = KEYS(root_rows);
#undef T
