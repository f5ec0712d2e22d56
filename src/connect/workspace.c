#include "connect/workspace.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "base/rand.h"

#define GONE       ".gone-"
#define GONE_BYTES 8

static int parent_path(const struct mo_config *cfg, char out[PATH_MAX],
                       struct mo_err *e)
{
    int n = snprintf(out, PATH_MAX, "%s/workspaces", cfg->store.dir);

    return n < 0 || n >= PATH_MAX
               ? mo_fail(e, MO_ETOOBIG, "store.dir is too long")
               : 0;
}

int mo_workspace_path(const struct mo_config *cfg, const char *server,
                      char out[PATH_MAX], struct mo_err *e)
{
    int n = snprintf(out, PATH_MAX, "%s/workspaces/%s", cfg->store.dir, server);

    if (server[0] == '.' || server[0] == '\0' || strchr(server, '/'))
        return mo_fail(e, MO_EINVAL,
                       "workspace: a server whose name starts with a dot "
                       "cannot keep one");
    return n < 0 || n >= PATH_MAX
               ? mo_fail(e, MO_ETOOBIG, "store.dir is too long")
               : 0;
}

int mo_workspace_make(const struct mo_config *cfg, const char *server,
                      char out[PATH_MAX], struct mo_err *e)
{
    char path[PATH_MAX];
    int rc = mo_workspace_path(cfg, server, path, e);

    if (rc == 0)
        rc = mo_file_mkdir(path, e);
    if (rc == 0 && !realpath(path, out))
        rc = mo_fail_sys(e, "%s", path);
    return rc;
}

/* --- removing ------------------------------------------------------------- */

/* The content was written by others, to any depth. A directory that is not
 * empty is moved up to the top, so nothing here is deep. */

static void gone_name(char out[sizeof(GONE) + 2 * GONE_BYTES])
{
    unsigned char r[GONE_BYTES];

    mo_random(r, sizeof(r));
    memcpy(out, GONE, sizeof(GONE));
    mo_hex(r, sizeof(r), out + sizeof(GONE) - 1);
}

struct sweep {
    int top;
    size_t left; /* entries that may still be looked at */
    size_t done; /* removed or moved in this pass */
};

static void move_up(struct sweep *x, int from, const char *name)
{
    char gone[sizeof(GONE) + 2 * GONE_BYTES];

    gone_name(gone);
    /* changing ".." needs the right to write it */
    (void)fchmodat(from, name, 0700, AT_SYMLINK_NOFOLLOW);
    x->done += renameat(from, name, x->top, gone) == 0;
}

static bool is_dots(const char *name)
{
    return strcmp(name, ".") == 0 || strcmp(name, "..") == 0;
}

static void remove_entry(struct sweep *x, int from, const char *name)
{
    if (unlinkat(from, name, 0) == 0 || errno == ENOENT)
        x->done++;
    else if (unlinkat(from, name, AT_REMOVEDIR) == 0)
        x->done++;
    else if (errno == ENOTEMPTY || errno == EEXIST)
        move_up(x, from, name);
}

static DIR *open_dir(int at, const char *name)
{
    int fd = openat(at, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    DIR *d = fd < 0 ? NULL : fdopendir(fd);

    if (!d && fd >= 0)
        (void)close(fd);
    return d;
}

/* The next entry, while any may be looked at. */
static const char *next_name(struct sweep *x, DIR *d)
{
    struct dirent *en = d && x->left ? readdir(d) : NULL;

    while (en && is_dots(en->d_name))
        en = readdir(d);
    x->left -= en != NULL;
    return en ? en->d_name : NULL;
}

static void remove_top(struct sweep *x, const char *name)
{
    const char *entry;
    DIR *d;

    (void)fchmodat(x->top, name, 0700, AT_SYMLINK_NOFOLLOW);
    d = open_dir(x->top, name);
    for (entry = next_name(x, d); entry; entry = next_name(x, d))
        remove_entry(x, dirfd(d), entry);
    if (d)
        (void)closedir(d);
    x->done += unlinkat(x->top, name, d ? AT_REMOVEDIR : 0) == 0;
}

/* Passes over the top, until one finds nothing to do. */
void mo_workspace_sweep(const struct mo_config *cfg, size_t max)
{
    struct sweep x = {.top = -1, .left = max, .done = 1};
    char path[PATH_MAX];

    if (parent_path(cfg, path, NULL) == 0)
        x.top = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    while (x.top >= 0 && x.done && x.left) {
        DIR *d = open_dir(x.top, ".");
        const char *name;

        x.done = 0;
        for (name = next_name(&x, d); name; name = next_name(&x, d))
            if (strncmp(name, GONE, sizeof(GONE) - 1) == 0)
                remove_top(&x, name);
        if (d)
            (void)closedir(d);
    }
    mo_close_fd(&x.top);
}

int mo_workspace_remove(const struct mo_config *cfg, const char *server,
                        size_t max, struct mo_err *e)
{
    char path[PATH_MAX], gone[sizeof(GONE) + 2 * GONE_BYTES];
    mo_autofd int top = -1;
    int rc = mo_workspace_path(cfg, server, path, NULL);

    if (rc < 0)
        return 0; /* it never had one */
    rc = parent_path(cfg, path, e);
    if (rc < 0)
        return rc;
    top = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (top < 0)
        return errno == ENOENT ? 0 : mo_fail_sys(e, "%s", path);
    gone_name(gone);
    if (renameat(top, server, top, gone) < 0 && errno != ENOENT)
        return mo_fail_sys(e, "%s/%s", path, server);
    mo_workspace_sweep(cfg, max);
    return 0;
}
