/* From a refusal to a token, against an authorization server on a real
 * socket that is its own protected resource. */
#include "mcp/oauth/oauth.h"

#include <netdb.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include "codec/http/url.h"
#include "codec/text/base64.h"
#include "loop/httpd.h"
#include "mcp/oauth/oauth_ask.h"
#include "mcp/oauth/oauth_back.h"
#include "mo_net.h"

struct mock {
    struct mo_loop *l;
    struct mo_httpd *httpd;
    struct mo_httpc *http;
    struct mo_tokens *tokens;
    struct mo_oauth *oauth;
    char base[64], server[80];
    unsigned registered, codes, refreshed, urls; /* what it was asked */
    bool refuse_refresh;
    unsigned patience;     /* ms */
    const char *error;     /* of that refusal */
    bool absent;           /* nobody opens the address */
    unsigned ended, badly; /* on_end, with a reason */
    char redirect[64];     /* of the last registration or sign-in */
    unsigned expires;      /* s, of its tokens */
    bool gone, httpd_gone, http_gone;
    struct mo_buf location; /* where the browser is sent */
    bool dpop;              /* it knows proofs */
    bool unbind;            /* it forgets the key in a refresh */
    const char *nonce;      /* that it wants in them; or NULL */
    unsigned proofs, told;  /* with a nonce, and how often it was missing */
    char key[512];          /* the header of the last proof: with its key */
    bool proved;            /* this request has a proof */
};

static void reply_fmt(struct mo_req *rq, int status, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));

static void reply_fmt(struct mo_req *rq, int status, const char *fmt, ...)
{
    char text[1024];
    va_list ap;

    va_start(ap, fmt);
    (void)vsnprintf(text, sizeof(text), fmt, ap);
    va_end(ap);
    mo_req_reply(rq, status, "application/json", mo_span_cstr(text));
}

static void on_form(struct mo_req *rq, struct mo_span body)
{
    struct mock *m = rq->data;
    bool refresh = mo_span_search(body, MO_SPAN("=refresh_token")) >= 0;

    if (m->proved && m->nonce && !m->proofs) {
        m->told++;
        mo_req_header(rq, "DPoP-Nonce", mo_span_cstr(m->nonce));
        reply_fmt(rq, 400, "{\"error\":\"use_dpop_nonce\"}");
        return;
    }
    if (!refresh)
        m->codes++;
    else
        m->refreshed++;
    if (refresh && m->refuse_refresh)
        reply_fmt(rq, 400, "{\"error\":\"%s\"}", m->error);
    else
        reply_fmt(rq, 200,
                  "{\"access_token\":\"t%u\",\"token_type\":\"%s\","
                  "\"refresh_token\":\"r\",\"expires_in\":%u}",
                  m->codes + m->refreshed,
                  m->proved && !(refresh && m->unbind) ? "DPoP" : "Bearer",
                  m->expires);
}

/* The signature is test_dpop.c's. */
static void take_proof(struct mock *m, struct mo_req *rq)
{
    mo_autobuf struct mo_buf claims = {.max = 4096};
    struct mo_span proof = mo_http_get(rq->head, "DPoP"), head;

    m->proved = proof.p != NULL;
    m->proofs = 0;
    if (!m->proved)
        return;
    head = mo_span_cut(&proof, '.');
    assert_int_equal(mo_base64url_decode(mo_span_cut(&proof, '.'), &claims), 0);
    assert_true(head.n < sizeof(m->key));
    memcpy(m->key, head.p, head.n);
    m->key[head.n] = '\0';
    assert_true(
        mo_span_search(mo_buf_view(&claims), MO_SPAN("\"htm\":\"POST\"")) > 0);
    m->proofs = m->nonce && mo_span_search(mo_buf_view(&claims),
                                           mo_span_cstr(m->nonce)) > 0;
}

