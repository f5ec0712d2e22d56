#include "trace/metrics.h"

#include <limits.h>

#include "trace/otlp_metrics.h"

#define NOTHING SIZE_MAX

struct mo_metrics {
    struct mo_loop *loop;
    struct mo_export *export;
    enum mo_otlp_encoding encoding;
    struct mo_buf resource;
    struct mo_prom *prom; /* NULL: not started, or stopped */
    unsigned interval_ms;
    struct mo_timer timer;
    uint64_t began;     /* ns since 1970 */
    size_t next;        /* metric to be sent; NOTHING: wait for the interval */
    struct mo_buf last; /* of a registry that is gone */
    unsigned nlast;
    struct mo_metrics_stats stats;
    struct mo_gone gone;
};

/* --- export -------------------------------------------------------------- */

/* Writes at most about `most` points; returns how many. */
static unsigned write_points(struct mo_metrics *m, unsigned most,
                             struct mo_buf *body)
{
    uint64_t now = mo_wall_ms() * MO_MS;
    const struct mo_otlp_metrics x = {
        .encoding = m->encoding,
        .resource = &m->resource,
        .began = m->began,
        .now = now > m->began ? now : m->began, /* a clock may be set back */
    };
    unsigned n = mo_otlp_metrics(&x, m->prom, &m->next, most, body);

    if (mo_buf_err(body) == 0)
        return n;
    mo_buf_reset(body); /* out of memory, or too long: these are lost */
    m->stats.dropped += n;
    return 0;
}

static unsigned take_last(struct mo_metrics *m, struct mo_buf *body)
{
    unsigned n = m->nlast;

    m->nlast = 0;
    if (n && mo_buf_set(body, mo_buf_view(&m->last)) == 0)
        return n;
    mo_buf_reset(body);
    m->stats.dropped += n;
    return 0;
}

static unsigned fill_batch(void *ctx, struct mo_buf *body)
{
    struct mo_metrics *m = ctx;
    unsigned n = 0;

    if (!m->prom)
        return take_last(m, body);
    while (n == 0 && m->next != NOTHING) {
        n = write_points(m, MO_METRICS_BATCH, body);
        if (!mo_prom_at(m->prom, m->next))
            m->next = NOTHING;
    }
    if (n == 0)
        mo_buf_reset(body);
    return n;
}

static void on_batch_done(void *ctx, unsigned n, bool taken)
{
    struct mo_metrics *m = ctx;

    if (taken)
        m->stats.sent += n;
    else
        m->stats.dropped += n;
}

/* The next values, unless older ones are still on their way. */
static void on_timer(struct mo_timer *t)
{
    struct mo_metrics *m = mo_container_of(t, struct mo_metrics, timer);

    mo_timer_start(m->loop, t, m->interval_ms);
    if (m->next != NOTHING || mo_export_busy(m->export))
        return;
    mo_prom_measure(m->prom);
    m->next = 0;
    mo_export_kick(m->export);
}

struct mo_metrics_stats mo_metrics_stats(const struct mo_metrics *m)
{
    struct mo_metrics_stats s = m->stats;

    s.failed = mo_export_failures(m->export);
    return s;
}

/* --- from open to close -------------------------------------------------- */

void mo_metrics_start(struct mo_metrics *m, struct mo_prom *prom)
{
    MO_BUG_ON(m->prom);
    m->prom = prom;
    mo_timer_start(m->loop, &m->timer, m->interval_ms);
}

void mo_metrics_stop(struct mo_metrics *m)
{
    if (!m->prom)
        return;
    mo_timer_stop(m->loop, &m->timer);
    mo_prom_measure(m->prom);
    m->next = 0;
    m->nlast = write_points(m, UINT_MAX, &m->last);
    m->next = NOTHING;
    m->prom = NULL;
}

static void metrics_free(struct mo_metrics *m)
{
    mo_timer_stop(m->loop, &m->timer);
    mo_buf_fini(&m->resource);
    mo_buf_fini(&m->last);
    mo_free(m);
}

static void on_export_gone(void *ctx)
{
    struct mo_metrics *m = ctx;
    struct mo_gone gone = m->gone;

    metrics_free(m);
    mo_gone_fire(gone);
}

void mo_metrics_close(struct mo_metrics *m, void (*gone)(void *ctx), void *ctx)
{
    mo_metrics_stop(m);
    m->gone = (struct mo_gone){gone, ctx};
    mo_export_close(m->export, MO_TRACE_FLUSH_MS,
                    (struct mo_gone){on_export_gone, m});
}

int mo_metrics_open(const struct mo_metrics_opts *o, struct mo_metrics **out,
                    struct mo_err *e)
{
    struct mo_metrics *m = mo_new(struct mo_metrics);
    const struct mo_export_opts x = {
        .fill = fill_batch, .done = on_batch_done, .ctx = m};
    int rc;

    if (!m)
        return mo_fail(e, MO_ENOMEM, "telemetry");
    m->loop = o->to.loop;
    m->encoding = o->to.encoding;
    m->interval_ms = o->interval_ms;
    m->began = mo_wall_ms() * MO_MS;
    m->next = NOTHING;
    mo_buf_init(&m->last, MO_EXPORT_BODY_MAX);
    mo_timer_init(&m->timer, on_timer);
    rc = mo_otlp_target_resource(&o->to, &m->resource);
    if (rc < 0)
        (void)mo_fail(e, rc, "telemetry");
    else
        m->export = mo_otlp_target_export(&o->to, "metrics", x, e);
    if (!m->export) {
        metrics_free(m);
        return e->code;
    }
    *out = m;
    return 0;
}
