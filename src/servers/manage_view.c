/* manage_view.c - views of the configured servers; see manage_priv.h.
 *
 * The state of a server comes from the gateway, which serves conversations and
 * MCP clients. */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/mem.h"
#include "config/doc.h"
#include "gateway/inside.h"
#include "gateway/upstream/upstream.h"
#include "servers/gateway_setup.h"
#include "servers/manage_priv.h"

/* Indexed by `states`. */
enum state { BROKEN, OK, SIGN_IN, FAILED, STARTING, COLD, DISABLED };

static const char *const states[] = {
    [BROKEN] = "broken",     [OK] = "ok",
    [SIGN_IN] = "sign_in",   [FAILED] = "failed",
    [STARTING] = "starting", [COLD] = "cold",
    [DISABLED] = "disabled",
};

static const enum state of_up[] = {
    [MO_UPSTREAM_COLD] = COLD,     [MO_UPSTREAM_STARTING] = STARTING,
    [MO_UPSTREAM_OK] = OK,         [MO_UPSTREAM_FAILED] = FAILED,
    [MO_UPSTREAM_BROKEN] = BROKEN, [MO_UPSTREAM_SIGN_IN] = SIGN_IN,
};

struct view { /* one server: configuration and state */
    const struct mo_config_mcp *cfg;
    enum state state;
    struct mo_upstream *up; /* NULL: unknown to the gateway */
    size_t no;              /* index in the gateway */
    struct mo_upstream_status gw;
};

/* --- collecting ----------------------------------------------------------- */

static struct mo_upstream *find_upstream(const struct mo_manage *m,
                                         const char *name, size_t *no)
{
    struct mo_gateway *g =
        m->o.gateway ? mo_gateway_setup_gateway(m->o.gateway) : NULL;
    size_t n = g ? mo_gateway_count(g) : 0;

    for (*no = 0; *no < n; ++*no) {
        struct mo_upstream *u = mo_gateway_up(g, *no);

        if (strcmp(mo_upstream_server(u)->name, name) == 0)
            return u;
    }
    return NULL;
}

static void view_init(struct view *v, const struct mo_manage *m,
                      const struct mo_config_mcp *c)
{
    *v = (struct view){.cfg = c, .state = c->enabled ? COLD : DISABLED};
    if (!c->enabled)
        return;
    v->up = find_upstream(m, c->name, &v->no);
    if (v->up) {
        mo_upstream_status(v->up, &v->gw);
        v->state = of_up[v->gw.state];
    }
}

/* --- writing -------------------------------------------------------------- */

static void put_u64(struct mo_jw *w, const char *key, uint64_t n)
{
    mo_jw_member_u64(w, key, n);
}

static const char *transport(const struct mo_config_mcp *c)
{
    static const char *const words[] = {
        [MO_TRANSPORT_STDIO] = "stdio",
        [MO_TRANSPORT_HTTP] = "http",
        [MO_TRANSPORT_SSE] = "sse",
        [MO_TRANSPORT_BOX] = "box",
    };

    if (c->transport != MO_TRANSPORT_AUTO)
        return words[c->transport];
    return c->command ? "stdio" : c->url ? "http" : "box";
}

static void put_target(struct mo_jw *w, const struct mo_config_mcp *c)
{
    mo_autobuf struct mo_buf b = {.max = (size_t)64 * 1024};

    mo_config_put_target(&b, c);
    mo_jw_member(w, "target", mo_buf_err(&b) ? MO_SPAN("") : mo_buf_view(&b));
}

/* The members of `mcp list --json`, and the command with its settings. */
static void put_config(struct mo_jw *w, const struct mo_config_mcp *c)
{
    struct mo_buf b;

    mo_jw_member(w, "name", mo_span_cstr(c->name));
    mo_jw_member(w, "transport", mo_span_cstr(transport(c)));
    mo_buf_init(&b, (size_t)64 * 1024);
    mo_config_put_where(&b, c);
    mo_jw_member(w, "where", mo_buf_view(&b));
    mo_buf_fini(&b);
    mo_jw_member_bool(w, "enabled", c->enabled);
    mo_jw_member(w, "kind",
                 mo_span_cstr(c->image ? "image"
                              : c->url ? transport(c)
                                       : "stdio"));
    put_target(w, c);
    if (c->description && c->description[0])
        mo_jw_member(w, "description", mo_span_cstr(c->description));
}

static void put_gateway(struct mo_jw *w, const struct view *v)
{
    const struct mo_gw_server *server = mo_upstream_server(v->up);
    const struct mo_upstream_status *s = &v->gw;

    mo_jw_member(w, "state", mo_span_cstr(states[of_up[s->state]]));
    mo_jw_member(w, "breaker", mo_span_cstr(mo_breaker_name(s->breaker)));
    put_u64(w, "children", s->children);
    put_u64(w, "calls", s->calls);
    put_u64(w, "waiting", s->waiting);
    put_u64(w, "starts", s->starts);
    put_u64(w, "fails", s->fails);
    put_u64(w, "retryMs", s->retry_ms);
    put_u64(w, "instances", server->instances ? server->instances : 1);
    mo_jw_member_bool(w, "perSession", server->per_session);
    if (s->why.code)
        mo_jw_member(w, "error", mo_span_cstr(s->why.msg));
}

