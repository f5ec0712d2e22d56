/* dpop.h - proofs that we hold the key to which a token is bound (RFC 9449).
 *
 * A proof is a signed text for one request: its method, its address without
 * query and fragment, the time, a random id, the hash of the access token if
 * one is sent with it, and the nonce that the server gave. A token that is
 * stolen without the key cannot be used.
 *
 * We bind tokens only if the issuer accepts our algorithm (MO_DPOP_ALG) and
 * the MCP server says that it knows proofs. A server that knows only Bearer
 * would refuse the tokens.
 *
 * Ownership: struct mo_dpop is its owner's, all zero at first. */
#ifndef MO_MCP_OAUTH_DPOP_H
#define MO_MCP_OAUTH_DPOP_H

#include "loop/jws.h"

#define MO_DPOP_ALG       "ES256"
#define MO_DPOP_NONCE_MAX 512 /* a longer one is ignored */
#define MO_DPOP_PROOF_MAX ((size_t)16 * 1024)
#define MO_DPOP_JKT       43 /* characters of a thumbprint */

struct mo_dpop {
    struct mo_jws_key *key; /* NULL: tokens are not bound */
    char nonce[MO_DPOP_NONCE_MAX + 1];
};

void mo_dpop_fini(struct mo_dpop *d);
/* Makes a key, or reads one (PEM). pem NULL: no key. A key that is in use
 * already stays. */
int mo_dpop_make(struct mo_dpop *d, struct mo_err *e);
int mo_dpop_read(struct mo_dpop *d, const char *pem, struct mo_err *e);
/* The server's nonce for the next proof; ignored if it is malformed. */
void mo_dpop_nonce(struct mo_dpop *d, struct mo_span nonce);

struct mo_dpop_request {
    const char *method, *url;
    struct mo_span access; /* the token that is sent with it; or empty */
};

/* Appends the value of the header DPoP. */
int mo_dpop_proof(const struct mo_dpop *d, const struct mo_dpop_request *r,
                  struct mo_buf *out, struct mo_err *e);
/* SHA-256 in base64url: of thumbprints, `ath` and PKCE. */
void mo_dpop_digest(struct mo_span text, char out[MO_DPOP_JKT + 1]);
/* The thumbprint of the key: `dpop_jkt`. */
void mo_dpop_thumbprint(const struct mo_dpop *d, char out[MO_DPOP_JKT + 1]);

#endif
