/* sql.h - one connection to SQLite, and its statements by name. Private to
 * store/.
 *
 * The library is loaded at first use (see loop/dso.h): linking it would slow
 * every start of the program, and most commands store nothing. Statements are
 * prepared at first use and kept. A connection belongs to one thread at a
 * time: the loop's thread opens it and gives it to a worker.
 *
 * Errors of the library are MO_EUNAVAIL with its message: a caller treats a
 * full disk like a server that cannot be reached. */
#ifndef MO_STORE_SQL_H
#define MO_STORE_SQL_H

#include <sqlite3.h>

#include "base/str.h"
#include "loop/dso.h"
#include "store/sql_text.h"
#include "store/store.h"

/* clang-format off */
#define MO_SQLITE_FUNCTIONS(X)                                                 \
    X(sqlite3_bind_int64) X(sqlite3_bind_pointer) X(sqlite3_bind_text)         \
    X(sqlite3_busy_timeout)                                                    \
    X(sqlite3_changes) X(sqlite3_close) X(sqlite3_column_bytes)                \
    X(sqlite3_config)                                                          \
    X(sqlite3_column_int64) X(sqlite3_column_text) X(sqlite3_db_config)        \
    X(sqlite3_errmsg) X(sqlite3_errstr) X(sqlite3_exec)                        \
    X(sqlite3_extended_errcode) X(sqlite3_finalize)                            \
    X(sqlite3_get_autocommit) X(sqlite3_interrupt) X(sqlite3_open_v2)           \
    X(sqlite3_prepare_v2)                                                      \
    X(sqlite3_progress_handler) X(sqlite3_reset) X(sqlite3_step)               \
    X(sqlite3_system_errno)
/* clang-format on */

struct mo_sqlite_lib {
    MO_SQLITE_FUNCTIONS(MO_DSO_MEMBER)
};

enum mo_sql_id {
#define MO_SQL_ID(name, text) MO_SQL_##name,
    MO_SQL_STATEMENTS(MO_SQL_ID)
#undef MO_SQL_ID
        MO_SQL_N
};

struct mo_sql {
    const struct mo_sqlite_lib *f;
    sqlite3 *db;
    sqlite3_stmt *st[MO_SQL_N];
    uint64_t stop_ns; /* deadline of a statement; 0: none */
    uint64_t busy_ms; /* how long to wait for another process */
};

#define MO_SQL_APP_ID 0x4d4f5354 /* "MOST" */
/* Tests build a next version (tests/it/meson.build). */
#ifndef MO_SQL_VERSION
#    define MO_SQL_VERSION 5
#    define MO_SQL_READS   5 /* oldest format whose programs can use ours */
#endif

int mo_sqlite_load(struct mo_sqlite_lib *f, struct mo_err *e);

/* Opens the file, and creates it if there is none; sets durability and limits.
 * Call mo_sql_close() also after a failure. */
int mo_sql_open(struct mo_sql *q, const struct mo_sqlite_lib *f,
                const char *path, uint64_t busy_ms, struct mo_err *e);
void mo_sql_close(struct mo_sql *q);
/* Refuses a file of another program, of a newer version that does not allow us
 * to use it (codec/state_version.h), or damaged; migrates an older one.
 * *checked: every page was read, which is so for small files and before a
 * migration. Otherwise the time does not grow with the file. */
int mo_sql_migrate(struct mo_sql *q, const char *path, bool *checked,
                   struct mo_err *e);
/* Reads every page. MO_EIO: the file is damaged. */
int mo_sql_check(struct mo_sql *q, const char *path, struct mo_err *e);

/* Fails with MO_EUNAVAIL and the library's message. */
int mo_sql_fail(const struct mo_sql *q, struct mo_err *e, const char *what);

/* Binds by fmt: 't' struct mo_span as text, 'i' int64_t. Then call
 * mo_sql_step() until it does not return 1 (a row), and mo_sql_end(). After a
 * failure both accept the NULL. */
sqlite3_stmt *mo_sql_start(struct mo_sql *q, enum mo_sql_id id,
                           struct mo_err *e, const char *fmt, ...);
int mo_sql_step(struct mo_sql *q, sqlite3_stmt *st, struct mo_err *e);
void mo_sql_end(struct mo_sql *q, sqlite3_stmt *st);
/* Runs a started statement without rows; returns how many it changed, or
 * MO_EUNAVAIL. mo_sql_do(q, id, e, fmt, ...) starts it, too. */
int mo_sql_run(struct mo_sql *q, sqlite3_stmt *st, struct mo_err *e);
#define mo_sql_do(q, id, e, ...)                                               \
    mo_sql_run((q), mo_sql_start((q), (id), (e), __VA_ARGS__), (e))
/* The number in the first row into *out: 1, or 0 when there is no row. */
int mo_sql_run_number(struct mo_sql *q, sqlite3_stmt *st, int64_t *out,
                      struct mo_err *e);
#define mo_sql_number(q, id, out, e, ...)                                      \
    mo_sql_run_number((q), mo_sql_start((q), (id), (e), __VA_ARGS__), (out),   \
                      (e))

struct mo_span mo_sql_text(struct mo_sql *q, sqlite3_stmt *st, int col);
int64_t mo_sql_int(struct mo_sql *q, sqlite3_stmt *st, int col);

#endif
