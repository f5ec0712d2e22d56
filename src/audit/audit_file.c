/* audit_file.c - collects rows and passes them in groups to the worker thread;
 * see audit_file.h. */
#include "audit/audit_file.h"

#include <stdio.h>

#include "base/mem.h"
#include "loop/work.h"

#define WAIT_MS    20
#define GROUP_SOON ((size_t)256 * 1024)
#define WAITERS    4096

struct waiter {
    struct mo_list node;
    mo_done_fn *done;
    void *ctx;
};

struct mo_audit_file {
    struct mo_loop *loop;
    struct mo_work *work; /* NULL: no row yet */
    struct mo_timer timer;
    struct mo_buf rows;         /* not yet in a group */
    uint64_t nrows, lost, told; /* told: lost rows that a row reports */
    struct mo_list waiters;     /* for the sync of these rows */
    unsigned nwaiters;
    /* the group being written */
    struct mo_job job;
    bool busy, sync;
    struct mo_buf group;
    uint64_t ngroup;
    struct mo_list waiting;
    struct mo_audit_file_file file; /* used by the worker only */
    struct mo_err why;
    struct mo_audit_file_stats stats;
    uint64_t groups;               /* begun so far */
    struct mo_audit_witness last;  /* written */
    struct mo_audit_witness known; /* for the worker, with the next group */
    void (*written)(void *ctx, uint64_t group, bool ok);
    void *ctx;
    bool closing, failing, asked; /* asked: write a group without rows */
    struct mo_later later;
    struct mo_gone gone;
};

static void flush_rows(struct mo_audit_file *g);

/* --- writing a group ----------------------------------------------------- */

static void write_group(struct mo_job *j)
{
    struct mo_audit_file *g = mo_container_of(j, struct mo_audit_file, job);

    mo_err_clear(&g->why);
    if (mo_audit_file_append(&g->file, mo_buf_view(&g->group), g->sync,
                             &g->why) == 0)
        mo_err_clear(&g->why); /* of a problem that was overcome */
}

static void finish_waiters(struct mo_audit_file *g, struct mo_list *to,
                           const struct mo_err *why)
{
    struct mo_list now;

    mo_list_init(&now);
    mo_list_splice(&now, to);
    mo_list_drain (w, &now, struct waiter, node) {
        struct waiter was = *w;

        mo_free(w);
        g->nwaiters--;
        was.done(was.ctx, why);
    }
}

/* Logs only when writing begins to fail and when it works again. */
static void log_state(struct mo_audit_file *g, bool failed)
{
    if (failed && !g->failing)
        mo_log_err(mo_loop_log(g->loop), MO_ERROR, "audit", &g->why,
                   "the audit log cannot be written");
    else if (!failed && g->failing)
        mo_log(mo_loop_log(g->loop), MO_INFO, "audit",
               "the audit log can be written again");
    g->failing = failed;
}

static void continue_close(struct mo_audit_file *g)
{
    if (!g->closing || g->busy)
        return;
    if (g->rows.len || !mo_list_empty(&g->waiters) || g->asked)
        flush_rows(g);
    else
        mo_loop_defer(g->loop, &g->later);
}

static void on_written(struct mo_job *j, bool canceled)
{
    struct mo_audit_file *g = mo_container_of(j, struct mo_audit_file, job);
    bool failed = canceled || g->why.code;

    if (canceled && !g->why.code)
        (void)mo_fail(&g->why, MO_ECANCELED, "the program is stopping");
    g->busy = false;
    log_state(g, failed);
    g->stats.fails += failed;
    g->stats.rows += failed ? 0 : g->ngroup;
    g->lost += failed ? g->ngroup : 0;
    g->stats.lost += failed ? g->ngroup : 0;
    if (!failed) {
        g->last.seq = g->file.chain.seq;
        memcpy(g->last.hash, g->file.chain.hash, sizeof(g->last.hash));
    }
    mo_buf_reset(&g->group);
    if (g->written)
        g->written(g->ctx, g->groups, !failed);
    finish_waiters(g, &g->waiting, failed ? &g->why : NULL);
    if (!g->closing &&
        (g->rows.len >= GROUP_SOON || !mo_list_empty(&g->waiters) || g->asked))
        flush_rows(g);
    else if (!g->closing && g->rows.len && !mo_timer_on(&g->timer))
        mo_timer_start(g->loop, &g->timer, WAIT_MS); /* added meanwhile */
    continue_close(g);
}

static int start_worker(struct mo_audit_file *g, struct mo_err *e)
{
    if (g->work)
        return 0;
    g->work = mo_work_start(g->loop, "audit", 1, e);
    return g->work ? 0 : e->code;
}

/* Adds a row with the number of lost rows. */
static void put_lost(struct mo_audit_file *g)
{
    uint64_t n = g->lost - g->told;

    if (n == 0)
        return;
    if (mo_buf_printf(&g->rows, "\"note\":\"%llu rows were lost here\"\n",
                      (unsigned long long)n) < 0)
        return;
    g->told = g->lost;
    g->nrows++;
}

static void begin_group(struct mo_audit_file *g)
{
    struct mo_buf empty = g->group;

    put_lost(g);
    g->group = g->rows;
    g->rows = empty;
    g->ngroup = g->nrows;
    g->nrows = 0;
    g->groups++;
    g->asked = false;
    if (g->known.seq)
        g->file.known = g->known; /* the worker rests */
    g->known.seq = 0;
    g->sync = !mo_list_empty(&g->waiters);
    mo_list_splice(&g->waiting, &g->waiters);
}

