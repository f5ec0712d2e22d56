/* check.c - checks keys that depend on each other. */
#include <limits.h>
#include <stdio.h>
#include <strings.h>

#include "codec/mount.h"
#include "config/read.h"
#include "egress/policy.h"

/* True if the key is set, or was set to an invalid value, which is already in
 * the report. */
static bool is_given(const struct mo_config_load *l, const char *const *text)
{
    return *text || mo_config_origin(l->cfg, text);
}

static bool has_server(const struct mo_config *c, struct mo_span name)
{
    for (size_t i = 0; i < c->mcp.n; i++) {
        if (c->mcp.v[i].name && mo_span_is(name, c->mcp.v[i].name))
            return true;
    }
    return false;
}

/* tool: NULL, or the tool whose fallback this is; it may name "server/tool". */
static void check_fallback(struct mo_config_load *l,
                           const struct mo_config_mcp *m,
                           const struct mo_config_list *to, const char *tool)
{
    for (size_t i = 0; i < to->n; i++) {
        struct mo_span rest = mo_span_cstr(to->v[i]);
        struct mo_span name = tool ? mo_span_cut(&rest, '/') : rest;

        if (mo_span_is(name, m->name))
            mo_config_error_of(
                l, to,
                "'mcpServers.%s%s%.64s.fallback' names the server itself",
                m->name, tool ? ".tools." : "", tool ? tool : "");
        else if (!has_server(l->cfg, name))
            mo_config_error_of(
                l, to,
                "'mcpServers.%s%s%.64s.fallback': there is no server '%.*s'",
                m->name, tool ? ".tools." : "", tool ? tool : "",
                (int)mo_span_head(name, 64).n, name.p);
    }
}

static void check_fallbacks(struct mo_config_load *l,
                            const struct mo_config_mcp *m)
{
    check_fallback(l, m, &m->fallback, NULL);
    for (size_t i = 0; i < m->tools.n; i++) {
        const struct mo_config_tool *t = &m->tools.v[i];

        if (t->name)
            check_fallback(l, m, &t->fallback, t->name);
    }
}

static bool is_boxed(const struct mo_config_mcp *m)
{
    return m->command &&
           (m->sandbox == MO_DRIVER_NATIVE || m->sandbox == MO_DRIVER_DOCKER ||
            m->sandbox == MO_DRIVER_KUBERNETES);
}

/* --- networks of boxes --------------------------------------------------- */

static void put_inject(struct mo_jw *w, const struct mo_config_injects *all)
{
    mo_jw_member_obj(w, "inject");
    for (size_t i = 0; i < all->n; i++) {
        const struct mo_config_map *m = &all->v[i].headers;

        mo_jw_member_obj(w, all->v[i].name);
        for (size_t k = 0; k < m->n; k++)
            mo_jw_member_cstr(w, m->v[k].name, m->v[k].value);
        mo_jw_end(w);
    }
    mo_jw_end(w);
}

static void put_network(struct mo_buf *b, const struct mo_config_network *n)
{
    struct mo_jw w = mo_jw_object(b);

    mo_jw_member_arr(&w, "allow");
    for (size_t i = 0; i < n->allow.n; i++)
        mo_jw_cstr(&w, n->allow.v[i]);
    mo_jw_end(&w);
    if (n->ask)
        mo_jw_member_bool(&w, "ask", true);
    mo_jw_member_i64(&w, "maxConnections", n->max_connections);
    mo_jw_member_i64(&w, "maxMegabytes", n->max_megabytes);
    mo_jw_member_i64(&w, "idleSeconds", n->idle_seconds);
    mo_jw_member_i64(&w, "maxSeconds", n->max_seconds);
    if (n->inject.n)
        put_inject(&w, &n->inject);
    mo_jw_end(&w);
}

static bool has_network(const struct mo_config_network *n)
{
    return n->allow.n || n->ask;
}

