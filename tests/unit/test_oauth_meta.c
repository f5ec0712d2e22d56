/* What servers say about their authorization, and what we say to them. */
#include "mcp/oauth/oauth_device.h"
#include "mcp/oauth/oauth_machine.h"
#include "mcp/oauth/oauth_meta.h"
#include "mcp/oauth/oauth_req.h"
#include "mo_test.h"

#define ARENA_MAX ((size_t)256 * 1024)
#define SERVER    "https://mcp.example/a/mcp"

static bool same(const char *a, const char *b)
{
    return (!a && !b) || (a && b && strcmp(a, b) == 0);
}

static void test_challenge(void **state)
{
    static const struct {
        const char *name, *in;
        int rc;
        bool bearer;
        const char *error, *scope, *meta;
        bool dpop, nonce;
    } rows[] = {
        {"nothing", "", 0, false, NULL, NULL, NULL},
        {"bare", "Bearer", 0, true, NULL, NULL, NULL},
        {"quoted", "Bearer scope=\"a b\", error=\"x\"", 0, true, "x", "a b",
         NULL},
        {"token value", "bearer error=x", 0, true, "x", NULL, NULL},
        {"all", "Bearer resource_metadata=\"https://a/b?c=d\",scope=s", 0, true,
         NULL, "s", "https://a/b?c=d"},
        {"others around",
         "Basic realm=\"a, b\", Bearer scope=x, Digest scope=y", 0, true, NULL,
         "x", NULL},
        {"not ours", "Basic scope=\"no\"", 0, false, NULL, NULL, NULL},
        {"the first one counts", "Bearer scope=a, scope=b", 0, true, NULL, "a",
         NULL},
        {"second challenge", "Bearer error=a, Bearer scope=b", 0, true, "a",
         NULL, NULL},
        {"escape", "Bearer scope=\"a\\\"b\"", 0, true, NULL, "a\"b", NULL},
        {"blanks around =", "Bearer scope = \"a\"", 0, true, NULL, "a", NULL},
        {"open quote", "Bearer error=x, scope=\"a", MO_EPROTO, true, "x", NULL,
         NULL},
        {"open escape", "Bearer scope=\"a\\", MO_EPROTO, true, NULL, NULL,
         NULL},
        {"no name", "Bearer , =x", MO_EPROTO, true, NULL, NULL, NULL},
        {"strange value", "Bearer scope=\"a\x01\"", 0, true, NULL, NULL, NULL},
        {"with proofs", "DPoP algs=\"ES256\", resource_metadata=\"https://a/\"",
         0, true, NULL, NULL, "https://a/", true, false},
        {"both", "Bearer scope=a, DPoP scope=b, error=\"c\"", 0, true, "c", "a",
         NULL, true, false},
        {"both, the other way", "dpop error=a, Bearer error=b, scope=c", 0,
         true, "a", "c", NULL, true, false},
        {"second one with proofs", "DPoP error=a, DPoP scope=b", 0, true, "a",
         NULL, NULL, true, false},
        {"nonce", "Bearer error=x, DPoP error=\"use_dpop_nonce\"", 0, true, "x",
         NULL, NULL, true, true},
        {"not its nonce", "Basic error=use_dpop_nonce", 0, false, NULL, NULL,
         NULL, false, false},
    };

    (void)state;
    for (size_t i = 0; i < MO_COUNT(rows); i++) {
        struct mo_oauth_challenge c;
        struct mo_arena a;
        int rc;

        mo_arena_init(&a, ARENA_MAX);
        rc = mo_oauth_challenge(&a, mo_span_cstr(rows[i].in), &c);
        check_row(rows[i].name, rc == rows[i].rc);
        check_row(rows[i].name, c.bearer == rows[i].bearer);
        check_row(rows[i].name, c.dpop == rows[i].dpop);
        check_row(rows[i].name, c.nonce == rows[i].nonce);
        check_row(rows[i].name, same(c.error, rows[i].error));
        check_row(rows[i].name, same(c.scope, rows[i].scope));
        check_row(rows[i].name, same(c.resource_metadata, rows[i].meta));
        mo_arena_fini(&a);
    }
}

