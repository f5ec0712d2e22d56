/* Proofs that we hold the key of a token: checked with the public key that they
 * carry, as a server does. */
#include "mcp/oauth/dpop.h"

#include "base/clock.h"
#include "codec/sha256.h"
#include "codec/text/base64.h"
#include "loop/jwk.h"
#include "mo_test.h"

static struct mo_json parse(struct mo_span text)
{
    struct mo_json_doc doc = {.bad_at = 0};

    assert_int_equal(mo_json_parse(text, 0, &doc, NULL), 0);
    return doc.root;
}

/* The claims of a proof whose signature is right. */
static struct mo_json verify(struct mo_arena *a, const struct mo_buf *proof,
                             struct mo_json *jwk)
{
    mo_autobuf struct mo_buf head = {.max = 4096};
    struct mo_span rest = mo_buf_view(proof), copy;
    struct mo_jwk *k = NULL;
    struct mo_json header;
    struct mo_jwt t;

    assert_int_equal(mo_jwt_parse(mo_buf_view(proof), a, &t, NULL), 0);
    assert_int_equal(mo_base64url_decode(mo_span_cut(&rest, '.'), &head), 0);
    assert_int_equal(mo_arena_span(a, mo_buf_view(&head), &copy), 0);
    header = parse(copy);
    assert_true(
        mo_json_str_eq(mo_json_get(header, "typ"), MO_SPAN("dpop+jwt")));
    assert_true(mo_json_str_eq(mo_json_get(header, "alg"), MO_SPAN("ES256")));
    *jwk = mo_json_get(header, "jwk");
    assert_int_equal(mo_jwk_new(*jwk, &k, NULL), 0);
    assert_true(mo_jwk_verify(k, t.signed_part, t.signature));
    mo_jwk_free(k);
    return t.claims;
}

static bool has(struct mo_json claims, const char *name, const char *value)
{
    return mo_json_str_eq(mo_json_get(claims, name), mo_span_cstr(value));
}

static void test_addresses(void **state)
{
    static const struct {
        const char *url, *htu;
    } rows[] = {
        {"https://mcp.example/a/mcp", "https://mcp.example/a/mcp"},
        {"https://mcp.example/mcp?x=1&y=2", "https://mcp.example/mcp"},
        {"https://mcp.example/mcp#f", "https://mcp.example/mcp"},
        {"https://mcp.example:8443/mcp?q#f", "https://mcp.example:8443/mcp"},
        {"https://mcp.example", "https://mcp.example/"},
        {"https://mcp.example?x", "https://mcp.example/"},
        {"http://[::1]:3000/mcp", "http://[::1]:3000/mcp"},
        {"https://me:secret@mcp.example/mcp", "https://mcp.example/mcp"},
    };
    struct mo_dpop d = {.key = NULL};

    (void)state;
    assert_int_equal(mo_dpop_make(&d, NULL), 0);
    for (size_t i = 0; i < MO_COUNT(rows); i++) {
        mo_autoarena struct mo_arena a = {.cap = 64 * 1024};
        mo_autobuf struct mo_buf proof = {.max = MO_DPOP_PROOF_MAX};
        const struct mo_dpop_request r = {.method = "DELETE",
                                          .url = rows[i].url};
        struct mo_json claims, jwk;
        uint64_t iat = 0;

        assert_int_equal(mo_dpop_proof(&d, &r, &proof, NULL), 0);
        claims = verify(&a, &proof, &jwk);
        assert_true(has(claims, "htu", rows[i].htu));
        assert_true(has(claims, "htm", "DELETE"));
        assert_int_equal(mo_json_u64(mo_json_get(claims, "iat"), &iat), 0);
        assert_true(iat <= mo_wall_ms() / 1000 &&
                    iat + 60 > mo_wall_ms() / 1000);
        assert_null(mo_json_get(claims, "ath").p);
        assert_null(mo_json_get(claims, "nonce").p);
        assert_null(mo_json_get(jwk, "d").p);
    }
    mo_dpop_fini(&d);
}

static void test_no_address(void **state)
{
    const struct mo_dpop_request r = {.method = "GET", .url = "nowhere"};
    mo_autobuf struct mo_buf proof = {.max = MO_DPOP_PROOF_MAX};
    struct mo_dpop d = {.key = NULL};

    (void)state;
    assert_int_equal(mo_dpop_make(&d, NULL), 0);
    assert_int_equal(mo_dpop_proof(&d, &r, &proof, NULL), MO_EINVAL);
    assert_int_equal(proof.len, 0);
    mo_dpop_fini(&d);
}

