#include "codec/sha256.h"

#include "codec/sha256_mix.h"

const uint32_t mo_sha256_k[64] = {
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1,
    0x923f82a4, 0xab1c5ed5, 0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3,
    0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174, 0xe49b69c1, 0xefbe4786,
    0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
    0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147,
    0x06ca6351, 0x14292967, 0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13,
    0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85, 0xa2bfe8a1, 0xa81a664b,
    0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
    0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a,
    0x5b9cca4f, 0x682e6ff3, 0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208,
    0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2,
};

static uint32_t ror(uint32_t v, unsigned n)
{
    return v >> n | v << (32 - n);
}

static uint32_t load(const unsigned char *p)
{
    return (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 |
           p[3];
}

static void schedule(uint32_t w[64], const unsigned char *p)
{
    for (unsigned i = 0; i < 16; i++)
        w[i] = load(p + 4 * (size_t)i);
    for (unsigned i = 16; i < 64; i++) {
        uint32_t a = w[i - 15], b = w[i - 2];

        w[i] = w[i - 16] + (ror(a, 7) ^ ror(a, 18) ^ a >> 3) + w[i - 7] +
               (ror(b, 17) ^ ror(b, 19) ^ b >> 10);
    }
}

/* Round i, 0 to 7: the positions rotate instead of the eight values. */
static inline void turn(uint32_t v[8], unsigned i, uint32_t kw)
{
    uint32_t a = v[(8 - i) & 7], b = v[(9 - i) & 7], c = v[(10 - i) & 7];
    uint32_t e = v[(12 - i) & 7], f = v[(13 - i) & 7], g = v[(14 - i) & 7];
    uint32_t *d = &v[(11 - i) & 7], *h = &v[(15 - i) & 7];

    *h += (ror(e, 6) ^ ror(e, 11) ^ ror(e, 25)) + ((e & f) ^ (~e & g)) + kw;
    *d += *h;
    *h += (ror(a, 2) ^ ror(a, 13) ^ ror(a, 22)) + ((a & b) ^ (a & c) ^ (b & c));
}

static void mix_block(uint32_t h[8], const unsigned char *p)
{
    const uint32_t *k = mo_sha256_k;
    uint32_t w[64], v[8];

    schedule(w, p);
    memcpy(v, h, sizeof(v));
    for (const uint32_t *x = w; x < w + 64; x += 8, k += 8) {
#pragma GCC unroll 8 /* so that the positions are constants */
        for (unsigned i = 0; i < 8; i++)
            turn(v, i, k[i] + x[i]);
    }
    for (unsigned i = 0; i < 8; i++)
        h[i] += v[i];
}

void mo_sha256_mix_plain(uint32_t h[8], const unsigned char *p, size_t n)
{
    for (; n; n--, p += MO_SHA256_BLOCK)
        mix_block(h, p);
}

static void mix(uint32_t h[8], const unsigned char *p, size_t n)
{
    if (mo_sha256_can())
        mo_sha256_mix_cpu(h, p, n);
    else
        mo_sha256_mix_plain(h, p, n);
}

void mo_sha256_init(struct mo_sha256 *s)
{
    static const uint32_t first[8] = {
        0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
        0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19,
    };

    memcpy(s->h, first, sizeof(first));
    s->len = 0;
}

/* Fill the block and mix it in when full. Returns the bytes taken. */
static size_t fill(struct mo_sha256 *s, const unsigned char *p, size_t n)
{
    size_t at = s->len % MO_SHA256_BLOCK, take = MO_SHA256_BLOCK - at;

    if (take > n)
        take = n;
    memcpy(s->block + at, p, take);
    s->len += take;
    if (at + take == MO_SHA256_BLOCK)
        mix(s->h, s->block, 1);
    return take;
}

void mo_sha256_put(struct mo_sha256 *s, const void *p, size_t n)
{
    const unsigned char *in = p;
    size_t took, whole;

    if (!n)
        return;
    took = s->len % MO_SHA256_BLOCK ? fill(s, in, n) : 0;
    whole = (n - took) / MO_SHA256_BLOCK;
    if (whole)
        mix(s->h, in + took, whole);
    s->len += whole * MO_SHA256_BLOCK;
    took += whole * MO_SHA256_BLOCK;
    if (took < n)
        (void)fill(s, in + took, n - took);
}

void mo_sha256_end(struct mo_sha256 *s, unsigned char out[MO_SHA256_LEN])
{
    unsigned char tail[2 * MO_SHA256_BLOCK] = {0};
    size_t at = s->len % MO_SHA256_BLOCK;
    size_t n = at + 9 > MO_SHA256_BLOCK ? 2 : 1;
    uint64_t bits = s->len * 8;

    memcpy(tail, s->block, at);
    tail[at] = 0x80;
    for (unsigned i = 0; i < 8; i++)
        tail[n * MO_SHA256_BLOCK - 8 + i] =
            (unsigned char)(bits >> (56 - 8 * i));
    mix(s->h, tail, n);
    for (unsigned i = 0; i < MO_SHA256_LEN; i++)
        out[i] = (unsigned char)(s->h[i / 4] >> (24 - 8 * (i % 4)));
}

void mo_sha256_hex(struct mo_span text, char out[MO_SHA256_HEX + 1])
{
    unsigned char sum[MO_SHA256_LEN];
    struct mo_sha256 s;

    mo_sha256_init(&s);
    mo_sha256_put(&s, text.p, text.n);
    mo_sha256_end(&s, sum);
    mo_hex(sum, sizeof(sum), out);
}

void mo_hmac_init(struct mo_hmac *m, struct mo_span key)
{
    unsigned char pad[MO_SHA256_BLOCK] = {0};

    if (key.n > sizeof(pad)) {
        mo_sha256_init(&m->in);
        mo_sha256_put(&m->in, key.p, key.n);
        mo_sha256_end(&m->in, pad);
    } else if (key.n) {
        memcpy(pad, key.p, key.n);
    }
    for (size_t i = 0; i < sizeof(pad); i++)
        pad[i] ^= 0x36;
    mo_sha256_init(&m->in);
    mo_sha256_put(&m->in, pad, sizeof(pad));
    for (size_t i = 0; i < sizeof(pad); i++)
        pad[i] ^= 0x36 ^ 0x5c;
    mo_sha256_init(&m->out);
    mo_sha256_put(&m->out, pad, sizeof(pad));
}

void mo_hmac_put(struct mo_hmac *m, const void *p, size_t n)
{
    mo_sha256_put(&m->in, p, n);
}

void mo_hmac_end(struct mo_hmac *m, unsigned char out[MO_SHA256_LEN])
{
    unsigned char inner[MO_SHA256_LEN];

    mo_sha256_end(&m->in, inner);
    mo_sha256_put(&m->out, inner, sizeof(inner));
    mo_sha256_end(&m->out, out);
}