static void on_request(void *ctx, struct mo_req *rq)
{
    struct mock *m = ctx;
    const char *b = m->base;

    rq->data = m;
    if (mo_span_is(rq->path, "/.well-known/oauth-protected-resource/mcp"))
        reply_fmt(rq, 200,
                  "{\"resource\":\"%s\",\"authorization_servers\":[\"%s\"]}",
                  m->server, b);
    else if (mo_span_is(rq->path, "/.well-known/oauth-authorization-server"))
        reply_fmt(rq, 200,
                  "{\"issuer\":\"%s\",\"authorization_endpoint\":\"%s/a\","
                  "\"token_endpoint\":\"%s/t\",\"registration_endpoint\":"
                  "\"%s/r\",\"code_challenge_methods_supported\":[\"S256\"]"
                  ",\"dpop_signing_alg_values_supported\":[\"%s\"]}",
                  b, b, b, b, m->dpop ? "ES256" : "none");
    else if (mo_span_is(rq->path, "/r"))
        reply_fmt(rq, 201, "{\"client_id\":\"c%u\"}", ++m->registered);
    else if (mo_span_is(rq->path, "/t")) {
        take_proof(m, rq);
        mo_req_body(rq, 0, on_form);
    } else
        reply_fmt(rq, 404, "{}");
}

/* --- the browser: straight back to where the address says ---------------- */

static void browser_done(void *ctx, const struct mo_err *why)
{
    (void)ctx;
    (void)why; /* then nobody signs in, and the test says so */
}

static const struct mo_http_cb browser_cb = {.on_done = browser_done};

static void on_sign_in(void *ctx, const char *url)
{
    struct mock *m = ctx;
    struct mo_span q = mo_span_cstr(url);
    struct mo_http_call c = {.total_ms = WAIT_MS};
    struct mo_httpc_x *x;

    m->urls++;
    (void)mo_span_cut(&q, '?');
    mo_buf_reset(&m->location);
    (void)mo_query_get(q, "redirect_uri", &m->location);
    (void)snprintf(m->redirect, sizeof(m->redirect), "%s",
                   mo_buf_cstr(&m->location));
    mo_buf_puts(&m->location, "?code=x&state=");
    (void)mo_query_get(q, "state", &m->location);
    c.url = mo_buf_cstr(&m->location);
    if (!m->absent && !mo_buf_err(&m->location))
        (void)mo_httpc_start(m->http, &c, &browser_cb, m, &x, NULL);
}

static void on_end(void *ctx, const struct mo_err *why)
{
    struct mock *m = ctx;

    m->ended++;
    m->badly += why != NULL;
}

/* --- set up -------------------------------------------------------------- */

static int open_oauth(struct mock *m, struct mo_oauth_opts o)
{
    o.on_sign_in = on_sign_in;
    o.on_end = on_end;
    o.server = m->server;
    o.ctx = m;
    o.loop = m->l;
    o.http = m->http;
    o.tokens = m->tokens;
    return mo_oauth_new(&o, &m->oauth, NULL);
}

static void mock_init_as(struct mock *m, struct mo_oauth_opts o)
{
    struct mo_httpd_opts ho = {.handler = on_request, .ctx = m};
    struct mo_listen_opts lo = {.addr = "127.0.0.1:0"};
    struct mo_httpc_opts co = {.active = 8};

    *m = (struct mock){
        .l = loop_new(), .expires = 3600, .error = "invalid_grant"};
    mo_buf_init(&m->location, 4096);
    m->httpd = mo_httpd_new(m->l, &ho, NULL);
    assert_int_equal(mo_httpd_listen(m->httpd, &lo, NULL), 0);
    (void)snprintf(m->base, sizeof(m->base), "http://127.0.0.1:%u",
                   mo_httpd_port(m->httpd));
    (void)snprintf(m->server, sizeof(m->server), "%s/mcp", m->base);
    m->http = mo_httpc_new(m->l, &co, NULL);
    assert_int_equal(mo_tokens_open(NULL, &m->tokens, NULL), 0);
    assert_int_equal(open_oauth(m, o), 0);
}

static void mock_init(struct mock *m, bool wait)
{
    mock_init_as(m, (struct mo_oauth_opts){.wait = wait});
}

static void set_true(void *ctx)
{
    *(bool *)ctx = true;
}

