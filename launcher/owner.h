/* owner.h - the user for whom root's mo-box makes a box.
 *
 * Usually that is the user of mo-box itself. If an orchestrator has given up
 * root, its privileged helper runs `mo-box --owner UID:GID` as root. Then the
 * request comes from a process that may be compromised, and nothing in it may
 * do more than that user can:
 *
 *  - paths of the request (dir, root, ca) are resolved with the rights of the
 *    owner and without magic links of /proc, whose check asks for a capability
 *    that we keep;
 *  - views of the host are refused, the orchestrator asks for none; in mounts
 *    the box has the rights of the owner (mounts.h);
 *  - the socket belongs to the owner and only the owner and root may connect;
 *  - the cgroups are in a parent of the owner's own ("mo-box-UID"), so that an
 *    id never names a group of another owner, and there are at most
 *    MO_OWNER_BOXES of them.
 *
 * User ids of boxes are chosen by mo-box (slot.h), and no mount has devices or
 * setuid programs (view.h): neither is part of a request. */
#ifndef MO_LAUNCHER_OWNER_H
#define MO_LAUNCHER_OWNER_H

#include <stdbool.h>
#include <sys/types.h>

#define MO_OWNER_BOXES 1024

struct mo_owner {
    uid_t uid;
    gid_t gid;
    bool is_other; /* we are root, the owner is not */
};

/* text: "UID:GID", or NULL: the user of this process. Gives up all groups if
 * the owner is another. Returns -1 for an invalid text, for root's ids, and
 * unless we are root. */
int mo_owner_init(struct mo_owner *o, const char *text);

/* Between these calls files are accessed with the rights of the owner. Ends the
 * process if the kernel refuses. */
void mo_owner_enter(const struct mo_owner *o);
void mo_owner_leave(const struct mo_owner *o);

/* Opens a directory of a request: O_RDONLY, and the owner may search it. */
int mo_owner_open_dir(const struct mo_owner *o, const char *path);

#endif
