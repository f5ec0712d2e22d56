#include "config/config.h"

#include <errno.h>
#include <sys/stat.h>
#include <unistd.h>

#include "codec/json/json.h"
#include "config/doc.h"
#include "config/keys.h"
#include "mo_test.h"

/* --- a directory with files, and a load from there ----------------------- */

struct place {
    char dir[64];
    struct mo_config_input in;
    struct mo_config_holder h;
    struct mo_config_report rep;
    struct mo_err e;
};

static void put(struct place *p, const char *name, const char *text)
{
    char path[256];
    FILE *f;

    (void)snprintf(path, sizeof(path), "%s/%s", p->dir, name);
    f = fopen(path, "w");
    assert_non_null(f);
    assert_int_equal(fwrite(text, 1, strlen(text), f), strlen(text));
    assert_int_equal(fclose(f), 0);
}

static void drop(struct place *p, const char *name)
{
    char path[256];

    (void)snprintf(path, sizeof(path), "%s/%s", p->dir, name);
    (void)unlink(path);
}

static void enter(struct place *p)
{
    memset(p, 0, sizeof(*p));
    (void)snprintf(p->dir, sizeof(p->dir), "/tmp/mo-config-XXXXXX");
    assert_non_null(mkdtemp(p->dir));
    p->in.dir = p->dir;
    p->in.trusts_dir = true;
}

static void leave(struct place *p)
{
    static const char *const names[] = {".env", MO_CONFIG_FILE, "other.json",
                                        "mcp-orchestrator/config.json"};

    for (size_t i = 0; i < MO_COUNT(names); i++)
        drop(p, names[i]);
    {
        char sub[256];

        (void)snprintf(sub, sizeof(sub), "%s/mcp-orchestrator", p->dir);
        (void)rmdir(sub);
    }
    assert_int_equal(rmdir(p->dir), 0);
}

static int load(struct place *p)
{
    return mo_config_open(&p->h, &p->in, &p->rep, &p->e);
}

/* --- what the file can say ----------------------------------------------- */

static const char whole[] =
    "{\n"
    "  \"$schema\": \"x.json\",\n"
    "  \"mcpServers\": {\n"
    "    \"comfyui\": { \"command\": \"python\", \"args\": [\"-m\", \"m\"],\n"
    "      \"env\": {\"URL\": \"http://localhost:8188\"}, \"cwd\": \"/srv\",\n"
    "      \"description\": \"images\", \"keywords\": [\"logo\"],\n"
    "      \"instances\": 2, \"timeoutMs\": 5, \"fallback\": [\"remote\"] },\n"
    "    \"remote\": { \"url\": \"https://host/mcp\", \"type\": \"sse\",\n"
    "      \"headers\": {\"Authorization\": \"Bearer ${secret:remote}\"} },\n"
    "    \"boxed\": { \"image\": \"my:1\", \"sandbox\": \"docker\",\n"
    "      \"memoryMb\": 64, \"cpus\": 0.25, \"enabled\": false }\n"
    "  },\n"
    "  \"llm\": { \"provider\": \"Anthropic\", \"model\": \"m-1\" },\n"
    "  \"approvals\": { \"default\": \"deny\", \"rules\": [\n"
    "    {\"tool\": \"read_*\", \"action\": \"allow\"}, {\"server\": \"x\"}] "
    "},\n"
    "  \"server\": { \"port\": 8080, \"listen\": \"::1\" },\n"
    "  \"log\": { \"level\": \"info,httpd=debug\" }\n"
    "}\n";

static void test_whole_file(void **state)
{
    const struct mo_config_mcp *m;
    const struct mo_config *c;
    struct place p;

    (void)state;
    enter(&p);
    put(&p, MO_CONFIG_FILE, whole);
    assert_int_equal(load(&p), 0);
    c = p.h.now;
    assert_int_equal(c->mcp.n, 3);
    m = &c->mcp.v[0];
    assert_string_equal(m->name, "comfyui");
    assert_string_equal(m->command, "python");
    assert_string_equal(m->args.v[1], "m");
    assert_string_equal(m->env.v[0].value, "http://localhost:8188");
    assert_string_equal(m->fallback.v[0], "remote");
    assert_int_equal(m->instances, 2);
    assert_int_equal(m->timeout_ms, 5);
    assert_true(m->enabled);
    assert_int_equal(c->mcp.v[1].transport, MO_TRANSPORT_SSE);
    assert_string_equal(c->mcp.v[1].headers.v[0].value,
                        "Bearer ${secret:remote}");
    assert_int_equal(c->mcp.v[1].timeout_ms, 60000);
    assert_false(c->mcp.v[2].enabled);
    assert_true(c->mcp.v[2].cpus == 0.25);
    assert_int_equal(c->mcp.v[2].sandbox, MO_DRIVER_DOCKER);
    assert_int_equal(c->llm.provider, MO_LLM_CLAUDE);
    assert_int_equal(c->approvals.fallback, MO_ACTION_DENY);
    assert_int_equal(c->approvals.rules.n, 2);
    assert_int_equal(c->approvals.rules.v[0].action, MO_ACTION_ALLOW);
    assert_int_equal(c->approvals.rules.v[1].action, MO_ACTION_ASK);
    assert_int_equal(c->server.port, 8080);
    assert_int_equal(c->generation, 1);
    mo_config_close(&p.h);
    leave(&p);
}

static void test_defaults(void **state)
{
    char *env[] = {(char[]){"HOME=/h"}, NULL};
    const struct mo_config *c;
    struct place p;

    (void)state;
    enter(&p);
    p.in.environ = env;
    assert_int_equal(load(&p), 0);
    c = p.h.now;
    assert_null(c->file);
    assert_int_equal(c->server.port, 3000);
    assert_string_equal(c->server.listen, "127.0.0.1");
    assert_null(c->server.token);
    assert_int_equal(c->llm.max_output_tokens, 8192);
    assert_int_equal(c->llm.max_history_tokens, 30000);
    assert_int_equal(c->sessions.history_ttl_seconds, 86400);
    assert_int_equal(c->sessions.idle_minutes, 15);
    assert_int_equal(c->sandbox.memory_mb, 512);
    assert_true(c->sandbox.cpus == 0.5);
    assert_string_equal(c->store.url, "sqlite:mcp-orchestrator.db");
    assert_string_equal(c->store.dir, "/h/.local/state/mcp-orchestrator");
    assert_int_equal(c->approvals.fallback, MO_ACTION_ASK);
    mo_config_close(&p.h);
    leave(&p);
}

static void relative_state_dir_becomes_absolute(void **state)
{
    char *env[] = {(char[]){"HOME=/h"},
                   (char[]){"MCP_ORCHESTRATOR_STATE_DIR=there/deep"}, NULL};
    char cwd[PATH_MAX];
    char want[PATH_MAX + 16];
    struct place p;

    (void)state;
    assert_non_null(getcwd(cwd, sizeof(cwd)));
    (void)snprintf(want, sizeof(want), "%s/there/deep", cwd);
    enter(&p);
    p.in.environ = env;
    assert_int_equal(load(&p), 0);
    assert_string_equal(p.h.now->store.dir, want);
    mo_config_close(&p.h);
    leave(&p);
}

