/* Tokens: their form, their claims. Signatures: test_jwk.c. */
#include "codec/jwt.h"

#include "codec/text/base64.h"
#include "mo_test.h"

#define ISSUER "https://idp.test"
#define US     "https://us.test/mcp"
#define NOW    ((uint64_t)1800000000)

struct token {
    struct mo_arena a;
    struct mo_buf text;
    struct mo_jwt t;
    struct mo_err e;
};

static int parse_raw(struct token *k, struct mo_span text)
{
    mo_arena_init(&k->a, 64 * 1024);
    return mo_jwt_parse(text, &k->a, &k->t, &k->e);
}

static int parse(struct token *k, const char *header, const char *claims)
{
    mo_buf_init(&k->text, 4 * MO_JWT_MAX);
    mo_base64url_put(&k->text, mo_span_cstr(header));
    mo_buf_putc(&k->text, '.');
    mo_base64url_put(&k->text, mo_span_cstr(claims));
    mo_buf_puts(&k->text, ".c2ln");
    return parse_raw(k, mo_buf_view(&k->text));
}

static void end(struct token *k)
{
    mo_arena_fini(&k->a);
    mo_buf_fini(&k->text);
}

static void test_form(void **state)
{
    static const struct {
        const char *header, *claims;
        int rc;
    } rows[] = {
        {"{\"alg\":\"RS256\"}", "{}", 0},
        {"{\"alg\":\"ES256\",\"kid\":\"a\"}", "{}", 0},
        {"{\"alg\":\"EdDSA\",\"typ\":\"at+jwt\"}", "{\"exp\":1}", 0},
        {"{\"alg\":\"none\"}", "{}", MO_EPOLICY},
        {"{\"alg\":\"None\"}", "{}", MO_EPOLICY},
        {"{\"alg\":\"HS256\"}", "{}", MO_EPOLICY},
        {"{\"alg\":\"RS384\"}", "{}", MO_EPOLICY},
        {"{\"alg\":7}", "{}", MO_EPOLICY},
        {"{}", "{}", MO_EPOLICY},
        {"{\"alg\":\"RS256\",\"crit\":[\"b64\"],\"b64\":false}", "{}",
         MO_EPOLICY},
        {"{\"alg\":\"RS256\",\"alg\":\"ES256\"}", "{}", MO_EPROTO},
        {"{\"alg\":\"RS256\",\"a\\u006cg\":\"ES256\"}", "{}", MO_EPROTO},
        {"{\"alg\":\"RS256\",\"kid\":7}", "{}", MO_EPROTO},
        {"{\"alg\":\"RS256\"}", "{\"aud\":\"a\",\"aud\":\"b\"}", MO_EPROTO},
        {"{\"alg\":\"RS256\"}", "[]", MO_EPROTO},
        {"[]", "{}", MO_EPROTO},
        {"{\"alg\":\"RS256\"} x", "{}", MO_EPROTO},
        {"{\"alg\":\"RS256\"}", "", MO_EPROTO},
    };

    (void)state;
    for (size_t i = 0; i < MO_COUNT(rows); i++) {
        struct token k = {0};

        assert_int_equal(parse(&k, rows[i].header, rows[i].claims), rows[i].rc);
        end(&k);
    }
}

static void test_parts(void **state)
{
    static const char *const bad[] = {
        "",
        ".",
        "..",
        "eyJhbGciOiJSUzI1NiJ9.e30",
        "eyJhbGciOiJSUzI1NiJ9.e30.c2ln.c2ln",
        "eyJhbGciOiJSUzI1NiJ9.e30=.c2ln",
        "eyJhbGciOiJSUzI1NiJ9.e30.c2l",
        "eyJhbGciOiJSUzI1NiJ9.e30.c2 ln",
    };

    (void)state;
    for (size_t i = 0; i < MO_COUNT(bad); i++) {
        struct token k = {0};

        assert_int_equal(parse_raw(&k, mo_span_cstr(bad[i])), MO_EPROTO);
        end(&k);
    }
    assert_true(mo_jwt_looks_like(MO_SPAN("eyJhbGciOiJSUzI1NiJ9.e30.c2ln")));
    assert_false(mo_jwt_looks_like(MO_SPAN("eyJhbGciOiJSUzI1NiJ9.e30")));
    assert_false(mo_jwt_looks_like(MO_SPAN("a.b.c")));
}

