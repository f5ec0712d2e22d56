/* frame.h - newline framing for JSON-RPC over a byte stream.
 *
 * The kernel delivers bytes in pieces of any size; this room turns them back
 * into lines. It does no I/O and knows no JSON, so a fuzzer can drive it with
 * a plain buffer. A line ends with LF; one CR before the LF is removed. Bytes
 * after the last LF wait for the next piece.
 *
 * Ownership: a line is borrowed until the next call on the same frame. It
 * points into the caller's bytes when it came in one piece (no copy), else
 * into the frame.
 *
 * Limit: a line over `max` bytes (its CR counts, its LF does not) is
 * MO_ETOOBIG, now and at every later mo_frame_next(). The caller then ends
 * the stream, or passes over the line with mo_frame_skip(). Skipping is safe
 * because the end of a line is not a guess: JSON text has no raw LF inside a
 * string, so the next LF ends the line whatever the bytes before it claim,
 * and nothing in front of that LF is ever taken for a line. */
#ifndef MO_CODEC_FRAME_H
#define MO_CODEC_FRAME_H

#include "base/str.h"

struct mo_frame {
    struct mo_buf part; /* the beginning of a line that has not ended */
    size_t max;
    bool lent; /* part holds the line given out last */
    int err;   /* sticky until mo_frame_skip() has reached the line's end */
};

void mo_frame_init(struct mo_frame *f, size_t max);
void mo_frame_fini(struct mo_frame *f);

/* Take bytes from *in: 1 and one line, 0 when all of it is taken and no line
 * has ended, MO_ETOOBIG, MO_ENOMEM. */
int mo_frame_next(struct mo_frame *f, struct mo_span *in, struct mo_span *line);

/* After an error only: the next piece of the line that failed, borrowed until
 * the next call. After MO_ENOMEM its beginning is lost. The first piece may be
 * the bytes that the frame has kept; the others are taken from *in and not
 * kept. 1: that was the last piece (possibly empty, possibly ending in CR) and
 * mo_frame_next() works again. 0: the line has not ended; call again if *in has
 * bytes, else with the next bytes. */
int mo_frame_skip(struct mo_frame *f, struct mo_span *in,
                  struct mo_span *piece);

/* Bytes that wait for the end of their line; 0 after an error. */
size_t mo_frame_waiting(const struct mo_frame *f);

#endif
