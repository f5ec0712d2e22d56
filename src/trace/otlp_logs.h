/* otlp_logs.h - lines of the log as an ExportLogsServiceRequest. Pure. */
#ifndef MO_TRACE_OTLP_LOGS_H
#define MO_TRACE_OTLP_LOGS_H

#include "base/log_queue.h"
#include "trace/otlp.h"

/* An item of the request. observed: ns since 1970. */
void mo_otlp_log(struct mo_otlp *o, const struct mo_log_record *r,
                 uint64_t observed);

#endif