/* Sets n->json. path: for messages. */
static void check_network(struct mo_config_load *l, struct mo_config_network *n,
                          const char *path)
{
    mo_autobuf struct mo_buf text = {.max = MO_EGRESS_JSON_MAX};
    struct mo_egress_policy *p = NULL;
    struct mo_err e;
    int rc;

    if (n->allow.n == 0 && n->inject.n)
        mo_config_error_of(l, &n->inject,
                           "'%s.inject': its hosts must be in 'allow'", path);
    if (!has_network(n))
        return;
    put_network(&text, n);
    rc = mo_buf_err(&text);
    if (rc < 0)
        (void)mo_fail(&e, rc, "it is too long");
    else
        rc = mo_egress_policy_read(mo_buf_view(&text), &p, &e);
    mo_egress_policy_free(p);
    if (rc == 0)
        n->json = mo_arena_strndup(l->arena, text.p, text.len);
    if (rc == MO_ENOMEM || (rc == 0 && !n->json))
        l->no_memory = true;
    else if (rc < 0)
        mo_config_error_of(
            l,
            mo_span_starts(mo_span_cstr(e.msg), MO_SPAN("inject"))
                ? (const void *)&n->inject
                : &n->allow,
            "'%s': %s", path, e.msg);
}

static void check_mcp_network(struct mo_config_load *l, struct mo_config_mcp *m)
{
    char path[MO_KEY_PATH_MAX];

    (void)snprintf(path, sizeof(path), "mcpServers.%s.network", m->name);
    if (mo_config_origin(l->cfg, &m->network) && !m->image && !is_boxed(m))
        mo_config_error_of(l, &m->network,
                           "'%s' is only for servers in a box: set 'sandbox' "
                           "to native or docker",
                           path);
    check_network(l, &m->network, path);
}

/* --- folders of the host in boxes ----------------------------------------- */

/* Only the text. Whether the paths may be mounted is judged when a box starts:
 * they may be created meanwhile. */
static void check_mounts(struct mo_config_load *l, struct mo_config_mounts *m,
                         const char *path)
{
    const struct mo_config_list *given = &m->given;
    const char **v = mo_arena_zalloc(l->arena, (given->n + 1) * sizeof(*v));
    char home[PATH_MAX] = "", text[MO_MOUNT_TEXT_MAX];
    struct mo_mount at;
    struct mo_err e;

    if (!v)
        l->no_memory = true;
    if (given->n == 0 || !v)
        return;
    if (given->n > MO_MOUNTS_MAX - 1)
        mo_config_error_of(l, given, "'%s': more than %d", path,
                           MO_MOUNTS_MAX - 1);
    (void)mo_config_owner_home(l->cfg, home);
    for (size_t i = 0; i < given->n; i++) {
        if (mo_mount_parse(mo_span_cstr(given->v[i]), home, &at, &e) < 0) {
            mo_config_error_of(l, given, "'%s': %s", path, e.msg);
            return;
        }
        mo_mount_put(&at, text);
        v[i] = mo_arena_strndup(l->arena, text, strlen(text));
        l->no_memory |= !v[i];
    }
    m->v = v;
}

static void check_mcp_mounts(struct mo_config_load *l, struct mo_config_mcp *m)
{
    char path[MO_KEY_PATH_MAX];

    if ((m->mounts.given.n || m->workspace) && !m->image && !is_boxed(m))
        mo_config_error_of(
            l, m->workspace ? (void *)&m->workspace : (void *)&m->mounts.given,
            "'mcpServers.%s.%s' is only for servers in a box: "
            "set 'sandbox' to native or docker",
            m->name, m->workspace ? "workspace" : "mounts");
    (void)snprintf(path, sizeof(path), "mcpServers.%s.mounts", m->name);
    check_mounts(l, &m->mounts, path);
}

/* --- servers ------------------------------------------------------------- */

/* Does each grant have what it needs? */
static void check_grant(struct mo_config_load *l, const struct mo_config_mcp *m)
{
    const struct mo_config_oauth *o = &m->oauth;
    bool has_proof =
        is_given(l, &o->client_secret) || is_given(l, &o->private_key);
    const char *lacks = NULL;

    if (o->grant == MO_GRANT_CLIENT)
        lacks = !is_given(l, &o->client_id) ? "clientId"
                : !has_proof                ? "clientSecret' or 'privateKey"
                                            : NULL;
    else if (o->grant != MO_GRANT_SIGN_IN)
        lacks = !is_given(l, &o->assertion_file) ? "assertionFile" : NULL;
    if (o->grant == MO_GRANT_ENTERPRISE && !lacks)
        lacks = !is_given(l, &o->idp.token_endpoint)
                    ? "identityProvider.tokenEndpoint"
                : !is_given(l, &o->idp.client_id) ? "identityProvider.clientId"
                                                  : NULL;
    if (lacks)
        mo_config_error_of(l, &o->grant,
                           "'mcpServers.%s.oauth' with this 'grant' needs "
                           "'%s'",
                           m->name, lacks);
    if (o->private_key && o->grant == MO_GRANT_SIGN_IN)
        mo_config_error_of(l, &o->private_key,
                           "'mcpServers.%s.oauth.privateKey' is not used by "
                           "the grant 'sign-in'",
                           m->name);
}

