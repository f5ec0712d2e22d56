/* jws.h - signs a JSON web token with a private key (RFC 7515, compact form).
 *
 * The key decides the algorithm: RSA of at least 2048 bits RS256, EC on P-256
 * ES256, Ed25519 EdDSA. It is a PEM text without a password, is read for each
 * signature and not kept. OpenSSL does the work (dso.h). */
#ifndef MO_LOOP_JWS_H
#define MO_LOOP_JWS_H

#include "base/str.h"

/* claims: a JSON object; type: the header's `typ`. Appends the token.
 * MO_EINVAL: not a private key that can be used; MO_EUNAVAIL: no OpenSSL. */
int mo_jws_sign(struct mo_span pem, const char *type, struct mo_span claims,
                struct mo_buf *out, struct mo_err *e);

#endif
