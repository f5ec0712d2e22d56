/* ossl_jwk.c - see jwk.h. */
#include <openssl/core_names.h>
#include <openssl/ecdsa.h>
#include <openssl/evp.h>
#include <openssl/param_build.h>

#include "base/mem.h"
#include "base/str.h"
#include "codec/text/base64.h"
#include "loop/dso.h"
#include "loop/jwk.h"

#define KEY_ID_MAX    256
#define RSA_BYTES_MIN 256
#define RSA_BYTES_MAX 1024
#define EXPONENT_MAX  8 /* bytes */
#define P256_BYTES    32
#define ED25519_BYTES 32
#define DER_MAX       80 /* of an ES256 signature */

/* clang-format off */
#define FUNCTIONS(X)                                                           \
    X(BN_bin2bn) X(BN_clear_free) X(BN_is_odd)                                 \
    X(ECDSA_SIG_free) X(ECDSA_SIG_new) X(ECDSA_SIG_set0) X(ERR_clear_error)    \
    X(EVP_DigestVerify) X(EVP_DigestVerifyInit) X(EVP_MD_CTX_free)             \
    X(EVP_MD_CTX_new) X(EVP_PKEY_CTX_free) X(EVP_PKEY_CTX_new_from_name)       \
    X(EVP_PKEY_free) X(EVP_PKEY_fromdata) X(EVP_PKEY_fromdata_init)            \
    X(EVP_PKEY_new_raw_public_key) X(EVP_sha256) X(OSSL_PARAM_BLD_free)        \
    X(OSSL_PARAM_BLD_new) X(OSSL_PARAM_BLD_push_BN)                            \
    X(OSSL_PARAM_BLD_push_octet_string) X(OSSL_PARAM_BLD_push_utf8_string)     \
    X(OSSL_PARAM_BLD_to_param) X(OSSL_PARAM_free) X(i2d_ECDSA_SIG)
/* clang-format on */

#include <openssl/err.h>

struct crypto {
    FUNCTIONS(MO_DSO_MEMBER)
};

struct mo_jwk {
    struct crypto f;
    EVP_PKEY *key;
    enum mo_jwt_alg alg;
    char id[KEY_ID_MAX];
};

static int load_crypto(struct crypto *f, struct mo_err *e)
{
#define ROW(fn) MO_DSO_SYM(struct crypto, fn),
    static const struct mo_dso_sym syms[] = {FUNCTIONS(ROW)};
#undef ROW

    return mo_dso_load("libcrypto.so.3", "libssl3", syms, MO_COUNT(syms), f, e);
}

/* --- numbers and points -------------------------------------------------- */

/* A member in base64url, of min to max bytes. */
static int read_bytes(struct mo_json jwk, const char *name, size_t min,
                      size_t max, struct mo_buf *out)
{
    mo_autobuf struct mo_buf text = {.max = 2 * RSA_BYTES_MAX};
    struct mo_json v = mo_json_get(jwk, name);

    if (!mo_json_is(v, MO_JSON_STRING) || mo_json_str_buf(v, &text) < 0 ||
        mo_base64url_decode(mo_buf_view(&text), out) < 0 || out->len < min ||
        out->len > max)
        return MO_EINVAL;
    return 0;
}

static BIGNUM *number(const struct crypto *f, const struct mo_buf *b)
{
    return f->BN_bin2bn((const unsigned char *)b->p, (int)b->len, NULL);
}

/* The key of that type with the collected members. */
static EVP_PKEY *build_key(const struct crypto *f, const char *type,
                           OSSL_PARAM_BLD *members)
{
    OSSL_PARAM *params = f->OSSL_PARAM_BLD_to_param(members);
    EVP_PKEY_CTX *ctx = f->EVP_PKEY_CTX_new_from_name(NULL, type, NULL);
    EVP_PKEY *key = NULL;

    if (!params || !ctx || f->EVP_PKEY_fromdata_init(ctx) <= 0 ||
        f->EVP_PKEY_fromdata(ctx, &key, EVP_PKEY_PUBLIC_KEY, params) <= 0)
        key = NULL;
    f->EVP_PKEY_CTX_free(ctx);
    f->OSSL_PARAM_free(params);
    return key;
}

