/* tls_psk.c - TLS with a shared key instead of certificates. See tls.h.
 *
 * Neither the key of TLS nor what the wire shows is the configured key itself:
 * both are derived from it. The identity that a client sends is
 *
 *   ID NAME     ID: 16 hex digits that depend on the key; NAME: the server that
 *               the client wants
 *
 * so a server can say which of the two is wrong. The client proves the key over
 * all of it (the binder of RFC 8446, 4.2.11.2). A short key could be guessed
 * from such a proof, hence MO_TLS_PSK_KEY_MIN. */
#include <stdio.h>
#include <strings.h>

#include "base/mem.h"
#include "codec/sha256.h"
#include "loop/ossl.h"

/* SHA-256 only: it is the hash that the key is bound to. */
#define SUITES     "TLS_AES_128_GCM_SHA256:TLS_CHACHA20_POLY1305_SHA256"
#define ID_LEN     16
#define PROTOS_MAX 64

struct mo_tls_psk {
    unsigned char key[MO_SHA256_LEN];
    char id[ID_LEN + 1];
    char name[MO_TLS_PSK_NAME_MAX];
    unsigned char protos[PROTOS_MAX];
};

static void derive(struct mo_span key, const char *use,
                   unsigned char out[MO_SHA256_LEN])
{
    struct mo_hmac m;

    mo_hmac_init(&m, key);
    mo_hmac_put(&m, use, strlen(use));
    mo_hmac_end(&m, out);
    explicit_bzero(&m, sizeof(m));
}

static void put_id(struct mo_span key, char out[ID_LEN + 1])
{
    unsigned char d[MO_SHA256_LEN];

    derive(key, "mcp-orchestrator cluster identity 1", d);
    for (size_t i = 0; i < ID_LEN / 2; i++)
        (void)snprintf(out + 2 * i, 3, "%02x", d[i]);
}

static SSL_SESSION *session_new(const struct mo_ossl *f, SSL *ssl,
                                const struct mo_tls_psk *k)
{
    static const unsigned char aes_128_gcm_sha256[] = {0x13, 0x01};
    SSL_SESSION *s = f->SSL_SESSION_new();

    if (s && f->SSL_SESSION_set1_master_key(s, k->key, sizeof(k->key)) == 1 &&
        f->SSL_SESSION_set_cipher(
            s, f->SSL_CIPHER_find(ssl, aes_128_gcm_sha256)) == 1 &&
        f->SSL_SESSION_set_protocol_version(s, TLS1_3_VERSION) == 1)
        return s;
    f->SSL_SESSION_free(s);
    return NULL;
}

/* A callback for keys gets nothing but OpenSSL's connection, and the table of
 * functions is in the data of that. The library is never unloaded (dso.h), so
 * every context sets the same value. */
static void *(*data_of)(const SSL *ssl, int index);

/* Server. The identity is a stranger's bytes. Without a session the handshake
 * fails: there is no certificate. */
static int find_session(SSL *ssl, const unsigned char *identity, size_t n,
                        SSL_SESSION **out)
{
    struct mo_tls_psk_conn *c = data_of(ssl, 0);
    struct mo_span rest = mo_span((const char *)identity, n);
    struct mo_span id = mo_span_cut(&rest, ' ');

    *out = NULL;
    if (!mo_span_is(id, c->psk->id)) {
        c->refusal = MO_TLS_REFUSED_KEY;
    } else if (!c->psk->name[0] || !mo_span_is(rest, c->psk->name)) {
        c->refusal = MO_TLS_REFUSED_NAME;
    } else {
        c->refusal = MO_TLS_REFUSED_OTHER;
        *out = session_new(c->f, ssl, c->psk);
        return *out != NULL;
    }
    return 1;
}

/* Client. OpenSSL copies the identity before it returns to us. */
static int use_session(SSL *ssl, const EVP_MD *md, const unsigned char **id,
                       size_t *n, SSL_SESSION **out)
{
    struct mo_tls_psk_conn *c = data_of(ssl, 0);

    (void)md; /* of a retry: one of the suites, all with the same hash */
    *out = session_new(c->f, ssl, c->psk);
    (void)snprintf(c->identity, sizeof(c->identity), "%s %s", c->psk->id,
                   c->wanted);
    *id = (const unsigned char *)c->identity;
    *n = strlen(c->identity);
    return *out != NULL;
}

static int put_protocols(struct mo_tls_psk *k, const char *names, unsigned *n,
                         struct mo_err *e)
{
    struct mo_span rest = mo_span_cstr(names);
    size_t at = 0;

    while (rest.n) {
        struct mo_span one = mo_span_cut(&rest, ' ');

        if (one.n == 0 || at + 1 + one.n > sizeof(k->protos))
            return mo_fail(e, MO_EINVAL, "TLS protocols '%s'", names);
        k->protos[at] = (unsigned char)one.n;
        memcpy(k->protos + at + 1, one.p, one.n);
        at += 1 + one.n;
    }
    *n = (unsigned)at;
    return 0;
}

static int set_rules(struct mo_tls_ctx *c, struct mo_err *e)
{
    const struct mo_ossl *f = &c->f;

    (void)f->SSL_CTX_set_options(c->ssl, SSL_OP_NO_TICKET);
    if (!f->SSL_CTX_ctrl(c->ssl, SSL_CTRL_SET_MIN_PROTO_VERSION, TLS1_3_VERSION,
                         NULL) ||
        f->SSL_CTX_set_ciphersuites(c->ssl, SUITES) != 1 ||
        (c->server && f->SSL_CTX_set_num_tickets(c->ssl, 0) != 1))
        return mo_ossl_fail(f, e, "TLS with a key");
    if (c->server)
        f->SSL_CTX_set_psk_find_session_callback(c->ssl, find_session);
    else
        f->SSL_CTX_set_psk_use_session_callback(c->ssl, use_session);
    return mo_ossl_protocols(c, e);
}

struct mo_tls_ctx *mo_tls_psk_new(const struct mo_tls_psk_opts *o,
                                  struct mo_err *e)
{
    struct mo_tls_ctx *c;
    struct mo_tls_psk *k;

    if (o->key.n < MO_TLS_PSK_KEY_MIN)
        return mo_null(mo_fail(e, MO_EINVAL, "it must have at least %d bytes",
                               MO_TLS_PSK_KEY_MIN));
    c = mo_ossl_ctx_new(o->server, e);
    if (!c)
        return NULL;
    data_of = c->f.SSL_get_ex_data;
    c->psk = k = mo_new(struct mo_tls_psk);
    if (!k) {
        mo_tls_free(c);
        return mo_null(mo_fail(e, MO_ENOMEM, "TLS context"));
    }
    derive(o->key, "mcp-orchestrator cluster key 1", k->key);
    put_id(o->key, k->id);
    mo_tls_psk_name(c, o->name ? o->name : "");
    c->protos = k->protos;
    if (put_protocols(k, o->protocols, &c->nprotos, e) < 0 ||
        set_rules(c, e) < 0) {
        mo_tls_free(c);
        return NULL;
    }
    return c;
}

void mo_tls_psk_name(struct mo_tls_ctx *c, const char *name)
{
    (void)snprintf(c->psk->name, sizeof(c->psk->name), "%s", name);
}

void mo_tls_psk_free(struct mo_tls_psk *k)
{
    if (k)
        explicit_bzero(k, sizeof(*k));
    mo_free(k);
}