/* Only a sign-in that each person can repeat makes credentials personal. */
static void check_mcp_credentials(struct mo_config_load *l,
                                  struct mo_config_mcp *m)
{
    const char *why = NULL;

    if (m->credentials == MO_CREDENTIALS_SHARED)
        return;
    if (!m->url)
        why = "needs 'url'";
    else if (m->transport == MO_TRANSPORT_SSE)
        why = "cannot be used with the transport 'sse'";
    else if (m->credentials == MO_CREDENTIALS_EXCHANGE &&
             !is_given(l, &m->exchange.url))
        why = "needs 'exchange.url'";
    else if (!m->oauth.enabled)
        why = "needs 'oauth.enabled'";
    else if (m->scope == MO_SCOPE_SESSION)
        why = "cannot be used with 'scope': 'session'";
    for (size_t i = 0; i < m->headers.n; i++)
        if (strcasecmp(m->headers.v[i].name, "authorization") == 0)
            why = "cannot be used with a header 'Authorization'";
    if (why)
        mo_config_error_of(l, &m->credentials, "'mcpServers.%s.credentials' %s",
                           m->name, why);
}

static void check_mcp(struct mo_config_load *l, struct mo_config_mcp *m)
{
    static const char *const needs[] = {
        [MO_TRANSPORT_STDIO] = "command",
        [MO_TRANSPORT_HTTP] = "url",
        [MO_TRANSPORT_SSE] = "url",
        [MO_TRANSPORT_BOX] = "image",
    };
    const char *const has[] = {
        [MO_TRANSPORT_STDIO] = m->command,
        [MO_TRANSPORT_HTTP] = m->url,
        [MO_TRANSPORT_SSE] = m->url,
        [MO_TRANSPORT_BOX] = m->image,
    };

    if (!is_given(l, &m->command) && !is_given(l, &m->url) &&
        !is_given(l, &m->image))
        mo_config_error_of(l, &m->name,
                           "'mcpServers.%s' needs one of 'command', 'url' or "
                           "'image'",
                           m->name);
    else if (m->url && (m->command || m->image))
        mo_config_error_of(l, &m->url,
                           "'mcpServers.%s' has 'url' and '%s'; remove one "
                           "of them",
                           m->name, m->command ? "command" : "image");
    else if (m->transport != MO_TRANSPORT_AUTO && !has[m->transport])
        mo_config_error_of(l, &m->transport,
                           "'mcpServers.%s.transport' needs '%s'", m->name,
                           needs[m->transport]);
    check_mcp_network(l, m);
    check_mcp_mounts(l, m);
    if (m->oauth.client_secret && !is_given(l, &m->oauth.client_id))
        mo_config_error_of(l, &m->oauth.client_secret,
                           "'mcpServers.%s.oauth' has a 'clientSecret' and no "
                           "'clientId'",
                           m->name);
    check_grant(l, m);
    check_fallbacks(l, m);
    check_mcp_credentials(l, m);
}

/* --- people -------------------------------------------------------------- */

static bool has_provider(const struct mo_config *c, struct mo_span name)
{
    for (size_t i = 0; i < c->people.providers.n; i++) {
        const char *has = c->people.providers.v[i].name;

        if (has && mo_span_is(name, has))
            return true;
    }
    return false;
}

/* "PROVIDER:NAME", "PROVIDER/GROUP" or the name of a token's owner. */
static void check_persons(struct mo_config_load *l,
                          const struct mo_config_list *who, const char *path)
{
    for (size_t i = 0; i < who->n; i++) {
        size_t n = strcspn(who->v[i], ":/");

        if (who->v[i][n] && !has_provider(l->cfg, mo_span(who->v[i], n)))
            mo_config_error_of(l, who, "'%s': there is no provider '%.*s'",
                               path, (int)(n < 64 ? n : 64), who->v[i]);
        else if (who->v[i][n] && !who->v[i][n + 1])
            mo_config_error_of(l, who,
                               "'%s': a name or group is missing "
                               "behind '%.64s'",
                               path, who->v[i]);
    }
}

