/* vector8.h - vectors with one byte a number, and how near many are to one.
 *
 * Sums are of whole numbers, so that every processor's own way of making them
 * gives the same: those that multiply many pairs at once are asked to, the
 * others go one by one. */
#ifndef MO_ROUTE_VECTOR8_H
#define MO_ROUTE_VECTOR8_H

#include <stddef.h>
#include <stdint.h>

#define MO_VECTOR_DIM 128

/* The length is `scale` times that of the bytes. */
struct mo_vector8 {
    int8_t q[MO_VECTOR_DIM];
    float scale;
};

void mo_vector_pack(const float v[MO_VECTOR_DIM], struct mo_vector8 *out);
float mo_vector_dot(const struct mo_vector8 *a, const struct mo_vector8 *b);
/* The same with each of n: a whole catalogue. */
void mo_vector_dots(const struct mo_vector8 *a, const struct mo_vector8 *v,
                    size_t n, float *out);

#endif
