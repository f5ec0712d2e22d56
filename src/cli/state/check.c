/* state check - versions, sizes and damage of the state. Reads only. */
#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "audit/audit_file.h"
#include "cli/state/archive.h"
#include "codec/kept_files.h"
#include "config/state_record.h"
#include "secrets/key.h"
#include "store/sqlite_file.h"

struct check {
    struct mo_buf text;
    struct mo_jw w; /* JSON */
    struct mo_buf json;
    unsigned wrong;
};

static void note_wrong(struct check *k, const char *what, const char *why)
{
    k->wrong++;
    (void)mo_buf_printf(&k->text, "WRONG: %s: %s\n", what, why);
    mo_jw_obj(&k->w);
    mo_jw_member_cstr(&k->w, "what", what);
    mo_jw_member_cstr(&k->w, "wrong", why);
    mo_jw_end(&k->w);
}

static void check_dir(struct check *k, const struct mo_config *cfg)
{
    struct mo_state_version v;
    struct mo_err e = {0};

    if (mo_state_record_read(cfg->store.dir, &v, &e) < 0 ||
        mo_state_record_check(cfg->store.dir, &e) < 0) {
        note_wrong(k, "state directory", e.msg);
        return;
    }
    (void)mo_buf_printf(&k->text,
                        "state directory: %s, format %u, version %s\n",
                        cfg->store.dir, v.format, v.program);
    mo_jw_obj(&k->w);
    mo_jw_member_cstr(&k->w, "what", "state directory");
    mo_jw_member_cstr(&k->w, "dir", cfg->store.dir);
    mo_jw_member_u64(&k->w, "format", v.format);
    mo_jw_member_u64(&k->w, "reads", v.reads);
    mo_jw_member_cstr(&k->w, "program", v.program);
    mo_jw_end(&k->w);
}

static void print_database(struct check *k, const struct mo_sqlite_facts *f)
{
    const struct {
        const char *name;
        uint64_t n;
    } rows[] = {
        {"bytes", f->bytes},
        {"sessions", f->sessions},
        {"conversations", f->conversations},
        {"entries", f->entries},
        {"calls", f->calls},
        {"audit", f->audit},
    };

    (void)mo_buf_printf(&k->text, "database: format %u, version %s",
                        f->version.format, f->version.program);
    mo_jw_obj(&k->w);
    mo_jw_member_cstr(&k->w, "what", "database");
    mo_jw_member_u64(&k->w, "format", f->version.format);
    mo_jw_member_u64(&k->w, "reads", f->version.reads);
    mo_jw_member_cstr(&k->w, "program", f->version.program);
    for (size_t i = 0; i < MO_COUNT(rows); i++) {
        (void)mo_buf_printf(&k->text, ", %s %llu", rows[i].name,
                            (unsigned long long)rows[i].n);
        mo_jw_member_u64(&k->w, rows[i].name, rows[i].n);
    }
    mo_jw_end(&k->w);
    (void)mo_buf_putc(&k->text, '\n');
}

static void check_database(struct check *k, const struct mo_config *cfg)
{
    struct mo_sqlite_facts f;
    char path[PATH_MAX], lost[96];
    struct mo_err e = {0};

    if (mo_backup_db_path(cfg, path, sizeof(path), &e) < 0) {
        (void)mo_buf_puts(&k->text, "database: the store is Redis, which is "
                                    "not checked here\n");
        return;
    }
    if (access(path, F_OK) < 0) {
        (void)mo_buf_puts(&k->text, "database: none yet\n");
        return;
    }
    if (mo_sqlite_file_check(path, &f, &e) < 0) {
        note_wrong(k, "database", e.msg);
        return;
    }
    print_database(k, &f);
    if (f.why.code)
        note_wrong(k, "database", f.why.msg);
    (void)snprintf(lost, sizeof(lost),
                   "%llu calls and %llu entries belong to no conversation",
                   (unsigned long long)f.lost_calls,
                   (unsigned long long)f.lost_entries);
    if (f.lost_calls || f.lost_entries)
        note_wrong(k, "database", lost);
}

