#include "web/oidc.h"

#include <stdio.h>

#include "base/clock.h"
#include "base/rand.h"
#include "codec/http/url.h"
#include "config/keys.h"
#include "mcp/oauth/oauth_req.h"
#include "mcp/server/seal.h"
#include "people/login.h"
#include "secrets/resolve.h"
#include "web/sign_in.h"

#define COOKIE     "mo_try_" /* followed by the port */
#define COOKIE_MAX ((size_t)4096)
#define URL_SIZE   ((size_t)8192)
#define NONCE      24 /* bytes */

/* What the cookie of a beginning holds. */
struct
try {
    char provider[MO_KEY_NAME_MAX];
    char nonce[MO_TOKEN_LEN(NONCE) + 1];
    struct mo_oauth_try oauth; /* only its own texts */
};

/* A request that waits for the provider. */
struct job {
    struct mo_site *site;
    struct mo_req *rq;
    struct mo_provider_wait wait;
    struct mo_exchange *exchange; /* NULL: it waits for something else */
    struct try try;
    struct mo_buf cookie; /* of the login */
};

/* --- answers ------------------------------------------------------------- */

static void redirect(struct mo_req *rq, const char *where)
{
    mo_req_header(rq, "Location", mo_span_cstr(where));
    mo_req_reply(rq, 303, NULL, mo_span(NULL, 0));
}

/* The sign-in page again, with the reason. */
static void fail(struct mo_site *s, struct mo_req *rq, const struct mo_err *why)
{
    const char *code = why->code == MO_ENOTFOUND  ? "no_role"
                       : why->code == MO_EUNAVAIL ? "provider_unavailable"
                                                  : "sign_in_refused";

    mo_site_note_refused(s, rq, code, "sign-in");
    mo_req_problem(rq, why->code == MO_EUNAVAIL ? 503 : 403, code, why->msg);
}

static const struct mo_people *people_of(struct mo_site *s)
{
    return mo_site_gate_now(s)->people;
}

/* --- the cookie of a beginning ------------------------------------------- */

static const struct mo_seal *seal(void)
{
    static struct mo_seal keys; /* of this process; loop thread only */
    static bool is_made;

    if (!is_made)
        mo_seal_init(&keys);
    is_made = true;
    return &keys;
}

void mo_oidc_prepare(void)
{
    (void)seal();
}

static void put_try_cookie(struct mo_req *rq, const struct try *t)
{
    mo_autobuf struct mo_buf b = {.max = COOKIE_MAX};

    (void)mo_buf_printf(&b, COOKIE "%u=", mo_gate_port(rq));
    (void)mo_seal_put(seal(), MO_SPAN("sign-in"),
                      mo_now_ns() + (uint64_t)MO_OIDC_TRY_S * MO_S,
                      mo_span((const char *)t, sizeof(*t)), &b);
    /* Lax: the provider's redirect must bring it back. */
    (void)mo_buf_printf(&b,
                        "; Path=/sign-in/; Max-Age=%u; HttpOnly; "
                        "SameSite=Lax%s",
                        MO_OIDC_TRY_S, mo_req_is_tls(rq) ? "; Secure" : "");
    if (mo_buf_err(&b) == 0)
        mo_req_header(rq, "Set-Cookie", mo_buf_view(&b));
}

static void drop_try_cookie(struct mo_req *rq)
{
    mo_autobuf struct mo_buf b = {.max = COOKIE_MAX};

    (void)mo_buf_printf(&b,
                        COOKIE "%u=; Path=/sign-in/; Max-Age=0; HttpOnly; "
                               "SameSite=Lax",
                        mo_gate_port(rq));
    mo_req_header(rq, "Set-Cookie", mo_buf_view(&b));
}

