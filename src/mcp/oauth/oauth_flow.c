/* oauth_flow.c - the steps from a refusal to a token.
 *
 * Invariants
 *  1. f->end is deferred at most once, when no request is running; it frees
 *     f.
 *  2. Only mo_flow_set_state() writes f->state. */
#include "mcp/oauth/oauth_flow_priv.h"

#define ARENA_MAX ((size_t)2 * 1024 * 1024)
#define FORM_MAX  MO_FLOW_FORM_MAX
#define URL_MAX   ((size_t)16 * 1024)

/* --- ends and steps ------------------------------------------------------ */

void mo_flow_set_state(struct mo_flow *f, enum flow_state to)
{
    static const uint16_t legal[] = {
        [RESOURCE] = MO_TO(ISSUER) | MO_TO(ENDED),
        [ISSUER] = MO_TO(REGISTER) | MO_TO(SIGN_IN) | MO_TO(DEVICE) |
                   MO_TO(EXCHANGE) | MO_TO(TOKEN) | MO_TO(ENDED),
        [EXCHANGE] = MO_TO(TOKEN) | MO_TO(ENDED),
        [REGISTER] = MO_TO(SIGN_IN) | MO_TO(DEVICE) | MO_TO(ENDED),
        [DEVICE] = MO_TO(PAUSE) | MO_TO(ENDED),
        [PAUSE] = MO_TO(POLL) | MO_TO(ENDED),
        [POLL] = MO_TO(PAUSE) | MO_TO(ENDED),
        [SIGN_IN] = MO_TO(TOKEN) | MO_TO(ENDED),
        [TOKEN] = MO_TO(ENDED),
        [REFRESH] = MO_TO(ENDED),
        [ENDED] = 0,
    };

    MO_MOVE(f->state, to, legal);
}

static void flow_free(struct mo_flow *f)
{
    mo_timer_stop(f->o.oauth->loop, &f->timer);
    mo_later_cancel(&f->end);
    mo_oauth_ask_fini(&f->q);
    mo_dpop_fini(&f->dpop);
    mo_buf_wipe(&f->form);
    explicit_bzero(&f->attempt, sizeof(f->attempt));
    mo_arena_fini(&f->a);
    mo_free(f);
}

static void on_end(struct mo_later *d)
{
    struct mo_flow *f = mo_container_of(d, struct mo_flow, end);
    bool good = f->why.code == 0;

    f->o.done(f->o.ctx, good ? &f->token : NULL, f->attempt.scope,
              good ? NULL : &f->why);
    flow_free(f);
}

void mo_flow_finish(struct mo_flow *f, const struct mo_err *why)
{
    mo_flow_set_state(f, ENDED);
    if (why)
        f->why = *why;
    mo_timer_stop(f->o.oauth->loop, &f->timer);
    mo_loop_defer(f->o.oauth->loop, &f->end);
}

static void run_step(struct mo_flow *f);

static void on_answer(struct mo_oauth_ask *q, const struct mo_err *why)
{
    struct mo_flow *f = mo_container_of(q, struct mo_flow, q);

    if (f->state == ENDED) /* cancelled in the meantime */
        mo_loop_defer(f->o.oauth->loop, &f->end);
    else if (why && f->state == POLL)
        mo_flow_pause(f, true);
    else if (why)
        mo_flow_finish(f, why);
    else
        run_step(f);
}

static int ask_next_url(struct mo_flow *f, struct mo_err *e)
{
    return mo_oauth_ask(&f->q, f->urls.v[f->at], NULL, mo_span(NULL, 0),
                        mo_span(NULL, 0), e);
}

/* Returns 1 if the document is here, 0 if the next address was requested,
 * MO_ENOTFOUND if there is none left. */
static int found_document(struct mo_flow *f, struct mo_err *e)
{
    if (f->q.status == 200)
        return 1;
    if (f->q.status < 400 || f->q.status >= 500)
        return mo_fail(e, MO_EUNAVAIL, "metadata: the server answers %d",
                       f->q.status);
    if (++f->at < f->urls.n)
        return ask_next_url(f, e);
    return mo_fail(e, MO_ENOTFOUND, "no metadata found at any known address");
}

/* --- the answer of the token endpoint ------------------------------------ */

/* The issuer may have deleted our client; then we must register again. */
static void forget_client(struct mo_flow *f)
{
    if (f->known && f->o.on_client)
        f->o.on_client(f->o.ctx, NULL);
    f->known = false;
}

