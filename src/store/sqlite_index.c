/* sqlite_index.c - indexes entries after they were appended.
 *
 * An append is answered when it is durable. Indexing it in the same
 * transaction would cost more than all the rest: full-text indexing is cheap
 * only for many rows at a time, and each session that appends would dirty
 * another page of `place`. So a mark in the file (see sql.c) says how far
 * both indexes have come. It moves on in chunks, each a transaction of its
 * own:
 *
 *  - when the writer has been idle for a while (sqlite.c);
 *  - when a search sees an entry behind the mark: it waits until the index has
 *    reached that entry. So a search finds everything that was acknowledged
 *    before it, also by a process that was killed since;
 *  - when the writer is never idle and more than BEHIND_MAX rows or bytes are
 *    behind the mark: then after each group, so that no search waits long.
 *
 * A read of a conversation scans the rows behind the mark and does not wait.
 *
 * The mark and the indexes change in one transaction, so no row is indexed
 * twice or left out, whichever process does it and wherever it dies. */
#include "store/sqlite_priv.h"

#define CHUNK_ROWS       1024 /* a few ms that a write may have to wait */
#define CHUNK_BYTES      ((size_t)512 * 1024)
#define BEHIND_MAX_ROWS  ((size_t)8 * 1024)
#define BEHIND_MAX_BYTES ((size_t)16 * 1024 * 1024)

/* --- on the reader's thread ---------------------------------------------- */

int mo_sqlite_index_lags(struct mo_sqlite *q, struct mo_op *op)
{
    struct mo_sql *sql = &q->reader.sql;
    sqlite3_stmt *st = mo_sql_start(sql, MO_SQL_INDEX_STATE, &op->err, "");
    int rc = mo_sql_step(sql, st, &op->err);

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
    int64_t mark; /* the last entry of the chunk; 0: none */
};

static bool is_full(const struct chunk *c)
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
    int rc = mo_sql_step(sql, st, e);

    while (rc == 1) {
        rc = put_row(sql, st, c, e);
        if (rc < 0 || is_full(c))
            break;
        rc = mo_sql_step(sql, st, e);
    }
    mo_sql_end(sql, st);
    if (rc == 0 && c->mark)
        rc = mo_sql_do(sql, MO_SQL_INDEX_MARK, e, "i", c->mark);
    return rc < 0 ? rc : 0;
}

/* One chunk, one transaction. 0 or MO_EUNAVAIL. */
static int index_chunk(struct mo_sqlite *q, struct chunk *c, struct mo_err *e)
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

static size_t subtract_to_one(size_t a, size_t b)
{
    return a > b ? a - b : 1;
}

/* After a failure the index is left alone until the next append. */
static void count_behind(struct mo_sqlite_index *x, const struct chunk *c,
                         int rc)
{
    if (rc < 0 || !is_full(c)) {
        x->rows = 0;
        x->bytes = 0;
        return;
    }
    x->rows = subtract_to_one(x->rows, c->rows);
    x->bytes = subtract_to_one(x->bytes, c->bytes);
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
    mo_list_each_entry (op, &q->writer.group, struct mo_op, node)
        if (is_search(op))
            return true;
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
    rc = index_chunk(q, &c, &x->err);
    count_behind(x, &c, rc);
    mo_list_each_entry (op, &q->writer.group, struct mo_op, node) {
        if (!is_search(op))
            continue;
        if (rc < 0)
            op->err = x->err;
        else
            op->back =
                is_full(&c) && c.mark < op->index_to ? &q->writer : &q->reader;
    }
}
