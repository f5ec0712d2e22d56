/* sqlite.c - the store in a file: two threads with a connection each.
 *
 * Writes go through the writer's lane. While its thread commits one group, the
 * next one gathers; all of a group share one transaction and so one fsync. No
 * group waits to be filled. Each operation that can be refused half-way has a
 * savepoint, so a refusal undoes only that operation. If the commit fails,
 * nothing of the group happened and every caller gets the error.
 *
 * Reads go through the reader's lane, one at a time, each with a time limit.
 *
 * Several processes may share the file. They take turns by SQLite's lock
 * (waiting at most a deadline) and announce released leases by notice.h. */
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

#include "base/clock.h"
#include "store/sqlite_priv.h"

#define ROOM     "store"
#define QUIET_MS 50 /* without a write; then the index is moved on */

static struct mo_sqlite *from_store(struct mo_store *s)
{
    return mo_container_of(s, struct mo_sqlite, s);
}

/* --- on the writer's thread ---------------------------------------------- */

static int apply_op(struct mo_sqlite *q, struct mo_op *op)
{
    if (op->kind == MO_OP_READ)
        return 0; /* a search waits for mo_sqlite_index() only */
    if (op->kind == MO_OP_WRITE)
        return mo_sqlite_write(q, op);
    if (op->kind == MO_OP_SWEEP)
        return mo_sqlite_sweep(q, op);
    if (op->kind == MO_OP_COUNT)
        return mo_sqlite_count(q, op);
    return mo_sqlite_lease(q, op);
}

/* A batch of a single write needs no savepoint. If it is refused, it has
 * changed nothing (see sqlite_write.c). If the library fails in the middle of
 * it, the whole transaction is rolled back and the group runs again with
 * savepoints for all, so that only the operation that fails (on a damaged
 * page, say) gets the error. */
static bool goes_alone(const struct mo_lane *lane, const struct mo_op *op)
{
    return op->kind == MO_OP_WRITE && op->batch.n == 1 && !lane->spoilt;
}

static int apply_alone(struct mo_sqlite *q, struct mo_op *op)
{
    if (apply_op(q, op) != MO_EUNAVAIL)
        return 0;
    q->writer.err = op->err;
    q->writer.spoilt = true;
    return MO_EUNAVAIL;
}

/* MO_EUNAVAIL: the transaction itself is lost. */
static int apply_saved(struct mo_sqlite *q, struct mo_op *op)
{
    struct mo_sql *sql = &q->writer.sql;
    struct mo_err *e = &q->writer.err;

    if (mo_sql_do(sql, MO_SQL_SAVE, e, "") < 0)
        return MO_EUNAVAIL;
    if (apply_op(q, op) < 0) {
        if (q->lib.sqlite3_get_autocommit(sql->db)) {
            *e = op->err;
            return MO_EUNAVAIL;
        }
        if (mo_sql_do(sql, MO_SQL_BACK, e, "") < 0)
            return MO_EUNAVAIL;
    }
    return mo_sql_do(sql, MO_SQL_RELEASE, e, "") < 0 ? MO_EUNAVAIL : 0;
}

static int run_transaction(struct mo_lane *lane)
{
    struct mo_sql *sql = &lane->sql;
    int rc = mo_sql_do(sql, MO_SQL_BEGIN, &lane->err, "");

    if (rc < 0)
        return rc;
    mo_list_each_entry (op, &lane->group, struct mo_op, node) {
        rc = goes_alone(lane, op) ? apply_alone(lane->q, op)
                                  : apply_saved(lane->q, op);
        if (rc < 0)
            break;
    }
    if (rc == 0)
        rc = mo_sql_do(sql, MO_SQL_COMMIT, &lane->err, "");
    if (rc < 0 && !lane->q->lib.sqlite3_get_autocommit(sql->db))
        (void)mo_sql_do(sql, MO_SQL_ROLLBACK, NULL, "");
    return rc < 0 ? rc : 0;
}

static int run_again(struct mo_lane *lane)
{
    mo_err_clear(&lane->err);
    mo_list_each_entry (op, &lane->group, struct mo_op, node) {
        mo_err_clear(&op->err);
        op->written = (struct mo_written){0};
        op->rows = (struct mo_rows){0};
        op->held = false;
        op->counted = (struct mo_counted){.refused = false};
    }
    return run_transaction(lane);
}

