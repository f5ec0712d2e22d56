/* host_path.h - may a box see this path of the host?
 *
 * Judges a mount (codec/mount.h) each time a box starts. The path must exist
 * and no part of it may be a symbolic link: the text then says exactly what is
 * mounted, and nothing that a box writes can redirect it. The inode found here
 * goes with the request, and the launcher refuses another one.
 *
 * Refused, as is every folder that contains one of them:
 *
 *   - files of the kernel and of running services, where sockets are: /proc,
 *     /sys, /dev, /run, /boot, data of container engines
 *   - this program's own files (struct mo_host_guard): its state with secrets,
 *     tokens and audit log, its configuration, the engine's socket
 *   - passwords and keys of the machine: /etc/shadow, /etc/ssh, ...
 *   - places where people keep keys, in any folder: .ssh, .gnupg, .aws, ...
 *   - whole homes, /home, /root, /tmp and /var/tmp; folders in them are allowed
 *
 * Read-write also: system directories and hidden parts of the home, from which
 * programs are started; and folders of root if the server is root, because new
 * files would be root's.
 *
 * The server's user must have the access that the box gets. Not judged: the
 * content below the first level of a folder. A socket or named pipe in it can
 * be used by the box, also if the mount is read-only. */
#ifndef MO_BOX_HOST_PATH_H
#define MO_BOX_HOST_PATH_H

#include "codec/mount.h"

/* Borrowed as long as a driver is open. */
struct mo_host_guard {
    const char *home;         /* of the configuration's owner; may be NULL */
    const char *const *paths; /* absolute, NULL-terminated; may be NULL */
};

struct mo_host_inode {
    uint64_t dev, ino;
};

/* guard may be NULL. MO_EPOLICY: refused. MO_ENOTFOUND. */
int mo_host_path_judge(const struct mo_mount *m,
                       const struct mo_host_guard *guard,
                       struct mo_host_inode *out, struct mo_err *e);
/* The same for a server's own workspace, which is in our state: a directory of
 * ours that nobody else can enter. */
int mo_host_path_workspace(const char *path, struct mo_host_inode *out,
                           struct mo_err *e);

#endif