static void test_url_ok(void **state)
{
    static const struct {
        const char *url, *server;
        bool ok;
    } rows[] = {
        {"https://as.example/t", SERVER, true},
        {"http://as.example/t", SERVER, false},
        {"https://u@as.example/", SERVER, false},
        {"https://as.example/#x", SERVER, false},
        {"ftp://as.example/", SERVER, false},
        {"javascript:alert(1)", SERVER, false},
        {"file:///etc/passwd", SERVER, false},
        {"https://127.0.0.1/", SERVER, false},
        {"http://localhost:9/", SERVER, false},
        {"https://10.1.2.3/", SERVER, false},
        {"https://172.16.0.1/", SERVER, false},
        {"https://172.32.0.1/", SERVER, true},
        {"https://192.168.1.1/", SERVER, false},
        {"https://100.64.0.1/", SERVER, false},
        {"https://169.254.169.254/latest", SERVER, false},
        {"https://0.0.0.0/", SERVER, false},
        {"https://[::1]/", SERVER, false},
        {"https://[fd00::1]/", SERVER, false},
        {"https://[fe80::1]/", SERVER, false},
        {"https://[::ffff:10.0.0.1]/", SERVER, false},
        {"https://[64:ff9b::a00:1]/", SERVER, false},
        {"https://[2001:db8::1]/", SERVER, false},
        {"https://[2606:4700::1111]/", SERVER, true},
        {"http://localhost:9/", "http://localhost:8/mcp", true},
        {"http://127.0.0.1:9/", "http://localhost:8/mcp", true},
        {"https://10.1.2.3/", "https://10.1.2.4/mcp", true},
        {"http://10.1.2.3/", "https://10.1.2.4/mcp", false},
    };

    (void)state;
    for (size_t i = 0; i < MO_COUNT(rows); i++)
        check_row(rows[i].url, (mo_oauth_url_ok(rows[i].url, rows[i].server,
                                                NULL) == 0) == rows[i].ok);
}

static void check_urls(const char *name, const struct mo_oauth_urls *u,
                       const char *const want[MO_OAUTH_URLS_MAX])
{
    for (size_t i = 0; i < MO_OAUTH_URLS_MAX; i++)
        check_row(name, same(i < u->n ? u->v[i] : NULL, want[i]));
}

static void test_places(void **state)
{
#define PR "/.well-known/oauth-protected-resource"
#define AS "/.well-known/oauth-authorization-server"
#define ID "/.well-known/openid-configuration"
    static const struct {
        const char *url;
        const char *resource[MO_OAUTH_URLS_MAX], *issuer[MO_OAUTH_URLS_MAX];
    } rows[] = {
        {"https://h", {"https://h" PR}, {"https://h" AS, "https://h" ID}},
        {"https://h/", {"https://h" PR}, {"https://h" AS, "https://h" ID}},
        {"http://h:8/a/b",
         {"http://h:8" PR "/a/b", "http://h:8" PR},
         {"http://h:8" AS "/a/b", "http://h:8" ID "/a/b", "http://h:8/a/b" ID}},
        {"https://[::1]:8/a/",
         {"https://[::1]:8" PR "/a", "https://[::1]:8" PR},
         {"https://[::1]:8" AS "/a", "https://[::1]:8" ID "/a",
          "https://[::1]:8/a" ID}},
    };
    struct mo_oauth_urls u;
    struct mo_arena a;

    (void)state;
    mo_arena_init(&a, ARENA_MAX);
    for (size_t i = 0; i < MO_COUNT(rows); i++) {
        assert_int_equal(mo_oauth_resource_urls(&a, rows[i].url, NULL, &u), 0);
        check_urls(rows[i].url, &u, rows[i].resource);
        assert_int_equal(mo_oauth_issuer_urls(&a, rows[i].url, &u), 0);
        check_urls(rows[i].url, &u, rows[i].issuer);
    }
    assert_int_equal(mo_oauth_resource_urls(&a, SERVER, "https://x/y", &u), 0);
    assert_int_equal(u.n, 1);
    assert_string_equal(u.v[0], "https://x/y");
    mo_arena_fini(&a);
}

