/* mounts.h - folders and files of the host in a box (codec/mount.h).
 *
 * A mount never gives the box more than its owner (owner.h) has:
 *
 *  - HOST is resolved once, in the box's mount namespace, with the rights of
 *    the owner and without any link. It must be the inode that was judged
 *    (DEV INO). Then only the descriptor is used: cloned, changed while it is
 *    invisible, attached.
 *  - The box has the file rights of the owner, without its supplementary groups
 *    if we are root. An ordinary user is mapped by the user namespace. If we
 *    are root, the mount maps ids: files of the owner appear as the box's, new
 *    files belong to the owner, other files have the rights of others and
 * cannot be written. If the owner is root, it is the folder's owner instead.
 *  - No setuid, no devices; read-only if asked for, for everything in it.
 *  - A folder with another mount in it is refused, as are file systems of the
 *    kernel (/proc, cgroups, ...), wherever they are mounted.
 *
 * Later changes of the host's mounts do not appear in the box. */
#ifndef MO_LAUNCHER_MOUNTS_H
#define MO_LAUNCHER_MOUNTS_H

#include <sys/types.h>

#include "codec/boxreq.h"
#include "launcher/owner.h"

/* Reads one of r->mounts. */
int mo_mounts_read(const char *text, struct mo_mount *out, uint64_t *dev,
                   uint64_t *ino, struct mo_err *e);

/* Attach all to the box's new root. proc: of the host. uid: of the box. */
int mo_mounts_put(const struct mo_boxreq *r, int root, int proc, uid_t uid,
                  const struct mo_owner *owner, struct mo_err *e);
/* Afterwards, in the new root: refuse what has mounts in it. */
int mo_mounts_check(const struct mo_boxreq *r, int proc, struct mo_err *e);

#endif
