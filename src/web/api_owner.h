/* api_owner.h - which sessions a request may see.
 *
 * Where persons are configured (gate.h), each sees only their own sessions and
 * what was done in them. The operator sees all, and so does everybody where no
 * persons are configured. */
#ifndef MO_WEB_API_OWNER_H
#define MO_WEB_API_OWNER_H

#include "web/api_job.h"

/* A document of the store with its owner's name in it. */
bool mo_api_is_mine(const struct mo_api_job *j, struct mo_span doc);
/* The same of a row, for api_pages.h. */
bool mo_api_row_is_mine(struct mo_api_job *j, const struct mo_row *row);

typedef void mo_api_next(struct mo_api_job *j);
/* Goes on if the session j is about is the caller's, else answers 404. */
void mo_api_if_mine(struct mo_api_job *j, mo_api_next *next);
/* Goes on when it is known which sessions are the caller's, of the last used
 * ones; then mo_api_among() tells. */
void mo_api_find_mine(struct mo_api_job *j, mo_api_next *next);
bool mo_api_among(const struct mo_api_job *j, struct mo_span session);

#endif