#define ISS "\"authorization_servers\":[\"https://as.example\"]"

#define ALGS "\"dpop_signing_alg_values_supported\":"

static void test_resource(void **state)
{
    static const struct {
        const char *json;
        int rc;
        const char *scope;
        bool dpop;
    } rows[] = {
        {"{\"resource\":\"" SERVER "\"," ISS "}", 0, NULL},
        {"{\"resource\":\"" SERVER "\"," ISS "," ALGS "[\"RS256\",\"ES256\"]}",
         0, NULL, true},
        {"{\"resource\":\"" SERVER "\"," ISS "," ALGS "[\"EdDSA\"]}", 0, NULL,
         false},
        {"{\"resource\":\"" SERVER "\"," ISS "," ALGS "\"ES256\"}", 0, NULL,
         false},
        {"{\"resource\":\"" SERVER "\"," ISS
         ",\"dpop_bound_access_tokens_required\":true}",
         0, NULL, true},
        {"{\"resource\":\"https://mcp.example/a\"," ISS
         ",\"scopes_supported\":[\"x\",\"y\"]}",
         0, "x y"},
        {"{\"resource\":\"https://mcp.example/\"," ISS "}", 0, NULL},
        {"{\"resource\":\"https://MCP.example:443\"," ISS "}", 0, NULL},
        {"{\"resource\":\"https://mcp.example/a/m\"," ISS "}", MO_EPOLICY},
        {"{\"resource\":\"https://mcp.example/b\"," ISS "}", MO_EPOLICY},
        {"{\"resource\":\"https://evil.example/a/mcp\"," ISS "}", MO_EPOLICY},
        {"{\"resource\":\"http://mcp.example/a/mcp\"," ISS "}", MO_EPOLICY},
        {"{\"resource\":\"" SERVER "?x=1\"," ISS "}", MO_EPOLICY},
        {"{\"resource\":7," ISS "}", MO_EPROTO},
        {"{" ISS "}", MO_EPROTO},
        {"{\"resource\":\"" SERVER "\"}", MO_EPROTO},
        {"{\"resource\":\"" SERVER "\",\"authorization_servers\":[1]}",
         MO_EPROTO},
        {"[]", MO_EPROTO},
        {"{", MO_EPROTO},
    };

    (void)state;
    for (size_t i = 0; i < MO_COUNT(rows); i++) {
        struct mo_oauth_resource r;
        struct mo_arena a;
        int rc;

        mo_arena_init(&a, ARENA_MAX);
        rc = mo_oauth_resource_parse(&a, mo_span_cstr(rows[i].json), SERVER, &r,
                                     NULL);
        check_row(rows[i].json, rc == rows[i].rc);
        if (rc == 0)
            check_row(rows[i].json,
                      same(r.scope, rows[i].scope) && r.dpop == rows[i].dpop);
        mo_arena_fini(&a);
    }
}

#define EP                                                                     \
    "\"authorization_endpoint\":\"https://as.example/a\","                     \
    "\"token_endpoint\":\"https://as.example/t\","
#define S256 "\"code_challenge_methods_supported\":[\"plain\",\"S256\"]"
#define ID_  "{\"issuer\":\"https://as.example\","