/* --- mistakes, each with its exact text ---------------------------------- */

static const struct {
    const char *name, *json, *says;
} bad[] = {
    {"unknown key", "{\"sandbox\": {\n  \"memoryMB\": 1}}",
     ":2:3: unknown key 'sandbox.memoryMB'; did you mean 'memoryMb'?"},
    {"unknown and far", "{\"zzzzzz\": 1}", ":1:2: unknown key 'zzzzzz'"},
    {"known elsewhere", "{\"port\": 1}",
     "unknown key 'port'; did you mean 'server.port'?"},
    {"inside a server", "{\"mcpServers\":{\"a\":{\"comand\":\"x\"}}}",
     "unknown key 'mcpServers.a.comand'; did you mean 'command'?"},
    {"$schema only at the top", "{\"llm\":{\"$schema\":\"x\"}}",
     "unknown key 'llm.$schema'"},
    {"int is text", "{\"server\":{\"port\":\"80\"}}",
     ":1:19: 'server.port' must be a whole number from 0 to 65535"},
    {"int has a fraction", "{\"server\":{\"port\":80.5}}", "whole number"},
    {"int too big", "{\"server\":{\"port\":65536}}", "from 0 to 65535"},
    {"int negative", "{\"server\":{\"port\":-1}}", "from 0 to 65535"},
    {"int huge", "{\"server\":{\"port\":99999999999999999999}}",
     "whole number"},
    {"num too small", "{\"sandbox\":{\"cpus\":0}}",
     "'sandbox.cpus' must be a number from 0.01 to 1024"},
    {"num overflows", "{\"sandbox\":{\"cpus\":1e999}}", "must be a number"},
    {"bool is 1",
     "{\"mcpServers\":{\"a\":{\"url\":\"http://x\",\"enabled\":1}}}",
     "'mcpServers.a.enabled' must be true or false"},
    {"text is null", "{\"llm\":{\"model\":null}}",
     "'llm.model' must be a text in double quotes"},
    {"text has NUL", "{\"llm\":{\"model\":\"a\\u0000b\"}}", "NUL"},
    {"text is empty", "{\"llm\":{\"model\":\"\"}}", "must not be empty"},
    {"wrong word", "{\"sandbox\":{\"driver\":\"dokcer\"}}",
     "must be one of auto, native, docker, kubernetes, none; did you mean "
     "'docker'?"},
    {"word is a number", "{\"sandbox\":{\"driver\":1}}", "must be one of auto"},
    {"section is a list", "{\"llm\":[]}", "'llm' must be an object: { ... }"},
    {"servers are a list", "{\"mcpServers\":[]}",
     "'mcpServers' must be an obj"},
    {"rules are an object", "{\"approvals\":{\"rules\":{}}}",
     "'approvals.rules' must be a list: [ ... ]"},
    {"rule about nothing", "{\"approvals\":{\"rules\":[{}]}}",
     "'approvals.rules.1' needs 'tool' or 'server'"},
    {"view with a blank in its name", "{\"views\":{\"a b\":{}}}",
     "'views.a b': a name has 1 to 64 letters"},
    {"view of an unknown server",
     "{\"views\":{\"v\":{\n\"servers\":[\"nope\"]}}}",
     ":2:1: 'views.v.servers': there is no server 'nope'"},
    {"view without servers", "{\"views\":{\"v\":{\"servers\":\n[]}}}",
     ":2:1: 'views.v.servers' must not be empty; leave it out"},
    {"view with a bad pattern",
     "{\"views\":{\"v\":{\"tools\":[\"!*/a\",\n\"read\"]}}}",
     ":2:1: 'views.v.tools' entry 2: must be SERVER/TOOL"},
    {"view with an empty tool", "{\"views\":{\"v\":{\"tools\":[\"a/\"]}}}",
     "must be SERVER/TOOL"},
    {"pattern of an unknown server",
     "{\"views\":{\"v\":{\"tools\":[\"!nope/a\"]}}}",
     "'views.v.tools': there is no server 'nope'"},
    {"pattern of another server",
     "{\"mcpServers\":{\"a\":{\"url\":\"http://x\"},\"b\":{\"url\":"
     "\"http://x\"}},\"views\":{\"v\":{\"servers\":[\"a\"],\"tools\":"
     "[\"b/*\"]}}}",
     "'views.v.tools': the server 'b' is not in 'servers'"},
    {"rule of a view about nothing", "{\"views\":{\"v\":{\"rules\":[{}]}}}",
     "'views.v.rules.1' needs 'tool' or 'server'"},
    {"rules of a view that cannot apply",
     "{\"gateway\":{\"approvals\":\"off\"},\"views\":{\"v\":{\"rules\":["
     "{\"tool\":\"*\"}]}}}",
     "'views.v.rules' has no effect while 'gateway.approvals' is off"},
    {"unknown role", "{\"views\":{\"v\":{\"role\":\"oper\"}}}",
     "must be one of viewer, user, approver, operator"},
    {"unknown key of a view", "{\"views\":{\"v\":{\"server\":[]}}}",
     "unknown key 'views.v.server'; did you mean 'servers'?"},
    {"args hold a number",
     "{\"mcpServers\":{\"a\":{\"command\":\"x\",\"args\":[\"y\",\n 3]}}}",
     ":2:2: 'mcpServers.a.args' entry 2: must be a text"},
    {"env holds a number",
     "{\"mcpServers\":{\"a\":{\"command\":\"x\",\"env\":{\"A\":1}}}}",
     "'mcpServers.a.env' 'A': must be a text"},
    {"env name with equals",
     "{\"mcpServers\":{\"a\":{\"command\":\"x\",\"env\":{\"A=B\":\"1\"}}}}",
     "must have names without blanks"},
    {"header name with newline",
     "{\"mcpServers\":{\"a\":{\"url\":\"http://x\",\"headers\":{\"A\\nB\":"
     "\"1\"}}}}",
     "must have names without blanks"},
    {"env twice",
     "{\"mcpServers\":{\"a\":{\"command\":\"x\",\"env\":{\"A\":\"1\",\"A\":"
     "\"2\"}}}}",
     "must not have 'A' twice"},
    {"key twice", "{\"llm\":{\"model\":\"a\",\"model\":\"b\"}}",
     "'llm.model' is given twice"},
    {"key twice by escape", "{\"llm\":{\"model\":\"a\",\"mod\\u0065l\":\"b\"}}",
     "'llm.model' is given twice"},
    {"section twice", "{\"llm\":{},\"llm\":{}}", "'llm' is given twice"},
    {"server twice",
     "{\"mcpServers\":{\"a\":{\"url\":\"http://x\"},\"a\":{\"url\":"
     "\"http://y\"}}}",
     "'mcpServers.a' is given twice"},
    {"alias and name",
     "{\"mcpServers\":{\"a\":{\"url\":\"http://x\",\"type\":\"sse\","
     "\"transport\":\"sse\"}}}",
     "is given twice"},
    {"server without anything", "{\"mcpServers\":{\"a\":{}}}",
     "'mcpServers.a' needs one of 'command', 'url' or 'image'"},
    {"server with too much",
     "{\"mcpServers\":{\"a\":{\"url\":\"http://x\",\"command\":\"y\"}}}",
     "has 'url' and 'command'"},
    {"transport does not fit",
     "{\"mcpServers\":{\"a\":{\"url\":\"http://x\",\"transport\":\"stdio\"}}}",
     "'mcpServers.a.transport' needs 'command'"},
    {"bad server name", "{\"mcpServers\":{\"a b\":{\"url\":\"http://x\"}}}",
     "'mcpServers.a b': a name has 1 to 64 letters"},
    {"empty server name", "{\"mcpServers\":{\"\":{\"url\":\"http://x\"}}}",
     "a name has 1 to 64 letters"},
    {"fallback to itself",
     "{\"mcpServers\":{\"a\":{\"url\":\"http://x\",\"fallback\":[\"a\"]}}}",
     "names the server itself"},
    {"fallback to nobody",
     "{\"mcpServers\":{\"a\":{\"url\":\"http://x\",\"fallback\":[\"b\"]}}}",
     "there is no server 'b'"},
    {"bad url", "{\"mcpServers\":{\"a\":{\"url\":\"ftp://x\"}}}",
     "'mcpServers.a.url' must start with http:// or https://"},
    {"bad store", "{\"store\":{\"url\":\"mysql://x\"}}", "must be sqlite:FILE"},
    {"listen has a port", "{\"server\":{\"listen\":\"1.2.3.4:80\"}}",
     "without a port"},
    {"tls without key", "{\"server\":{\"tls\":{\"cert\":\"x\"}}}",
     "'server.tls' needs both 'cert' and 'key'"},
    {"a cluster without a key", "{\"cluster\":{\"listen\":\"1.2.3.4:1\"}}",
     "'cluster.listen' needs 'cluster.key'"},
    {"a cluster at every address", "{\"cluster\":{\"listen\":\"0.0.0.0:1\"}}",
     "'cluster.address' must say"},
    {"a cluster on SQLite", "{\"cluster\":{\"listen\":\"1.2.3.4:1\"}}",
     "set 'store.url' to Redis"},
    {"a cluster without a port", "{\"cluster\":{\"listen\":\"1.2.3.4\"}}",
     "'cluster.listen' must be HOST:PORT"},
    {"a cluster at a unix socket", "{\"cluster\":{\"listen\":\"unix:x:1\"}}",
     "'cluster.listen' must be HOST:PORT"},
    {"a cluster that does not listen", "{\"cluster\":{\"address\":\"a\"}}",
     "'cluster' needs 'listen'"},
    {"a network of no box",
     "{\"mcpServers\":{\"a\":{\"command\":\"x\",\"network\":\"none\"}}}",
     "'mcpServers.a.network' is only for servers in a box"},
    {"a network that is a word", "{\"sandbox\":{\"network\":\"all\"}}",
     "'sandbox.network' must be \"none\" or an object"},
    {"a network that is a list", "{\"sandbox\":{\"network\":[\"a.org\"]}}",
     "'sandbox.network' must be \"none\" or an object"},
    {"a network with a wrong host",
     "{\"sandbox\":{\"network\":{\"allow\":[\"a.org\",\"https://b\"]}}}",
     "'sandbox.network': 'https://b': write HOST or HOST:PORT"},
    {"inject for a host that is not allowed",
     "{\"sandbox\":{\"network\":{\"allow\":[\"a.org\"],\"inject\":{\"b.org\":"
     "{\"A\":\"b\"}}}}}",
     "'sandbox.network': inject: 'b.org' is not allowed"},
    {"inject without allow",
     "{\"sandbox\":{\"network\":{\"inject\":{\"b.org\":{\"A\":\"b\"}}}}}",
     "'sandbox.network.inject': its hosts must be in 'allow'"},
    {"inject that is a text",
     "{\"sandbox\":{\"network\":{\"allow\":[\"a.org\"],\"inject\":{\"a.org\":"
     "\"b\"}}}}",
     "'sandbox.network.inject.a.org' must be an object of texts"},
    {"inject with a bad reference",
     "{\"sandbox\":{\"network\":{\"allow\":[\"a.org\"],\"inject\":{\"a.org\":"
     "{\"A\":\"${what:b}\"}}}}}",
     "has an unknown reference"},
    {"a network with an unknown key",
     "{\"sandbox\":{\"network\":{\"alow\":[]}}}",
     "unknown key 'sandbox.network.alow'; did you mean 'allow'?"},
    {"bad level", "{\"log\":{\"level\":\"loud\"}}",
     "'log.level' must be error"},
    {"old style reference",
     "{\"llm\":{\"claude\":{\"apiKey\":\"${ANTHROPIC_API_KEY}\"}}}",
     "did you mean '${env:ANTHROPIC_API_KEY}'?"},
    {"secret on a command line",
     "{\"mcpServers\":{\"a\":{\"command\":\"x\",\"args\":[\"${secret:k}\"]}}}",
     "must not refer to a secret"},
    {"comment", "{\n// no\n}", ":2:1: not JSON: "},
    {"comment hint", "{\n# no\n}", "JSON has no comments"},
    {"comment hint too", "{\"llm\":{} /* no */}", "JSON has no comments"},
    {"last comma", "{\"llm\":{},\n}", "no comma after the last entry"},
    {"single quotes", "{'llm':{}}", "double quotes"},
    {"byte order mark", "\xef\xbb\xbf{}", "byte order mark"},
    {"empty", "", "the file is empty"},
    {"blank", " \n ", "the file is empty"},
    {"cut off", "{\"llm\":", "not JSON"},
    {"not an object", "[1]", ":1:1: the configuration must be an object"},
    {"deep",
     "[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[]]]]]]]]]]]]]]]]]]]]]]]]]]]]]"
     "]"
     "]]]]]]]]]]]]]]",
     "not JSON"},
    {"control characters in a key", "{\"a\\u001bb\\n\":1}",
     "unknown key 'a?b?'"},
};

