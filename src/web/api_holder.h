/* api_holder.h - requests about a conversation, answered by the process that
 * has it open.
 *
 * A worker passes them to the worker that opened the conversation, a server to
 * the process that has the lease of its session (relay.h), with the identity of
 * the person as its own gate has judged it; the other one decides what the
 * person may do. A request is passed to another server once. The routes have
 * MO_ROUTE_WORKERS.
 *
 * The request is answered here if the conversation is open here, if no process
 * has it, or if the one that has it is dead. */
#ifndef MO_WEB_API_HOLDER_H
#define MO_WEB_API_HOLDER_H

#include "web/api.h"

/* Answers it; rq->data is the struct mo_api. */
typedef void mo_api_here_fn(struct mo_req *rq, struct mo_span body);

/* Answer a request about the session of its path there, or with here(), which
 * may be called later. */
void mo_api_at_holder(struct mo_api *api, struct mo_req *rq,
                      struct mo_span body, mo_api_here_fn *here);

#endif