static void test_server(void **state)
{
    static const struct {
        const char *json;
        int rc;
        unsigned auth;
    } rows[] = {
        {ID_ EP S256 "}", 0, MO_OAUTH_BASIC | MO_OAUTH_NONE},
        {ID_ EP S256 ",\"token_endpoint_auth_methods_supported\":["
                     "\"client_secret_post\",\"private_key_jwt\"]}",
         0, MO_OAUTH_POST | MO_OAUTH_KEY},
        {ID_ EP S256 ",\"token_endpoint_auth_methods_supported\":["
                     "\"private_key_jwt\"]}",
         MO_EPROTO, 0},
        {ID_ EP "\"x\":1}", MO_EPOLICY, 0},
        {ID_ EP "\"code_challenge_methods_supported\":[\"plain\"]}", MO_EPOLICY,
         0},
        {"{\"issuer\":\"https://as.example/\"," EP S256 "}", MO_EPOLICY, 0},
        {"{\"issuer\":\"https://AS.example\"," EP S256 "}", MO_EPOLICY, 0},
        {"{" EP S256 "}", MO_EPOLICY, 0},
        {ID_ S256 "}", MO_EPROTO, 0},
        {ID_ "\"authorization_endpoint\":\"https://as.example/a\","
             "\"token_endpoint\":\"http://as.example/t\"," S256 "}",
         MO_EPOLICY, 0},
        {ID_ "\"authorization_endpoint\":\"javascript:alert(1)\","
             "\"token_endpoint\":\"https://as.example/t\"," S256 "}",
         MO_EPOLICY, 0},
        {ID_ EP S256 ",\"registration_endpoint\":\"https://10.0.0.1/\"}",
         MO_EPOLICY, 0},
    };

    (void)state;
    for (size_t i = 0; i < MO_COUNT(rows); i++) {
        struct mo_oauth_server s;
        struct mo_arena a;
        int rc;

        mo_arena_init(&a, ARENA_MAX);
        rc = mo_oauth_server_parse(&a, mo_span_cstr(rows[i].json),
                                   "https://as.example", SERVER, &s, NULL);
        check_row(rows[i].json, rc == rows[i].rc);
        if (rc == 0)
            check_row(rows[i].json, s.auth == rows[i].auth);
        mo_arena_fini(&a);
    }
}

static void test_redirect(void **state)
{
    static const struct {
        const char *query;
        bool iss;
        int rc;
    } rows[] = {
        {"code=c&state=s", false, 0},
        {"code=c&state=s", true, MO_EPOLICY},
        {"code=c&state=s&iss=https%3A%2F%2Fas.example", true, 0},
        {"code=c&state=s&iss=https%3A%2F%2Fas.example", false, 0},
        {"code=c&state=s&iss=https%3A%2F%2Fas.example%2F", true, MO_EPOLICY},
        {"code=c&state=s&iss=https%3A%2F%2Fevil.example", false, MO_EPOLICY},
        {"code=c&state=t", false, MO_EINVAL},
        {"code=c", false, MO_EINVAL},
        {"", false, MO_EINVAL},
        {"code=c&state=s&state=s", false, MO_EINVAL},
        {"code=c&code=d&state=s", false, MO_EPROTO},
        {"state=s", false, MO_EPROTO},
        {"error=access_denied&state=s", false, MO_EPOLICY},
        {"error=access_denied&code=c&state=s", false, MO_EPOLICY},
    };

    (void)state;
    for (size_t i = 0; i < MO_COUNT(rows); i++) {
        struct mo_oauth_server s = {.issuer = "https://as.example",
                                    .iss = rows[i].iss};
        const char *code;
        struct mo_arena a;
        int rc;

        mo_arena_init(&a, ARENA_MAX);
        rc = mo_oauth_redirect(&a, mo_span_cstr(rows[i].query), "s", &s, &code,
                               NULL);
        check_row(rows[i].query, rc == rows[i].rc);
        if (rc == 0)
            check_row(rows[i].query, same(code, "c"));
        mo_arena_fini(&a);
    }
}

