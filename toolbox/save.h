/* save.h - replace a file atomically.
 *
 * The new content is written to a temporary file beside the old one and renamed
 * with rename(2): a reader sees either. The permission bits are kept. A
 * symbolic link or any other file that is not regular is refused; if one
 * appears in between, rename replaces the link itself, never its target.
 *
 * Not flushed to disk: a power failure may undo it. */
#ifndef TB_SAVE_H
#define TB_SAVE_H

#include "toolbox/root.h"

struct tb_saved {
    bool created; /* the file did not exist before */
};

int tb_save(const struct tb_root *r, const struct tb_path *p,
            struct mo_span content, bool parents, struct tb_saved *out,
            struct mo_err *e);

#endif