static bool read_try_cookie(const struct mo_req *rq, struct try *t)
{
    mo_autowipe struct mo_buf plain = {.max = sizeof(*t)};
    char name[32];
    struct mo_span value;

    (void)snprintf(name, sizeof(name), COOKIE "%u", mo_gate_port(rq));
    value = mo_gate_find_cookie(rq, name);
    if (!value.p ||
        mo_seal_open(seal(), MO_SPAN("sign-in"), mo_now_ns(), value, &plain) <
            0 ||
        plain.len != sizeof(*t))
        return false;
    memcpy(t, plain.p, sizeof(*t));
    return true;
}

/* --- begin --------------------------------------------------------------- */

static struct mo_provider *provider_of(struct mo_site *s, struct mo_span name,
                                       const struct mo_config_provider **c)
{
    const struct mo_people *people = people_of(s);
    struct mo_provider *p = people ? mo_people_provider(people, name, c) : NULL;

    return p && (*c)->client_id ? p : NULL;
}

static void put_redirect(const struct mo_people *people, const char *provider,
                         struct mo_buf *out)
{
    (void)mo_buf_printf(out, "%s/sign-in/", mo_people_url(people));
    (void)mo_pct_encode(out, mo_span_cstr(provider));
    (void)mo_buf_puts(out, "/callback");
}

static void put_scopes(const struct mo_config_provider *c, struct mo_buf *out)
{
    (void)mo_buf_puts(out, "openid");
    for (size_t i = 0; i < c->scopes.n; i++)
        (void)mo_buf_printf(out, " %s", c->scopes.v[i]);
}

/* The provider's address with everything it needs to know. */
static int put_address(struct mo_site *s, const struct mo_config_provider *c,
                       const struct mo_oauth_server *server, struct try *t,
                       struct mo_buf *url, struct mo_err *e)
{
    const struct mo_people *people = people_of(s);
    mo_autobuf struct mo_buf client = {.max = URL_SIZE},
                             back = {.max = URL_SIZE},
                             scope = {.max = URL_SIZE};
    struct mo_oauth_try full;
    int rc = mo_reference_resolve(mo_people_config(people), c->client_id,
                                  &client, e);

    if (rc < 0)
        return rc;
    put_redirect(people, c->name, &back);
    put_scopes(c, &scope);
    full = t->oauth;
    full.redirect = mo_buf_cstr(&back);
    full.scope = mo_buf_cstr(&scope);
    (void)mo_oauth_authorize_url(url, server->authorize, mo_buf_cstr(&client),
                                 &full);
    (void)mo_buf_printf(url, "&nonce=%s", t->nonce);
    if (mo_buf_err(url) || mo_buf_err(&back) || mo_buf_err(&scope))
        return mo_fail(e, MO_ETOOBIG, "the provider's address is too long");
    return 0;
}

static void go(struct mo_site *s, struct mo_req *rq,
               const struct mo_config_provider *c,
               const struct mo_oauth_server *server)
{
    mo_autobuf struct mo_buf url = {.max = URL_SIZE};
    struct try t = {.nonce = ""};
    struct mo_err e;

    (void)snprintf(t.provider, sizeof(t.provider), "%s", c->name);
    mo_random_token(t.nonce, NONCE);
    mo_oauth_try_fresh(&t.oauth);
    if (put_address(s, c, server, &t, &url, &e) < 0) {
        fail(s, rq, &e);
        return;
    }
    put_try_cookie(rq, &t);
    redirect(rq, mo_buf_cstr(&url));
    explicit_bzero(t.oauth.verifier, sizeof(t.oauth.verifier));
}

static void free_job(struct job *j)
{
    explicit_bzero(j->try.oauth.verifier, sizeof(j->try.oauth.verifier));
    mo_buf_wipe(&j->cookie);
    mo_free(j);
}

static void on_gone(struct mo_req *rq)
{
    struct job *j = rq->data;

    if (j->exchange)
        mo_exchange_cancel(j->exchange);
    mo_provider_forget(&j->wait);
    free_job(j);
}

static struct job *new_job(struct mo_site *s, struct mo_req *rq)
{
    struct job *j = mo_new(struct job);

    if (!j) {
        mo_req_problem(rq, 503, "busy", "out of memory");
        return NULL;
    }
    j->site = s;
    j->rq = rq;
    mo_buf_init(&j->cookie, COOKIE_MAX);
    rq->data = j;
    rq->gone = on_gone;
    return j;
}

