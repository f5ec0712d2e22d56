#include "trace/logs.h"

#include "trace/otlp_logs.h"

struct mo_logs {
    struct mo_loop *loop;
    const struct mo_log *log;
    struct mo_log_queue *queue; /* the log's */
    struct mo_export *export;
    enum mo_otlp_encoding encoding;
    struct mo_buf resource;
    struct mo_timer timer;
    unsigned nsending; /* in the current export */
    struct mo_logs_stats stats;
    struct mo_gone gone;
};

/* --- export -------------------------------------------------------------- */

static unsigned fill_batch(void *ctx, struct mo_buf *body)
{
    static const struct mo_otlp_names names = {"resourceLogs", "scopeLogs",
                                               "logRecords"};
    struct mo_logs *l = ctx;
    const struct mo_log_record *r = mo_log_queue_take(l->queue);
    uint64_t now = mo_wall_ms() * MO_MS;
    struct mo_otlp o;
    unsigned n = 0;

    if (!r)
        return 0;
    mo_otlp_request(&o, body, l->encoding, &l->resource, &names);
    while (r) {
        mo_otlp_log(&o, r, now);
        r = ++n < MO_LOGS_BATCH ? mo_log_queue_take(l->queue) : NULL;
    }
    if (mo_otlp_request_end(&o) < 0) { /* out of memory: these are lost */
        mo_buf_reset(body);
        l->stats.dropped += n;
        return 0;
    }
    l->nsending = n;
    return n;
}

static void on_batch_done(void *ctx, unsigned n, bool taken)
{
    struct mo_logs *l = ctx;

    l->nsending = 0;
    if (taken)
        l->stats.sent += n;
    else
        l->stats.dropped += n;
}

static void on_timer(struct mo_timer *t)
{
    struct mo_logs *l = mo_container_of(t, struct mo_logs, timer);

    mo_timer_start(l->loop, t, MO_LOGS_PAUSE_MS);
    mo_export_kick(l->export);
}

struct mo_logs_stats mo_logs_stats(const struct mo_logs *l)
{
    struct mo_log_queue_stats q = mo_log_queue_stats(l->queue);
    struct mo_logs_stats s = l->stats;

    s.dropped += q.dropped;
    s.waiting = q.waiting + l->nsending;
    s.failed = mo_export_failures(l->export);
    return s;
}

/* --- from open to close -------------------------------------------------- */

static void logs_free(struct mo_logs *l)
{
    mo_timer_stop(l->loop, &l->timer);
    if (l->queue)
        mo_log_queue_stop(l->queue);
    mo_buf_fini(&l->resource);
    mo_free(l);
}

static void on_export_gone(void *ctx)
{
    struct mo_logs *l = ctx;
    struct mo_gone gone = l->gone;
    struct mo_log_queue_stats q = mo_log_queue_stats(l->queue);
    uint64_t dropped = l->stats.dropped + q.dropped + q.waiting;

    if (dropped)
        mo_log(l->log, MO_WARN, MO_LOG_QUEUE_NOT,
               "%llu lines of the log were not exported",
               (unsigned long long)dropped);
    logs_free(l);
    mo_gone_fire(gone);
}

void mo_logs_close(struct mo_logs *l, void (*gone)(void *ctx), void *ctx)
{
    l->gone = (struct mo_gone){gone, ctx};
    mo_timer_stop(l->loop, &l->timer);
    mo_log_flush(l->log); /* lines that were not formatted */
    mo_export_close(l->export, MO_TRACE_FLUSH_MS,
                    (struct mo_gone){on_export_gone, l});
}

static int open_export(struct mo_logs *l, const struct mo_otlp_target *to,
                       struct mo_log *log, struct mo_err *e)
{
    const struct mo_export_opts x = {
        .fill = fill_batch, .done = on_batch_done, .ctx = l};
    int rc = mo_otlp_target_resource(to, &l->resource);

    l->queue = mo_log_queue_start(log);
    if (rc < 0 || !l->queue)
        return mo_fail(e, rc < 0 ? rc : MO_ENOMEM, "telemetry");
    l->export = mo_otlp_target_export(to, "logs", x, e);
    return l->export ? 0 : e->code;
}

int mo_logs_open(const struct mo_otlp_target *to, struct mo_log *log,
                 struct mo_logs **out, struct mo_err *e)
{
    struct mo_logs *l = mo_new(struct mo_logs);

    if (!l)
        return mo_fail(e, MO_ENOMEM, "telemetry");
    l->loop = to->loop;
    l->log = log;
    l->encoding = to->encoding;
    mo_timer_init(&l->timer, on_timer);
    if (open_export(l, to, log, e) < 0) {
        logs_free(l);
        return e->code;
    }
    mo_timer_start(l->loop, &l->timer, MO_LOGS_PAUSE_MS);
    *out = l;
    return 0;
}