static void test_token(void **state)
{
    static const struct {
        const char *json;
        int rc;
        uint64_t expires;
        const char *key; /* ours */
        bool bound;
    } rows[] = {
        {"{\"access_token\":\"x\",\"token_type\":\"bearer\"}", 0, 0},
        {"{\"access_token\":\"x\",\"token_type\":\"bearer\"}", 0, 0, "k",
         false},
        {"{\"access_token\":\"x\",\"token_type\":\"dpop\"}", 0, 0, "k", true},
        {"{\"access_token\":\"x\"}", 0, 0, "k", false},
        {"{\"access_token\":\"x\",\"token_type\":\"mac\"}", MO_EPROTO, 0, "k",
         true},
        {"{\"access_token\":\"x\",\"expires_in\":10}", 0, 11000},
        {"{\"access_token\":\"x\",\"expires_in\":-1}", 0, 0},
        {"{\"access_token\":\"x\",\"expires_in\":\"10\"}", 0, 0},
        {"{\"access_token\":\"x\",\"token_type\":\"DPoP\"}", MO_EPROTO, 0},
        {"{\"access_token\":\"x y\"}", MO_EPROTO, 0},
        {"{\"access_token\":\"x\\r\\nEvil: 1\"}", MO_EPROTO, 0},
        {"{\"access_token\":\"\"}", MO_EPROTO, 0},
        {"{\"error\":\"invalid_grant\"}", MO_EPROTO, 0},
        {"<html>", MO_EPROTO, 0},
    };

    (void)state;
    for (size_t i = 0; i < MO_COUNT(rows); i++) {
        struct mo_token k = {.refresh = "r", .scope = "s", .dpop = rows[i].key};
        struct mo_arena a;
        int rc;

        mo_arena_init(&a, ARENA_MAX);
        rc = mo_oauth_token_parse(&a, mo_span_cstr(rows[i].json), 1000, &k,
                                  NULL);
        check_row(rows[i].json, rc == rows[i].rc);
        check_row(rows[i].json, same(k.refresh, "r") && same(k.scope, "s"));
        check_row(rows[i].json, (k.dpop != NULL) == rows[i].bound);
        if (rc == 0)
            check_row(rows[i].json,
                      same(k.access, "x") && k.expires_ms == rows[i].expires);
        mo_arena_fini(&a);
    }
}

/* The pair of RFC 7636, appendix B. */
static void test_authorize(void **state)
{
    struct mo_oauth_try t = {
        .redirect = "http://127.0.0.1:1/callback",
        .resource = SERVER,
        .verifier = "dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk",
        .state = "st",
    };
    struct mo_buf b;

    (void)state;
    mo_buf_init(&b, 4096);
    assert_int_equal(mo_oauth_authorize_url(&b, "https://as/a?x=1", "i d", &t),
                     0);
    assert_string_equal(
        mo_buf_cstr(&b),
        "https://as/a?x=1&response_type=code&client_id=i%20d&redirect_uri="
        "http%3A%2F%2F127.0.0.1%3A1%2Fcallback&state=st&resource="
        "https%3A%2F%2Fmcp.example%2Fa%2Fmcp&code_challenge="
        "E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM"
        "&code_challenge_method=S256");
    memcpy(t.jkt, "0ZcOCORZNYy-DWpqq30jZyJGHTN0d2HglBV3uiguA4I", sizeof(t.jkt));
    mo_buf_reset(&b);
    assert_int_equal(mo_oauth_authorize_url(&b, "https://as/a", "i", &t), 0);
    assert_true(
        mo_span_search(mo_buf_view(&b),
                       MO_SPAN("&dpop_jkt=0ZcOCORZNYy-DWpqq30jZyJGHTN0d2Hgl"
                               "BV3uiguA4I&")) > 0);
    mo_buf_fini(&b);
}

