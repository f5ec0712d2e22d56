/* sqlite_write.c - batches and sweeping, on the writer's thread.
 *
 * A batch is applied write by write inside a savepoint of the caller's; the
 * first refusal ends it. Facts about the session (does it exist, which
 * conversation is current) are read once per batch.
 *
 * Every write finds its refusal before it changes anything. sqlite.c relies on
 * that: a batch of a single write has no savepoint. */
#include "store/sqlite_priv.h"

struct batch {
    struct mo_sqlite *q;
    struct mo_sql *sql;
    struct mo_op *op;
    struct mo_span session;
    int known;    /* does the session exist? -1: not read yet */
    int64_t conv; /* its current conversation; 0: not read yet */
};

/* mo_sql_do() returns a count; keep only a failure. */
static int only_failure(int rc)
{
    return rc < 0 ? rc : 0;
}

static int need_session(struct batch *b)
{
    int64_t one;

    if (b->known < 0) {
        int rc = mo_sql_number(b->sql, MO_SQL_SESSION_KNOWN, &one, &b->op->err,
                               "t", b->session);

        if (rc < 0)
            return rc;
        b->known = rc;
    }
    if (b->known)
        return 0;
    return mo_fail(&b->op->err, MO_ENOTFOUND, "store: no session %.*s",
                   (int)b->session.n, b->session.p);
}

static int find_conv(struct batch *b)
{
    if (b->conv)
        return 0;
    return only_failure(mo_sql_number(b->sql, MO_SQL_CONV_NOW, &b->conv,
                                      &b->op->err, "t", b->session));
}

/* The session must exist; then its conversation. */
static int need_conv(struct batch *b)
{
    int rc = need_session(b);

    return rc < 0 ? rc : find_conv(b);
}

static int put_session(struct batch *b, const struct mo_write *w)
{
    b->known = 1;
    return mo_sql_do(b->sql, MO_SQL_SESSION_PUT, &b->op->err, "tit", b->session,
                     (int64_t)w->at, w->doc);
}

static int touch_session(struct batch *b, const struct mo_write *w)
{
    int rc = need_session(b);

    if (rc < 0)
        return rc;
    return mo_sql_do(b->sql, MO_SQL_SESSION_TOUCH, &b->op->err, "ti",
                     b->session, (int64_t)w->at);
}

static int share_session(struct batch *b, const struct mo_write *w)
{
    int rc = need_session(b);

    if (rc < 0)
        return rc;
    return mo_sql_do(b->sql, MO_SQL_SESSION_SHARE, &b->op->err, "tt",
                     b->session, w->doc);
}

static int close_session(struct batch *b, const struct mo_write *w)
{
    int rc =
        mo_sql_do(b->sql, MO_SQL_SESSION_DEL, &b->op->err, "t", b->session);

    (void)w;
    b->known = 0;
    if (rc < 0)
        return rc;
    return mo_sql_do(b->sql, MO_SQL_CONV_DEL_EMPTY, &b->op->err, "t",
                     b->session);
}

static int forget_session(struct batch *b, const struct mo_write *w)
{
    static const enum mo_sql_id all[] = {
        MO_SQL_SESSION_DEL, MO_SQL_ENTRY_DEL_ALL, MO_SQL_CONV_DEL_ALL,
        MO_SQL_CALL_DEL_ALL, MO_SQL_AUDIT_STRIP};
    int rc = 0;

    (void)w;
    for (size_t i = 0; i < MO_COUNT(all) && rc >= 0; i++)
        rc = mo_sql_do(b->sql, all[i], &b->op->err, "t", b->session);
    b->known = 0;
    b->conv = 0;
    return rc;
}

/* Takes the next seq of the current conversation in one statement: 1, or 0
 * when there is no session or it has no conversation yet. */
static int step_conv(struct batch *b, const struct mo_write *w, int64_t *seq)
{
    sqlite3_stmt *st =
        mo_sql_start(b->sql, MO_SQL_CONV_STEP, &b->op->err, "t", b->session);
    int rc = mo_sql_step(b->sql, st, &b->op->err);

    if (rc == 1) {
        *seq = mo_sql_int(b->sql, st, 0);
        b->conv = mo_sql_int(b->sql, st, 1);
        b->known = 1;
    }
    mo_sql_end(b->sql, st);
    if (rc != 1)
        return rc;
    return mo_sql_do(b->sql, MO_SQL_CONV_SET, &b->op->err, "tiii", b->session,
                     b->conv, *seq, (int64_t)w->at);
}