int mo_flow_handle_token(struct mo_flow *f, struct mo_err *e)
{
    struct mo_span body = mo_buf_view(&f->q.body);
    bool was_bound = f->state == REFRESH && f->token.dpop;
    const char *error;
    int rc = mo_flow_post_again(f, e);

    if (rc != 0)
        return rc;
    if (f->q.status >= 400 && f->q.status < 500) {
        error = mo_oauth_error(&f->a, body);
        if (strcmp(error, "invalid_client") == 0)
            forget_client(f);
        return mo_fail(e, MO_EPOLICY, "the issuer refused a token: %.80s",
                       error);
    }
    if (f->q.status != 200)
        return mo_fail(e, MO_EUNAVAIL, "the token endpoint answers %d",
                       f->q.status);
    rc = mo_oauth_token_parse(&f->a, body, mo_wall_ms(), &f->token, e);
    if (rc == 0 && was_bound && !f->token.dpop)
        return mo_fail(e, MO_EPOLICY, "the new token is not bound to our key");
    if (rc == 0)
        mo_flow_finish(f, NULL);
    return rc;
}

/* --- signing in ---------------------------------------------------------- */

static int choose_scope(struct mo_flow *f)
{
    const char *told =
        f->challenge.scope ? f->challenge.scope : f->resource.scope;
    const char **scope = &f->attempt.scope;
    int rc = mo_oauth_scope_union(&f->a, f->o.scope, told, scope);

    if (rc == 0 && !f->o.oauth->machine.grant &&
        mo_oauth_scope_has(f->issuer.scope, MO_SPAN("offline_access")))
        rc = mo_oauth_scope_union(&f->a, *scope, "offline_access", scope);
    return rc;
}

static void on_timer(struct mo_timer *t)
{
    struct mo_flow *f = mo_container_of(t, struct mo_flow, timer);

    if (f->state == PAUSE) {
        mo_flow_poll(f);
        return;
    }
    forget_client(f); /* perhaps the issuer no longer knows the client */
    mo_flow_finish(f, mo_error(MO_ETIMEOUT, "nobody signed in"));
}

static int start_redirect(struct mo_flow *f, struct mo_err *e)
{
    uint64_t ms =
        f->o.oauth->sign_in_ms ? f->o.oauth->sign_in_ms : MO_FLOW_SIGN_IN_MS;
    mo_autobuf struct mo_buf url = {.max = URL_MAX};
    int rc;

    mo_flow_set_state(f, SIGN_IN);
    mo_oauth_try_fresh(&f->attempt);
    rc = mo_oauth_authorize_url(&url, f->issuer.authorize, f->client.id,
                                &f->attempt);
    if (rc == 0)
        rc = mo_buf_putc(&url, '\0');
    if (rc < 0)
        return mo_fail(e, rc, "sign-in address");
    mo_timer_start(f->o.oauth->loop, &f->timer, ms);
    f->o.on_url(f->o.ctx, url.p);
    return 0;
}

static bool wants_device(const struct mo_flow *f)
{
    return f->o.oauth->on_device && f->issuer.device;
}

static int start_sign_in(struct mo_flow *f, struct mo_err *e)
{
    return wants_device(f) ? mo_flow_start_device(f, e) : start_redirect(f, e);
}

int mo_flow_redirected(struct mo_flow *f, struct mo_span query,
                       struct mo_err *e)
{
    mo_autowipe struct mo_buf form = {.max = FORM_MAX};
    struct mo_err why = {0};
    const char *code;
    int rc;

    if (f->state != SIGN_IN)
        return mo_fail(e, MO_EINVAL, "no sign-in is pending");
    rc = mo_oauth_redirect(&f->a, query, f->attempt.state, &f->issuer, &code,
                           &why);
    if (rc == MO_EINVAL) {
        if (e)
            *e = why;
        return rc;
    }
    mo_timer_stop(f->o.oauth->loop, &f->timer);
    if (rc == 0) {
        mo_flow_set_state(f, TOKEN);
        (void)mo_oauth_code_body(&form, &f->client, &f->attempt, code);
        rc = mo_flow_post(f, &form, &why);
    }
    if (rc < 0)
        mo_flow_finish(f, &why);
    return 0;
}

/* --- the client ---------------------------------------------------------- */

/* Was the configured client's secret sent to this issuer before? */
static bool is_known_issuer(const struct mo_flow *f, const struct mo_token *k)
{
    return k && k->client && k->endpoint && (k->access || k->refresh) &&
           strcmp(k->client, f->o.oauth->client_id) == 0 &&
           mo_oauth_same_host(k->endpoint, f->issuer.token);
}

/* A configured secret belongs to one issuer, and the server is free to name
 * another one. */
static int check_secret(const struct mo_flow *f, const struct mo_token *k,
                        struct mo_err *e)
{
    const struct mo_oauth_opts *o = f->o.oauth;

