/* doctor - checks this machine and reports what works. */
#include "cli/doctor/doctor.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/build.h"
#include "cli/runtime_wait.h"
#include "codec/json/json.h"
#include "config/reference.h"
#include "connect/box_probe.h"
#include "loop/tls.h"
#include "secrets/key.h"
#include "secrets/resolve.h"
#include "secrets/system.h"

#define CLUSTER_KEY_MAX ((size_t)4096)
#define NAME_COLUMN     10

void mo_found(struct mo_finding *f, enum mo_health health, const char *fmt, ...)
{
    va_list ap;

    f->health = health;
    va_start(ap, fmt);
    (void)vsnprintf(f->text, sizeof(f->text), fmt, ap);
    va_end(ap);
}

void mo_advise(struct mo_finding *f, const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    (void)vsnprintf(f->todo, sizeof(f->todo), fmt, ap);
    va_end(ap);
}

/* --- checks of the program ------------------------------------------------ */

static void check_version(const struct mo_doctor *d, struct mo_finding *f)
{
    (void)d;
    mo_found(f, MO_HEALTH_OK,
             "version " MO_VERSION ", " MO_BUILD_ARCH ", " MO_BUILD_KIND
             " build");
}

static void check_config(const struct mo_doctor *d, struct mo_finding *f)
{
    const struct mo_config *c = d->cfg;
    const struct mo_config_report *rep = d->rep;

    if (!c) {
        mo_found(f, MO_HEALTH_FAIL, "%u error%s, the first: %s", rep->errors,
                 rep->errors == 1 ? "" : "s",
                 rep->kept ? rep->v[0].text : "the file cannot be read");
        mo_advise(f, "'mcp-orchestrator config check' shows all of them");
    } else if (rep->kept) {
        mo_found(f, MO_HEALTH_WARN, "%s", rep->v[0].text);
    } else if (c->file) {
        mo_found(f, MO_HEALTH_OK, "%s, %zu MCP server%s", c->file, c->mcp.n,
                 c->mcp.n == 1 ? "" : "s");
    } else {
        mo_found(f, MO_HEALTH_OK, "no file, the defaults are used");
        mo_advise(f, "write a " MO_CONFIG_FILE
                     " here to add MCP servers or change anything");
    }
}

static bool has_secret(const struct mo_config *c, struct mo_span name)
{
    struct mo_secrets *s;
    bool has =
        mo_secrets_for(c, false, &s, NULL) == 0 && mo_secrets_has(s, name);

    mo_secrets_close(s);
    return has || mo_secret_system_has(c, name);
}

/* Returns NULL if the value exists (or is read when used), else the reason. The
 * value itself is not kept. */
static const char *explain_missing(const struct mo_config *c, const char *text,
                                   char *name, size_t n)
{
    struct mo_span rest = mo_span_cstr(text);
    struct mo_reference_part part;

    while (mo_reference_next(&rest, &part, NULL) > 0) {
        (void)snprintf(name, n, "%.*s", (int)part.text.n, part.text.p);
        if (part.kind == MO_REFERENCE_ENV && !mo_config_getenv(c, name))
            return "the environment has no";
        if (part.kind == MO_REFERENCE_FILE && access(name, R_OK) < 0)
            return "cannot read the file";
        if (part.kind == MO_REFERENCE_SECRET && !has_secret(c, part.text))
            return "the secret store has no";
    }
    return NULL;
}

static const struct {
    const char *name;
    int provider;
    size_t off;
    const char *env;
} services[] = {
    {"Claude", MO_LLM_CLAUDE, offsetof(struct mo_config_llm, claude),
     "ANTHROPIC_API_KEY"},
    {"Gemini", MO_LLM_GEMINI, offsetof(struct mo_config_llm, gemini),
     "GEMINI_API_KEY"},
    {"OpenAI", MO_LLM_OPENAI, offsetof(struct mo_config_llm, openai),
     "OPENAI_API_KEY"},
};

