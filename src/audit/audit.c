/* audit.c - passes the rows of the audit log to the file and the store; see
 * audit.h. audit_row.c builds them. */
#include "audit/audit.h"

#include <limits.h>
#include <stdio.h>

#include "audit/audit_attempts.h"
#include "audit/audit_mark.h"
#include "base/clock.h"
#include "loop/work.h"

#define BACKLOG   MO_STORE_BATCH_MAX /* rows that wait for the store */
#define STORE_MS  50                 /* how long a group for it collects */
#define ROW_MAX   MO_AUDIT_FILE_LINE
#define WHAT_MAX  MO_STORE_DOC_MAX
#define CHECK_MAX ((size_t)4096)

struct mo_audit {
    struct mo_loop *loop;
    struct mo_audit_file *file;
    struct mo_audit_journal journal;
    struct mo_store *store;
    struct mo_audit_mark mark;
    bool whole; /* audit.arguments */
    bool mine;  /* the store reports a row that we write */
    char dir[PATH_MAX];
    /* rows for the store */
    struct mo_buf docs;
    struct {
        uint64_t at;
        size_t end;
    } rows[BACKLOG];
    size_t nrows;
    struct mo_timer timer;
    struct mo_audit_attempts attempts;
    struct mo_timer attempts_due;
    struct mo_buf scratch, line;
    uint64_t second; /* for which `when` is formatted */
    char when[MO_ISO8601_MAX];
    /* verification */
    struct mo_work *work;
    struct mo_job job;
    bool verifying;
    struct mo_audit_witness marked; /* the mark when it began */
    struct mo_audit_file_report report;
    struct mo_err why;
    void (*verified)(void *arg, struct mo_span json, const struct mo_err *why);
    void *verified_arg;
    struct mo_gone gone;
};

/* --- secrets ------------------------------------------------------------- */

/* mo_log_blank() is linear: a row may have megabytes of arguments. */
static void blank_secret(struct mo_buf *b, struct mo_span secret)
{
    mo_log_blank(b->p, secret);
    b->len = strlen(b->p);
}

/* Also true for some that JSON does not escape. */
static bool may_be_escaped(const char *secret)
{
    for (const char *p = secret; *p; p++)
        if (*p < ' ' || *p > '~' || *p == '"' || *p == '\\')
            return true;
    return false;
}

/* Blanks each secret as plain text and as an escaped JSON string. */
static void blank_secrets(const struct mo_audit *a, struct mo_buf *b)
{
    const struct mo_log *log = mo_loop_log(a->loop);
    mo_autobuf struct mo_buf quoted = {.max = (size_t)1024 * 1024};
    bool plain_too;

    if (!log || !log->nsecrets || !b->len || !mo_buf_cstr(b)[0])
        return;
    plain_too = mo_log_may_hold_secret(log, mo_buf_view(b));
    for (size_t i = 0; i < log->nsecrets; i++) {
        const char *secret = log->secrets[i];

        if (plain_too)
            blank_secret(b, mo_span_cstr(secret));
        if (!may_be_escaped(secret))
            continue;
        mo_buf_reset(&quoted);
        if (mo_json_quote(&quoted, mo_span_cstr(secret)) == 0)
            blank_secret(b, mo_span(quoted.p + 1, quoted.len - 2));
    }
}

/* --- rows for the file --------------------------------------------------- */

#define MS_AT (sizeof("2026-11-15T12:18:17.") - 1)

/* Formats a time. Within one second only the milliseconds are rewritten. */
static struct mo_span format_time(struct mo_audit *a, uint64_t at)
{
    unsigned ms = (unsigned)(at % 1000);

    if (at / 1000 != a->second || !a->when[0])
        mo_wall_format(at, a->when);
    a->second = at / 1000;
    a->when[MS_AT] = (char)('0' + ms / 100);
    a->when[MS_AT + 1] = (char)('0' + ms / 10 % 10);
    a->when[MS_AT + 2] = (char)('0' + ms % 10);
    return mo_span_cstr(a->when);
}

/* Builds "at":...,"session":...,"what":{...} in a->line. */
static void build_file_row(struct mo_audit *a, uint64_t at,
                           struct mo_span session, struct mo_span what)
{
    struct mo_buf *b = &a->line;

    (void)mo_buf_set(b, MO_SPAN("\"at\":\""));
    (void)mo_buf_span(b, format_time(a, at));
    (void)mo_buf_putc(b, '"');
    if (session.n) {
        (void)mo_buf_span(b, MO_SPAN(",\"session\":"));
        (void)mo_json_quote(b, session);
    }
    (void)mo_buf_span(b, MO_SPAN(",\"what\":"));
    (void)mo_buf_span(b, what);
    blank_secrets(a, b);
}

