/* serve_config.c - applies a reloaded configuration to the running server, and
 * reads its certificate. See serve_priv.h. */
#include "app/serve_priv.h"

#include <stdio.h>

#include "audit/audit_config.h"
#include "base/mem.h"
#include "codec/http/url.h"
#include "config/reload.h"
#include "connect/accounts.h"
#include "people/login.h"

/* The files may be root's: then the privileged helper reads them. */
static struct mo_tls_ctx *new_tls(const struct server *s, struct mo_err *e)
{
    const struct mo_config_tls *c = &s->first->server.tls;
    mo_autofd int cert_fd = -1, key_fd = -1;
    char cert[PATH_MAX], key[PATH_MAX];

    mo_own_user_file(s->user, c->cert, &cert_fd, cert);
    mo_own_user_file(s->user, c->key, &key_fd, key);
    return mo_tls_server_new(cert, key, e);
}

int mo_serve_make_tls(struct server *s, struct mo_err *e)
{
    const struct mo_config_tls *c = &s->first->server.tls;

    if (!c->cert || !c->key)
        return 0;
    s->tls = new_tls(s, e);
    if (s->tls)
        return 0;
    if (e->code == MO_ETLS ||
        e->code == MO_EIO) /* the files are wrong, not the library */
        e->code = MO_EINVAL;
    return mo_wrap(e, "server.tls");
}

/* New connections use a renewed certificate; an invalid one is ignored. */
static void renew_tls(struct server *s)
{
    struct mo_tls_ctx *fresh;
    struct mo_err e;

    if (!s->tls)
        return;
    fresh = new_tls(s, &e);
    if (!fresh) {
        mo_log_err(s->log, MO_ERROR, "serve", &e,
                   "keeping the old certificate");
        return;
    }
    mo_httpd_tls(mo_site_httpd(s->site), fresh);
    mo_tls_free(s->tls);
    s->tls = fresh;
}

int mo_serve_make_people(struct server *s, struct mo_err *e)
{
    const struct mo_config *now = s->config->now;
    int rc;

    if (s->people)
        return mo_people_reload(s->people, now, e);
    if (now->people.providers.n == 0)
        return 0;
    rc = mo_people_new(s->loop, now, &s->people, e);
    if (rc == 0 && s->worker.common) {
        mo_people_share(s->people, &s->worker.common->proofs);
        mo_logins_share(mo_people_logins(s->people), &s->worker.common->ended);
    }
    if (rc == 0 && s->runtime)
        mo_serve_keep_logins(s);
    else if (rc == 0)
        mo_logins_expect(mo_people_logins(s->people));
    return rc;
}

void mo_serve_keep_logins(struct server *s)
{
    struct mo_store *store = s->runtime ? mo_runtime_store(s->runtime) : NULL;
    struct mo_err e;

    if (s->people && mo_logins_use(mo_people_logins(s->people), store, &e) < 0)
        mo_log_err(s->log, MO_WARN, "people", &e,
                   "who signs in is signed out by a restart");
}

/* Persons connect to servers on the page (connect/accounts.h). */
static void tell_accounts(struct server *s, struct mo_span url)
{
    const char *set = s->config->now->people.url;
    struct mo_accounts *all =
        s->gateway
            ? mo_server_link_accounts(mo_gateway_setup_link(s->gateway), NULL)
            : NULL;
    mo_autobuf struct mo_buf b = {.max = MO_URL_MAX};

    if (set)
        url = mo_span_cstr(set);
    while (url.n && url.p[url.n - 1] == '/')
        url.n--;
    if (all && mo_buf_span(&b, url) == 0)
        (void)mo_accounts_page(all, mo_buf_cstr(&b));
}

void mo_serve_tell_people(struct server *s)
{
    mo_autobuf struct mo_buf url = {.max = MO_URL_MAX};
    struct mo_err e;

    mo_listen_auth_url(&s->first->server, s->tls != NULL,
                       mo_httpd_port(mo_site_httpd(s->site)), &url);
    tell_accounts(s, mo_buf_view(&url));
    if (s->people && url.len &&
        mo_people_set_url(s->people, mo_buf_cstr(&url), &e) < 0)
        mo_log_err(s->log, MO_ERROR, "people", &e, "set people.url");
}

struct mo_gate mo_serve_gate(const struct server *s)
{
    const struct mo_config_list *origins = &s->config->now->server.origins;

    return (struct mo_gate){.token = s->auth.token[0] ? s->auth.token : NULL,
                            .tokens = s->auth.people,
                            .ntokens = s->auth.npeople,
                            .people = s->people,
                            .grants = s->grants,
                            .origins = (const char *const *)origins->v,
                            .norigins = origins->n};
}

struct mo_httpd_limits mo_serve_limits(const struct mo_config_limits *c)
{
    return (struct mo_httpd_limits){
        .connections = (unsigned)c->connections,
        .per_peer = (unsigned)c->per_peer,
        .head_ms = (unsigned)c->head_ms,
        .body_ms = (unsigned)c->body_ms,
        .idle_ms = (unsigned)c->idle_ms,
        .send_ms = (unsigned)c->send_ms,
        .requests = (unsigned)c->requests,
        .body = (size_t)c->body_bytes,
        .queue = (size_t)c->queue_bytes,
    };
}

