/* api_session.h - two more things about one session (api.h).
 *
 *   PATCH /api/sessions/ID        {"title": ...}: another name, while it is
 *                                 open in this process
 *   GET   /api/sessions/ID/calls  who decided its calls, and how long they
 *                                 took; not what came of them */
#ifndef MO_WEB_API_SESSION_H
#define MO_WEB_API_SESSION_H

#include "web/api_job.h"

void mo_api_rename(struct mo_api *api, struct mo_req *rq);
/* `after`, `limit`: as everywhere, from the query. */
void mo_api_calls(struct mo_api_job *j, uint64_t after, unsigned limit);

#endif