static void put_file_row(struct mo_audit *a, uint64_t at,
                         struct mo_span session, struct mo_span what)
{
    build_file_row(a, at, session, what);
    if (mo_buf_err(&a->line))
        (void)mo_audit_file_put(a->file, MO_SPAN("\"note\":\"a row was too big "
                                                 "to be written\""));
    else
        (void)mo_audit_file_put(a->file, mo_buf_view(&a->line));
}

/* --- rows that others write to the store --------------------------------- */

static void on_store_row(void *ctx, struct mo_span session, uint64_t at,
                         struct mo_span doc)
{
    struct mo_audit *a = ctx;

    if (a->mine)
        return;
    mo_buf_reset(&a->scratch);
    if (mo_audit_row_for_file(&a->scratch, doc, a->whole))
        put_file_row(a, at ? at : mo_wall_ms(), session,
                     mo_buf_view(&a->scratch));
}

/* --- rows for the store -------------------------------------------------- */

static void on_stored(void *ctx, const struct mo_written *w,
                      const struct mo_err *why)
{
    (void)ctx;
    (void)w;
    (void)why; /* the row is in the file too */
}

static void store_rows(struct mo_audit *a)
{
    struct mo_write v[BACKLOG];
    struct mo_store_batch b = {.writes = v, .n = a->nrows};
    size_t from = 0;
    struct mo_err e;

    mo_timer_stop(a->loop, &a->timer);
    for (size_t i = 0; i < a->nrows; i++) {
        v[i] = mo_audit_row_write(
            mo_span(a->docs.p + from, a->rows[i].end - from));
        v[i].at = a->rows[i].at;
        from = a->rows[i].end;
    }
    a->mine = true;
    if (a->nrows && mo_store_write(a->store, &b, on_stored, NULL, &e) < 0)
        mo_log_err(mo_loop_log(a->loop), MO_WARN, "audit", &e,
                   "%zu rows were not stored; they are in the file only",
                   a->nrows);
    a->mine = false;
    a->nrows = 0;
    mo_buf_reset(&a->docs);
}

/* --- the mark: what the store remembers of the file ---------------------- */

static void arm_timer(struct mo_audit *a)
{
    if (!mo_timer_on(&a->timer))
        mo_timer_start(a->loop, &a->timer, STORE_MS);
}

static void store_mark(struct mo_audit *a)
{
    struct mo_audit_witness last = mo_audit_file_last(a->file);

    mo_audit_mark_put(&a->mark, &last);
}

static void on_mark_read(void *ctx)
{
    struct mo_audit *a = ctx;

    mo_audit_file_known(a->file, &a->mark.last);
    mo_audit_file_flush(a->file); /* key, file and head exist from now on */
}

/* A group is in the file. */
static void on_group(void *ctx, uint64_t group, bool ok)
{
    struct mo_audit *a = ctx;

    if (!ok)
        return;
    mo_audit_journal_written(&a->journal, group);
    if (a->store && !a->gone.fire)
        arm_timer(a);
}

static void on_timer(struct mo_timer *t)
{
    struct mo_audit *a = mo_container_of(t, struct mo_audit, timer);

    if (!a->store)
        return;
    store_rows(a);
    store_mark(a);
}

/* Without a store the first BACKLOG rows wait; later ones are in the file
 * only. */
static void queue_for_store(struct mo_audit *a, uint64_t at, struct mo_span doc)
{
    if (a->nrows == BACKLOG || mo_buf_span(&a->docs, doc) < 0)
        return;
    a->rows[a->nrows].at = at;
    a->rows[a->nrows++].end = a->docs.len;
    if (a->store && a->nrows == BACKLOG)
        store_rows(a);
    else
        arm_timer(a);
}

/* Writes the row in a->scratch to the store and the file. */
static void write_row(struct mo_audit *a)
{
    uint64_t now = mo_wall_ms();

    blank_secrets(a, &a->scratch);
    if (mo_buf_err(&a->scratch) == 0)
        queue_for_store(a, now, mo_buf_view(&a->scratch));
    put_file_row(a, now, mo_span(NULL, 0),
                 mo_buf_err(&a->scratch) ? MO_SPAN("null")
                                         : mo_buf_view(&a->scratch));
}

/* --- rows of the gateway ------------------------------------------------- */

