/* sqlite_read.c - reads, on the reader's thread with its own connection: in
 * WAL mode it sees the last commit and blocks no writer. */
#include "base/clock.h"
#include "store/sqlite_priv.h"

#define QUERY_MAX (MO_STORE_ID_MAX * 8 * 4)

/* --- questions ----------------------------------------------------------- */

struct reading {
    struct mo_sql *sql;
    struct mo_op *op;
    const struct mo_read *r;
    int64_t limit; /* one more than asked for, to learn if there are more */
    struct mo_buf query, among;
};

static int64_t or_for_ever(uint64_t t)
{
    return t ? (int64_t)t : INT64_MAX;
}

/* Each word becomes a quoted FTS5 string, in which only '"' is special. */
static void put_words(struct mo_buf *b, struct mo_span text)
{
    bool in = false;

    for (size_t i = 0; i < text.n; i++) {
        char c = text.p[i];
        bool blank = c == ' ' || (c >= '\t' && c <= '\r') || c == '\0';

        if (blank == in)
            mo_buf_puts(b, in ? "\" " : "\"");
        in = !blank;
        if (in && c == '"')
            mo_buf_putc(b, c);
        if (in)
            mo_buf_putc(b, c);
    }
    if (in)
        mo_buf_putc(b, '"');
}

static sqlite3_stmt *start_history(struct reading *g)
{
    int64_t conv = (int64_t)g->r->conversation;

    if (!conv && mo_sql_number(g->sql, MO_SQL_CONV_NOW, &conv, &g->op->err, "t",
                               g->r->session) < 0)
        return NULL;
    return mo_sql_start(g->sql,
                        g->r->newest ? MO_SQL_READ_NEWEST : MO_SQL_READ_HISTORY,
                        &g->op->err, "tiii", g->r->session, conv,
                        (int64_t)g->r->after, g->limit);
}

/* A JSON array; ids need no escapes. */
static void put_ids(struct mo_buf *b, struct mo_span list)
{
    while (list.n) {
        mo_buf_puts(b, b->len ? ",\"" : "[\"");
        mo_buf_span(b, mo_span_cut(&list, '\n'));
        mo_buf_putc(b, '"');
    }
    if (b->len)
        mo_buf_putc(b, ']');
}

static sqlite3_stmt *start_search(struct reading *g)
{
    put_words(&g->query, g->r->text);
    put_ids(&g->among, g->r->among);
    if (mo_buf_err(&g->query) || mo_buf_err(&g->among))
        return mo_null(mo_fail(&g->op->err, MO_ENOMEM, "store: search"));
    return mo_sql_start(g->sql, MO_SQL_READ_SEARCH, &g->op->err, "ttiit",
                        mo_buf_view(&g->query), g->r->session, g->limit,
                        (int64_t)g->r->after, mo_buf_view(&g->among));
}

static sqlite3_stmt *start_read(struct reading *g)
{
    const struct mo_read *r = g->r;
    int64_t after = (int64_t)r->after, before = or_for_ever(r->before);
    struct mo_err *e = &g->op->err;

    switch (r->kind) {
    case MO_READ_SESSION:
        return mo_sql_start(g->sql, MO_SQL_READ_SESSION, e, "t", r->session);
    case MO_READ_SESSIONS:
        return mo_sql_start(g->sql,
                            r->newest ? MO_SQL_READ_LAST_SESSIONS
                                      : MO_SQL_READ_SESSIONS,
                            e, "itii", after, r->id, before, g->limit);
    case MO_READ_HISTORY:
        return start_history(g);
    case MO_READ_CALLS:
        return mo_sql_start(g->sql, MO_SQL_READ_CALLS, e, "tiii", r->session,
                            after, (int64_t)(r->from ? r->from : ~0u),
                            g->limit);
    case MO_READ_CALL:
        return mo_sql_start(g->sql, MO_SQL_READ_CALL, e, "tt", r->session,
                            r->id);
    case MO_READ_DAY:
        return mo_sql_start(g->sql, MO_SQL_READ_DAY, e, "itti", after, r->text,
                            r->id, g->limit);
    case MO_READ_MARK:
        return mo_sql_start(g->sql, MO_SQL_READ_MARK, e, "t", r->id);
    case MO_READ_MARKS:
        return mo_sql_start(g->sql, MO_SQL_READ_MARKS, e, "tti", r->text, r->id,
                            g->limit);
    case MO_READ_SEARCH:
        return start_search(g);
    default: /* MO_READ_AUDIT; `after` 0 is no bound: a row may be of 1970 */
        return mo_sql_start(g->sql, MO_SQL_READ_AUDIT, e, "iitti",
                            after ? after : -1, before, r->session, r->text,
                            g->limit);
    }
}

