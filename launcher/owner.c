#include "launcher/owner.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <stdlib.h>
#include <sys/fsuid.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/str.h"
#include "launcher/kernel.h"

#define NOT_AN_ID ((uid_t)-1)

static bool read_id(struct mo_span text, uint32_t *out)
{
    uint64_t n;

    if (mo_span_u64(text, &n) < 0 || n == 0 || n >= NOT_AN_ID)
        return false;
    *out = (uint32_t)n;
    return true;
}

int mo_owner_init(struct mo_owner *o, const char *text)
{
    struct mo_span gid = mo_span_cstr(text), uid;

    *o = (struct mo_owner){.uid = geteuid(), .gid = getegid()};
    if (!text)
        return 0;
    uid = mo_span_cut(&gid, ':');
    if (geteuid() != 0 || !read_id(uid, &o->uid) || !read_id(gid, &o->gid))
        return -1;
    o->is_other = true;
    return setgroups(0, NULL);
}

/* The calls report nothing; the second one returns what holds now. */
static void set_ids(uid_t uid, gid_t gid)
{
    setfsgid(gid);
    setfsuid(uid);
    if ((gid_t)setfsgid((gid_t)-1) != gid || (uid_t)setfsuid(NOT_AN_ID) != uid)
        abort();
}

void mo_owner_enter(const struct mo_owner *o)
{
    if (o->is_other)
        set_ids(o->uid, o->gid);
}

void mo_owner_leave(const struct mo_owner *o)
{
    if (o->is_other)
        set_ids(0, 0);
}

int mo_owner_open_dir(const struct mo_owner *o, const char *path)
{
    int fd = -1, at = -1, error;

    if (!o->is_other)
        return open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    mo_owner_enter(o);
    fd = k_openat2(AT_FDCWD, path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW,
                   RESOLVE_NO_MAGICLINKS);
    if (fd >= 0) /* names below it need the right to search, too */
        at = openat(fd, ".", O_PATH | O_DIRECTORY | O_CLOEXEC);
    error = errno;
    mo_owner_leave(o);
    if (at < 0)
        mo_close_fd(&fd);
    mo_close_fd(&at);
    errno = error;
    return fd;
}
