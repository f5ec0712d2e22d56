#include "app/telemetry.h"

#include "base/rand.h"
#include "secrets/resolve.h"
#include "trace/logs.h"
#include "trace/metrics.h"
#include "trace/trace.h"

#define VALUE_MAX ((size_t)4096) /* bytes of an address or a header */

#define SERIES 11

struct mo_telemetry {
    struct mo_loop *loop;
    struct mo_tracer *tracer; /* of these NULL: it is off */
    struct mo_metrics *metrics;
    struct mo_logs *logs;
    struct mo_prom_series *series[SERIES]; /* NULL: of one off */
    unsigned nopen;                        /* that are closing */
    struct mo_later end;
    struct mo_gone gone;
};

/* --- open ---------------------------------------------------------------- */

static void hide_value(void *ctx, struct mo_span value)
{
    (void)mo_loop_secret(ctx, value);
}

/* Resolves the references of a text; the value stays out of the log. */
static int resolve(struct mo_loop *l, const struct mo_config *c,
                   const char *name, const char *text, struct mo_buf *out,
                   struct mo_err *e)
{
    *out = (struct mo_buf){.max = VALUE_MAX};
    (void)mo_buf_room(out, VALUE_MAX); /* growth would leave a copy */
    if (mo_reference_resolve_told(c, text, out, hide_value, l, e) < 0)
        return mo_wrap(e, "telemetry.%s", name);
    return 0;
}

/* The texts hold the values of the target: endpoint, then headers. */
static int read_target(struct mo_loop *l, const struct mo_config *c,
                       struct mo_buf *texts, struct mo_http_header *headers,
                       struct mo_otlp_target *to, struct mo_err *e)
{
    const struct mo_config_telemetry *t = &c->telemetry;
    int rc = resolve(l, c, "endpoint", t->endpoint, &texts[0], e);

    if (t->headers.n > MO_TRACE_HEADER_MAX)
        return mo_fail(e, MO_ETOOBIG, "telemetry.headers: at most %d",
                       MO_TRACE_HEADER_MAX);
    *to = (struct mo_otlp_target){
        .loop = l,
        .encoding = (enum mo_otlp_encoding)t->protocol,
        .headers = headers,
        .service = t->service,
        .attributes = t->attributes,
    };
    for (size_t i = 0; i < t->headers.n && rc == 0; i++) {
        const struct mo_config_pair *p = &t->headers.v[i];

        rc = resolve(l, c, "headers", p->value, &texts[i + 1], e);
        headers[to->nheaders++] = (struct mo_http_header){
            mo_span_cstr(p->name), mo_buf_view(&texts[i + 1])};
    }
    to->endpoint = mo_buf_cstr(&texts[0]);
    return rc;
}

static int open_signals(struct mo_telemetry *t, struct mo_log *log,
                        const struct mo_config_telemetry *c,
                        const struct mo_otlp_target *to, struct mo_err *e)
{
    const struct mo_tracer_opts traces = {
        .to = *to, .sample = c->sample, .forced = (unsigned)c->forced};
    const struct mo_metrics_opts metrics = {
        .to = *to, .interval_ms = (unsigned)c->metrics_s * 1000};
    int rc = 0;

    if (c->traces)
        rc = mo_tracer_open(&traces, &t->tracer, e);
    if (rc == 0 && c->metrics)
        rc = mo_metrics_open(&metrics, &t->metrics, e);
    if (rc == 0 && c->logs)
        rc = mo_logs_open(to, log, &t->logs, e);
    return rc;
}

static int open_all(struct mo_telemetry *t, struct mo_log *log,
                    const struct mo_config *c, struct mo_err *e)
{
    struct mo_buf texts[MO_TRACE_HEADER_MAX + 1] = {{.max = 0}};
    struct mo_http_header headers[MO_TRACE_HEADER_MAX];
    char instance[MO_TOKEN_LEN(12) + 1];
    struct mo_otlp_target to;
    int rc = read_target(t->loop, c, texts, headers, &to, e);

    mo_random_token(instance, 12);
    to.instance = instance;
    if (rc == 0)
        rc = open_signals(t, log, &c->telemetry, &to, e);
    for (size_t i = 0; i < MO_COUNT(texts); i++)
        mo_buf_wipe(&texts[i]);
    return rc;
}

struct mo_telemetry *mo_telemetry_open(struct mo_loop *l, struct mo_log *log,
                                       const struct mo_config *c)
{
    struct mo_telemetry *t;
    struct mo_err e;

    if (!c->telemetry.endpoint)
        return NULL;
    t = mo_new(struct mo_telemetry);
    if (!t)
        (void)mo_fail(&e, MO_ENOMEM, "telemetry");
    else
        t->loop = l;
    if (t && open_all(t, log, c, &e) == 0)
        return t;
    mo_log_err(log, MO_ERROR, "trace", &e, "no telemetry");
    if (t)
        mo_telemetry_close(t, NULL, NULL);
    return NULL;
}

/* --- close --------------------------------------------------------------- */

static void free_telemetry(struct mo_later *d)
{
    struct mo_telemetry *t = mo_container_of(d, struct mo_telemetry, end);
    struct mo_gone gone = t->gone;

    mo_free(t);
    mo_gone_fire(gone);
}

static void on_signal_gone(void *ctx)
{
    struct mo_telemetry *t = ctx;

    if (--t->nopen == 0)
        mo_loop_defer(t->loop, &t->end);
}