static void put_stderr(struct mo_jw *w, const struct mo_manage *m,
                       const struct view *v)
{
    mo_autobuf struct mo_buf b = {.max = MO_TAIL_MAX * 2};

    if (v->up)
        (void)mo_stderr_tail_get(mo_gateway_setup_said(m->o.gateway),
                                 v->cfg->name, &b);
    if (mo_buf_err(&b) == 0 && b.len > 0)
        mo_jw_member(w, "stderr", mo_buf_view(&b));
}

/* State and, if it is not healthy, the reason. */
static void put_state(struct mo_jw *w, const struct mo_manage *m,
                      const struct view *v)
{
    mo_jw_member(w, "state", mo_span_cstr(states[v->state]));
    if (v->gw.why.code)
        mo_jw_member(w, "error", mo_span_cstr(v->gw.why.msg));
    if (v->gw.retry_ms > 0 && v->state != OK)
        put_u64(w, "retryMs", v->gw.retry_ms);
    put_stderr(w, m, v);
}

static size_t tools_of(const struct mo_catalog *c, size_t no)
{
    size_t n = 0;

    for (size_t i = 0; i < mo_catalog_count(c, MO_CAT_TOOLS); i++)
        n += mo_catalog_at(c, MO_CAT_TOOLS, i)->server == no;
    return n;
}

static void put_known(struct mo_jw *w, const struct mo_manage *m,
                      const struct view *v)
{
    const struct mo_catalog *c =
        v->up ? mo_gateway_catalog(mo_gateway_setup_gateway(m->o.gateway))
              : NULL;
    struct mo_conn *conn =
        v->up ? mo_gateway_conn(mo_gateway_setup_gateway(m->o.gateway), v->no)
              : NULL;
    struct mo_json info = {NULL, 0};

    if (c && mo_catalog_known(c, (unsigned)v->no)) {
        put_u64(w, "tools", tools_of(c, v->no));
        info = mo_catalog_info(c, (unsigned)v->no);
    }
    if (conn) {
        const struct mo_conn_info *i = mo_conn_info(conn);

        mo_jw_member(w, "version",
                     mo_span_cstr(mo_mcp_version_text(i->version)));
        put_u64(w, "calls", mo_conn_stats(conn)->calls);
        info = i->server;
    }
    if (mo_json_is(info, MO_JSON_OBJECT))
        mo_jw_member_raw(w, "info", mo_json_text(info));
}

static void put_view(struct mo_jw *w, const struct mo_manage *m,
                     const struct view *v)
{
    put_config(w, v->cfg);
    put_state(w, m, v);
    put_known(w, m, v);
    if (v->up) {
        mo_jw_member_obj(w, "gateway");
        put_gateway(w, v);
        mo_jw_end(w);
    }
}

/* --- requests ------------------------------------------------------------- */

int mo_manage_list(struct mo_manage *m, struct mo_buf *out)
{
    const struct mo_config *cfg = m->o.config->now;
    char path[PATH_MAX];
    struct view v;
    struct mo_jw w = mo_jw_object(out);

    mo_jw_member_bool(&w, "manage", mo_manage_allowed(cfg, m->o.listen));
    mo_jw_member(&w, "file",
                 mo_span_cstr(realpath(m->o.config->path, path)
                                  ? path
                                  : m->o.config->path));
    mo_jw_member_arr(&w, "servers");
    for (size_t i = 0; i < cfg->mcp.n; i++) {
        view_init(&v, m, &cfg->mcp.v[i]);
        mo_jw_obj(&w);
        put_view(&w, m, &v);
        mo_jw_end(&w);
    }
    mo_jw_end(&w);
    mo_jw_end(&w);
    return mo_buf_err(out);
}

/* The entry as written in the file. */
static void put_entry(struct mo_jw *w, const struct mo_manage *m,
                      const char *name)
{
    struct mo_json_doc doc = {.bad_at = 0};
    struct mo_json entry = {NULL, 0};
    mo_autowipe struct mo_buf b = {.max = MO_CONFIG_FILE_MAX};

    if (mo_file_read(m->o.config->path, MO_CONFIG_FILE_MAX, &b, NULL, NULL) ==
            0 &&
        mo_json_parse(mo_buf_view(&b), 0, &doc, NULL) == 0)
        entry = mo_json_get(mo_json_get(doc.root, "mcpServers"), name);
    if (mo_json_is(entry, MO_JSON_OBJECT)) {
        mo_jw_key(w, "config");
        mo_entry_show(w, entry);
    }
}

int mo_manage_one(struct mo_manage *m, struct mo_span server,
                  struct mo_buf *out, struct mo_err *e)
{
    const struct mo_config_mcp *c =
        mo_server_link_find(m->o.config->now, server);
    struct view v;
    struct mo_jw w;

