/* ossl.c - the OpenSSL library, its contexts and its error texts.
 *
 * Contexts are created rarely, from files that people configured (a
 * certificate, a key). Most code here makes clear error messages. */
#include "loop/ossl.h"

#include <unistd.h>

#include "base/mem.h"
#include "loop/standalone.h"
#include "loop/tls.h"

/* TLS 1.2: forward secrecy and authenticated encryption only. TLS 1.3 has
 * nothing else. */
#define CIPHERS_12 "ECDHE+AESGCM:ECDHE+CHACHA20"

/* Protocols of ALPN, each with its length in front of it. */
static const unsigned char both[] = "\x02h2\x08http/1.1";

#define H2_LEN     3u
#define BOTH_LEN   ((unsigned)sizeof(both) - 1)
#define HTTP11     (both + H2_LEN)
#define HTTP11_LEN (BOTH_LEN - H2_LEN)

static int load_openssl(struct mo_ossl *f, struct mo_err *e)
{
#define ROW(fn) MO_DSO_SYM(struct mo_ossl, fn),
    static const struct mo_dso_sym syms[] = {MO_OSSL_FUNCTIONS(ROW)};
#undef ROW

    /* libssl pulls in libcrypto; its symbols are found through it. */
    return mo_dso_load("libssl.so.3", "libssl3", syms, MO_COUNT(syms), f, e);
}

int mo_ossl_fail(const struct mo_ossl *f, struct mo_err *e, const char *fmt,
                 ...)
{
    unsigned long first = f->ERR_get_error(); /* the root cause */
    const char *why = first ? f->ERR_reason_error_string(first) : NULL;
    va_list ap;

    f->ERR_clear_error();
    va_start(ap, fmt);
    (void)mo_vfail(e, MO_ETLS, 0, why, fmt, ap);
    va_end(ap);
    return MO_ETLS;
}

/* Called only for an encrypted key: record that and refuse. */
static int no_passphrase(char *buf, int size, int rw, void *asked)
{
    (void)buf;
    (void)size;
    (void)rw;
    *(bool *)asked = true;
    return -1;
}

static int use_cert(struct mo_tls_ctx *c, const char *cert, struct mo_err *e)
{
    if (access(cert, R_OK) < 0)
        return mo_fail_sys(e, "TLS certificate %s", cert);
    if (c->f.SSL_CTX_use_certificate_chain_file(c->ssl, cert) == 1)
        return 0;
    return mo_ossl_fail(&c->f, e, "TLS certificate %s is not a PEM certificate",
                        cert);
}

static int use_key(struct mo_tls_ctx *c, const char *cert, const char *key,
                   struct mo_err *e)
{
    const struct mo_ossl *f = &c->f;
    bool asked = false;
    int ok;

    if (access(key, R_OK) < 0)
        return mo_fail_sys(e, "TLS key %s", key);
    f->SSL_CTX_set_default_passwd_cb(c->ssl, no_passphrase);
    f->SSL_CTX_set_default_passwd_cb_userdata(c->ssl, &asked);
    ok = f->SSL_CTX_use_PrivateKey_file(c->ssl, key, SSL_FILETYPE_PEM);
    f->SSL_CTX_set_default_passwd_cb_userdata(c->ssl, NULL);
    if (ok == 1 && f->SSL_CTX_check_private_key(c->ssl) == 1)
        return 0;
    if (asked) {
        f->ERR_clear_error();
        return mo_fail(e, MO_ETLS,
                       "TLS key %s has a passphrase; give a key without one",
                       key);
    }
    if (ok == 1 || ERR_GET_LIB(f->ERR_peek_last_error()) == ERR_LIB_X509)
        return mo_ossl_fail(f, e, "TLS key %s does not belong to %s", key,
                            cert);
    return mo_ossl_fail(f, e, "TLS key %s is not a PEM private key", key);
}

/* Select the protocol; send the alert to a client that offers only others. */
static int pick_alpn(SSL *ssl, const unsigned char **out, unsigned char *n,
                     const unsigned char *in, unsigned in_n, void *ctx)
{
    const struct mo_tls_ctx *c = ctx;
    unsigned char *got;
    int rc =
        c->f.SSL_select_next_proto(&got, n, c->protos, c->nprotos, in, in_n);

    (void)ssl;
    if (rc != OPENSSL_NPN_NEGOTIATED)
        return SSL_TLSEXT_ERR_ALERT_FATAL;
    *out = got;
    return SSL_TLSEXT_ERR_OK;
}

/* SSL_CTX_set_alpn_protos() returns 0 on success. */
int mo_ossl_protocols(struct mo_tls_ctx *c, struct mo_err *e)
{
    int rc = 0;

    if (c->server)
        c->f.SSL_CTX_set_alpn_select_cb(c->ssl, pick_alpn, c);
    else
        rc = c->f.SSL_CTX_set_alpn_protos(c->ssl, c->protos, c->nprotos);
    return rc ? mo_ossl_fail(&c->f, e, "TLS protocols") : 0;
}

