/* latency.h - how long tools usually take, from the calls that were made.
 *
 * For each tool a histogram of powers of two, from LATENCY_FIRST_US on. Old
 * calls fade: beyond LATENCY_FULL all counts are halved, so that what is told
 * is of the last thousand or so. Nothing is kept between runs.
 *
 * Limit: LATENCY_ROWS_MAX tools; of others nothing is known. A row lives as
 * long as the whole: whoever has it need not look it up again. */
#ifndef MO_GATEWAY_UPSTREAM_LATENCY_H
#define MO_GATEWAY_UPSTREAM_LATENCY_H

#include "base/map.h"

#define LATENCY_ROWS_MAX 4096
#define LATENCY_FULL     1024
#define LATENCY_FIRST_US 125
#define LATENCY_BUCKETS  24 /* the last one has no end: over 17 minutes */

struct mo_latency_row {
    uint32_t calls, failed;
    uint32_t buckets[LATENCY_BUCKETS];
};

struct mo_latency_stats {
    uint32_t calls, failed;  /* of those that are remembered */
    uint64_t p50_us, p95_us; /* 50 and 95 of 100 took no longer */
};

struct mo_latency { /* the owner's storage */
    struct mo_map rows;
};

void mo_latency_init(struct mo_latency *p);
void mo_latency_fini(struct mo_latency *p);

/* NULL: there are too many, or no memory; that is fine below. */
struct mo_latency_row *mo_latency_row(struct mo_latency *p, const char *server,
                                      struct mo_span tool);
void mo_latency_add(struct mo_latency_row *r, uint64_t us, bool failed);
/* False: it was never called. */
bool mo_latency_get(const struct mo_latency *p, const char *server,
                    struct mo_span tool, struct mo_latency_stats *out);

#endif
