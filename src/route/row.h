/* row.h - arithmetic on one number per tool, for all tools at once.
 *
 * Four numbers at a time, with the vector types that both compilers have for
 * every processor. The results are bit-identical to the scalar loop. Rows may
 * be unaligned and of any length. No number of a row is NaN. */
#ifndef MO_ROUTE_ROW_H
#define MO_ROUTE_ROW_H

#include <stddef.h>
#include <stdint.h>

/* The maximum, at least 0. */
float mo_row_most(const float *v, size_t n);

#define MO_ROW_BONUSES 3

/* The parts of a score. */
struct mo_row_parts {
    float most;  /* words are divided by it unless it is 0 */
    float scale; /* scores are divided by it */
    struct {
        uint32_t kinds;
        float bonus; /* added if a tool's kinds share a bit with these */
    } v[MO_ROW_BONUSES];
};

/* words /= most; scores = words + scores / scale (+ each bonus). */
void mo_row_join(const struct mo_row_parts *p, float *words,
                 const uint32_t *kinds, float *scores, size_t n);

/* The three greatest, greatest first; -INFINITY if there are fewer. */
#define MO_ROW_BEST 3
void mo_row_best(const float *v, size_t n, float best[MO_ROW_BEST]);

/* Indexes of the `max` best numbers that are at least `floor`, best first; the
 * lower index first among equals. Returns how many. */
size_t mo_row_pick(const float *v, size_t n, size_t max, float floor,
                   uint32_t *out);

#endif
