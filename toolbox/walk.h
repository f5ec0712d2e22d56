/* walk.h - the entries below a directory, in order, following no link.
 *
 * Every directory is opened relative to the one above it with O_NOFOLLOW, so
 * the walk cannot be led elsewhere while it goes. Names come sorted by byte;
 * a directory comes before what is in it.
 *
 * Ownership: the entry is the walk's and stands until the next step.
 * Limits: TB_WALK_DEPTH levels, TB_WALK_NAMES names in one directory; what
 * lies beyond is not seen, and `clipped` says so. A directory that may not
 * be read is passed over and counted in `denied`. */
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
    size_t prefix; /* of path */
};

struct tb_walk {
    struct tb_walk_dir dirs[TB_WALK_DEPTH];
    int depth;     /* dirs in use */
    int max_depth; /* 1: the directory alone */
    bool descend;  /* into the entry given last */
    bool clipped;
    unsigned denied;

    /* the entry */
    char path[TB_PATH_MAX]; /* below where the walk began */
    const char *name;
    int dir; /* descriptor of what holds it */
    struct stat st;
};

/* fd: a directory, taken over also on failure. */
int tb_walk_open(struct tb_walk *w, int fd, int max_depth, struct mo_err *e);
void tb_walk_close(struct tb_walk *w);

/* 1: an entry; 0: the end; MO_ENOMEM. */
int tb_walk_next(struct tb_walk *w, struct mo_err *e);
/* Do not look into the directory given last. */
void tb_walk_skip(struct tb_walk *w);

/* The entry, opened for reading if it is a regular file; or -1. */
int tb_walk_file(const struct tb_walk *w);

#endif
