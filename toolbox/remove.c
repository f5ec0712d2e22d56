#include "toolbox/remove.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/mem.h"

#define REMOVE_DEEP 100 /* directories in each other */

struct removal {
    unsigned left;          /* entries that may still be removed */
    int sys;                /* of the first failure */
    int fds[REMOVE_DEEP];   /* open directories, outermost first */
    DIR *dirs[REMOVE_DEEP]; /* of them */
    char names[REMOVE_DEEP][NAME_MAX + 1];
    unsigned depth;
};

static int enter(struct removal *r, int dir, const char *name)
{
    int fd;

    if (r->depth == REMOVE_DEEP) {
        r->sys = ENAMETOOLONG;
        return -1;
    }
    fd = openat(dir, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    r->dirs[r->depth] = fd < 0 ? NULL : fdopendir(fd);
    if (!r->dirs[r->depth]) {
        r->sys = errno;
        mo_close_fd(&fd);
        return -1;
    }
    (void)snprintf(r->names[r->depth], NAME_MAX + 1, "%s", name);
    r->fds[r->depth++] = fd;
    return 0;
}

static int leave(struct removal *r, int top)
{
    int up = r->depth > 1 ? r->fds[r->depth - 2] : top;

    (void)closedir(r->dirs[--r->depth]);
    if (unlinkat(up, r->names[r->depth], AT_REMOVEDIR) == 0 || errno == ENOENT)
        return 0;
    r->sys = errno;
    return -1;
}

/* One entry of the innermost directory. */
static int remove_next(struct removal *r, int top)
{
    int fd = r->fds[r->depth - 1];
    struct dirent *de = readdir(r->dirs[r->depth - 1]);

    if (!de)
        return leave(r, top);
    if (strcmp(de->d_name, ".") == 0 || strcmp(de->d_name, "..") == 0)
        return 0;
    r->left--;
    if (unlinkat(fd, de->d_name, 0) == 0 || errno == ENOENT)
        return 0;
    if (errno == EISDIR)
        return enter(r, fd, de->d_name);
    r->sys = errno;
    return -1;
}

int tb_remove_tree(int top, const char *name, unsigned max)
{
    mo_autofree struct removal *r = mo_new(struct removal);
    int rc;

    if (!r) {
        errno = ENOMEM;
        return -1;
    }
    r->left = max;
    rc = enter(r, top, name);
    while (rc == 0 && r->depth && r->left)
        rc = remove_next(r, top);
    while (r->depth)
        (void)closedir(r->dirs[--r->depth]);
    errno = r->sys;
    return rc < 0 ? -1 : r->left == 0;
}
