/* manage_view.c - views of the configured servers; see manage_priv.h.
 *
 * The state of a server comes from the gateway, which serves conversations and
 * MCP clients. */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/mem.h"
#include "config/doc.h"
#include "connect/box_mounts.h"
#include "gateway/inside.h"
#include "gateway/upstream/upstream.h"
#include "servers/manage_priv.h"
#include "servers/server_view.h"
#include "servers/view_show.h"

#define DISABLED (-1) /* else enum mo_upstream_state */

struct view { /* one server: configuration and state */
    const struct mo_config_mcp *cfg;
    int state;
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

    *no = g ? mo_gateway_server(g, mo_span_cstr(name)) : 0;
    return g ? mo_gateway_up(g, *no) : NULL;
}

static void view_init(struct view *v, const struct mo_manage *m,
                      const struct mo_config_mcp *c)
{
    *v = (struct view){.cfg = c,
                       .state = c->enabled ? MO_UPSTREAM_COLD : DISABLED};
    if (!c->enabled)
        return;
    v->up = find_upstream(m, c->name, &v->no);
    if (v->up) {
        mo_upstream_status(v->up, &v->gw);
        v->state = (int)v->gw.state;
    }
}

/* --- writing -------------------------------------------------------------- */

static const char *state_word(const struct view *v)
{
    return v->state == DISABLED ? "disabled" : mo_server_view_state(v->state);
}

/* The members of `mcp list --json`, and the command with its settings. */
static void put_config(struct mo_jw *w, const struct mo_manage *m,
                       const struct mo_config_mcp *c)
{
    mo_autobuf struct mo_buf b = {.max = (size_t)64 * 1024};

    mo_config_put_where(&b, c);
    mo_jw_member_cstr(w, "name", c->name);
    mo_jw_member_cstr(w, "transport", mo_server_view_transport(c));
    mo_jw_member(w, "where", mo_buf_view(&b));
    mo_jw_member_bool(w, "enabled", c->enabled);
    mo_server_view_config(w, c);
    mo_box_mounts_put(w, m->o.config->now, c);
}

static void put_gateway(struct mo_jw *w, const struct view *v)
{
    const struct mo_upstream_status *s = &v->gw;
    const struct mo_gw_server *server = NULL;

    if (!v->up)
        return;
    server = mo_upstream_server(v->up);
    mo_jw_member_obj(w, "gateway");
    mo_jw_member_cstr(w, "state", mo_server_view_state((int)s->state));
    mo_jw_member_cstr(w, "breaker", mo_breaker_name(s->breaker));
    mo_jw_member_u64(w, "children", s->children);
    mo_jw_member_u64(w, "calls", s->calls);
    mo_jw_member_u64(w, "waiting", s->waiting);
    mo_jw_member_u64(w, "starts", s->starts);
    mo_jw_member_u64(w, "fails", s->fails);
    mo_jw_member_u64(w, "retryMs", s->retry_ms);
    mo_jw_member_u64(w, "instances", server->instances ? server->instances : 1);
    mo_jw_member_bool(w, "perSession", server->per_session);
    if (s->why.code)
        mo_jw_member_cstr(w, "error", s->why.msg);
    mo_jw_end(w);
}

/* State and, if it is not healthy, the reason. */
static void put_state(struct mo_jw *w, const struct mo_manage *m,
                      const struct view *v)
{
    mo_server_view_status(w, state_word(v), &v->gw, v->up ? m->o.gateway : NULL,
                          v->cfg->name);
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
    const struct mo_gateway *g = NULL;
    const struct mo_catalog *c = NULL;
    struct mo_json info = {NULL, 0};
    mo_autobuf struct mo_buf mended = {.max = (size_t)16 * 1024};

    if (!v->up)
        return;
    g = mo_gateway_setup_gateway(m->o.gateway);
    c = mo_gateway_catalog(g);
    if (mo_catalog_known(c, (unsigned)v->no)) {
        mo_jw_member_u64(w, "tools", tools_of(c, v->no));
        info = mo_catalog_info(c, (unsigned)v->no);
    }
    if (mo_catalog_why(c, (unsigned)v->no))
        mo_jw_member_cstr(w, "missing", mo_catalog_why(c, (unsigned)v->no));
    mo_catalog_put_mended(c, (unsigned)v->no, &mended);
    mo_jw_member_opt(w, "mended", mo_buf_view(&mended));
    mo_server_view_open(w, mo_gateway_conn(g, v->no), info);
}

