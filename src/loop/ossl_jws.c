/* ossl_jws.c - see jws.h. */
#include <openssl/bio.h>
#include <openssl/core_names.h>
#include <openssl/ecdsa.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/pem.h>

#include "base/mem.h"
#include "codec/text/base64.h"
#include "loop/dso.h"
#include "loop/jws.h"

#define P256_BYTES    32
#define RSA_BITS_MIN  2048
#define SIGNATURE_MAX 1024 /* RSA with 8192 bits */
#define TOKEN_MAX     ((size_t)16 * 1024)
#define JWK_MAX       192 /* with the NUL */

/* clang-format off */
#define FUNCTIONS(X)                                                           \
    X(BIO_ctrl) X(BIO_free) X(BIO_new) X(BIO_new_mem_buf) X(BIO_s_mem)         \
    X(BN_bn2binpad) X(BN_clear_free) X(ECDSA_SIG_free) X(ECDSA_SIG_get0)       \
    X(ERR_clear_error) X(EVP_DigestSign) X(EVP_DigestSignInit)                 \
    X(EVP_MD_CTX_free) X(EVP_MD_CTX_new) X(EVP_PKEY_Q_keygen) X(EVP_PKEY_free) \
    X(EVP_PKEY_get_base_id) X(EVP_PKEY_get_bits) X(EVP_PKEY_get_bn_param)      \
    X(EVP_PKEY_get_group_name) X(EVP_sha256) X(PEM_read_bio_PrivateKey)        \
    X(PEM_write_bio_PrivateKey) X(d2i_ECDSA_SIG)
/* clang-format on */

struct crypto {
    FUNCTIONS(MO_DSO_MEMBER)
};

static int load_crypto(struct crypto *f, struct mo_err *e)
{
#define ROW(fn) MO_DSO_SYM(struct crypto, fn),
    static const struct mo_dso_sym syms[] = {FUNCTIONS(ROW)};
#undef ROW

    return mo_dso_load("libcrypto.so.3", "libssl3", syms, MO_COUNT(syms), f, e);
}

/* No password is asked for. */
static int no_password(char *buf, int size, int rwflag, void *ctx)
{
    (void)buf;
    (void)size;
    (void)rwflag;
    (void)ctx;
    return -1;
}

static EVP_PKEY *read_key(const struct crypto *f, struct mo_span pem)
{
    BIO *in = f->BIO_new_mem_buf(pem.p, (int)pem.n);
    EVP_PKEY *key = NULL;

    if (in)
        key = f->PEM_read_bio_PrivateKey(in, NULL, no_password, NULL);
    f->BIO_free(in);
    return key;
}

/* NULL: the key fits none. */
static const char *alg_of(const struct crypto *f, EVP_PKEY *key)
{
    char group[32] = "";
    size_t n = 0;

    switch (f->EVP_PKEY_get_base_id(key)) {
    case EVP_PKEY_RSA:
        return f->EVP_PKEY_get_bits(key) >= RSA_BITS_MIN ? "RS256" : NULL;
    case EVP_PKEY_ED25519:
        return "EdDSA";
    case EVP_PKEY_EC:
        if (f->EVP_PKEY_get_group_name(key, group, sizeof(group), &n) == 1 &&
            (strcmp(group, "prime256v1") == 0 || strcmp(group, "P-256") == 0))
            return "ES256";
        return NULL;
    default:
        return NULL;
    }
}

/* Tokens have two plain numbers instead of DER. */
static int der_to_es256(const struct crypto *f, unsigned char *sig, size_t *n)
{
    const unsigned char *at = sig;
    ECDSA_SIG *s = f->d2i_ECDSA_SIG(NULL, &at, (long)*n);
    const BIGNUM *r = NULL, *v = NULL;
    int rc = MO_EINVAL;

    if (s)
        f->ECDSA_SIG_get0(s, &r, &v);
    if (r && v && f->BN_bn2binpad(r, sig, P256_BYTES) == P256_BYTES &&
        f->BN_bn2binpad(v, sig + P256_BYTES, P256_BYTES) == P256_BYTES)
        rc = 0;
    f->ECDSA_SIG_free(s);
    *n = 2 * (size_t)P256_BYTES;
    return rc;
}