static bool is_true(void *ctx)
{
    return *(bool *)ctx;
}

static void close_oauth(struct mock *m)
{
    m->gone = false;
    mo_oauth_close(m->oauth, set_true, &m->gone);
    wait_for(m->l, is_true, &m->gone);
}

static void mock_fini(struct mock *m)
{
    close_oauth(m);
    mo_httpc_close(m->http, set_true, &m->http_gone);
    wait_for(m->l, is_true, &m->http_gone);
    mo_httpd_close(m->httpd, 0, set_true, &m->httpd_gone);
    wait_for(m->l, is_true, &m->httpd_gone);
    mo_tokens_close(m->tokens);
    mo_buf_fini(&m->location);
    mo_loop_free(m->l);
}

struct ticket {
    struct mo_auth_wait w;
    unsigned told;
    int rc;
    struct mo_oauth *oauth;
};

static void on_told(struct mo_auth_wait *w, const struct mo_err *why)
{
    struct ticket *t = mo_container_of(w, struct ticket, w);

    t->told++;
    t->rc = why ? why->code : 0;
}

static bool is_told(void *ctx)
{
    return ((struct ticket *)ctx)->told > 0;
}

static int refuse(struct mock *m, struct ticket *t, int status,
                  const char *challenge)
{
    struct mo_auth *a = mo_oauth_auth(m->oauth);
    struct mo_err e;

    *t = (struct ticket){.w = {.done = on_told}};
    mo_list_init(&t->w.node);
    (void)a->ops->header(a, &t->w.serial);
    return a->ops->refused(a, &t->w, status, mo_span_cstr(challenge), &e);
}

static bool header_is(struct mock *m, const char *text)
{
    struct mo_auth *a = mo_oauth_auth(m->oauth);
    uint64_t serial;

    return mo_span_is(a->ops->header(a, &serial), text);
}

/* --- tests --------------------------------------------------------------- */

/* Two refusals, one sign-in, through the door on this machine. */
static void test_sign_in(void **state)
{
    struct ticket t[2];
    struct mock m;

    (void)state;
    mock_init(&m, true);
    assert_int_equal(mo_oauth_state(m.oauth), MO_OAUTH_IS_NONE);
    assert_int_equal(refuse(&m, &t[0], 401, "Bearer"), 0);
    assert_int_equal(refuse(&m, &t[1], 401, "Bearer"), 0);
    wait_for(m.l, is_told, &t[0]);
    wait_for(m.l, is_told, &t[1]);
    assert_int_equal(t[0].rc, 0);
    assert_int_equal(t[1].rc, 0);
    assert_int_equal(m.urls, 1);
    assert_int_equal(m.codes, 1);
    assert_true(header_is(&m, "Bearer t1"));
    assert_int_equal(mo_oauth_state(m.oauth), MO_OAUTH_IS_READY);
    mock_fini(&m);
}

/* The second refusal refreshes; one right behind it signs in anew; and so
 * does a refresh that is refused. */
static void test_refresh(void **state)
{
    struct ticket t;
    struct mock m;

    (void)state;
    mock_init(&m, true);
    for (unsigned i = 0; i < 3; i++) {
        assert_int_equal(refuse(&m, &t, 401, "Bearer"), 0);
        wait_for(m.l, is_told, &t);
        assert_int_equal(t.rc, 0);
        assert_int_equal(m.codes, i < 2 ? 1 : 2);
        assert_int_equal(m.refreshed, i < 1 ? 0 : 1);
    }
    assert_true(header_is(&m, "Bearer t3"));
    mock_fini(&m);
    mock_init(&m, true);
    m.refuse_refresh = true;
    for (unsigned i = 0; i < 2; i++) {
        assert_int_equal(refuse(&m, &t, 401, "Bearer"), 0);
        wait_for(m.l, is_told, &t);
        assert_int_equal(t.rc, 0);
    }
    assert_int_equal(m.refreshed, 1);
    assert_int_equal(m.codes, 2);
    mock_fini(&m);
}

static bool was_refreshed(void *ctx)
{
    return header_is(ctx, "Bearer t2");
}