static void test_client_auth(void **state)
{
    struct mo_oauth_client c = {"i:d", "s e", MO_OAUTH_BASIC};
    struct mo_token k = {.refresh = "r", .resource = "https://x"};
    struct mo_buf b;

    (void)state;
    mo_buf_init(&b, 4096);
    assert_int_equal(mo_oauth_basic(&b, &c), 0);
    assert_string_equal(mo_buf_cstr(&b), "Basic aSUzQWQ6cyUyMGU=");
    mo_buf_reset(&b);
    assert_int_equal(mo_oauth_refresh_body(&b, &c, &k), 0);
    assert_string_equal(mo_buf_cstr(&b), "grant_type=refresh_token&"
                                         "refresh_token=r&resource="
                                         "https%3A%2F%2Fx");
    c.method = MO_OAUTH_POST;
    mo_buf_reset(&b);
    assert_int_equal(mo_oauth_refresh_body(&b, &c, &k), 0);
    assert_non_null(strstr(mo_buf_cstr(&b), "&client_secret=s%20e"));
    c.method = MO_OAUTH_NONE;
    mo_buf_reset(&b);
    assert_int_equal(mo_oauth_refresh_body(&b, &c, &k), 0);
    assert_null(strstr(mo_buf_cstr(&b), "secret"));
    mo_buf_fini(&b);
}

static void test_scopes(void **state)
{
    struct mo_arena a;
    const char *u;

    (void)state;
    mo_arena_init(&a, ARENA_MAX);
    assert_int_equal(mo_oauth_scope_union(&a, "a b", "b  c", &u), 0);
    assert_string_equal(u, "a b c");
    assert_int_equal(mo_oauth_scope_union(&a, NULL, "", &u), 0);
    assert_null(u);
    assert_true(mo_oauth_scope_covers("a b", "b a"));
    assert_true(mo_oauth_scope_covers(NULL, NULL));
    assert_false(mo_oauth_scope_covers("ab", "a"));
    assert_false(mo_oauth_scope_covers(NULL, "a"));
    mo_arena_fini(&a);
}

static void everything(void *ctx)
{
    struct mo_oauth_challenge c;
    struct mo_oauth_resource r;
    struct mo_oauth_server s;
    struct mo_oauth_urls u;
    struct mo_arena a;
    const char *text;

    (void)ctx;
    mo_arena_init(&a, ARENA_MAX);
    (void)mo_oauth_challenge(&a, MO_SPAN("Bearer scope=\"a\", error=b"), &c);
    (void)mo_oauth_resource_urls(&a, SERVER, NULL, &u);
    (void)mo_oauth_issuer_urls(&a, SERVER, &u);
    (void)mo_oauth_resource_parse(
        &a, MO_SPAN("{\"resource\":\"" SERVER "\"," ISS "}"), SERVER, &r, NULL);
    (void)mo_oauth_server_parse(&a, MO_SPAN(ID_ EP S256 "}"),
                                "https://as.example", SERVER, &s, NULL);
    (void)mo_oauth_scope_union(&a, "a", "b", &text);
    mo_arena_fini(&a);
}

/* --- the device grant ------------------------------------------------------
 */

#define DEVICE_ "{\"device_code\":\"d\",\"user_code\":\"A-B\","
#define GO_     "\"verification_uri\":\"https://as.example/go\""

