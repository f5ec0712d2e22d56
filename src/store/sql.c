#include "store/sql.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/mem.h"
#include "codec/state_version.h"

#define PROGRESS_STEPS 20000 /* virtual machine steps: about a millisecond */
#define CHECK_NOW_MAX  256   /* pages checked at opening: about a millisecond */
#define MARKS_SINCE    3     /* format with the table of marks */

/* doc columns are JSON as the rooms above wrote it. Times are wall ms, except
 * lease.until: ms of the monotonic clock of the boot whose id is beside it, so
 * that neither a changed clock nor a reboot leaves a lease behind.
 *
 * conversation.at is the time of its last entry; 0: it was swept and only its
 * number is kept, because the session still exists.
 *
 * indexed.n, in its one row, is the mark: entries up to it are in `place` (by
 * which a conversation finds them) and in entry_text; later ones are not yet.
 * It is always the n of an existing entry, or 0. So a new entry, whose n is
 * one more than the largest, is behind the mark even if its n was used before.
 * Rows behind the mark must not be deleted from entry_text: that would damage
 * the index.
 *
 * Row i migrates version i to version i + 1. Never change a row. */
static const char *const migrations[MO_SQL_VERSION] = {
    "CREATE TABLE session (id TEXT PRIMARY KEY, at INTEGER NOT NULL,"
    " doc TEXT NOT NULL);"
    "CREATE INDEX session_at ON session (at, id);"
    "CREATE TABLE conversation (session TEXT NOT NULL,"
    " number INTEGER NOT NULL, seq INTEGER NOT NULL, at INTEGER NOT NULL,"
    " PRIMARY KEY (session, number)) WITHOUT ROWID;"
    "CREATE INDEX conversation_at ON conversation (at) WHERE at > 0;"
    "CREATE TABLE entry (n INTEGER PRIMARY KEY, session TEXT NOT NULL,"
    " conversation INTEGER NOT NULL, seq INTEGER NOT NULL,"
    " at INTEGER NOT NULL, doc TEXT NOT NULL, text TEXT NOT NULL);"
    "CREATE UNIQUE INDEX entry_place ON entry (session, conversation, seq);"
    "CREATE VIRTUAL TABLE entry_text USING fts5 (text, content='entry',"
    " content_rowid='n', tokenize='unicode61 remove_diacritics 2');"
    "CREATE TRIGGER entry_in AFTER INSERT ON entry WHEN new.text <> '' BEGIN"
    " INSERT INTO entry_text (rowid, text) VALUES (new.n, new.text); END;"
    "CREATE TRIGGER entry_out AFTER DELETE ON entry WHEN old.text <> '' BEGIN"
    " INSERT INTO entry_text (entry_text, rowid, text)"
    " VALUES ('delete', old.n, old.text); END;"
    "CREATE TABLE call (n INTEGER PRIMARY KEY, session TEXT NOT NULL,"
    " id TEXT NOT NULL, state INTEGER NOT NULL, at INTEGER NOT NULL,"
    " doc TEXT NOT NULL, UNIQUE (session, id));"
    "CREATE INDEX call_at ON call (at);"
    "CREATE TABLE audit (n INTEGER PRIMARY KEY, session TEXT NOT NULL,"
    " at INTEGER NOT NULL, doc TEXT NOT NULL);"
    "CREATE INDEX audit_at ON audit (at, n);"
    "CREATE INDEX audit_session ON audit (session, at, n);"
    "CREATE TABLE lease (name TEXT PRIMARY KEY, fence INTEGER NOT NULL,"
    " token TEXT NOT NULL, owner TEXT NOT NULL, boot TEXT NOT NULL,"
    " until INTEGER NOT NULL, at INTEGER NOT NULL) WITHOUT ROWID;",
    /* 2: entries are indexed behind the append (sqlite_index.c) */
    "DROP TRIGGER entry_in;"
    "DROP TRIGGER entry_out;"
    "DROP INDEX conversation_at;"
    "DROP INDEX entry_place;"
    "CREATE TABLE place (session TEXT NOT NULL,"
    " conversation INTEGER NOT NULL, seq INTEGER NOT NULL,"
    " n INTEGER NOT NULL, PRIMARY KEY (session, conversation, seq))"
    " WITHOUT ROWID;"
    "INSERT INTO place (session, conversation, seq, n)"
    " SELECT session, conversation, seq, n FROM entry ORDER BY 1, 2, 3;"
    "CREATE TABLE indexed (n INTEGER NOT NULL);"
    "INSERT INTO indexed (n) SELECT coalesce(max(n), 0) FROM entry;"
    "CREATE TRIGGER entry_out AFTER DELETE ON entry"
    " WHEN old.n <= (SELECT n FROM indexed) BEGIN"
    " DELETE FROM place WHERE session = old.session"
    " AND conversation = old.conversation AND seq = old.seq;"
    " INSERT INTO entry_text (entry_text, rowid, text)"
    " SELECT 'delete', old.n, old.text WHERE old.text <> '';"
    " UPDATE indexed SET n = (SELECT coalesce(max(n), 0) FROM entry"
    " WHERE n < old.n) WHERE n = old.n; END;",
    /* 3: marks */
    "CREATE TABLE mark (id TEXT PRIMARY KEY, doc TEXT NOT NULL) WITHOUT ROWID;",
    /* 4: sums of a day; day: days since 1970 */
    ("CREATE TABLE daily (day INTEGER NOT NULL, name TEXT NOT NULL,"
     " n INTEGER NOT NULL, PRIMARY KEY (day, name)) WITHOUT ROWID;"),
    /* 5: who may read a session */
    "ALTER TABLE session ADD COLUMN shares TEXT NOT NULL DEFAULT '';",
#ifdef MO_NEXT_MIGRATION
    MO_NEXT_MIGRATION, /* of a test */
#endif
};

