/* passwd.h - users of this machine, from /etc/passwd.
 *
 * Read directly: no name service is asked, so that nothing is loaded into a
 * process of root and the answer is the same before and after a change of the
 * user. Users of a directory service must be given by number. */
#ifndef MO_BASE_PASSWD_H
#define MO_BASE_PASSWD_H

#include <limits.h>
#include <sys/types.h>

#include "base/str.h"

#define MO_PASSWD_FILE     "/etc/passwd"
#define MO_PASSWD_NAME_MAX 64

struct mo_passwd {
    char name[MO_PASSWD_NAME_MAX];
    uid_t uid;
    gid_t gid;
    char home[PATH_MAX];
};

/* The first row of that name; name NULL: of that uid. False: there is none. */
bool mo_passwd_find(struct mo_span text, const char *name, uid_t uid,
                    struct mo_passwd *out);
/* The same in /etc/passwd. */
bool mo_passwd_get(const char *name, uid_t uid, struct mo_passwd *out);

#endif