static struct mo_span proof_of(struct mock *m)
{
    struct mo_auth *a = mo_oauth_auth(m->oauth);

    return a->ops->proof(a, "POST", m->server);
}

static void sign_in_with(struct mock *m, const char *challenge)
{
    struct ticket t;

    assert_int_equal(refuse(m, &t, 401, challenge), 0);
    wait_for(m->l, is_told, &t);
    assert_int_equal(t.rc, 0);
}

/* Both the issuer and the server must know proofs. */
static void test_unbound(void **state)
{
    struct mock m;

    (void)state;
    mock_init(&m, true);
    m.dpop = true;
    sign_in_with(&m, "Bearer");
    assert_true(header_is(&m, "Bearer t1"));
    assert_false(m.proved);
    assert_int_equal(proof_of(&m).n, 0);
    mock_fini(&m);
    mock_init(&m, true);
    sign_in_with(&m, "DPoP");
    assert_true(header_is(&m, "Bearer t1"));
    assert_false(m.proved);
    mock_fini(&m);
}

/* The key lives as long as the refresh token, in another process too. */
static void test_bound(void **state)
{
    struct ticket t;
    struct mock m;
    char key[512];

    (void)state;
    mock_init(&m, true);
    m.dpop = true;
    m.nonce = "n1";
    sign_in_with(&m, "DPoP algs=\"ES256\"");
    assert_true(header_is(&m, "DPoP t1"));
    assert_int_equal(m.told, 1);
    assert_int_equal(m.codes, 1);
    assert_true(mo_span_starts(proof_of(&m), mo_span_cstr(m.key)));
    memcpy(key, m.key, sizeof(key));
    close_oauth(&m);
    assert_int_equal(open_oauth(&m, (struct mo_oauth_opts){.wait = true}), 0);
    assert_true(header_is(&m, "DPoP t1"));
    assert_true(mo_span_starts(proof_of(&m), mo_span_cstr(key)));
    sign_in_with(&m, "DPoP error=invalid_token");
    assert_int_equal(m.refreshed, 1);
    assert_string_equal(m.key, key);
    assert_true(header_is(&m, "DPoP t2"));
    m.unbind = true; /* another sign-in: the issuer forgot the key */
    close_oauth(&m);
    assert_int_equal(open_oauth(&m, (struct mo_oauth_opts){.wait = true}), 0);
    assert_int_equal(refuse(&m, &t, 401, "DPoP"), 0);
    wait_for(m.l, is_told, &t);
    assert_int_equal(m.refreshed, 2);
    assert_int_equal(m.codes, 2);
    assert_string_not_equal(m.key, key);
    assert_true(header_is(&m, "DPoP t4"));
    mock_fini(&m);
}

/* The server's nonce: tried again once, and no new token for it. */
static void test_nonce(void **state)
{
    static const char told[] = "DPoP error=\"use_dpop_nonce\"";
    struct mo_auth *a;
    struct ticket t;
    struct mock m;
    struct mo_err e;

    (void)state;
    mock_init(&m, true);
    m.dpop = true;
    sign_in_with(&m, "DPoP");
    a = mo_oauth_auth(m.oauth);
    a->ops->nonce(a, MO_SPAN("abc"));
    assert_int_equal(refuse(&m, &t, 401, told), 0);
    assert_int_equal(t.told, 0);
    wait_for(m.l, is_told, &t);
    assert_int_equal(t.rc, 0);
    assert_int_equal(m.codes + m.refreshed, 1);
    assert_int_equal(a->ops->refused(a, &t.w, 401, mo_span_cstr(told), &e),
                     MO_EPOLICY);
    mock_fini(&m);
}

/* A token of a short life is renewed before anybody is refused. */
static void test_ahead(void **state)
{
    struct ticket t;
    struct mock m;

    (void)state;
    mock_init(&m, true);
    m.expires = 1;
    assert_int_equal(refuse(&m, &t, 401, "Bearer"), 0);
    wait_for(m.l, is_told, &t);
    m.expires = 3600;
    wait_for(m.l, was_refreshed, &m);
    assert_int_equal(m.refreshed, 1);
    mock_fini(&m);
}

