/* roots_path.h - can anybody but root change what a path leads to?
 *
 * For a process of root that opens a file for somebody else. Looks at every
 * directory and symbolic link on the way, and at the file: all must belong to
 * root and be writable by nobody else. In a directory with the sticky bit
 * others cannot replace what belongs to root. Such a path cannot be exchanged
 * between the check and the opening, except by root. */
#ifndef MO_BOX_ROOTS_PATH_H
#define MO_BOX_ROOTS_PATH_H

#include <stdbool.h>

/* path: absolute. False also if it does not exist: then errno is ENOENT, and
 * only root can create it. */
bool mo_roots_path(const char *path);

#endif
