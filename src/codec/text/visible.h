/* visible.h - untrusted text for a terminal or a listing.
 *
 * Names of files, tools and servers are chosen by others. Control characters,
 * invalid UTF-8 and characters that change the direction or have no width are
 * written as their code (<1b>, <U+202E>), so that a name cannot move the
 * cursor, hide a part of itself or look like another line. Pure. */
#ifndef MO_CODEC_TEXT_VISIBLE_H
#define MO_CODEC_TEXT_VISIBLE_H

#include "base/str.h"

/* Keeps newlines and tabs. */
void mo_visible_text(struct mo_buf *b, struct mo_span s);
/* Does not: for a name in a line. */
void mo_visible_name(struct mo_buf *b, struct mo_span s);

#endif
