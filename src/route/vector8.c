#include "route/vector8.h"

#include <math.h>
#include <stdbool.h>
#if defined(__aarch64__) && !defined(__clang__)
#    include <arm_neon.h>
#    include <sys/auxv.h>
#elif defined(__x86_64__)
#    include <immintrin.h>
#endif

void mo_vector_pack(const float v[MO_VECTOR_DIM], struct mo_vector8 *out)
{
    float most = 0, up;

    for (size_t i = 0; i < MO_VECTOR_DIM; i++)
        most = fabsf(v[i]) > most ? fabsf(v[i]) : most;
    up = most > 0 ? 127.0f / most : 0;
    for (size_t i = 0; i < MO_VECTOR_DIM; i++)
        out->q[i] = (int8_t)lrintf(v[i] * up);
    out->scale = most / 127.0f;
}

static int32_t sum_products(const int8_t *a, const int8_t *b)
{
    int32_t s = 0;

    for (size_t i = 0; i < MO_VECTOR_DIM; i++)
        s += (int32_t)a[i] * b[i];
    return s;
}

float mo_vector_dot(const struct mo_vector8 *a, const struct mo_vector8 *b)
{
    return (float)sum_products(a->q, b->q) * a->scale * b->scale;
}

/* --- one with many ------------------------------------------------------- */

/* has_dotprod(): the processor has the instructions that dots_cpu() uses. */
#if defined(__aarch64__) && !defined(__clang__)

/* clang 14 offers this to whole files only; its builds are not shipped. */
#    define DOTPROD __attribute__((target("arch=armv8.2-a+dotprod")))
#    define STEPS   (MO_VECTOR_DIM / 16)

static bool has_dotprod(void)
{
    return (getauxval(AT_HWCAP) & HWCAP_ASIMDDP) != 0;
}

/* Four parts of the sum. */
DOTPROD static inline int32x4_t parts(const int8x16_t *a, const int8_t *b)
{
    int32x4_t even = vdupq_n_s32(0), odd = even;

#    pragma GCC unroll 8
    for (size_t i = 0; i < STEPS; i += 2) {
        even = vdotq_s32(even, a[i], vld1q_s8(b + 16 * i));
        odd = vdotq_s32(odd, a[i + 1], vld1q_s8(b + 16 * i + 16));
    }
    return vaddq_s32(even, odd);
}

/* Four vectors at once, then the rest. */
DOTPROD static void dots_cpu(const struct mo_vector8 *a,
                             const struct mo_vector8 *v, size_t n, float *out)
{
    int8x16_t q[STEPS];
    size_t i = 0;

#    pragma GCC unroll 8
    for (size_t k = 0; k < STEPS; k++)
        q[k] = vld1q_s8(a->q + 16 * k);
    for (; i + 4 <= n; i += 4) {
        int32x4_t lo = vpaddq_s32(parts(q, v[i].q), parts(q, v[i + 1].q));
        int32x4_t hi = vpaddq_s32(parts(q, v[i + 2].q), parts(q, v[i + 3].q));
        float32x4_t scale = {v[i].scale, v[i + 1].scale, v[i + 2].scale,
                             v[i + 3].scale};
        float32x4_t s = vcvtq_f32_s32(vpaddq_s32(lo, hi));

        vst1q_f32(out + i, vmulq_f32(vmulq_n_f32(s, a->scale), scale));
    }
    for (; i < n; i++)
        out[i] = (float)vaddvq_s32(parts(q, v[i].q)) * a->scale * v[i].scale;
}

#elif defined(__x86_64__)

static bool has_dotprod(void)
{
    return __builtin_cpu_supports("avx2");
}

__attribute__((target("avx2"))) static inline __m256i wide(const int8_t *p)
{
    return _mm256_cvtepi8_epi16(_mm_loadu_si128((const __m128i *)p));
}

__attribute__((target("avx2"))) static int32_t sum_cpu(const int8_t *a,
                                                       const int8_t *b)
{
    __m256i s = _mm256_setzero_si256();
    __m128i half;

    for (size_t i = 0; i < MO_VECTOR_DIM; i += 16)
        s = _mm256_add_epi32(s, _mm256_madd_epi16(wide(a + i), wide(b + i)));
    half = _mm_add_epi32(_mm256_castsi256_si128(s),
                         _mm256_extracti128_si256(s, 1));
    half = _mm_add_epi32(half, _mm_shuffle_epi32(half, 0x4E));
    half = _mm_add_epi32(half, _mm_shuffle_epi32(half, 0xB1));
    return _mm_cvtsi128_si32(half);
}

__attribute__((target("avx2"))) static void dots_cpu(const struct mo_vector8 *a,
                                                     const struct mo_vector8 *v,
                                                     size_t n, float *out)
{
    for (size_t i = 0; i < n; i++)
        out[i] = (float)sum_cpu(a->q, v[i].q) * a->scale * v[i].scale;
}

#else
#    define NO_DOTPROD
#endif

void mo_vector_dots(const struct mo_vector8 *a, const struct mo_vector8 *v,
                    size_t n, float *out)
{
#ifndef NO_DOTPROD
    if (has_dotprod()) {
        dots_cpu(a, v, n, out);
        return;
    }
#endif
    for (size_t i = 0; i < n; i++)
        out[i] = mo_vector_dot(a, &v[i]);
}