static void put_view(struct mo_jw *w, const struct mo_manage *m,
                     const struct view *v)
{
    put_config(w, m, v->cfg);
    put_state(w, m, v);
    put_known(w, m, v);
    put_gateway(w, v);
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
    mo_jw_end_all(&w);
    return mo_buf_err(out);
}

/* The entry as written in the file. */
static void put_entry(struct mo_jw *w, const struct mo_manage *m,
                      const char *section, const char *name)
{
    struct mo_json_doc doc = {.bad_at = 0};
    struct mo_json entry = {NULL, 0};
    mo_autowipe struct mo_buf b = {.max = MO_CONFIG_FILE_MAX};

    if (mo_file_read(m->o.config->path, MO_CONFIG_FILE_MAX, &b, NULL, NULL) ==
            0 &&
        mo_json_parse(mo_buf_view(&b), 0, &doc, NULL) == 0)
        entry = mo_json_get(mo_json_get(doc.root, section), name);
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
    put_entry(&w, m, "mcpServers", c->name);
    mo_jw_end(&w);
    return mo_buf_err(out);
}

/* Counters under the names that older clients use. */
static const char *const sum_words[] = {"healthy", "unhealthy", "reconnecting",
                                        "disconnected"};

/* The index in sum_words. */
static size_t sum_of(const struct view *v)
{
    switch (v->state) {
    case MO_UPSTREAM_OK:
        return 0;
    case MO_UPSTREAM_STARTING:
    case MO_UPSTREAM_INSTALLING:
        return 2;
    case MO_UPSTREAM_COLD:
    case DISABLED:
        return 3;
    default:
        return 1;
    }
}

/* The servers in the form that older clients expect. */
static void put_mcps(struct mo_jw *w, const struct mo_manage *m)
{
    const struct mo_config *cfg = m->o.config->now;
    struct view v;

    mo_jw_member_arr(w, "mcps");
    for (size_t i = 0; i < cfg->mcp.n; i++) {
        view_init(&v, m, &cfg->mcp.v[i]);
        mo_jw_obj(w);
        mo_jw_member_cstr(w, "name", v.cfg->name);
        mo_jw_member_cstr(w, "status", sum_words[sum_of(&v)]);
        mo_jw_member_u64(w, "lastCheck", v.gw.heard_at);
        mo_jw_member_u64(w, "lastSuccess", v.gw.good_at);
        mo_jw_member_u64(w, "consecutiveFailures", v.gw.row);
        if (v.gw.why.code)
            mo_jw_member_cstr(w, "error", v.gw.why.msg);
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
        n[sum_of(&v)]++;
    }
    mo_jw_member_obj(w, "summary");
    mo_jw_member_u64(w, "total", cfg->mcp.n);
    for (size_t i = 0; i < MO_COUNT(sum_words); i++)
        mo_jw_member_u64(w, sum_words[i], n[i]);
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
        mo_jw_member_cstr(&w, "name", v.cfg->name);
        mo_jw_member_bool(&w, "enabled", v.cfg->enabled);
        put_state(&w, m, &v);
        put_gateway(&w, &v);
        mo_jw_end(&w);
    }
    mo_jw_end_all(&w);
    return mo_buf_err(out);
}

