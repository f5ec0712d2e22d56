/* privileged_helper.h - the part of a server that stays root.
 *
 * A server that was started as root gives root up (app/own_user.h). Three
 * things still need it: cgroups and user ids of native boxes, which mo-box
 * makes, removing what killed boxes left, and reading again a file of the
 * configuration that only root can read. A process forked before the drop does
 * these three and nothing else. It runs no code of a peer, has one socket, and
 * ends with the server, also if another process has a copy of the socket.
 *
 * A request is one packet of two bytes with one descriptor, a unix socket that
 * the server made; the answer comes on that socket:
 *
 *   BOX    the helper runs mo-box --owner UID:GID with the socket as its input.
 *          If it cannot, it sends REFUSED (codec/boxreq.h)
 *   SWEEP  the helper runs mo-box --owner UID:GID --sweep DIR with the socket
 *          as its output
 *   FILE n the helper sends stamp and content of the n-th file
 *
 * The server may be compromised, so a request cannot name anything: mo-box is
 * sealed memory, the owner, DIR and the files were fixed before the drop. What
 * a box may be is judged by mo-box (launcher/owner.h). A file is read only if
 * nobody but root can change any part of its path (roots_path.h).
 *
 * Limits: MO_PRIVILEGED_FILES; BURST boxes at once and then PER_SECOND, because
 * each mo-box waits some seconds for its request; others get MO_EBUSY. */
#ifndef MO_BOX_PRIVILEGED_HELPER_H
#define MO_BOX_PRIVILEGED_HELPER_H

#include <sys/types.h>

#include "base/file.h"

#define MO_PRIVILEGED_FILES 4
#define MO_PRIVILEGED_BYTES ((size_t)1024 * 1024) /* of one file */

struct mo_privileged_opts {
    uid_t uid; /* for whom it works */
    gid_t gid;
    const char *dir;         /* sockets of native boxes */
    struct mo_span launcher; /* bytes of mo-box; n == 0: no boxes */
    const char *files[MO_PRIVILEGED_FILES]; /* absolute; NULL: none */
};

/* Forks the helper. Call it as root, before the first thread. *fd belongs to
 * the caller; the helper ends when its last copy is closed. */
int mo_privileged_start(const struct mo_privileged_opts *o, int *fd, pid_t *pid,
                        struct mo_err *e);

/* True if fd is the socket of a helper, and not mo-box in memory. */
bool mo_privileged_is(int fd);
/* False: the helper has ended, and its process is collected. */
bool mo_privileged_alive(int fd, pid_t pid);

/* The following may be called from any thread. MO_EUNAVAIL: the helper has
 * ended; the message says what to do. */

/* Gives mo-box the socket `theirs`. */
int mo_privileged_box(int fd, int theirs, struct mo_err *e);
int mo_privileged_sweep(int fd, struct mo_err *e);
/* Reads the n-th file, or only its stamp. *content: its bytes in sealed memory,
 * the caller's, or -1. MO_ENOTFOUND; MO_EPOLICY: others than root can change
 * it. */
int mo_privileged_open(int fd, unsigned n, bool only_stamp,
                       struct mo_file_stamp *stamp, int *content,
                       struct mo_err *e);

#endif
