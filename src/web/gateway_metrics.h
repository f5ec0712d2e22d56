/* gateway_metrics.h - the gateway in numbers, for /metrics and /api/stats.
 *
 *   gateway_calls_total, _errors_total      by server and tool
 *   gateway_call_seconds                    histogram, by server and tool
 *   gateway_outcomes_total                  by outcome
 *   gateway_breaker, _children, _queue      by server, now
 *   gateway_approvals_waiting               now
 *   gateway_approval_seconds                how long a person took
 *   gateway_schema_tokens_saved             by showing four tools, about
 *   model_tool_tokens_total                 by kind: sent, plain
 *   audit_rows_total, audit_lost_total
 *   box_connections_total, box_bytes_total  by server and rule of the network
 *
 * Time in which a person was waited for is no part of a call's seconds. Labels
 * are bounded by prom.h: what is beyond is counted as "other". */
#ifndef MO_WEB_GATEWAY_METRICS_H
#define MO_WEB_GATEWAY_METRICS_H

#include "agent/chat/chat.h"
#include "codec/prom.h"
#include "policy/approvals.h"
#include "servers/gateway_setup.h"

#define MO_GATEWAY_METRICS_TOOLS 20 /* shown of a server, most used first */

struct mo_gateway_metrics;

/* gateway and approvals are borrowed until mo_gateway_metrics_stop(), the
 * registry as long as it is written. */
int mo_gateway_metrics_new(struct mo_prom *p, struct mo_gateway_setup *gateway,
                           struct mo_approvals *approvals,
                           struct mo_gateway_metrics **out, struct mo_err *e);
/* Conversations are counted too, until mo_gateway_metrics_stop(); NULL: no
 * more. */
void mo_gateway_metrics_agent(struct mo_gateway_metrics *g,
                              const struct mo_agent *agent);
/* The "gateway" of /api/stats, an object: sums of all calls
 * (web/call_stats.h), and of each server its state, breaker, children,
 * queue, calls and tools. ctx: struct mo_gateway_metrics. */
void mo_gateway_metrics_put(void *ctx, bool raw, struct mo_jw *w);
void mo_gateway_metrics_stop(
    struct mo_gateway_metrics *g); /* numbers stay as they are */
void mo_gateway_metrics_free(
    struct mo_gateway_metrics *g); /* after the registry; NULL is fine */

#endif
