/* sodium.c - calls of libsodium; see sodium.h. */
#include "secrets/sodium.h"

#include "base/mem.h"

_Static_assert(MO_SODIUM_KEY == crypto_aead_xchacha20poly1305_ietf_KEYBYTES,
               "size in libsodium");
_Static_assert(MO_SODIUM_NONCE == crypto_aead_xchacha20poly1305_ietf_NPUBBYTES,
               "size in libsodium");
_Static_assert(MO_SODIUM_TAG == crypto_aead_xchacha20poly1305_ietf_ABYTES,
               "size in libsodium");
_Static_assert(MO_SODIUM_MAC == crypto_generichash_BYTES, "size in libsodium");

static const unsigned char *span_bytes(struct mo_span s)
{
    return (const unsigned char *)(s.p ? s.p : "");
}

int mo_sodium_load(struct mo_sodium *f, struct mo_err *e)
{
#define ROW(fn) MO_DSO_SYM(struct mo_sodium, fn),
    static const struct mo_dso_sym syms[] = {MO_SODIUM_FUNCTIONS(ROW)};
#undef ROW
    int rc = mo_dso_load("libsodium.so.23", "libsodium23", syms, MO_COUNT(syms),
                         f, e);

    if (rc == 0 && f->sodium_init() < 0)
        rc = mo_fail(e, MO_EUNAVAIL, "libsodium cannot be initialised");
    return rc;
}

void mo_sodium_mac(const struct mo_sodium *f,
                   const unsigned char key[MO_SODIUM_KEY], struct mo_span text,
                   unsigned char out[MO_SODIUM_MAC])
{
    int rc = f->crypto_generichash(out, MO_SODIUM_MAC, span_bytes(text), text.n,
                                   key, MO_SODIUM_KEY);

    MO_BUG_ON(rc != 0); /* it fails only on bad lengths */
}

void mo_sodium_seal(const struct mo_sodium *f,
                    const unsigned char key[MO_SODIUM_KEY],
                    const unsigned char nonce[MO_SODIUM_NONCE],
                    struct mo_span bound, struct mo_span plain, char *out)
{
    int rc = f->crypto_aead_xchacha20poly1305_ietf_encrypt(
        (unsigned char *)out, NULL, span_bytes(plain), plain.n,
        span_bytes(bound), bound.n, NULL, nonce, key);

    MO_BUG_ON(rc != 0);
}

bool mo_sodium_open(const struct mo_sodium *f,
                    const unsigned char key[MO_SODIUM_KEY],
                    const unsigned char nonce[MO_SODIUM_NONCE],
                    struct mo_span bound, struct mo_span sealed, char *out)
{
    return sealed.n >= MO_SODIUM_TAG &&
           f->crypto_aead_xchacha20poly1305_ietf_decrypt(
               (unsigned char *)out, NULL, NULL, span_bytes(sealed), sealed.n,
               span_bytes(bound), bound.n, nonce, key) == 0;
}