static int sign_text(const struct crypto *f, EVP_PKEY *key, const char *alg,
                     struct mo_span text, struct mo_buf *out)
{
    const EVP_MD *hash = strcmp(alg, "EdDSA") == 0 ? NULL : f->EVP_sha256();
    EVP_MD_CTX *ctx = f->EVP_MD_CTX_new();
    unsigned char sig[SIGNATURE_MAX];
    size_t n = sizeof(sig);
    int rc = MO_EINVAL;

    if (ctx && f->EVP_DigestSignInit(ctx, NULL, hash, NULL, key) == 1 &&
        f->EVP_DigestSign(ctx, sig, &n, (const unsigned char *)text.p,
                          text.n) == 1)
        rc = 0;
    if (rc == 0 && strcmp(alg, "ES256") == 0)
        rc = der_to_es256(f, sig, &n);
    f->EVP_MD_CTX_free(ctx);
    return rc < 0 ? rc : mo_base64url_put(out, mo_span((const char *)sig, n));
}

/* jwk: NULL or the public key for the header. */
static int put_token(const struct crypto *f, EVP_PKEY *key, const char *alg,
                     const char *type, const char *jwk, struct mo_span claims,
                     struct mo_buf *token)
{
    mo_autobuf struct mo_buf head = {.max = 512}, sig = {.max = TOKEN_MAX};
    int rc;

    (void)mo_buf_printf(&head, "{\"alg\":\"%s\",\"typ\":\"%s\"", alg, type);
    if (jwk)
        (void)mo_buf_printf(&head, ",\"jwk\":%s", jwk);
    (void)mo_buf_putc(&head, '}');
    (void)mo_base64url_put(token, mo_buf_view(&head));
    (void)mo_buf_putc(token, '.');
    (void)mo_base64url_put(token, claims);
    rc = sign_text(f, key, alg, mo_buf_view(token), &sig);
    (void)mo_buf_putc(token, '.');
    (void)mo_buf_span(token, mo_buf_view(&sig));
    return rc < 0 ? rc : mo_buf_err(token);
}

int mo_jws_sign(struct mo_span pem, const char *type, struct mo_span claims,
                struct mo_buf *out, struct mo_err *e)
{
    mo_autobuf struct mo_buf token = {.max = TOKEN_MAX};
    const char *alg = NULL;
    struct crypto f;
    EVP_PKEY *key;
    int rc = load_crypto(&f, e);

    if (rc < 0)
        return rc;
    key = read_key(&f, pem);
    if (key)
        alg = alg_of(&f, key);
    rc = alg ? put_token(&f, key, alg, type, NULL, claims, &token) : MO_EINVAL;
    f.EVP_PKEY_free(key);
    f.ERR_clear_error();
    if (rc == 0)
        rc = mo_buf_span(out, mo_buf_view(&token));
    return rc < 0 ? mo_fail(e, rc,
                            "not a private key for RS256, ES256 or EdDSA (PEM, "
                            "without a password)")
                  : 0;
}

/* --- a key of our own ---------------------------------------------------- */

struct mo_jws_key {
    struct crypto f;
    EVP_PKEY *key;
    char jwk[JWK_MAX];
};

/* A coordinate of the public point in base64url. */
static int put_coordinate(const struct mo_jws_key *k, const char *name,
                          struct mo_buf *out)
{
    unsigned char raw[P256_BYTES];
    BIGNUM *n = NULL;
    int rc = MO_EINVAL;

