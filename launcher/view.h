/* view.h - the file system of a box.
 *
 * The keeper creates a mount namespace, builds the box's root in it and moves
 * there for good. From then on it reaches nothing of the host but the
 * descriptors it has open, and every box it starts inherits a copy of this
 * tree. No mount is visible outside, so none can be left behind.
 *
 *   /            tmpfs, read-only once it is built
 *   /usr /bin /sbin /lib*   of the host, read-only, no setuid; or all top
 *                names of an unpacked image but those below
 *   /etc         a few files of the host; passwd, group, hosts are written, and
 *                resolv.conf for a box with a network
 *   /run         the certificates that programs trust, if the box has its own;
 *                the files of the root that hold them show the same
 *   /dev         null zero full random urandom
 *   /proc        mounted by each box itself (confine.h): its own processes
 *   /tmp /workspace         tmpfs with a size and a number of inodes
 *   mounts       folders and files of the host (mounts.h), also at /workspace
 *
 * Nothing else of /home, /root, /var or /sys exists, and no other file of /run.
 * Names of an image are opened without following links and with
 * RESOLVE_BENEATH.
 *
 * The workspace lives as long as the keeper, so a restarted box finds its
 * files.
 *
 * If we are not root, the mount namespace is inside a user namespace in which
 * we have the id `uid`. */
#ifndef MO_LAUNCHER_VIEW_H
#define MO_LAUNCHER_VIEW_H

#include <sys/types.h>

#include "codec/boxreq.h"
#include "launcher/owner.h"

/* Uses r->root, r->views, r->mounts, r->ca and the sizes. uid: user and group
 * of the box. The directories r->root and r->ca must be accessible to the
 * owner. */
int mo_view_enter(const struct mo_boxreq *r, uid_t uid,
                  const struct mo_owner *owner, struct mo_err *e);

/* Clone the tree of `path` below dir, or of dir itself if it is "", with every
 * mount in it. attrs: MOUNT_ATTR_*, also for those. Returns a descriptor. */
int mo_view_clone(int dir, const char *path, unsigned attrs, struct mo_err *e);

/* Mount /proc in a box with its own pid namespace; writable until sealed. */
int mo_view_proc(struct mo_err *e);
int mo_view_seal_proc(struct mo_err *e);

#endif
