/* sha256_mix.c - SHA-256 with the processor's instructions; see sha256_mix.h.
 *
 * clang 14 offers them only to files compiled for such processors alone, so its
 * builds (which are not shipped) do not use them. */
#include "codec/sha256_mix.h"

#if defined(__aarch64__) && !defined(__clang__)

#    include <arm_neon.h>
#    include <sys/auxv.h>

#    define CRYPTO __attribute__((target("+crypto")))

struct words { /* message words, sixteen at a time */
    uint32x4_t a, b, c, d;
};

struct sums {
    uint32x4_t lo, hi;
};

bool mo_sha256_can(void)
{
    return (getauxval(AT_HWCAP) & HWCAP_SHA2) != 0;
}

CRYPTO static inline uint32x4_t load(const unsigned char *p)
{
    return vreinterpretq_u32_u8(vrev32q_u8(vld1q_u8(p)));
}

/* Four rounds with the four words w. */
CRYPTO static inline void rounds(struct sums *s, uint32x4_t w,
                                 const uint32_t *k)
{
    uint32x4_t t = vaddq_u32(w, vld1q_u32(k)), lo = s->lo;

    s->lo = vsha256hq_u32(lo, s->hi, t);
    s->hi = vsha256h2q_u32(s->hi, lo, t);
}

/* The four message words that follow sixteen after a. */
CRYPTO static inline uint32x4_t next_words(uint32x4_t a, uint32x4_t b,
                                           uint32x4_t c, uint32x4_t d)
{
    return vsha256su1q_u32(vsha256su0q_u32(a, b), c, d);
}

CRYPTO static inline void block(struct sums *s, struct words w)
{
    const uint32_t *k = mo_sha256_k;

    for (unsigned i = 0; i < 3; i++, k += 16) {
        rounds(s, w.a, k);
        w.a = next_words(w.a, w.b, w.c, w.d);
        rounds(s, w.b, k + 4);
        w.b = next_words(w.b, w.c, w.d, w.a);
        rounds(s, w.c, k + 8);
        w.c = next_words(w.c, w.d, w.a, w.b);
        rounds(s, w.d, k + 12);
        w.d = next_words(w.d, w.a, w.b, w.c);
    }
    rounds(s, w.a, k);
    rounds(s, w.b, k + 4);
    rounds(s, w.c, k + 8);
    rounds(s, w.d, k + 12);
}

CRYPTO void mo_sha256_mix_cpu(uint32_t h[8], const unsigned char *p, size_t n)
{
    struct sums s = {vld1q_u32(h), vld1q_u32(h + 4)};

    for (; n; n--, p += MO_SHA256_BLOCK) {
        struct words w = {load(p), load(p + 16), load(p + 32), load(p + 48)};
        struct sums was = s;

        block(&s, w);
        s.lo = vaddq_u32(s.lo, was.lo);
        s.hi = vaddq_u32(s.hi, was.hi);
    }
    vst1q_u32(h, s.lo);
    vst1q_u32(h + 4, s.hi);
}

#else

bool mo_sha256_can(void)
{
    return false;
}

void mo_sha256_mix_cpu(uint32_t h[8], const unsigned char *p, size_t n)
{
    mo_sha256_mix_plain(h, p, n);
}

#endif