static void run_writes(struct mo_job *j)
{
    struct mo_lane *lane = mo_container_of(j, struct mo_lane, job);
    int rc = 0;

    mo_err_clear(&lane->err);
    lane->spoilt = false;
    if (!mo_list_empty(&lane->group))
        rc = run_transaction(lane);
    if (rc < 0 && lane->spoilt)
        rc = run_again(lane);
    mo_list_each_entry (op, &lane->group, struct mo_op, node) {
        if (rc < 0)
            op->err = lane->err;
        else if ((op->kind == MO_OP_DROP || op->kind == MO_OP_BREAK) &&
                 op->held)
            mo_notice_give(&lane->q->notice, op->name);
    }
    if (rc == 0)
        mo_sqlite_index(lane->q);
}

/* --- on the reader's thread ---------------------------------------------- */

static void run_reads(struct mo_job *j)
{
    struct mo_lane *lane = mo_container_of(j, struct mo_lane, job);

    mo_list_each_entry (op, &lane->group, struct mo_op, node) {
        if (op->kind == MO_OP_WHO)
            mo_sqlite_who(lane->q, op);
        else
            mo_sqlite_read(lane->q, op);
    }
}

/* --- the lanes, on the loop ---------------------------------------------- */

/* Operations whose deadline passed in the queue are dropped. */
static void fill_group(struct mo_lane *lane)
{
    unsigned n = 0;

    while (n < lane->max && !mo_list_empty(&lane->waiting)) {
        struct mo_op *op = mo_list_pop(&lane->waiting, struct mo_op, node);

        if (op->answered) {
            mo_op_finish(op);
            continue;
        }
        mo_list_push(&lane->group, &op->node);
        n++;
    }
}

static void lane_run(struct mo_lane *lane)
{
    lane->running = true;
    MO_BUG_ON(mo_work_submit(lane->work, &lane->job) < 0); /* the only one */
}

static void lane_go(struct mo_lane *lane)
{
    if (lane->running)
        return;
    fill_group(lane);
    if (mo_list_empty(&lane->group))
        return;
    lane_run(lane);
}

static void note_health(struct mo_lane *lane)
{
    struct mo_store *s = &lane->q->s;

    if (lane == &lane->q->reader || mo_list_empty(&lane->group))
        return;
    if (lane->err.code) {
        mo_store_down(s, &lane->err);
        return;
    }
    s->health.group_commits++;
    if (!lane->q->check.damaged)
        mo_store_up(s);
}

static void on_lane_go(struct mo_later *d)
{
    lane_go(mo_container_of(d, struct mo_lane, go));
}

/* --- time for the index -------------------------------------------------- */

static void note_index(struct mo_sqlite *q)
{
    struct mo_sqlite_index *x = &q->index;

    if (x->err.code && !x->failing)
        mo_log_err(
            mo_loop_log(q->s.loop), MO_WARN, ROOM, &x->err,
            "the newest entries cannot be indexed; search does not find them");
    x->failing = x->err.code != 0;
    x->due = false;
    q->last_ns = mo_now_ns();
    if (x->rows && !q->s.closed && !mo_timer_on(&q->quiet))
        mo_timer_start(q->s.loop, &q->quiet, QUIET_MS);
}

static void on_quiet(struct mo_timer *t)
{
    struct mo_sqlite *q = mo_container_of(t, struct mo_sqlite, quiet);
    struct mo_lane *lane = &q->writer;

    if (lane->running || !mo_list_empty(&lane->waiting) ||
        mo_now_ns() - q->last_ns < QUIET_MS * MO_MS) {
        mo_timer_start(q->s.loop, t, QUIET_MS);
        return;
    }
    q->index.due = true;
    lane_run(lane);
}

/* A search may continue in the other lane. */
static void finish_or_continue(struct mo_op *op)
{
    struct mo_lane *to = op->back;

    op->back = NULL;
    if (!to || op->answered) {
        mo_op_finish(op);
        return;
    }
    mo_list_del(&op->node);
    mo_list_push(&to->waiting, &op->node);
    mo_loop_soon(op->s->loop, &to->go);
}

