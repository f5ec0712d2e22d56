/* api_session.h - two more requests about one session (api.h).
 *
 *   PATCH /api/sessions/ID        {"title": ...}: rename it, while it is open
 *                                 in this process
 *   GET   /api/sessions/ID/calls  its calls, who decided them and how long
 *                                 they took; not their results */
#ifndef MO_WEB_API_SESSION_H
#define MO_WEB_API_SESSION_H

#include "web/api_job.h"

void mo_api_rename(struct mo_api *api, struct mo_req *rq);
/* `after`, `limit`: as everywhere, from the query. */
void mo_api_calls(struct mo_api_job *j, uint64_t after, unsigned limit);

#endif
