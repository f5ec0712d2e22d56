/* place_mcpb.c - unpacks an MCPB bundle; see place_fill.h.
 *
 * The directory is new and no link is ever made in it, so a name of the bundle,
 * which codec/zip.h has checked, cannot lead out of it. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "install/place_fill.h"

#define RATIO_MAX 100 /* unpacked bytes for each byte of the bundle */
#define FREE_BYTES                                                             \
    ((uint64_t)64 * 1024 * 1024) /* that any bundle may have                   \
                                  */

/* Makes the directories of a path. */
static int make_parents(int dir, struct mo_span path, bool all,
                        struct mo_err *e)
{
    char name[MO_ZIP_NAME_MAX + 1];

    for (size_t i = 1; i <= path.n; i++) {
        if (i < path.n ? path.p[i] != '/' : !all)
            continue;
        (void)snprintf(name, sizeof(name), "%.*s", (int)i, path.p);
        if (mkdirat(dir, name, 0755) < 0 && errno != EEXIST)
            return mo_fail_sys(e, "%s", name);
    }
    return 0;
}

static int write_piece(void *ctx, struct mo_span piece, struct mo_err *e)
{
    return mo_file_write_all(*(const int *)ctx, piece, e);
}

static int unpack_file(int dir, const struct mo_zip_entry *x, bool executable,
                       struct mo_err *e)
{
    char name[MO_ZIP_NAME_MAX + 1];
    mo_autofd int fd = -1;
    int rc = make_parents(dir, x->name, false, e);

    if (rc < 0)
        return rc;
    (void)snprintf(name, sizeof(name), "%.*s", (int)x->name.n, x->name.p);
    fd = openat(dir, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC,
                executable ? 0755 : 0644);
    if (fd < 0)
        return errno == EEXIST
                   ? mo_fail(e, MO_EPROTO, "the bundle has %.200s twice", name)
                   : mo_fail_sys(e, "%s", name);
    return mo_zip_read(x, write_piece, &fd, e);
}

static int unpack(const struct mo_fill *f, int dir, struct mo_err *e)
{
    struct mo_span file = f->tools->bundle->file;
    uint64_t total = 0, max = FREE_BYTES + RATIO_MAX * (uint64_t)file.n;
    struct mo_zip_entry x;
    struct mo_zip z;
    int rc = mo_zip_open(&z, file, e);

    if (max > MO_TREE_BYTES_MAX)
        max = MO_TREE_BYTES_MAX;
    while (rc == 0) {
        rc = mo_zip_next(&z, &x, e);
        if (rc <= 0)
            return rc;
        total += x.size;
        if (total > max)
            return mo_fail(e, MO_ETOOBIG,
                           "the bundle unpacks to too many "
                           "bytes");
        if (x.is_link)
            return mo_fail(e, MO_EPOLICY,
                           "the bundle has a link or another special file");
        rc = x.is_dir
                 ? make_parents(dir, x.name, true, e)
                 : unpack_file(
                       dir, &x,
                       x.is_executable || mo_span_is(x.name, f->plan->bin), e);
        if (rc == 0 && mo_runner_is_stopped(f->tools->run))
            rc = mo_fail(e, MO_ECANCELED, "interrupted; nothing was installed");
    }
    return rc;
}

int mo_fill_mcpb(const struct mo_fill *f, struct mo_err *e)
{
    mo_autofd int dir = open(f->dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    struct stat st;
    int rc;

    if (dir < 0)
        return mo_fail_sys(e, "%s", f->dir);
    rc = unpack(f, dir, e);
    if (rc == 0 && (fstatat(dir, f->plan->bin, &st, AT_SYMLINK_NOFOLLOW) < 0 ||
                    !S_ISREG(st.st_mode)))
        rc = mo_fail(e, MO_EPROTO, "the bundle lacks its program %.200s",
                     f->plan->bin);
    mo_jw_member_obj(f->w, "packages");
    mo_jw_end(f->w);
    return rc;
}
