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

struct pace_row {
    uint32_t calls, failed;
    uint32_t took[PACE_BUCKETS];
};

struct pace_seen {
    uint32_t calls, failed;    /* of those that are remembered */
    uint64_t half_us, most_us; /* 50 and 95 of 100 took no longer */
};

struct mo_pace { /* the owner's storage */
    struct mo_map rows;
};

void pace_init(struct mo_pace *p);
void pace_fini(struct mo_pace *p);

/* NULL: there are too many, or no memory; that is fine below. */
struct pace_row *pace_row(struct mo_pace *p, const char *server,
                          struct mo_span tool);
void pace_note(struct pace_row *r, uint64_t us, bool failed);
/* False: it was never called. */
bool pace_seen(const struct mo_pace *p, const char *server, struct mo_span tool,
               struct pace_seen *out);

#endif
