/* clip.h - keep the beginning and the end of an output of any length.
 *
 * A model needs the two ends of a long output most. The first half of the room
 * keeps the first bytes, the second half is a ring of the newest. Nothing is
 * allocated before the first byte. */
#ifndef TB_CLIP_H
#define TB_CLIP_H

#include "base/str.h"

struct tb_clip {
    struct mo_buf head, tail;
    size_t half;    /* size of each half */
    size_t at;      /* position of the oldest byte in a full tail */
    uint64_t total; /* bytes seen */
};

void tb_clip_init(struct tb_clip *c, size_t room);
void tb_clip_fini(struct tb_clip *c);

/* MO_ENOMEM: the bytes are counted but lost. */
int tb_clip_put(struct tb_clip *c, struct mo_span s);

uint64_t tb_clip_cut(const struct tb_clip *c); /* bytes not kept */

/* Append the kept bytes, with a line between that says what is missing. */
int tb_clip_text(const struct tb_clip *c, struct mo_buf *out);

#endif
