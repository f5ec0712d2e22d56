#include "box/roots_path.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define LINKS_MAX 16 /* symbolic links in a path */

static bool is_roots_own(const struct stat *st)
{
    bool others_write = (st->st_mode & 022) && !S_ISLNK(st->st_mode);

    return st->st_uid == 0 &&
           (!others_write || (S_ISDIR(st->st_mode) && (st->st_mode & S_ISVTX)));
}

/* Puts the target of the link path[0..n) in its place. */
static bool follow_link(char path[PATH_MAX], size_t n)
{
    char target[PATH_MAX], rest[PATH_MAX];
    size_t dir = n;
    ssize_t len;
    int made;

    (void)snprintf(rest, sizeof(rest), "%s", path + n);
    path[n] = '\0';
    len = readlink(path, target, sizeof(target) - 1);
    if (len < 0)
        return false;
    target[len] = '\0';
    while (dir > 0 && path[dir - 1] != '/')
        dir--;
    if (target[0] == '/')
        dir = 0;
    made = snprintf(path + dir, PATH_MAX - dir, "%s%s", target, rest);
    return made >= 0 && (size_t)made < PATH_MAX - dir;
}

/* Length of the first link in path, 0: none, -1: not root's. */
static ssize_t find_link(char path[PATH_MAX])
{
    struct stat st;

    if (lstat("/", &st) < 0 || !is_roots_own(&st))
        return -1;
    for (size_t n = 1; n == 1 || path[n - 1]; n++) {
        char c = path[n];
        int rc;

        if (c != '/' && c != '\0')
            continue;
        path[n] = '\0';
        rc = lstat(path, &st);
        path[n] = c;
        if (rc == 0 && !is_roots_own(&st))
            errno = EPERM;
        if (rc < 0 || !is_roots_own(&st))
            return -1;
        if (S_ISLNK(st.st_mode))
            return (ssize_t)n;
        if (c == '\0')
            break;
    }
    return 0;
}

bool mo_roots_path(const char *path)
{
    char at[PATH_MAX];

    if (path[0] != '/' || strlen(path) >= sizeof(at))
        return false;
    (void)snprintf(at, sizeof(at), "%s", path);
    for (int i = 0; i < LINKS_MAX; i++) {
        ssize_t link = find_link(at);

        if (link <= 0)
            return link == 0;
        if (!follow_link(at, (size_t)link))
            return false;
    }
    return false;
}
