/* frame.h - newline framing for JSON-RPC over a byte stream.
 *
 * The kernel hands us bytes in any pieces it likes; this room turns them
 * back into lines. It does no I/O and knows no JSON, so a fuzzer can drive
 * it with a plain buffer. A line ends with LF; one CR in front of it goes
 * too. What follows the last LF waits for the next piece.
 *
 * Ownership: a line is borrowed until the next call on the same frame. It
 * points into the caller's bytes when it came in one piece (no copy), else
 * into the frame.
 * Limit: a line over `max` bytes (its CR counts, its LF does not) kills the
 * stream: MO_ETOOBIG now and at every later call. We do not resynchronise:
 * guessing where a liar stops is how forgeries enter. */
#ifndef MO_CODEC_FRAME_H
#define MO_CODEC_FRAME_H

#include "base/str.h"

struct mo_frame {
    struct mo_buf part; /* the beginning of a line that has not ended */
    size_t max;
    bool lent; /* part holds the line given out last */
    int err;   /* sticky */
};

void mo_frame_init(struct mo_frame *f, size_t max);
void mo_frame_fini(struct mo_frame *f);

/* Take bytes from *in: 1 and one line, 0 when all of it is taken and no line
 * has ended, MO_ETOOBIG, MO_ENOMEM. */
int mo_frame_next(struct mo_frame *f, struct mo_span *in, struct mo_span *line);

/* Bytes that wait for the end of their line. */
size_t mo_frame_waiting(const struct mo_frame *f);

#endif
