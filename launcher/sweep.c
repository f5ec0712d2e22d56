#include "launcher/sweep.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/mem.h"
#include "base/str.h"
#include "launcher/cgroup.h"

#define SUFFIX     MO_SPAN(".sock")
#define SUFFIX_NEW MO_SPAN(".new")
#define NEW_AGE_S  60 /* a new keeper names its socket sooner */

static bool is_dead(int dir, const char *name)
{
    struct sockaddr_un a = {.sun_family = AF_UNIX};
    mo_autofd int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

    snprintf(a.sun_path, sizeof(a.sun_path), "/proc/self/fd/%d/%s", dir, name);
    return fd >= 0 && connect(fd, (const struct sockaddr *)&a, sizeof(a)) < 0 &&
           errno == ECONNREFUSED;
}

static bool is_old(int dir, const char *name)
{
    struct stat st;

    return fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) == 0 &&
           (uint64_t)st.st_mtim.tv_sec + NEW_AGE_S < mo_wall_ms() / 1000;
}

/* 1: removed; 0: nothing to do. */
static int sweep_one(int dir, const char *name, const struct mo_owner *owner,
                     struct mo_err *e)
{
    struct mo_span s = mo_span_cstr(name);
    char id[MO_BOXREQ_ID_MAX + 1];
    int rc;

    if (mo_span_ends(s, SUFFIX_NEW) && is_old(dir, name) && is_dead(dir, name))
        return unlinkat(dir, name, 0) == 0;
    if (!mo_span_ends(s, SUFFIX) || s.n - SUFFIX.n >= sizeof(id))
        return 0;
    snprintf(id, sizeof(id), "%.*s", (int)(s.n - SUFFIX.n), name);
    if (!mo_boxreq_id_ok(id) || !is_dead(dir, name))
        return 0;
    mo_owner_leave(owner);
    rc = mo_cg_sweep(id, owner, e);
    mo_owner_enter(owner);
    if (rc < 0)
        return rc;
    return unlinkat(dir, name, 0) == 0 || errno == ENOENT
               ? 1
               : mo_fail_sys(e, "%s", name);
}

int mo_sweep(const char *path, const struct mo_owner *owner, unsigned *removed,
             struct mo_err *e)
{
    int fd = mo_owner_open_dir(owner, path), rc = 0;
    DIR *d = fd < 0 ? NULL : fdopendir(fd);
    struct dirent *en;

    *removed = 0;
    if (!d)
        return errno == ENOENT ? 0 : mo_fail_sys(e, "%s", path);
    mo_owner_enter(owner);
    for (en = readdir(d); en; en = readdir(d)) {
        int one = sweep_one(dirfd(d), en->d_name, owner, e);

        if (one < 0)
            rc = one; /* sweep the others anyway */
        else
            *removed += (unsigned)one;
    }
    mo_owner_leave(owner);
    closedir(d);
    return rc;
}