static void put_start(struct mo_jw *w, const struct mo_config_holder *h,
                      struct mo_span view)
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
    if (view.n) {
        mo_jw_cstr(w, "--view");
        mo_jw_str(w, view);
    }
    mo_jw_end(w);
}

/* Configuration snippets that start this program or connect to it. */
int mo_manage_snippets(struct mo_manage *m, const struct mo_manage_where *where,
                       struct mo_buf *out)
{
    mo_autobuf struct mo_buf url = {.max = WORD_MAX};
    struct mo_jw w;

    if (where->view.n && !mo_view_config(m->o.config->now, where->view))
        return MO_ENOTFOUND;
    w = mo_jw_object(out);
    mo_buf_printf(&url, "%s://%.*s/mcp%s%.*s", where->tls ? "https" : "http",
                  (int)where->host.n, where->host.p, where->view.n ? "/" : "",
                  (int)where->view.n, where->view.p);
    put_start(&w, m->o.config, where->view);
    mo_jw_member(&w, "url", mo_buf_view(&url));
    mo_jw_member_bool(&w, "needsToken", m->o.needs_token);
    mo_jw_member(&w, "token", where->token);
    mo_jw_end(&w);
    return mo_buf_err(out);
}

/* --- views of the gateway ------------------------------------------------- */

static struct mo_gateway *gateway_of(const struct mo_manage *m)
{
    return m->o.gateway ? mo_gateway_setup_gateway(m->o.gateway) : NULL;
}

int mo_manage_views(struct mo_manage *m, struct mo_buf *out)
{
    const struct mo_config *cfg = m->o.config->now;
    struct mo_jw w = mo_jw_object(out);

    mo_jw_member_bool(&w, "manage", mo_manage_allowed(cfg, m->o.listen));
    mo_jw_member_arr(&w, "views");
    for (size_t i = 0; i < cfg->views.n; i++) {
        const struct mo_config_view *c = &cfg->views.v[i];

        mo_jw_obj(&w);
        mo_view_put_settings(&w, c);
        if (m->o.gateway)
            mo_view_put_counts(
                &w, mo_view_table_find(mo_gateway_setup_views(m->o.gateway),
                                       mo_span_cstr(c->name)));
        mo_jw_end(&w);
    }
    mo_jw_end_all(&w);
    return mo_buf_err(out);
}

/* A view is made for this and freed, so that one that is not saved yet, or is
 * being changed, can be shown. */
static void put_seen(struct mo_jw *w, const struct mo_manage *m,
                     const struct mo_config_view *c)
{
    struct mo_gateway *g = gateway_of(m);
    struct mo_gw_view *v = g ? mo_gateway_view_new(g, c, NULL) : NULL;

    mo_view_put_settings(w, c);
    if (v)
        mo_view_put_seen(w, g, v);
    mo_gateway_view_free(v);
}

void mo_manage_put_view(struct mo_jw *w, const struct mo_manage *m,
                        const struct mo_config *cfg, const char *view)
{
    const struct mo_config_view *c =
        cfg ? mo_view_config(cfg, mo_span_cstr(view)) : NULL;

    if (!c)
        return;
    mo_jw_member_obj(w, "view");
    put_seen(w, m, c);
    mo_jw_end(w);
}

int mo_manage_one_view(struct mo_manage *m, struct mo_span view,
                       struct mo_buf *out, struct mo_err *e)
{
    const struct mo_config_view *c = mo_view_config(m->o.config->now, view);
    struct mo_jw w;

    if (c == NULL)
        return mo_fail(e, MO_ENOTFOUND, "there is no such view");
    w = mo_jw_object(out);
    put_seen(&w, m, c);
    put_entry(&w, m, "views", c->name);
    mo_jw_end(&w);
    return mo_buf_err(out);
}

void mo_manage_view_works(struct mo_manage *m, const char *server)
{
    size_t i = 0;
    struct mo_upstream *u = find_upstream(m, server, &i);

    if (u)
        mo_upstream_retry_now(u);
}
