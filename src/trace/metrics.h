/* metrics.h - sends the metrics of /metrics (codec/prom.h) by OTLP.
 *
 * A metric has the name, the text and the labels that it has on the page of
 * /metrics, and the same values: a counter is a monotonic cumulative sum, a
 * histogram has the bounds of its buckets. Cumulative values begin when the
 * exporter was opened, so open it before anything is counted.
 *
 * Every interval all metrics are sent, in requests of about MO_METRICS_BATCH
 * points. If the collector has not taken the last ones by then, the interval is
 * left out: the next values contain them.
 *
 * Ownership: the registry is the caller's, from start to stop.
 * Limits: those of export.h. Points that were not taken are counted. */
#ifndef MO_TRACE_METRICS_H
#define MO_TRACE_METRICS_H

#include "codec/prom.h"
#include "trace/target.h"

#define MO_METRICS_BATCH 2048u

struct mo_metrics;

struct mo_metrics_opts { /* all copied */
    struct mo_otlp_target to;
    unsigned interval_ms;
};

struct mo_metrics_stats {
    uint64_t sent;    /* points that the collector took */
    uint64_t dropped; /* points that it did not get */
    uint64_t failed;  /* exports that failed, retries included */
};

int mo_metrics_open(const struct mo_metrics_opts *o, struct mo_metrics **out,
                    struct mo_err *e);
void mo_metrics_start(struct mo_metrics *m, struct mo_prom *prom);
/* The registry may go after this. Its last values are sent by the close. */
void mo_metrics_stop(struct mo_metrics *m);
/* Sends the rest, for at most MO_TRACE_FLUSH_MS; then gone(ctx). */
void mo_metrics_close(struct mo_metrics *m, void (*gone)(void *ctx), void *ctx);
struct mo_metrics_stats mo_metrics_stats(const struct mo_metrics *m);

#endif
