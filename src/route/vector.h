/* vector.h - what a text is about, as a direction in space.
 *
 * A table has one vector for each word piece; a text's vector is the mean of
 * its pieces', made as long as one. Two texts are as alike as the cosine of
 * their vectors. No network, no transformer: some microseconds a request.
 *
 * The table and its list of pieces are files of the program (where they come
 * from: docs/router.md). Both are borrowed for as long as the struct lives;
 * mo_vectors_new() checks them once. Layout of the table, little endian:
 * "MSV1", rows, 128 (u32), rows x float scale, rows x int8[128]. */
#ifndef MO_ROUTE_VECTOR_H
#define MO_ROUTE_VECTOR_H

#include "base/str.h"
#include "route/vector8.h"

struct mo_vectors;

struct mo_vectors *mo_vectors_new(struct mo_span table, struct mo_span pieces,
                                  struct mo_err *e);
void mo_vectors_free(struct mo_vectors *v); /* NULL is fine */

/* The mean of a text's pieces is gathered part by part. */
struct mo_vector_sum {
    float v[MO_VECTOR_DIM];
    unsigned n; /* pieces */
};

void mo_vector_add(const struct mo_vectors *v, struct mo_span text,
                   struct mo_vector_sum *sum);
/* As long as one; all zero when there was nothing. */
void mo_vector_norm(struct mo_vector_sum *sum);

#endif