static const char *const statements[MO_SQL_N] = {
#define TEXT(name, text) [MO_SQL_##name] = (text),
    MO_SQL_STATEMENTS(TEXT)
#undef TEXT
};

int mo_sqlite_load(struct mo_sqlite_lib *f, struct mo_err *e)
{
#define ROW(fn) MO_DSO_SYM(struct mo_sqlite_lib, fn),
    static const struct mo_dso_sym syms[] = {MO_SQLITE_FUNCTIONS(ROW)};
#undef ROW

    int rc = mo_dso_load("libsqlite3.so.0", "libsqlite3-0", syms,
                         MO_COUNT(syms), f, e);

    /* Memory statistics cost a lock per allocation. The call is refused once
     * the library runs: then it was made before. */
    if (rc == 0)
        (void)f->sqlite3_config(SQLITE_CONFIG_MEMSTATUS, 0);
    return rc;
}

/* --- errors -------------------------------------------------------------- */

int mo_sql_fail(const struct mo_sql *q, struct mo_err *e, const char *what)
{
    int code = q->f->sqlite3_extended_errcode(q->db);
    int rc = mo_fail(e, MO_EUNAVAIL, "store: %s: %s", what,
                     q->f->sqlite3_errmsg(q->db));

    if (e && (code & 0xff) == SQLITE_INTERRUPT)
        return mo_fail(e, MO_EUNAVAIL, "store: %s: timeout", what);
    if (e && (code & 0xff) == SQLITE_BUSY)
        return mo_fail(e, MO_EUNAVAIL,
                       "store: %s: another process keeps the database busy",
                       what);
    if (e && (code & 0xff) == SQLITE_CORRUPT)
        return mo_fail(e, MO_EUNAVAIL,
                       "store: %s: the database is damaged: stop the program "
                       "and put a backup in its place",
                       what);
    if (e)
        e->sys = q->f->sqlite3_system_errno(q->db);
    return rc;
}

/* --- statements ---------------------------------------------------------- */

static sqlite3_stmt *prepare_statement(struct mo_sql *q, enum mo_sql_id id,
                                       struct mo_err *e)
{
    if (q->st[id] || q->f->sqlite3_prepare_v2(q->db, statements[id], -1,
                                              &q->st[id], NULL) == SQLITE_OK)
        return q->st[id];
    return mo_null(mo_sql_fail(q, e, statements[id]));
}

static int bind_values(const struct mo_sql *q, sqlite3_stmt *st,
                       const char *fmt, va_list ap)
{
    int rc = SQLITE_OK;

    for (int i = 0; fmt[i] && rc == SQLITE_OK; i++) {
        if (fmt[i] == 't') {
            struct mo_span s = va_arg(ap, struct mo_span);

            rc = q->f->sqlite3_bind_text(st, i + 1, s.n ? s.p : "", (int)s.n,
                                         SQLITE_STATIC);
        } else {
            rc = q->f->sqlite3_bind_int64(st, i + 1, va_arg(ap, int64_t));
        }
    }
    return rc;
}