static bool says(const struct mo_config_report *rep, const char *text)
{
    for (unsigned i = 0; i < rep->kept; i++) {
        if (strstr(rep->v[i].text, text))
            return true;
    }
    return false;
}

static void test_bad(void **state)
{
    struct place p;

    (void)state;
    enter(&p);
    for (size_t i = 0; i < MO_COUNT(bad); i++) {
        put(&p, MO_CONFIG_FILE, bad[i].json);
        check_row(bad[i].name, load(&p) == MO_EINVAL);
        check_row(bad[i].name, !p.h.now);
        check_row(bad[i].name, p.rep.errors >= 1);
        if (!says(&p.rep, bad[i].says))
            fail_msg("row '%s': says '%s'", bad[i].name, p.rep.v[0].text);
        check_row(bad[i].name, strstr(p.rep.v[0].text, MO_CONFIG_FILE ":"));
        mo_config_close(&p.h);
    }
    leave(&p);
}

/* Rows of `bad` that are good after all but one letter is right. */
static const struct {
    const char *name, *json;
} fine[] = {
    {"nothing", "{}"},
    {"empty sections",
     "{\"llm\":{},\"mcpServers\":{},\"server\":{\"tls\":{}}}"},
    {"word in any case", "{\"llm\":{\"provider\":\"ChatGPT\"}}"},
    {"dollar text in args",
     "{\"mcpServers\":{\"a\":{\"command\":\"sh\",\"args\":[\"-c\",\"echo "
     "${HOME}\"]}}}"},
    {"literal key in env",
     "{\"mcpServers\":{\"a\":{\"command\":\"x\",\"env\":{\"K\":\"sk-1\"}}}}"},
    {"escaped reference",
     "{\"mcpServers\":{\"a\":{\"command\":\"x\",\"env\":{\"K\":\"$${A}\"}}}}"},
    {"url is a reference", "{\"mcpServers\":{\"a\":{\"url\":\"${env:U}\"}}}"},
    {"image and command",
     "{\"mcpServers\":{\"a\":{\"image\":\"i\",\"command\":\"c\"}}}"},
    {"v6 with brackets", "{\"server\":{\"listen\":\"[::1]\"}}"},
    {"unix socket", "{\"server\":{\"listen\":\"unix:/run/x\"}}"},
};