    if (c == NULL)
        return mo_fail(e, MO_ENOTFOUND, "there is no such server");
    view_init(&v, m, c);
    w = mo_jw_object(out);
    put_view(&w, m, &v);
    put_entry(&w, m, c->name);
    mo_jw_end(&w);
    return mo_buf_err(out);
}

/* Counters under the names that older clients use. */
static const enum {
    HEALTHY,
    UNHEALTHY,
    RECONNECTING,
    DISCONNECTED
} sums[] = {
    [BROKEN] = UNHEALTHY,      [OK] = HEALTHY,
    [SIGN_IN] = UNHEALTHY,     [FAILED] = UNHEALTHY,
    [STARTING] = RECONNECTING, [COLD] = DISCONNECTED,
    [DISABLED] = DISCONNECTED,
};

static const char *const sum_words[] = {"healthy", "unhealthy", "reconnecting",
                                        "disconnected"};

/* The servers in the form that older clients expect. */
static void put_mcps(struct mo_jw *w, const struct mo_manage *m)
{
    const struct mo_config *cfg = m->o.config->now;
    struct view v;

    mo_jw_member_arr(w, "mcps");
    for (size_t i = 0; i < cfg->mcp.n; i++) {
        view_init(&v, m, &cfg->mcp.v[i]);
        mo_jw_obj(w);
        mo_jw_member(w, "name", mo_span_cstr(v.cfg->name));
        mo_jw_member(w, "status", mo_span_cstr(sum_words[sums[v.state]]));
        put_u64(w, "lastCheck", v.gw.heard_at);
        put_u64(w, "lastSuccess", v.gw.good_at);
        put_u64(w, "consecutiveFailures", v.gw.row);
        if (v.gw.why.code)
            mo_jw_member(w, "error", mo_span_cstr(v.gw.why.msg));
        mo_jw_end(w);
    }
    mo_jw_end(w);
}

static void put_summary(struct mo_jw *w, const struct mo_manage *m)
{
    const struct mo_config *cfg = m->o.config->now;
    uint64_t n[MO_COUNT(sum_words)] = {0};
    struct view v;

    for (size_t i = 0; i < cfg->mcp.n; i++) {
        view_init(&v, m, &cfg->mcp.v[i]);
        n[sums[v.state]]++;
    }
    mo_jw_member_obj(w, "summary");
    put_u64(w, "total", cfg->mcp.n);
    for (size_t i = 0; i < MO_COUNT(sum_words); i++)
        put_u64(w, sum_words[i], n[i]);
    mo_jw_end(w);
}

int mo_manage_health(struct mo_manage *m, struct mo_buf *out)
{
    const struct mo_config *cfg = m->o.config->now;
    struct view v;
    struct mo_jw w = mo_jw_object(out);

    put_summary(&w, m);
    put_mcps(&w, m);
    mo_jw_member_arr(&w, "servers");
    for (size_t i = 0; i < cfg->mcp.n; i++) {
        view_init(&v, m, &cfg->mcp.v[i]);
        mo_jw_obj(&w);
        mo_jw_member(&w, "name", mo_span_cstr(v.cfg->name));
        mo_jw_member_bool(&w, "enabled", v.cfg->enabled);
        put_state(&w, m, &v);
        if (v.up) {
            mo_jw_member_obj(&w, "gateway");
            put_gateway(&w, &v);
            mo_jw_end(&w);
        }
        mo_jw_end(&w);
    }
    mo_jw_end(&w);
    mo_jw_end(&w);
    return mo_buf_err(out);
}

static void put_start(struct mo_jw *w, const struct mo_config_holder *h)
{
    char exe[PATH_MAX], config[PATH_MAX];
    ssize_t n = readlink("/proc/self/exe", exe, sizeof(exe));

    mo_jw_member(w, "command",
                 n > 0 ? mo_span(exe, (size_t)n) : MO_SPAN("mcp-orchestrator"));
    mo_jw_member_arr(w, "args");
    mo_jw_cstr(w, "gateway");
    if (realpath(h->path, config)) {
        mo_jw_cstr(w, "--config");
        mo_jw_cstr(w, config);
    }
    mo_jw_end(w);
}

/* Configuration snippets that start this program or connect to it. */
int mo_manage_snippets(struct mo_manage *m, const struct mo_manage_where *where,
                       struct mo_buf *out)
{
    struct mo_buf url;
    struct mo_jw w;

    mo_buf_init(&url, WORD_MAX);
    mo_buf_printf(&url, "%s://%.*s/mcp", where->tls ? "https" : "http",
                  (int)where->host.n, where->host.p);
    w = mo_jw_object(out);
    put_start(&w, m->o.config);
    mo_jw_member(&w, "url", mo_buf_view(&url));
    mo_jw_member_bool(&w, "needsToken", m->o.has_token);
    mo_jw_end(&w);
    mo_buf_fini(&url);
    return mo_buf_err(out);
}

void mo_manage_view_works(struct mo_manage *m, const char *server)
{
    size_t i = 0;
    struct mo_upstream *u = find_upstream(m, server, &i);

    if (u)
        mo_upstream_retry_now(u);
}