    if (!o->client_secret || o->issuer || is_known_issuer(f, k))
        return 0;
    if (mo_oauth_same_host(o->server, f->issuer.issuer) &&
        mo_oauth_same_host(o->server, f->issuer.token))
        return 0;
    return mo_fail(e, MO_EPOLICY,
                   "the client secret is not sent to another host than the "
                   "server's; if the client is registered there, set "
                   "oauth.issuer to \"%.80s\"",
                   f->issuer.issuer);
}

static int use_known_client(struct mo_flow *f, struct mo_err *e)
{
    const struct mo_oauth_opts *o = f->o.oauth;
    const struct mo_token *k = mo_tokens_get(
        o->clients ? o->clients : o->tokens, f->issuer.issuer, o->server);

    if (f->o.oauth->client_id) {
        if (check_secret(f, k, e) < 0)
            return MO_EPOLICY;
        f->client.id = f->o.oauth->client_id;
        f->client.secret = f->o.oauth->client_secret;
        f->client.method = mo_oauth_pick(f->issuer.auth, f->client.secret);
        if (f->o.oauth->machine.private_key)
            f->client.method = MO_OAUTH_KEY;
        return 1;
    }
    if (f->o.oauth->machine.grant) { /* it may do without */
        f->client.method = MO_OAUTH_NONE;
        return 1;
    }
    if (f->issuer.cimd && f->o.oauth->client_url) {
        f->client.id = f->o.oauth->client_url;
        f->client.method = MO_OAUTH_NONE;
        return 1;
    }
    if (!k || !k->client || !k->redirect || !k->method ||
        strcmp(k->redirect, f->o.redirect) != 0)
        return 0;
    f->client.method = mo_oauth_auth_method(mo_span_cstr(k->method));
    f->known = true;
    if (mo_oauth_copy(&f->a, k->client, &f->client.id) < 0 ||
        mo_oauth_copy(&f->a, k->secret, &f->client.secret) < 0)
        return mo_fail(e, MO_ENOMEM, "client");
    return 1;
}

static unsigned method_to_ask_for(unsigned offered)
{
    if (offered & MO_OAUTH_NONE)
        return MO_OAUTH_NONE;
    return offered & MO_OAUTH_BASIC ? MO_OAUTH_BASIC : MO_OAUTH_POST;
}

static int register_client(struct mo_flow *f, struct mo_err *e)
{
    mo_autobuf struct mo_buf b = {.max = FORM_MAX};
    int rc;

    if (!f->issuer.registration)
        return mo_fail(e, MO_EPOLICY,
                       "the issuer does not register clients: a client id "
                       "must be configured");
    mo_flow_set_state(f, REGISTER);
    rc = mo_oauth_register_body(
        &b, f->o.oauth->client_name, f->o.redirect, f->attempt.scope,
        method_to_ask_for(f->issuer.auth), wants_device(f));
    if (rc < 0)
        return mo_fail(e, rc, "registration");
    return mo_oauth_ask(&f->q, f->issuer.registration, "application/json",
                        mo_buf_view(&b), mo_span(NULL, 0), e);
}

/* Set the owner of the token. A configured client is not stored: it may be a
 * secret that must stay in one place only. */
static void set_token_owner(struct mo_flow *f, struct mo_token *k)
{
    k->issuer = f->issuer.issuer;
    k->server = f->o.oauth->server;
    k->resource = f->resource.resource;
    k->revocation = f->issuer.revocation;
    k->client = f->client.id;
    k->secret = f->o.oauth->client_id ? NULL : f->client.secret;
    k->method = mo_oauth_auth_name(f->client.method);
    k->redirect = f->o.redirect;
    k->local = f->q.local;
}

static int handle_registration(struct mo_flow *f, struct mo_err *e)
{
    struct mo_token k = {.expires_ms = 0};
    struct mo_span body = mo_buf_view(&f->q.body);
    int rc;

    if (f->q.status != 200 && f->q.status != 201)
        return mo_fail(e, f->q.status >= 500 ? MO_EUNAVAIL : MO_EPOLICY,
                       "registration refused (%d): %.80s", f->q.status,
                       mo_oauth_error(&f->a, body));
    rc = mo_oauth_register_parse(&f->a, body, f->issuer.auth, &f->client, e);
    if (rc < 0)
        return rc;
    set_token_owner(f, &k);
    if (f->o.on_client)
        f->o.on_client(f->o.ctx, &k);
    return start_sign_in(f, e);
}

/* --- discovery ----------------------------------------------------------- */

