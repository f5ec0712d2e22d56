/* vector8.h - vectors of 8-bit integers, and the dot product of one with many.
 *
 * Sums are integer sums, so every processor gives the same result. Processors
 * with dot-product instructions use them, others a plain loop. */
#ifndef MO_ROUTE_VECTOR8_H
#define MO_ROUTE_VECTOR8_H

#include <stddef.h>
#include <stdint.h>

#define MO_VECTOR_DIM 128

/* The vector is `scale` times v. */
struct mo_vector8 {
    int8_t q[MO_VECTOR_DIM];
    float scale;
};

void mo_vector_pack(const float v[MO_VECTOR_DIM], struct mo_vector8 *out);
float mo_vector_dot(const struct mo_vector8 *a, const struct mo_vector8 *b);
/* The dot product with each of n vectors. */
void mo_vector_dots(const struct mo_vector8 *a, const struct mo_vector8 *v,
                    size_t n, float *out);

#endif