static void check_audit(struct check *k, const struct mo_config *cfg)
{
    struct mo_audit_file_report r;
    char path[PATH_MAX];
    struct mo_err e = {0};
    int n =
        snprintf(path, sizeof(path), "%s/" MO_AUDIT_FILE_FILE, cfg->store.dir);

    if (n < 0 || (size_t)n >= sizeof(path) || access(path, F_OK) < 0) {
        (void)mo_buf_puts(&k->text, "audit log: none yet\n");
        return;
    }
    if (mo_audit_file_verify(cfg->store.dir, NULL, &r, &e) < 0) {
        note_wrong(k, "audit log", e.msg);
    } else if (!r.ok) {
        note_wrong(k, "audit log", r.why.msg);
    } else {
        (void)mo_buf_printf(&k->text, "audit log: %llu rows in %u files\n",
                            (unsigned long long)r.rows, r.files);
        mo_jw_obj(&k->w);
        mo_jw_member_cstr(&k->w, "what", "audit log");
        mo_jw_member_u64(&k->w, "rows", r.rows);
        mo_jw_member_u64(&k->w, "files", r.files);
        mo_jw_end(&k->w);
    }
}

static void check_secrets(struct check *k, const struct mo_config *cfg)
{
    struct mo_secrets *s = NULL;
    struct mo_err e = {0};

    if (mo_secrets_for(cfg, false, &s, &e) < 0) {
        note_wrong(k, "secrets", e.msg);
        return;
    }
    (void)mo_buf_printf(&k->text, "secrets: %zu\n", mo_secrets_count(s));
    mo_jw_obj(&k->w);
    mo_jw_member_cstr(&k->w, "what", "secrets");
    mo_jw_member_u64(&k->w, "count", mo_secrets_count(s));
    mo_jw_end(&k->w);
    mo_secrets_close(s);
}

/* A file of kept files starts with its head and ends with its last record. */
static bool is_whole(int dir, const char *name, off_t *size)
{
    mo_autofd int fd = openat(dir, name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
    char head[MO_KEPT_HEAD], last = 0;
    ssize_t n = fd < 0 ? -1 : pread(fd, head, sizeof(head), 0);
    struct mo_span in = mo_span(head, n < 0 ? 0 : (size_t)n);
    struct mo_kept_head h;
    struct stat st;

    *size = 0;
    if (n < 0 || fstat(fd, &st) < 0)
        return false;
    *size = st.st_size;
    return mo_kept_take_head(&in, &h, NULL) == 1 &&
           pread(fd, &last, 1, st.st_size - 1) == 1 && last == MO_KEPT_END;
}

/* Workspaces of sessions (launcher/kept.h). Those that no session names are
 * removed by the janitor of a server. */
static void check_workspaces(struct check *k, const struct mo_config *cfg)
{
    uint64_t n = 0, bytes = 0;
    char path[PATH_MAX];
    DIR *d = NULL;

    (void)snprintf(path, sizeof(path), "%s/boxes", cfg->store.dir);
    d = opendir(path);
    while (d) {
        struct dirent *en = readdir(d);
        off_t size;

        if (!en)
            break;
        if (!mo_span_ends(mo_span_cstr(en->d_name), MO_SPAN(".files")))
            continue;
        if (!is_whole(dirfd(d), en->d_name, &size))
            note_wrong(k, en->d_name, "the kept files are damaged");
        n++;
        bytes += (uint64_t)size;
    }
    if (d)
        closedir(d);
    (void)mo_buf_printf(&k->text, "kept workspaces: %llu, %llu bytes\n",
                        (unsigned long long)n, (unsigned long long)bytes);
    mo_jw_obj(&k->w);
    mo_jw_member_cstr(&k->w, "what", "kept workspaces");
    mo_jw_member_u64(&k->w, "count", n);
    mo_jw_member_u64(&k->w, "bytes", bytes);
    mo_jw_end(&k->w);
}

int mo_run_state_check(struct mo_cli *c)
{
    mo_autoconfig struct mo_cmd_config cfg = {.now = NULL};
    struct check k = {.wrong = 0};
    int rc = mo_cmd_load(c, &cfg);

    if (rc)
        return rc;
    mo_buf_init(&k.text, MO_CMD_TEXT_MAX);
    mo_buf_init(&k.json, MO_CMD_TEXT_MAX);
    k.w = mo_jw_array(&k.json);
    check_dir(&k, cfg.now);
    check_database(&k, cfg.now);
    check_audit(&k, cfg.now);
    check_secrets(&k, cfg.now);
    check_workspaces(&k, cfg.now);
    mo_jw_end(&k.w);
    (void)mo_buf_puts(&k.text, k.wrong ? "" : "ok\n");
    rc = mo_cmd_print(c, mo_cli_has(c, "json") ? &k.json : &k.text);
    mo_buf_fini(&k.text);
    mo_buf_fini(&k.json);
    return rc == 0 && k.wrong ? MO_EXIT_FAIL : rc;
}
