/* restore - puts a backup in place of the state.
 *
 * The file may be anybody's. It is unpacked into a new directory in store.dir:
 * only regular files with plain names, each once, never over another one. Then
 * the manifest must agree with every file, and the versions must be ours to
 * use. Only then is anything moved: the present files aside, the new ones into
 * their place, the database last. All that time the directory is locked: no
 * other program uses it (config/state_record.h). */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "cli/state/archive.h"
#include "codec/sha256.h"
#include "codec/tar.h"
#include "config/state_record.h"
#include "store/sqlite_file.h"

#define PIECE ((size_t)256 * 1024)

struct part {
    char name[MO_BACKUP_NAME_MAX], sha256[MO_SHA256_HEX + 1];
    uint64_t size;
};

struct restore {
    const struct mo_config *cfg;
    const char *file;   /* as the command names it */
    int in, dir, stage; /* the file; store.dir; where it is unpacked */
    char stage_path[PATH_MAX], db[PATH_MAX];
    struct part v[MO_BACKUP_FILES_MAX];
    size_t n;
    int fd;     /* of the part that is being written */
    int in_use; /* lock of store.dir */
    struct mo_sha256 sum;
    struct mo_buf manifest;
    bool in_manifest, ended;
};

/* --- unpacking -------------------------------------------------------------
 */

static int fail_bad(struct mo_err *e, const char *why)
{
    return mo_fail(e, MO_EPROTO, "the file is no backup, or damaged: %s", why);
}

static int end_part(struct restore *r, struct mo_err *e)
{
    unsigned char sum[MO_SHA256_LEN];
    struct part *p = r->n ? &r->v[r->n - 1] : NULL;

    if (r->fd < 0 || !p)
        return 0;
    mo_sha256_end(&r->sum, sum);
    for (size_t i = 0; i < sizeof(sum); i++)
        (void)snprintf(p->sha256 + 2 * i, 3, "%02x", sum[i]);
    if (fsync(r->fd) < 0)
        return mo_fail_sys(e, "%s", p->name);
    mo_close_fd(&r->fd);
    return 0;
}

static int begin_part(struct restore *r, const struct mo_tar_entry *t,
                      struct mo_err *e)
{
    struct part *p = &r->v[r->n];

    if (end_part(r, e) < 0)
        return e->code;
    if (r->in_manifest)
        return fail_bad(e, "something follows its list of files");
    if (t->kind != MO_TAR_FILE || !mo_backup_name_ok(t->path))
        return fail_bad(e, "it contains more than plain files");
    if (mo_span_is(t->path, MO_BACKUP_MANIFEST)) {
        r->in_manifest = true;
        return 0;
    }
    if (r->n == MO_BACKUP_FILES_MAX)
        return fail_bad(e, "too many files");
    *p = (struct part){.size = 0};
    (void)snprintf(p->name, sizeof(p->name), "%.*s", (int)t->path.n, t->path.p);
    r->fd = openat(r->stage, p->name,
                   O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (r->fd < 0)
        return errno == EEXIST ? fail_bad(e, "two files have the same name")
                               : mo_fail_sys(e, "%s", p->name);
    r->n++;
    mo_sha256_init(&r->sum);
    return 0;
}

static int take_data(struct restore *r, struct mo_span piece, struct mo_err *e)
{
    if (r->in_manifest)
        return mo_buf_span(&r->manifest, piece) < 0
                   ? fail_bad(e, "its list of files is too long")
                   : 0;
    mo_sha256_put(&r->sum, piece.p, piece.n);
    r->v[r->n - 1].size += piece.n;
    return mo_file_write_all(r->fd, piece, e);
}

static int take_piece(struct restore *r, struct mo_tar *t, struct mo_span in,
                      struct mo_err *e)
{
    struct mo_span piece;
    int rc = 0;

