/* resp.h - RESP 2, the protocol of Redis: requests written, replies read.
 *
 * Not hiredis, because a reply comes from a peer: this reader limits bytes,
 * values and depth, takes its memory from the caller's arena (so failing
 * allocations can be tested) and does not copy the bytes.
 *
 * Reading: feed bytes in any pieces, then take replies until there is none.
 * A reply borrows the reader's buffer until the next call.
 *
 * Limits: a reply of more than `max` bytes is MO_ETOOBIG, one that is not
 * RESP 2, has more than MO_RESP_VALUES_MAX values or is nested deeper than
 * MO_RESP_DEPTH_MAX is MO_EPROTO. After an error the stream is lost: every
 * later call fails. */
#ifndef MO_CODEC_RESP_H
#define MO_CODEC_RESP_H

#include "base/mem.h"
#include "base/str.h"

#define MO_RESP_DEPTH_MAX  8
#define MO_RESP_VALUES_MAX ((size_t)1024 * 1024)
#define MO_RESP_LINE_MAX   ((size_t)16 * 1024) /* status, error, number */

enum mo_resp_kind {
    MO_RESP_NIL,
    MO_RESP_STATUS, /* +OK */
    MO_RESP_ERROR,  /* -ERR ... */
    MO_RESP_NUMBER,
    MO_RESP_BULK,
    MO_RESP_ARRAY,
};

struct mo_resp {
    enum mo_resp_kind kind;
    int64_t number;
    struct mo_span text;     /* status, error, bulk */
    const struct mo_resp *v; /* array */
    size_t n;
};

struct mo_resp_in {
    struct mo_buf buf;
    size_t start; /* of the reply that is being read */
    size_t seen;  /* bytes of it that are parsed */
    size_t need;  /* values that are still missing; 0: between replies */
    size_t values;
    int err; /* sticky */
};

void mo_resp_init(struct mo_resp_in *in, size_t max);
void mo_resp_fini(struct mo_resp_in *in);
int mo_resp_feed(struct mo_resp_in *in, const char *p, size_t n);
/* 1 and a reply; 0: more bytes are needed; or an error. */
int mo_resp_next(struct mo_resp_in *in, struct mo_arena *a,
                 const struct mo_resp **out, struct mo_err *e);

/* A request is an array of n arguments. */
int mo_resp_put_head(struct mo_buf *b, size_t n);
int mo_resp_put(struct mo_buf *b, struct mo_span arg);
int mo_resp_put_u64(struct mo_buf *b, uint64_t v);

/* "NOSCRIPT No matching script": the first word of an error. */
struct mo_span mo_resp_word(const struct mo_resp *r);

#endif
