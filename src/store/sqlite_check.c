/* sqlite_check.c - checks a large file after an unclean end, while the store
 * serves.
 *
 * A check reads every page, so a start must not wait for it. Small files are
 * checked when they are opened (mo_sql_migrate()). A large one is checked only
 * if a write-ahead log was left behind. SQLite removes the log when the last
 * connection closes, so a log means that a process or the machine died, or
 * that another process has the file open.
 *
 * The check begins CHECK_AFTER_MS after the start, on a thread of lowest
 * priority with a connection of its own. If it finds damage, the store is down
 * from then on: every operation fails with MO_EUNAVAIL and the reason, because
 * writing to a damaged file makes the damage worse.
 *
 * Ownership: the loop opens and closes the connection, so that it can
 * interrupt the thread at any time. */
#include <stdio.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include "base/clock.h"
#include "store/sqlite_priv.h"

#define ROOM           "store"
#define CHECK_AFTER_MS 1000

bool mo_sqlite_log_left(const char *path)
{
    char log[4096 + sizeof("-wal")];
    struct stat st;
    int n = snprintf(log, sizeof(log), "%s-wal", path);

    return n > 0 && (size_t)n < sizeof(log) && stat(log, &st) == 0 &&
           st.st_size > 0;
}

/* --- on the thread ------------------------------------------------------- */

static void run_check(struct mo_job *j)
{
    struct mo_sqlite_check *c = mo_container_of(j, struct mo_sqlite_check, job);

    (void)setpriority(PRIO_PROCESS, 0, 19); /* of this thread alone */
    (void)mo_sql_check(&c->sql, c->q->path, &c->err);
}

/* --- on the loop --------------------------------------------------------- */

static void report_check(const struct mo_sqlite_check *c)
{
    const struct mo_log *log = mo_loop_log(c->q->s.loop);

    if (!c->err.code)
        mo_log(log, MO_INFO, ROOM, "%s: checked, no damage found (%llu ms)",
               c->q->path,
               (unsigned long long)((mo_now_ns() - c->began_ns) / MO_MS));
    else if (c->err.code == MO_EIO)
        mo_log_err(log, MO_ERROR, ROOM, &c->err, "check");
    else
        mo_log_err(log, MO_WARN, ROOM, &c->err, "%s: could not be checked",
                   c->q->path);
}

static void on_check_done(struct mo_job *j, bool canceled)
{
    struct mo_sqlite_check *c = mo_container_of(j, struct mo_sqlite_check, job);

    mo_sql_close(&c->sql);
    if (canceled || c->closing)
        return;
    report_check(c);
    if (c->err.code == MO_EIO) {
        c->damaged = true;
        mo_store_down(&c->q->s, &c->err);
    }
}

static int start_check(struct mo_sqlite_check *c)
{
    struct mo_sqlite *q = c->q;
    int rc = mo_sql_open(&c->sql, &q->lib, q->path, q->s.deadline_ms, &c->err);

    if (rc < 0)
        return rc;
    c->work = mo_work_start(q->s.loop, "mo-store-check", 1, &c->err);
    if (!c->work)
        return c->err.code;
    MO_BUG_ON(mo_work_submit(c->work, &c->job) < 0); /* the only one */
    return 0;
}

static void on_check_due(struct mo_timer *t)
{
    struct mo_sqlite_check *c =
        mo_container_of(t, struct mo_sqlite_check, timer);

    c->began_ns = mo_now_ns();
    mo_log(mo_loop_log(c->q->s.loop), MO_INFO, ROOM,
           "%s: was not closed properly; checking it beside serving",
           c->q->path);
    if (start_check(c) == 0)
        return;
    mo_sql_close(&c->sql);
    report_check(c);
}

void mo_sqlite_check_init(struct mo_sqlite *q)
{
    q->check.q = q;
    mo_timer_init(&q->check.timer, on_check_due);
    mo_job_init(&q->check.job, run_check, on_check_done);
}

void mo_sqlite_check_later(struct mo_sqlite *q)
{
    mo_timer_start(q->s.loop, &q->check.timer, CHECK_AFTER_MS);
}

void mo_sqlite_check_stop(struct mo_sqlite *q, void (*gone)(void *ctx),
                          void *ctx)
{
    struct mo_sqlite_check *c = &q->check;

    mo_timer_stop(q->s.loop, &c->timer);
    c->closing = true;
    if (!c->work) {
        gone(ctx);
        return;
    }
    if (c->sql.db)
        q->lib.sqlite3_interrupt(c->sql.db);
    mo_work_stop(mo_take_ptr(&c->work), MO_WORK_CANCEL, gone, ctx);
}
