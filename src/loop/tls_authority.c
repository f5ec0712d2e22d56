#include "loop/tls_authority.h"

#include <openssl/evp.h>
#include <openssl/pem.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/file.h"
#include "base/mem.h"
#include "base/rand.h"
#include "codec/sha256.h"
#include "loop/ossl.h"

#define KEY_FILE_MAX ((size_t)4096)
#define KEY_DER_MAX  256 /* of a public key */
#define TEXT_MAX     ((size_t)MO_TLS_NAMES_MAX * 300)
#define PEM_MAX      ((size_t)64 * 1024)
#define HOUR_S       3600L
#define LEAF_S       (24 * HOUR_S)
#define TRUSTED_S    (2 * 366 * 24 * HOUR_S) /* longer than a box lives */
#define CURVE        "P-256"
#define CN_MAX       64

/* clang-format off */
#define FUNCTIONS(X)                                                           \
    X(ASN1_INTEGER_set_uint64) X(BIO_ctrl) X(BIO_free) X(BIO_new)              \
    X(BIO_new_mem_buf) X(BIO_s_mem) X(ERR_clear_error) X(EVP_PKEY_Q_keygen)    \
    X(EVP_PKEY_free) X(EVP_sha256) X(PEM_read_bio_PrivateKey)                  \
    X(PEM_write_bio_PrivateKey) X(PEM_write_bio_X509) X(X509V3_EXT_nconf_nid)  \
    X(X509V3_set_ctx) X(X509_EXTENSION_free) X(X509_NAME_add_entry_by_txt)     \
    X(X509_NAME_free) X(X509_NAME_new) X(X509_add_ext) X(X509_free)            \
    X(X509_get_serialNumber) X(X509_getm_notAfter) X(X509_getm_notBefore)      \
    X(X509_gmtime_adj) X(X509_new) X(X509_set_issuer_name) X(X509_set_pubkey)  \
    X(X509_set_subject_name) X(X509_set_version) X(X509_sign) X(i2d_PUBKEY)
/* clang-format on */

struct crypto {
    FUNCTIONS(MO_DSO_MEMBER)
};

struct mo_tls_authority {
    struct crypto f;
    EVP_PKEY *key;
    unsigned char der[KEY_DER_MAX]; /* the public key */
    size_t der_len;
};

static int load_crypto(struct crypto *f, struct mo_err *e)
{
#define ROW(fn) MO_DSO_SYM(struct crypto, fn),
    static const struct mo_dso_sym syms[] = {FUNCTIONS(ROW)};
#undef ROW

    return mo_dso_load("libcrypto.so.3", "libssl3", syms, MO_COUNT(syms), f, e);
}

/* --- lists of names ------------------------------------------------------ */

