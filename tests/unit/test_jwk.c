/* Public keys and the signatures of tokens. */
#include "loop/jwk.h"

#include "jwt_vectors.h"
#include "mo_test.h"

static struct mo_jwk *key_of(const char *json)
{
    struct mo_json_doc doc;
    struct mo_jwk *k = NULL;

    assert_int_equal(mo_json_parse(mo_span_cstr(json), 0, &doc, NULL), 0);
    return mo_jwk_new(doc.root, &k, NULL) == 0 ? k : NULL;
}

static void test_signatures(void **state)
{
    (void)state;
    for (size_t i = 0; i < MO_COUNT(vectors); i++) {
        mo_autoarena struct mo_arena a = {.cap = 64 * 1024};
        struct mo_jwk *k = key_of(vectors[i].jwk);
        char changed[64];
        struct mo_jwt t;

        assert_non_null(k);
        assert_int_equal(
            mo_jwt_parse(mo_span_cstr(vectors[i].token), &a, &t, NULL), 0);
        assert_int_equal(mo_jwk_alg(k), t.alg);
        assert_true(mo_span_is(mo_jwk_id(k), "k1"));
        assert_true(mo_jwk_verify(k, t.signed_part, t.signature));
        assert_false(
            mo_jwk_verify(k, mo_span_skip(t.signed_part, 1), t.signature));
        assert_false(
            mo_jwk_verify(k, t.signed_part, mo_span_skip(t.signature, 1)));
        assert_false(mo_jwk_verify(k, t.signed_part, mo_span(NULL, 0)));
        memcpy(changed, t.signature.p, sizeof(changed));
        changed[7] ^= 1;
        if (t.signature.n == sizeof(changed))
            assert_false(mo_jwk_verify(k, t.signed_part,
                                       mo_span(changed, sizeof(changed))));
        memset(changed, 0, sizeof(changed));
        assert_false(
            mo_jwk_verify(k, t.signed_part, mo_span(changed, sizeof(changed))));
        mo_jwk_free(k);
    }
}

/* Every key refuses what another one signed. */
static void test_other_keys(void **state)
{
    (void)state;
    for (size_t i = 0; i < MO_COUNT(vectors); i++)
        for (size_t j = 0; j < MO_COUNT(vectors); j++) {
            mo_autoarena struct mo_arena a = {.cap = 64 * 1024};
            struct mo_jwk *k = key_of(vectors[i].jwk);
            struct mo_jwt t;

            assert_int_equal(
                mo_jwt_parse(mo_span_cstr(vectors[j].token), &a, &t, NULL), 0);
            assert_int_equal(mo_jwk_verify(k, t.signed_part, t.signature),
                             i == j);
            mo_jwk_free(k);
        }
}

static void test_refused(void **state)
{
    static const char *const bad[] = {
        "{}",
        "[]",
        "7",
        "{\"kty\":\"oct\",\"k\":\"c2VjcmV0\"}",
        "{\"kty\":\"RSA\",\"n\":\"AQAB\",\"e\":\"AQAB\"}",
        "{\"kty\":\"RSA\",\"n\":7,\"e\":\"AQAB\"}",
        "{\"kty\":\"EC\",\"crv\":\"P-256\",\"x\":\"AQAB\",\"y\":\"AQAB\"}",
        "{\"kty\":\"EC\",\"crv\":\"P-384\"}",
        /* not on the curve */
        "{\"kty\":\"EC\",\"crv\":\"P-256\",\"x\":"
        "\"AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAE\",\"y\":"
        "\"AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAE\"}",
        "{\"kty\":\"OKP\",\"crv\":\"X25519\",\"x\":"
        "\"AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAE\"}",
        "{\"kty\":\"OKP\",\"crv\":\"Ed25519\",\"use\":\"enc\",\"x\":"
        "\"AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAE\"}",
        "{\"kty\":\"OKP\",\"crv\":\"Ed25519\",\"alg\":\"RS256\",\"x\":"
        "\"AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAE\"}",
        "{\"kty\":\"OKP\",\"crv\":\"Ed25519\",\"key_ops\":[\"sign\"],\"x\":"
        "\"AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAE\"}",
        "{\"kty\":\"OKP\",\"crv\":\"Ed25519\",\"d\":\"AA\",\"x\":"
        "\"AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAE\"}",
        "{\"kty\":\"OKP\",\"crv\":\"Ed25519\",\"kid\":7,\"x\":"
        "\"AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAE\"}",
    };

    (void)state;
    for (size_t i = 0; i < MO_COUNT(bad); i++)
        assert_null(key_of(bad[i]));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_signatures),
        cmocka_unit_test(test_other_keys),
        cmocka_unit_test(test_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
