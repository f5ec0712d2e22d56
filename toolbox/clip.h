/* clip.h - the beginning and the end of an output of any length.
 *
 * What a model needs of a long output stands at its two ends. The first half
 * of the room keeps the first bytes, the second half is a ring of the newest.
 * Nothing is allocated before the first byte. */
#ifndef TB_CLIP_H
#define TB_CLIP_H

#include "base/str.h"

struct tb_clip {
    struct mo_buf head, tail;
    size_t half;    /* room of each */
    size_t at;      /* of the oldest byte in a full tail */
    uint64_t total; /* bytes seen */
};

void tb_clip_init(struct tb_clip *c, size_t room);
void tb_clip_fini(struct tb_clip *c);

/* MO_ENOMEM: the bytes are counted but lost. */
int tb_clip_put(struct tb_clip *c, struct mo_span s);

uint64_t tb_clip_cut(const struct tb_clip *c); /* bytes not kept */

/* Append what is kept, with a line that says what is missing between. */
int tb_clip_text(const struct tb_clip *c, struct mo_buf *out);

#endif
