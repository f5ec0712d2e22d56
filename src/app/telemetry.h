/* telemetry.h - opens traces, metrics and logs by OTLP as the configuration
 * says (telemetry.*).
 *
 * Telemetry never stops the program: if it cannot be opened, this is logged
 * and the program runs without. */
#ifndef MO_APP_TELEMETRY_H
#define MO_APP_TELEMETRY_H

#include "codec/prom.h"
#include "config/config.h"
#include "loop/loop.h"

struct mo_telemetry;

/* log: of the loop. NULL: telemetry.endpoint is not set, or it failed. */
struct mo_telemetry *mo_telemetry_open(struct mo_loop *l, struct mo_log *log,
                                       const struct mo_config *c);
/* Shows in /metrics what became of the exports, and begins to export the
 * metrics. The registry must not outlive t. */
int mo_telemetry_metrics(struct mo_telemetry *t, struct mo_prom *p,
                         struct mo_err *e);
/* Takes the last values of the metrics: the registry may go. t may be NULL. */
void mo_telemetry_stop_metrics(struct mo_telemetry *t);
/* Exports the rest, for at most MO_TRACE_FLUSH_MS; then gone(ctx). */
void mo_telemetry_close(struct mo_telemetry *t, void (*gone)(void *ctx),
                        void *ctx);

#endif
