/* From a refusal to a token, against an authorization server on a real
 * socket that is its own protected resource. */
#include "mcp/oauth.h"

#include "codec/url.h"
#include "loop/httpd.h"
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
    unsigned expires; /* s, of its tokens */
    bool gone, httpd_gone, http_gone;
    struct mo_buf location; /* where the browser is sent */
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

    if (!refresh)
        m->codes++;
    else
        m->refreshed++;
    if (refresh && m->refuse_refresh)
        reply_fmt(rq, 400, "{\"error\":\"invalid_grant\"}");
    else
        reply_fmt(rq, 200,
                  "{\"access_token\":\"t%u\",\"token_type\":\"Bearer\","
                  "\"refresh_token\":\"r\",\"expires_in\":%u}",
                  m->codes + m->refreshed, m->expires);
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
                  "\"%s/r\",\"code_challenge_methods_supported\":[\"S256\"]}",
                  b, b, b, b);
    else if (mo_span_is(rq->path, "/r"))
        reply_fmt(rq, 201, "{\"client_id\":\"c%u\"}", ++m->registered);
    else if (mo_span_is(rq->path, "/t"))
        mo_req_body(rq, 0, on_form);
    else
        reply_fmt(rq, 404, "{}");
}

/* --- the browser: straight back to where the address says ----------------- */

static void browser_done(void *ctx, const struct mo_err *why)
{
    (void)ctx;
    assert_null(why);
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
    assert_int_equal(mo_query_get(q, "redirect_uri", &m->location), 0);
    mo_buf_puts(&m->location, "?code=x&state=");
    assert_int_equal(mo_query_get(q, "state", &m->location), 0);
    c.url = mo_buf_cstr(&m->location);
    assert_int_equal(mo_httpc_start(m->http, &c, &browser_cb, m, &x, NULL), 0);
}

/* --- set up --------------------------------------------------------------- */

static void mock_init(struct mock *m, bool wait)
{
    struct mo_httpd_opts ho = {.handler = on_request, .ctx = m};
    struct mo_listen_opts lo = {.addr = "127.0.0.1:0"};
    struct mo_httpc_opts co = {.active = 8};
    struct mo_oauth_opts o = {
        .wait = wait,
        .on_sign_in = on_sign_in,
        .server = m->server,
        .ctx = m,
    };

    *m = (struct mock){.l = loop_new(), .expires = 3600};
    mo_buf_init(&m->location, 4096);
    m->httpd = mo_httpd_new(m->l, &ho, NULL);
    assert_int_equal(mo_httpd_listen(m->httpd, &lo, NULL), 0);
    (void)snprintf(m->base, sizeof(m->base), "http://127.0.0.1:%u",
                   mo_httpd_port(m->httpd));
    (void)snprintf(m->server, sizeof(m->server), "%s/mcp", m->base);
    m->http = mo_httpc_new(m->l, &co, NULL);
    assert_int_equal(mo_tokens_open(NULL, &m->tokens, NULL), 0);
    o.loop = m->l;
    o.http = m->http;
    o.tokens = m->tokens;
    assert_int_equal(mo_oauth_new(&o, &m->oauth, NULL), 0);
}

static void set_true(void *ctx)
{
    *(bool *)ctx = true;
}

static bool is_true(void *ctx)
{
    return *(bool *)ctx;
}

static void mock_fini(struct mock *m)
{
    mo_oauth_close(m->oauth, set_true, &m->gone);
    wait_for(m->l, is_true, &m->gone);
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

/* --- tests ---------------------------------------------------------------- */

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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_sign_in), cmocka_unit_test(test_refresh),
        cmocka_unit_test(test_ahead),   cmocka_unit_test(test_step_up),
        cmocka_unit_test(test_no_wait), cmocka_unit_test(test_close),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
