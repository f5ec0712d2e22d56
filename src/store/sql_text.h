/* sql_text.h - every SQL statement with its name. Private to sql.h.
 *
 * The tables are in sql.c. Statements that read rows give: session, id, doc,
 * conversation, seq, at, state; those that read sessions also shares. */
#ifndef MO_STORE_SQL_TEXT_H
#define MO_STORE_SQL_TEXT_H

/* clang-format off */
#define MO_SQL_SWEEP_ROWS "500" /* of each kind at a time */

#define MO_SQL_BEHIND "n > (SELECT n FROM indexed)"
/* Entries by their place, and the few behind the mark by a scan. */
#define MO_SQL_HISTORY                                                         \
    "SELECT p.session, '', e.doc, p.conversation, p.seq, e.at, 0"              \
    " FROM place p CROSS JOIN entry e ON e.n = p.n"                            \
    " WHERE p.session = ?1 AND p.conversation = ?2 AND p.seq > ?3"             \
    " UNION ALL SELECT session, '', doc, conversation, seq, at, 0 FROM entry"  \
    " WHERE " MO_SQL_BEHIND                                                    \
    " AND session = ?1 AND conversation = ?2 AND seq > ?3"

#define MO_SQL_STATEMENTS(X)                                                   \
    X(BEGIN, "BEGIN IMMEDIATE")                                                \
    X(COMMIT, "COMMIT")                                                        \
    X(ROLLBACK, "ROLLBACK")                                                    \
    X(SAVE, "SAVEPOINT batch")                                                 \
    X(BACK, "ROLLBACK TO batch")                                               \
    X(RELEASE, "RELEASE batch")                                                \
    /* writing */                                                              \
    X(SESSION_PUT, "INSERT INTO session (id, at, doc) VALUES (?1, ?2, ?3)"     \
      " ON CONFLICT (id) DO UPDATE"                                            \
      " SET at = max(at, excluded.at), doc = excluded.doc")                    \
    X(SESSION_TOUCH, "UPDATE session SET at = max(at, ?2) WHERE id = ?1")      \
    X(SESSION_SHARE, "UPDATE session SET shares = ?2 WHERE id = ?1")           \
    X(SESSION_KNOWN, "SELECT 1 FROM session WHERE id = ?1")                    \
    X(SESSION_DEL, "DELETE FROM session WHERE id = ?1")                        \
    X(CONV_NOW, "SELECT coalesce(max(number), 1) FROM conversation"            \
      " WHERE session = ?1")                                                   \
    X(CONV_NEW, "INSERT INTO conversation (session, number, seq, at)"          \
      " VALUES (?1, ?2, 0, ?3)")                                               \
    /* the next seq of a session that has a conversation */                    \
    X(CONV_STEP,                                                               \
      "SELECT seq + 1, number FROM conversation WHERE session = ?1"            \
      " AND EXISTS (SELECT 1 FROM session WHERE id = ?1)"                      \
      " ORDER BY number DESC LIMIT 1")                                         \
    X(CONV_SET, "UPDATE conversation SET seq = ?3, at = max(at, ?4)"           \
      " WHERE session = ?1 AND number = ?2")                                   \
    X(CONV_NEXT, "INSERT INTO conversation (session, number, seq, at)"         \
      " VALUES (?1, ?2, 1, ?3) ON CONFLICT (session, number) DO UPDATE"        \
      " SET seq = seq + 1, at = max(at, excluded.at) RETURNING seq")           \
    X(CONV_DEL_EMPTY,                                                          \
      "DELETE FROM conversation WHERE session = ?1 AND at = 0")                \
    X(CONV_DEL_ALL, "DELETE FROM conversation WHERE session = ?1")             \
    X(ENTRY_PUT,                                                               \
      "INSERT INTO entry (session, conversation, seq, at, doc, text)"          \
      " VALUES (?1, ?2, ?3, ?4, ?5, ?6)")                                      \
    /* one of the last entries of the current conversation (MO_STORE_AGAIN) */ \
    X(ENTRY_SAME, "SELECT e.seq FROM conversation c CROSS JOIN entry e"        \
      " WHERE c.session = ?1 AND c.number = ?2 AND e.n IN"                     \
      " (SELECT n FROM place WHERE session = ?1 AND conversation = ?2"         \
      " AND seq > c.seq - 32 UNION ALL SELECT n FROM entry WHERE"              \
      " " MO_SQL_BEHIND " AND session = ?1 AND conversation = ?2"              \
      " AND seq > c.seq - 32) AND e.doc = ?3 ORDER BY e.seq DESC LIMIT 1")     \
    X(ENTRY_DEL_ALL,                                                           \
      "DELETE FROM entry WHERE n IN (SELECT n FROM place WHERE session = ?1"   \
      " UNION ALL SELECT n FROM entry WHERE " MO_SQL_BEHIND                    \
      " AND session = ?1)")                                                    \
    X(INDEX_STATE,                                                             \
      "SELECT n, (SELECT coalesce(max(n), 0) FROM entry) FROM indexed")        \
    X(INDEX_NEXT, "SELECT n, text, session, conversation, seq FROM entry"      \
      " WHERE " MO_SQL_BEHIND " ORDER BY n LIMIT ?1")                          \
    X(INDEX_PLACE, "INSERT INTO place (session, conversation, seq, n)"         \
      " VALUES (?1, ?2, ?3, ?4)")                                              \
    X(INDEX_PUT, "INSERT INTO entry_text (rowid, text) VALUES (?1, ?2)")       \
    X(INDEX_MARK, "UPDATE indexed SET n = ?1")                                 \
    X(CALL_PUT, "INSERT INTO call (session, id, state, at, doc)"               \
      " VALUES (?1, ?2, ?3, ?4, ?5) ON CONFLICT (session, id) DO NOTHING")     \
    X(CALL_STATE, "SELECT state FROM call WHERE session = ?1 AND id = ?2")     \
    X(CALL_MOVE, "UPDATE call SET state = ?3, at = max(at, ?4),"               \
      " doc = CASE ?5 WHEN '' THEN doc ELSE ?5 END"                            \
      " WHERE session = ?1 AND id = ?2")                                       \
    X(CALL_DEL_ALL, "DELETE FROM call WHERE session = ?1")                     \
    X(AUDIT_PUT, "INSERT INTO audit (session, at, doc) VALUES (?1, ?2, ?3)")   \
    /* Arguments and results go; their digests stay. */                        \
    X(AUDIT_STRIP, "UPDATE audit SET doc = CASE json_valid(doc) WHEN 1 THEN"   \
      " json_remove(doc, '$.args', '$.content') ELSE '{}' END"                 \
      " WHERE session = ?1"                                                    \
      " AND (instr(doc, '\"args\":') OR instr(doc, '\"content\":'))")          \
    X(MARK_PUT, "INSERT INTO mark (id, doc) VALUES (?1, ?2)"                   \
      " ON CONFLICT (id) DO UPDATE SET doc = excluded.doc")                    \
    X(MARK_DEL, "DELETE FROM mark WHERE id = ?1")                              \
    /* counters */                                                             \
    X(DAILY_GET, "SELECT n FROM daily WHERE day = ?1 AND name = ?2")           \
    X(DAILY_NAMES, "SELECT count(*) FROM daily WHERE day = ?1")                \
    X(DAILY_PUT, "INSERT INTO daily (day, name, n) VALUES (?1, ?2, ?3)"        \
      " ON CONFLICT (day, name) DO UPDATE SET n = excluded.n")                 \
    /* leases */                                                               \
    X(LEASE_GET,                                                               \
      "SELECT fence, token, owner, CASE boot WHEN ?2 THEN until ELSE 0 END"    \
      " FROM lease WHERE name = ?1")                                           \
    X(LEASE_PUT,                                                               \
      "INSERT INTO lease (name, fence, token, owner, boot, until, at)"         \
      " VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7) ON CONFLICT (name) DO UPDATE SET"  \
      " fence = excluded.fence, token = excluded.token,"                       \
      " owner = excluded.owner, boot = excluded.boot,"                         \
      " until = excluded.until, at = excluded.at")                             \
    X(LEASE_RENEW,                                                             \
      "UPDATE lease SET until = ?4 WHERE name = ?1 AND token = ?2"             \
      " AND boot = ?3 AND until > ?5")                                         \
    X(LEASE_DROP,                                                              \
      "UPDATE lease SET token = '', owner = '', until = 0, at = ?3"            \
      " WHERE name = ?1 AND token = ?2")                                       \
    X(LEASE_BREAK,                                                             \
      "UPDATE lease SET token = '', owner = '', until = 0, at = ?4"            \
      " WHERE name = ?1 AND owner = ?2 AND fence = ?3")                        \
    /* sweeping */                                                             \
    X(OLD_CONV, "SELECT session, number FROM conversation"                     \
      " WHERE (session, number) > (?2, ?3) AND at > 0 AND at < ?1"             \
      " ORDER BY session, number LIMIT 1")                                     \
    X(OLD_ENTRIES,                                                             \
      "DELETE FROM entry WHERE n IN (SELECT n FROM place WHERE session = ?1"   \
      " AND conversation = ?2 UNION ALL SELECT n FROM entry"                   \
      " WHERE " MO_SQL_BEHIND " AND session = ?1 AND conversation = ?2"        \
      " LIMIT " MO_SQL_SWEEP_ROWS ")")                                         \
    /* the current conversation of an existing session keeps its number */     \
    X(OLD_CONV_REST,                                                           \
      "UPDATE conversation SET at = 0 WHERE session = ?1 AND number = ?2"      \
      " AND number = (SELECT max(number) FROM conversation"                    \
      " WHERE session = ?1) AND EXISTS (SELECT 1 FROM session"                 \
      " WHERE id = ?1)")                                                       \
    X(OLD_CONV_DEL,                                                            \
      "DELETE FROM conversation WHERE session = ?1 AND number = ?2"            \
      " AND at > 0")                                                           \
    X(OLD_CALLS,                                                               \
      "DELETE FROM call WHERE n IN (SELECT n FROM call WHERE at < ?1"          \
      " AND (state IN (3, 4, 5) OR NOT EXISTS"                                 \
      " (SELECT 1 FROM session WHERE id = call.session))"                      \
      " LIMIT " MO_SQL_SWEEP_ROWS ")")                                         \
    X(OLD_AUDIT, "DELETE FROM audit WHERE n IN (SELECT n FROM audit"           \
      " WHERE at < ?1 LIMIT " MO_SQL_SWEEP_ROWS ")")                           \
    X(OLD_LEASES, "DELETE FROM lease WHERE name IN (SELECT name FROM lease"    \
      " WHERE until = 0 AND at < ?1 LIMIT " MO_SQL_SWEEP_ROWS ")")             \
    X(OLD_DAYS, "DELETE FROM daily WHERE (day, name) IN"                       \
      " (SELECT day, name FROM daily WHERE day < ?1"                           \
      " LIMIT " MO_SQL_SWEEP_ROWS ")")                                         \
    /* reading */                                                              \
    X(READ_DAY, "SELECT '', name, '', 0, n, 0, 0 FROM daily WHERE day = ?1"    \
      " AND substr(name, 1, length(?2)) = ?2 AND name > ?3"                    \
      " ORDER BY name LIMIT ?4")                                               \
    X(READ_SESSION,                                                            \
      "SELECT id, '', doc, 0, 0, at, 0, shares FROM session WHERE id = ?1")    \
    X(READ_SESSIONS, "SELECT id, '', doc, 0, 0, at, 0, shares FROM session"    \
      " WHERE (at, id) > (?1, ?2) AND at < ?3 ORDER BY at, id LIMIT ?4")       \
    X(READ_LAST_SESSIONS, "SELECT id, '', doc, 0, 0, at, 0, shares"            \
      " FROM session"                                                          \
      " WHERE (at, id) > (?1, ?2) AND at < ?3"                                 \
      " ORDER BY at DESC, id DESC LIMIT ?4")                                   \
    X(READ_HISTORY, MO_SQL_HISTORY " ORDER BY 5 LIMIT ?4")                     \
    X(READ_NEWEST, MO_SQL_HISTORY " ORDER BY 5 DESC LIMIT ?4")                 \
    X(READ_CALLS, "SELECT session, id, doc, 0, n, at, state FROM call"         \
      " WHERE session = ?1 AND n > ?2 AND ((1 << state) & ?3)"                 \
      " ORDER BY n LIMIT ?4")                                                  \
    X(READ_CALL, "SELECT session, id, doc, 0, n, at, state FROM call"          \
      " WHERE session = ?1 AND id = ?2")                                       \
    X(READ_MARK, "SELECT '', id, doc, 0, 0, 0, 0 FROM mark WHERE id = ?1")     \
    /* ids are ASCII, so '~' is above all of them */                           \
    X(READ_MARKS, "SELECT '', id, doc, 0, 0, 0, 0 FROM mark"                   \
      " WHERE id >= ?1 AND id < ?1 || '~' AND id > ?2 ORDER BY id LIMIT ?3")   \
    X(READ_SEARCH,                                                             \
      "SELECT e.session, '', e.doc, e.conversation, e.seq, e.at, 0"            \
      " FROM entry_text JOIN entry e ON e.n = entry_text.rowid"                \
      " WHERE entry_text MATCH ?1 AND (?2 = '' OR e.session = ?2)"             \
      " AND (?5 = '' OR e.session IN (SELECT value FROM json_each(?5)))"       \
      " ORDER BY entry_text.rank LIMIT ?3 OFFSET ?4")                          \
    X(READ_AUDIT, "SELECT session, '', doc, 0, n, at, 0 FROM audit"            \
      " WHERE at > ?1 AND at < ?2 AND (?3 = '' OR session = ?3)"               \
      " AND (?4 = '' OR instr(doc, ?4)) ORDER BY at DESC, n DESC LIMIT ?5")
/* clang-format on */

#endif
