/* remove.h - remove a directory and everything in it, a part at a time.
 *
 * Directories are opened relative to their parent with O_NOFOLLOW, so nothing
 * outside is reached, whatever is renamed meanwhile. Limits: `max` entries a
 * call, REMOVE_DEEP directories in each other (ENAMETOOLONG). */
#ifndef TB_REMOVE_H
#define TB_REMOVE_H

/* name: a directory in `top`. 0: it is gone; 1: `max` entries were removed, ask
 * again; -1 and errno. */
int tb_remove_tree(int top, const char *name, unsigned max);

#endif