static bool is_pinned_elsewhere(const struct mo_flow *f, const char *issuer)
{
    return f->o.oauth->issuer &&
           !mo_oauth_same_issuer(f->o.oauth->issuer, issuer);
}

static int look_for_issuer(struct mo_flow *f, const char *issuer,
                           struct mo_err *e)
{
    int rc = mo_oauth_url_ok(issuer, f->o.oauth->server, e);

    if (rc < 0)
        return mo_wrap(e, "issuer");
    if (is_pinned_elsewhere(f, issuer))
        return mo_fail(e, MO_EPOLICY,
                       "the server names the issuer %.80s, and oauth.issuer "
                       "is %.80s",
                       issuer, f->o.oauth->issuer);
    mo_flow_set_state(f, ISSUER);
    f->issuer.issuer = issuer;
    f->at = 0;
    rc = mo_oauth_issuer_urls(&f->a, issuer, &f->urls);
    return rc < 0 ? mo_fail(e, rc, "issuer") : ask_next_url(f, e);
}

static int try_without_resource(struct mo_flow *f, struct mo_err *e)
{
    const char *origin;
    int rc = mo_oauth_at_origin(&f->a, f->o.oauth->server, "", &origin);

    if (rc < 0)
        return mo_fail(e, rc, "server");
    f->legacy = true;
    f->resource.resource = f->o.oauth->server;
    return look_for_issuer(f, origin, e);
}

static int handle_resource(struct mo_flow *f, struct mo_err *e)
{
    int rc = found_document(f, e);
    size_t at = 0;

    if (rc == MO_ENOTFOUND && !f->challenge.resource_metadata)
        return try_without_resource(f, e);
    if (rc <= 0)
        return rc;
    rc = mo_oauth_resource_parse(&f->a, mo_buf_view(&f->q.body),
                                 f->o.oauth->server, &f->resource, e);
    if (rc < 0)
        return rc;
    while (at + 1 < f->resource.nservers &&
           is_pinned_elsewhere(f, f->resource.servers[at]))
        at++;
    return look_for_issuer(f, f->resource.servers[at], e);
}

static int parse_issuer(struct mo_flow *f, struct mo_err *e)
{
    const char *issuer = f->issuer.issuer;
    int rc = found_document(f, e);

    if (rc == MO_ENOTFOUND && f->legacy) {
        rc = mo_oauth_server_default(&f->a, f->o.oauth->server, &f->issuer);
        return rc < 0 ? mo_fail(e, rc, "endpoints") : 1;
    }
    if (rc <= 0)
        return rc;
    rc = mo_oauth_server_parse_any(&f->a, mo_buf_view(&f->q.body), issuer,
                                   f->o.oauth->server, &f->issuer, e);
    if (rc == 0 && !f->o.oauth->machine.grant)
        rc = mo_oauth_server_check(&f->issuer, e);
    return rc < 0 ? rc : 1;
}

static int handle_issuer(struct mo_flow *f, struct mo_err *e)
{
    int rc = parse_issuer(f, e);

    if (rc <= 0)
        return rc;
    rc = choose_scope(f);
    if (rc < 0)
        return mo_fail(e, rc, "scope");
    f->attempt.redirect = f->o.redirect;
    f->attempt.resource = f->resource.resource;
    f->token.endpoint = f->issuer.token;
    rc = mo_flow_bind(f, e);
    if (rc == 0)
        rc = use_known_client(f, e);
    if (rc < 0)
        return rc;
    if (f->o.oauth->machine.grant)
        return mo_flow_start_machine(f, e);
    return rc ? start_sign_in(f, e) : register_client(f, e);
}

/* Handle an answer. Each step sends the next request or finishes. */
static void run_step(struct mo_flow *f)
{
    static int (*const steps[])(struct mo_flow *, struct mo_err *) = {
        [RESOURCE] = handle_resource,     [ISSUER] = handle_issuer,
        [REGISTER] = handle_registration, [TOKEN] = mo_flow_handle_token,
        [REFRESH] = mo_flow_handle_token, [DEVICE] = mo_flow_handle_device,
        [POLL] = mo_flow_handle_poll,     [EXCHANGE] = mo_flow_handle_exchange,
    };
    struct mo_err e = {0};

    MO_BUG_ON(f->state == SIGN_IN || f->state == PAUSE || f->state == ENDED);
    if (steps[f->state](f, &e) < 0)
        mo_flow_finish(f, &e);
    if (f->state != ENDED || f->why.code)
        return;
    set_token_owner(f, &f->token);
    if (!f->token.scope)
        f->token.scope = f->attempt.scope;
}

/* --- starting ------------------------------------------------------------ */