void mo_audit_call(struct mo_audit *a, enum mo_audit_step step,
                   const struct mo_gw_case *k, struct mo_span args,
                   const char *who)
{
    mo_buf_reset(&a->scratch);
    mo_audit_row_call(&a->scratch, step, k, a->whole ? args : MO_SPAN(""), who);
    write_row(a);
}

void mo_audit_routing(struct mo_audit *a, const struct mo_gw_routing *r)
{
    mo_buf_reset(&a->scratch);
    mo_audit_row_routing(&a->scratch, r);
    write_row(a);
}

void mo_audit_lookup(struct mo_audit *a, const struct mo_audit_lookup *l)
{
    mo_buf_reset(&a->scratch);
    if (mo_audit_row_lookup(&a->scratch, l))
        write_row(a);
}

void mo_audit_connection(struct mo_audit *a, const char *server,
                         const char *session, const struct mo_egress_row *r)
{
    if (!a)
        return;
    mo_buf_reset(&a->scratch);
    mo_audit_row_connection(&a->scratch, server, session, r);
    write_row(a);
}

void mo_audit_mounts(struct mo_audit *a, const struct mo_audit_mounts *m)
{
    if (!a)
        return;
    mo_buf_reset(&a->scratch);
    mo_audit_row_mounts(&a->scratch, m);
    write_row(a);
}

void mo_audit_note(struct mo_audit *a, const struct mo_audit_row *r)
{
    mo_autobuf struct mo_buf row = {.max = MO_STORE_DOC_MAX};

    mo_audit_row_put(&row, r);
    mo_buf_reset(&a->scratch);
    (void)mo_audit_row_for_file(&a->scratch, mo_buf_view(&row), a->whole);
    write_row(a);
}

/* --- refused attempts ---------------------------------------------------- */

static void write_attempt(void *ctx, const struct mo_audit_row *r)
{
    mo_audit_note(ctx, r);
}

static void on_attempts_due(struct mo_timer *t)
{
    struct mo_audit *a = mo_container_of(t, struct mo_audit, attempts_due);

    if (mo_audit_attempts_flush(&a->attempts, mo_loop_now(a->loop), false,
                                write_attempt, a))
        mo_timer_start(a->loop, t, MO_AUDIT_ATTEMPTS_MS);
}

static void flush_attempts(struct mo_audit *a)
{
    mo_timer_stop(a->loop, &a->attempts_due);
    (void)mo_audit_attempts_flush(&a->attempts, mo_loop_now(a->loop), true,
                                  write_attempt, a);
}

void mo_audit_attempt(struct mo_audit *a, const struct mo_audit_row *r)
{
    if (!a)
        return;
    mo_audit_attempts_add(&a->attempts, r, mo_loop_now(a->loop), write_attempt,
                          a);
    if (!mo_timer_on(&a->attempts_due))
        mo_timer_start(a->loop, &a->attempts_due, MO_AUDIT_ATTEMPTS_MS);
}

/* --- the record comes first ---------------------------------------------- */

static int begin_scratch(struct mo_audit *a, struct mo_span session,
                         struct mo_audit_open **out, struct mo_err *e)
{
    *out = NULL;
    if (mo_audit_file_is_failing(a->file)) {
        mo_audit_file_flush(a->file); /* tries again */
        return mo_fail(e, MO_EIO, "%s/" MO_AUDIT_FILE_FILE, a->dir);
    }
    if (mo_buf_err(&a->scratch) == 0)
        build_file_row(a, mo_wall_ms(), session, mo_buf_view(&a->scratch));
    if (mo_buf_err(&a->scratch) || mo_buf_err(&a->line))
        return mo_fail(e, MO_ETOOBIG, "the row is too big");
    return mo_audit_journal_begin(&a->journal, mo_buf_view(&a->line), out, e);
}

int mo_audit_begin(struct mo_audit *a, const struct mo_gw_case *k,
                   const char *who, struct mo_audit_open **out,
                   struct mo_err *e)
{
    mo_buf_reset(&a->scratch);
    mo_audit_row_call(&a->scratch, MO_AUDIT_BEGUN, k, MO_SPAN(""), who);
    return begin_scratch(a, mo_span(NULL, 0), out, e);
}

int mo_audit_begin_row(struct mo_audit *a, struct mo_span session,
                       const struct mo_audit_row *r, struct mo_audit_open **out,
                       struct mo_err *e)
{
    mo_autobuf struct mo_buf row = {.max = MO_STORE_DOC_MAX};