static void test_fine(void **state)
{
    struct place p;

    (void)state;
    enter(&p);
    for (size_t i = 0; i < MO_COUNT(fine); i++) {
        put(&p, MO_CONFIG_FILE, fine[i].json);
        if (load(&p) != 0)
            fail_msg("row '%s': %s", fine[i].name, p.e.msg);
        mo_config_close(&p.h);
    }
    leave(&p);
}

static void test_all_mistakes_at_once(void **state)
{
    struct mo_buf text;
    struct place p;

    (void)state;
    enter(&p);
    mo_buf_init(&text, 1 << 16);
    mo_buf_puts(&text, "{\n\"wrong\": 1");
    for (int i = 0; i < 29; i++)
        mo_buf_printf(&text, ",\n\"wrong%d\": 1", i);
    mo_buf_puts(&text, "}\n");
    put(&p, MO_CONFIG_FILE, mo_buf_cstr(&text));
    assert_int_equal(load(&p), MO_EINVAL);
    assert_int_equal(p.rep.errors, 30);
    assert_int_equal(p.rep.kept, MO_CONFIG_PROBLEMS_MAX);
    for (unsigned i = 0; i < p.rep.kept; i++) {
        assert_int_equal(p.rep.v[i].line, i + 2);
        assert_int_equal(p.rep.v[i].col, 1);
    }
    mo_buf_fini(&text);
    leave(&p);
}

/* --- layers -------------------------------------------------------------- */

static void test_order_of_layers(void **state)
{
    char *env[] = {(char[]){"PORT=4"}, NULL};
    char *blank[] = {(char[]){"PORT="}, NULL};
    static const struct mo_config_flag flag = {"server.port", "port", "5"};
    struct place p;

    (void)state;
    enter(&p);
    put(&p, MO_CONFIG_FILE, "{\"server\":{\"port\":2}}");
    assert_int_equal(load(&p), 0);
    assert_int_equal(p.h.now->server.port, 2);
    mo_config_close(&p.h);
    put(&p, ".env", "PORT=3\n");
    p.in.environ = blank; /* empty counts as unset */
    assert_int_equal(load(&p), 0);
    assert_int_equal(p.h.now->server.port, 3);
    assert_int_equal(mo_config_origin(p.h.now, &p.h.now->server.port)->layer,
                     MO_LAYER_DOTENV);
    mo_config_close(&p.h);
    p.in.environ = env;
    assert_int_equal(load(&p), 0);
    assert_int_equal(p.h.now->server.port, 4);
    mo_config_close(&p.h);
    p.in.flags = &flag;
    p.in.nflags = 1;
    assert_int_equal(load(&p), 0);
    assert_int_equal(p.h.now->server.port, 5);
    mo_config_close(&p.h);
    leave(&p);
}

static const struct {
    char env[64];
    const char *key, *shown; /* as JSON in config show */
} variables[] = {
    {"PORT=81", "server.port", "81"},
    {"REDIS_URL=redis://h:1", "store.url", "\"redis://h:1\""},
    {"LLM_PROVIDER=GOOGLE", "llm.provider", "\"gemini\""},
    {"LLM_PROVIDER=Anthropic", "llm.provider", "\"claude\""},
    {"LLM_PROVIDER=chatgpt", "llm.provider", "\"openai\""},
    {"GEMINI_API_KEY=abcdefgh", "llm.gemini.apiKey", "\"***\""},
    {"GOOGLE_API_KEY=abcdefgh", "llm.gemini.apiKey", "\"***\""},
    {"ANTHROPIC_API_KEY=abcdefgh", "llm.claude.apiKey", "\"***\""},
    {"OPENAI_API_KEY=abcdefgh", "llm.openai.apiKey", "\"***\""},
    {"ANTHROPIC_BASE_URL=http://a", "llm.claude.baseUrl", "\"http://a\""},
    {"OPENAI_BASE_URL=http://a", "llm.openai.baseUrl", "\"http://a\""},
    {"GEMINI_BASE_URL=http://a", "llm.gemini.baseUrl", "\"http://a\""},
    {"MAX_OUTPUT_TOKENS=11", "llm.maxOutputTokens", "11"},
    {"MAX_HISTORY_TOKENS=1100", "llm.maxHistoryTokens", "1100"},
    {"HISTORY_TTL_SECONDS=12", "sessions.historyTtlSeconds", "12"},
    {"DOCKER_HOST=tcp://d:1", "sandbox.dockerHost", "\"tcp://d:1\""},
    {"MCP_ORCHESTRATOR_TOKEN=abcdefgh", "server.token", "\"***\""},
};

/* Does `config show` have a line with this key and value? */
static bool shows(const struct mo_config *c, const char *key, const char *value)
{
    struct mo_span rest;
    bool found = false;
    struct mo_buf b;

    mo_buf_init(&b, 1 << 20);
    mo_config_show(c, false, &b);
    rest = mo_buf_view(&b);
    while (rest.p && !found) {
        struct mo_span line = mo_span_cut(&rest, '\n');
        struct mo_span val = line;
        struct mo_span k = mo_span_cut(&val, ' ');

        val = val.p ? mo_span_trim(val) : val;
        found = mo_span_is(k, key) && mo_span_starts(val, mo_span_cstr(value));
    }
    mo_buf_fini(&b);
    return found;
}

