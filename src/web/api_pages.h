/* api_pages.h - rows of the store that are the caller's, page by page.
 *
 * The store does not know owners. So its rows are read page after page until
 * there are as many of the caller's as were asked for, or none follow: a page
 * of other people's rows is not the end. Where there are no persons, one page
 * is read.
 *
 * Kinds: MO_READ_AUDIT, MO_READ_SEARCH, and MO_READ_SESSIONS with `newest`.
 * Rows come newest or best first.
 *
 * Limit: an answer of half of MO_API_ANSWER_MAX ends the reading; so does a
 * client that has gone. */
#ifndef MO_WEB_API_PAGES_H
#define MO_WEB_API_PAGES_H

#include "web/api_job.h"

/* Calls each() for every row for which mine() is true, r->limit of them at
 * most, then end(); `more`: others follow. On failure the job is answered
 * instead. r->text is copied; the other texts must last. */
void mo_api_pages(struct mo_api_job *j, const struct mo_read *r,
                  const struct mo_api_pages_cb *cb);

#endif
