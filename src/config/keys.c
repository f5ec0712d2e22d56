/* keys.c - the tables of the configuration keys; see keys.h. */
#include "codec/match.h"
#include "codec/tool_claims.h"
#include "config/rows.h"

/* --- words --------------------------------------------------------------- */

static const struct mo_key_word providers[] = {
    {"auto", MO_LLM_AUTO, false},       {"claude", MO_LLM_CLAUDE, false},
    {"anthropic", MO_LLM_CLAUDE, true}, {"gemini", MO_LLM_GEMINI, false},
    {"google", MO_LLM_GEMINI, true},    {"openai", MO_LLM_OPENAI, false},
    {"chatgpt", MO_LLM_OPENAI, true},   {"demo", MO_LLM_DEMO, false},
};
static const struct mo_key_word drivers[] = {
    {"auto", MO_DRIVER_AUTO, false},
    {"native", MO_DRIVER_NATIVE, false},
    {"docker", MO_DRIVER_DOCKER, false},
    {"none", MO_DRIVER_NONE, false},
};
static const struct mo_key_word transports[] = {
    {"auto", MO_TRANSPORT_AUTO, false},
    {"stdio", MO_TRANSPORT_STDIO, false},
    {"http", MO_TRANSPORT_HTTP, false},
    {"streamable-http", MO_TRANSPORT_HTTP, true},
    {"sse", MO_TRANSPORT_SSE, false},
    {"box", MO_TRANSPORT_BOX, false},
    {"stdio-docker", MO_TRANSPORT_BOX, true},
};
static const struct mo_key_word scopes[] = {
    {"shared", MO_SCOPE_SHARED, false},
    {"session", MO_SCOPE_SESSION, false},
};
static const struct mo_key_word actions[] = {
    {"ask", MO_ACTION_ASK, false},
    {"allow", MO_ACTION_ALLOW, false},
    {"deny", MO_ACTION_DENY, false},
};
static const struct mo_key_word formats[] = {
    {"auto", MO_FORMAT_AUTO, false},
    {"text", MO_FORMAT_TEXT, false},
    {"json", MO_FORMAT_JSON, false},
};

/* --- checks of texts ----------------------------------------------------- */

static bool starts_with_any(const char *s, const char *const *with, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        if (mo_span_starts(mo_span_cstr(s), mo_span_cstr(with[i])))
            return true;
    }
    return false;
}

/* Drivers can only cut a box off from the network. */
#define NETWORK                                                                \
    "must be \"none\": no driver can restrict a box to a list of hosts. Run "  \
    "a "                                                                       \
    "server that needs the network without 'sandbox', or use 'url'"

static const char *check_network(const char *s)
{
    return strcmp(s, "none") == 0 ? NULL : NETWORK;
}

static const char *check_http(const char *s)
{
    static const char *const ok[] = {"http://", "https://"};

    return starts_with_any(s, ok, MO_COUNT(ok))
               ? NULL
               : "must start with http:// or https://";
}

static const char *check_store(const char *s)
{
    static const char *const ok[] = {"sqlite:", "redis://", "rediss://",
                                     "redis+unix:"};

    return starts_with_any(s, ok, MO_COUNT(ok))
               ? NULL
               : "must be sqlite:FILE, redis://HOST:PORT, rediss://HOST:PORT "
                 "or redis+unix:SOCKET";
}