static void test_variables(void **state)
{
    struct place p;

    (void)state;
    enter(&p);
    for (size_t i = 0; i < MO_COUNT(variables); i++) {
        char line[64];
        char *env[] = {line, NULL};

        memcpy(line, variables[i].env, sizeof(line));
        p.in.environ = env;
        if (load(&p) != 0)
            fail_msg("row '%s': %s", line, p.e.msg);
        check_row(line, shows(p.h.now, variables[i].key, variables[i].shown));
        mo_config_close(&p.h);
    }
    leave(&p);
}

static void test_bad_variable_and_flag(void **state)
{
    char *env[] = {(char[]){"PORT=abc"}, NULL};
    static const struct mo_config_flag flag = {"log.level", "log", "loud"};
    struct place p;

    (void)state;
    enter(&p);
    put(&p, ".env", "A=1\nMAX_OUTPUT_TOKENS=x\n");
    p.in.environ = env;
    p.in.flags = &flag;
    p.in.nflags = 1;
    assert_int_equal(load(&p), MO_EINVAL);
    assert_int_equal(p.rep.errors, 3);
    assert_true(says(&p.rep, "environment variable PORT: 'server.port' must"));
    assert_true(says(&p.rep, ".env:2: 'llm.maxOutputTokens' must"));
    assert_true(says(&p.rep, "option --log: 'log.level' must"));
    put(&p, ".env", "ok=1\nhello\n");
    assert_int_equal(load(&p), MO_EINVAL);
    assert_true(says(&p.rep, ".env:2: expected NAME=VALUE"));
    leave(&p);
}

/* --- where the file is --------------------------------------------------- */

static void test_lookup(void **state)
{
    char path[128], var[160], xdg[128];
    char *env[] = {xdg, NULL, NULL};
    struct place p;

    (void)state;
    enter(&p);
    (void)snprintf(xdg, sizeof(xdg), "XDG_CONFIG_HOME=%s", p.dir);
    (void)snprintf(path, sizeof(path), "%s/mcp-orchestrator", p.dir);
    assert_int_equal(mkdir(path, 0700), 0);
    put(&p, "mcp-orchestrator/config.json", "{\"server\":{\"port\":1}}");
    p.in.environ = env;
    assert_int_equal(load(&p), 0);
    assert_int_equal(p.h.now->server.port, 1);
    mo_config_close(&p.h);

    put(&p, MO_CONFIG_FILE, "{\"server\":{\"port\":2}}");
    assert_int_equal(load(&p), 0);
    assert_int_equal(p.h.now->server.port, 2);
    mo_config_close(&p.h);

    put(&p, "other.json", "{\"server\":{\"port\":3}}");
    (void)snprintf(var, sizeof(var), "MCP_ORCHESTRATOR_CONFIG=%s/other.json",
                   p.dir);
    env[1] = var;
    assert_int_equal(load(&p), 0);
    assert_int_equal(p.h.now->server.port, 3);
    mo_config_close(&p.h);

    (void)snprintf(path, sizeof(path), "%s/" MO_CONFIG_FILE, p.dir);
    p.in.file = path;
    assert_int_equal(load(&p), 0);
    assert_int_equal(p.h.now->server.port, 2);
    mo_config_close(&p.h);

    drop(&p, MO_CONFIG_FILE); /* named and gone: an error */
    assert_int_equal(load(&p), MO_EINVAL);
    assert_true(says(&p.rep, "no such file"));
    leave(&p);
}

static void test_odd_files(void **state)
{
    struct place p;
    char path[128];

    (void)state;
    enter(&p);
    (void)snprintf(path, sizeof(path), "%s/" MO_CONFIG_FILE, p.dir);
    assert_int_equal(mkfifo(path, 0600), 0); /* must not hang */
    assert_int_equal(load(&p), MO_EINVAL);
    assert_true(says(&p.rep, "not a regular file"));
    assert_int_equal(unlink(path), 0);
    p.in.file = p.dir;
    assert_int_equal(load(&p), MO_EINVAL);
    assert_true(says(&p.rep, "not a regular file"));
    leave(&p);
}

static void test_big_file(void **state)
{
    struct mo_buf text;
    struct place p;

    (void)state;
    enter(&p);
    mo_buf_init(&text, MO_CONFIG_FILE_MAX * 2);
    while (text.len <= MO_CONFIG_FILE_MAX)
        mo_buf_puts(&text, "                                ");
    put(&p, MO_CONFIG_FILE, mo_buf_cstr(&text));
    assert_int_equal(load(&p), MO_EINVAL);
    assert_true(says(&p.rep, "larger than 1024 KiB"));
    mo_buf_fini(&text);
    leave(&p);
}

/* --- reload -------------------------------------------------------------- */

struct heard {
    char text[512];
};

static void hear(void *ctx, const char *path, bool restart)
{
    struct heard *h = ctx;
    size_t n = strlen(h->text);

    (void)snprintf(h->text + n, sizeof(h->text) - n, "%s%s;", path,
                   restart ? "!" : "");
}

static void test_reload(void **state)
{
    const struct mo_config *first;
    struct heard heard = {""};
    struct place p;

    (void)state;
    enter(&p);
    put(&p, MO_CONFIG_FILE, whole);
    assert_int_equal(load(&p), 0);
    assert_false(mo_config_stale(&p.h));
    first = mo_config_ref(p.h.now);

    put(&p, MO_CONFIG_FILE, "{\"server\":{\"port\":\"x\"}}");
    assert_true(mo_config_stale(&p.h));
    assert_int_equal(mo_config_reload(&p.h, &p.rep, &p.e), MO_EINVAL);
    assert_ptr_equal(p.h.now, first);
    assert_int_equal(p.h.now->server.port, 8080);
    assert_non_null(strstr(p.e.msg, "keeping the old configuration"));
    assert_false(mo_config_stale(&p.h)); /* told once, not every second */

    put(&p, MO_CONFIG_FILE,
        "{\"mcpServers\":{\"remote\":{\"url\":\"https://host/mcp\","
        "\"type\":\"sse\",\"headers\":{\"Authorization\":\"Bearer "
        "${secret:remote}\"}},\"new\":{\"image\":\"x\"},\"boxed\":{\"image\":"
        "\"my:2\"}},\"llm\":{\"provider\":\"claude\",\"model\":\"m-2\"}}");
    assert_int_equal(mo_config_reload(&p.h, &p.rep, &p.e), 0);
    assert_ptr_not_equal(p.h.now, first);
    assert_int_equal(p.h.now->generation, 2);
    mo_config_diff(first, p.h.now, hear, &heard);
    assert_string_equal(heard.text,
                        "mcpServers.comfyui;mcpServers.boxed;mcpServers.new;"
                        "llm.model;approvals.default;approvals.rules;"
                        "server.listen!;server.port!;log.level;");
    assert_string_equal(first->llm.model, "m-1"); /* still whole */
    mo_config_unref(first);

    heard.text[0] = '\0';
    mo_config_diff(p.h.now, p.h.now, hear, &heard);
    assert_string_equal(heard.text, "");
    mo_config_close(&p.h);
    leave(&p);
}

