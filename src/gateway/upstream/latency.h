/* latency.h - how long tools usually take, from the calls that were made.
 *
 * For each tool a histogram of powers of two, from PACE_FIRST_US on. Old calls
 * fade: beyond PACE_FULL all counts are halved, so that what is told is of the
 * last thousand or so. Nothing is kept between runs.
 *
 * Limit: PACE_ROWS_MAX tools; of others nothing is known. A row lives as long
 * as the whole: whoever has it need not look it up again. */
#ifndef MO_GATEWAY_UPSTREAM_LATENCY_H
#define MO_GATEWAY_UPSTREAM_LATENCY_H

#include "base/map.h"

#define PACE_ROWS_MAX 4096
#define PACE_FULL     1024
#define PACE_FIRST_US 125
#define PACE_BUCKETS  24 /* the last one has no end: over 17 minutes */

struct mo_latency_row {
    uint32_t calls, failed;
    uint32_t took[PACE_BUCKETS];
};

struct mo_latency_seen {
    uint32_t calls, failed;    /* of those that are remembered */
    uint64_t half_us, most_us; /* 50 and 95 of 100 took no longer */
};

struct mo_latency { /* the owner's storage */
    struct mo_map rows;
};

void mo_latency_init(struct mo_latency *p);
void mo_latency_fini(struct mo_latency *p);

/* NULL: there are too many, or no memory; that is fine below. */
struct mo_latency_row *mo_latency_row(struct mo_latency *p, const char *server,
                                      struct mo_span tool);
void mo_latency_note(struct mo_latency_row *r, uint64_t us, bool failed);
/* False: it was never called. */
bool mo_latency_seen(const struct mo_latency *p, const char *server,
                     struct mo_span tool, struct mo_latency_seen *out);

#endif
