/* tree.h - a directory of installed files: checked, digested, made read-only,
 * removed.
 *
 * The digest covers the path, the kind, the executable bit and the content of
 * each file and link, in the order of their names. Owner, times and write bits
 * do not count.
 *
 * Refused with MO_EPOLICY: a link that is absolute or leads out of the
 * directory, a setuid or setgid file, anything that is no file, directory or
 * link. After its leading "../" a link may have no "..": behind another link
 * that would not be what it looks like. With MO_ETOOBIG: a directory over the
 * limits. The calls block. */
#ifndef MO_INSTALL_TREE_H
#define MO_INSTALL_TREE_H

#include <sys/types.h>

#include "base/err.h"
#include "codec/sha256.h"

#define MO_TREE_FILES_MAX ((size_t)100000)
#define MO_TREE_BYTES_MAX ((uint64_t)2 * 1024 * 1024 * 1024)
#define MO_TREE_DEPTH_MAX 48

struct mo_tree {
    size_t files; /* links and directories included */
    uint64_t bytes;
    char digest[MO_SHA256_HEX + 1];
};

int mo_tree_read(const char *dir, struct mo_tree *out, struct mo_err *e);

/* Removes all write bits, of dir too, and syncs everything to disk. Of a tree
 * that was read. from: a caller that is root also takes it from this user, who
 * must own every file; 0: it is the caller's. */
int mo_tree_seal(const char *dir, uid_t from, struct mo_err *e);

/* Removes dir and everything in it, links not followed. A missing one is
 * fine. */
int mo_tree_remove(const char *dir, struct mo_err *e);

#endif