static void test_stale(void **state)
{
    struct place p;

    (void)state;
    enter(&p);
    assert_int_equal(load(&p), 0);
    assert_false(mo_config_stale(&p.h));
    put(&p, ".env", "A=1\n");
    assert_true(mo_config_stale(&p.h));
    assert_int_equal(mo_config_reload(&p.h, &p.rep, &p.e), 0);
    assert_false(mo_config_stale(&p.h));
    put(&p, MO_CONFIG_FILE, "{}"); /* comes */
    assert_true(mo_config_stale(&p.h));
    assert_int_equal(mo_config_reload(&p.h, &p.rep, &p.e), 0);
    assert_non_null(p.h.now->file);
    drop(&p, MO_CONFIG_FILE); /* goes */
    assert_true(mo_config_stale(&p.h));
    mo_config_close(&p.h);
    leave(&p);
}

/* --- secrets ------------------------------------------------------------- */

static const char secretive[] =
    "{\"mcpServers\":{\"a\":{\"command\":\"x\",\"env\":{\"MY_TOKEN\":"
    "\"hush-env-1\",\"MODE\":\"hush-mode-2\"}},"
    "\"b\":{\"url\":\"https://u:hush-url-3@h/p?key=hush-query-4\","
    "\"headers\":{\"Authorization\":\"Bearer hush-head-5\"}}},"
    "\"llm\":{\"claude\":{\"apiKey\":\"hush-key-6\"},"
    "\"openai\":{\"apiKey\":\"${env:SHOWN}\"}},"
    "\"store\":{\"url\":\"redis://:hush-redis-7@h:1/2\"},"
    "\"server\":{\"token\":\"hush-token-8\"}}";

static void test_show_masks(void **state)
{
    struct mo_json_doc doc;
    struct mo_err e = {0};
    struct mo_buf b;
    struct place p;

    (void)state;
    enter(&p);
    put(&p, MO_CONFIG_FILE, secretive);
    assert_int_equal(load(&p), 0);
    mo_buf_init(&b, 1 << 20);
    mo_config_show(p.h.now, true, &b);
    assert_null(strstr(mo_buf_cstr(&b), "hush"));
    assert_non_null(strstr(mo_buf_cstr(&b), "${env:SHOWN}"));
    assert_non_null(strstr(mo_buf_cstr(&b), "redis://***@h:1/2"));
    assert_non_null(strstr(mo_buf_cstr(&b), "https://***@h/p?***"));
    mo_buf_reset(&b);
    mo_config_show_json(p.h.now, true, &b);
    assert_null(strstr(mo_buf_cstr(&b), "hush"));
    assert_int_equal(mo_json_parse(mo_buf_view(&b), 0, &doc, &e), 0);
    mo_buf_fini(&b);
    mo_config_close(&p.h);
    leave(&p);
}

static void test_log_hides(void **state)
{
    char line[512] = "";
    struct mo_log log;
    struct place p;
    int fds[2];

    (void)state;
    enter(&p);
    put(&p, MO_CONFIG_FILE, secretive);
    put(&p, ".env", "OTHER_API_KEY=hush-dotenv-9\nNAME=plain-name\n");
    assert_int_equal(load(&p), 0);
    assert_int_equal(pipe(fds), 0);
    mo_log_init(&log, fds[1]);
    assert_int_equal(mo_config_hide(p.h.now, &log), 0);
    mo_log(&log, MO_INFO, "t",
           "hush-key-6 hush-token-8 hush-dotenv-9 "
           "Bearer hush-head-5 hush-env-1 plain-name");
    assert_true(read(fds[0], line, sizeof(line) - 1) > 0);
    assert_null(strstr(line, "hush"));
    assert_non_null(strstr(line, "plain-name"));
    mo_log_fini(&log);
    (void)close(fds[0]);
    (void)close(fds[1]);
    mo_config_close(&p.h);
    leave(&p);
}

static void test_readable_key_is_warned_about(void **state)
{
    struct place p;
    char path[128];

    (void)state;
    enter(&p);
    put(&p, MO_CONFIG_FILE, "{\"server\":{\"token\":\"abcdefgh\"}}");
    (void)snprintf(path, sizeof(path), "%s/" MO_CONFIG_FILE, p.dir);
    assert_int_equal(chmod(path, 0644), 0);
    assert_int_equal(load(&p), 0);
    assert_int_equal(p.rep.warnings, 1);
    assert_true(says(&p.rep, "can be read by other users"));
    mo_config_close(&p.h);
    assert_int_equal(chmod(path, 0600), 0);
    assert_int_equal(load(&p), 0);
    assert_int_equal(p.rep.warnings, 0);
    mo_config_close(&p.h);
    leave(&p);
}

static void test_getenv(void **state)
{
    char *env[] = {(char[]){"A=real"}, (char[]){"B="}, NULL};
    struct place p;

    (void)state;
    enter(&p);
    put(&p, ".env", "A=file\nB=file\nC=\n");
    p.in.environ = env;
    assert_int_equal(load(&p), 0);
    assert_string_equal(mo_config_getenv(p.h.now, "A"), "real");
    assert_string_equal(mo_config_getenv(p.h.now, "B"), "file");
    assert_null(mo_config_getenv(p.h.now, "C"));
    assert_null(mo_config_getenv(p.h.now, "D"));
    mo_config_close(&p.h);
    leave(&p);
}

/* --- the table ----------------------------------------------------------- */

static void check_row_of(const struct mo_keys *keys)
{
    assert_true(keys->n <= 64); /* the reader's bit set */
    for (size_t i = 0; i < keys->n; i++) {
        const struct mo_key *k = &keys->v[i];

        check_row(k->name, k->off < keys->size);
        check_row(k->name, mo_key_get(keys, mo_span_cstr(k->name)) == k);
        if (k->type >= MO_KEY_INT && k->type <= MO_KEY_MONEY)
            check_row(k->name, k->min < k->max);
        if (k->env)
            check_row(k->name, k->type <= MO_KEY_WORD);
        if (k->sub)
            check_row_of(k->sub);
    }
}

static void test_table(void **state)
{
    (void)state;
    check_row_of(&mo_config_keys);
}

/* The schema is JSON and names every key where it belongs, with its text: a
 * sentence without a full stop at the end. */