static EVP_PKEY *read_rsa(const struct crypto *f, struct mo_json jwk)
{
    mo_autobuf struct mo_buf n = {.max = RSA_BYTES_MAX};
    mo_autobuf struct mo_buf e = {.max = EXPONENT_MAX};
    OSSL_PARAM_BLD *members = NULL;
    BIGNUM *modulus = NULL, *exponent = NULL;
    EVP_PKEY *key = NULL;

    if (read_bytes(jwk, "n", RSA_BYTES_MIN, RSA_BYTES_MAX, &n) < 0 ||
        read_bytes(jwk, "e", 1, EXPONENT_MAX, &e) < 0 || !(n.p[0] & 0x80) ||
        (e.len == 1 && e.p[0] == 1))
        return NULL;
    modulus = number(f, &n);
    exponent = number(f, &e);
    members = f->OSSL_PARAM_BLD_new();
    if (modulus && exponent && members && f->BN_is_odd(exponent) &&
        f->OSSL_PARAM_BLD_push_BN(members, OSSL_PKEY_PARAM_RSA_N, modulus) &&
        f->OSSL_PARAM_BLD_push_BN(members, OSSL_PKEY_PARAM_RSA_E, exponent))
        key = build_key(f, "RSA", members);
    f->OSSL_PARAM_BLD_free(members);
    f->BN_clear_free(modulus);
    f->BN_clear_free(exponent);
    return key;
}

/* OpenSSL refuses a point that is not on the curve. */
static EVP_PKEY *read_p256(const struct crypto *f, struct mo_json jwk)
{
    mo_autobuf struct mo_buf x = {.max = P256_BYTES}, y = {.max = P256_BYTES};
    unsigned char point[1 + 2 * P256_BYTES] = {4};
    OSSL_PARAM_BLD *members;
    EVP_PKEY *key = NULL;

    if (!mo_json_str_eq(mo_json_get(jwk, "crv"), MO_SPAN("P-256")) ||
        read_bytes(jwk, "x", P256_BYTES, P256_BYTES, &x) < 0 ||
        read_bytes(jwk, "y", P256_BYTES, P256_BYTES, &y) < 0)
        return NULL;
    memcpy(point + 1, x.p, P256_BYTES);
    memcpy(point + 1 + P256_BYTES, y.p, P256_BYTES);
    members = f->OSSL_PARAM_BLD_new();
    if (members &&
        f->OSSL_PARAM_BLD_push_utf8_string(members, OSSL_PKEY_PARAM_GROUP_NAME,
                                           "prime256v1", 0) &&
        f->OSSL_PARAM_BLD_push_octet_string(members, OSSL_PKEY_PARAM_PUB_KEY,
                                            point, sizeof(point)))
        key = build_key(f, "EC", members);
    f->OSSL_PARAM_BLD_free(members);
    return key;
}

static EVP_PKEY *read_ed25519(const struct crypto *f, struct mo_json jwk)
{
    mo_autobuf struct mo_buf x = {.max = ED25519_BYTES};

    if (!mo_json_str_eq(mo_json_get(jwk, "crv"), MO_SPAN("Ed25519")) ||
        read_bytes(jwk, "x", ED25519_BYTES, ED25519_BYTES, &x) < 0)
        return NULL;
    return f->EVP_PKEY_new_raw_public_key(
        EVP_PKEY_ED25519, NULL, (const unsigned char *)x.p, ED25519_BYTES);
}

/* --- the key ------------------------------------------------------------- */

static const struct {
    const char *type;
    enum mo_jwt_alg alg;
    EVP_PKEY *(*read)(const struct crypto *f, struct mo_json jwk);
} kinds[] = {
    {"RSA", MO_JWT_RS256, read_rsa},
    {"EC", MO_JWT_ES256, read_p256},
    {"OKP", MO_JWT_EDDSA, read_ed25519},
};

/* True if the key says nothing else than that it checks signatures. */
static bool is_for_signatures(struct mo_json jwk, enum mo_jwt_alg alg)
{
    struct mo_json use = mo_json_get(jwk, "use");
    struct mo_json ops = mo_json_get(jwk, "key_ops");
    struct mo_json name = mo_json_get(jwk, "alg");
    enum mo_jwt_alg named;

    return (!use.p || mo_json_str_eq(use, MO_SPAN("sig"))) &&
           (!ops.p || mo_jwt_claim_has(ops, MO_SPAN("verify"))) &&
           (!name.p || (mo_jwt_alg(name, &named) && named == alg)) &&
           !mo_json_get(jwk, "d").p;
}