static int compare(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* Sorted, each name once. */
static struct mo_tls_names order_names(const struct mo_tls_names *names)
{
    struct mo_tls_names all = *names, out = {.n = 0};

    MO_BUG_ON(names->n == 0 || names->n > MO_TLS_NAMES_MAX);
    qsort(all.v, all.n, sizeof(all.v[0]), compare);
    for (size_t i = 0; i < all.n; i++)
        if (i == 0 || strcmp(all.v[i], all.v[i - 1]) != 0)
            out.v[out.n++] = all.v[i];
    return out;
}

void mo_tls_authority_id(const struct mo_tls_authority *a,
                         const struct mo_tls_names *names,
                         char out[MO_TLS_LIST_ID])
{
    struct mo_tls_names list = order_names(names);
    unsigned char sum[MO_SHA256_LEN];
    struct mo_sha256 h;

    mo_sha256_init(&h);
    mo_sha256_put(&h, a->der, a->der_len);
    for (size_t i = 0; i < list.n; i++)
        mo_sha256_put(&h, list.v[i], strlen(list.v[i]) + 1);
    mo_sha256_end(&h, sum);
    mo_hex(sum, (MO_TLS_LIST_ID - 1) / 2, out);
}

/* --- certificates -------------------------------------------------------- */

static X509_NAME *name_new(const struct crypto *f, const char *cn)
{
    X509_NAME *n = f->X509_NAME_new();

    if (n && f->X509_NAME_add_entry_by_txt(n, "CN", MBSTRING_ASC,
                                           (const unsigned char *)cn, -1, -1,
                                           0) == 1)
        return n;
    f->X509_NAME_free(n);
    return NULL;
}

static X509_NAME *authority_name(const struct mo_tls_authority *a,
                                 const struct mo_tls_names *names)
{
    char id[MO_TLS_LIST_ID], cn[CN_MAX + 1];

    mo_tls_authority_id(a, names, id);
    (void)snprintf(cn, sizeof(cn), "MCP Orchestrator, boxes, %s", id);
    return name_new(&a->f, cn);
}

static bool add_extension(const struct crypto *f, X509 *c, int nid,
                          const char *value)
{
    X509_EXTENSION *x;
    X509V3_CTX ctx;
    bool ok;

    f->X509V3_set_ctx(&ctx, c, c, NULL, NULL, 0);
    x = f->X509V3_EXT_nconf_nid(NULL, &ctx, nid, value);
    ok = x && f->X509_add_ext(c, x, -1) == 1;
    f->X509_EXTENSION_free(x);
    return ok;
}

/* Everything but the extensions and the signature. */
static X509 *cert_new(const struct mo_tls_authority *a, const char *cn,
                      const struct mo_tls_names *names, EVP_PKEY *key,
                      long seconds)
{
    const struct crypto *f = &a->f;
    X509_NAME *issuer = authority_name(a, names);
    X509_NAME *subject = cn ? name_new(f, cn) : issuer;
    X509 *c = issuer && subject ? f->X509_new() : NULL;
    uint64_t serial;
    bool ok;

    mo_random(&serial, sizeof(serial));
    serial = serial >> 1 | 1; /* positive */
    ok = c && f->X509_set_version(c, X509_VERSION_3) == 1 &&
         f->ASN1_INTEGER_set_uint64(f->X509_get_serialNumber(c), serial) == 1 &&
         f->X509_gmtime_adj(f->X509_getm_notBefore(c), -HOUR_S) &&
         f->X509_gmtime_adj(f->X509_getm_notAfter(c), seconds) &&
         f->X509_set_subject_name(c, subject) == 1 &&
         f->X509_set_issuer_name(c, issuer) == 1 &&
         f->X509_set_pubkey(c, key) == 1;
    if (cn)
        f->X509_NAME_free(subject);
    f->X509_NAME_free(issuer);
    if (ok)
        return c;
    f->X509_free(c);
    return NULL;
}

static int fail(const struct mo_tls_authority *a, struct mo_err *e)
{
    a->f.ERR_clear_error();
    return mo_fail(e, MO_ETLS, "a certificate cannot be made");
}

static int write_pem(const struct mo_tls_authority *a, X509 *c,
                     struct mo_buf *pem)
{
    const struct crypto *f = &a->f;
    BIO *b = f->BIO_new(f->BIO_s_mem());
    char *p = NULL;
    long n = 0;
    int rc = MO_ETLS;

    if (b && f->PEM_write_bio_X509(b, c) == 1)
        n = f->BIO_ctrl(b, BIO_CTRL_INFO, 0, &p);
    if (n > 0)
        rc = mo_buf_put(pem, p, (size_t)n);
    (void)f->BIO_free(b);
    return rc;
}

int mo_tls_authority_cert(const struct mo_tls_authority *a,
                          const struct mo_tls_names *names, struct mo_buf *pem,
                          struct mo_err *e)
{
    mo_autobuf struct mo_buf only = {.max = TEXT_MAX};
    struct mo_tls_names list = order_names(names);
    X509 *c = cert_new(a, NULL, names, a->key, TRUSTED_S);
    int rc = MO_ETLS;

    mo_buf_puts(&only, "critical");
    for (size_t i = 0; i < list.n; i++)
        mo_buf_printf(&only, ",permitted;DNS:%s", list.v[i]);
    mo_buf_puts(&only, ",excluded;IP:0.0.0.0/0.0.0.0,excluded;IP:::/::");
    if (c && mo_buf_err(&only) == 0 &&
        add_extension(&a->f, c, NID_basic_constraints,
                      "critical,CA:TRUE,pathlen:0") &&
        add_extension(&a->f, c, NID_key_usage, "critical,keyCertSign") &&
        add_extension(&a->f, c, NID_ext_key_usage, "serverAuth") &&
        add_extension(&a->f, c, NID_subject_key_identifier, "hash") &&
        add_extension(&a->f, c, NID_name_constraints, mo_buf_cstr(&only)) &&
        a->f.X509_sign(c, a->key, a->f.EVP_sha256()) > 0)
        rc = write_pem(a, c, pem);
    a->f.X509_free(c);
    return rc < 0 ? fail(a, e) : 0;
}

/* A certificate for this host and key. */
static X509 *leaf_new(const struct mo_tls_authority *a,
                      const struct mo_tls_names *names, const char *host,
                      EVP_PKEY *key)
{
    char alt[300];
    X509 *c;

    (void)snprintf(alt, sizeof(alt), "DNS:%s", host);
    c = cert_new(a, strlen(host) <= CN_MAX ? host : "host", names, key, LEAF_S);
    if (c &&
        add_extension(&a->f, c, NID_basic_constraints, "critical,CA:FALSE") &&
        add_extension(&a->f, c, NID_key_usage, "critical,digitalSignature") &&
        add_extension(&a->f, c, NID_ext_key_usage, "serverAuth") &&
        add_extension(&a->f, c, NID_subject_alt_name, alt) &&
        a->f.X509_sign(c, a->key, a->f.EVP_sha256()) > 0)
        return c;
    a->f.X509_free(c);
    return NULL;
}

struct mo_tls_ctx *mo_tls_authority_server(const struct mo_tls_authority *a,
                                           const struct mo_tls_names *names,
                                           const char *host, struct mo_err *e)
{
    struct mo_tls_ctx *t = mo_ossl_ctx_new(true, e);
    EVP_PKEY *key;
    X509 *c;
    bool ok;

    if (!t)
        return NULL;
    key = a->f.EVP_PKEY_Q_keygen(NULL, NULL, "EC", CURVE);
    c = key ? leaf_new(a, names, host, key) : NULL;
    ok = c && t->f.SSL_CTX_use_certificate(t->ssl, c) == 1 &&
         t->f.SSL_CTX_use_PrivateKey(t->ssl, key) == 1;
    a->f.X509_free(c);
    a->f.EVP_PKEY_free(key);
    if (ok)
        return t;
    mo_tls_free(t);
    return mo_null(fail(a, e));
}

/* --- the key ------------------------------------------------------------- */

/* Another process may do the same: the first one's key stays. */
static int create_key(const struct mo_tls_authority *a, const char *path,
                      struct mo_err *e)
{
    const struct crypto *f = &a->f;
    EVP_PKEY *key = f->EVP_PKEY_Q_keygen(NULL, NULL, "EC", CURVE);
    BIO *b = key ? f->BIO_new(f->BIO_s_mem()) : NULL;
    char *p = NULL;
    long n = 0;
    int rc;

    if (b && f->PEM_write_bio_PrivateKey(b, key, NULL, NULL, 0, NULL, NULL))
        n = f->BIO_ctrl(b, BIO_CTRL_INFO, 0, &p);
    rc = n > 0 ? mo_file_create(path, mo_span(p, (size_t)n), e) : fail(a, e);
    if (n > 0)
        explicit_bzero(p, (size_t)n);
    (void)f->BIO_free(b);
    f->EVP_PKEY_free(key);
    return rc;
}

static int parse_key(struct mo_tls_authority *a, const char *path,
                     struct mo_span text, struct mo_err *e)
{
    BIO *b = a->f.BIO_new_mem_buf(text.p, (int)text.n);
    unsigned char *p = a->der;
    char none[] = ""; /* a passphrase is never asked for */
    int n = 0;

    if (b)
        a->key = a->f.PEM_read_bio_PrivateKey(b, NULL, NULL, none);
    (void)a->f.BIO_free(b);
    if (a->key)
        n = a->f.i2d_PUBKEY(a->key, NULL);
    if (n <= 0 || n > KEY_DER_MAX || a->f.i2d_PUBKEY(a->key, &p) != n) {
        a->f.ERR_clear_error();
        return mo_fail(e, MO_EINVAL,
                       "%s is no key of an authority; remove it, and a new one "
                       "is made",
                       path);
    }
    a->der_len = (size_t)n;
    return 0;
}

static int read_key(struct mo_tls_authority *a, const char *path,
                    struct mo_err *e)
{
    mo_autowipe struct mo_buf text = {.max = KEY_FILE_MAX};
    struct mo_file_stamp stamp;
    struct mo_err why;
    int rc;

    if (!mo_buf_room(&text, KEY_FILE_MAX)) /* growing would leave copies */
        return mo_fail(e, MO_ENOMEM, "authority");
    rc = mo_file_read(path, KEY_FILE_MAX, &text, &stamp, &why);
    if (rc == MO_ENOTFOUND) {
        rc = create_key(a, path, &why);
        if (rc == 0)
            rc = mo_file_read(path, KEY_FILE_MAX, &text, &stamp, &why);
    }
    if (rc == 0)
        rc = mo_file_trust(path, &stamp, true, &why);
    if (rc == 0)
        return parse_key(a, path, mo_buf_view(&text), e);
    if (e)
        *e = why;
    return rc;
}

int mo_tls_authority_open(const char *key_file, struct mo_tls_authority **out,
                          struct mo_err *e)
{
    struct mo_tls_authority *a = mo_new(struct mo_tls_authority);
    int rc = a ? load_crypto(&a->f, e) : mo_fail(e, MO_ENOMEM, "authority");

    if (rc == 0)
        rc = read_key(a, key_file, e);
    if (rc == 0) {
        *out = a;
        return 0;
    }
    if (a && a->key)
        a->f.EVP_PKEY_free(a->key);
    mo_free(a);
    return rc;
}

void mo_tls_authority_free(struct mo_tls_authority *a)
{
    if (!a)
        return;
    a->f.EVP_PKEY_free(a->key);
    mo_free(a);
}