static struct mo_flow *flow_new(const struct mo_flow_opts *o,
                                enum flow_state state)
{
    struct mo_flow *f = mo_new(struct mo_flow);

    if (!f)
        return NULL;
    f->o = *o;
    f->state = state;
    f->q.http = o->oauth->http;
    f->q.server = o->oauth->server;
    f->q.local = o->local;
    f->q.done = on_answer;
    mo_oauth_ask_init(&f->q);
    mo_buf_init(&f->form, FORM_MAX);
    mo_arena_init(&f->a, ARENA_MAX);
    mo_timer_init(&f->timer, on_timer);
    mo_later_init(&f->end, on_end);
    return f;
}

int mo_flow_start(const struct mo_flow_opts *o,
                  const struct mo_oauth_challenge *c, struct mo_flow **out,
                  struct mo_err *e)
{
    struct mo_flow *f = flow_new(o, RESOURCE);
    int rc;

    if (!f)
        return mo_fail(e, MO_ENOMEM, "sign-in");
    f->challenge.dpop = c->dpop;
    rc = mo_oauth_copy(&f->a, c->scope, &f->challenge.scope);
    if (rc == 0)
        rc = mo_oauth_copy(&f->a, c->resource_metadata,
                           &f->challenge.resource_metadata);
    if (rc == 0)
        rc = mo_oauth_resource_urls(&f->a, o->oauth->server,
                                    f->challenge.resource_metadata, &f->urls);
    if (rc < 0)
        (void)mo_fail(e, rc, "sign-in");
    else
        rc = ask_next_url(f, e);
    if (rc < 0)
        flow_free(f);
    else
        *out = f;
    return rc;
}

/* Copy the unchanged members of the old token. */
static int copy_old_token(struct mo_flow *f, const struct mo_token *old)
{
    const struct {
        const char *from, **to;
    } texts[] = {
        {old->issuer, &f->issuer.issuer},
        {old->resource, &f->resource.resource},
        {old->endpoint, &f->token.endpoint},
        {old->revocation, &f->issuer.revocation},
        {old->client, &f->client.id},
        {old->secret, &f->client.secret},
        {old->redirect, &f->o.redirect},
        {old->refresh, &f->token.refresh},
        {old->dpop, &f->token.dpop},
        {old->scope, &f->token.scope},
        {old->scope, &f->attempt.scope},
    };
    int rc = 0;

    for (size_t i = 0; i < MO_COUNT(texts) && rc == 0; i++)
        rc = mo_oauth_copy(&f->a, texts[i].from, texts[i].to);
    f->token.resource = f->resource.resource;
    f->known = !f->o.oauth->client_id ||
               strcmp(f->o.oauth->client_id, old->client) != 0;
    if (!f->known)
        f->client.secret = f->o.oauth->client_secret;
    f->q.local = f->q.local || old->local;
    f->client.method = mo_oauth_auth_method(mo_span_cstr(old->method));
    return rc;
}

int mo_flow_refresh(const struct mo_flow_opts *o, const struct mo_token *old,
                    struct mo_flow **out, struct mo_err *e)
{
    mo_autowipe struct mo_buf form = {.max = FORM_MAX};
    struct mo_flow *f;
    int rc;

    if (!old->refresh || !old->endpoint || !old->client || !old->method)
        return mo_fail(e, MO_EPOLICY, "the token cannot be refreshed");
    if (o->oauth->issuer &&
        !mo_oauth_same_issuer(o->oauth->issuer, old->issuer))
        return mo_fail(e, MO_EPOLICY, "the token is of another issuer");
    f = flow_new(o, REFRESH);
    if (!f)
        return mo_fail(e, MO_ENOMEM, "refresh");
    rc = copy_old_token(f, old);
    if (rc < 0)
        (void)mo_fail(e, rc, "refresh");
    else
        rc = mo_dpop_read(&f->dpop, f->token.dpop, e);
    if (rc == 0) {
        (void)mo_oauth_refresh_body(&form, &f->client, &f->token);
        rc = mo_flow_post(f, &form, e);
    }
    if (rc < 0)
        flow_free(f);
    else
        *out = f;
    return rc;
}

void mo_flow_cancel(struct mo_flow *f)
{
    if (f->state == ENDED)
        return;
    mo_flow_set_state(f, ENDED);
    (void)mo_fail(&f->why, MO_ECANCELED, "sign-in given up");
    mo_timer_stop(f->o.oauth->loop, &f->timer);
    if (!mo_oauth_ask_cancel(&f->q)) /* otherwise on_answer() does it */
        mo_loop_defer(f->o.oauth->loop, &f->end);
}
