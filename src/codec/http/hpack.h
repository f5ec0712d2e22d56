/* hpack.h - header blocks of HTTP/2 (RFC 7541): read, and written without
 * compression.
 *
 * A reader keeps the table that the blocks of one connection build up, so it
 * must see all of them, in order. After a failure it is of no more use.
 *
 * Written fields are literals that enter no table. A block that is written
 * begins with mo_hpack_put_start(): it empties the table of the peer, who may
 * ask for a smaller one at any time.
 *
 * Ownership: name and value are borrowed until fn returns.
 * Limits: MO_HPACK_TABLE_MAX bytes of the table, whatever the peer allowed;
 * MO_HPACK_LIST_MAX bytes of a block's fields, 32 for each included. No I/O. */
#ifndef MO_CODEC_HTTP_HPACK_H
#define MO_CODEC_HTTP_HPACK_H

#include "base/str.h"

#define MO_HPACK_TABLE_MAX ((size_t)64 * 1024)
#define MO_HPACK_LIST_MAX  ((size_t)128 * 1024)

struct mo_hpack;

typedef int mo_hpack_fn(void *ctx, struct mo_span name, struct mo_span value,
                        struct mo_err *e);

struct mo_hpack *mo_hpack_new(void);
void mo_hpack_free(struct mo_hpack *h); /* NULL is fine */

/* Calls fn for each field of a whole block, until it fails. */
int mo_hpack_read(struct mo_hpack *h, struct mo_span block, mo_hpack_fn *fn,
                  void *ctx, struct mo_err *e);

void mo_hpack_put_start(struct mo_buf *b);
/* secret: no one on the way may put it into a table, either. */
void mo_hpack_put(struct mo_buf *b, struct mo_span name, struct mo_span value,
                  bool secret);

#endif