static bool has_token(const struct mo_config *c, const char *name)
{
    const struct mo_config_map *m = &c->server.tokens;

    for (size_t i = 0; i < m->n; i++)
        if (strcmp(m->v[i].name, name) == 0)
            return true;
    return false;
}

/* A box is its session's, and stays when the token is not used any more. */
static void check_token_budgets(struct mo_config_load *l)
{
    const struct mo_config_budget_list *all = &l->cfg->budgets.tokens;

    for (size_t i = 0; i < all->n; i++)
        if (all->v[i].boxes)
            mo_config_error_of(l, &all->v[i].boxes,
                               "'budgets.tokens': boxes are limited by "
                               "person, not by token");
}

/* A limit of somebody who cannot be there is a mistake: nobody has it. */
static void check_budgets(struct mo_config_load *l)
{
    const struct mo_config_budget_list *all = &l->cfg->budgets.people;

    for (size_t i = 0; i < all->n; i++) {
        const char *name = all->v[i].name;
        size_t n = name ? strcspn(name, ":") : 0;

        if (!name || strcmp(name, "*") == 0 || strcmp(name, "operator") == 0)
            continue;
        if (name[n] ? !has_provider(l->cfg, mo_span(name, n))
                    : !has_token(l->cfg, name))
            mo_config_error_of(l, &all->v[i].name,
                               "'budgets.people': '%.64s' is nobody of "
                               "'server.tokens' or of a provider",
                               name);
    }
}

static void check_people(struct mo_config_load *l)
{
    const struct mo_config_people *p = &l->cfg->people;
    unsigned asked = 0;

    for (size_t i = 0; i < p->providers.n; i++) {
        const struct mo_config_provider *v = &p->providers.v[i];

        if (v->name && !is_given(l, &v->issuer))
            mo_config_error_of(l, &v->name,
                               "'people.providers.%s' needs 'issuer'", v->name);
        if (v->name && v->client_secret && !is_given(l, &v->client_id))
            mo_config_error_of(l, &v->client_secret,
                               "'people.providers.%s' has a 'clientSecret' and "
                               "no 'clientId'",
                               v->name);
        if (v->name && v->introspect && !is_given(l, &v->client_id))
            mo_config_error_of(l, &v->introspect,
                               "'people.providers.%s' has 'introspect' and no "
                               "'clientId'",
                               v->name);
        if (v->name && v->introspect && asked++)
            mo_config_error_of(l, &v->introspect,
                               "'people.providers.%s': another provider has "
                               "'introspect', too",
                               v->name);
    }
    check_persons(l, &p->roles.viewer, "people.roles.viewer");
    check_persons(l, &p->roles.user, "people.roles.user");
    check_persons(l, &p->roles.approver, "people.roles.approver");
    check_persons(l, &p->roles.op, "people.roles.operator");
}

/* --- rules and views ----------------------------------------------------- */

static void check_rules(struct mo_config_load *l,
                        const struct mo_config_rules *rules, const char *path)
{
    for (size_t i = 0; i < rules->n; i++) {
        const struct mo_config_rule *rule = &rules->v[i];

        if (!rule->tool && !rule->server)
            mo_config_error_of(l, rule, "'%s.%zu' needs 'tool' or 'server'",
                               path, i + 1);
        if (rule->approver != MO_APPROVER_AUTO && rule->action != MO_ACTION_ASK)
            mo_config_error_of(l, &rule->approver,
                               "'%s.%zu' has an 'approver' and its action is "
                               "not 'ask'",
                               path, i + 1);
        if ((rule->approvers.n || rule->approvals > 1 || rule->four_eyes) &&
            rule->action != MO_ACTION_ASK)
            mo_config_error_of(l, rule,
                               "'%s.%zu' says who approves and its action is "
                               "not 'ask'",
                               path, i + 1);
        check_persons(l, &rule->approvers, path);
    }
}

static void check_webhooks(struct mo_config_load *l,
                           const struct mo_config_webhooks *all)
{
    for (size_t i = 0; i < all->n; i++)
        if (!is_given(l, &all->v[i].url) || !is_given(l, &all->v[i].secret))
            mo_config_error_of(l, &all->v[i],
                               "'approvals.webhooks.%zu' needs 'url' and "
                               "'secret'",
                               i + 1);
}

