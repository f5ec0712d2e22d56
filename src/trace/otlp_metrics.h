/* otlp_metrics.h - metrics as an ExportMetricsServiceRequest. Pure. */
#ifndef MO_TRACE_OTLP_METRICS_H
#define MO_TRACE_OTLP_METRICS_H

#include "codec/prom.h"
#include "trace/target.h"

struct mo_otlp_metrics {
    enum mo_otlp_encoding encoding;
    const struct mo_buf *resource;
    uint64_t began, now; /* ns since 1970 */
};

/* Writes metrics from number *from on, until there are `most` points or no more
 * metrics, and sets *from to the next. Returns the number of points; b keeps an
 * error. */
unsigned mo_otlp_metrics(const struct mo_otlp_metrics *x,
                         const struct mo_prom *prom, size_t *from,
                         unsigned most, struct mo_buf *b);

#endif