int mo_tls_use_h2(struct mo_tls_ctx *c, struct mo_err *e)
{
    c->protos = both;
    c->nprotos = c->server ? H2_LEN : BOTH_LEN;
    return mo_ossl_protocols(c, e);
}

static int set_rules(struct mo_tls_ctx *c, struct mo_err *e)
{
    const struct mo_ossl *f = &c->f;
    long mode = SSL_MODE_RELEASE_BUFFERS | SSL_MODE_AUTO_RETRY;

    (void)f->SSL_CTX_ctrl(c->ssl, SSL_CTRL_MODE, mode, NULL);
    (void)f->SSL_CTX_set_options(c->ssl, SSL_OP_NO_RENEGOTIATION |
                                             SSL_OP_NO_COMPRESSION);
    (void)f->SSL_CTX_ctrl(c->ssl, SSL_CTRL_SET_SESS_CACHE_MODE,
                          SSL_SESS_CACHE_OFF, NULL);
    if (!f->SSL_CTX_ctrl(c->ssl, SSL_CTRL_SET_MIN_PROTO_VERSION, TLS1_2_VERSION,
                         NULL) ||
        !f->SSL_CTX_set_cipher_list(c->ssl, CIPHERS_12))
        return mo_ossl_fail(f, e, "TLS rules");
    /* One ticket per connection instead of two; tickets hold all the state. */
    if (c->server)
        (void)f->SSL_CTX_set_num_tickets(c->ssl, 1);
    else
        f->SSL_CTX_set_verify(c->ssl, SSL_VERIFY_PEER, NULL);
    c->protos = HTTP11;
    c->nprotos = HTTP11_LEN;
    return mo_ossl_protocols(c, e);
}

struct mo_tls_ctx *mo_ossl_ctx_new(bool server, struct mo_err *e)
{
    struct mo_tls_ctx *c = mo_new(struct mo_tls_ctx);

    if (!c)
        return mo_null(mo_fail(e, MO_ENOMEM, "TLS context"));
    c->refs = 1;
    c->server = server;
    c->handshake_ms = MO_TLS_HANDSHAKE_MS;
    if (load_openssl(&c->f, e) < 0) {
        mo_free(c);
        return NULL;
    }
    c->ssl = c->f.SSL_CTX_new(server ? c->f.TLS_server_method()
                                     : c->f.TLS_client_method());
    if (c->ssl && set_rules(c, e) == 0)
        return c;
    if (!c->ssl)
        (void)mo_ossl_fail(&c->f, e, "TLS context");
    mo_tls_free(c);
    return NULL;
}

struct mo_tls_ctx *mo_tls_server_new(const char *cert, const char *key,
                                     struct mo_err *e)
{
    struct mo_tls_ctx *c = mo_ossl_ctx_new(true, e);

    if (!c)
        return NULL;
    if (use_cert(c, cert, e) < 0 || use_key(c, cert, key, e) < 0) {
        mo_tls_free(c);
        return NULL;
    }
    return c;
}

static int use_ca(struct mo_tls_ctx *c, const char *ca, struct mo_err *e)
{
    if (!ca)
        ca = mo_standalone_ca();
    if (!ca) {
        if (c->f.SSL_CTX_set_default_verify_paths(c->ssl) == 1)
            return 0;
        return mo_ossl_fail(&c->f, e, "the system's trusted certificates");
    }
    if (access(ca, R_OK) < 0)
        return mo_fail_sys(e, "TLS authorities %s", ca);
    if (c->f.SSL_CTX_load_verify_file(c->ssl, ca) == 1)
        return 0;
    return mo_ossl_fail(&c->f, e, "TLS authorities %s: no PEM certificate", ca);
}

struct mo_tls_ctx *mo_tls_client_new(const struct mo_tls_client_opts *o,
                                     struct mo_err *e)
{
    struct mo_tls_ctx *c;

    if (!o->cert != !o->key)
        return mo_null(
            mo_fail(e, MO_EINVAL,
                    "a TLS client certificate needs its key, and a key its "
                    "certificate"));
    c = mo_ossl_ctx_new(false, e);
    if (!c)
        return NULL;
    if (use_ca(c, o->ca, e) < 0 || (o->cert && use_cert(c, o->cert, e) < 0) ||
        (o->key && use_key(c, o->cert, o->key, e) < 0)) {
        mo_tls_free(c);
        return NULL;
    }
    return c;
}

void mo_tls_free(struct mo_tls_ctx *c)
{
    if (!c)
        return;
    c->refs--;
    if (c->refs)
        return;
    c->f.SSL_CTX_free(c->ssl);
    mo_tls_psk_free(c->psk);
    mo_free(c);
}

void mo_tls_handshake_ms(struct mo_tls_ctx *c, unsigned ms)
{
    c->handshake_ms = ms;
}
