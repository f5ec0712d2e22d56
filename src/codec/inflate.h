/* inflate.h - raw DEFLATE (RFC 1951) from memory to a callback.
 *
 * Pure. The whole compressed text is there; the result arrives in pieces of at
 * most MO_INFLATE_WINDOW bytes, each borrowed until put() returns. MO_EPROTO:
 * it is no DEFLATE, is cut off, or bytes follow its end. MO_ETOOBIG: more than
 * max bytes. A negative result of put() ends it and is returned. */
#ifndef MO_CODEC_INFLATE_H
#define MO_CODEC_INFLATE_H

#include "base/str.h"

#define MO_INFLATE_WINDOW ((size_t)32 * 1024)

typedef int mo_inflate_put(void *ctx, struct mo_span piece, struct mo_err *e);

int mo_inflate(struct mo_span in, uint64_t max, mo_inflate_put *put, void *ctx,
               struct mo_err *e);

#endif