    if (k->f.EVP_PKEY_get_bn_param(k->key, name, &n) == 1 &&
        k->f.BN_bn2binpad(n, raw, P256_BYTES) == P256_BYTES)
        rc = mo_base64url_put(out, mo_span((const char *)raw, sizeof(raw)));
    k->f.BN_clear_free(n);
    return rc;
}

static int write_jwk(struct mo_jws_key *k)
{
    mo_autobuf struct mo_buf b = {.max = JWK_MAX - 1};
    int rc;

    (void)mo_buf_puts(&b, "{\"crv\":\"P-256\",\"kty\":\"EC\",\"x\":\"");
    rc = put_coordinate(k, OSSL_PKEY_PARAM_EC_PUB_X, &b);
    (void)mo_buf_puts(&b, "\",\"y\":\"");
    if (rc == 0)
        rc = put_coordinate(k, OSSL_PKEY_PARAM_EC_PUB_Y, &b);
    (void)mo_buf_puts(&b, "\"}");
    if (rc == 0)
        rc = mo_buf_err(&b);
    if (rc == 0)
        memcpy(k->jwk, mo_buf_cstr(&b), b.len + 1);
    return rc;
}

/* pem.p NULL: makes a key. */
static int key_open(struct mo_span pem, struct mo_jws_key **out,
                    struct mo_err *e)
{
    struct mo_jws_key *k = mo_new(struct mo_jws_key);
    const char *alg = NULL;
    int rc;

    if (!k)
        return mo_fail(e, MO_ENOMEM, "out of memory");
    rc = load_crypto(&k->f, e);
    if (rc < 0) {
        mo_free(k);
        return rc;
    }
    k->key = pem.p ? read_key(&k->f, pem)
                   : k->f.EVP_PKEY_Q_keygen(NULL, NULL, "EC", "P-256");
    if (k->key)
        alg = alg_of(&k->f, k->key);
    if (!alg || strcmp(alg, "ES256") != 0 || write_jwk(k) < 0)
        rc = mo_fail(e, MO_EINVAL, "not a private key for ES256");
    k->f.ERR_clear_error();
    if (rc < 0)
        mo_jws_key_free(k);
    else
        *out = k;
    return rc;
}

int mo_jws_key_new(struct mo_jws_key **out, struct mo_err *e)
{
    return key_open(mo_span(NULL, 0), out, e);
}

int mo_jws_key_read(struct mo_span pem, struct mo_jws_key **out,
                    struct mo_err *e)
{
    return key_open(pem.p ? pem : MO_SPAN(""), out, e);
}

void mo_jws_key_free(struct mo_jws_key *k)
{
    if (k)
        k->f.EVP_PKEY_free(k->key);
    mo_free(k);
}

int mo_jws_key_pem(const struct mo_jws_key *k, struct mo_buf *out)
{
    const struct crypto *f = &k->f;
    BIO *b = f->BIO_new(f->BIO_s_mem());
    char *p = NULL;
    long n = 0;
    int rc = MO_ENOMEM;

    if (b && f->PEM_write_bio_PrivateKey(b, k->key, NULL, NULL, 0, NULL, NULL))
        n = f->BIO_ctrl(b, BIO_CTRL_INFO, 0, &p);
    if (n > 0) {
        rc = mo_buf_put(out, p, (size_t)n);
        explicit_bzero(p, (size_t)n);
    }
    (void)f->BIO_free(b);
    return rc;
}

const char *mo_jws_key_jwk(const struct mo_jws_key *k)
{
    return k->jwk;
}

int mo_jws_key_sign(const struct mo_jws_key *k, const char *type,
                    struct mo_span claims, struct mo_buf *out, struct mo_err *e)
{
    mo_autobuf struct mo_buf token = {.max = TOKEN_MAX};
    int rc = put_token(&k->f, k->key, "ES256", type, k->jwk, claims, &token);

    k->f.ERR_clear_error();
    if (rc == 0)
        rc = mo_buf_span(out, mo_buf_view(&token));
    return rc < 0 ? mo_fail(e, rc, "the proof is not signed") : 0;
}
