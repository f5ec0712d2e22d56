/* telemetry.h - opens the tracer as the configuration says (telemetry.*).
 *
 * Telemetry never stops the program: if it cannot be opened, this is logged
 * and the program runs without. */
#ifndef MO_APP_TELEMETRY_H
#define MO_APP_TELEMETRY_H

#include "config/config.h"
#include "trace/trace.h"

struct mo_prom;
struct mo_prom_series;

#define MO_TELEMETRY_SERIES 4

struct mo_telemetry_meter { /* caller's storage; lives as long as the metrics */
    struct mo_loop *loop;
    struct mo_prom_series *v[MO_TELEMETRY_SERIES];
};

/* NULL: telemetry.endpoint is not set, or it failed. */
struct mo_tracer *mo_telemetry_open(struct mo_loop *l,
                                    const struct mo_config *c);
/* Shows in /metrics what became of the spans of this loop. */
int mo_telemetry_metrics(struct mo_telemetry_meter *m, struct mo_loop *l,
                         struct mo_prom *p, struct mo_err *e);

#endif
