/* split.h - turn the one connection of a container attach into two streams.
 *
 * A container engine sends a program's stdout and stderr in frames on one
 * connection and takes its stdin in the other direction. mo_split() returns a
 * stream that reads stdout and writes stdin, and one that reads stderr. Both
 * keep the contract of stream.h and belong to the caller.
 *
 * Docker's frames are those of codec/mux.h, and stdin is plain; half-closing
 * the connection ends it. Kubernetes' are those of codec/attach_frame.h: only
 * v5 can end stdin, and a ping every MO_SPLIT_PING_MS keeps the connection from
 * being idle.
 *
 *  1. Not reading stdout stops the connection: flow control reaches the
 *     program. At most one read (MO_LOOP_READ_BUF) is held for each side.
 *  2. A stderr that is closed or has no owner is drained: it never stops
 *     stdout. Up to one read of it is kept for a late owner. One that is
 *     attached and paused stops both.
 *  3. The connection is closed when both sides are.
 *  4. Invalid frames, or an end within a frame, close both sides with
 *     MO_EPROTO or MO_ECLOSED.
 *
 * on_end reports the end of the connection, once, unless mo_split_forget() was
 * called before. */
#ifndef MO_LOOP_SPLIT_H
#define MO_LOOP_SPLIT_H

#include "loop/stream.h"

#define MO_SPLIT_PING_MS 30000

struct mo_split;

enum mo_split_wire { MO_SPLIT_DOCKER, MO_SPLIT_KUBE_V4, MO_SPLIT_KUBE_V5 };

enum mo_split_end {
    MO_SPLIT_EOF,    /* the engine closed it */
    MO_SPLIT_BROKEN, /* it failed, or a frame was invalid */
    MO_SPLIT_CLOSED, /* the owners closed both sides */
};

struct mo_split_io {
    struct mo_split *split;
    struct mo_stream *io, *err;
};

/* Takes `under` (paused) and closes it on failure. early: bytes already read
 * from it, copied. */
int mo_split(struct mo_stream *under, enum mo_split_wire wire,
             struct mo_span early,
             void (*on_end)(void *ctx, enum mo_split_end how,
                            const struct mo_err *why),
             void *ctx, struct mo_split_io *out, struct mo_err *e);
/* on_end no longer fires; the streams stay open. */
void mo_split_forget(struct mo_split *sp);

#endif
