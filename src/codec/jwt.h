/* jwt.h - signed JSON web tokens in their compact form (RFC 7515, 7519).
 *
 * mo_jwt_parse() splits a token and reads header and claims; it checks no
 * signature. The caller verifies `signed_part` against `signature` with a key
 * of the issuer (loop/jwk.h), then checks the claims with mo_jwt_check(). Until
 * then nothing of the token is true.
 *
 * Strict: the algorithm is one of three with a public key, so "none" and keyed
 * hashes do not exist here; a critical extension is refused; a member that we
 * read may not occur twice. Errors name the fault and no value of the token.
 *
 * No I/O. Decoded texts are in the caller's arena, spans borrow the token. */
#ifndef MO_CODEC_JWT_H
#define MO_CODEC_JWT_H

#include "base/mem.h"
#include "codec/json/json.h"

#define MO_JWT_MAX           ((size_t)16 * 1024)
#define MO_JWT_SIGNATURE_MAX 1024 /* bytes: RSA with 8192 bits */
#define MO_JWT_LEEWAY_S      30   /* between the clocks of two machines */

enum mo_jwt_alg { MO_JWT_RS256, MO_JWT_ES256, MO_JWT_EDDSA };

struct mo_jwt {
    enum mo_jwt_alg alg;
    struct mo_span kid; /* {NULL, 0}: none */
    struct mo_span signed_part, signature;
    struct mo_json header, claims;
};

/* The algorithm of that name; false: not accepted. */
bool mo_jwt_alg(struct mo_json name, enum mo_jwt_alg *out);
/* True if the text has the form of one: three parts. Cheap. */
bool mo_jwt_looks_like(struct mo_span text);
/* MO_EPROTO: malformed; MO_EPOLICY: its algorithm is not accepted;
 * MO_ETOOBIG. */
int mo_jwt_parse(struct mo_span token, struct mo_arena *a, struct mo_jwt *out,
                 struct mo_err *e);

struct mo_jwt_want {
    const char *issuer;           /* NULL: not checked */
    const char *const *audiences; /* one of them must be among the token's */
    size_t naudiences;
    uint64_t now_s;
};

/* Checks iss, aud, exp (required), nbf and iat. MO_EPOLICY: the message says
 * which claim is wrong. *ends_s: the second after which it is not valid. */
int mo_jwt_check(const struct mo_jwt *t, const struct mo_jwt_want *want,
                 uint64_t *ends_s, struct mo_err *e);
/* True if the claim is this text, or a list of texts with it. */
bool mo_jwt_claim_has(struct mo_json claim, struct mo_span text);

#endif
