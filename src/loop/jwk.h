/* jwk.h - public keys as JSON (RFC 7517), and signatures made with them.
 *
 * A key fits one algorithm only (codec/jwt.h): RSA of 2048 to 8192 bits RS256,
 * EC on P-256 ES256, OKP Ed25519 EdDSA. So a token cannot choose how its
 * signature is checked. Symmetric and private keys are refused, as are keys
 * that say they are for something else than signatures.
 *
 * OpenSSL does the work; it is loaded with the first key (dso.h). */
#ifndef MO_LOOP_JWK_H
#define MO_LOOP_JWK_H

#include "codec/jwt.h"

struct mo_jwk;

/* MO_EINVAL: not a key that this file supports; MO_EUNAVAIL: no OpenSSL. */
int mo_jwk_new(struct mo_json jwk, struct mo_jwk **out, struct mo_err *e);
void mo_jwk_free(struct mo_jwk *k); /* NULL is fine */

enum mo_jwt_alg mo_jwk_alg(const struct mo_jwk *k);
struct mo_span mo_jwk_id(const struct mo_jwk *k); /* kid; empty: none */
/* True if the key made the signature. */
bool mo_jwk_verify(const struct mo_jwk *k, struct mo_span text,
                   struct mo_span signature);

#endif
