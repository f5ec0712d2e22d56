/* ossl.h - OpenSSL for tls.c: function table, context, error texts. Private to
 * loop/.
 *
 * Every call into the library goes through the table (see dso.h). Functions
 * that OpenSSL defines as macros are therefore called as the ctrl call behind
 * them. */
#ifndef MO_LOOP_OSSL_H
#define MO_LOOP_OSSL_H

#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>

#include "loop/dso.h"
#include "loop/tls.h"

/* clang-format off */
#define MO_OSSL_FUNCTIONS(X)                                                   \
    X(BIO_ctrl) X(BIO_free) X(BIO_new) X(BIO_s_mem) X(BIO_write)               \
    X(ERR_clear_error) X(ERR_get_error) X(ERR_peek_last_error)                 \
    X(ERR_reason_error_string) X(SSL_CTX_check_private_key) X(SSL_CTX_ctrl)    \
    X(SSL_CTX_free) X(SSL_CTX_load_verify_file) X(SSL_CTX_new)                 \
    X(SSL_CTX_set_alpn_protos) X(SSL_CTX_set_alpn_select_cb)                   \
    X(SSL_CTX_set_cipher_list) X(SSL_CTX_set_default_passwd_cb)                \
    X(SSL_CTX_set_default_passwd_cb_userdata)                                  \
    X(SSL_CTX_set_default_verify_paths) X(SSL_CTX_set_num_tickets)             \
    X(SSL_CTX_set_options) X(SSL_CTX_set_verify)                               \
    X(SSL_CTX_use_PrivateKey) X(SSL_CTX_use_PrivateKey_file)                   \
    X(SSL_CTX_use_certificate) X(SSL_CTX_use_certificate_chain_file)           \
    X(SSL_ctrl) X(SSL_do_handshake) X(SSL_free) X(SSL_free_buffers)            \
    X(SSL_get0_alpn_selected) X(SSL_get0_param) X(SSL_get_error) X(SSL_get_verify_result) X(SSL_new)     \
    X(SSL_read) X(SSL_select_next_proto) X(SSL_set0_rbio) X(SSL_set0_wbio)     \
    X(SSL_set1_host) X(SSL_set_accept_state) X(SSL_set_connect_state)          \
    X(SSL_shutdown) X(SSL_write) X(TLS_client_method) X(TLS_server_method)     \
    X(X509_VERIFY_PARAM_set1_ip_asc) X(X509_verify_cert_error_string)          \
    X(SSL_CIPHER_find) X(SSL_CTX_set_ciphersuites)                             \
    X(SSL_CTX_set_psk_find_session_callback)                                   \
    X(SSL_CTX_set_psk_use_session_callback) X(SSL_SESSION_free)                \
    X(SSL_SESSION_new) X(SSL_SESSION_set1_master_key)                          \
    X(SSL_SESSION_set_cipher) X(SSL_SESSION_set_protocol_version)              \
    X(SSL_get_ex_data) X(SSL_session_reused) X(SSL_set_ex_data)
/* clang-format on */

struct mo_ossl {
    MO_OSSL_FUNCTIONS(MO_DSO_MEMBER)
};

struct mo_tls_psk; /* tls_psk.c */

struct mo_tls_ctx {
    struct mo_ossl f;
    SSL_CTX *ssl;
    unsigned refs;
    unsigned handshake_ms;
    bool server;
    const unsigned char *protos; /* of ALPN, each with its length before it */
    unsigned nprotos;            /* bytes */
    struct mo_tls_psk *psk;      /* NULL: certificates */
};

/* A connection as the callbacks for keys see it; it is OpenSSL's data 0. */
struct mo_tls_psk_conn {
    const struct mo_tls_psk *psk;
    const struct mo_ossl *f;
    const char *wanted; /* client: the name of the peer */
    char identity[96];  /* client: what it offers */
    enum mo_tls_refusal refusal;
};

void mo_tls_psk_free(struct mo_tls_psk *k); /* NULL is fine */
/* Offers or accepts the protocols that are set. */
int mo_ossl_protocols(struct mo_tls_ctx *c, struct mo_err *e);

/* A server's context lacks only its certificate and key. */
struct mo_tls_ctx *mo_ossl_ctx_new(bool server, struct mo_err *e);

/* MO_ETLS with this text followed by OpenSSL's first reason. Empties the error
 * queue. */
int mo_ossl_fail(const struct mo_ossl *f, struct mo_err *e, const char *fmt,
                 ...) __attribute__((format(printf, 3, 4)));

#endif