static void test_step_up(void **state)
{
    static const char more[] = "Bearer error=insufficient_scope, scope=";
    struct ticket t;
    char text[96];
    struct mock m;

    (void)state;
    mock_init(&m, true);
    assert_int_equal(refuse(&m, &t, 403, "Bearer"), MO_EPOLICY);
    assert_int_equal(refuse(&m, &t, 403, "Basic"), MO_EPOLICY);
    for (unsigned i = 0; i < MO_OAUTH_STEP_UPS; i++) {
        (void)snprintf(text, sizeof(text), "%s%u", more, i);
        assert_int_equal(refuse(&m, &t, 403, text), 0);
        wait_for(m.l, is_told, &t);
        assert_int_equal(t.rc, 0);
        assert_int_equal(refuse(&m, &t, 403, text), MO_EPOLICY);
    }
    (void)snprintf(text, sizeof(text), "%s9", more);
    assert_int_equal(refuse(&m, &t, 403, text), MO_EPOLICY);
    mock_fini(&m);
}

static bool is_ready(void *ctx)
{
    return mo_oauth_state(ctx) == MO_OAUTH_IS_READY;
}

/* Who may not wait hears so at once; the sign-in goes on without him. */
static void test_no_wait(void **state)
{
    struct ticket t;
    struct mock m;

    (void)state;
    mock_init(&m, false);
    assert_int_equal(refuse(&m, &t, 401, "Bearer"), 0);
    wait_for(m.l, is_told, &t);
    assert_int_equal(t.rc, MO_EPOLICY);
    wait_for(m.l, is_ready, m.oauth);
    mock_fini(&m);
}

/* Closed in the middle of it. */
static void test_close(void **state)
{
    struct ticket t;
    struct mock m;

    (void)state;
    mock_init(&m, true);
    assert_int_equal(refuse(&m, &t, 401, "Bearer"), 0);
    mock_fini(&m);
    assert_int_equal(t.told, 1);
    assert_int_equal(t.rc, MO_ECANCELED);
}

/* --- nobody to ask ------------------------------------------------------- */

/* Nothing is asked, nothing registered; a refresh is still made. */
static void test_mute(void **state)
{
    struct mo_oauth_opts mute = {.mute = true};
    struct ticket t;
    struct mock m;

    (void)state;
    mock_init_as(&m, mute);
    assert_int_equal(refuse(&m, &t, 401, "Bearer"), MO_EPOLICY);
    assert_int_equal(mo_oauth_state(m.oauth), MO_OAUTH_IS_BARRED);
    assert_int_equal(m.registered + m.urls, 0);
    close_oauth(&m);
    assert_int_equal(open_oauth(&m, (struct mo_oauth_opts){.wait = true}), 0);
    assert_int_equal(refuse(&m, &t, 401, "Bearer"), 0);
    wait_for(m.l, is_told, &t);
    close_oauth(&m);
    assert_int_equal(open_oauth(&m, mute), 0);
    assert_int_equal(mo_oauth_state(m.oauth), MO_OAUTH_IS_READY);
    assert_int_equal(refuse(&m, &t, 401, "Bearer"), 0);
    wait_for(m.l, is_told, &t);
    assert_int_equal(t.rc, 0);
    assert_int_equal(m.refreshed, 1);
    close_oauth(&m);
    assert_int_equal(open_oauth(&m, mute), 0);
    m.refuse_refresh = true;
    assert_int_equal(refuse(&m, &t, 401, "Bearer"), 0);
    wait_for(m.l, is_told, &t);
    assert_int_equal(t.rc, MO_EPOLICY);
    assert_int_equal(mo_oauth_state(m.oauth), MO_OAUTH_IS_BARRED);
    assert_int_equal(m.urls, 1);
    mock_fini(&m);
}

/* --- who we are ---------------------------------------------------------- */

static bool has_ended(void *ctx)
{
    return ((struct mock *)ctx)->ended > 0;
}

