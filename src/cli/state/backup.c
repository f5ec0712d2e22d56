/* backup - writes the state to one file while servers go on.
 *
 * The database is copied first, as one snapshot; then the audit log up to its
 * head, and the other files. So the log has every row that the copied database
 * knows of. Small files are replaced by renaming, so an open one is whole. The
 * audit log is locked while its files are opened and their sizes are taken, not
 * while they are copied: it only grows. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "audit/audit.h"
#include "audit/audit_file.h"
#include "base/file.h"
#include "cli/state/archive.h"
#include "codec/sha256.h"
#include "codec/tar.h"
#include "config/state_record.h"
#include "store/sqlite_file.h"

#define PIECE ((size_t)256 * 1024)

struct item {
    char name[MO_BACKUP_NAME_MAX];
    int fd;
    uint64_t size;
};

struct backup {
    const struct mo_config *cfg;
    const char *db; /* path; NULL: it is left out */
    bool secrets;
    int dir, out;
    struct item v[MO_BACKUP_FILES_MAX];
    size_t n;
    struct mo_buf list; /* rows of the manifest */
};

static void backup_fini(struct backup *k)
{
    for (size_t i = 0; i < k->n; i++)
        mo_close_fd(&k->v[i].fd);
    mo_close_fd(&k->dir);
    mo_buf_fini(&k->list);
}

/* --- shared with restore ---------------------------------------------------
 */

bool mo_backup_name_ok(struct mo_span name)
{
    return name.n > 0 && name.n < MO_BACKUP_NAME_MAX && name.p[0] != '.' &&
           mo_span_only(name, MO_ALNUM "_.-");
}

int mo_backup_db_path(const struct mo_config *cfg, char *out, size_t size,
                      struct mo_err *e)
{
    struct mo_span file = mo_span_cstr(cfg->store.url);
    int n;

    if (!mo_span_strip(&file, MO_SPAN("sqlite:")) || file.n == 0)
        return mo_fail(e, MO_EPOLICY,
                       "the store is no SQLite file: back Redis up by its own "
                       "means (docs/backup.md), and the files of the state "
                       "directory with --no-store");
    n = snprintf(out, size, "%s%s%s", file.p[0] == '/' ? "" : cfg->store.dir,
                 file.p[0] == '/' ? "" : "/", file.p);
    return n < 0 || (size_t)n >= size
               ? mo_fail(e, MO_ETOOBIG, "store.url is too long")
               : 0;
}

int mo_backup_record(const struct mo_config *cfg, const char *outcome,
                     const char *file, struct mo_err *e)
{
    char who[32];
    struct mo_audit_row row = {
        .event = "kind",
        .subject = MO_SPAN("state"),
        .path = mo_span_cstr(file),
        .outcome = outcome,
        .by = "command",
    };

    (void)snprintf(who, sizeof(who), "uid %ld", (long)getuid());
    row.who = mo_span_cstr(who);
    return mo_audit_first_now(cfg, &row, e);
}

/* --- which files -----------------------------------------------------------
 */

static bool is_any(struct mo_span s, const char *const *v, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (mo_span_is(s, v[i]))
            return true;
    return false;
}

/* Without --secrets only files that are known to have none. */
static bool is_wanted(const struct backup *k, struct mo_span name)
{
    static const char *const plain[] = {MO_STATE_FILE, "pins.json",
                                        "rules.json", MO_AUDIT_FILE_KEY,
                                        MO_AUDIT_FILE_FILE};

    if (!mo_backup_name_ok(name) || mo_span_is(name, MO_BACKUP_MANIFEST) ||
        mo_span_is(name, MO_BACKUP_DB))
        return false;
    if (is_any(name, plain, MO_COUNT(plain)) ||
        (mo_span_starts(name, MO_SPAN("audit-")) &&
         mo_span_ends(name, MO_SPAN(".jsonl"))))
        return true;
    return k->secrets &&
           (mo_span_ends(name, MO_SPAN(".json")) ||
            mo_span_ends(name, MO_SPAN(".bin")) ||
            mo_span_ends(name, MO_SPAN(".key")) || mo_span_is(name, "token"));
}

static int add_item(struct backup *k, const char *name, int fd,
                    struct mo_err *e)
{
    struct item *it = &k->v[k->n];
    struct stat st;

    if (fd < 0 || fstat(fd, &st) < 0)
        return mo_fail_sys(e, "%s", name);
    if (k->n == MO_BACKUP_FILES_MAX || !S_ISREG(st.st_mode)) {
        (void)close(fd);
        return S_ISREG(st.st_mode)
                   ? mo_fail(e, MO_ETOOBIG, "more than %d files",
                             MO_BACKUP_FILES_MAX)
                   : 0;
    }
    (void)snprintf(it->name, sizeof(it->name), "%s", name);
    it->fd = fd;
    it->size = (uint64_t)st.st_size;
    k->n++;
    return 0;
}

