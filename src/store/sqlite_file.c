#include "store/sqlite_file.h"

#include <stdio.h>
#include <unistd.h>

#include "base/mem.h"
#include "store/sql.h"

#define BUSY_MS 5000

/* mo_sql_open() would create a missing file. */
static int open_file(struct mo_sql *q, struct mo_sqlite_lib *lib,
                     const char *path, struct mo_err *e)
{
    int rc;

    *q = (struct mo_sql){.f = NULL};
    if (access(path, F_OK) < 0)
        return mo_fail_sys(e, "store %s", path);
    rc = mo_sqlite_load(lib, e);
    if (rc < 0)
        return rc;
    return mo_sql_open(q, lib, path, BUSY_MS, e);
}

#define autosql MO_CLEANUP(mo_sql_close)

int mo_sqlite_file_copy(const char *path, const char *to, struct mo_err *e)
{
    struct mo_sqlite_lib lib;
    autosql struct mo_sql q = {.f = NULL};
    sqlite3_stmt *st = NULL;
    int rc = open_file(&q, &lib, path, e);

    if (rc < 0 || !q.f)
        return rc;
    if (q.f->sqlite3_prepare_v2(q.db, "VACUUM INTO ?", -1, &st, NULL) !=
            SQLITE_OK ||
        q.f->sqlite3_bind_text(st, 1, to, -1, SQLITE_STATIC) != SQLITE_OK ||
        q.f->sqlite3_step(st) != SQLITE_DONE)
        rc = mo_sql_fail(&q, e, "copy");
    (void)q.f->sqlite3_finalize(st);
    return rc;
}

int mo_sqlite_file_adopt(const char *path, struct mo_err *e)
{
    struct mo_sqlite_lib lib;
    autosql struct mo_sql q = {.f = NULL};
    bool checked = false;
    int rc = open_file(&q, &lib, path, e);

    if (rc == 0)
        rc = mo_sql_migrate(&q, path, &checked, e);
    if (rc == 0 && !checked)
        rc = mo_sql_check(&q, path, e);
    return rc;
}

/* --- what is in it ---------------------------------------------------------
 */

struct first_value {
    uint64_t number;
    char text[MO_STATE_RECORD_MAX + 1];
};

static int on_first(void *ctx, int n, char **v, char **names)
{
    struct first_value *f = ctx;

    (void)names;
    if (n < 1 || !v[0] || f->text[0])
        return 0;
    (void)snprintf(f->text, sizeof(f->text), "%s", v[0]);
    (void)mo_span_u64(mo_span_cstr(f->text), &f->number);
    return 0;
}

/* A table that an older file does not have counts as empty. */
static struct first_value ask(struct mo_sql *q, const char *sql)
{
    struct first_value f = {.number = 0};

    (void)q->f->sqlite3_exec(q->db, sql, on_first, &f, NULL);
    return f;
}

static void count_rows(struct mo_sql *q, struct mo_sqlite_facts *out)
{
    out->sessions = ask(q, "SELECT count(*) FROM session").number;
    out->conversations =
        ask(q, "SELECT count(*) FROM conversation WHERE at > 0").number;
    out->entries = ask(q, "SELECT count(*) FROM entry").number;
    out->calls = ask(q, "SELECT count(*) FROM call").number;
    out->audit = ask(q, "SELECT count(*) FROM audit").number;
    out->lost_calls =
        ask(q, "SELECT count(*) FROM call WHERE session NOT IN"
               " (SELECT session FROM conversation) AND session NOT IN"
               " (SELECT id FROM session)")
            .number;
    out->lost_entries =
        ask(q, "SELECT count(*) FROM entry AS e WHERE NOT EXISTS"
               " (SELECT 1 FROM conversation AS c WHERE c.session = e.session"
               " AND c.number = e.conversation)")
            .number;
    out->bytes =
        ask(q, "PRAGMA page_count").number * ask(q, "PRAGMA page_size").number;
}

static void read_version(struct mo_sql *q, struct mo_state_version *out)
{
    struct first_value record =
        ask(q, "SELECT doc FROM mark WHERE id = '" MO_STATE_MARK "'");

    if (mo_state_version_read(mo_span_cstr(record.text), out, NULL) < 0)
        (void)snprintf(out->program, sizeof(out->program), "not recorded");
    out->format = (unsigned)ask(q, "PRAGMA user_version").number;
    if (out->reads == 0)
        out->reads = out->format;
}

struct peek {
    void (*row)(void *ctx, struct mo_span id, struct mo_span doc);
    void *ctx;
};

static int on_mark(void *ctx, int n, char **v, char **names)
{
    const struct peek *k = ctx;

    (void)names;
    if (n == 2 && v[0] && v[1])
        k->row(k->ctx, mo_span_cstr(v[0]), mo_span_cstr(v[1]));
    return 0;
}

int mo_sqlite_file_peek(const char *path, const char *prefix,
                        struct mo_state_version *out,
                        void (*row)(void *ctx, struct mo_span id,
                                    struct mo_span doc),
                        void *ctx, struct mo_err *e)
{
    struct mo_sqlite_lib lib;
    autosql struct mo_sql q = {.f = NULL};
    struct peek k = {row, ctx};
    char sql[160];
    int rc = open_file(&q, &lib, path, e);

    *out = (struct mo_state_version){.format = 0};
    if (rc < 0 || !q.f)
        return rc;
    read_version(&q, out);
    (void)snprintf(sql, sizeof(sql),
                   "SELECT id, doc FROM mark WHERE id GLOB '%.40s*' LIMIT 100",
                   prefix);
    (void)lib.sqlite3_exec(q.db, sql, on_mark, &k, NULL);
    return mo_state_version_judge(out, MO_SQL_VERSION, path, e);
}

int mo_sqlite_file_check(const char *path, struct mo_sqlite_facts *out,
                         struct mo_err *e)
{
    struct mo_sqlite_lib lib;
    autosql struct mo_sql q = {.f = NULL};
    struct first_value whole;
    int rc = open_file(&q, &lib, path, e);

    *out = (struct mo_sqlite_facts){.bytes = 0};
    if (rc < 0 || !q.f)
        return rc;
    read_version(&q, &out->version);
    whole = ask(&q, "PRAGMA integrity_check(1)");
    if (strcmp(whole.text, "ok") != 0)
        (void)mo_fail(&out->why, MO_EIO, "the database is damaged: %.120s",
                      whole.text[0] ? whole.text : lib.sqlite3_errmsg(q.db));
    else
        (void)mo_state_version_judge(&out->version, MO_SQL_VERSION, path,
                                     &out->why);
    count_rows(&q, out);
    return 0;
}
