/* mux.h - splits the stream of a Docker attach into stdout and stderr.
 *
 * Without a terminal, dockerd joins a container's stdout and stderr into one
 * stream of frames: {stream id, 0, 0, 0, length as 32 bits big-endian} and
 * that many bytes. This room finds the frames in pieces of any size and
 * passes their bytes on at once, without buffering: a line may span frames and
 * a frame may span reads, so the next room has to join lines anyway.
 *
 * Ownership: a piece points into the caller's input; nothing is allocated.
 * Limits: a frame of more than MO_MUX_FRAME_MAX (dockerd sends 32 KiB at
 * most), an unknown stream id, or padding that is not zero means that the
 * stream is out of step or forged. The error is final. */
#ifndef MO_CODEC_MUX_H
#define MO_CODEC_MUX_H

#include "base/str.h"

#define MO_MUX_HEAD_LEN  8
#define MO_MUX_FRAME_MAX ((uint32_t)1 << 20)

/* 0 would be stdin, which attach never sends back. */
enum mo_mux_stream { MO_MUX_STDOUT = 1, MO_MUX_STDERR = 2 };

struct mo_mux {
    /* private */
    uint32_t left; /* bytes of this frame still to come */
    unsigned char head[MO_MUX_HEAD_LEN];
    uint8_t head_len;
    bool broken;
};

void mo_mux_init(struct mo_mux *m);

/* Take from *in: 1 and a piece (never empty) of one stream, 0 when all input
 * is used up, MO_EPROTO, now and at every later call. */
int mo_mux_next(struct mo_mux *m, struct mo_span *in,
                enum mo_mux_stream *stream, struct mo_span *piece,
                struct mo_err *e);

/* Between two frames: the only place where the stream may end. */
bool mo_mux_at_edge(const struct mo_mux *m);

#endif