static struct mo_req *end_job(struct job *j)
{
    struct mo_req *rq = j->rq;

    rq->gone = NULL;
    rq->data = NULL;
    free_job(j);
    return rq;
}

static void come_back(struct mo_site *s, struct mo_req *rq, bool may_wait);

static void on_addresses(struct mo_provider_wait *w, const struct mo_err *why)
{
    struct job *j = mo_container_of(w, struct job, wait);
    struct mo_site *s = j->site;
    struct mo_req *rq = end_job(j);
    const struct mo_config_provider *c = NULL;
    struct mo_provider *p = provider_of(s, mo_req_segment(rq, 1), &c);

    if (!why && mo_span_ends(rq->path, MO_SPAN("/callback")))
        come_back(s, rq, false);
    else if (!why && p && mo_provider_server(p))
        go(s, rq, c, mo_provider_server(p));
    else
        fail(s, rq,
             mo_error(MO_EUNAVAIL, "the provider does not answer%s%s",
                      why ? ": " : "", why ? why->msg : ""));
}

static void wait_for(struct mo_site *s, struct mo_req *rq,
                     struct mo_provider *p)
{
    struct job *j = new_job(s, rq);

    if (!j)
        return;
    j->wait.done = on_addresses;
    mo_provider_read(p, &j->wait);
}

/* True if the browser used another name of this server than the provider will
 * send it back to: its cookie would not be there. */
static bool is_elsewhere(const struct mo_people *people,
                         const struct mo_req *rq)
{
    struct mo_host host;
    struct mo_url own;

    return mo_url_parse(mo_span_cstr(mo_people_url(people)), &own, NULL) == 0 &&
           mo_host_parse(mo_http_get(rq->head, "Host"),
                         mo_req_is_tls(rq) ? 443 : 80, &host) == 0 &&
           !(mo_span_ieq(own.host, host.name) &&
             (!host.has_port || own.port == host.port));
}

static void on_begin(void *ctx, struct mo_req *rq)
{
    struct mo_site *s = ctx;
    const struct mo_config_provider *c = NULL;
    struct mo_provider *p = provider_of(s, mo_req_segment(rq, 1), &c);
    mo_autobuf struct mo_buf there = {.max = URL_SIZE};

    if (!p) {
        mo_req_problem(rq, 404, "not_found", "there is no such provider");
    } else if (is_elsewhere(people_of(s), rq)) {
        (void)mo_buf_printf(&there, "%s/sign-in/%s",
                            mo_people_url(people_of(s)), c->name);
        redirect(rq, mo_buf_cstr(&there));
    } else if (mo_provider_server(p)) {
        go(s, rq, c, mo_provider_server(p));
    } else {
        wait_for(s, rq, p);
    }
}

/* --- come back ----------------------------------------------------------- */

/* The cookie is SameSite=Strict, and this request came from another site: only
 * a page of ours can go on with it. */
static void go_home(struct mo_req *rq)
{
    mo_req_reply(rq, 200, "text/html; charset=utf-8",
                 MO_SPAN("<!doctype html><title>Signed in</title>"
                         "<meta http-equiv=\"refresh\" content=\"0;url=/\">"
                         "<a href=\"/\">Go on</a>\n"));
}

static void welcome(struct job *j)
{
    drop_try_cookie(j->rq);
    mo_sign_in_note(j->site, j->rq, "signed in", "sign-in");
    mo_req_header(j->rq, "Set-Cookie", mo_buf_view(&j->cookie));
    go_home(end_job(j));
}

static void on_saved(struct mo_provider_wait *w, const struct mo_err *why)
{
    (void)why; /* a login that is in memory only is one, too */
    welcome(mo_container_of(w, struct job, wait));
}