    mo_audit_row_put(&row, r);
    mo_buf_reset(&a->scratch);
    if (mo_buf_err(&row) ||
        !mo_audit_row_for_file(&a->scratch, mo_buf_view(&row), false))
        return mo_fail(e, MO_ETOOBIG, "the row is too big");
    return begin_scratch(a, session, out, e);
}

void mo_audit_end(struct mo_audit *a, struct mo_audit_open *o)
{
    if (o)
        mo_audit_journal_end(o, mo_audit_file_group(a->file));
}

/* A row that waits for the store, then for the file. */
struct first {
    struct mo_audit *audit;
    mo_done_fn *done;
    void *ctx;
};

static void on_first_stored(void *ctx, const struct mo_written *w,
                            const struct mo_err *why)
{
    struct first *f = ctx;
    struct first was = *f;
    struct mo_err e;

    (void)w;
    mo_free(f);
    if (!why && mo_audit_file_sure(was.audit->file, was.done, was.ctx, &e) < 0)
        why = &e;
    if (why)
        was.done(was.ctx, why);
}

int mo_audit_first(struct mo_audit *a, const struct mo_audit_row *r,
                   mo_done_fn *done, void *ctx, struct mo_err *e)
{
    mo_autobuf struct mo_buf row = {.max = MO_STORE_DOC_MAX};
    mo_autobuf struct mo_buf bare = {.max = MO_STORE_DOC_MAX};
    struct mo_store_batch batch = {.n = 1};
    struct mo_write w;
    struct first *f;
    int rc;

    mo_audit_row_put(&row, r);
    if (mo_buf_err(&row) ||
        (!a->whole && !mo_audit_row_for_file(&bare, mo_buf_view(&row), false)))
        return mo_fail(e, MO_ETOOBIG, "the request is too big");
    if (!a->store) {
        mo_audit_note(a, r);
        return mo_audit_sure(a, done, ctx, e);
    }
    f = mo_new(struct first);
    if (!f)
        return mo_fail(e, MO_ENOMEM, "out of memory");
    *f = (struct first){a, done, ctx};
    w = mo_audit_row_write(mo_buf_view(a->whole ? &row : &bare));
    batch.writes = &w;
    rc = mo_store_write(a->store, &batch, on_first_stored, f, e);
    if (rc < 0)
        mo_free(f);
    return rc;
}

int mo_audit_first_now(const struct mo_config *cfg,
                       const struct mo_audit_row *r, struct mo_err *e)
{
    mo_autobuf struct mo_buf row = {.max = MO_STORE_DOC_MAX};
    mo_autobuf struct mo_buf line = {.max = ROW_MAX};
    struct mo_audit_file_file f = {
        .max = (uint64_t)cfg->audit.max_mb * 1024 * 1024,
        .files = (unsigned)cfg->audit.files,
        .fd = -1,
        .head = -1,
    };
    char when[MO_ISO8601_MAX];
    int rc;

    (void)snprintf(f.dir, sizeof(f.dir), "%s", cfg->store.dir);
    (void)snprintf(f.anchor, sizeof(f.anchor), "%s",
                   cfg->audit.anchor ? cfg->audit.anchor : "");
    mo_audit_row_put(&row, r);
    mo_wall_format(mo_wall_ms(), when);
    (void)mo_buf_printf(&line, "\"at\":\"%s\",\"what\":", when);
    if (mo_buf_err(&row) ||
        !mo_audit_row_for_file(&line, mo_buf_view(&row), false) ||
        mo_buf_putc(&line, '\n') < 0)
        return mo_fail(e, MO_ETOOBIG, "the row is too big");
    rc = mo_audit_file_append(&f, mo_buf_view(&line), true, e);
    mo_audit_file_file_close(&f);
    return rc;
}

int mo_audit_sure(struct mo_audit *a, mo_done_fn *done, void *ctx,
                  struct mo_err *e)
{
    return mo_audit_file_sure(a->file, done, ctx, e);
}

struct mo_audit_file_stats mo_audit_stats(const struct mo_audit *a)
{
    return mo_audit_file_stats(a->file);
}

/* --- verification -------------------------------------------------------- */

static void verify_files(struct mo_job *j)
{
    struct mo_audit *a = mo_container_of(j, struct mo_audit, job);

    mo_err_clear(&a->why);
    (void)mo_audit_file_verify_with(a->dir, NULL, &a->marked, a->marked.seq > 0,
                                    &a->report, &a->why);
}