/* Callbacks first: writes that they start belong to the next group. */
static void on_lane_done(struct mo_job *j, bool canceled)
{
    struct mo_lane *lane = mo_container_of(j, struct mo_lane, job);
    struct mo_list done;

    MO_BUG_ON(canceled);
    lane->running = false;
    note_health(lane);
    if (lane == &lane->q->writer)
        note_index(lane->q);
    mo_list_init(&done);
    mo_list_splice(&done, &lane->group);
    mo_loop_soon(lane->q->s.loop, &lane->go);
    while (!mo_list_empty(&done))
        finish_or_continue(mo_container_of(done.next, struct mo_op, node));
}

static void sqlite_submit(struct mo_store *s, struct mo_op *op)
{
    struct mo_sqlite *q = from_store(s);
    bool reads = op->kind == MO_OP_READ || op->kind == MO_OP_WHO;
    struct mo_lane *lane = reads ? &q->reader : &q->writer;

    if (q->check.damaged) {
        (void)mo_fail(&op->err, MO_EUNAVAIL, "%s", q->check.err.msg);
        mo_op_finish_later(op);
        return;
    }
    mo_list_push(&lane->waiting, &op->node);
    mo_loop_soon(s->loop,
                 &lane->go); /* one run for all that came in this turn */
}

static bool in_file(struct mo_span name, const void *file)
{
    return mo_notice_file(name) == *(const unsigned *)file;
}

static void on_heard(void *ctx, unsigned file)
{
    struct mo_sqlite *q = ctx;

    mo_lease_wake_if(&q->s, file < MO_NOTICE_FILES ? in_file : NULL, &file);
}

static void sqlite_listen(struct mo_store *s)
{
    struct mo_sqlite *q = from_store(s);
    struct mo_err e;

    if (mo_notice_listen(&q->notice, on_heard, q, &e) < 0)
        mo_log_err(mo_loop_log(s->loop), MO_WARN, ROOM, &e,
                   "no wake-up by inotify: waiting for a lease of another "
                   "process may take up to its term");
}

/* --- the end ------------------------------------------------------------- */

static void free_rest(struct mo_sqlite *q)
{
    mo_sql_close(&q->reader.sql);
    mo_sql_close(&q->writer.sql);
    mo_free(q->path);
}

static void on_notice_gone(void *ctx)
{
    struct mo_sqlite *q = ctx;

    mo_store_gone(&q->s);
}

static void on_writer_gone(void *ctx)
{
    struct mo_sqlite *q = ctx;

    mo_later_cancel(
        &q->writer.go); /* set again when a chunk of the index ended */
    mo_notice_close(&q->notice, on_notice_gone, q);
}

static void run_closing(struct mo_job *j)
{
    free_rest(mo_container_of(j, struct mo_sqlite, closing));
}

static void on_closing_done(struct mo_job *j, bool canceled)
{
    struct mo_sqlite *q = mo_container_of(j, struct mo_sqlite, closing);

    (void)canceled;
    mo_work_stop(q->writer.work, MO_WORK_DRAIN, on_writer_gone, q);
}

/* Closing the last connection writes the log into the file, which may block:
 * the writer's thread does it. */
static void on_reader_gone(void *ctx)
{
    struct mo_sqlite *q = ctx;

    mo_job_init(&q->closing, run_closing, on_closing_done);
    MO_BUG_ON(mo_work_submit(q->writer.work, &q->closing) < 0);
}

static void on_check_gone(void *ctx)
{
    struct mo_sqlite *q = ctx;

    mo_work_stop(q->reader.work, MO_WORK_DRAIN, on_reader_gone, q);
}

static void sqlite_close(struct mo_store *s)
{
    struct mo_sqlite *q = from_store(s);

    mo_timer_stop(s->loop, &q->quiet);
    mo_later_cancel(&q->writer.go);
    mo_later_cancel(&q->reader.go);
    mo_sqlite_check_stop(q, on_check_gone, q);
}

/* --- birth --------------------------------------------------------------- */

static const struct mo_store_ops sqlite_ops = {
    .name = "sqlite",
    .submit = sqlite_submit,
    .listen = sqlite_listen,
    .close = sqlite_close,
};