sqlite3_stmt *mo_sql_start(struct mo_sql *q, enum mo_sql_id id,
                           struct mo_err *e, const char *fmt, ...)
{
    sqlite3_stmt *st = prepare_statement(q, id, e);
    va_list ap;
    int rc;

    va_start(ap, fmt);
    rc = st ? bind_values(q, st, fmt, ap) : SQLITE_OK;
    va_end(ap);
    return rc == SQLITE_OK ? st : mo_null(mo_sql_fail(q, e, statements[id]));
}

int mo_sql_step(struct mo_sql *q, sqlite3_stmt *st, struct mo_err *e)
{
    int rc;

    if (!st)
        return MO_EUNAVAIL;
    rc = q->f->sqlite3_step(st);
    if (rc == SQLITE_ROW)
        return 1;
    return rc == SQLITE_DONE ? 0 : mo_sql_fail(q, e, "sqlite");
}

/* Reset returns the error of the failed step again; it was reported there. */
void mo_sql_end(struct mo_sql *q, sqlite3_stmt *st)
{
    if (st)
        (void)q->f->sqlite3_reset(st);
}

int mo_sql_run(struct mo_sql *q, sqlite3_stmt *st, struct mo_err *e)
{
    int rc = mo_sql_step(q, st, e);

    if (rc >= 0)
        rc = q->f->sqlite3_changes(q->db);
    mo_sql_end(q, st);
    return rc;
}

int mo_sql_run_number(struct mo_sql *q, sqlite3_stmt *st, int64_t *out,
                      struct mo_err *e)
{
    int rc = mo_sql_step(q, st, e);

    if (rc == 1) {
        *out = mo_sql_int(q, st, 0);
        /* INSERT ... RETURNING takes effect when the statement is done. */
        if (mo_sql_step(q, st, e) < 0)
            rc = MO_EUNAVAIL;
    }
    mo_sql_end(q, st);
    return rc;
}

struct mo_span mo_sql_text(struct mo_sql *q, sqlite3_stmt *st, int col)
{
    const char *p = (const char *)q->f->sqlite3_column_text(st, col);
    int n = q->f->sqlite3_column_bytes(st, col);

    return p ? mo_span(p, (size_t)n) : MO_SPAN("");
}

int64_t mo_sql_int(struct mo_sql *q, sqlite3_stmt *st, int col)
{
    return q->f->sqlite3_column_int64(st, col);
}

/* --- opening ------------------------------------------------------------- */

/* Creates the file with mode 0600; SQLite gives its companions (-wal, -shm)
 * the same permissions. A file that exists is never opened here: closing the
 * descriptor would drop the locks of every other connection of this process,
 * and the next process to close would remove the -wal that we still use. */
static int make_file(const char *path, struct mo_err *e)
{
    mo_autofd int fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    struct stat st;

    if (fd >= 0)
        return 0;
    if (errno != EEXIST || stat(path, &st) < 0)
        return mo_fail_sys(e, "store %s", path);
    if (!S_ISREG(st.st_mode))
        return mo_fail(e, MO_EINVAL, "store %s: not a file", path);
    if ((st.st_mode & 077) && chmod(path, 0600) < 0)
        return mo_fail_sys(e,
                           "store %s: other users can read it, and its mode "
                           "cannot be changed",
                           path);
    return 0;
}

static int on_progress(void *ctx)
{
    const struct mo_sql *q = ctx;

    return q->stop_ns && mo_now_ns() > q->stop_ns;
}

/* Of several processes that open a new file at once only one can change its
 * journal mode; SQLite refuses the others without waiting. So try again until
 * busy_ms have passed. */
static int set_with_retry(struct mo_sql *q, const char *setting)
{
    const struct timespec pause = {.tv_nsec = 5 * (long)MO_MS};
    uint64_t end = mo_now_ns() + q->busy_ms * MO_MS;
    int rc;

    for (;;) {
        rc = q->f->sqlite3_exec(q->db, setting, NULL, NULL, NULL);
        if ((rc & 0xff) != SQLITE_BUSY || mo_now_ns() > end)
            return rc;
        (void)nanosleep(&pause, NULL);
    }
}

