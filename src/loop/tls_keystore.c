#include "loop/tls_keystore.h"

#include <openssl/err.h>
#include <openssl/pem.h>
#include <stdio.h>

#include "base/mem.h"
#include "loop/dso.h"

#define MAGIC     0xFEEDFEED
#define VERSION   2
#define TRUSTED   2 /* kind of an entry */
#define CERTS_MAX 4096
#define DER_MAX   ((size_t)64 * 1024)
#define SHA1_LEN  20

/* clang-format off */
#define FUNCTIONS(X)                                                           \
    X(BIO_free) X(BIO_new_mem_buf) X(ERR_clear_error) X(EVP_Q_digest)          \
    X(PEM_read_bio_X509) X(X509_free) X(i2d_X509)
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

/* Big-endian. */
static void put_number(struct mo_buf *b, uint64_t v, unsigned bytes)
{
    while (bytes--)
        mo_buf_putc(b, (char)(v >> (8 * bytes)));
}

static void put_text(struct mo_buf *b, const char *s)
{
    put_number(b, strlen(s), 2);
    mo_buf_puts(b, s);
}

static void put_cert(struct mo_buf *b, unsigned i, struct mo_span der)
{
    char alias[16];

    (void)snprintf(alias, sizeof(alias), "c%u", i);
    put_number(b, TRUSTED, 4);
    put_text(b, alias);
    put_number(b, 0, 8); /* since when */
    put_text(b, "X.509");
    put_number(b, der.n, 4);
    mo_buf_span(b, der);
}

/* Returns how many there are. */
static unsigned put_certs(const struct crypto *f, struct mo_span pem,
                          struct mo_buf *out)
{
    BIO *in = f->BIO_new_mem_buf(pem.p, (int)pem.n);
    unsigned n = 0;
    X509 *c = in ? f->PEM_read_bio_X509(in, NULL, NULL, NULL) : NULL;

    while (c && n < CERTS_MAX) {
        unsigned char *der = NULL;
        int len = f->i2d_X509(c, NULL);

        if (len > 0 && (size_t)len <= DER_MAX)
            der = mo_alloc((size_t)len);
        if (der) {
            unsigned char *p = der;

            (void)f->i2d_X509(c, &p);
            put_cert(out, n++, mo_span((const char *)der, (size_t)len));
            mo_free(der);
        }
        f->X509_free(c);
        c = f->PEM_read_bio_X509(in, NULL, NULL, NULL);
    }
    f->X509_free(c);
    (void)f->BIO_free(in);
    f->ERR_clear_error(); /* the end of the text is an error, too */
    return n;
}

/* SHA-1 of the password in UTF-16, a text of Sun's, and all before. */
static int put_checksum(const struct crypto *f, struct mo_span text,
                        struct mo_buf *out)
{
    static const char password[] = "changeit";
    mo_autobuf struct mo_buf all = {.max = text.n + 64};
    unsigned char sum[64];
    size_t n = 0;

    for (const char *p = password; *p; p++)
        put_number(&all, (unsigned char)*p, 2);
    mo_buf_puts(&all, "Mighty Aphrodite");
    mo_buf_span(&all, text);
    if (mo_buf_err(&all))
        return mo_buf_err(&all);
    if (f->EVP_Q_digest(NULL, "SHA1", NULL, all.p, all.len, sum, &n) != 1 ||
        n != SHA1_LEN)
        return MO_ETLS;
    return mo_buf_put(out, sum, n);
}

int mo_tls_keystore(struct mo_span pem, struct mo_buf *out, struct mo_err *e)
{
    size_t from = out->len;
    struct crypto f;
    unsigned n;
    int rc = load_crypto(&f, e);

    if (rc < 0)
        return rc;
    put_number(out, MAGIC, 4);
    put_number(out, VERSION, 4);
    put_number(out, 0, 4); /* how many: below */
    n = put_certs(&f, pem, out);
    rc = mo_buf_err(out);
    if (rc == 0) {
        out->p[from + 10] = (char)(n >> 8);
        out->p[from + 11] = (char)n;
        rc = put_checksum(&f, mo_span(out->p + from, out->len - from), out);
    }
    f.ERR_clear_error();
    return rc ? mo_fail(e, rc, "certificates for Java") : 0;
}
