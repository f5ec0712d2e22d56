/* jws.h - signs a JSON web token with a private key (RFC 7515, compact form).
 *
 * The key decides the algorithm: RSA of at least 2048 bits RS256, EC on P-256
 * ES256, Ed25519 EdDSA. It is a PEM text without a password, is read for each
 * signature and not kept. OpenSSL does the work (dso.h).
 *
 * A struct mo_jws_key is a key of our own on P-256 that stays open: it signs
 * with ES256, and its tokens carry the public key (`jwk`). */
#ifndef MO_LOOP_JWS_H
#define MO_LOOP_JWS_H

#include "base/str.h"

/* claims: a JSON object; type: the header's `typ`. Appends the token.
 * MO_EINVAL: not a private key that can be used; MO_EUNAVAIL: no OpenSSL. */
int mo_jws_sign(struct mo_span pem, const char *type, struct mo_span claims,
                struct mo_buf *out, struct mo_err *e);

struct mo_jws_key;

/* Makes a key, or reads one that mo_jws_key_pem() wrote. */
int mo_jws_key_new(struct mo_jws_key **out, struct mo_err *e);
int mo_jws_key_read(struct mo_span pem, struct mo_jws_key **out,
                    struct mo_err *e);
void mo_jws_key_free(struct mo_jws_key *k); /* NULL is fine */
/* Appends the private key. */
int mo_jws_key_pem(const struct mo_jws_key *k, struct mo_buf *out);
/* The public key as JSON in the form whose SHA-256 is its thumbprint (RFC
 * 7638). */
const char *mo_jws_key_jwk(const struct mo_jws_key *k);
int mo_jws_key_sign(const struct mo_jws_key *k, const char *type,
                    struct mo_span claims, struct mo_buf *out,
                    struct mo_err *e);

#endif