static void on_verified(struct mo_job *j, bool canceled)
{
    struct mo_audit *a = mo_container_of(j, struct mo_audit, job);
    mo_autobuf struct mo_buf b = {.max = CHECK_MAX};

    a->verifying = false;
    if (canceled)
        (void)mo_fail(&a->why, MO_ECANCELED, "the program is stopping");
    else if (!a->why.code && mo_audit_file_put_report(&a->report, &b) < 0)
        (void)mo_fail(&a->why, MO_ENOMEM, "out of memory");
    a->verified(a->verified_arg, mo_buf_view(&b), a->why.code ? &a->why : NULL);
}

int mo_audit_verify(struct mo_audit *a,
                    void (*done)(void *arg, struct mo_span json,
                                 const struct mo_err *why),
                    void *arg, struct mo_err *e)
{
    int rc;

    if (a->verifying)
        return mo_fail(e, MO_EBUSY, "the audit log is already being verified");
    a->marked = a->mark.last;
    if (!a->work)
        a->work = mo_work_start(a->loop, "audit-check", 1, e);
    if (!a->work)
        return e->code;
    rc = mo_work_submit(a->work, &a->job);
    if (rc < 0)
        return mo_fail(e, rc, "the audit log cannot be verified now");
    a->verifying = true;
    a->verified = done;
    a->verified_arg = arg;
    return 0;
}

/* --- from open to close -------------------------------------------------- */

void mo_audit_config(struct mo_audit *a, const struct mo_config *cfg)
{
    a->whole = cfg->audit.arguments;
}

bool mo_audit_has_arguments(const struct mo_audit *a)
{
    return a && a->whole;
}

void mo_audit_store(struct mo_audit *a, struct mo_store *s)
{
    if (a->store && !s) {
        flush_attempts(a);
        store_rows(a);
        store_mark(a);
        mo_audit_mark_detach(&a->mark);
    }
    if (a->store)
        mo_store_on_audit(a->store, NULL, NULL);
    a->store = s;
    if (!s)
        return;
    mo_store_on_audit(s, on_store_row, a);
    mo_audit_mark_attach(&a->mark, s, on_mark_read, a);
    if (a->nrows)
        store_rows(a);
}

int mo_audit_open(struct mo_loop *l, const struct mo_config *cfg,
                  struct mo_audit **out, struct mo_err *e)
{
    struct mo_audit *a = mo_new(struct mo_audit);
    const struct mo_audit_file_opts o = {
        .dir = cfg->store.dir,
        .max = (uint64_t)cfg->audit.max_mb * 1024 * 1024,
        .files = (unsigned)cfg->audit.files,
        .anchor = cfg->audit.anchor,
        .written = on_group,
        .ctx = a,
    };

    if (!a)
        return mo_fail(e, MO_ENOMEM, "audit log");
    a->loop = l;
    if (mo_audit_file_open(l, &o, &a->file, e) < 0) {
        mo_free(a);
        return e->code;
    }
    (void)snprintf(a->dir, sizeof(a->dir), "%s", cfg->store.dir);
    mo_audit_mark_init(&a->mark, a->dir);
    mo_audit_journal_init(&a->journal, a->dir);
    mo_audit_config(a, cfg);
    mo_buf_init(&a->docs, 2 * WHAT_MAX);
    mo_buf_init(&a->scratch, WHAT_MAX);
    mo_buf_init(&a->line, ROW_MAX);
    mo_timer_init(&a->timer, on_timer);
    mo_timer_init(&a->attempts_due, on_attempts_due);
    mo_job_init(&a->job, verify_files, on_verified);
    *out = a;
    return 0;
}

static void on_work_gone(void *ctx)
{
    struct mo_audit *a = ctx;
    struct mo_gone gone = a->gone;

    mo_audit_journal_fini(&a->journal);
    mo_buf_fini(&a->docs);
    mo_buf_fini(&a->scratch);
    mo_buf_fini(&a->line);
    mo_free(a);
    mo_gone_fire(gone);
}

static void on_file_gone(void *ctx)
{
    struct mo_audit *a = ctx;

    if (a->work)
        mo_work_stop(mo_take_ptr(&a->work), MO_WORK_CANCEL, on_work_gone, a);
    else
        on_work_gone(a);
}

void mo_audit_close(struct mo_audit *a, void (*gone)(void *ctx), void *ctx)
{
    flush_attempts(a);
    a->gone = (struct mo_gone){gone, ctx};
    mo_audit_store(a, NULL);
    mo_timer_stop(a->loop, &a->timer);
    mo_audit_file_close(a->file, on_file_gone, a);
}
