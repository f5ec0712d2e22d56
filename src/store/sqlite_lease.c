/* sqlite_lease.c - leases as rows. Runs on the writer's thread, except
 * mo_sqlite_who() on the reader's.
 *
 * A row is a lease in force while it has a token, belongs to this boot of the
 * machine and its term is not over. Terms are on the monotonic clock, which
 * all processes of a machine share. The row stays after the lease was given
 * back, because of its fence. */
#include "base/clock.h"
#include "store/sqlite_priv.h"

struct found {
    int64_t fence, left_ms; /* left 0: free */
    bool ours;
    struct mo_span owner; /* in op->mem */
};

static int64_t now_ms(void)
{
    return (int64_t)(mo_now_ns() / MO_MS);
}

static int find_lease(struct mo_sqlite *q, struct mo_sql *sql, struct mo_op *op,
                      struct mo_span name, struct found *f)
{
    sqlite3_stmt *st = mo_sql_start(sql, MO_SQL_LEASE_GET, &op->err, "tt", name,
                                    mo_span_cstr(q->boot));
    int rc = mo_sql_step(sql, st, &op->err);

    *f = (struct found){0};
    if (rc == 1) {
        struct mo_span token = mo_sql_text(sql, st, 1);
        int64_t left = mo_sql_int(sql, st, 3) - now_ms();

        f->fence = mo_sql_int(sql, st, 0);
        f->left_ms = token.n && left > 0 ? left : 0;
        f->ours = f->left_ms && mo_span_is(token, op->token);
        rc = 0;
        if (f->left_ms &&
            mo_arena_span(&op->mem, mo_sql_text(sql, st, 2), &f->owner) < 0)
            rc = mo_fail(&op->err, MO_ENOMEM, "store: lease");
    }
    mo_sql_end(sql, st);
    return rc;
}

int mo_sqlite_fence(struct mo_sqlite *q, struct mo_op *op)
{
    struct found f;
    int rc = find_lease(q, &q->writer.sql, op, op->batch.session, &f);

    if (rc < 0)
        return rc;
    if (f.left_ms && (uint64_t)f.fence == op->batch.fence)
        return 0;
    return mo_fail(&op->err, MO_EPOLICY,
                   "store: %.*s was taken over by another process",
                   (int)op->batch.session.n, op->batch.session.p);
}

/* Larger than every earlier one, also if the file was lost. */
static int64_t next_fence(const struct mo_op *op, int64_t last)
{
    int64_t now_us = (int64_t)(op->now_ms * 1000);

    return now_us > last ? now_us : last + 1;
}

static int try_it(struct mo_sqlite *q, struct mo_op *op)
{
    struct mo_sql *sql = &q->writer.sql;
    struct found f;
    int rc = find_lease(q, sql, op, op->name, &f);

    if (rc < 0)
        return rc;
    if (f.left_ms && !f.ours) {
        op->fence = (uint64_t)f.fence;
        op->holder = f.owner;
        op->left_ms = (uint64_t)f.left_ms;
        return 0;
    }
    op->held = true;
    op->fence = (uint64_t)(f.ours ? f.fence : next_fence(op, f.fence));
    return mo_sql_do(sql, MO_SQL_LEASE_PUT, &op->err, "titttii", op->name,
                     (int64_t)op->fence, mo_span_cstr(op->token), op->owner,
                     mo_span_cstr(q->boot),
                     now_ms() + (int64_t)q->s.lease_ttl_ms,
                     (int64_t)op->now_ms);
}

static int renew_lease(struct mo_sqlite *q, struct mo_op *op)
{
    int64_t now = now_ms();
    int rc = mo_sql_do(&q->writer.sql, MO_SQL_LEASE_RENEW, &op->err, "tttii",
                       op->name, mo_span_cstr(op->token), mo_span_cstr(q->boot),
                       now + (int64_t)q->s.lease_ttl_ms, now);

    if (rc != 0)
        return rc;
    return mo_fail(&op->err, MO_EPOLICY, "%.*s: the lease was lost",
                   (int)op->name.n, op->name.p);
}

int mo_sqlite_lease(struct mo_sqlite *q, struct mo_op *op)
{
    struct mo_sql *sql = &q->writer.sql;
    int64_t now = (int64_t)op->now_ms;
    int rc;

    if (op->kind == MO_OP_TRY)
        rc = try_it(q, op);
    else if (op->kind == MO_OP_RENEW)
        rc = renew_lease(q, op);
    else if (op->kind == MO_OP_BREAK)
        rc = mo_sql_do(sql, MO_SQL_LEASE_BREAK, &op->err, "ttii", op->name,
                       op->owner, (int64_t)op->fence, now);
    else
        rc = mo_sql_do(sql, MO_SQL_LEASE_DROP, &op->err, "tti", op->name,
                       mo_span_cstr(op->token), now);
    if (op->kind == MO_OP_DROP || op->kind == MO_OP_BREAK)
        op->held = rc > 0; /* announce the release once it is committed */
    return rc < 0 ? rc : 0;
}

void mo_sqlite_who(struct mo_sqlite *q, struct mo_op *op)
{
    struct found f;

    if (find_lease(q, &q->reader.sql, op, op->name, &f) < 0)
        return;
    op->holder = f.owner;
    op->fence = f.left_ms ? (uint64_t)f.fence : 0;
}