void mo_serve_make_link(struct server *s)
{
    mo_listen_auth_link(&s->auth, &s->first->server, s->tls != NULL,
                        mo_httpd_port(mo_site_httpd(s->site)), &s->link);
}

void mo_serve_apply_sessions(struct server *s)
{
    const struct mo_config *now = s->config->now;

    if (s->runtime)
        mo_runtime_reload(s->runtime, now);
    if (s->agent)
        mo_agent_setup_reload(s->agent, now);
}

static const struct mo_gate_person *person_of(const struct mo_listen_auth *d,
                                              const char *name)
{
    for (size_t i = 0; i < d->npeople; i++)
        if (strcmp(d->people[i].name, name) == 0)
            return &d->people[i];
    return NULL;
}

/* Closes connections that were opened with another token or role. Their clients
 * connect again and are judged anew. */
static void drop_changed(struct server *s, const struct mo_listen_auth *was)
{
    const struct mo_listen_auth *now = &s->auth;

    if (strcmp(was->token, now->token) != 0) {
        mo_site_drop(s->site, "", "token", "");
        mo_site_drop(s->site, "", "page", "");
    }
    for (size_t i = 0; i < was->npeople; i++) {
        const struct mo_gate_person *old = &was->people[i];
        const struct mo_gate_person *p = person_of(now, old->name);

        if (!p || p->role != old->role)
            mo_site_drop(s->site, old->name, NULL, NULL);
        else if (strcmp(p->token, old->token) != 0)
            mo_site_drop(s->site, old->name, NULL, "");
    }
}

/* The same for people of providers who came with a token; logins are judged in
 * people/login.h. */
static void drop_provided(struct server *s, const struct mo_config *was)
{
    char who[MO_REQ_CALLER_MAX];

    for (size_t i = 0; i < was->people.providers.n; i++) {
        (void)snprintf(who, sizeof(who),
                       "%s:", was->people.providers.v[i].name);
        mo_site_drop(s->site, who, "token", NULL);
    }
}

static bool has_new_people(const struct mo_reload_news *news)
{
    return mo_span_search(mo_buf_view(&news->changed), MO_SPAN("\"people")) >=
               0 ||
           news->changed.len > MO_RELOAD_KEYS_MAX / 2; /* it may be cut */
}

static void apply_config(void *ctx)
{
    struct server *s = ctx;
    struct mo_listen_auth was = s->auth;
    const struct mo_config *now = s->config->now;
    struct mo_httpd_limits limits = mo_serve_limits(&now->server.limits);
    struct mo_gate gate;
    struct mo_err e;

    if (mo_listen_auth_token(&s->auth, now, s->first->server.listen, s->log,
                             &e) < 0)
        mo_log_err(s->log, MO_ERROR, "config", &e, "keeping the old token");
    mo_serve_make_link(s);
    if (mo_serve_make_people(s, &e) < 0)
        mo_log_err(s->log, MO_ERROR, "people", &e, "keeping the old providers");
    mo_serve_tell_people(s);
    gate = mo_serve_gate(s);
    mo_site_gate(s->site, &gate);
    drop_changed(s, &was);
    explicit_bzero(&was, sizeof(was));
    mo_httpd_limit(mo_site_httpd(s->site), &limits);
    renew_tls(s);
    if (s->approvals && mo_approvals_reload(s->approvals, now, &e) < 0)
        mo_log_err(s->log, MO_ERROR, "gateway", &e, "keeping the old rules");
    if (s->gateway && mo_gateway_setup_reload(s->gateway, now, &e) < 0)
        mo_log_err(s->log, MO_ERROR, "gateway", &e, "keeping the old servers");
    mo_serve_apply_sessions(s);
}

void mo_serve_reload(struct server *s, const char *by)
{
    const struct mo_config *was = mo_config_ref(s->config->now);
    struct mo_reload_news news;
    struct mo_config_report rep;

    mo_reload(s->config, s->first, s->log, &rep, &news, apply_config, s);
    if (has_new_people(&news))
        drop_provided(s, was);
    mo_config_unref(was);
    if (s->approvals && s->worker.number <= 1) /* once, by the first worker */
        mo_audit_reloaded(mo_approvals_audit(s->approvals), s->config->path, by,
                          &rep, &news);
    mo_buf_fini(&news.changed);
    mo_buf_fini(&news.waiting);
}

static void check_helper(struct server *s)
{
    if (!s->user->helper || s->helper_gone ||
        mo_privileged_alive(s->user->helper, s->user->helper_pid))
        return;
    s->helper_gone = true;
    mo_log(s->log, MO_ERROR, "serve",
           "the privileged helper has ended: no native boxes can be started "
           "and files of root cannot be read again; restart the server");
}

static void on_watch(struct mo_timer *t)
{
    struct server *s = mo_container_of(t, struct server, watch);

    check_helper(s);
    if (mo_config_stale(s->config)) {
        mo_serve_reload(s, "file");
        mo_worker_found(&s->worker);
    }
    mo_timer_start(s->loop, t, MO_RELOAD_WATCH_MS);
}

void mo_serve_watch(struct server *s)
{
    mo_timer_init(&s->watch, on_watch);
    mo_timer_start(s->loop, &s->watch, MO_RELOAD_WATCH_MS);
}