static void compare(struct mo_json schema, const struct mo_keys *keys)
{
    struct mo_json props = mo_json_get(schema, "properties");

    for (size_t i = 0; i < keys->n; i++) {
        const struct mo_key *k = &keys->v[i];
        struct mo_json v = mo_json_get(props, k->name);
        struct mo_json text = mo_json_get(v, "description");

        check_row(k->name, mo_json_is(v, MO_JSON_OBJECT));
        check_row(k->name, mo_json_is(text, MO_JSON_STRING) && text.n > 2 &&
                               text.p[text.n - 2] != '.');
        if (k->flags & MO_KEY_NONE)
            v = mo_json_at(mo_json_get(v, "anyOf"), 1); /* behind "none" */
        check_row(k->name, mo_json_is(mo_json_get(v, "type"), MO_JSON_STRING));
        if (k->type == MO_KEY_SECTION)
            compare(v, k->sub);
        if (k->type == MO_KEY_DICT) {
            v = mo_json_get(v, "additionalProperties");
            if (mo_key_only(k))
                check_row(k->name, mo_json_str_eq(mo_json_get(v, "type"),
                                                  MO_SPAN("object")));
            else
                compare(v, k->sub);
        }
        if (k->type == MO_KEY_ARRAY)
            compare(mo_json_get(v, "items"), k->sub);
    }
}

static void test_network(void **state)
{
    const struct mo_config *c;
    struct place p;

    (void)state;
    enter(&p);
    put(&p, MO_CONFIG_FILE,
        "{\"sandbox\":{\"network\":\"none\"},\"mcpServers\":{\"b\":{"
        "\"command\":\"x\",\"sandbox\":\"native\",\"network\":{\"ask\":true}},"
        "\"a\":{\"command\":"
        "\"x\",\"sandbox\":\"native\",\"network\":{\"allow\":[\"b.org\"],"
        "\"maxConnections\":3}}}}");
    assert_int_equal(load(&p), 0);
    c = p.h.now;
    assert_null(c->sandbox.network.json);
    assert_non_null(strstr(c->mcp.v[0].network.json, "\"ask\":true"));
    assert_string_equal(c->mcp.v[1].network.json,
                        "{\"allow\":[\"b.org\"],\"maxConnections\":3,"
                        "\"maxMegabytes\":10240,\"idleSeconds\":900,"
                        "\"maxSeconds\":86400}");
    mo_config_close(&p.h);
    leave(&p);
}

static void test_inject(void **state)
{
    mo_autobuf struct mo_buf b = {.max = 1 << 20};
    struct place p;

    (void)state;
    enter(&p);
    put(&p, MO_CONFIG_FILE,
        "{\"sandbox\":{\"network\":{\"allow\":[\"b.org\"],\"inject\":{"
        "\"b.org:443\":{\"Authorization\":\"Bearer ${secret:x}\","
        "\"X-Key\":\"not-a-reference\"}}}}}");
    assert_int_equal(load(&p), 0);
    assert_string_equal(p.h.now->sandbox.network.json,
                        "{\"allow\":[\"b.org\"],\"maxConnections\":128,"
                        "\"maxMegabytes\":10240,\"idleSeconds\":900,"
                        "\"maxSeconds\":86400,\"inject\":{\"b.org:443\":{"
                        "\"Authorization\":\"Bearer ${secret:x}\","
                        "\"X-Key\":\"not-a-reference\"}}}");
    mo_config_show(p.h.now, false, &b);
    assert_non_null(
        strstr(mo_buf_cstr(&b), "sandbox.network.inject.b.org:443 "));
    assert_non_null(strstr(mo_buf_cstr(&b), "${secret:x}"));
    assert_null(strstr(mo_buf_cstr(&b), "not-a-reference"));
    mo_config_close(&p.h);
    leave(&p);
}

static void test_schema_and_docs(void **state)
{
    struct mo_json_doc doc;
    struct mo_err e = {0};
    struct mo_buf b;

    (void)state;
    mo_buf_init(&b, 1 << 20);
    mo_config_schema(&b);
    assert_int_equal(mo_json_parse(mo_buf_view(&b), 0, &doc, &e), 0);
    compare(doc.root, &mo_config_keys);
    mo_buf_reset(&b);
    mo_config_docs(&b);
    assert_non_null(strstr(mo_buf_cstr(&b), "| `server.tls.cert` |"));
    assert_non_null(strstr(mo_buf_cstr(&b), "| `approvals.rules[].tool` |"));
    assert_non_null(strstr(mo_buf_cstr(&b), "| `mcpServers.NAME.env` |"));
    mo_buf_fini(&b);
}

/* --- no memory ----------------------------------------------------------- */

static void load_and_show(void *ctx)
{
    struct place *p = ctx;
    struct mo_buf b;
    int rc;

    rc = load(p);
    assert_true(rc == 0 || rc == MO_ENOMEM);
    if (rc == 0) {
        struct mo_config_report rep;

        mo_buf_init(&b, 1 << 20);
        mo_config_show_json(p->h.now, true, &b);
        mo_config_show(p->h.now, true, &b);
        mo_buf_fini(&b);
        rc = mo_config_reload(&p->h, &rep, NULL);
        assert_true(rc == 0 || rc == MO_ENOMEM);
        assert_non_null(p->h.now);
    }
    mo_config_close(&p->h);
}

static void test_torture(void **state)
{
    struct place p;

    (void)state;
    enter(&p);
    put(&p, MO_CONFIG_FILE,
        "{\"mcpServers\":{\"a\":{\"command\":\"x\",\"args\":[\"\\u0041\"],"
        "\"env\":{\"A\":\"b\"}}},\"sandbox\":{\"network\":{\"allow\":["
        "\"a.org\"]}},\"approvals\":{\"rules\":[{\"tool\":\"x\"}]}"
        "}");
    put(&p, ".env", "PORT=1\n");
    torture(load_and_show, &p);
    leave(&p);
}

/* --- which files are trusted --------------------------------------------- */

/* A place whose home is elsewhere, as in a cloned repository. */
static void enter_foreign(struct place *p, char home[32], char *env[2],
                          char text[80])
{
    enter(p);
    p->in.trusts_dir = false;
    (void)snprintf(home, 32, "/tmp/mo-home-XXXXXX");
    assert_non_null(mkdtemp(home));
    (void)snprintf(text, 80, "HOME=%s", home);
    env[0] = text;
    env[1] = NULL;
    p->in.environ = env;
}

#define FAILS 100

static int count_said(void *ctx, const char *path, struct mo_span text,
                      struct mo_err *e)
{
    unsigned *said = ctx;

    assert_non_null(path);
    assert_true(text.n > 0);
    (*said)++;
    return *said == FAILS ? mo_fail(e, MO_EIO, "no log") : 0;
}

static void remove_home(const char *home)
{
    static const char *const names[] = {"/.config/mcp-orchestrator/allowed",
                                        "/.config/mcp-orchestrator", "/.config",
                                        ""};
    char path[256];

    for (size_t i = 0; i < MO_COUNT(names); i++) {
        (void)snprintf(path, sizeof(path), "%s%s", home, names[i]);
        (void)remove(path);
    }
}

