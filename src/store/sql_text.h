/* sql_text.h - SQL: the tables, and every statement by its name. Private to
 * sql.c.
 *
 * doc columns are JSON as the rooms above wrote it. Times are wall ms, except
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
 * the index. */
#ifndef MO_STORE_SQL_TEXT_H
#define MO_STORE_SQL_TEXT_H

#include "store/sql.h"

/* Row i migrates version i to version i + 1. Never change a row. */
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
};

#define SWEEP_ROWS "500" /* of each kind at a time */

#define BEHIND_MARK "n > (SELECT n FROM indexed)"
/* Entries by their place, and the few behind the mark by a scan. */
#define HISTORY                                                                \
    "SELECT p.session, '', e.doc, p.conversation, p.seq, e.at, 0"              \
    " FROM place p CROSS JOIN entry e ON e.n = p.n"                            \
    " WHERE p.session = ?1 AND p.conversation = ?2 AND p.seq > ?3"             \
    " UNION ALL SELECT session, '', doc, conversation, seq, at, 0 FROM entry"  \
    " WHERE " BEHIND_MARK                                                      \
    " AND session = ?1 AND conversation = ?2 AND seq > ?3"

static const char *const statements[MO_SQL_N] = {
    [MO_SQL_BEGIN] = "BEGIN IMMEDIATE",
    [MO_SQL_COMMIT] = "COMMIT",
    [MO_SQL_ROLLBACK] = "ROLLBACK",
    [MO_SQL_SAVE] = "SAVEPOINT batch",
    [MO_SQL_BACK] = "ROLLBACK TO batch",
    [MO_SQL_RELEASE] = "RELEASE batch",

    [MO_SQL_SESSION_PUT] =
        "INSERT INTO session (id, at, doc) VALUES (?1, ?2, ?3)"
        " ON CONFLICT (id) DO UPDATE"
        " SET at = max(at, excluded.at), doc = excluded.doc",
    [MO_SQL_SESSION_TOUCH] =
        "UPDATE session SET at = max(at, ?2) WHERE id = ?1",
    [MO_SQL_SESSION_KNOWN] = "SELECT 1 FROM session WHERE id = ?1",
    [MO_SQL_SESSION_DEL] = "DELETE FROM session WHERE id = ?1",

    [MO_SQL_CONV_NOW] = "SELECT coalesce(max(number), 1) FROM conversation"
                        " WHERE session = ?1",
    [MO_SQL_CONV_NEW] = "INSERT INTO conversation (session, number, seq, at)"
                        " VALUES (?1, ?2, 0, ?3)",
    /* the next seq of a session that has a conversation */
    [MO_SQL_CONV_STEP] =
        "SELECT seq + 1, number FROM conversation WHERE session = ?1"
        " AND EXISTS (SELECT 1 FROM session WHERE id = ?1)"
        " ORDER BY number DESC LIMIT 1",
    [MO_SQL_CONV_SET] = "UPDATE conversation SET seq = ?3, at = max(at, ?4)"
                        " WHERE session = ?1 AND number = ?2",
    [MO_SQL_CONV_NEXT] =
        "INSERT INTO conversation (session, number, seq, at)"
        " VALUES (?1, ?2, 1, ?3) ON CONFLICT (session, number) DO UPDATE"
        " SET seq = seq + 1, at = max(at, excluded.at) RETURNING seq",
    [MO_SQL_CONV_DEL_EMPTY] =
        "DELETE FROM conversation WHERE session = ?1 AND at = 0",
    [MO_SQL_CONV_DEL_ALL] = "DELETE FROM conversation WHERE session = ?1",

    [MO_SQL_ENTRY_PUT] =
        "INSERT INTO entry (session, conversation, seq, at, doc, text)"
        " VALUES (?1, ?2, ?3, ?4, ?5, ?6)",
    /* the last entry of the current conversation, if it has that document */
    [MO_SQL_ENTRY_SAME] =
        "SELECT c.seq FROM conversation c CROSS JOIN entry e"
        " WHERE c.session = ?1 AND c.number = ?2 AND e.n IN"
        " (SELECT n FROM place WHERE session = ?1 AND conversation = ?2"
        " AND seq = c.seq UNION ALL SELECT n FROM entry WHERE " BEHIND_MARK
        " AND session = ?1 AND conversation = ?2 AND seq = c.seq)"
        " AND e.doc = ?3",
    [MO_SQL_ENTRY_DEL_ALL] =
        "DELETE FROM entry WHERE n IN (SELECT n FROM place WHERE session = ?1"
        " UNION ALL SELECT n FROM entry WHERE " BEHIND_MARK
        " AND session = ?1)",

    [MO_SQL_INDEX_STATE] =
        "SELECT n, (SELECT coalesce(max(n), 0) FROM entry) FROM indexed",
    [MO_SQL_INDEX_NEXT] =
        "SELECT n, text, session, conversation, seq FROM entry"
        " WHERE " BEHIND_MARK " ORDER BY n LIMIT ?1",
    [MO_SQL_INDEX_PLACE] = "INSERT INTO place (session, conversation, seq, n)"
                           " VALUES (?1, ?2, ?3, ?4)",
    [MO_SQL_INDEX_PUT] = "INSERT INTO entry_text (rowid, text) VALUES (?1, ?2)",
    [MO_SQL_INDEX_MARK] = "UPDATE indexed SET n = ?1",

    [MO_SQL_CALL_PUT] =
        "INSERT INTO call (session, id, state, at, doc)"
        " VALUES (?1, ?2, ?3, ?4, ?5) ON CONFLICT (session, id) DO NOTHING",
    [MO_SQL_CALL_STATE] =
        "SELECT state FROM call WHERE session = ?1 AND id = ?2",
    [MO_SQL_CALL_MOVE] = "UPDATE call SET state = ?3, at = max(at, ?4),"
                         " doc = CASE ?5 WHEN '' THEN doc ELSE ?5 END"
                         " WHERE session = ?1 AND id = ?2",
    [MO_SQL_CALL_DEL_ALL] = "DELETE FROM call WHERE session = ?1",

    [MO_SQL_AUDIT_PUT] =
        "INSERT INTO audit (session, at, doc) VALUES (?1, ?2, ?3)",

    [MO_SQL_LEASE_GET] =
        "SELECT fence, token, owner, CASE boot WHEN ?2 THEN until ELSE 0 END"
        " FROM lease WHERE name = ?1",
    [MO_SQL_LEASE_PUT] =
        "INSERT INTO lease (name, fence, token, owner, boot, until, at)"
        " VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7) ON CONFLICT (name) DO UPDATE SET"
        " fence = excluded.fence, token = excluded.token,"
        " owner = excluded.owner, boot = excluded.boot,"
        " until = excluded.until, at = excluded.at",
    [MO_SQL_LEASE_RENEW] =
        "UPDATE lease SET until = ?4 WHERE name = ?1 AND token = ?2"
        " AND boot = ?3 AND until > ?5",
    [MO_SQL_LEASE_DROP] =
        "UPDATE lease SET token = '', owner = '', until = 0, at = ?3"
        " WHERE name = ?1 AND token = ?2",
    [MO_SQL_LEASE_BREAK] =
        "UPDATE lease SET token = '', owner = '', until = 0, at = ?4"
        " WHERE name = ?1 AND owner = ?2 AND fence = ?3",

    [MO_SQL_OLD_CONV] =
        "SELECT session, number FROM conversation"
        " WHERE (session, number) > (?2, ?3) AND at > 0 AND at < ?1"
        " ORDER BY session, number LIMIT 1",
    [MO_SQL_OLD_ENTRIES] =
        "DELETE FROM entry WHERE n IN (SELECT n FROM place WHERE session = ?1"
        " AND conversation = ?2 UNION ALL SELECT n FROM entry"
        " WHERE " BEHIND_MARK " AND session = ?1 AND conversation = ?2"
        " LIMIT " SWEEP_ROWS ")",
    /* the current conversation of an existing session keeps its number */
    [MO_SQL_OLD_CONV_REST] =
        "UPDATE conversation SET at = 0 WHERE session = ?1 AND number = ?2"
        " AND number = (SELECT max(number) FROM conversation"
        " WHERE session = ?1) AND EXISTS (SELECT 1 FROM session"
        " WHERE id = ?1)",
    [MO_SQL_OLD_CONV_DEL] =
        "DELETE FROM conversation WHERE session = ?1 AND number = ?2"
        " AND at > 0",
    [MO_SQL_OLD_CALLS] =
        "DELETE FROM call WHERE n IN (SELECT n FROM call WHERE at < ?1"
        " AND (state IN (3, 4, 5) OR NOT EXISTS"
        " (SELECT 1 FROM session WHERE id = call.session))"
        " LIMIT " SWEEP_ROWS ")",
    [MO_SQL_OLD_AUDIT] = "DELETE FROM audit WHERE n IN (SELECT n FROM audit"
                         " WHERE at < ?1 LIMIT " SWEEP_ROWS ")",
    [MO_SQL_OLD_LEASES] =
        "DELETE FROM lease WHERE name IN (SELECT name FROM lease"
        " WHERE until = 0 AND at < ?1 LIMIT " SWEEP_ROWS ")",

    [MO_SQL_READ_SESSION] =
        "SELECT id, '', doc, 0, 0, at, 0 FROM session WHERE id = ?1",
    [MO_SQL_READ_SESSIONS] =
        "SELECT id, '', doc, 0, 0, at, 0 FROM session"
        " WHERE (at, id) > (?1, ?2) AND at < ?3 ORDER BY at, id LIMIT ?4",
    [MO_SQL_READ_LAST_SESSIONS] = "SELECT id, '', doc, 0, 0, at, 0 FROM session"
                                  " WHERE (at, id) > (?1, ?2) AND at < ?3"
                                  " ORDER BY at DESC, id DESC LIMIT ?4",
    [MO_SQL_READ_HISTORY] = HISTORY " ORDER BY 5 LIMIT ?4",
    [MO_SQL_READ_NEWEST] = HISTORY " ORDER BY 5 DESC LIMIT ?4",
    [MO_SQL_READ_CALLS] =
        "SELECT session, id, doc, 0, n, at, state FROM call"
        " WHERE session = ?1 AND n > ?2 AND ((1 << state) & ?3)"
        " ORDER BY n LIMIT ?4",
    [MO_SQL_READ_CALL] = "SELECT session, id, doc, 0, n, at, state FROM call"
                         " WHERE session = ?1 AND id = ?2",
    [MO_SQL_READ_SEARCH] =
        "SELECT e.session, '', e.doc, e.conversation, e.seq, e.at, 0"
        " FROM entry_text JOIN entry e ON e.n = entry_text.rowid"
        " WHERE entry_text MATCH ?1 AND (?2 = '' OR e.session = ?2)"
        " ORDER BY entry_text.rank LIMIT ?3 OFFSET ?4",
    [MO_SQL_READ_AUDIT] =
        "SELECT session, '', doc, 0, n, at, 0 FROM audit"
        " WHERE at > ?1 AND at < ?2 AND (?3 = '' OR session = ?3)"
        " AND (?4 = '' OR instr(doc, ?4)) ORDER BY at DESC, n DESC LIMIT ?5",
};

#endif