static void flush_rows(struct mo_audit_file *g)
{
    mo_timer_stop(g->loop, &g->timer);
    if (g->busy)
        return;
    begin_group(g);
    g->busy = true;
    mo_err_clear(&g->why);
    if (start_worker(g, &g->why) == 0 && mo_work_submit(g->work, &g->job) == 0)
        return;
    on_written(&g->job, true);
}

static void on_timer(struct mo_timer *t)
{
    flush_rows(mo_container_of(t, struct mo_audit_file, timer));
}

/* --- rows ---------------------------------------------------------------- */

int mo_audit_file_put(struct mo_audit_file *g, struct mo_span members)
{
    size_t had = g->rows.len;

    if (g->closing || members.n > MO_AUDIT_FILE_LINE ||
        mo_buf_err(&g->rows) != 0 || !mo_buf_room(&g->rows, members.n + 1)) {
        if (mo_buf_err(&g->rows)) { /* keep the rows in it */
            g->rows.err = 0;
            g->rows.len = had;
        }
        g->lost++;
        g->stats.lost++;
        return MO_EBUSY;
    }
    (void)mo_buf_span(&g->rows, members);
    (void)mo_buf_putc(&g->rows, '\n');
    g->nrows++;
    if (g->busy)
        return 0; /* goes with the next group */
    if (g->rows.len >= GROUP_SOON)
        mo_timer_start(g->loop, &g->timer, 0);
    else if (!mo_timer_on(&g->timer))
        mo_timer_start(g->loop, &g->timer, WAIT_MS);
    return 0;
}

int mo_audit_file_sure(struct mo_audit_file *g, mo_done_fn *done, void *ctx,
                       struct mo_err *e)
{
    struct waiter *w;

    if (g->closing)
        return mo_fail(e, MO_ECLOSED, "the program is stopping");
    if (g->nwaiters >= WAITERS)
        return mo_fail(e, MO_EBUSY,
                       "too many calls are waiting for the audit log");
    w = mo_new(struct waiter);
    if (!w)
        return mo_fail(e, MO_ENOMEM, "out of memory");
    w->done = done;
    w->ctx = ctx;
    mo_list_push(&g->waiters, &w->node);
    g->nwaiters++;
    if (!g->busy)
        mo_timer_start(g->loop, &g->timer, 0);
    return 0;
}

void mo_audit_file_flush(struct mo_audit_file *g)
{
    g->asked = !g->closing;
    if (!g->busy && !g->closing)
        mo_timer_start(g->loop, &g->timer, 0);
}

uint64_t mo_audit_file_group(const struct mo_audit_file *g)
{
    return g->groups + 1;
}

bool mo_audit_file_is_failing(const struct mo_audit_file *g)
{
    return g->failing;
}

struct mo_audit_witness mo_audit_file_last(const struct mo_audit_file *g)
{
    return g->last;
}

void mo_audit_file_known(struct mo_audit_file *g,
                         const struct mo_audit_witness *w)
{
    g->known = *w;
}

struct mo_audit_file_stats mo_audit_file_stats(const struct mo_audit_file *g)
{
    return g->stats;
}

/* --- from open to close -------------------------------------------------- */

static void audit_file_free(void *ctx)
{
    struct mo_audit_file *g = ctx;
    struct mo_gone gone = g->gone;

    mo_audit_file_anchor(&g->file);
    mo_audit_file_file_close(&g->file);
    mo_buf_fini(&g->rows);
    mo_buf_fini(&g->group);
    mo_free(g);
    mo_gone_fire(gone);
}

static void on_end(struct mo_later *d)
{
    struct mo_audit_file *g = mo_container_of(d, struct mo_audit_file, later);

    if (g->work)
        mo_work_stop(mo_take_ptr(&g->work), MO_WORK_DRAIN, audit_file_free, g);
    else
        audit_file_free(g);
}

int mo_audit_file_open(struct mo_loop *l, const struct mo_audit_file_opts *o,
                       struct mo_audit_file **out, struct mo_err *e)
{
    struct mo_audit_file *g = mo_new(struct mo_audit_file);

    if (!g)
        return mo_fail(e, MO_ENOMEM, "audit log");
    if (strlen(o->dir) >= sizeof(g->file.dir) ||
        (o->anchor && strlen(o->anchor) >= sizeof(g->file.anchor))) {
        mo_free(g);
        return mo_fail(e, MO_ETOOBIG, "store.dir or audit.anchor is too long");
    }
    g->loop = l;
    g->written = o->written;
    g->ctx = o->ctx;
    (void)snprintf(g->file.anchor, sizeof(g->file.anchor), "%s",
                   o->anchor ? o->anchor : "");
    (void)snprintf(g->file.dir, sizeof(g->file.dir), "%s", o->dir);
    g->file.max = o->max ? o->max : MO_AUDIT_FILE_MAX;
    g->file.files = o->files ? o->files : MO_AUDIT_FILE_FILES;
    g->file.fd = g->file.head = -1;
    mo_buf_init(&g->rows, MO_AUDIT_FILE_QUEUE);
    mo_buf_init(&g->group, MO_AUDIT_FILE_QUEUE);
    mo_list_init(&g->waiters);
    mo_list_init(&g->waiting);
    mo_timer_init(&g->timer, on_timer);
    mo_later_init(&g->later, on_end);
    mo_job_init(&g->job, write_group, on_written);
    *out = g;
    return 0;
}

void mo_audit_file_close(struct mo_audit_file *g, void (*gone)(void *ctx),
                         void *ctx)
{
    MO_BUG_ON(g->closing);
    g->closing = true;
    g->gone = (struct mo_gone){gone, ctx};
    mo_timer_stop(g->loop, &g->timer);
    continue_close(g);
}