static int set_up(struct mo_sql *q, struct mo_err *e)
{
    static const char *const settings[] = {
        "PRAGMA journal_mode = WAL",
        "PRAGMA synchronous = FULL",
        "PRAGMA journal_size_limit = 16777216",
        "PRAGMA wal_autocheckpoint = 4000",
        "PRAGMA cell_size_check = ON",
        "PRAGMA temp_store = MEMORY",
    };

    (void)q->f->sqlite3_db_config(q->db, SQLITE_DBCONFIG_DEFENSIVE, 1,
                                  (int *)NULL);
    for (size_t i = 0; i < MO_COUNT(settings); i++) {
        if (set_with_retry(q, settings[i]) != SQLITE_OK)
            return mo_sql_fail(q, e, settings[i]);
    }
    return 0;
}

int mo_sql_open(struct mo_sql *q, const struct mo_sqlite_lib *f,
                const char *path, uint64_t busy_ms, struct mo_err *e)
{
    int flags =
        SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_EXRESCODE;
    int rc;

    *q = (struct mo_sql){.f = f, .busy_ms = busy_ms};
    rc = make_file(path, e);
    if (rc < 0)
        return rc;
    if (f->sqlite3_open_v2(path, &q->db, flags, NULL) != SQLITE_OK)
        return mo_sql_fail(q, e, path);
    (void)f->sqlite3_busy_timeout(q->db, (int)busy_ms);
    f->sqlite3_progress_handler(q->db, PROGRESS_STEPS, on_progress, q);
    return 0;
}

void mo_sql_close(struct mo_sql *q)
{
    if (!q->db)
        return;
    q->stop_ns = 0;
    for (size_t i = 0; i < MO_SQL_N; i++)
        (void)q->f->sqlite3_finalize(q->st[i]);
    (void)q->f->sqlite3_close(q->db);
    *q = (struct mo_sql){0};
}

/* --- is it ours, is it whole --------------------------------------------- */

/* The first value of a pragma's answer, as text and as a number. */
struct pragma_value {
    int64_t number;
    char text[128];
};

static int on_pragma_row(void *ctx, int n, char **v, char **names)
{
    struct pragma_value *t = ctx;

    (void)names;
    if (n < 1 || !v[0] || t->text[0])
        return 0;
    (void)snprintf(t->text, sizeof(t->text), "%s", v[0]);
    (void)mo_span_i64(mo_span_cstr(t->text), &t->number);
    return 0;
}

static int fail_damaged(const char *path, const char *how, struct mo_err *e)
{
    return mo_fail(e, MO_EIO,
                   "store %s is damaged (%.80s); nothing was changed in it: "
                   "move it away or put a backup in its place",
                   path, how);
}

static int read_pragma(struct mo_sql *q, const char *path, const char *pragma,
                       struct pragma_value *t, struct mo_err *e)
{
    int rc;

    *t = (struct pragma_value){0};
    rc = q->f->sqlite3_exec(q->db, pragma, on_pragma_row, t, NULL);
    if (rc == SQLITE_OK)
        return 0;
    if ((rc & 0xff) == SQLITE_CORRUPT || (rc & 0xff) == SQLITE_NOTADB)
        return fail_damaged(path, q->f->sqlite3_errmsg(q->db), e);
    return mo_sql_fail(q, e, pragma);
}

int mo_sql_check(struct mo_sql *q, const char *path, struct mo_err *e)
{
    struct pragma_value t;
    int rc = read_pragma(q, path, "PRAGMA quick_check(1)", &t, e);

    if (rc < 0)
        return rc;
    return strcmp(t.text, "ok") == 0 ? 0 : fail_damaged(path, t.text, e);
}

/* The record of the version, a mark; "": there is none. A file whose marks
 * cannot be read has none: then its format alone decides. */
static void read_record(struct mo_sql *q, const char *path, int64_t format,
                        struct pragma_value *t)
{
    *t = (struct pragma_value){0};
    if (format >= MARKS_SINCE)
        (void)read_pragma(q, path,
                          "SELECT doc FROM mark WHERE id = '" MO_STATE_MARK "'",
                          t, NULL);
}

/* A newer format is used if its own record allows it. */
static int judge_newer(const char *path, int64_t format, const char *record,
                       struct mo_err *e)
{
    struct mo_state_version v;
    char what[PATH_MAX];

    (void)snprintf(what, sizeof(what), "store %s", path);
    if (mo_state_version_read(mo_span_cstr(record), &v, NULL) < 0 ||
        v.format != format)
        v = (struct mo_state_version){(unsigned)format, (unsigned)format,
                                      "unknown"};
    return mo_state_version_judge(&v, MO_SQL_VERSION, what, e);
}

