/* log_queue.h - lines of the log that wait for an export.
 *
 * A line of the log is also kept as a record, with its fields apart from each
 * other. Secrets are hidden in it as in the line. The log owns the queue and
 * frees it; one thread takes records, any thread may log.
 *
 * Limits: MO_LOG_QUEUE_BYTES of records wait to be taken, and as many were
 * handed over. A record that does not fit is dropped and counted: a line of
 * the log never waits. Lines of the room MO_LOG_QUEUE_NOT are not queued: they
 * are about the export, and one that fails would feed itself. */
#ifndef MO_BASE_LOG_QUEUE_H
#define MO_BASE_LOG_QUEUE_H

#include "base/log.h"

#define MO_LOG_QUEUE_BYTES ((size_t)512 * 1024)
#define MO_LOG_QUEUE_NOT   "trace"

enum mo_log_record_text {
    MO_LOG_ROOM,
    MO_LOG_MESSAGE,
    MO_LOG_SESSION,
    MO_LOG_TURN,
    MO_LOG_CALL,
    MO_LOG_SERVER,
    MO_LOG_TOOL,
    MO_LOG_WHO,
    MO_LOG_FROM,
    MO_LOG_RECORD_TEXTS
};

struct mo_log_record {
    size_t size; /* with the texts, which follow */
    enum mo_level level;
    uint64_t wall_ms;
    uint64_t request, status, ns; /* of struct mo_log_facts */
    unsigned worker;
    int code, sys; /* of the error; 0: none */
    bool traced;
    struct mo_log_trace trace;
    uint16_t at[MO_LOG_RECORD_TEXTS], n[MO_LOG_RECORD_TEXTS];
};

struct mo_log_queue_stats {
    uint64_t dropped;
    uint64_t waiting; /* records that were not taken */
};

/* Queue the lines of the log from now on. Called again, returns the same queue.
 * NULL: no memory. */
struct mo_log_queue *mo_log_queue_start(struct mo_log *l);
/* Queue no further lines. The log frees the queue at its end, when no other
 * thread can log. */
void mo_log_queue_stop(struct mo_log_queue *q);

/* The oldest record; valid until the next call. NULL: there is none. */
const struct mo_log_record *mo_log_queue_take(struct mo_log_queue *q);
struct mo_span mo_log_record_text(const struct mo_log_record *r,
                                  enum mo_log_record_text which);
struct mo_log_queue_stats mo_log_queue_stats(struct mo_log_queue *q);

#endif