static bool has_text(const struct mo_config_list *all, struct mo_span text)
{
    for (size_t i = 0; i < all->n; i++)
        if (mo_span_is(text, all->v[i]))
            return true;
    return false;
}

/* A pattern that names a server must name one that the view can show. */
static void check_view_pattern(struct mo_config_load *l,
                               const struct mo_config_view *v, const char *text)
{
    struct mo_span rest = mo_span_cstr(*text == '!' ? text + 1 : text);
    struct mo_span name = mo_span_cut(&rest, '/');

    if (mo_span_find(name, '*') >= 0 || mo_span_find(name, '?') >= 0)
        return;
    if (!has_server(l->cfg, name))
        mo_config_error_of(l, &v->tools,
                           "'views.%s.tools': there is no server '%.*s'",
                           v->name, (int)mo_span_head(name, 64).n, name.p);
    else if (v->servers.n && !has_text(&v->servers, name))
        mo_config_error_of(
            l, &v->tools,
            "'views.%s.tools': the server '%.*s' is not in 'servers'", v->name,
            (int)name.n, name.p);
}

static void check_view(struct mo_config_load *l, const struct mo_config_view *v)
{
    char path[MO_KEY_PATH_MAX];

    for (size_t i = 0; i < v->servers.n; i++)
        if (!has_server(l->cfg, mo_span_cstr(v->servers.v[i])))
            mo_config_error_of(l, &v->servers,
                               "'views.%s.servers': there is no server "
                               "'%.64s'",
                               v->name, v->servers.v[i]);
    for (size_t i = 0; i < v->tools.n; i++)
        check_view_pattern(l, v, v->tools.v[i]);
    (void)snprintf(path, sizeof(path), "views.%s.rules", v->name);
    check_rules(l, &v->rules, path);
    if (v->rules.n && l->cfg->gateway.approvals == MO_GW_NO_RULES)
        mo_config_error_of(l, &v->rules,
                           "'%s' has no effect while 'gateway.approvals' is "
                           "off",
                           path);
}

/* --- other machines ------------------------------------------------------ */

static bool is_every_address(const char *listen)
{
    return strncmp(listen, "0.0.0.0:", 8) == 0 ||
           strncmp(listen, "[::]:", 5) == 0 || strncmp(listen, "*:", 2) == 0;
}

static void check_cluster(struct mo_config_load *l)
{
    const struct mo_config_cluster *c = &l->cfg->cluster;
    const char *store = l->cfg->store.url;

    if (!is_given(l, &c->listen)) {
        if (c->address || c->key)
            mo_config_error_of(l, c->key ? &c->key : &c->address,
                               "'cluster' needs 'listen': without it, servers "
                               "on other machines are not connected to");
        return;
    }
    if (!is_given(l, &c->key))
        mo_config_error_of(l, &c->listen,
                           "'cluster.listen' needs 'cluster.key': a key of at "
                           "least 32 bytes that all servers have, such as "
                           "${secret:cluster}");
    if (c->listen && is_every_address(c->listen) && !is_given(l, &c->address))
        mo_config_error_of(l, &c->listen,
                           "'cluster.listen' is every address of this machine: "
                           "'cluster.address' must say which one the other "
                           "servers use");
    if (store && strncmp(store, "sqlite:", 7) == 0)
        mo_config_error_of(l, &c->listen,
                           "'cluster.listen' needs a store that other machines "
                           "can reach: set 'store.url' to Redis");
}

void mo_config_check(struct mo_config_load *l)
{
    const struct mo_config *c = l->cfg;
    const struct mo_config_tls *tls = &c->server.tls;

    for (size_t i = 0; i < c->mcp.n; i++) {
        if (c->mcp.v[i].name)
            check_mcp(l, &c->mcp.v[i]);
    }
    check_network(l, &l->cfg->sandbox.network, "sandbox.network");
    check_mounts(l, &l->cfg->sandbox.mounts, "sandbox.mounts");
    check_rules(l, &c->approvals.rules, "approvals.rules");
    check_webhooks(l, &c->approvals.webhooks);
    for (size_t i = 0; i < c->views.n; i++) {
        if (c->views.v[i].name)
            check_view(l, &c->views.v[i]);
    }
    if (!tls->cert != !tls->key)
        mo_config_error_of(l, tls->cert ? &tls->cert : &tls->key,
                           "'server.tls' needs both 'cert' and 'key'");
    check_cluster(l);
    check_people(l);
    check_budgets(l);
    check_token_budgets(l);
}