/* RFC 9449 7: the hash of the token; the value is of its example. */
static void test_token_and_nonce(void **state)
{
    const struct mo_dpop_request r = {
        "POST", "https://mcp.example/mcp",
        MO_SPAN("Kz~8mXK1EalYznwH-LC-1fBAo.4Ljp~zsPE_NeO.gxU")};
    mo_autoarena struct mo_arena a = {.cap = 64 * 1024};
    mo_autobuf struct mo_buf one = {.max = MO_DPOP_PROOF_MAX},
                             two = {.max = MO_DPOP_PROOF_MAX};
    struct mo_dpop d = {.key = NULL};
    struct mo_json first, second, jwk;
    char jti[64];

    (void)state;
    assert_int_equal(mo_dpop_make(&d, NULL), 0);
    mo_dpop_nonce(&d, MO_SPAN("n-0S6_WzA2Mj"));
    assert_int_equal(mo_dpop_proof(&d, &r, &one, NULL), 0);
    first = verify(&a, &one, &jwk);
    assert_true(
        has(first, "ath", "fUHyO2r2Z3DZ53EsNrWBb0xWXoaNy59IiKCAqksmQEo"));
    assert_true(has(first, "nonce", "n-0S6_WzA2Mj"));
    assert_int_equal(
        mo_json_str_copy(mo_json_get(first, "jti"), jti, sizeof(jti)), 0);
    mo_dpop_nonce(&d, MO_SPAN("next"));
    assert_int_equal(mo_dpop_proof(&d, &r, &two, NULL), 0);
    second = verify(&a, &two, &jwk);
    assert_true(has(second, "nonce", "next"));
    assert_false(has(second, "jti", jti));
    mo_dpop_fini(&d);
}

static void test_bad_nonces(void **state)
{
    char big[MO_DPOP_NONCE_MAX + 1];
    struct mo_dpop d = {.nonce = "old"};

    (void)state;
    memset(big, 'n', sizeof(big));
    mo_dpop_nonce(&d, mo_span(big, sizeof(big)));
    mo_dpop_nonce(&d, mo_span(NULL, 0));
    mo_dpop_nonce(&d, MO_SPAN("two words"));
    mo_dpop_nonce(&d, MO_SPAN("a\r\nb"));
    assert_string_equal(d.nonce, "old");
    mo_dpop_nonce(&d, mo_span(big, MO_DPOP_NONCE_MAX));
    assert_int_equal(strlen(d.nonce), MO_DPOP_NONCE_MAX);
}

/* A key that was written signs as before. */
static void test_written_key(void **state)
{
    const struct mo_dpop_request r = {"GET", "https://a.example/", {NULL, 0}};
    mo_autoarena struct mo_arena a = {.cap = 64 * 1024};
    mo_autowipe struct mo_buf pem = {.max = 4096};
    mo_autobuf struct mo_buf proof = {.max = MO_DPOP_PROOF_MAX},
                             sum = {.max = 64};
    struct mo_dpop d = {.key = NULL}, again = {.nonce = "kept"};
    char x[MO_DPOP_JKT + 1], y[MO_DPOP_JKT + 1], hex[MO_SHA256_HEX + 1];
    const struct mo_jws_key *key;
    struct mo_json jwk;

    (void)state;
    assert_int_equal(mo_dpop_make(&d, NULL), 0);
    assert_int_equal(mo_jws_key_pem(d.key, &pem), 0);
    assert_int_equal(mo_dpop_read(&again, mo_buf_cstr(&pem), NULL), 0);
    assert_string_equal(again.nonce, "kept");
    key = again.key;
    assert_int_equal(mo_dpop_read(&again, mo_buf_cstr(&pem), NULL), 0);
    assert_ptr_equal(again.key, key);
    mo_dpop_thumbprint(&d, x);
    mo_dpop_thumbprint(&again, y);
    assert_string_equal(x, y);
    assert_int_equal(mo_dpop_proof(&again, &r, &proof, NULL), 0);
    (void)verify(&a, &proof, &jwk);
    assert_true(mo_span_is(mo_json_text(jwk), mo_jws_key_jwk(d.key)));
    mo_sha256_hex(mo_json_text(jwk), hex); /* the thumbprint is its digest */
    assert_int_equal(mo_base64url_decode(mo_span_cstr(x), &sum), 0);
    for (size_t i = 0; i < MO_SHA256_LEN; i++) {
        char two[3];

        (void)snprintf(two, sizeof(two), "%02x", (unsigned char)sum.p[i]);
        assert_memory_equal(two, hex + 2 * i, 2);
    }
    assert_int_equal(mo_dpop_read(&again, "no key", NULL), MO_EINVAL);
    assert_null(again.key);
    assert_int_equal(mo_dpop_read(&d, NULL, NULL), 0);
    assert_null(d.key);
    mo_dpop_fini(&again);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_addresses),
        cmocka_unit_test(test_no_address),
        cmocka_unit_test(test_token_and_nonce),
        cmocka_unit_test(test_bad_nonces),
        cmocka_unit_test(test_written_key),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
