/* prom.h - counters, gauges and histograms, in Prometheus' text format 0.0.4.
 *
 * A room describes its metrics in static tables, registers them once and
 * keeps the series pointers it gets: counting is then an addition. Only
 * mo_prom_write() knows the format. mo_prom_at() and the functions below it
 * walk over the same metrics, for other formats.
 *
 * One thread, no locks. Descriptors are borrowed for the life of the
 * registry, label values are copied.
 *
 * Limits: a metric has at most MO_PROM_SERIES_MAX label sets. Above that, or
 * when memory is out, counts go to one more series whose labels all say
 * "other": a peer that invents values cannot make the registry grow, and no
 * count is lost. Label values are cut at MO_PROM_VALUE_MAX bytes and bytes
 * outside printable ASCII become '?', so that no value can break the format.
 *
 * Every counting call takes NULL and then does nothing, for rooms that were
 * given no registry. */
#ifndef MO_CODEC_PROM_H
#define MO_CODEC_PROM_H

#include "base/str.h"

#define MO_PROM_TYPE        "text/plain; version=0.0.4; charset=utf-8"
#define MO_PROM_LABELS_MAX  4
#define MO_PROM_BUCKETS_MAX 24
#define MO_PROM_SERIES_MAX  256
#define MO_PROM_METRICS_MAX 256
#define MO_PROM_HOOKS_MAX   32
#define MO_PROM_VALUE_MAX   ((size_t)128)

enum mo_prom_kind { MO_PROM_COUNTER, MO_PROM_GAUGE, MO_PROM_HISTOGRAM };

struct mo_prom_desc {
    const char *name; /* [a-zA-Z_:][a-zA-Z0-9_:]* */
    const char *help;
    enum mo_prom_kind kind;
    const char *labels[MO_PROM_LABELS_MAX]; /* names; the rest NULL */
    const double *buckets; /* histograms: upper bounds, rising, finite */
    size_t nbuckets;       /* without "+Inf", which is added */
};

/* 1 ms to 60 s: answers, calls, starts. */
#define MO_PROM_SECONDS_N 14
extern const double mo_prom_seconds[MO_PROM_SECONDS_N];

struct mo_prom;
struct mo_prom_metric;

struct mo_prom_series {
    struct mo_prom_series *next;
    const struct mo_prom_desc *desc;
    char *labels;       /* a="x",b="y"; escaped; may be "" */
    uint64_t count;     /* counter value; histogram: observations */
    double value;       /* gauge value; histogram: sum */
    uint64_t buckets[]; /* not cumulative; desc->nbuckets of them */
};

struct mo_prom *mo_prom_new(void);
void mo_prom_free(struct mo_prom *p);

/* The same descriptor twice gives the same metric. MO_EINVAL for an
 * invalid name, label or bucket, MO_EEXISTS for the name of another
 * descriptor, MO_EBUSY at MO_PROM_METRICS_MAX. NULL then. */
struct mo_prom_metric *
mo_prom_add(struct mo_prom *p, const struct mo_prom_desc *d, struct mo_err *e);

/* The series with these label values, one for each name of the descriptor
 * (values may be NULL if it has none). Never NULL unless m is. Lives as long
 * as the registry. */
struct mo_prom_series *mo_prom_with(struct mo_prom_metric *m,
                                    const struct mo_span *values);

static inline void mo_prom_count(struct mo_prom_series *s, uint64_t n)
{
    if (s)
        s->count += n;
}

static inline void mo_prom_set(struct mo_prom_series *s, double v)
{
    if (s)
        s->value = v;
}

/* NaN is not observed. */
void mo_prom_observe(struct mo_prom_series *s, double v);

/* Called at the start of every write, to set gauges that are cheaper to ask
 * for than to keep. MO_EBUSY at MO_PROM_HOOKS_MAX. */
int mo_prom_hook(struct mo_prom *p, void (*fn)(void *ctx), void *ctx);

/* The whole page; metrics in order of registration. Metrics with labels and
 * no series yet are left out; one without labels is always there. */
int mo_prom_write(struct mo_prom *p, struct mo_buf *b);

/* The same metrics for another format. Set the gauges, as before a write. */
void mo_prom_measure(struct mo_prom *p);
/* The metric of that number, from 0 in order of registration; NULL: no more. */
const struct mo_prom_metric *mo_prom_at(const struct mo_prom *p, size_t i);
const struct mo_prom_desc *mo_prom_desc(const struct mo_prom_metric *m);
/* The series after s, or the first if s is NULL, as on the page; NULL: no more.
 */
const struct mo_prom_series *mo_prom_next(const struct mo_prom_metric *m,
                                          const struct mo_prom_series *s);
/* The next label of a series; *at is its labels first. The value is not
 * escaped. False: no more. */
struct mo_prom_label {
    struct mo_span name;
    char value[MO_PROM_VALUE_MAX + 1];
    size_t n;
};
bool mo_prom_label(const char **at, struct mo_prom_label *out);

/* One page of several processes: metrics of the same name stand together, and
 * each series gets a first label `label` whose value is the number of its page,
 * from 1. An empty page is left out. MO_ENOMEM, MO_ETOOBIG. */
int mo_prom_join(const struct mo_span *pages, size_t n, const char *label,
                 struct mo_buf *b);

#endif
