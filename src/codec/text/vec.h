/* vec.h - vector operations on bytes, for three kinds of machines.
 *
 * The codecs search plain text for the next byte of interest: a quote, a
 * control character, the first non-ASCII byte. These are the few operations
 * that this needs: NEON, SSE2, and eight
 * bytes in a plain word. All codecs use these names, so all
 * machines run the same algorithm; MO_VEC_PLAIN forces the word version, so
 * that a test can compare it with the real one.
 *
 * Nothing here reads outside [p, end), and nothing knows any format. */
#ifndef MO_CODEC_TEXT_VEC_H
#define MO_CODEC_TEXT_VEC_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* --- eight bytes in a word, on every machine ----------------------------- */

#define MO_WORD_ONES ((uint64_t)0x0101010101010101)
#define MO_WORD_TOPS (MO_WORD_ONES << 7)

/* The first byte in memory is the lowest in the word. */
static inline uint64_t mo_word_load(const char *p)
{
    uint64_t w;

    memcpy(&w, p, sizeof(w));
#if __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
    w = __builtin_bswap64(w);
#endif
    return w;
}

static inline uint64_t mo_word_splat(uint8_t c)
{
    return MO_WORD_ONES * c;
}

/* --- vectors ------------------------------------------------------------- */

#if !defined(MO_VEC_PLAIN) && (defined(__aarch64__) || defined(__SSE2__))

#    define MO_VEC_WIDTH 16

/* The vectors of the compilers; a comparison gives 0 or all ones. */
typedef uint8_t mo_vec __attribute__((vector_size(16)));
typedef int8_t mo_vec_signed __attribute__((vector_size(16)));

static inline mo_vec mo_vec_load(const char *p)
{
    mo_vec v;

    memcpy(&v, p, sizeof(v));
    return v;
}

static inline mo_vec mo_vec_splat(uint8_t c)
{
    return (mo_vec){c, c, c, c, c, c, c, c, c, c, c, c, c, c, c, c};
}

static inline mo_vec mo_vec_eq(mo_vec v, uint8_t c)
{
    return (mo_vec)(v == mo_vec_splat(c));
}

/* Bytes below c; c <= 0x80. */
static inline mo_vec mo_vec_below(mo_vec v, uint8_t c)
{
    return (mo_vec)(v < mo_vec_splat(c));
}

static inline mo_vec mo_vec_high(mo_vec v) /* bytes >= 0x80 */
{
    return (mo_vec)((mo_vec_signed)v < (mo_vec_signed){0});
}

/* Bytes below 0x20 or from 0x80 on: as signed numbers, one comparison. */
static inline mo_vec mo_vec_odd(mo_vec v)
{
    return (mo_vec)((mo_vec_signed)v < (mo_vec_signed)mo_vec_splat(0x20));
}

static inline mo_vec mo_vec_or(mo_vec a, mo_vec b)
{
    return a | b;
}

#    ifdef __aarch64__

#        include <arm_neon.h>

#        define MO_VEC_NAME "neon"
#        define MO_VEC_LANE 4 /* bits a byte has in mo_vec_mask() */

/* The lowest set bit, divided by MO_VEC_LANE, is the first byte found. */
static inline uint64_t mo_vec_mask(mo_vec m)
{
    uint8x8_t half = vshrn_n_u16((uint16x8_t)m, 4);

    return vget_lane_u64(vreinterpret_u64_u8(half), 0);
}

/* One bit a byte for the 64 bytes of four comparisons. */
static inline uint64_t mo_vec_bits64(const mo_vec m[4])
{
    static const mo_vec weight = {1, 2, 4, 8, 16, 32, 64, 128,
                                  1, 2, 4, 8, 16, 32, 64, 128};
    uint8x16_t a = vpaddq_u8(m[0] & weight, m[1] & weight);
    uint8x16_t b = vpaddq_u8(m[2] & weight, m[3] & weight);

    a = vpaddq_u8(a, b);
    a = vpaddq_u8(a, a);
    return vgetq_lane_u64(vreinterpretq_u64_u8(a), 0);
}

#    else

#        include <emmintrin.h>

#        define MO_VEC_NAME "sse2"
#        define MO_VEC_LANE 1

static inline uint64_t mo_vec_mask(mo_vec m)
{
    return (uint64_t)(unsigned)_mm_movemask_epi8((__m128i)m);
}

static inline uint64_t mo_vec_bits64(const mo_vec m[4])
{
    return mo_vec_mask(m[0]) | mo_vec_mask(m[1]) << 16 |
           mo_vec_mask(m[2]) << 32 | mo_vec_mask(m[3]) << 48;
}

#    endif

#else

#    define MO_VEC_NAME  "plain"
#    define MO_VEC_WIDTH 8
#    define MO_VEC_LANE  8

typedef uint64_t mo_vec;

static inline mo_vec mo_vec_load(const char *p)
{
    return mo_word_load(p);
}

static inline mo_vec mo_vec_splat(uint8_t c)
{
    return mo_word_splat(c);
}

/* A comparison answers with the top bit of each byte. No carry crosses a
 * byte, so every one of them is exact, not only the first. */
static inline mo_vec mo_vec_eq(mo_vec v, uint8_t c)
{
    uint64_t x = v ^ mo_vec_splat(c);
    uint64_t low = (x & ~MO_WORD_TOPS) + ~MO_WORD_TOPS;

    return ~(low | x) & MO_WORD_TOPS;
}

static inline mo_vec mo_vec_below(mo_vec v, uint8_t c)
{
    uint64_t low = (v & ~MO_WORD_TOPS) + mo_vec_splat((uint8_t)(0x80 - c));

    return ~(low | v) & MO_WORD_TOPS;
}

static inline mo_vec mo_vec_high(mo_vec v)
{
    return v & MO_WORD_TOPS;
}

static inline mo_vec mo_vec_odd(mo_vec v)
{
    return mo_vec_below(v, 0x20) | mo_vec_high(v);
}

static inline mo_vec mo_vec_or(mo_vec a, mo_vec b)
{
    return a | b;
}

static inline uint64_t mo_vec_mask(mo_vec m)
{
    return m;
}

static inline uint64_t mo_vec_bits64(const mo_vec m[8])
{
    uint64_t out = 0;

    for (int i = 0; i < 8; i++)
        out |= ((m[i] >> 7) * (uint64_t)0x0102040810204080 >> 56) << (8 * i);
    return out;
}

#endif

#define MO_VEC_BLOCK  64 /* bytes a mo_vec_bits64() covers */
#define MO_VEC_BLOCKS (MO_VEC_BLOCK / MO_VEC_WIDTH)

/* Which byte of a vector the lowest bit of a mask means. */
static inline size_t mo_vec_first(uint64_t mask)
{
    return (size_t)__builtin_ctzll(mask) / MO_VEC_LANE;
}

#endif