static void read_key(struct mo_jwk *k, struct mo_json jwk)
{
    struct mo_json type = mo_json_get(jwk, "kty");

    for (size_t i = 0; i < MO_COUNT(kinds); i++) {
        if (!mo_json_str_eq(type, mo_span_cstr(kinds[i].type)))
            continue;
        k->alg = kinds[i].alg;
        if (is_for_signatures(jwk, k->alg))
            k->key = kinds[i].read(&k->f, jwk);
    }
    k->f.ERR_clear_error();
}

int mo_jwk_new(struct mo_json jwk, struct mo_jwk **out, struct mo_err *e)
{
    struct mo_json id = mo_json_get(jwk, "kid");
    struct mo_jwk *k = mo_new(struct mo_jwk);
    int rc;

    if (!k)
        return mo_fail(e, MO_ENOMEM, "out of memory");
    rc = load_crypto(&k->f, e);
    if (rc < 0) {
        mo_free(k);
        return rc;
    }
    if (!id.p || mo_json_str_copy(id, k->id, sizeof(k->id)) == 0)
        read_key(k, jwk);
    if (!k->key) {
        mo_free(k);
        return mo_fail(e, MO_EINVAL,
                       "not a public key for RS256, ES256 or EdDSA");
    }
    *out = k;
    return 0;
}

void mo_jwk_free(struct mo_jwk *k)
{
    if (k)
        k->f.EVP_PKEY_free(k->key);
    mo_free(k);
}

enum mo_jwt_alg mo_jwk_alg(const struct mo_jwk *k)
{
    return k->alg;
}

struct mo_span mo_jwk_id(const struct mo_jwk *k)
{
    return mo_span_cstr(k->id);
}

/* --- signatures ---------------------------------------------------------- */

/* OpenSSL reads ES256 signatures as DER; tokens have two plain numbers.
 * Returns the length, or 0. */
static size_t es256_to_der(const struct crypto *f, struct mo_span raw,
                           unsigned char der[DER_MAX])
{
    const unsigned char *p = (const unsigned char *)raw.p;
    unsigned char *at = der;
    ECDSA_SIG *sig;
    BIGNUM *r, *s;
    int n = 0;

    if (raw.n != 2 * (size_t)P256_BYTES)
        return 0;
    r = f->BN_bin2bn(p, P256_BYTES, NULL);
    s = f->BN_bin2bn(p + P256_BYTES, P256_BYTES, NULL);
    sig = f->ECDSA_SIG_new();
    if (sig && r && s && f->ECDSA_SIG_set0(sig, r, s)) {
        r = s = NULL; /* now the signature's */
        n = f->i2d_ECDSA_SIG(sig, &at);
    }
    f->BN_clear_free(r);
    f->BN_clear_free(s);
    f->ECDSA_SIG_free(sig);
    return n > 0 ? (size_t)n : 0;
}

bool mo_jwk_verify(const struct mo_jwk *k, struct mo_span text,
                   struct mo_span signature)
{
    const struct crypto *f = &k->f;
    const EVP_MD *hash = k->alg == MO_JWT_EDDSA ? NULL : f->EVP_sha256();
    unsigned char der[DER_MAX];
    EVP_MD_CTX *ctx;
    bool ok;

    if (k->alg == MO_JWT_ES256) {
        size_t n = es256_to_der(f, signature, der);

        signature = mo_span((const char *)der, n);
    }
    if (signature.n == 0)
        return false;
    ctx = f->EVP_MD_CTX_new();
    ok = ctx && f->EVP_DigestVerifyInit(ctx, NULL, hash, NULL, k->key) == 1 &&
         f->EVP_DigestVerify(ctx, (const unsigned char *)signature.p,
                             signature.n, (const unsigned char *)text.p,
                             text.n) == 1;
    f->EVP_MD_CTX_free(ctx);
    f->ERR_clear_error();
    return ok;
}
