/* latency.h - call durations per tool, as histograms.
 *
 * Each tool has a histogram with buckets of powers of two, starting at
 * LATENCY_FIRST_US. When a row exceeds LATENCY_FULL calls, all its counts are
 * halved, so the figures describe about the last thousand calls. Nothing is
 * stored on disk.
 *
 * Limit: LATENCY_ROWS_MAX tools; further tools get no row. A row stays valid
 * until mo_latency_fini(), so callers may keep it. */
#ifndef MO_GATEWAY_UPSTREAM_LATENCY_H
#define MO_GATEWAY_UPSTREAM_LATENCY_H

#include "base/map.h"

#define LATENCY_ROWS_MAX 4096
#define LATENCY_FULL     1024
#define LATENCY_FIRST_US 125
#define LATENCY_BUCKETS  24 /* the last one is open: over 17 minutes */

struct mo_latency_row {
    uint32_t calls, failed;
    uint32_t buckets[LATENCY_BUCKETS];
};

struct mo_latency_stats {
    uint32_t calls, failed;  /* of the calls still counted */
    uint64_t p50_us, p95_us; /* upper end of the percentile's bucket */
};

struct mo_latency { /* the owner's storage */
    struct mo_map rows;
};

void mo_latency_init(struct mo_latency *p);
void mo_latency_fini(struct mo_latency *p);

/* Returns the tool's row, added if needed. NULL: too many rows, name too long,
 * or out of memory. */
struct mo_latency_row *mo_latency_row(struct mo_latency *p, const char *server,
                                      struct mo_span tool);
/* Counts a call. r may be NULL. */
void mo_latency_add(struct mo_latency_row *r, uint64_t us, bool failed);
/* False if the tool was never called. */
bool mo_latency_get(const struct mo_latency *p, const char *server,
                    struct mo_span tool, struct mo_latency_stats *out);

#endif