static void test_unconfirmed(void **state)
{
    char home[32], text[80], *env[2], path[256];
    unsigned said = 0;
    struct place p;

    (void)state;
    enter_foreign(&p, home, env, text);
    assert_int_equal(load(&p), 0); /* nothing there */
    mo_config_close(&p.h);
    put(&p, MO_CONFIG_FILE, "{\"server\":{\"port\":4}}");
    assert_int_equal(load(&p), MO_EINVAL);
    assert_non_null(strstr(p.rep.v[0].text, "config allow"));
    assert_int_equal(p.rep.nuntrusted, 1);
    assert_string_equal(p.rep.untrusted[0].reason, "not_confirmed");
    assert_non_null(strstr(p.rep.untrusted[0].path, MO_CONFIG_FILE));
    /* not in the audit log, not confirmed */
    said = FAILS - 1;
    assert_int_equal(mo_config_allow(&p.in, count_said, &said, &p.e), MO_EIO);
    assert_int_equal(load(&p), MO_EINVAL);
    said = 0;
    assert_int_equal(mo_config_allow(&p.in, count_said, &said, &p.e), 0);
    assert_int_equal(said, 1);
    assert_int_equal(load(&p), 0);
    assert_int_equal(p.h.now->server.port, 4);
    /* while it runs, its owner may change it; the next start asks again */
    put(&p, MO_CONFIG_FILE, "{\"server\":{\"port\":5}}");
    assert_int_equal(mo_config_reload(&p.h, &p.rep, &p.e), 0);
    assert_int_equal(p.h.now->server.port, 5);
    mo_config_close(&p.h);
    assert_int_equal(load(&p), MO_EINVAL);
    /* named, or in the home directory, it needs none */
    (void)snprintf(path, sizeof(path), "%s/" MO_CONFIG_FILE, p.dir);
    p.in.file = path;
    assert_int_equal(load(&p), 0);
    mo_config_close(&p.h);
    p.in.file = NULL;
    (void)snprintf(text, sizeof(text), "HOME=%s", p.dir);
    assert_int_equal(load(&p), 0);
    mo_config_close(&p.h);
    remove_home(home);
    leave(&p);
}

static void test_unconfirmed_dotenv(void **state)
{
    char home[32], text[80], *env[2];
    unsigned said = 0;
    struct place p;

    (void)state;
    enter_foreign(&p, home, env, text);
    put(&p, ".env", "DATABASE_URL=of-some-project\n");
    assert_int_equal(load(&p), 0);
    assert_int_equal(p.rep.warnings, 0); /* none of ours */
    assert_int_equal(p.rep.nuntrusted, 0);
    mo_config_close(&p.h);
    put(&p, ".env", "PORT=4\n");
    assert_int_equal(load(&p), 0);
    assert_int_equal(p.h.now->server.port, 3000);
    assert_int_equal(p.rep.warnings, 1);
    assert_int_equal(p.rep.nuntrusted, 1);
    assert_non_null(strstr(p.rep.v[0].text, "config allow"));
    mo_config_close(&p.h);
    p.in.only_home = true;
    assert_int_equal(load(&p), 0);
    assert_int_equal(p.rep.warnings, 0);
    mo_config_close(&p.h);
    p.in.only_home = false;
    assert_int_equal(mo_config_allow(&p.in, count_said, &said, &p.e), 0);
    assert_int_equal(load(&p), 0);
    assert_int_equal(p.h.now->server.port, 4);
    assert_int_equal(p.rep.warnings, 0);
    mo_config_close(&p.h);
    remove_home(home);
    leave(&p);
}

static void test_foreign_owner(void **state)
{
    static const struct {
        mode_t mode;
        uid_t owner;
        gid_t group;
        int rc;
    } rows[] = {
        {0600, 0, 0, 0},
        {0644, 0, 0, 0},
        {0664, 0, 0, 0}, /* its own group may write */
        {0664, 0, 5, MO_EINVAL},
        {0646, 0, 0, MO_EINVAL},
        {0600, 65534, 0, MO_EINVAL},
    };
    char path[256];
    struct place p;

    (void)state;
    if (geteuid() != 0)
        skip();
    enter(&p);
    (void)snprintf(path, sizeof(path), "%s/" MO_CONFIG_FILE, p.dir);
    for (size_t i = 0; i < MO_COUNT(rows); i++) {
        int rc;

        put(&p, MO_CONFIG_FILE, "{}");
        assert_int_equal(chown(path, rows[i].owner, rows[i].group), 0);
        assert_int_equal(chmod(path, rows[i].mode), 0);
        rc = load(&p);
        assert_int_equal(rc, rows[i].rc);
        if (rc == 0)
            mo_config_close(&p.h);
    }
    leave(&p);
}

/* A file that appears in the working directory is not read by a server that
 * runs with another. */
static void test_no_switch(void **state)
{
    char sub[256], text[256], *env[2] = {text, NULL};
    struct place p;

    (void)state;
    enter(&p);
    (void)snprintf(text, sizeof(text), "XDG_CONFIG_HOME=%s", p.dir);
    (void)snprintf(sub, sizeof(sub), "%s/mcp-orchestrator", p.dir);
    assert_int_equal(mkdir(sub, 0700), 0);
    put(&p, "mcp-orchestrator/config.json", "{\"server\":{\"port\":4}}");
    p.in.environ = env;
    assert_int_equal(load(&p), 0);
    assert_int_equal(p.h.now->server.port, 4);
    put(&p, MO_CONFIG_FILE, "{\"server\":{\"port\":5}}");
    assert_false(mo_config_stale(&p.h));
    assert_int_equal(mo_config_reload(&p.h, &p.rep, &p.e), 0);
    assert_int_equal(p.h.now->server.port, 4);
    mo_config_close(&p.h);
    leave(&p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_unconfirmed),
        cmocka_unit_test(relative_state_dir_becomes_absolute),
        cmocka_unit_test(test_unconfirmed_dotenv),
        cmocka_unit_test(test_foreign_owner),
        cmocka_unit_test(test_no_switch),
        cmocka_unit_test(test_whole_file),
        cmocka_unit_test(test_defaults),
        cmocka_unit_test(test_bad),
        cmocka_unit_test(test_fine),
        cmocka_unit_test(test_all_mistakes_at_once),
        cmocka_unit_test(test_order_of_layers),
        cmocka_unit_test(test_variables),
        cmocka_unit_test(test_bad_variable_and_flag),
        cmocka_unit_test(test_lookup),
        cmocka_unit_test(test_odd_files),
        cmocka_unit_test(test_big_file),
        cmocka_unit_test(test_reload),
        cmocka_unit_test(test_stale),
        cmocka_unit_test(test_show_masks),
        cmocka_unit_test(test_log_hides),
        cmocka_unit_test(test_readable_key_is_warned_about),
        cmocka_unit_test(test_getenv),
        cmocka_unit_test(test_table),
        cmocka_unit_test(test_network),
        cmocka_unit_test(test_inject),
        cmocka_unit_test(test_schema_and_docs),
        cmocka_unit_test(test_torture),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
