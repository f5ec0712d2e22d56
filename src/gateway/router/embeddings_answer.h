/* embeddings_answer.h - read the answer of an embeddings server. Pure.
 *
 * {"data": [{"index": 0, "embedding": [0.1, ...]}, ...]}. Every text must have
 * exactly one vector, all of the same length, of finite numbers, not all 0. */
#ifndef MO_GATEWAY_ROUTER_EMBEDDINGS_ANSWER_H
#define MO_GATEWAY_ROUTER_EMBEDDINGS_ANSWER_H

#include "gateway/router/embeddings.h"

/* n: texts that were sent. dim: length of the vectors, 0: any; set on success.
 * out[n]: freed by the caller. MO_EPROTO, MO_ENOMEM: out is unchanged. */
int mo_embeddings_answer(struct mo_span body, size_t n, size_t *dim,
                         struct embedding **out, struct mo_err *e);

#endif
