/* api_export.h - a whole conversation as a document (?format= of its history):
 * `markdown` and `html` for people, its current branch; `json` with all of it:
 *
 *   {"format":"mcp-orchestrator/conversation","version":1,"title","model",
 *    "exported":MS,"entries":[...]}
 *
 * Limit: MO_API_ANSWER_MAX bytes. */
#ifndef MO_WEB_API_EXPORT_H
#define MO_WEB_API_EXPORT_H

#include "web/api_job.h"

#define MO_EXPORT_FORMAT  "mcp-orchestrator/conversation"
#define MO_EXPORT_VERSION 1

/* False: the request names no such format. */
bool mo_api_export(struct mo_api_job *j, uint64_t conversation);
void mo_api_export_free(struct mo_api_export *x);

#endif
