/* row.h - a number for each tool, in a row: what every request does to all.
 *
 * Four at a time, in the vectors that both compilers have for every processor;
 * to the last bit what one after the other gives. Rows may lie anywhere and be
 * of any length. No number of a row is NaN. */
#ifndef MO_ROUTE_ROW_H
#define MO_ROUTE_ROW_H

#include <stddef.h>
#include <stdint.h>

/* The greatest number, at least 0. */
float mo_row_most(const float *v, size_t n);

/* What a score is made of. */
struct mo_row_parts {
    float most;  /* words are divided by it, if it is not 0 */
    float scale; /* scores are divided by it */
    uint32_t kind;
    float bonus; /* for those that share a bit of kind */
};

/* words /= most; scores = words + scores / scale (+ bonus). */
void mo_row_join(const struct mo_row_parts *p, float *words,
                 const uint32_t *kinds, float *scores, size_t n);

/* The greatest three, greatest first; -INFINITY for those that are not there.
 */
#define MO_ROW_BEST 3
void mo_row_best(const float *v, size_t n, float best[MO_ROW_BEST]);

/* Numbers of the `max` best that are at least `floor`, best first; of equals
 * the first. How many. */
size_t mo_row_pick(const float *v, size_t n, size_t max, float floor,
                   uint32_t *out);

#endif
