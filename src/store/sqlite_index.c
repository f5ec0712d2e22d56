/* sqlite_index.c - entries are indexed behind the append.
 *
 * An append is answered when it is durable. To index it inside its own
 * transaction costs more than all the rest: full text is cheap only for many
 * rows at a time, and of every session that appends another page of the index
 * by place has to be written. So a mark in the file (see sql_text.h) says how
 * far both indexes have come, and it is moved on, in chunks that are
 * transactions of their own:
 *
 *  - when nothing was asked of the writer for a while (sqlite.c);
 *  - when a search finds that the mark stands before an entry it can see: it
 *    waits for the index to reach that one. What was acknowledged before the
 *    search is so found by it, whoever wrote it, also one who was killed
 *    right after;
 *  - when the writer never rests and more than BEHIND_MAX of entries or bytes
 *    has gathered: then after each group, so that no search waits long.
 *
 * Who reads a conversation looks through what is behind the mark, and waits
 * for nobody.
 *
 * The mark and the index change in one transaction, so nothing is indexed
 * twice or left out, whichever process does it and wherever it dies. */
#include "store/sqlite_priv.h"

#define CHUNK_ROWS       1024 /* a few ms, for which a write may have to wait */
#define CHUNK_BYTES      ((size_t)512 * 1024)
#define BEHIND_MAX_ROWS  ((size_t)8 * 1024)
#define BEHIND_MAX_BYTES ((size_t)16 * 1024 * 1024)

/* --- on the reader's thread ---------------------------------------------- */

int mo_sqlite_index_lags(struct mo_sqlite *q, struct mo_op *op)
{
    struct mo_sql *sql = &q->reader.sql;
    sqlite3_stmt *st = mo_sql_start(sql, MO_SQL_INDEX_STATE, &op->err, "");
    int rc = st ? mo_sql_step(sql, st, &op->err) : MO_EUNAVAIL;

    if (rc == 1) {
        op->index_to = mo_sql_int(sql, st, 1);
        rc = mo_sql_int(sql, st, 0) < op->index_to;
    }
    mo_sql_end(sql, st);
    return rc;
}

/* --- on the writer's thread ---------------------------------------------- */

struct chunk {
    size_t rows, bytes;
    int64_t mark; /* the last entry looked at; 0: there was none */
};

static bool full(const struct chunk *c)
{
    return c->rows >= CHUNK_ROWS || c->bytes >= CHUNK_BYTES;
}

static int put_row(struct mo_sql *sql, sqlite3_stmt *st, struct chunk *c,
                   struct mo_err *e)
{
    struct mo_span text = mo_sql_text(sql, st, 1);
    int rc;

    c->mark = mo_sql_int(sql, st, 0);
    c->rows++;
    c->bytes += text.n;
    rc = mo_sql_do(sql, MO_SQL_INDEX_PLACE, e, "tiii", mo_sql_text(sql, st, 2),
                   mo_sql_int(sql, st, 3), mo_sql_int(sql, st, 4), c->mark);
    if (rc >= 0 && text.n)
        rc = mo_sql_do(sql, MO_SQL_INDEX_PUT, e, "it", c->mark, text);
    return rc < 0 ? rc : 0;
}

static int put_chunk(struct mo_sql *sql, struct chunk *c, struct mo_err *e)
{
    sqlite3_stmt *st =
        mo_sql_start(sql, MO_SQL_INDEX_NEXT, e, "i", (int64_t)CHUNK_ROWS);
    int rc = st ? mo_sql_step(sql, st, e) : MO_EUNAVAIL;

    while (rc == 1) {
        rc = put_row(sql, st, c, e);
        if (rc < 0 || full(c))
            break;
        rc = mo_sql_step(sql, st, e);
    }
    mo_sql_end(sql, st);
    if (rc == 0 && c->mark)
        rc = mo_sql_do(sql, MO_SQL_INDEX_MARK, e, "i", c->mark);
    return rc < 0 ? rc : 0;
}

/* One chunk, one transaction. 0 or MO_EUNAVAIL. */
static int move_on(struct mo_sqlite *q, struct chunk *c, struct mo_err *e)
{
    struct mo_sql *sql = &q->writer.sql;
    int rc = mo_sql_do(sql, MO_SQL_BEGIN, e, "");

    if (rc < 0)
        return rc;
    rc = put_chunk(sql, c, e);
    if (rc == 0)
        rc = mo_sql_do(sql, MO_SQL_COMMIT, e, "");
    if (rc < 0 && !q->lib.sqlite3_get_autocommit(sql->db))
        (void)mo_sql_do(sql, MO_SQL_ROLLBACK, NULL, "");
    return rc < 0 ? rc : 0;
}

static size_t less(size_t a, size_t b)
{
    return a > b ? a - b : 1;
}

/* An index that cannot be moved on is left alone until the next append. */
static void count(struct mo_sqlite_index *x, const struct chunk *c, int rc)
{
    if (rc < 0 || !full(c)) {
        x->rows = 0;
        x->bytes = 0;
        return;
    }
    x->rows = less(x->rows, c->rows);
    x->bytes = less(x->bytes, c->bytes);
}

static bool is_search(const struct mo_op *op)
{
    return op->kind == MO_OP_READ;
}

static bool is_due(const struct mo_sqlite *q)
{
    const struct mo_sqlite_index *x = &q->index;

    if (x->due || x->rows > BEHIND_MAX_ROWS || x->bytes > BEHIND_MAX_BYTES)
        return true;
    mo_list_each (it, &q->writer.group) {
        if (is_search(mo_container_of(it, struct mo_op, node)))
            return true;
    }
    return false;
}

void mo_sqlite_index(struct mo_sqlite *q)
{
    struct mo_sqlite_index *x = &q->index;
    struct chunk c = {0};
    int rc;

    if (!is_due(q))
        return;
    mo_err_clear(&x->err);
    rc = move_on(q, &c, &x->err);
    count(x, &c, rc);
    mo_list_each (it, &q->writer.group) {
        struct mo_op *op = mo_container_of(it, struct mo_op, node);

        if (!is_search(op))
            continue;
        if (rc < 0)
            op->err = x->err;
        else
            op->back =
                full(&c) && c.mark < op->index_to ? &q->writer : &q->reader;
    }
}