static int open_wanted(struct backup *k, struct mo_err *e)
{
    int fd = openat(k->dir, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *d = fd < 0 ? NULL : fdopendir(fd);
    const struct dirent *one;
    int rc = 0;

    if (!d)
        return mo_fail_sys(e, "%s", k->cfg->store.dir);
    for (one = readdir(d); one && rc == 0; one = readdir(d)) {
        int file;

        if (!is_wanted(k, mo_span_cstr(one->d_name)))
            continue;
        file = openat(k->dir, one->d_name,
                      O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
        if (file < 0 && errno == ENOENT)
            continue; /* replaced or rotated meanwhile */
        rc = add_item(k, one->d_name, file, e);
    }
    (void)closedir(d);
    return rc;
}

/* The head is changed in place: its bytes are taken under the lock. */
static int add_head(struct backup *k, int head, struct mo_err *e)
{
    char text[4096];
    ssize_t n = pread(head, text, sizeof(text), 0);
    int fd = memfd_create("audit.head", MFD_CLOEXEC);

    if (n < 0 || fd < 0 || write(fd, text, (size_t)n) != n) {
        mo_close_fd(&fd);
        return mo_fail_sys(e, MO_AUDIT_FILE_HEAD);
    }
    return add_item(k, MO_AUDIT_FILE_HEAD, fd, e);
}

static int open_files(struct backup *k, struct mo_err *e)
{
    mo_autofd int head =
        openat(k->dir, MO_AUDIT_FILE_HEAD, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
    int rc;

    if (head < 0 && errno != ENOENT)
        return mo_fail_sys(e, MO_AUDIT_FILE_HEAD);
    if (head >= 0 && flock(head, LOCK_SH) < 0)
        return mo_fail_sys(e, "lock " MO_AUDIT_FILE_HEAD);
    rc = open_wanted(k, e);
    if (rc == 0 && head >= 0)
        rc = add_head(k, head, e);
    return rc;
}

/* --- writing ---------------------------------------------------------------
 */

static int copy_bytes(struct backup *k, const struct item *it,
                      char hex[MO_SHA256_HEX + 1], struct mo_err *e)
{
    mo_autofree char *piece = mo_alloc(PIECE);
    unsigned char sum[MO_SHA256_LEN];
    struct mo_sha256 s;

    if (!piece)
        return mo_fail(e, MO_ENOMEM, "out of memory");
    mo_sha256_init(&s);
    for (uint64_t at = 0; at < it->size;) {
        size_t want = it->size - at < PIECE ? (size_t)(it->size - at) : PIECE;
        ssize_t n = pread(it->fd, piece, want, (off_t)at);

        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return mo_fail(e, MO_EIO, "%s cannot be read to its end", it->name);
        mo_sha256_put(&s, piece, (size_t)n);
        if (mo_file_write_all(k->out, mo_span(piece, (size_t)n), e) < 0)
            return e->code;
        at += (uint64_t)n;
    }
    mo_sha256_end(&s, sum);
    for (size_t i = 0; i < sizeof(sum); i++)
        (void)snprintf(hex + 2 * i, 3, "%02x", sum[i]);
    return 0;
}

static int write_item(struct backup *k, const struct item *it, struct mo_err *e)
{
    static const char zeros[MO_TAR_BLOCK];
    mo_autobuf struct mo_buf head = {.max = 2 * MO_TAR_BLOCK};
    const struct mo_tar_entry t = {
        .kind = MO_TAR_FILE, .path = mo_span_cstr(it->name), .mode = 0600};
    char hex[MO_SHA256_HEX + 1] = "";

    if (mo_tar_put_head(&head, &t, it->size) < 0)
        return mo_fail(e, MO_ETOOBIG, "%s is too large for a tar", it->name);
    if (mo_file_write_all(k->out, mo_buf_view(&head), e) < 0 ||
        copy_bytes(k, it, hex, e) < 0 ||
        mo_file_write_all(k->out, mo_span(zeros, mo_tar_padding(it->size)), e) <
            0)
        return e->code;
    (void)mo_buf_printf(
        &k->list, "%s{\"name\":\"%s\",\"size\":%llu,\"sha256\":\"%s\"}",
        k->list.len ? "," : "", it->name, (unsigned long long)it->size, hex);
    return 0;
}

static int write_end(struct backup *k, struct mo_err *e)
{
    mo_autobuf struct mo_buf m = {.max = MO_BACKUP_MANIFEST_MAX};
    mo_autobuf struct mo_buf b = {.max = 2 * MO_BACKUP_MANIFEST_MAX};
    const struct mo_tar_entry t = {
        .kind = MO_TAR_FILE, .path = MO_SPAN(MO_BACKUP_MANIFEST), .mode = 0600};

    (void)mo_buf_printf(&m,
                        "{\"backup\":%d,\"program\":\"" MO_VERSION
                        "\",\"secrets\":%s,\"files\":[",
                        MO_BACKUP_FORMAT, k->secrets ? "true" : "false");
    (void)mo_buf_span(&m, mo_buf_view(&k->list));
    (void)mo_buf_puts(&m, "]}\n");
    if (mo_buf_err(&m) || mo_buf_err(&k->list) ||
        mo_tar_put(&b, &t, mo_buf_view(&m)) < 0 || mo_tar_put_end(&b) < 0)
        return mo_fail(e, MO_ETOOBIG, "the list of files is too long");
    return mo_file_write_all(k->out, mo_buf_view(&b), e);
}

/* A snapshot beside the other files, without a name as soon as it is open. */
static int add_database(struct backup *k, struct mo_err *e)
{
    char path[PATH_MAX];
    int n = snprintf(path, sizeof(path), "%s/backup-%ld.tmp", k->cfg->store.dir,
                     (long)getpid());
    int fd, rc;

    if (!k->db || access(k->db, F_OK) < 0)
        return 0;
    if (n < 0 || (size_t)n >= sizeof(path))
        return mo_fail(e, MO_ETOOBIG, "store.dir is too long");
    fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (fd < 0)
        return mo_fail_sys(e, "%s", path);
    rc = mo_sqlite_file_copy(k->db, path, e);
    (void)unlink(path);
    if (rc == 0)
        return add_item(k, MO_BACKUP_DB, fd, e);
    (void)close(fd);
    return rc;
}

static int write_backup(struct backup *k, struct mo_err *e)
{
    int rc;

    k->dir = open(k->cfg->store.dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (k->dir < 0)
        return mo_fail_sys(e, "%s", k->cfg->store.dir);
    rc = add_database(k, e);
    if (rc == 0)
        rc = open_files(k, e);
    for (size_t i = 0; rc == 0 && i < k->n; i++)
        rc = write_item(k, &k->v[i], e);
    return rc == 0 ? write_end(k, e) : rc;
}

/* --- the command -----------------------------------------------------------
 */

static int run_backup(struct mo_cli *c, struct backup *k, const char *file)
{
    bool to_stdout = strcmp(file, "-") == 0;
    struct mo_err e = {0};
    int rc = mo_backup_record(
        k->cfg, k->secrets ? "backup with secrets" : "backup", file, &e);

    k->out = to_stdout
                 ? c->out
                 : open(file, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (rc == 0 && k->out < 0)
        rc = mo_fail_sys(&e, "%s", file);
    else if (rc == 0)
        rc = write_backup(k, &e);
    if (rc == 0 && !to_stdout && fsync(k->out) < 0)
        rc = mo_fail_sys(&e, "%s", file);
    if (!to_stdout && k->out >= 0) {
        if (rc < 0)
            (void)unlink(file);
        mo_close_fd(&k->out);
    }
    if (rc < 0)
        return mo_cli_error(c, MO_EXIT_FAIL, "no backup: %s", e.msg);
    (void)dprintf(c->err, "%zu files, %s\n", k->n,
                  k->secrets ? "with secrets and their key: keep the file safe"
                             : "without secrets; --secrets takes them along");
    return MO_EXIT_OK;
}

int mo_run_backup(struct mo_cli *c)
{
    mo_autoconfig struct mo_cmd_config cfg = {.now = NULL};
    char db[PATH_MAX];
    struct backup *k;
    struct mo_err e = {0};
    int rc = mo_cmd_load(c, &cfg);

    if (rc)
        return rc;
    if (mo_cli_has(c, "secrets") && mo_cli_has(c, "no-secrets"))
        return mo_cli_error(c, MO_EXIT_USAGE,
                            "--secrets and --no-secrets exclude each other");
    if (!mo_cli_has(c, "no-store") &&
        mo_backup_db_path(cfg.now, db, sizeof(db), &e) < 0)
        return mo_cli_error(c, MO_EXIT_CONFIG, "%s", e.msg);
    if (access(cfg.now->store.dir, F_OK) < 0)
        return mo_cli_error(c, MO_EXIT_FAIL, "there is no state in %s",
                            cfg.now->store.dir);
    k = mo_new(struct backup);
    if (!k)
        return mo_cli_error(c, MO_EXIT_FAIL, "out of memory");
    k->cfg = cfg.now;
    k->db = mo_cli_has(c, "no-store") ? NULL : db;
    k->secrets = mo_cli_has(c, "secrets");
    k->dir = k->out = -1;
    mo_buf_init(&k->list, MO_BACKUP_MANIFEST_MAX);
    rc = run_backup(c, k, c->args[0]);
    backup_fini(k);
    mo_free(k);
    return rc;
}