static void test_length(void **state)
{
    mo_autobuf struct mo_buf b = {.max = 2 * MO_JWT_MAX};
    struct token k = {0};

    (void)state;
    while (b.len <= MO_JWT_MAX)
        mo_buf_putc(&b, 'a');
    assert_int_equal(parse_raw(&k, mo_buf_view(&b)), MO_ETOOBIG);
    end(&k);
}

static void test_claims(void **state)
{
    static const char *const us[] = {"other", US};
    static const struct mo_jwt_want want = {ISSUER, us, 2, NOW};
    static const struct {
        const char *claims, *why; /* why NULL: valid */
    } rows[] = {
        {"{\"iss\":\"" ISSUER "\",\"aud\":\"" US "\",\"exp\":1800000001}",
         NULL},
        {"{\"iss\":\"" ISSUER "\",\"aud\":[\"x\",\"" US
         "\"],\"exp\":1800000000.5,\"nbf\":1800000000,\"iat\":1}",
         NULL},
        {"{\"iss\":\"" ISSUER "/\",\"aud\":\"" US "\",\"exp\":1800000001}",
         "another issuer"},
        {"{\"iss\":[\"" ISSUER "\"],\"aud\":\"" US "\",\"exp\":1800000001}",
         "another issuer"},
        {"{\"aud\":\"" US "\",\"exp\":1800000001}", "another issuer"},
        {"{\"iss\":\"" ISSUER "\",\"exp\":1800000001}", "another audience"},
        {"{\"iss\":\"" ISSUER "\",\"aud\":{\"" US "\":1},\"exp\":1800000001}",
         "another audience"},
        {"{\"iss\":\"" ISSUER "\",\"aud\":\"" US "/x\",\"exp\":1800000001}",
         "another audience"},
        {"{\"iss\":\"" ISSUER "\",\"aud\":\"" US "\"}", "no end"},
        {"{\"iss\":\"" ISSUER "\",\"aud\":\"" US "\",\"exp\":\"1800000001\"}",
         "no end"},
        {"{\"iss\":\"" ISSUER "\",\"aud\":\"" US "\",\"exp\":1e300}", "no end"},
        {"{\"iss\":\"" ISSUER "\",\"aud\":\"" US "\",\"exp\":1799999970}",
         "expired"},
        {"{\"iss\":\"" ISSUER "\",\"aud\":\"" US
         "\",\"exp\":1800000001,\"nbf\":1800000031}",
         "not valid yet"},
        {"{\"iss\":\"" ISSUER "\",\"aud\":\"" US
         "\",\"exp\":1800000001,\"iat\":\"now\"}",
         "not valid yet"},
    };

    (void)state;
    for (size_t i = 0; i < MO_COUNT(rows); i++) {
        struct token k = {0};
        uint64_t ends = 0;

        assert_int_equal(parse(&k, "{\"alg\":\"RS256\"}", rows[i].claims), 0);
        if (rows[i].why) {
            assert_int_equal(mo_jwt_check(&k.t, &want, &ends, &k.e),
                             MO_EPOLICY);
            assert_non_null(strstr(k.e.msg, rows[i].why));
        } else {
            assert_int_equal(mo_jwt_check(&k.t, &want, &ends, &k.e), 0);
            assert_true(ends >= NOW && ends <= NOW + 1 + MO_JWT_LEEWAY_S);
        }
        end(&k);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_form),
        cmocka_unit_test(test_parts),
        cmocka_unit_test(test_length),
        cmocka_unit_test(test_claims),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