void mo_telemetry_stop_metrics(struct mo_telemetry *t)
{
    if (t && t->metrics)
        mo_metrics_stop(t->metrics);
}

void mo_telemetry_close(struct mo_telemetry *t, void (*gone)(void *ctx),
                        void *ctx)
{
    t->gone = (struct mo_gone){gone, ctx};
    mo_later_init(&t->end, free_telemetry);
    t->nopen = 1u + !!t->tracer + !!t->metrics + !!t->logs;
    if (t->tracer)
        mo_tracer_close(mo_take_ptr(&t->tracer), on_signal_gone, t);
    if (t->metrics)
        mo_metrics_close(mo_take_ptr(&t->metrics), on_signal_gone, t);
    if (t->logs)
        mo_logs_close(mo_take_ptr(&t->logs), on_signal_gone, t);
    on_signal_gone(t);
}

/* --- metrics ------------------------------------------------------------- */

enum signal { TRACES, METRICS, LOGS };
enum series {
    SPANS_SENT,
    SPANS_DROPPED,
    SPANS_FAILED,
    SPANS_WAITING,
    POINTS_SENT,
    POINTS_DROPPED,
    POINTS_FAILED,
    LINES_SENT,
    LINES_DROPPED,
    LINES_FAILED,
    LINES_WAITING,
};

#define FAILED "Exports that failed, each try of a batch for itself"

static const struct {
    enum signal signal;
    struct mo_prom_desc desc;
} all[SERIES] = {
    [SPANS_SENT] = {TRACES,
                    {"mo_trace_spans_sent_total",
                     "Spans that the collector took", MO_PROM_COUNTER}},
    [SPANS_DROPPED] = {TRACES,
                       {"mo_trace_spans_dropped_total",
                        "Spans that the collector did not get: too many, or "
                        "it did not take them",
                        MO_PROM_COUNTER}},
    [SPANS_FAILED] = {TRACES,
                      {"mo_trace_exports_failed_total", FAILED,
                       MO_PROM_COUNTER}},
    [SPANS_WAITING] = {TRACES,
                       {"mo_trace_spans_waiting",
                        "Spans that wait for their export", MO_PROM_GAUGE}},
    [POINTS_SENT] = {METRICS,
                     {"mo_metric_points_sent_total",
                      "Points of metrics that the collector took",
                      MO_PROM_COUNTER}},
    [POINTS_DROPPED] = {METRICS,
                        {"mo_metric_points_dropped_total",
                         "Points of metrics that the collector did not get",
                         MO_PROM_COUNTER}},
    [POINTS_FAILED] = {METRICS,
                       {"mo_metric_exports_failed_total", FAILED,
                        MO_PROM_COUNTER}},
    [LINES_SENT] = {LOGS,
                    {"mo_log_records_sent_total",
                     "Lines of the log that the collector took",
                     MO_PROM_COUNTER}},
    [LINES_DROPPED] = {LOGS,
                       {"mo_log_records_dropped_total",
                        "Lines of the log that the collector did not get: too "
                        "many, or it did not take them",
                        MO_PROM_COUNTER}},
    [LINES_FAILED] = {LOGS,
                      {"mo_log_exports_failed_total", FAILED, MO_PROM_COUNTER}},
    [LINES_WAITING] = {LOGS,
                       {"mo_log_records_waiting",
                        "Lines of the log that wait for their export",
                        MO_PROM_GAUGE}},
};

static void count_up(struct mo_prom_series *s, uint64_t now)
{
    if (s)
        mo_prom_count(s, now - s->count);
}

static void measure(void *ctx)
{
    const struct mo_telemetry *t = ctx;
    struct mo_tracer_stats spans = {0};
    struct mo_metrics_stats points = {0};
    struct mo_logs_stats lines = {0};

    if (t->tracer)
        spans = mo_tracer_stats(t->tracer);
    if (t->metrics)
        points = mo_metrics_stats(t->metrics);
    if (t->logs)
        lines = mo_logs_stats(t->logs);
    count_up(t->series[SPANS_SENT], spans.sent);
    count_up(t->series[SPANS_DROPPED], spans.dropped);
    count_up(t->series[SPANS_FAILED], spans.failed);
    mo_prom_set(t->series[SPANS_WAITING], (double)spans.waiting);
    count_up(t->series[POINTS_SENT], points.sent);
    count_up(t->series[POINTS_DROPPED], points.dropped);
    count_up(t->series[POINTS_FAILED], points.failed);
    count_up(t->series[LINES_SENT], lines.sent);
    count_up(t->series[LINES_DROPPED], lines.dropped);
    count_up(t->series[LINES_FAILED], lines.failed);
    mo_prom_set(t->series[LINES_WAITING], (double)lines.waiting);
}

int mo_telemetry_metrics(struct mo_telemetry *t, struct mo_prom *p,
                         struct mo_err *e)
{
    const bool on[] = {[TRACES] = t->tracer != NULL,
                       [METRICS] = t->metrics != NULL,
                       [LOGS] = t->logs != NULL};
    int rc;

    for (size_t i = 0; i < SERIES; i++) {
        struct mo_prom_metric *one;

        if (!on[all[i].signal])
            continue;
        one = mo_prom_add(p, &all[i].desc, e);
        if (!one)
            return e->code;
        t->series[i] = mo_prom_with(one, NULL);
    }
    rc = mo_prom_hook(p, measure, t);
    if (rc < 0)
        return mo_fail(e, rc, "telemetry");
    if (t->metrics)
        mo_metrics_start(t->metrics, p);
    return 0;
}
