/* split.h - the one connection of a container attach as two streams.
 *
 * An engine sends a program's stdout and stderr in frames on one connection
 * and takes its stdin the other way. This room hands out a stream that reads
 * stdout and writes stdin, and one that reads stderr; both keep the contract
 * of stream.h and belong to whoever took them.
 *
 *  1. Not reading stdout stops the connection: the program feels it. At most
 *     one read (MO_LOOP_READ_BUF) is held here for each side.
 *  2. A stderr that nobody has attached to, or that is closed, is drained:
 *     it never stops stdout. Up to one read of it is kept for a late owner.
 *     One that is attached and paused stops both.
 *  3. The connection is closed when both sides are.
 *  4. Frames that make no sense, or an end within one, close both sides with
 *     MO_EPROTO or MO_ECLOSED.
 *
 * on_end tells who made the split that the connection is at its end, once,
 * unless mo_split_forget() was called before. */
#ifndef MO_LOOP_SPLIT_H
#define MO_LOOP_SPLIT_H

#include "loop/stream.h"

struct mo_split;

enum mo_split_end {
    MO_SPLIT_EOF,    /* the engine ended it */
    MO_SPLIT_BROKEN, /* it failed, or what came made no sense */
    MO_SPLIT_CLOSED, /* both sides were closed by their owners */
};

struct mo_split_io {
    struct mo_split *split;
    struct mo_stream *io, *err;
};

/* Takes `under` (paused), closes it on failure. early: what was read from it
 * already, copied. */
int mo_split(struct mo_stream *under, struct mo_span early,
             void (*on_end)(void *ctx, enum mo_split_end how,
                            const struct mo_err *why),
             void *ctx, struct mo_split_io *out, struct mo_err *e);
/* No on_end any more; the streams live on. */
void mo_split_forget(struct mo_split *sp);

#endif