/* One sign-in that nobody finishes, one that somebody does, one after all
 * tokens are lost: one registration, one port. Then the issuer forgets us. */
static void test_register_once(void **state)
{
    struct mo_oauth_opts once = {.sign_in_ms = 20}, wait = {.wait = true};
    struct ticket t;
    char first[64];
    struct mock m;

    (void)state;
    mock_init_as(&m, once);
    m.absent = true;
    assert_int_equal(refuse(&m, &t, 401, "Bearer"), 0);
    wait_for(m.l, has_ended, &m);
    assert_int_equal(m.badly, 1);
    (void)snprintf(first, sizeof(first), "%s", m.redirect);
    m.absent = false;
    for (unsigned i = 0; i < 3; i++) {
        close_oauth(&m);
        assert_int_equal(open_oauth(&m, wait), 0);
        m.refuse_refresh = true;
        m.error = i < 2 ? "invalid_grant" : "invalid_client";
        assert_int_equal(refuse(&m, &t, 401, "Bearer"), 0);
        wait_for(m.l, is_told, &t);
        assert_int_equal(t.rc, 0);
        assert_int_equal(m.registered, i < 2 ? 1 : 2);
        assert_int_equal(strcmp(m.redirect, first) == 0, i < 2);
    }
    assert_int_equal(m.ended, 4);
    mock_fini(&m);
}

static int never(void *ctx, struct mo_span query)
{
    (void)ctx;
    (void)query;
    return MO_EINVAL;
}

static void test_back(void **state)
{
    static const struct {
        const char *uri, *other;
        bool ok, same;
    } rows[] = {
        {"http://127.0.0.1/callback", "http://127.0.0.1:99/callback", true,
         true},
        {"http://localhost/x/y", "http://LOCALHOST:9/x/y", true, true},
        {"http://[::1]:7/", "http://[::1]:7/", true, true},
        {"http://[::1]:7/", "http://[::1]:8/", true, false},
        {"http://127.0.0.1/a", "http://127.0.0.1:9/b", true, false},
        {"http://127.0.0.1/a", "http://localhost:9/a", true, false},
        {"https://127.0.0.1/a", "https://127.0.0.1/a", false, false},
        {"http://10.0.0.1/a", "http://10.0.0.1/a", false, false},
        {"http://u@127.0.0.1/a", "http://127.0.0.1/a", false, false},
        {"http://127.0.0.1/a?b", "http://127.0.0.1/a?b", false, false},
        {"http://127.0.0.1", "http://127.0.0.1", false, false},
        {"callback", "callback", false, false},
    };
    struct mo_loop *l = loop_new();
    struct mo_back *a, *b;
    bool gone = false;

    (void)state;
    for (size_t i = 0; i < MO_COUNT(rows); i++) {
        check_row(rows[i].uri, !mo_back_check(rows[i].uri) == rows[i].ok);
        check_row(rows[i].uri,
                  mo_back_same(rows[i].uri, rows[i].other) == rows[i].same);
    }
    assert_int_equal(
        mo_back_open(l, "http://localhost/", never, NULL, &a, NULL), 0);
    assert_true(mo_back_same("http://localhost/", mo_back_uri(a)));
    assert_int_not_equal(mo_back_open(l, mo_back_uri(a), never, NULL, &b, NULL),
                         0);
    assert_int_equal(mo_back_open(l, "http://a/b", never, NULL, &b, NULL),
                     MO_EINVAL);
    mo_back_close(a, set_true, &gone);
    wait_for(l, is_true, &gone);
    mo_loop_run(l);
    mo_loop_free(l);
}

/* --- the issuer of a configured secret ----------------------------------- */

/* Opens it again, with the server at that host: the issuer is 127.0.0.1. */
static void reopen_at(struct mock *m, const char *host, struct mo_oauth_opts o)
{
    close_oauth(m);
    (void)snprintf(m->server, sizeof(m->server), "http://%s:%u/mcp", host,
                   mo_httpd_port(m->httpd));
    o.wait = true;
    o.client_id = "by hand";
    assert_int_equal(open_oauth(m, o), 0);
}

