/* npx_cache.h - recognises a package that npx has installed only in part.
 *
 * npx keeps each package in a directory, ~/.npm/_npx/HASH. If an installation
 * was killed, every later start fails with an error about a file in it, until
 * the directory is deleted. The error text is a peer's: a path in it counts
 * only if it looks like such a directory and is one, of this user.
 *
 * Failure: what cannot be recognised is left as it is. */
#ifndef MO_LOOP_NPX_CACHE_H
#define MO_LOOP_NPX_CACHE_H

#include <limits.h>

#include "base/str.h"

/* Finds ".../_npx/HASH" in the last lines of npx, if they tell of missing files
 * or leftovers there. Pure. */
bool mo_npx_cache_named(struct mo_span said, char path[PATH_MAX]);
/* Renames the directory to HASH.broken, so that the next start installs the
 * package again. False: it is no such directory, a process uses it, or there is
 * a HASH.broken already: installing again has not helped. */
bool mo_npx_cache_move(const char *path);

#endif