static const char *check_docker(const char *s)
{
    static const char *const ok[] = {"unix://", "tcp://", "http://",
                                     "https://"};

    return starts_with_any(s, ok, MO_COUNT(ok))
               ? NULL
               : "must be unix:///path/to/docker.sock or tcp://HOST:PORT";
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

/* --- rows ---------------------------------------------------------------- */

#define MIB_MAX  1048576.0 /* 1 TiB in MiB */
#define CPUS_MIN 0.01
#define CPUS_MAX 1024.0

static const struct mo_key mcp_rows[] = {
    {.name = "command",
     STR(mo_config_mcp, command),
     .check = check_not_empty,
     .doc = "Program to start; it speaks MCP on its standard input and "
            "output"},
    {.name = "args",
     LIST(mo_config_mcp, args),
     .doc = "Arguments of the program. Never put a secret here: other users "
            "can read a command line"},
    {.name = "env",
     MAP(mo_config_mcp, env),
     .flags = MO_KEY_REF | MO_KEY_SECRET,
     .doc = "Environment variables of the program. Apart from PATH, HOME, "
            "LANG and similar variables, it inherits none of ours"},
    {.name = "cwd",
     STR(mo_config_mcp, cwd),
     .check = check_not_empty,
     .doc = "Directory in which the program is started"},
    {.name = "url",
     STR(mo_config_mcp, url),
     .check = check_http,
     .flags = MO_KEY_REF | MO_KEY_URL,
     .doc = "Address of a remote MCP server"},
    {.name = "headers",
     MAP(mo_config_mcp, headers),
     .flags = MO_KEY_REF | MO_KEY_SECRET,
     .doc = "HTTP headers sent with every request to `url`"},
    {.name = "oauth",
     SECTION(mo_config_mcp, oauth, mo_config_oauth, mo_config_oauth_keys),
     .doc = "Sign-in at the server behind `url`"},
    {.name = "image",
     STR(mo_config_mcp, image),
     .check = check_not_empty,
     .doc = "Container image whose entry point is an MCP server"},
    {.name = "transport",
     WORD(mo_config_mcp, transport, transports),
     .def = "auto",
     .doc = "Protocol; `auto` chooses by which of `command`, `url` and "
            "`image` is set"},
    {.name = "type",
     WORD(mo_config_mcp, transport, transports),
     .flags = MO_KEY_ALIAS,
     .doc = "Alias of `transport`, used by other MCP clients"},
    {.name = "description",
     STR(mo_config_mcp, description),
     .doc = "Purpose of the server, in plain words; the router uses it"},
    {.name = "keywords",
     LIST(mo_config_mcp, keywords),
     .doc = "Words that should lead to this server; the router uses them"},
    {.name = "categories",
     LIST(mo_config_mcp, categories),
     .doc = "Kinds of the server; `list_capabilities` groups by them, the "
            "router uses them"},
    {.name = "tags",
     LIST(mo_config_mcp, tags),
     .doc = "Further labels; the router uses them"},
    {.name = "toolPrefix",
     STR(mo_config_mcp, tool_prefix),
     .doc = "Prefix of its tools' names, instead of the server's name; empty: "
            "no prefix"},
    {.name = "enabled",
     BOOL(mo_config_mcp, enabled),
     .def = "true",
     .doc = "`false`: the entry is kept but not used"},
    {.name = "scope",
     WORD(mo_config_mcp, scope, scopes),
     .def = "shared",
     .doc = "`shared`: one server for all sessions; `session`: one for each "
            "session"},
    {.name = "instances",
     INT(mo_config_mcp, instances, 1, 64),
     .def = "1",
     .doc = "Largest number of instances that run at once"},
    {.name = "timeoutMs",
     INT(mo_config_mcp, timeout_ms, 1, DAY_MS),
     .def = "60000",
     .doc = "Timeout of one request"},
    {.name = "startTimeoutMs",
     INT(mo_config_mcp, start_ms, 1, DAY_MS),
     .def = "30000",
     .doc = "Timeout of the start, until the server is ready"},
    {.name = "idleSeconds",
     INT(mo_config_mcp, idle_seconds, 0, 86400 * 7),
     .def = "300",
     .doc = "Time without use after which it is stopped; 0: never"},
    {.name = "fallback",
     LIST(mo_config_mcp, fallback),
     .doc = "Servers that replace it, in this order, while it is down: a call "
            "goes to their tool of the same name"},
    {.name = "retries",
     INT(mo_config_mcp, retries, 0, MO_KEY_RETRIES_MAX),
     .def = "1",
     .doc = "How often a call without an answer is repeated within "
            "`timeoutMs`, if the tool declares that this is safe"},
    {.name = "maxCalls",
     INT(mo_config_mcp, max_calls, 0, 100000),
     .def = "0",
     .doc = "Concurrent calls of a shared server, over all instances; further "
            "calls wait, and callers take turns; 0: limited by its "
            "connections only"},
    {.name = "resultBytes",
     INT(mo_config_mcp, result_bytes, -1, 1e9),
     .def = "-1",
     .doc = "A longer text of a result is cut after so many bytes and the "
            "rest is kept for `read_result`; 0: never; -1: 65536 where tools "
            "are run by `execute`, else never"},
    {.name = "tools",
     DICT(mo_config_mcp, tools, mo_config_tools, mo_config_tools_keys,
          MO_KEY_TOOLS_MAX),
     .flags = MO_KEY_TOOL,
     .doc =
         "Settings of single tools, by the names that the server gives them"},
    {.name = "sandbox",
     WORD(mo_config_mcp, sandbox, drivers),
     .def = "auto",
     .doc = "Driver of the box it runs in; `auto`: `sandbox.driver` for "
            "images, no box for commands"},
    {.name = "network",
     STR(mo_config_mcp, network),
     .check = check_network,
     .wrong = NETWORK,
     .doc = "Network of its box; only `none`, the default, is supported. Not "
            "allowed for servers without a box"},
    {.name = "memoryMb",
     INT(mo_config_mcp, memory_mb, 4, MIB_MAX),
     .doc = "Memory of its box; default: `sandbox.memoryMb`. For a command "
            "without a box: memory of each process, default: no limit"},
    {.name = "cpus",
     NUM(mo_config_mcp, cpus, CPUS_MIN, CPUS_MAX),
     .doc = "Processors of its box; default: `sandbox.cpus`"},
    {.name = "pids",
     INT(mo_config_mcp, pids, 1, 1000000),
     .doc = "Processes and threads in its box; default: `sandbox.pids`"},
};
static const struct mo_keys mcp_keys = KEYS(mcp_rows, struct mo_config_mcp);

#define API(var, who, key_env, url_env)                                        \
    static const struct mo_key var##_rows[] = {                                \
        {.name = "apiKey",                                                     \
         STR(mo_config_api, api_key),                                          \
         .flags = MO_KEY_REF | MO_KEY_SECRET,                                  \
         .env = key_env,                                                       \
         .doc = "API key of " who "; prefer a reference or the environment "   \
                "to the key itself"},                                          \
        {.name = "baseUrl",                                                    \
         STR(mo_config_api, base_url),                                         \
         .check = check_http,                                                  \
         .flags = MO_KEY_REF | MO_KEY_URL,                                     \
         .env = url_env,                                                       \
         .doc = "Other address of " who                                        \
                ", for example a gateway or a local model"},                   \
    };                                                                         \
    static const struct mo_keys var##_keys =                                   \
        KEYS(var##_rows, struct mo_config_api)

API(claude, "Claude", "ANTHROPIC_API_KEY", "ANTHROPIC_BASE_URL");
API(gemini, "Gemini", "GEMINI_API_KEY,GOOGLE_API_KEY",
    "GEMINI_BASE_URL,GOOGLE_GEMINI_BASE_URL");
API(openai, "OpenAI or a compatible service", "OPENAI_API_KEY",
    "OPENAI_BASE_URL");

static const struct mo_key llm_rows[] = {
    {.name = "provider",
     WORD(mo_config_llm, provider, providers),
     .def = "auto",
     .env = "LLM_PROVIDER",
     .doc = "Provider of the model; `auto`: the first that has a key, else a "
            "server at `llm.openai.baseUrl`, else the built-in demo"},
    {.name = "model",
     STR(mo_config_llm, model),
     .check = check_not_empty,
     .env = "LLM_MODEL",
     .doc = "Name of the model; default: the usual one of the provider, at "
            "`llm.openai.baseUrl` the first chat model of the server's list"},
    {.name = "systemPrompt",
     STR(mo_config_llm, system_prompt),
     .doc = "Instructions at the start of every conversation"},
    {.name = "maxOutputTokens",
     INT(mo_config_llm, max_output_tokens, 1, 10000000),
     .def = "8192",
     .env = "MAX_OUTPUT_TOKENS",
     .doc = "Longest answer of one model call"},
    {.name = "maxHistoryTokens",
     INT(mo_config_llm, max_history_tokens, 100, 100000000),
     .def = "30000",
     .env = "MAX_HISTORY_TOKENS",
     .doc = "Approximate size of the conversation that is sent to the model; "
            "older messages are replaced by a summary. If the context window "
            "of the model is known and smaller, it applies"},
    {.name = "maxSteps",
     INT(mo_config_llm, max_steps, 1, 1000),
     .def = "32",
     .doc = "Largest number of model calls in one turn"},
    {.name = "tools",
     WORD(mo_config_llm, tools, mo_config_exposures),
     .flags = MO_KEY_RESTART,
     .def = "auto",
     .doc = "Tools of the configured servers that the model gets, besides "
            "those of its box; `all`: every tool; `search`: four tools that "
            "find and run the others; `auto`: all if there are at most "
            "`gateway.few`, else `search`"},
    {.name = "timeoutMs",
     INT(mo_config_llm, timeout_ms, 1000, DAY_MS),
     .def = "600000",
     .doc = "Timeout of one model call"},
    {.name = "claude",
     SECTION(mo_config_llm, claude, mo_config_api, claude_keys),
     .doc = "Claude"},
    {.name = "gemini",
     SECTION(mo_config_llm, gemini, mo_config_api, gemini_keys),
     .doc = "Gemini"},
    {.name = "openai",
     SECTION(mo_config_llm, openai, mo_config_api, openai_keys),
     .doc = "OpenAI and compatible services"},
};
static const struct mo_keys llm_keys = KEYS(llm_rows, struct mo_config_llm);

static const struct mo_key sandbox_rows[] = {
    {.name = "driver",
     WORD(mo_config_sandbox, driver, drivers),
     .flags = MO_KEY_RESTART,
     .def = "auto",
     .doc = "Sandbox of a session's box; `auto`: native if the machine can "
            "enforce it, else Docker if an engine answers; `none`: no box"},
    {.name = "image",
     STR(mo_config_sandbox, image),
     .flags = MO_KEY_RESTART,
     .check = check_not_empty,
     .doc = "Image of boxes: a container image, or for native boxes a "
            "directory with an unpacked image; default: the image of this "
            "project, or for native boxes a view of this machine"},
    {.name = "memoryMb",
     INT(mo_config_sandbox, memory_mb, 16, MIB_MAX),
     .flags = MO_KEY_RESTART,
     .def = "512",
     .doc = "Memory of a box"},
    {.name = "cpus",
     NUM(mo_config_sandbox, cpus, CPUS_MIN, CPUS_MAX),
     .flags = MO_KEY_RESTART,
     .def = "0.5",
     .doc = "Processors of a box"},
    {.name = "pids",
     INT(mo_config_sandbox, pids, 4, 32768),
     .flags = MO_KEY_RESTART,
     .def = "128",
     .doc = "Processes and threads in a box"},
    {.name = "workspaceMb",
     INT(mo_config_sandbox, workspace_mb, 1, MIB_MAX),
     .flags = MO_KEY_RESTART,
     .def = "256",
     .doc = "Size of a box's workspace"},
    {.name = "warm",
     INT(mo_config_sandbox, warm, 0, 32),
     .flags = MO_KEY_RESTART,
     .def = "2",
     .doc = "Number of boxes kept ready for new sessions"},
    {.name = "dockerHost",
     STR(mo_config_sandbox, docker_host),
     .flags = MO_KEY_RESTART,
     .check = check_docker,
     .env = "DOCKER_HOST",
     .def = "unix:///var/run/docker.sock",
     .doc = "Address of the Docker (or podman) engine"},
};
static const struct mo_keys sandbox_keys =
    KEYS(sandbox_rows, struct mo_config_sandbox);

static const struct mo_key sessions_rows[] = {
    {.name = "idleMinutes",
     INT(mo_config_sessions, idle_minutes, 1, 525600),
     .def = "15",
     .doc = "Time without use after which a session loses its box; it is "
            "warned a minute before, and its conversation is kept"},
    {.name = "sweepSeconds",
     INT(mo_config_sessions, sweep_seconds, 1, 86400),
     .def = "60",
     .doc = "Interval of the search for idle sessions"},
    {.name = "historyTtlSeconds",
     INT(mo_config_sessions, history_ttl_seconds, 1, 3.2e9),
     .flags = MO_KEY_RESTART,
     .def = "86400",
     .env = "HISTORY_TTL_SECONDS",
     .doc = "How long a conversation is kept after its last message"},
    {.name = "max",
     INT(mo_config_sessions, max, 1, 1024),
     .def = "1000",
     .doc = "Largest number of open sessions in this process"},
};
static const struct mo_keys sessions_keys =
    KEYS(sessions_rows, struct mo_config_sessions);

static const struct mo_key store_rows[] = {
    {.name = "url",
     STR(mo_config_store, url),
     .check = check_store,
     .flags = MO_KEY_REF | MO_KEY_URL | MO_KEY_RESTART,
     .env = "REDIS_URL",
     .def = "sqlite:mcp-orchestrator.db",
     .doc = "Store of sessions and conversations: `sqlite:FILE` (in "
            "`store.dir`), `redis://[user:password@]host:port[/db]`, "
            "`rediss://` for TLS, or `redis+unix:SOCKET`"},
    {.name = "dir",
     STR(mo_config_store, dir),
     .check = check_not_empty,
     .flags = MO_KEY_RESTART,
     .env = "MCP_ORCHESTRATOR_STATE_DIR,STATE_DIRECTORY",
     .doc = "Directory of the database and caches; default: "
            "`$XDG_STATE_HOME/mcp-orchestrator`"},
};
static const struct mo_keys store_keys =
    KEYS(store_rows, struct mo_config_store);

static const struct mo_key rule_rows[] = {
    {.name = "tool",
     STR(mo_config_rule, tool),
     .check = check_not_empty,
     .doc = "Tool of the rule; `*` matches any characters"},
    {.name = "server",
     STR(mo_config_rule, server),
     .check = check_not_empty,
     .doc = "Server of the rule; `*` matches any characters"},
    {.name = "args",
     MAP(mo_config_rule, args),
     .check = check_condition,
     .doc = "Conditions on arguments, all of which must match: a path such as "
            "`path` or `items.*.name`, and a pattern (`docs/**`, `a|b`) or a "
            "condition (`<= 30`, `= text`, `! pattern`, `absent`)"},
    {.name = "annotations",
     LIST(mo_config_rule, annotations),
     .check = check_annotation,
     .doc = "Annotations that the server must claim for the tool: "
            "`readOnlyHint`, `!destructiveHint` and so on. They are claims, "
            "not facts"},
    {.name = "remember",
     BOOL(mo_config_rule, remember),
     .def = "true",
     .doc = "With `ask`: whether a person's answer may be remembered"},
    {.name = "action",
     WORD(mo_config_rule, action, actions),
     .def = "ask",
     .doc = "Decision of the rule"},
    {.name = "reason",
     STR(mo_config_rule, reason),
     .doc = "Shown to the person; sent to the model if the call is denied"},
};
static const struct mo_keys rule_keys = KEYS(rule_rows, struct mo_config_rule);

static const struct mo_key approvals_rows[] = {
    {.name = "default",
     WORD(mo_config_approvals, fallback, actions),
     .def = "ask",
     .doc = "Decision about calls that no rule matches"},
    {.name = "timeoutSeconds",
     INT(mo_config_approvals, timeout_seconds, 1, 86400 * 7),
     .def = "600",
     .doc = "Time after which an unanswered request for approval is denied"},
    {.name = "rules",
     ARRAY(mo_config_approvals, rules, mo_config_rules, rule_keys,
           MO_KEY_RULES_MAX),
     .doc = "Rules; the first that matches decides"},
};
static const struct mo_keys approvals_keys =
    KEYS(approvals_rows, struct mo_config_approvals);

static const struct mo_key log_rows[] = {
    {.name = "level",
     STR(mo_config_log, level),
     .check = check_levels,
     .env = "MCP_ORCHESTRATOR_LOG",
     .def = "info",
     .doc = "Log level: `error`, `warn`, `info`, `debug`, or per component as "
            "in `info,httpd=debug`"},
    {.name = "format",
     WORD(mo_config_log, format, formats),
     .def = "auto",
     .doc = "`auto`: text on a terminal, else one JSON object per line"},
};
static const struct mo_keys log_keys = KEYS(log_rows, struct mo_config_log);

static const struct mo_key root_rows[] = {
    {.name = "mcpServers",
     DICT(mo_config, mcp, mo_config_mcps, mcp_keys, MO_KEY_MCP_MAX),
     .doc = "MCP servers by name; each needs one of `command`, `url`, `image`"},
    {.name = "gateway",
     SECTION(mo_config, gateway, mo_config_gateway, mo_config_gateway_keys),
     .doc = "All MCP servers behind one: the command `gateway`, and `/mcp` of "
            "`serve`"},
    {.name = "llm",
     SECTION(mo_config, llm, mo_config_llm, llm_keys),
     .doc = "The language model"},
    {.name = "sandbox",
     SECTION(mo_config, sandbox, mo_config_sandbox, sandbox_keys),
     .doc = "The boxes in which tools run"},
    {.name = "sessions",
     SECTION(mo_config, sessions, mo_config_sessions, sessions_keys),
     .doc = "Sessions and their history"},
    {.name = "store",
     SECTION(mo_config, store, mo_config_store, store_keys),
     .doc = "Persistent state"},
    {.name = "approvals",
     SECTION(mo_config, approvals, mo_config_approvals, approvals_keys),
     .doc = "Tool calls that a person must approve"},
    {.name = "server",
     SECTION(mo_config, server, mo_config_server, mo_config_server_keys),
     .doc = "The web server"},
    {.name = "log",
     SECTION(mo_config, log, mo_config_log, log_keys),
     .doc = "The log on standard error"},
    {.name = "secrets",
     SECTION(mo_config, secrets, mo_config_secrets, mo_config_secrets_keys),
     .doc = "The secret store"},
    {.name = "audit",
     SECTION(mo_config, audit, mo_config_audit, mo_config_audit_keys),
     .doc = "The audit log"},
};
const struct mo_keys mo_config_keys = KEYS(root_rows, struct mo_config);
