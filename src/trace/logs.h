/* logs.h - sends the lines of the log by OTLP.
 *
 * A line that the log writes is also kept as a record (base/log_queue.h), with
 * secrets hidden, and sent with others MO_LOGS_PAUSE_MS later at most. Lines
 * about the export itself are not sent: a collector that fails feeds nothing.
 *
 * Limits: those of base/log_queue.h and export.h; records that were not taken
 * are counted. */
#ifndef MO_TRACE_LOGS_H
#define MO_TRACE_LOGS_H

#include "base/log_queue.h"
#include "trace/target.h"

#define MO_LOGS_BATCH    512u /* records of one export */
#define MO_LOGS_PAUSE_MS 500u

struct mo_logs;

struct mo_logs_stats {
    uint64_t sent;    /* records that the collector took */
    uint64_t dropped; /* records that it did not get */
    uint64_t waiting; /* records in the queue and in the current export */
    uint64_t failed;  /* exports that failed, retries included */
};

/* log must outlive it, and be the one of the loop's thread. */
int mo_logs_open(const struct mo_otlp_target *to, struct mo_log *log,
                 struct mo_logs **out, struct mo_err *e);
/* Sends the rest, for at most MO_TRACE_FLUSH_MS; then gone(ctx). */
void mo_logs_close(struct mo_logs *l, void (*gone)(void *ctx), void *ctx);
struct mo_logs_stats mo_logs_stats(const struct mo_logs *l);

#endif
