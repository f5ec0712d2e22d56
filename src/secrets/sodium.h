/* sodium.h - the four functions of libsodium that secrets need.
 *
 * The library is loaded on the first use of a secret (loop/dso.h): linking it
 * would slow down every start, and most runs use no secret. Only this room
 * includes <sodium.h>. Keys and nonces have fixed sizes, so that callers cannot
 * mix up lengths.
 *
 * Ownership: nothing is allocated or stored. */
#ifndef MO_SECRETS_SODIUM_H
#define MO_SECRETS_SODIUM_H

#include <sodium.h>

#include "base/str.h"
#include "loop/dso.h"

#define MO_SODIUM_KEY   32
#define MO_SODIUM_NONCE 24
#define MO_SODIUM_TAG   16
#define MO_SODIUM_MAC   32

/* clang-format off */
#define MO_SODIUM_FUNCTIONS(X)                                                 \
    X(sodium_init) X(crypto_generichash)                                       \
    X(crypto_aead_xchacha20poly1305_ietf_encrypt)                              \
    X(crypto_aead_xchacha20poly1305_ietf_decrypt)
/* clang-format on */

struct mo_sodium {
    MO_SODIUM_FUNCTIONS(MO_DSO_MEMBER)
};

/* MO_EUNAVAIL: the library is not installed; the message names the package. */
int mo_sodium_load(struct mo_sodium *f, struct mo_err *e);

/* Keyed BLAKE2b. */
void mo_sodium_mac(const struct mo_sodium *f,
                   const unsigned char key[MO_SODIUM_KEY], struct mo_span text,
                   unsigned char out[MO_SODIUM_MAC]);

/* XChaCha20-Poly1305. out holds plain.n + MO_SODIUM_TAG bytes. */
void mo_sodium_seal(const struct mo_sodium *f,
                    const unsigned char key[MO_SODIUM_KEY],
                    const unsigned char nonce[MO_SODIUM_NONCE],
                    struct mo_span bound, struct mo_span plain, char *out);

/* out holds sealed.n - MO_SODIUM_TAG bytes. False: the bytes, the key or
 * `bound` are not those of mo_sodium_seal(); out is undefined. */
bool mo_sodium_open(const struct mo_sodium *f,
                    const unsigned char key[MO_SODIUM_KEY],
                    const unsigned char nonce[MO_SODIUM_NONCE],
                    struct mo_span bound, struct mo_span sealed, char *out);

#endif
