/* audit_file.c - collects rows and passes them in groups to the worker thread,
 * and verifies the files; see audit_file.h. */
#include "audit/audit_file.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/mem.h"
#include "codec/frame.h"
#include "codec/json/json.h"
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
    bool closing, failing;
    struct mo_later later;
    struct mo_gone gone;
};

static void flush_rows(struct mo_audit_file *g);

/* --- writing a group ----------------------------------------------------- */

static void write_group(struct mo_job *j)
{
    struct mo_audit_file *g = mo_container_of(j, struct mo_audit_file, job);

    mo_err_clear(&g->why);
    (void)mo_audit_file_append(&g->file, mo_buf_view(&g->group), g->sync,
                               &g->why);
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
    if (g->rows.len || !mo_list_empty(&g->waiters))
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
    mo_buf_reset(&g->group);
    finish_waiters(g, &g->waiting, failed ? &g->why : NULL);
    if (!g->closing &&
        (g->rows.len >= GROUP_SOON || !mo_list_empty(&g->waiters)))
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

struct mo_audit_file_stats mo_audit_file_stats(const struct mo_audit_file *g)
{
    return g->stats;
}

/* --- from open to close -------------------------------------------------- */

static void audit_file_free(void *ctx)
{
    struct mo_audit_file *g = ctx;
    struct mo_gone gone = g->gone;

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
    if (strlen(o->dir) >= sizeof(g->file.dir)) {
        mo_free(g);
        return mo_fail(e, MO_ETOOBIG, "store.dir is too long");
    }
    g->loop = l;
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

/* --- verification -------------------------------------------------------- */

#define READ_STEP ((size_t)256 * 1024)
#define FILES_MAX 1024

struct verify {
    struct mo_audit_file_report *r;
    struct mo_chain chain;
    struct mo_audit_file_mark head;
    bool has_head, met_head;
};

/* The row with the head's number must have its hash. Rows after it are newer
 * than the head. */
static int check_head(struct verify *k, struct mo_err *e)
{
    if (!k->has_head || k->chain.seq != k->head.last.seq)
        return 0;
    k->met_head = true;
    if (strcmp(k->chain.hash, k->head.last.hash) == 0)
        return 0;
    return mo_fail(e, MO_EPROTO,
                   "row %llu is not the one that was written last",
                   (unsigned long long)k->chain.seq);
}

static int check_line(struct verify *k, struct mo_span line, struct mo_err *e)
{
    int rc;

    k->r->line++;
    rc = mo_chain_check(&k->chain, line, e);
    if (rc < 0)
        return rc;
    k->r->rows++;
    if (!k->r->first)
        k->r->first = k->chain.seq;
    if (k->has_head && k->r->first > k->head.first)
        return mo_fail(e, MO_EPROTO, "rows %llu to %llu are missing",
                       (unsigned long long)k->head.first,
                       (unsigned long long)k->r->first - 1);
    k->r->last = k->chain.seq;
    return check_head(k, e);
}

static int check_bytes(struct verify *k, struct mo_frame *f, struct mo_span in,
                       struct mo_err *e)
{
    struct mo_span line;
    int rc = mo_frame_next(f, &in, &line);

    for (; rc == 1; rc = mo_frame_next(f, &in, &line)) {
        if (check_line(k, line, e) < 0)
            return e->code;
    }
    return rc < 0 ? mo_fail(e, MO_EPROTO, "a line is too long") : 0;
}

/* Rows have no raw CR. The frame parser would drop one before an LF, so it is
 * checked here. */
static bool has_cr(struct mo_span s)
{
    return mo_span_find(s, '\r') >= 0;
}

/* Checks `size` bytes only: a group may be written after them. */
static int check_file(struct verify *k, int fd, uint64_t size, struct mo_err *e)
{
    mo_autofree char *step = mo_alloc(READ_STEP);
    struct mo_frame f;
    uint64_t at = 0;
    int rc = step ? 0 : mo_fail(e, MO_ENOMEM, "out of memory");

    mo_frame_init(&f, MO_AUDIT_FILE_LINE + 1024);
    while (rc == 0 && at < size) {
        uint64_t want = size - at < READ_STEP ? size - at : READ_STEP;
        ssize_t n = pread(fd, step, want, (off_t)at);

        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            rc = mo_fail(e, MO_EPROTO,
                         "the file became shorter while it was read");
        else if (has_cr(mo_span(step, (size_t)n)))
            rc = mo_fail(e, MO_EPROTO,
                         "a CR byte, which is never written to the log");
        else
            rc = check_bytes(k, &f, mo_span(step, (size_t)n), e);
        at += n > 0 ? (uint64_t)n : 0;
    }
    if (rc == 0 && mo_frame_waiting(&f)) {
        k->r->line++;
        rc = mo_fail(e, MO_EPROTO, "its last row is not whole");
    }
    mo_frame_fini(&f);
    return rc;
}

/* Reads size and head under the lock, so that no group is half written. */
static uint64_t read_size_and_head(struct verify *k, int fd, const char *dir)
{
    char path[PATH_MAX];
    struct mo_err e;
    struct stat st;
    mo_autofd int lock = -1;

    if (dir) {
        (void)snprintf(path, sizeof(path), "%s/" MO_AUDIT_FILE_HEAD, dir);
        lock = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
        if (lock >= 0)
            (void)flock(lock, LOCK_SH);
        k->has_head = mo_audit_file_head(dir, &k->head, &e) == 0;
        if (k->head.last.seq > k->chain.seq)
            k->met_head = false;
    }
    if (fstat(fd, &st) < 0)
        st.st_size = 0;
    return (uint64_t)st.st_size;
}

static int verify_file(struct verify *k, const char *path, const char *name,
                       const char *dir, struct mo_err *e)
{
    mo_autofd int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    struct stat st;

    if (fd < 0 || fstat(fd, &st) < 0)
        return mo_fail_sys(e, "%s", path);
    if (!S_ISREG(st.st_mode))
        return mo_fail(e, MO_EINVAL, "%s: not a regular file", path);
    (void)snprintf(k->r->file, sizeof(k->r->file), "%s", name);
    k->r->line = 0;
    k->r->files++;
    k->r->ok =
        check_file(k, fd, read_size_and_head(k, fd, dir), &k->r->why) == 0;
    return 0;
}

/* If the row of the head was not found, rows at the end are missing. */
static void check_end(struct verify *k)
{
    if (!k->r->ok || k->met_head || (!k->has_head && !k->r->rows))
        return;
    k->r->ok = false;
    if (!k->has_head)
        (void)mo_fail(&k->r->why, MO_EPROTO,
                      MO_AUDIT_FILE_HEAD
                      " is missing, so the last row is unknown");
    else
        (void)mo_fail(&k->r->why, MO_EPROTO,
                      "rows after %llu are missing, up to %llu",
                      (unsigned long long)k->r->last,
                      (unsigned long long)k->head.last.seq);
}

static int verify_all(struct verify *k, const char *dir, struct mo_err *e)
{
    mo_autofree char(*names)[64] = mo_alloc(FILES_MAX * sizeof(*names));
    char path[PATH_MAX];
    size_t n = 0;
    int rc = names ? mo_audit_file_files(dir, names, FILES_MAX, &n, e)
                   : mo_fail(e, MO_ENOMEM, "out of memory");

    k->has_head = rc == 0 && mo_audit_file_head(dir, &k->head, e) == 0;
    for (size_t i = 0; rc == 0 && k->r->ok && i < n; i++) {
        int len = snprintf(path, sizeof(path), "%s/%s", dir, names[i]);

        if (len < 0 || (size_t)len >= sizeof(path))
            return mo_fail(e, MO_ETOOBIG, "%s is too long", dir);
        rc = verify_file(k, path, names[i], i + 1 == n ? dir : NULL, e);
    }
    if (rc == 0)
        check_end(k);
    return rc;
}

int mo_audit_file_verify(const char *dir, const char *file,
                         struct mo_audit_file_report *r, struct mo_err *e)
{
    struct verify k = {.r = r};
    const char *slash = file ? strrchr(file, '/') : NULL;

    *r = (struct mo_audit_file_report){.ok = true};
    mo_chain_init(&k.chain);
    k.chain.open = true; /* older files may have been removed */
    if (file)
        return verify_file(&k, file, slash ? slash + 1 : file, NULL, e);
    return verify_all(&k, dir, e);
}

int mo_audit_file_put_report(const struct mo_audit_file_report *r,
                             struct mo_buf *out)
{
    struct mo_jw w = mo_jw_object(out);

    mo_jw_member_bool(&w, "ok", r->ok);
    mo_jw_member_u64(&w, "rows", r->rows);
    mo_jw_member_u64(&w, "first", r->first);
    mo_jw_member_u64(&w, "last", r->last);
    mo_jw_member_u64(&w, "files", r->files);
    if (!r->ok) {
        mo_jw_member(&w, "file", mo_span_cstr(r->file));
        mo_jw_member_u64(&w, "line", r->line);
        mo_jw_member(&w, "why", mo_span_cstr(r->why.msg));
    }
    mo_jw_end(&w);
    return mo_buf_err(out);
}