    while (rc == 0 && !r->ended) {
        switch (mo_tar_next(t, &in, &piece, e)) {
        case MO_TAR_ERROR:
            return mo_wrap(e, "the file is no backup, or damaged");
        case MO_TAR_MORE:
            return 0;
        case MO_TAR_ENTRY:
            rc = begin_part(r, &t->entry, e);
            break;
        case MO_TAR_DATA:
            rc = take_data(r, piece, e);
            break;
        case MO_TAR_END:
            r->ended = true;
            break;
        }
    }
    return rc;
}

static int unpack(struct restore *r, struct mo_err *e)
{
    mo_autofree char *room = mo_alloc(PIECE);
    struct mo_tar t;
    int rc = room ? 0 : mo_fail(e, MO_ENOMEM, "out of memory");

    mo_tar_init(&t);
    while (rc == 0 && !r->ended) {
        ssize_t n = read(r->in, room, PIECE);

        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            rc = mo_fail_sys(e, "read");
        if (n <= 0)
            break;
        rc = take_piece(r, &t, mo_span(room, (size_t)n), e);
    }
    if (rc == 0)
        rc = end_part(r, e);
    if (rc == 0 && !r->ended)
        rc = fail_bad(e, "its end is missing");
    mo_tar_fini(&t);
    return rc;
}

/* --- judging ---------------------------------------------------------------
 */

static bool is_listed(const struct part *p, struct mo_json row)
{
    char sum[MO_SHA256_HEX + 1] = "";
    uint64_t size = 0;

    (void)mo_json_str_copy(mo_json_get(row, "sha256"), sum, sizeof(sum));
    return mo_json_u64(mo_json_get(row, "size"), &size) == 0 &&
           size == p->size && strcmp(sum, p->sha256) == 0;
}

static int check_list(const struct restore *r, struct mo_json files,
                      struct mo_err *e)
{
    size_t n = 0;