static int sign_in_once(struct mock *m)
{
    struct ticket t;
    int rc = refuse(m, &t, 401, "Bearer");

    if (rc < 0)
        return rc;
    wait_for(m->l, is_told, &t);
    return t.rc;
}

static void test_secret_is_pinned(void **state)
{
    struct mo_oauth_opts secret = {.client_secret = "s"}, pinned = secret;
    char slash[80];
    struct mock m;

    (void)state;
    mock_init(&m, true);
    reopen_at(&m, "localhost", secret);
    assert_int_equal(sign_in_once(&m), MO_EPOLICY);
    assert_int_equal(m.urls, 0); /* nobody was sent to a browser */
    assert_int_equal(m.codes, 0);
    reopen_at(&m, "localhost", (struct mo_oauth_opts){.client_secret = NULL});
    assert_int_equal(sign_in_once(&m), 0); /* there is no secret */
    assert_int_equal(mo_tokens_drop(m.tokens, NULL, m.server, NULL), 0);
    reopen_at(&m, "127.0.0.1", secret);
    assert_int_equal(sign_in_once(&m), 0); /* the server's own host */
    pinned.issuer = "https://login.example";
    reopen_at(&m, "127.0.0.1", pinned);
    assert_int_equal(sign_in_once(&m), MO_EPOLICY);
    assert_int_equal(m.refreshed, 0); /* nor is the old token refreshed */
    (void)snprintf(slash, sizeof(slash), "%s/", m.base);
    pinned.issuer = slash;
    reopen_at(&m, "localhost", pinned);
    assert_int_equal(sign_in_once(&m), 0);
    reopen_at(&m, "localhost", secret);
    m.refuse_refresh = true;
    assert_int_equal(sign_in_once(&m), 0); /* remembered */
    assert_int_equal(m.codes, 4);
    mock_fini(&m);
}

/* --- private addresses --------------------------------------------------- */

struct asked {
    struct mo_oauth_ask q;
    bool done;
    int rc;
};

static void on_answer(struct mo_oauth_ask *q, const struct mo_err *why)
{
    struct asked *a = mo_container_of(q, struct asked, q);

    a->done = true;
    a->rc = why ? why->code : 0;
}

static int ask_at(struct mock *m, const char *server, bool local,
                  const char *host)
{
    struct asked a = {.q = {.http = m->http,
                            .server = server,
                            .local = local,
                            .done = on_answer}};
    char url[300];

    mo_oauth_ask_init(&a.q);
    (void)snprintf(url, sizeof(url), "https://%s:%u/", host,
                   mo_httpd_port(m->httpd));
    a.rc =
        mo_oauth_ask(&a.q, url, NULL, mo_span(NULL, 0), mo_span(NULL, 0), NULL);
    if (a.rc == 0)
        wait_for(m->l, is_true, &a.done);
    mo_oauth_ask_fini(&a.q);
    return a.rc;
}

static bool resolves_to_loopback(const char *host)
{
    struct addrinfo hint = {.ai_family = AF_INET, .ai_socktype = SOCK_STREAM};
    struct addrinfo *v = NULL;
    bool yes = false;

    if (getaddrinfo(host, NULL, &hint, &v) == 0)
        yes = ((const unsigned char *)&(
                   (const struct sockaddr_in *)(const void *)v->ai_addr)
                   ->sin_addr)[0] == 127;
    if (v)
        freeaddrinfo(v);
    return yes;
}

/* A public server names an address of ours, written so that it looks like a
 * name. This machine's own name is one indeed, where it has one. */