static void on_exchanged(void *ctx, const struct mo_exchanged *got,
                         const struct mo_err *why)
{
    struct job *j = ctx;
    const struct mo_gate *gate = mo_site_gate_now(j->site);
    struct mo_site *s = j->site;
    struct mo_err e = {.code = 0};
    struct mo_req *rq;
    int rc = why ? why->code : 0;

    if (why)
        e = *why;
    if (rc == 0)
        rc = mo_gate_log_in(gate, j->rq, j->try.provider, got, &j->cookie, &e);
    j->exchange = NULL;
    if (rc < 0) {
        rq = end_job(j);
        drop_try_cookie(rq);
        fail(s, rq, &e);
        return;
    }
    j->wait.done = on_saved;
    if (!mo_login_wait_saved(mo_people_logins(gate->people), &j->wait))
        welcome(j);
}

static void exchange(struct job *j, const char *code)
{
    mo_autobuf struct mo_buf back = {.max = URL_SIZE};
    struct mo_people *people = mo_site_gate_now(j->site)->people;
    struct mo_site *s = j->site;
    struct mo_exchange_opts o = {
        .people = people,
        .provider = j->try.provider,
        .code = code,
        .verifier = j->try.oauth.verifier,
        .nonce = j->try.nonce,
        .done = on_exchanged,
        .ctx = j,
    };
    struct mo_err e;

    put_redirect(people, j->try.provider, &back);
    o.redirect = mo_buf_cstr(&back);
    if (mo_exchange_start(&o, &j->exchange, &e) < 0)
        fail(s, end_job(j), &e);
}

static void come_back(struct mo_site *s, struct mo_req *rq, bool may_wait)
{
    mo_autoarena struct mo_arena a = {.cap = 16 * URL_SIZE};
    const struct mo_config_provider *c = NULL;
    struct mo_provider *p = provider_of(s, mo_req_segment(rq, 1), &c);
    const struct mo_oauth_server *server = p ? mo_provider_server(p) : NULL;
    const char *code = NULL;
    struct try t;
    struct mo_err e;
    struct job *j;

    if (p && !server && may_wait) { /* after a reload */
        wait_for(s, rq, p);
        return;
    }
    if (!server || !read_try_cookie(rq, &t) ||
        strcmp(t.provider, c->name) != 0) {
        fail(s, rq,
             mo_error(MO_EPOLICY, "this sign-in did not begin in this browser, "
                                  "or took too long; begin again"));
        return;
    }
    if (mo_oauth_redirect(&a, rq->query, t.oauth.state, server, &code, &e) <
        0) {
        fail(s, rq, &e);
        return;
    }
    j = new_job(s, rq);
    if (!j)
        return;
    j->try = t;
    exchange(j, code);
}

static void on_callback(void *ctx, struct mo_req *rq)
{
    come_back(ctx, rq, true);
}

/* --- links --------------------------------------------------------------- */

static void put_html(struct mo_buf *b, const char *text)
{
    for (const char *p = text; *p; p++)
        if (strchr("<>&\"'", *p))
            (void)mo_buf_printf(b, "&#%d;", *p);
        else
            (void)mo_buf_putc(b, *p);
}

void mo_oidc_put_links(const struct mo_people *people, struct mo_buf *html)
{
    const struct mo_config_providers *all =
        &mo_people_config(people)->people.providers;

    for (size_t i = 0; i < all->n; i++) {
        const struct mo_config_provider *c = &all->v[i];

        if (!c->client_id)
            continue;
        (void)mo_buf_puts(html, "<a class=\"provider\" href=\"/sign-in/");
        (void)mo_pct_encode(html, mo_span_cstr(c->name));
        (void)mo_buf_puts(html, "\">Sign in with ");
        put_html(html, c->title ? c->title : c->name);
        (void)mo_buf_puts(html, "</a>\n");
    }
}

void mo_oidc_routes(struct mo_site *s)
{
    static const struct mo_route routes[] = {
        {MO_HTTP_GET, "/sign-in/{provider}", 0, on_begin},
        {MO_HTTP_GET, "/sign-in/{provider}/callback", 0, on_callback},
    };

    (void)mo_site_add(s, routes, MO_COUNT(routes), s);
}