static const struct mo_config_api *api_of(const struct mo_config *c, size_t i)
{
    return (const void *)((const char *)&c->llm + services[i].off);
}

/* The configured provider has no key, or its reference cannot be resolved. */
static bool key_fails(const struct mo_config *c, size_t i, struct mo_finding *f)
{
    const struct mo_config_api *api = api_of(c, i);
    char name[PATH_MAX];
    const char *why = api->api_key
                          ? explain_missing(c, api->api_key, name, sizeof(name))
                          : NULL;
    bool asked = c->llm.provider == services[i].provider;

    if (why) {
        mo_found(f, MO_HEALTH_FAIL, "the %s key is a reference, but %s %s",
                 services[i].name, why, name);
        return true;
    }
    /* Local services at another address often need no key. */
    if (!asked || api->api_key || api->base_url)
        return false;
    mo_found(f, MO_HEALTH_FAIL, "%s is chosen, but there is no key for it",
             services[i].name);
    mo_advise(f, "set %s in the environment or in .env", services[i].env);
    return true;
}

static void check_keys(const struct mo_doctor *d, struct mo_finding *f)
{
    char have[80] = "";

    for (size_t i = 0; i < MO_COUNT(services); i++) {
        size_t n = strlen(have);

        if (key_fails(d->cfg, i, f))
            return;
        if (api_of(d->cfg, i)->api_key)
            (void)snprintf(have + n, sizeof(have) - n, "%s%s", n ? ", " : "",
                           services[i].name);
    }
    if (have[0]) {
        mo_found(f, MO_HEALTH_OK, "there is a key for %s", have);
        return;
    }
    if (d->cfg->llm.openai.base_url && d->cfg->llm.provider != MO_LLM_DEMO) {
        mo_found(f, MO_HEALTH_OK,
                 "no key: the model server at llm.openai.baseUrl answers");
        return;
    }
    mo_found(f, MO_HEALTH_OK, "no key: the built-in demo model answers");
    mo_advise(f, "set ANTHROPIC_API_KEY, GEMINI_API_KEY or OPENAI_API_KEY for "
                 "a real one");
}

static void check_tls(const struct mo_doctor *d, struct mo_finding *f)
{
    const struct mo_config_tls *tls = &d->cfg->server.tls;
    const char *const files[] = {tls->cert, tls->key};

    if (!tls->cert || !tls->key) {
        mo_found(f, MO_HEALTH_OK, "plain HTTP (no certificate configured)");
        return;
    }
    for (size_t i = 0; i < MO_COUNT(files); i++) {
        if (access(files[i], R_OK) < 0) {
            mo_found(f, MO_HEALTH_FAIL, "cannot read %.250s", files[i]);
            mo_advise(f, "check server.tls and the file's permissions");
            return;
        }
    }
    mo_found(f, MO_HEALTH_OK, "certificate and key can be read");
}

/* The values are resolved as serve does it, and not kept. */
static void check_cluster(const struct mo_doctor *d, struct mo_finding *f)
{
    const struct mo_config_cluster *c = &d->cfg->cluster;
    mo_autowipe struct mo_buf key = {.max = CLUSTER_KEY_MAX};
    mo_autobuf struct mo_buf at = {.max = 512};
    struct mo_err e;

    if (!c->listen) {
        mo_found(f, MO_HEALTH_OK, "servers on this machine only");
        return;
    }
    (void)mo_buf_room(&key, CLUSTER_KEY_MAX);
    if (mo_reference_resolve(d->cfg, c->address ? c->address : c->listen, &at,
                             &e) < 0) {
        mo_found(f, MO_HEALTH_FAIL, "cluster.address: %.250s", e.msg);
    } else if (mo_reference_resolve(d->cfg, c->key, &key, &e) < 0) {
        mo_found(f, MO_HEALTH_FAIL, "cluster.key: %.250s", e.msg);
    } else if (key.len < MO_TLS_PSK_KEY_MIN) {
        mo_found(f, MO_HEALTH_FAIL, "cluster.key has less than %d bytes",
                 MO_TLS_PSK_KEY_MIN);
        mo_advise(f, "make one for all servers: openssl rand -base64 48");
    } else {
        mo_found(f, MO_HEALTH_OK, "others reach this server at %.250s",
                 mo_buf_cstr(&at));
    }
}

