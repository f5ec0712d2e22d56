/* embeddings.h - a second opinion of the router: vectors of texts, computed by
 * an OpenAI-compatible server (`POST .../embeddings`).
 *
 * Off unless `gateway.embeddings.url` is set. Texts of tools are sent in
 * batches in the background. A request's text is sent when it is asked for, and
 * waited for at most `gateway.embeddings.timeoutMs`. Vectors are kept in memory
 * and in a file, by a digest of model and text, so a text is sent once.
 *
 * Trust: the server may hang, lie or send anything. Such an answer is dropped
 * as a whole; nothing is sent for EMBEDDINGS_PAUSE_MS then. The router answers
 * without a second opinion.
 *
 * Limits: EMBEDDINGS_BYTES_MAX of vectors (at the limit all are forgotten),
 * EMBEDDINGS_QUEUE_MAX texts that wait (more are left out),
 * EMBEDDINGS_TEXT_MAX bytes of a text. */
#ifndef MO_GATEWAY_ROUTER_EMBEDDINGS_H
#define MO_GATEWAY_ROUTER_EMBEDDINGS_H

#include "base/list.h"
#include "config/config.h"
#include "loop/loop.h"

#define EMBEDDINGS_BATCH      32
#define EMBEDDINGS_BATCH_MS   20000
#define EMBEDDINGS_TEXT_MAX   2048
#define EMBEDDINGS_QUEUE_MAX  16384
#define EMBEDDINGS_DIM_MAX    4096
#define EMBEDDINGS_ANSWER_MAX ((uint64_t)8 * 1024 * 1024)
#define EMBEDDINGS_BYTES_MAX  ((size_t)32 * 1024 * 1024)
#define EMBEDDINGS_PAUSE_MS   30000
#define EMBEDDINGS_SAVE_MS    2000

struct embeddings;

struct embedding {
    uint16_t dim;
    int8_t v[];
};

/* path: the file; NULL: in memory only. *out NULL and 0: not configured. */
int mo_embeddings_new(struct mo_loop *l, const struct mo_config *cfg,
                      const char *path, struct embeddings **out,
                      struct mo_err *e);
/* Ends every wait first; `gone` fires once, later. */
void mo_embeddings_close(struct embeddings *m, void (*gone)(void *ctx),
                         void *ctx);

/* The vector of a text, or NULL. Borrowed until the next turn of the loop. */
const struct embedding *mo_embeddings_get(struct embeddings *m,
                                          struct mo_span text);
/* Cosine; below -1 if they cannot be compared. */
float mo_embedding_near(const struct embedding *a, const struct embedding *b);
/* Have the vector of this text some time. */
void mo_embeddings_want(struct embeddings *m, struct mo_span text);

/* A wait for the vector of a request, in the caller's storage. */
struct embeddings_wait {
    struct mo_list node;
    void (*done)(struct embeddings_wait *w); /* it may be known now, or not */
};

/* True: done() is called once, later. False: it is known, or will not be: do
 * not wait. */
bool mo_embeddings_ask(struct embeddings *m, struct mo_span text,
                       struct embeddings_wait *w);
void mo_embeddings_leave(struct embeddings_wait *w); /* done() is not called */

struct embeddings_stats {
    uint64_t requests, failures, late; /* HTTP; late: of them, too slow */
    uint64_t known;                    /* questions answered from memory */
    size_t vectors, bytes;
};
struct embeddings_stats mo_embeddings_stats(const struct embeddings *m);

#endif
