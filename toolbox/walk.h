/* walk.h - list the entries below a directory, in order, following no link.
 *
 * Every directory is opened relative to its parent with O_NOFOLLOW, so the walk
 * cannot be redirected while it runs. Names are sorted by byte; a directory
 * comes before its entries.
 *
 * Ownership: the walk owns the entry; it is valid until the next step. Limits:
 * TB_WALK_DEPTH levels, TB_WALK_NAMES names per directory; entries beyond are
 * skipped and `clipped` is set. A directory that cannot be read is skipped and
 * counted in `denied`. */
#ifndef TB_WALK_H
#define TB_WALK_H

#include "base/mem.h"
#include "toolbox/root.h"

#define TB_WALK_DEPTH 40
#define TB_WALK_NAMES 20000

struct tb_walk_dir {
    int fd;
    struct mo_arena arena;
    const char **names;
    size_t n, next;
    size_t prefix; /* length of path */
};

struct tb_walk {
    struct tb_walk_dir dirs[TB_WALK_DEPTH];
    int depth;     /* dirs in use */
    int max_depth; /* 1: this directory only */
    bool descend;  /* into the current entry */
    bool clipped;
    unsigned denied;

    /* the entry */
    char path[TB_PATH_MAX]; /* relative to the start of the walk */
    const char *name;
    int dir; /* descriptor of its directory */
    struct stat st;
};

/* fd: a directory; the walk owns it, also on failure. */
int tb_walk_open(struct tb_walk *w, int fd, int max_depth, struct mo_err *e);
void tb_walk_close(struct tb_walk *w);

/* 1: an entry; 0: the end; MO_ENOMEM. */
int tb_walk_next(struct tb_walk *w, struct mo_err *e);
/* Do not descend into the current entry. */
void tb_walk_skip(struct tb_walk *w);

/* Open the current entry for reading if it is a regular file; or -1. */
int tb_walk_file(const struct tb_walk *w);

#endif
