/* vector.h - the meaning of a text as a unit vector.
 *
 * A table has one vector for each word piece. The vector of a text is the mean
 * of its pieces' vectors, normalised to length 1. The similarity of two texts
 * is the cosine of their vectors. There is no neural network to run: a request
 * takes microseconds.
 *
 * The table and its list of pieces are embedded files (origin: docs/router.md).
 * Both are borrowed for the lifetime of the struct; mo_vectors_new() checks
 * them once. Table layout, little endian: "MSV1", rows, 128 (u32), rows x float
 * scale, rows x int8[128]. */
#ifndef MO_ROUTE_VECTOR_H
#define MO_ROUTE_VECTOR_H

#include "base/str.h"
#include "route/vector8.h"

struct mo_vectors;

struct mo_vectors *mo_vectors_new(struct mo_span table, struct mo_span pieces,
                                  struct mo_err *e);
void mo_vectors_free(struct mo_vectors *v); /* NULL is fine */

/* Accumulates the pieces of a text, part by part. */
struct mo_vector_sum {
    float v[MO_VECTOR_DIM];
    unsigned n; /* pieces */
};

void mo_vector_add(const struct mo_vectors *v, struct mo_span text,
                   struct mo_vector_sum *sum);
/* Normalise to length 1; all zero if there were no pieces. */
void mo_vector_norm(struct mo_vector_sum *sum);

#endif
