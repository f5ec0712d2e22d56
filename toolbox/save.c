#include "toolbox/save.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/rand.h"

#define TOKEN 9 /* random bytes in a temporary name */

struct temp {
    char name[8 + MO_TOKEN_LEN(TOKEN)];
    int fd;
};

static int temp_open(struct temp *t, int dir)
{
    memcpy(t->name, ".mo-", 4);
    mo_random_token(t->name + 4, TOKEN);
    t->fd = openat(dir, t->name,
                   O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0666);
    return t->fd;
}

static int write_all(int fd, struct mo_span s)
{
    while (s.n) {
        ssize_t n = write(fd, s.p, s.n);

        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return -1;
        s = mo_span_skip(s, (size_t)n);
    }
    return 0;
}

/* The mode of the file to replace; 0: no such file; -1: not a regular file. */
static int old_mode(int dir, const char *base, mode_t *mode)
{
    struct stat st;

    if (fstatat(dir, base, &st, AT_SYMLINK_NOFOLLOW) < 0)
        return errno == ENOENT ? 0 : -1;
    if (!S_ISREG(st.st_mode)) {
        errno = S_ISDIR(st.st_mode)   ? EISDIR
                : S_ISLNK(st.st_mode) ? ELOOP
                                      : ENXIO;
        return -1;
    }
    *mode = st.st_mode & 0777;
    return 1;
}

static int fill_temp(const struct temp *t, struct mo_span content, bool keep,
                     mode_t mode)
{
    if (keep && fchmod(t->fd, mode) < 0)
        return -1;
    return write_all(t->fd, content);
}

int tb_save(const struct tb_root *r, const struct tb_path *p,
            struct mo_span content, bool parents, struct tb_saved *out,
            struct mo_err *e)
{
    const char *base;
    mo_autofd int dir = tb_open_parent(r, p, parents, &base, e);
    struct temp t;
    mode_t mode = 0;
    int there, rc, sys;

    if (dir < 0)
        return e->code;
    there = old_mode(dir, base, &mode);
    if (there < 0 || temp_open(&t, dir) < 0)
        return tb_path_fail(e, errno, p->text);
    rc = fill_temp(&t, content, there > 0, mode);
    if (rc == 0)
        rc = renameat(dir, t.name, dir, base);
    sys = errno;
    if (rc < 0)
        (void)unlinkat(dir, t.name, 0);
    mo_close_fd(&t.fd);
    out->created = there == 0;
    return rc < 0 ? tb_path_fail(e, sys, p->text) : 0;
}
