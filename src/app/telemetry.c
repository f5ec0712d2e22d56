#include "app/telemetry.h"

#include "codec/prom.h"
#include "secrets/resolve.h"

#define VALUE_MAX ((size_t)4096) /* bytes of an address or a header */

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

static int open_tracer(struct mo_loop *l, const struct mo_config *c,
                       struct mo_buf *texts, struct mo_tracer **out,
                       struct mo_err *e)
{
    const struct mo_config_telemetry *t = &c->telemetry;
    struct mo_http_header headers[MO_TRACE_HEADER_MAX];
    struct mo_tracer_opts o = {
        .loop = l,
        .encoding = (enum mo_otlp_encoding)t->protocol,
        .headers = headers,
        .sample = t->sample,
        .forced = (unsigned)t->forced,
        .service = t->service,
        .attributes = t->attributes,
    };
    int rc = resolve(l, c, "endpoint", t->endpoint, &texts[0], e);

    if (t->headers.n > MO_TRACE_HEADER_MAX)
        return mo_fail(e, MO_ETOOBIG, "telemetry.headers: at most %d",
                       MO_TRACE_HEADER_MAX);
    for (size_t i = 0; i < t->headers.n && rc == 0; i++) {
        const struct mo_config_pair *p = &t->headers.v[i];

        rc = resolve(l, c, "headers", p->value, &texts[i + 1], e);
        headers[o.nheaders++] = (struct mo_http_header){
            mo_span_cstr(p->name), mo_buf_view(&texts[i + 1])};
    }
    if (rc < 0)
        return rc;
    o.endpoint = mo_buf_cstr(&texts[0]);
    return mo_tracer_open(&o, out, e);
}

struct mo_tracer *mo_telemetry_open(struct mo_loop *l,
                                    const struct mo_config *c)
{
    struct mo_buf texts[MO_TRACE_HEADER_MAX + 1] = {{.max = 0}};
    struct mo_tracer *t = NULL;
    struct mo_err e;

    if (!c->telemetry.endpoint)
        return NULL;
    if (open_tracer(l, c, texts, &t, &e) < 0)
        mo_log_err(mo_loop_log(l), MO_ERROR, "trace", &e, "no telemetry");
    for (size_t i = 0; i < MO_COUNT(texts); i++)
        mo_buf_wipe(&texts[i]);
    return t;
}

/* --- metrics ------------------------------------------------------------- */

enum { SENT, DROPPED, FAILED, WAITING };

static const struct mo_prom_desc descs[MO_TELEMETRY_SERIES] = {
    [SENT] = {"mo_trace_spans_sent_total", "Spans that the collector took",
              MO_PROM_COUNTER},
    [DROPPED] = {"mo_trace_spans_dropped_total",
                 "Spans that the collector did not get: too many, or it did "
                 "not take them",
                 MO_PROM_COUNTER},
    [FAILED] = {"mo_trace_exports_failed_total",
                "Exports that failed, each try of a batch for itself",
                MO_PROM_COUNTER},
    [WAITING] = {"mo_trace_spans_waiting", "Spans that wait for their export",
                 MO_PROM_GAUGE},
};

static void count_up(struct mo_prom_series *s, uint64_t now)
{
    mo_prom_count(s, now - s->count);
}

static void measure(void *ctx)
{
    const struct mo_telemetry_meter *m = ctx;
    const struct mo_tracer *t = mo_loop_tracer(m->loop);
    struct mo_tracer_stats now;

    if (!t)
        return;
    now = mo_tracer_stats(t);
    count_up(m->v[SENT], now.sent);
    count_up(m->v[DROPPED], now.dropped);
    count_up(m->v[FAILED], now.failed);
    mo_prom_set(m->v[WAITING], (double)now.waiting);
}

int mo_telemetry_metrics(struct mo_telemetry_meter *m, struct mo_loop *l,
                         struct mo_prom *p, struct mo_err *e)
{
    m->loop = l;
    for (size_t i = 0; i < MO_TELEMETRY_SERIES; i++) {
        struct mo_prom_metric *one = mo_prom_add(p, &descs[i], e);

        if (!one)
            return e->code;
        m->v[i] = mo_prom_with(one, NULL);
    }
    return mo_prom_hook(p, measure, m);
}
