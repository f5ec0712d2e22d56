#include "trace/otlp_metrics.h"

#include <math.h>

#define CUMULATIVE 2u /* AggregationTemporality */

/* The unit is the end of the name, as Prometheus wants it. */
static const char *unit_of(const char *name)
{
    struct mo_span s = mo_span_cstr(name);

    if (mo_span_ends(s, MO_SPAN("_total")))
        s.n -= strlen("_total");
    if (mo_span_ends(s, MO_SPAN("_seconds")))
        return "s";
    return mo_span_ends(s, MO_SPAN("_bytes")) ? "By" : NULL;
}

static void put_labels(struct mo_otlp *o, unsigned field, const char *labels)
{
    struct mo_prom_label l;
    char name[MO_PROM_VALUE_MAX + 1];

    mo_otlp_list(o, "attributes");
    while (mo_prom_label(&labels, &l)) {
        MO_BUG_ON(l.name.n >= sizeof(name));
        memcpy(name, l.name.p, l.name.n);
        name[l.name.n] = '\0';
        mo_otlp_attr(o, field, name, mo_span(l.value, l.n));
    }
    mo_otlp_list_end(o);
}

static void put_number(struct mo_otlp *o, const struct mo_otlp_metrics *x,
                       const struct mo_prom_series *s)
{
    bool counter = s->desc->kind == MO_PROM_COUNTER;

    mo_otlp_item(o, 1);
    if (counter)
        mo_otlp_fixed64(o, 2, "startTimeUnixNano", x->began);
    mo_otlp_fixed64(o, 3, "timeUnixNano", x->now);
    if (counter)
        mo_otlp_fixed64(o, 6, "asInt", s->count);
    else
        mo_otlp_double(o, 4, "asDouble", s->value);
    put_labels(o, 7, s->labels);
    mo_otlp_end(o);
}

static void put_histogram(struct mo_otlp *o, const struct mo_otlp_metrics *x,
                          const struct mo_prom_series *s)
{
    uint64_t counts[MO_PROM_BUCKETS_MAX + 1];
    size_t n = s->desc->nbuckets;

    counts[n] = s->count; /* of them, above the last bound */
    for (size_t i = 0; i < n; i++) {
        counts[i] = s->buckets[i];
        counts[n] -= counts[i];
    }
    mo_otlp_item(o, 1);
    mo_otlp_fixed64(o, 2, "startTimeUnixNano", x->began);
    mo_otlp_fixed64(o, 3, "timeUnixNano", x->now);
    mo_otlp_fixed64(o, 4, "count", s->count);
    mo_otlp_double(o, 5, "sum", s->value);
    mo_otlp_fixed64s(o, 6, "bucketCounts", counts, n + 1);
    mo_otlp_doubles(o, 7, "explicitBounds", s->desc->buckets, n);
    put_labels(o, 9, s->labels);
    mo_otlp_end(o);
}

/* A number that JSON cannot say is left out. */
static bool is_shown(const struct mo_prom_series *s)
{
    return s->desc->kind == MO_PROM_COUNTER || isfinite(s->value);
}

static unsigned put_points(struct mo_otlp *o, const struct mo_otlp_metrics *x,
                           const struct mo_prom_metric *m)
{
    bool histogram = mo_prom_desc(m)->kind == MO_PROM_HISTOGRAM;
    unsigned n = 0;

    mo_otlp_list(o, "dataPoints");
    for (const struct mo_prom_series *s = mo_prom_next(m, NULL); s;
         s = mo_prom_next(m, s)) {
        if (!is_shown(s))
            continue;
        n++;
        if (histogram)
            put_histogram(o, x, s);
        else
            put_number(o, x, s);
    }
    mo_otlp_list_end(o);
    return n;
}

static unsigned put_metric(struct mo_otlp *o, const struct mo_otlp_metrics *x,
                           const struct mo_prom_metric *m)
{
    static const struct {
        unsigned field;
        const char *name;
    } kinds[] = {[MO_PROM_COUNTER] = {7, "sum"},
                 [MO_PROM_GAUGE] = {5, "gauge"},
                 [MO_PROM_HISTOGRAM] = {9, "histogram"}};
    const struct mo_prom_desc *d = mo_prom_desc(m);
    const char *unit = unit_of(d->name);
    unsigned n;

    if (!mo_prom_next(m, NULL))
        return 0;
    mo_otlp_item(o, MO_OTLP_ITEM);
    mo_otlp_text(o, 1, "name", mo_span_cstr(d->name));
    mo_otlp_text(o, 2, "description", mo_span_cstr(d->help));
    if (unit)
        mo_otlp_text(o, 3, "unit", mo_span_cstr(unit));
    mo_otlp_msg(o, kinds[d->kind].field, kinds[d->kind].name);
    n = put_points(o, x, m);
    if (d->kind != MO_PROM_GAUGE)
        mo_otlp_number(o, 2, "aggregationTemporality", CUMULATIVE);
    if (d->kind == MO_PROM_COUNTER)
        mo_otlp_flag(o, 3, "isMonotonic", true);
    mo_otlp_end(o);
    mo_otlp_end(o);
    return n;
}

unsigned mo_otlp_metrics(const struct mo_otlp_metrics *x,
                         const struct mo_prom *prom, size_t *from,
                         unsigned most, struct mo_buf *b)
{
    static const struct mo_otlp_names names = {"resourceMetrics",
                                               "scopeMetrics", "metrics"};
    const struct mo_prom_metric *m;
    struct mo_otlp o;
    unsigned n = 0;

    mo_otlp_request(&o, b, x->encoding, x->resource, &names);
    for (m = mo_prom_at(prom, *from); m && n < most;
         m = mo_prom_at(prom, *from)) {
        n += put_metric(&o, x, m);
        ++*from;
    }
    (void)mo_otlp_request_end(&o);
    return n;
}