static int begin_conv(struct batch *b, const struct mo_write *w, int64_t *seq)
{
    int rc = need_conv(b);

    return rc < 0 ? rc
                  : mo_sql_number(b->sql, MO_SQL_CONV_NEXT, seq, &b->op->err,
                                  "tii", b->session, b->conv, (int64_t)w->at);
}

/* 1: the entry is one of the last already. */
static int is_there(struct batch *b, const struct mo_write *w, int64_t *seq)
{
    int rc = need_conv(b);

    return rc < 0 ? rc
                  : mo_sql_number(b->sql, MO_SQL_ENTRY_SAME, seq, &b->op->err,
                                  "tit", b->session, b->conv, w->doc);
}

static int put_entry(struct batch *b, const struct mo_write *w)
{
    int64_t seq = 0;
    int rc = w->again ? is_there(b, w, &seq) : 0;

    if (rc == 1)
        b->op->written.seq = (uint64_t)seq;
    if (rc != 0)
        return rc;
    rc = step_conv(b, w, &seq);
    if (rc == 0)
        rc = begin_conv(b, w, &seq);
    if (rc < 0)
        return rc;
    b->op->written.seq = (uint64_t)seq;
    b->q->index.rows++;
    b->q->index.bytes += w->doc.n + w->text.n;
    return mo_sql_do(b->sql, MO_SQL_ENTRY_PUT, &b->op->err, "tiiitt",
                     b->session, b->conv, seq, (int64_t)w->at, w->doc, w->text);
}

static int begin_fresh_conv(struct batch *b, const struct mo_write *w)
{
    int rc = need_conv(b);

    if (rc < 0)
        return rc;
    b->conv++;
    return mo_sql_do(b->sql, MO_SQL_CONV_NEW, &b->op->err, "tii", b->session,
                     b->conv, (int64_t)w->at);
}

static int put_call(struct batch *b, const struct mo_write *w)
{
    int rc = need_session(b);

    if (rc < 0)
        return rc;
    rc = mo_sql_do(b->sql, MO_SQL_CALL_PUT, &b->op->err, "ttiit", b->session,
                   w->id, (int64_t)w->to, (int64_t)w->at, w->doc);
    if (rc != 0)
        return rc;
    return mo_fail(&b->op->err, MO_EEXISTS, "store: call %.*s exists already",
                   (int)w->id.n, w->id.p);
}

static int move_call(struct batch *b, const struct mo_write *w)
{
    int64_t state = 0;
    int rc = mo_sql_number(b->sql, MO_SQL_CALL_STATE, &state, &b->op->err, "tt",
                           b->session, w->id);

    if (rc < 0)
        return rc;
    if (rc == 0)
        return mo_fail(&b->op->err, MO_ENOTFOUND, "store: no call %.*s",
                       (int)w->id.n, w->id.p);
    if (!(MO_CALL_BIT((unsigned)state) & w->from))
        return mo_fail(&b->op->err, MO_EPOLICY,
                       "store: call %.*s is in another state already",
                       (int)w->id.n, w->id.p);
    return mo_sql_do(b->sql, MO_SQL_CALL_MOVE, &b->op->err, "ttiit", b->session,
                     w->id, (int64_t)w->to, (int64_t)w->at, w->doc);
}

static int put_audit(struct batch *b, const struct mo_write *w)
{
    return mo_sql_do(b->sql, MO_SQL_AUDIT_PUT, &b->op->err, "tit", b->session,
                     (int64_t)w->at, w->doc);
}

static int put_mark(struct batch *b, const struct mo_write *w)
{
    if (w->doc.n == 0)
        return mo_sql_do(b->sql, MO_SQL_MARK_DEL, &b->op->err, "t", w->id);
    return mo_sql_do(b->sql, MO_SQL_MARK_PUT, &b->op->err, "tt", w->id, w->doc);
}

int mo_sqlite_write(struct mo_sqlite *q, struct mo_op *op)
{
    static int (*const apply[])(struct batch *, const struct mo_write *) = {
        [MO_WRITE_SESSION] = put_session, [MO_WRITE_TOUCH] = touch_session,
        [MO_WRITE_CLOSE] = close_session, [MO_WRITE_FORGET] = forget_session,
        [MO_WRITE_ENTRY] = put_entry,     [MO_WRITE_FRESH] = begin_fresh_conv,
        [MO_WRITE_CALL] = put_call,       [MO_WRITE_MOVE] = move_call,
        [MO_WRITE_AUDIT] = put_audit,     [MO_WRITE_MARK] = put_mark,
        [MO_WRITE_SHARE] = share_session,
    };
    struct batch b = {.q = q,
                      .sql = &q->writer.sql,
                      .op = op,
                      .session = op->batch.session,
                      .known = -1};
    int rc = op->batch.fence ? mo_sqlite_fence(q, op) : 0;

    for (size_t i = 0; i < op->batch.n && rc >= 0; i++) {
        op->written.failed = i;
        rc = apply[op->batch.writes[i].kind](&b, &op->batch.writes[i]);
    }
    if (rc >= 0 && b.session.n)
        rc = find_conv(&b);
    op->written.conversation = (uint64_t)b.conv;
    return only_failure(rc);
}