static void lane_init(struct mo_lane *lane, struct mo_sqlite *q, unsigned max,
                      void (*run)(struct mo_job *j))
{
    lane->q = q;
    lane->max = max;
    mo_list_init(&lane->waiting);
    mo_list_init(&lane->group);
    mo_job_init(&lane->job, run, on_lane_done);
    mo_later_init(&lane->go, on_lane_go);
}

/* The id of this boot. Leases do not outlive a boot. */
static int read_boot(struct mo_sqlite *q, struct mo_err *e)
{
    mo_autofd int fd =
        open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC);
    ssize_t n = fd < 0 ? -1 : read(fd, q->boot, sizeof(q->boot) - 1);

    if (n < 0)
        return mo_fail_sys(e, "store: boot_id");
    q->boot[n] = '\0';
    q->boot[strcspn(q->boot, "\n")] = '\0';
    return 0;
}

static int open_files(struct mo_sqlite *q, struct mo_err *e)
{
    mo_autobuf struct mo_buf dir = {.max = strlen(q->path) + 16};
    uint64_t began = mo_now_ns(), took;
    bool log_left = mo_sqlite_log_left(q->path), checked = false;
    int rc = mo_sqlite_load(&q->lib, e);

    if (rc == 0)
        rc = read_boot(q, e);
    if (rc == 0)
        rc = mo_sql_open(&q->writer.sql, &q->lib, q->path, q->s.deadline_ms, e);
    if (rc == 0)
        rc = mo_sql_migrate(&q->writer.sql, q->path, &checked, e);
    if (rc == 0)
        rc = mo_sql_open(&q->reader.sql, &q->lib, q->path, q->s.deadline_ms, e);
    if (rc < 0)
        return rc;
    if (log_left && !checked)
        mo_sqlite_check_later(q);
    took = (mo_now_ns() - began) / MO_MS;
    if (took > 500)
        mo_log(mo_loop_log(q->s.loop), MO_INFO, ROOM, "%s: opened in %llu ms",
               q->path, (unsigned long long)took);
    if (mo_buf_printf(&dir, "%s-notice", q->path) < 0)
        return mo_fail(e, MO_ENOMEM, "store");
    return mo_notice_open(&q->notice, q->s.loop, mo_buf_cstr(&dir), e);
}

static int start_lanes(struct mo_sqlite *q, struct mo_err *e)
{
    /* two jobs: closing may come while the index moves on */
    q->writer.work = mo_work_start(q->s.loop, "mo-store-write", 2, e);
    if (!q->writer.work)
        return e ? e->code : MO_EIO;
    q->reader.work = mo_work_start(q->s.loop, "mo-store-read", 1, e);
    if (q->reader.work)
        return 0;
    mo_work_stop(q->writer.work, MO_WORK_CANCEL, NULL, NULL);
    return e ? e->code : MO_EIO;
}

int mo_sqlite_open(struct mo_loop *l, const struct mo_store_opts *o,
                   struct mo_store **out, struct mo_err *e)
{
    const char *path = o->url + strlen("sqlite:");
    struct mo_sqlite *q;
    int rc;

    if (!*path)
        return mo_fail(e, MO_EINVAL, "store: sqlite: needs a file");
    q = mo_new(struct mo_sqlite);
    if (!q)
        return mo_fail(e, MO_ENOMEM, "store");
    mo_store_init(&q->s, &sqlite_ops, l, o);
    lane_init(&q->writer, q, MO_SQLITE_GROUP_MAX, run_writes);
    lane_init(&q->reader, q, 1, run_reads);
    mo_timer_init(&q->quiet, on_quiet);
    mo_sqlite_check_init(q);
    q->index.rows = 1; /* an earlier process may have left rows unindexed */
    q->notice.dir = -1;
    q->path = mo_strndup(path, strlen(path));
    if (!q->path)
        rc = mo_fail(e, MO_ENOMEM, "store");
    else
        rc = open_files(q, e);
    if (rc == 0)
        rc = start_lanes(q, e);
    if (rc < 0) {
        mo_timer_stop(l, &q->check.timer);
        free_rest(q);
        mo_close_fd(&q->notice.dir);
        mo_store_gone(&q->s);
        return rc;
    }
    mo_store_up(&q->s);
    mo_timer_start(l, &q->quiet, QUIET_MS);
    *out = &q->s;
    return 0;
}