static void test_private(void **state)
{
    static const char *const hosts[] = {"127.0.0.1", "127.1", "2130706433",
                                        "0177.0.0.1", "[::ffff:127.0.0.1]"};
    char name[256] = "";
    struct mock m;

    (void)state;
    mock_init(&m, true);
    for (size_t i = 0; i < MO_COUNT(hosts); i++)
        check_row(hosts[i], ask_at(&m, "https://mcp.example/", false,
                                   hosts[i]) == MO_EPOLICY);
    assert_int_equal(gethostname(name, sizeof(name) - 1), 0);
    if (resolves_to_loopback(name) && strcmp(name, "localhost") != 0) {
        assert_int_equal(ask_at(&m, "https://mcp.example/", false, name),
                         MO_EPOLICY);
        assert_int_equal(mo_httpd_stats(m.httpd).accepted, 0);
        assert_int_equal(ask_at(&m, "https://mcp.example/", true, name),
                         MO_ETLS); /* it is no TLS server, but was asked */
        assert_int_equal(ask_at(&m, "https://10.9.8.7/", false, name), MO_ETLS);
    }
    mock_fini(&m);
}

/* --- without memory ------------------------------------------------------ */

static bool is_asked_or_told(void *ctx)
{
    struct ticket *t = ctx;

    return t->told || (t->oauth && mo_oauth_url(t->oauth));
}

/* One sign-in or refresh, as far as it gets. The browser is us. */
static void one_flow(struct mock *m)
{
    struct ticket t;
    struct mo_buf b;

    if (refuse(m, &t, 401, "Bearer scope=\"a\"") < 0)
        return;
    t.oauth = m->oauth;
    assert_true(mo_loop_until(m->l, is_asked_or_told, &t, m->patience) ||
                m->patience < WAIT_MS);
    mo_buf_init(&b, 4096);
    if (!t.told && mo_oauth_url(m->oauth)) {
        struct mo_span q = mo_span_cstr(mo_oauth_url(m->oauth));

        (void)mo_span_cut(&q, '?');
        mo_buf_puts(&b, "http://localhost:1/?code=x&state=");
        if (mo_query_get(q, "state", &b) == 0)
            (void)mo_oauth_redirected(m->oauth, mo_buf_view(&b), NULL);
    }
    mo_buf_fini(&b);
    t.oauth = NULL;
    if (!mo_oauth_url(m->oauth)) /* else nobody has come back */
        assert_true(mo_loop_until(m->l, is_asked_or_told, &t, m->patience) ||
                    m->patience < WAIT_MS);
    mo_list_del(&t.w.node);
}

/* Sign in, refresh, end. */
static void short_life(void *ctx)
{
    struct mock *m = ctx;
    struct mo_oauth_opts o = {.wait = true, .redirect = "http://localhost:1/"};

    m->absent = true;
    if (open_oauth(m, o) < 0)
        return;
    one_flow(m);
    one_flow(m);
    close_oauth(m);
    (void)mo_tokens_drop(m->tokens, NULL, m->server, NULL);
}

/* With any allocation failing, ours or the mock's, every ticket is told and
 * nothing is left. When all fail from there on, the mock may answer nobody
 * any more, and we do not wait for that. */
static void test_memory(void **state)
{
    struct mock m;
    uint64_t n;

    (void)state;
    mock_init(&m, true);
    close_oauth(&m);
    m.patience = WAIT_MS;
    mo_mem_fail_at(0, false);
    short_life(&m);
    n = mo_mem_count();
    for (uint64_t i = 1; i <= n; i++) {
        m.patience = WAIT_MS;
        mo_mem_fail_at(i, false);
        short_life(&m);
        m.patience = 2;
        mo_mem_fail_at(i, true);
        short_life(&m);
    }
    mo_mem_fail_at(0, false);
    assert_int_equal(open_oauth(&m, (struct mo_oauth_opts){.wait = true}), 0);
    mock_fini(&m);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_sign_in),
        cmocka_unit_test(test_refresh),
        cmocka_unit_test(test_unbound),
        cmocka_unit_test(test_bound),
        cmocka_unit_test(test_nonce),
        cmocka_unit_test(test_ahead),
        cmocka_unit_test(test_step_up),
        cmocka_unit_test(test_no_wait),
        cmocka_unit_test(test_close),
        cmocka_unit_test(test_mute),
        cmocka_unit_test(test_register_once),
        cmocka_unit_test(test_back),
        cmocka_unit_test(test_private),
        cmocka_unit_test(test_secret_is_pinned),
        cmocka_unit_test(test_memory),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