/* --- the table ----------------------------------------------------------- */

static const struct check {
    const char *name;
    const char *what; /* the question it answers */
    void (*run)(const struct mo_doctor *d, struct mo_finding *f);
    bool needs_config;
} checks[] = {
    {"version", "what is this?", check_version, false},
    {"config", "is the configuration valid?", check_config, false},
    {"state", "can state be written?", mo_check_state, true},
    {"port", "is the port free?", mo_check_port, true},
    {"tls", "can the certificate be read?", check_tls, true},
    {"cluster", "can servers on other machines connect?", check_cluster, true},
    {"files", "are enough open files allowed?", mo_check_files, true},
    {"cgroup", "can boxes be limited?", mo_check_cgroup, false},
    {"userns", "are user namespaces allowed?", mo_check_userns, false},
    {"isolation", "can servers be kept out of the state directory?",
     mo_check_isolation, true},
    {"docker", "does a container engine answer?", mo_check_docker, true},
    {"redis", "does Redis answer?", mo_check_redis, true},
    {"embeddings", "does the router's embeddings server answer?",
     mo_check_embeddings, true},
    {"versions", "may this version use the state?", mo_check_versions, true},
    {"keys", "is there a key for a model?", check_keys, true},
    {"servers", "can the MCP servers be started?", mo_check_programs, true},
    {"mounts", "may boxes see the folders they are given?", mo_check_mounts,
     true},
};

static void run_check(const struct mo_doctor *d, const struct check *c,
                      struct mo_finding *f)
{
    *f = (struct mo_finding){.health = MO_HEALTH_OK};
    if (c->needs_config && !d->cfg)
        mo_found(f, MO_HEALTH_WARN,
                 "not checked: the configuration is invalid");
    else
        c->run(d, f);
}

/* These run all checks and return the number of failed ones. */
static unsigned put_text(const struct mo_doctor *d, bool colour,
                         struct mo_buf *b)
{
    static const char *const words[] = {"ok  ", "warn", "FAIL"};
    static const char *const paint[] = {"\x1b[32m", "\x1b[33m", "\x1b[31m"};
    unsigned count[3] = {0};

    for (size_t i = 0; i < MO_COUNT(checks); i++) {
        struct mo_finding f;

        run_check(d, &checks[i], &f);
        count[f.health]++;
        mo_buf_printf(b, "%s%s%s  %-*s %s\n", colour ? paint[f.health] : "",
                      words[f.health], colour ? "\x1b[0m" : "", NAME_COLUMN,
                      checks[i].name, f.text);
        if (f.todo[0])
            mo_buf_printf(b, "      %*s -> %s\n", NAME_COLUMN, "", f.todo);
    }
    mo_buf_printf(b, "\n%u ok, %u warnings, %u failed\n", count[MO_HEALTH_OK],
                  count[MO_HEALTH_WARN], count[MO_HEALTH_FAIL]);
    return count[MO_HEALTH_FAIL];
}

static unsigned put_json(const struct mo_doctor *d, struct mo_buf *b)
{
    static const char *const words[] = {"ok", "warn", "fail"};
    unsigned failed = 0;
    struct mo_jw w = mo_jw_object(b);

    mo_jw_member_arr(&w, "checks");
    for (size_t i = 0; i < MO_COUNT(checks); i++) {
        struct mo_finding f;

        run_check(d, &checks[i], &f);
        failed += f.health == MO_HEALTH_FAIL;
        mo_jw_obj(&w);
        mo_jw_member_cstr(&w, "name", checks[i].name);
        mo_jw_member_cstr(&w, "what", checks[i].what);
        mo_jw_member_cstr(&w, "health", words[f.health]);
        mo_jw_member_cstr(&w, "text", f.text);
        mo_jw_member_cstr(&w, "todo", f.todo[0] ? f.todo : NULL);
        mo_jw_end(&w);
    }
    mo_jw_end(&w);
    mo_jw_member_bool(&w, "ok", failed == 0);
    mo_jw_end(&w);
    return failed;
}