/* --- sweeping ------------------------------------------------------------ */

#define SWEEP_ROWS  500 /* as in sql_text.h */
#define SWEEP_CONVS 100
#define DAY_MS      ((uint64_t)24 * 3600 * 1000)
#define LEASE_KEPT                                                             \
    ((uint64_t)7 * 24 * 3600 * 1000) /* so that its fence stays known */

/* Walks all conversations in key order: an index by time would cost every
 * append to save this walk. */
struct walk {
    int64_t cutoff;
    char id[MO_STORE_ID_MAX + 1]; /* the current session */
    struct mo_span session;
    int64_t number;
};

/* The next expired conversation: 1; 0: none. */
static int walk_on(struct mo_sql *sql, struct walk *w, struct mo_err *e)
{
    sqlite3_stmt *st = mo_sql_start(sql, MO_SQL_OLD_CONV, e, "iti", w->cutoff,
                                    w->session, w->number);
    int rc = mo_sql_step(sql, st, e);

    if (rc == 1) {
        struct mo_span s = mo_sql_text(sql, st, 0);

        w->session = mo_span(w->id, s.n < sizeof(w->id) ? s.n : 0);
        memcpy(w->id, s.p, w->session.n);
        w->number = mo_sql_int(sql, st, 1);
    }
    mo_sql_end(sql, st);
    return rc;
}

static int sweep_one(struct mo_sqlite *q, struct mo_op *op, struct walk *w)
{
    struct mo_sql *sql = &q->writer.sql;
    struct mo_err *e = &op->err;
    int rc = walk_on(sql, w, e);

    if (rc != 1)
        return rc;
    rc = mo_sql_do(sql, MO_SQL_OLD_ENTRIES, e, "ti", w->session, w->number);
    if (rc == SWEEP_ROWS) {
        w->number--; /* the rest of it next time */
        return 1;
    }
    if (rc >= 0)
        rc = mo_sql_do(sql, MO_SQL_OLD_CONV_REST, e, "ti", w->session,
                       w->number);
    if (rc == 0)
        rc =
            mo_sql_do(sql, MO_SQL_OLD_CONV_DEL, e, "ti", w->session, w->number);
    return rc < 0 ? rc : 1;
}

static int sweep_history(struct mo_sqlite *q, struct mo_op *op)
{
    uint64_t ttl = q->s.history_ttl_ms;
    struct walk w = {.session = MO_SPAN("")};
    int rc = 1;

    if (!ttl || ttl > op->now_ms)
        return 0;
    w.cutoff = (int64_t)(op->now_ms - ttl);
    for (int i = 0; i < SWEEP_CONVS && rc == 1; i++)
        rc = sweep_one(q, op, &w);
    op->rows.more |= rc == 1;
    if (rc >= 0)
        rc = mo_sql_do(&q->writer.sql, MO_SQL_OLD_CALLS, &op->err, "i",
                       w.cutoff);
    op->rows.more |= rc == SWEEP_ROWS;
    return only_failure(rc);
}

int mo_sqlite_sweep(struct mo_sqlite *q, struct mo_op *op)
{
    uint64_t ttl = q->s.audit_ttl_ms;
    int rc = sweep_history(q, op);

    if (rc == 0 && ttl && ttl < op->now_ms)
        rc = mo_sql_do(&q->writer.sql, MO_SQL_OLD_AUDIT, &op->err, "i",
                       (int64_t)(op->now_ms - ttl));
    op->rows.more |= rc == SWEEP_ROWS;
    if (rc >= 0 && op->now_ms > LEASE_KEPT)
        rc = mo_sql_do(&q->writer.sql, MO_SQL_OLD_LEASES, &op->err, "i",
                       (int64_t)(op->now_ms - LEASE_KEPT));
    if (rc >= 0)
        rc = mo_sql_do(&q->writer.sql, MO_SQL_OLD_DAYS, &op->err, "i",
                       (int64_t)(op->now_ms / DAY_MS) - MO_COUNTER_DAYS);
    op->rows.more |= rc == SWEEP_ROWS;
    return only_failure(rc);
}
