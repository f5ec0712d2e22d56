/* own_user_plan.c - decides which user runs a command of root; see own_user.h.
 */
#include <stdio.h>

#include "app/own_user.h"
#include "codec/boxreq.h"

static int refuse_boxes(uid_t uid, struct mo_err *e)
{
    if (uid < MO_BOX_UID_FIRST || uid - MO_BOX_UID_FIRST >= MO_BOX_UIDS)
        return 0;
    return mo_fail(e, MO_EPOLICY,
                   "user %u: the ids %u to %u are those of boxes; choose "
                   "another user",
                   (unsigned)uid, MO_BOX_UID_FIRST,
                   MO_BOX_UID_FIRST + MO_BOX_UIDS - 1);
}

int mo_own_user_decide(const struct mo_own_user_facts *f, uid_t *uid,
                       struct mo_err *e)
{
    *uid = 0;
    if (f->exists)
        *uid = f->owner;
    else if (f->is_asked)
        *uid = f->asked;
    else if (f->is_system_dir)
        *uid = f->own;
    if (f->is_asked && *uid != f->asked)
        return mo_fail(e, MO_EPOLICY,
                       "the state directory %s belongs to user %u, not to %u: "
                       "`chown -R %u: %s`, or leave out --user and server.user",
                       f->dir, (unsigned)f->owner, (unsigned)f->asked,
                       (unsigned)f->asked, f->dir);
    return refuse_boxes(*uid, e);
}

int mo_own_user_read(struct mo_span passwd, const char *text,
                     struct mo_passwd *out, struct mo_err *e)
{
    uint64_t n;
    bool is_number = mo_span_u64(mo_span_cstr(text), &n) == 0;

    if (is_number && n >= (uid_t)-1)
        return mo_fail(e, MO_EINVAL, "server.user: %s is no user id", text);
    if (mo_passwd_find(passwd, is_number ? NULL : text,
                       is_number ? (uid_t)n : 0, out))
        return 0;
    if (!is_number)
        return mo_fail(e, MO_ENOTFOUND,
                       "server.user: there is no user %.64s in "
                       "/etc/passwd: make it with `useradd --system`, or give "
                       "a number",
                       text);
    *out = (struct mo_passwd){.uid = (uid_t)n, .gid = (gid_t)n};
    (void)snprintf(out->name, sizeof(out->name), "%s", text);
    return 0;
}
