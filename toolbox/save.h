/* save.h - a file changes as a whole or not at all.
 *
 * The new content goes into a file of its own beside the old one and takes
 * its name by rename(2): a reader sees the one or the other. The permission
 * bits are kept. A symbolic link or anything else that is no regular file is
 * refused; should one appear in between, rename replaces the name itself and
 * never what it points to.
 *
 * Not flushed to the disk: a loss of power may undo it. */
#ifndef TB_SAVE_H
#define TB_SAVE_H

#include "toolbox/root.h"

struct tb_saved {
    bool created; /* there was none before */
};

int tb_save(const struct tb_root *r, const struct tb_path *p,
            struct mo_span content, bool parents, struct tb_saved *out,
            struct mo_err *e);

#endif
