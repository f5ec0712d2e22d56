/* api_workers.h - answers about all workers of a server.
 *
 * Each worker knows its own connections, processes and counters. The worker
 * that gets such a request answers it for itself, asks the others over the
 * relay (relay.h) at the same time, with the identity of the person, and merges
 * the answers (merge.h). The routes have MO_ROUTE_WORKERS.
 *
 * A worker that does not answer within MO_RELAY_ASK_MS, or has just died, is
 * left out. */
#ifndef MO_WEB_API_WORKERS_H
#define MO_WEB_API_WORKERS_H

#include "web/api_job.h"
#include "web/merge.h"

/* True if the answer is merged with those of other workers, here or by the
 * worker that asks. */
bool mo_api_is_merged(const struct mo_api_job *j);
/* Answers with j->out, an object, merged with the answers of the others. */
void mo_api_of_all_workers(struct mo_api_job *j,
                           const struct mo_merge_rule *rules);

#endif