/* --- answers ------------------------------------------------------------- */

static bool keep_row(struct reading *g, sqlite3_stmt *st, struct mo_row *row)
{
    struct mo_arena *a = &g->op->mem;

    *row = (struct mo_row){
        .conversation = (uint64_t)mo_sql_int(g->sql, st, 3),
        .seq = (uint64_t)mo_sql_int(g->sql, st, 4),
        .at = (uint64_t)mo_sql_int(g->sql, st, 5),
        .state = (enum mo_call_state)mo_sql_int(g->sql, st, 6),
    };
    if ((g->r->kind == MO_READ_SESSION || g->r->kind == MO_READ_SESSIONS) &&
        mo_arena_span(a, mo_sql_text(g->sql, st, 7), &row->shares) < 0)
        return false;
    return mo_arena_span(a, mo_sql_text(g->sql, st, 0), &row->session) == 0 &&
           mo_arena_span(a, mo_sql_text(g->sql, st, 1), &row->id) == 0 &&
           mo_arena_span(a, mo_sql_text(g->sql, st, 2), &row->doc) == 0;
}

/* Collects rows up to the limits of number and bytes; 0 or an error. */
static int collect_rows(struct reading *g, sqlite3_stmt *st, struct mo_row *v)
{
    struct mo_rows *rows = &g->op->rows;
    size_t bytes = 0;
    int rc = mo_sql_step(g->sql, st, &g->op->err);

    for (; rc == 1; rc = mo_sql_step(g->sql, st, &g->op->err)) {
        bytes += mo_sql_text(g->sql, st, 2).n + 256;
        if (rows->n == g->r->limit ||
            (rows->n && bytes > MO_STORE_ANSWER_MAX)) {
            rows->more = true;
            return 0;
        }
        if (!keep_row(g, st, &v[rows->n]))
            return mo_fail(&g->op->err, MO_ENOMEM, "store: answer");
        rows->n++;
    }
    return rc;
}

/* A search whose index lags goes to the writer's lane and comes back. */
static bool must_wait(struct mo_sqlite *q, struct mo_op *op)
{
    int rc = 0;

    if (op->read.kind == MO_READ_SEARCH && !op->index_to)
        rc = mo_sqlite_index_lags(q, op);
    if (rc == 1)
        op->back = &q->writer;
    return rc != 0;
}

void mo_sqlite_read(struct mo_sqlite *q, struct mo_op *op)
{
    struct reading g = {.sql = &q->reader.sql,
                        .op = op,
                        .r = &op->read,
                        .limit = (int64_t)op->read.limit + 1};
    struct mo_row *v = mo_arena_alloc(&op->mem, op->read.limit * sizeof(*v));
    sqlite3_stmt *st;

    if (!v) {
        (void)mo_fail(&op->err, MO_ENOMEM, "store: answer");
        return;
    }
    mo_buf_init(&g.query, QUERY_MAX);
    mo_buf_init(&g.among, 3 * MO_STORE_AMONG_MAX);
    g.sql->stop_ns = mo_now_ns() + q->s.deadline_ms * MO_MS;
    st = must_wait(q, op) ? NULL : start_read(&g);
    if (st && collect_rows(&g, st, v) == 0 && op->read.newest)
        mo_rows_reverse(v, op->rows.n);
    op->rows.v = v;
    mo_sql_end(g.sql, st);
    g.sql->stop_ns = 0;
    mo_buf_fini(&g.query);
    mo_buf_fini(&g.among);
}
