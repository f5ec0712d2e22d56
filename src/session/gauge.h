/* gauge.h - what the boxes in use here take: memory, processor time,
 * processes.
 *
 * Measured on request only: each box's keeper or engine is asked once, all at
 * the same time, and those that do not answer within GAUGE_MS are left out.
 * Boxes that were let go are not asked.
 *
 * Processor time is a counter; the caller computes rates from two
 * measurements. */
#ifndef MO_SESSION_GAUGE_H
#define MO_SESSION_GAUGE_H

#include "session/session.h"

struct mo_gauge {
    char session[MO_SESSION_ID_MAX + 1];
    char box[MO_BOX_ID_MAX], driver[16];
    struct mo_box_stats stats;
    uint64_t at; /* mo_now_ns() of the answer */
};

struct mo_gateway_metrics {
    const struct mo_gauge *v; /* borrowed during the call */
    size_t n;
    uint64_t memory_limit; /* bytes, of each box */
    unsigned cpu_milli;    /* 1000: one core, of each box */
};

typedef void mo_gauge_fn(void *ctx, const struct mo_gateway_metrics *g);
/* done() once, later. */
int mo_sessions_gauge(struct mo_sessions *ss, mo_gauge_fn *done, void *ctx,
                      struct mo_err *e);

#endif