/* --- the sandbox --------------------------------------------------------- */

struct probing {
    struct mo_buf *b;
    struct mo_jw w;
    bool json, colour;
    unsigned passed, failed;
};

static void put_row(void *ctx, const struct mo_box_probe_row *r)
{
    struct probing *p = ctx;
    const char *paint = r->pass     ? "\x1b[32m"
                        : r->absent ? "\x1b[33m"
                                    : "\x1b[31m";
    const char *word = r->pass ? "pass" : r->absent ? "none" : "FAIL";

    p->passed += r->pass;
    p->failed += !r->pass && !r->absent;
    if (!p->json) {
        mo_buf_printf(p->b, "%s%s%s  %-7s %-16s %s%s%s\n",
                      p->colour ? paint : "", word, p->colour ? "\x1b[0m" : "",
                      r->driver, r->control, r->promise,
                      r->detail[0] ? ": " : "", r->detail);
        return;
    }
    mo_jw_obj(&p->w);
    mo_jw_member_cstr(&p->w, "driver", r->driver);
    mo_jw_member_cstr(&p->w, "control", r->control);
    mo_jw_member_cstr(&p->w, "promise", r->promise);
    mo_jw_member_bool(&p->w, "pass", r->pass);
    mo_jw_member_bool(&p->w, "absent", r->absent);
    mo_jw_member_cstr(&p->w, "detail", r->detail[0] ? r->detail : NULL);
    mo_jw_end(&p->w);
}

static int run_sandbox(struct mo_cli *c)
{
    mo_autobuf struct mo_buf b = {.max = MO_CMD_TEXT_MAX};
    struct probing p = {.b = &b,
                        .json = mo_cli_has(c, "json"),
                        .colour = isatty(c->out) == 1 && !getenv("NO_COLOR")};
    mo_autoruntime struct mo_cmd_runtime m = {.c = c};
    struct mo_err e = {0};
    int rc = mo_cmd_runtime_load(c, &m);

    mo_jw_init(&p.w, &b);
    if (p.json)
        mo_jw_arr(&p.w);
    if (rc == 0 && mo_box_probe(m.loop, m.cfg.now, put_row, &p, &e) < 0)
        rc = mo_cli_error(c, MO_EXIT_UNAVAIL, "%s", e.msg);
    if (rc)
        return rc;
    if (p.json)
        mo_jw_end(&p.w);
    else
        mo_buf_printf(&b, "\n%u passed, %u failed\n", p.passed, p.failed);
    rc = mo_cmd_print(c, &b);
    return rc ? rc : p.failed ? MO_EXIT_FAIL : MO_EXIT_OK;
}

/* --- the command ----------------------------------------------------- */

int mo_run_doctor(struct mo_cli *c)
{
    bool json = mo_cli_has(c, "json");
    bool colour = isatty(c->out) == 1 && !getenv("NO_COLOR");
    struct mo_config_report rep;
    mo_autoconfig struct mo_cmd_config cfg = {.now = NULL};
    struct mo_err e = {0};
    struct mo_doctor d = {.rep = &rep};
    unsigned failed;
    mo_autobuf struct mo_buf b = {.max = MO_CMD_TEXT_MAX};
    int rc;

    if (mo_cli_has(c, "sandbox"))
        return run_sandbox(c);
    if (mo_cmd_open(c, &cfg, &rep, &e) == 0) {
        rc = mo_cmd_change_user(c, &cfg);
        if (rc)
            return rc;
        d.cfg = cfg.now;
    }
    failed = json ? put_json(&d, &b) : put_text(&d, colour, &b);
    rc = mo_cmd_print(c, &b);
    return rc ? rc : failed ? MO_EXIT_FAIL : MO_EXIT_OK;
}
