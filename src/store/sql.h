/* sql.h - one connection to SQLite, and its statements by name. Private to
 * store/.
 *
 * The library is loaded at first use (see loop/dso.h): linked, it would cost
 * every run of the program, and most commands keep nothing. Statements are
 * prepared at first use and kept. A connection belongs to one thread at a
 * time; it is opened on the loop's and then given to its worker.
 *
 * Errors of the library are MO_EUNAVAIL with its own words: the caller cannot
 * do more about a full disk than about a server that is away. */
#ifndef MO_STORE_SQL_H
#define MO_STORE_SQL_H

#include <sqlite3.h>

#include "base/str.h"
#include "loop/dso.h"
#include "store/store.h"

/* clang-format off */
#define MO_SQLITE_FUNCTIONS(X)                                                 \
    X(sqlite3_bind_int64) X(sqlite3_bind_text) X(sqlite3_busy_timeout)         \
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
    MO_SQL_BEGIN,
    MO_SQL_COMMIT,
    MO_SQL_ROLLBACK,
    MO_SQL_SAVE,
    MO_SQL_BACK,
    MO_SQL_RELEASE,
    /* writing */
    MO_SQL_SESSION_PUT,
    MO_SQL_SESSION_TOUCH,
    MO_SQL_SESSION_KNOWN,
    MO_SQL_SESSION_DEL,
    MO_SQL_CONV_NOW,
    MO_SQL_CONV_NEW,
    MO_SQL_CONV_STEP,
    MO_SQL_CONV_SET,
    MO_SQL_CONV_NEXT,
    MO_SQL_CONV_DEL_EMPTY,
    MO_SQL_CONV_DEL_ALL,
    MO_SQL_ENTRY_PUT,
    MO_SQL_ENTRY_SAME,
    MO_SQL_ENTRY_DEL_ALL,
    MO_SQL_INDEX_STATE,
    MO_SQL_INDEX_NEXT,
    MO_SQL_INDEX_PLACE,
    MO_SQL_INDEX_PUT,
    MO_SQL_INDEX_MARK,
    MO_SQL_CALL_PUT,
    MO_SQL_CALL_STATE,
    MO_SQL_CALL_MOVE,
    MO_SQL_CALL_DEL_ALL,
    MO_SQL_AUDIT_PUT,
    /* leases */
    MO_SQL_LEASE_GET,
    MO_SQL_LEASE_PUT,
    MO_SQL_LEASE_RENEW,
    MO_SQL_LEASE_DROP,
    MO_SQL_LEASE_BREAK,
    /* sweeping */
    MO_SQL_OLD_CONV,
    MO_SQL_OLD_ENTRIES,
    MO_SQL_OLD_CONV_REST,
    MO_SQL_OLD_CONV_DEL,
    MO_SQL_OLD_CALLS,
    MO_SQL_OLD_AUDIT,
    MO_SQL_OLD_LEASES,
    /* reading: session, id, doc, conversation, seq, at, state */
    MO_SQL_READ_SESSION,
    MO_SQL_READ_SESSIONS,
    MO_SQL_READ_LAST_SESSIONS,
    MO_SQL_READ_HISTORY,
    MO_SQL_READ_NEWEST,
    MO_SQL_READ_CALLS,
    MO_SQL_READ_CALL,
    MO_SQL_READ_SEARCH,
    MO_SQL_READ_AUDIT,
    MO_SQL_N
};

struct mo_sql {
    const struct mo_sqlite_lib *f;
    sqlite3 *db;
    sqlite3_stmt *st[MO_SQL_N];
    uint64_t stop_ns; /* a statement that runs longer is ended; 0: never */
    uint64_t busy_ms; /* how long another process is waited for */
};

#define MO_SQL_APP_ID  0x4d4f5354 /* "MOST" */
#define MO_SQL_VERSION 2

int mo_sqlite_load(struct mo_sqlite_lib *f, struct mo_err *e);

/* Opens (and makes, for the first one) the file, sets durability and limits.
 * mo_sql_close() in any case. */
int mo_sql_open(struct mo_sql *q, const struct mo_sqlite_lib *f,
                const char *path, uint64_t busy_ms, struct mo_err *e);
void mo_sql_close(struct mo_sql *q);
/* Refuses a file of another program, of a newer version, or damaged; brings
 * an older one up to our version. *checked: every page was looked at, which
 * is so for small files and before a change of version. Else the time it takes
 * does not grow with the file. */
int mo_sql_migrate(struct mo_sql *q, const char *path, bool *checked,
                   struct mo_err *e);
/* Looks at every page. MO_EIO: the file is damaged. */
int mo_sql_check(struct mo_sql *q, const char *path, struct mo_err *e);

/* MO_EUNAVAIL with what the library says. */
int mo_sql_fail(const struct mo_sql *q, struct mo_err *e, const char *what);

/* Bind by fmt: 't' struct mo_span as text, 'i' int64_t. Then step until it
 * is not 1 (a row), and end. */
sqlite3_stmt *mo_sql_start(struct mo_sql *q, enum mo_sql_id id,
                           struct mo_err *e, const char *fmt, ...);
int mo_sql_step(struct mo_sql *q, sqlite3_stmt *st, struct mo_err *e);
void mo_sql_end(struct mo_sql *q, sqlite3_stmt *st);
/* A statement without rows; returns how many it changed, or MO_EUNAVAIL. */
int mo_sql_do(struct mo_sql *q, enum mo_sql_id id, struct mo_err *e,
              const char *fmt, ...);
/* The one number of the first row into *out: 1, or 0 when there is no row. */
int mo_sql_number(struct mo_sql *q, enum mo_sql_id id, int64_t *out,
                  struct mo_err *e, const char *fmt, ...);

struct mo_span mo_sql_text(struct mo_sql *q, sqlite3_stmt *st, int col);
int64_t mo_sql_int(struct mo_sql *q, sqlite3_stmt *st, int col);

#endif