/* Version of the file, or an error; a new file is version 0. *recorded: it says
 * so in a mark, too. */
static int check_ours(struct mo_sql *q, const char *path, int *version,
                      bool *recorded, struct mo_err *e)
{
    struct pragma_value app = {0}, ver = {0}, tables = {0}, record;
    int rc = read_pragma(q, path, "PRAGMA application_id", &app, e);

    if (rc == 0)
        rc = read_pragma(q, path, "PRAGMA user_version", &ver, e);
    if (rc == 0)
        rc = read_pragma(q, path, "SELECT count(*) FROM sqlite_schema", &tables,
                         e);
    if (rc < 0)
        return rc;
    if (app.number != MO_SQL_APP_ID && (app.number || tables.number))
        return mo_fail(e, MO_EINVAL,
                       "store %s is the database of another "
                       "program",
                       path);
    if (ver.number < 0)
        return fail_damaged(path, "its format is negative", e);
    read_record(q, path, ver.number, &record);
    *recorded = record.text[0] != '\0';
    *version = (int)ver.number;
    return ver.number > MO_SQL_VERSION
               ? judge_newer(path, ver.number, record.text, e)
               : 0;
}

static int run_sql(struct mo_sql *q, const char *sql, struct mo_err *e)
{
    if (q->f->sqlite3_exec(q->db, sql, NULL, NULL, NULL) == SQLITE_OK)
        return 0;
    return mo_sql_fail(q, e, "migration");
}

/* Writes the version of the file, and the record. */
static int write_version(struct mo_sql *q, struct mo_err *e)
{
    mo_autobuf struct mo_buf b = {.max = 512};

    (void)mo_buf_printf(&b,
                        "PRAGMA application_id = %d; PRAGMA user_version = %d;"
                        "INSERT OR REPLACE INTO mark (id, doc)"
                        " VALUES ('" MO_STATE_MARK "', '",
                        MO_SQL_APP_ID, MO_SQL_VERSION);
    mo_state_version_put(&b, MO_SQL_VERSION, MO_SQL_READS);
    (void)mo_buf_puts(&b, "')");
    return mo_buf_err(&b) ? mo_fail(e, mo_buf_err(&b), "store")
                          : run_sql(q, mo_buf_cstr(&b), e);
}

/* One transaction. Another process may migrate at the same time, so the
 * version is read again inside; it may also be a newer one. */
static int migrate(struct mo_sql *q, const char *path, struct mo_err *e)
{
    int version = 0;
    bool recorded = false;
    int rc = run_sql(q, "BEGIN IMMEDIATE", e);

    if (rc == 0)
        rc = check_ours(q, path, &version, &recorded, e);
    while (rc == 0 && version < MO_SQL_VERSION) {
        rc = run_sql(q, migrations[version], e);
        version++;
        recorded = false;
    }
    if (rc == 0 && version == MO_SQL_VERSION && !recorded)
        rc = write_version(q, e);
    if (rc == 0)
        rc = run_sql(q, "COMMIT", e);
    if (rc < 0)
        (void)q->f->sqlite3_exec(q->db, "ROLLBACK", NULL, NULL, NULL);
    return rc;
}

int mo_sql_migrate(struct mo_sql *q, const char *path, bool *checked,
                   struct mo_err *e)
{
    struct pragma_value pages = {0};
    int version = 0;
    bool recorded = false;
    int rc = run_sql(q, "BEGIN", e); /* one snapshot for the questions */

    if (rc == 0) {
        rc = check_ours(q, path, &version, &recorded, e);
        (void)q->f->sqlite3_exec(q->db, "COMMIT", NULL, NULL, NULL);
    }
    if (rc == 0)
        rc = set_up(q, e);
    if (rc == 0)
        rc = read_pragma(q, path, "PRAGMA page_count", &pages, e);
    *checked = version < MO_SQL_VERSION || pages.number <= CHECK_NOW_MAX;
    if (rc == 0 && *checked)
        rc = mo_sql_check(q, path, e);
    if (rc == 0 && version < MO_SQL_VERSION)
        rc = migrate(q, path, e);
    else if (rc == 0 && version == MO_SQL_VERSION && !recorded)
        (void)migrate(q, path, NULL); /* a full disk is no reason to refuse */
    return rc;
}
