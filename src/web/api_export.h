/* api_export.h - a whole conversation as a document (?format= of its history):
 * `markdown` and `html` for people, its current branch; `json` with all of it:
 *
 *   {"format":"mcp-orchestrator/conversation","version":1,"title","model",
 *    "exported":MS,"entries":[...]}
 *
 * agent/chat/imported.h reads it back. Limit: MO_API_ANSWER_MAX bytes. */
#ifndef MO_WEB_API_EXPORT_H
#define MO_WEB_API_EXPORT_H

#include "web/api_job.h"
#include "web/transcript.h"

/* False: the request names no such format. */
bool mo_api_export(struct mo_api_job *j, uint64_t conversation);
/* Answers with the conversation up to that entry, on the branch that was the
 * current one then: a page of its own, for a link (api_links.c). */
void mo_api_export_frozen(struct mo_api_job *j, uint64_t conversation,
                          uint64_t up_to, struct mo_span title);
void mo_api_export_headers(struct mo_api_job *j); /* of such a page */
void mo_api_export_free(struct mo_api_export *x);

#endif
