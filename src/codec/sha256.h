/* sha256.h - SHA-256 (FIPS 180-4) and HMAC-SHA256 (RFC 2104).
 *
 * Our own, because OpenSSL is loaded only when TLS is used and the sealing of
 * state (mcp/server/seal.h) must work without it. No allocation. Neither the
 * data nor the key decides a branch or a table index. */
#ifndef MO_CODEC_SHA256_H
#define MO_CODEC_SHA256_H

#include "base/str.h"

#define MO_SHA256_LEN   32
#define MO_SHA256_HEX   (2 * MO_SHA256_LEN)
#define MO_SHA256_BLOCK 64

struct mo_sha256 {
    uint32_t h[8];
    uint64_t len; /* bytes so far */
    unsigned char block[MO_SHA256_BLOCK];
};

void mo_sha256_init(struct mo_sha256 *s);
void mo_sha256_put(struct mo_sha256 *s, const void *p, size_t n);
void mo_sha256_end(struct mo_sha256 *s, unsigned char out[MO_SHA256_LEN]);
/* Of one text, in hexadecimal digits. */
void mo_sha256_hex(struct mo_span text, char out[MO_SHA256_HEX + 1]);

struct mo_hmac {
    struct mo_sha256 in, out;
};

void mo_hmac_init(struct mo_hmac *m, struct mo_span key);
void mo_hmac_put(struct mo_hmac *m, const void *p, size_t n);
void mo_hmac_end(struct mo_hmac *m, unsigned char out[MO_SHA256_LEN]);

#endif