static void test_device(void **state)
{
    static const struct {
        const char *json;
        int rc;
        uint64_t interval, life;
    } rows[] = {
        {DEVICE_ GO_ "}", 0, 5000, MO_DEVICE_LIFE_MS},
        {DEVICE_ GO_ ",\"interval\":2,\"expires_in\":90}", 0, 2000, 90000},
        {DEVICE_ GO_ ",\"interval\":0.1,\"expires_in\":1e99}", 0, 1000,
         MO_DEVICE_LIFE_MS},
        {DEVICE_ GO_ ",\"interval\":1e300}", 0, MO_DEVICE_MAX_MS,
         MO_DEVICE_LIFE_MS},
        {DEVICE_ GO_ ",\"interval\":-1,\"expires_in\":\"x\"}", 0, 5000,
         MO_DEVICE_LIFE_MS},
        {DEVICE_ "\"verification_uri\":\"http://as.example/go\"}", MO_EPROTO, 0,
         0},
        {DEVICE_ "\"verification_uri\":\"https://as.example/\\u001b[2J\"}",
         MO_EPROTO, 0, 0},
        {DEVICE_ "\"verification_uri\":\"https://10.0.0.1/\"}", MO_EPROTO, 0,
         0},
        {DEVICE_ "\"verification_uri\":\"javascript:1\"}", MO_EPROTO, 0, 0},
        {"{\"device_code\":\"d\",\"user_code\":\"\\u0007\"," GO_ "}", MO_EPROTO,
         0, 0},
        {"{\"user_code\":\"A\"," GO_ "}", MO_EPROTO, 0, 0},
        {"[]", MO_EPROTO, 0, 0},
        {"", MO_EPROTO, 0, 0},
    };

    (void)state;
    for (size_t i = 0; i < MO_COUNT(rows); i++) {
        mo_autoarena struct mo_arena a = {.cap = ARENA_MAX};
        struct mo_oauth_device d;
        int rc = mo_oauth_device_parse(&a, mo_span_cstr(rows[i].json), SERVER,
                                       &d, NULL);

        assert_int_equal(rc, rows[i].rc);
        if (rc == 0) {
            assert_int_equal(d.interval_ms, rows[i].interval);
            assert_int_equal(d.life_ms, rows[i].life);
            assert_string_equal(d.user_code, "A-B");
        }
    }
    assert_int_equal(mo_oauth_device_verdict("slow_down"), MO_DEVICE_SLOW_DOWN);
    assert_int_equal(mo_oauth_device_verdict("authorization_pending"),
                     MO_DEVICE_PENDING);
    assert_int_equal(mo_oauth_device_verdict("expired_token"),
                     MO_DEVICE_REFUSED);
    assert_int_equal(mo_oauth_device_verdict(""), MO_DEVICE_REFUSED);
}

/* --- grants without a person -----------------------------------------------
 */

static void test_exchange(void **state)
{
#define JAG_ "\"issued_token_type\":\"urn:ietf:params:oauth:token-type:id-jag\""
    static const struct {
        const char *json;
        int rc;
    } rows[] = {
        {"{\"access_token\":\"a.b.c\"," JAG_ "}", 0},
        {"{\"access_token\":\"a.b.c\"}", MO_EPROTO},
        {"{\"access_token\":\"a b\"," JAG_ "}", MO_EPROTO},
        {"{\"access_token\":7," JAG_ "}", MO_EPROTO},
        {"{" JAG_ "}", MO_EPROTO},
        {"null", MO_EPROTO},
    };

    (void)state;
    for (size_t i = 0; i < MO_COUNT(rows); i++) {
        mo_autoarena struct mo_arena a = {.cap = ARENA_MAX};
        const char *grant = NULL;

        assert_int_equal(mo_machine_exchange_parse(
                             &a, mo_span_cstr(rows[i].json), &grant, NULL),
                         rows[i].rc);
        if (rows[i].rc == 0)
            assert_string_equal(grant, "a.b.c");
    }
}

static void test_memory(void **state)
{
    (void)state;
    torture(everything, NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_challenge),   cmocka_unit_test(test_url_ok),
        cmocka_unit_test(test_places),      cmocka_unit_test(test_resource),
        cmocka_unit_test(test_server),      cmocka_unit_test(test_redirect),
        cmocka_unit_test(test_token),       cmocka_unit_test(test_authorize),
        cmocka_unit_test(test_client_auth), cmocka_unit_test(test_scopes),
        cmocka_unit_test(test_device),      cmocka_unit_test(test_exchange),
        cmocka_unit_test(test_memory),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