    mo_json_each (it, files) {
        char name[MO_BACKUP_NAME_MAX] = "";

        (void)mo_json_str_copy(mo_json_get(it.val, "name"), name, sizeof(name));
        if (n >= r->n || strcmp(r->v[n].name, name) != 0 ||
            !is_listed(&r->v[n], it.val))
            return fail_bad(e, "a file is not as it was written");
        n++;
    }
    return n == r->n && n > 0 ? 0 : fail_bad(e, "its list of files is wrong");
}

static int check_manifest(const struct restore *r, struct mo_err *e)
{
    struct mo_json_doc d;
    uint64_t format = 0;
    char program[MO_STATE_PROGRAM_MAX] = "";

    if (!r->in_manifest ||
        mo_json_parse(mo_buf_view(&r->manifest), 0, &d, NULL) < 0 ||
        mo_json_u64(mo_json_get(d.root, "backup"), &format) < 0)
        return fail_bad(e, "it has no list of files");
    (void)mo_json_str_copy(mo_json_get(d.root, "program"), program,
                           sizeof(program));
    if (format > MO_BACKUP_FORMAT)
        return mo_fail(e, MO_EINVAL,
                       "the backup was made by a newer version: restore it "
                       "with that one (docs/upgrade.md)");
    return check_list(r, mo_json_get(d.root, "files"), e);
}

static bool has_part(const struct restore *r, const char *name)
{
    for (size_t i = 0; i < r->n; i++)
        if (strcmp(r->v[i].name, name) == 0)
            return true;
    return false;
}

/* The copy is brought to our version here, before anything is replaced. */
static int check_versions(const struct restore *r, struct mo_err *e)
{
    char path[PATH_MAX + sizeof(MO_BACKUP_DB) + 1];

    if (mo_state_record_check(r->stage_path, e) < 0)
        return e->code;
    (void)snprintf(path, sizeof(path), "%s/" MO_BACKUP_DB, r->stage_path);
    if (!has_part(r, MO_BACKUP_DB))
        return 0;
    if (!r->db[0])
        return mo_fail(e, MO_EPOLICY,
                       "the backup has a database, and the store is Redis");
    return mo_sqlite_file_adopt(path, e);
}

/* --- the present state -----------------------------------------------------
 */

typedef int each_fn(struct restore *r, int dir, const char *name,
                    struct mo_err *e);

static int each_file(struct restore *r, int at, each_fn *fn, struct mo_err *e)
{
    int fd = openat(at, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *d = fd < 0 ? NULL : fdopendir(fd);
    const struct dirent *one;
    int rc = 0;

    if (!d)
        return mo_fail_sys(e, "%s", r->cfg->store.dir);
    for (one = readdir(d); one && rc == 0; one = readdir(d)) {
        struct stat st;

        if (fstatat(at, one->d_name, &st, AT_SYMLINK_NOFOLLOW) == 0 &&
            !S_ISDIR(st.st_mode))
            rc = fn(r, at, one->d_name, e);
    }
    (void)closedir(d);
    return rc;
}

static int refuse_file(struct restore *r, int dir, const char *name,
                       struct mo_err *e)
{
    (void)dir;
    return mo_fail(e, MO_EEXISTS,
                   "%.120s is not empty (%.40s): --force moves its files aside",
                   r->cfg->store.dir, name);
}

/* A running instance holds its lock (session/instance.h), also one of a version
 * that does not lock the directory. */
static int refuse_running(struct restore *r, int dir, const char *name,
                          struct mo_err *e)
{
    mo_autofd int fd = -1;

    if (!mo_span_ends(mo_span_cstr(name), MO_SPAN(".lock")))
        return 0;
    fd = openat(dir, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    if (fd < 0 || flock(fd, LOCK_SH | LOCK_NB) == 0)
        return 0;
    return mo_fail(e, MO_EBUSY, "a server runs with %.120s: stop it first",
                   r->cfg->store.dir);
}

static int check_idle(struct restore *r, struct mo_err *e)
{
    mo_autofd int run =
        openat(r->dir, "run", O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

    return run < 0 ? 0 : each_file(r, run, refuse_running, e);
}

static int move_aside(struct restore *r, int dir, const char *name,
                      struct mo_err *e)
{
    return renameat(dir, name, r->stage, name) < 0 ? mo_fail_sys(e, "%s", name)
                                                   : 0;
}

/* --- putting it in place ----------------------------------------------------
 */

static int make_dir(struct restore *r, const char *name, int *fd,
                    struct mo_err *e)
{
    if (mkdirat(r->dir, name, 0700) < 0)
        return mo_fail_sys(e, "%s/%s", r->cfg->store.dir, name);
    *fd = openat(r->dir, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    return *fd < 0 ? mo_fail_sys(e, "%s", name) : 0;
}

static int clear_state(struct restore *r, bool force, struct mo_err *e)
{
    char name[64];
    int aside = -1, stage = r->stage, rc;

    if (each_file(r, r->dir, refuse_file, e) == 0)
        return 0;
    if (e->code != MO_EEXISTS || !force)
        return e->code;
    (void)snprintf(name, sizeof(name), "before-restore-%llu",
                   (unsigned long long)mo_wall_ms());
    /* in the log that is moved aside; the new one gets a row afterwards */
    rc = mo_backup_record(r->cfg, "replaced by a backup", r->file, e);
    if (rc == 0)
        rc = make_dir(r, name, &aside, e);
    r->stage = aside;
    if (rc == 0)
        rc = each_file(r, r->dir, move_aside, e);
    r->stage = stage;
    mo_close_fd(&aside);
    return rc;
}

static int place_files(struct restore *r, struct mo_err *e)
{
    for (size_t i = 0; i < r->n; i++) {
        const char *name = r->v[i].name;

        if (strcmp(name, MO_BACKUP_DB) != 0 &&
            renameat(r->stage, name, r->dir, name) < 0)
            return mo_fail_sys(e, "%s", name);
    }
    if (has_part(r, MO_BACKUP_DB) &&
        renameat(r->stage, MO_BACKUP_DB, AT_FDCWD, r->db) < 0)
        return mo_fail_sys(e, "%s", r->db);
    return fsync(r->dir) < 0 ? mo_fail_sys(e, "%s", r->cfg->store.dir) : 0;
}

static int remove_staged(struct restore *r, int dir, const char *name,
                         struct mo_err *e)
{
    (void)r;
    (void)e;
    (void)unlinkat(dir, name, 0);
    return 0;
}

static int restore_state(struct restore *r, bool force, struct mo_err *e)
{
    struct stat st;
    int rc = check_idle(r, e);

    if (rc == 0 && !force)
        rc = clear_state(r, false, e);
    if (rc == 0)
        rc = make_dir(r, strrchr(r->stage_path, '/') + 1, &r->stage, e);
    if (rc < 0)
        return rc;
    rc = unpack(r, e);
    if (rc == 0)
        rc = check_manifest(r, e);
    if (rc == 0)
        rc = check_versions(r, e);
    if (rc == 0)
        rc = check_idle(r, e);
    if (rc == 0)
        rc = clear_state(r, force, e);
    if (rc == 0 && r->db[0] && lstat(r->db, &st) == 0)
        rc = mo_fail(e, MO_EEXISTS, "%s is there: move it away", r->db);
    if (rc == 0)
        rc = place_files(r, e);
    (void)each_file(r, r->stage, remove_staged, &(struct mo_err){0});
    (void)unlinkat(r->dir, strrchr(r->stage_path, '/') + 1, AT_REMOVEDIR);
    return rc;
}

/* --- the command -----------------------------------------------------------
 */

static int open_all(struct restore *r, struct mo_err *e)
{
    int n = snprintf(r->stage_path, sizeof(r->stage_path), "%s/restore-%ld.tmp",
                     r->cfg->store.dir, (long)getpid());

    if (n < 0 || (size_t)n >= sizeof(r->stage_path))
        return mo_fail(e, MO_ETOOBIG, "store.dir is too long");
    if (mo_backup_db_path(r->cfg, r->db, sizeof(r->db), e) < 0)
        r->db[0] = '\0';
    r->in = open(r->file, O_RDONLY | O_CLOEXEC);
    if (r->in < 0)
        return mo_fail_sys(e, "%s", r->file);
    if (mo_file_mkdir(r->cfg->store.dir, e) < 0)
        return e->code;
    r->dir = open(r->cfg->store.dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (r->dir < 0)
        return mo_fail_sys(e, "%s", r->cfg->store.dir);
    return mo_state_replace(r->cfg->store.dir, &r->in_use, e);
}

static int run_restore(struct mo_cli *c, struct restore *r)
{
    struct mo_err e = {0};
    int rc = open_all(r, &e);

    if (rc == 0)
        rc = restore_state(r, mo_cli_has(c, "force"), &e);
    if (rc < 0)
        return mo_cli_error(c, MO_EXIT_FAIL, "not restored: %s", e.msg);
    if (mo_backup_record(r->cfg, "restored", r->file, &e) < 0)
        (void)dprintf(c->err, "this is not in the audit log: %s\n", e.msg);
    (void)dprintf(c->err, "%zu files restored to %s\n", r->n,
                  r->cfg->store.dir);
    return MO_EXIT_OK;
}

int mo_run_restore(struct mo_cli *c)
{
    mo_autoconfig struct mo_cmd_config cfg = {.now = NULL};
    struct restore *r;
    int rc = mo_cmd_load(c, &cfg);

    if (rc)
        return rc;
    r = mo_new(struct restore);
    if (!r)
        return mo_cli_error(c, MO_EXIT_FAIL, "out of memory");
    r->cfg = cfg.now;
    r->file = c->args[0];
    r->in = r->dir = r->stage = r->fd = r->in_use = -1;
    mo_buf_init(&r->manifest, MO_BACKUP_MANIFEST_MAX);
    rc = run_restore(c, r);
    mo_close_fd(&r->fd);
    mo_close_fd(&r->stage);
    mo_close_fd(&r->dir);
    mo_close_fd(&r->in_use);
    mo_close_fd(&r->in);
    mo_buf_fini(&r->manifest);
    mo_free(r);
    return rc;
}
