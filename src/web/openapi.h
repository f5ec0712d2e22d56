/* openapi.h - GET /api/openapi.json: what can be asked over plain HTTP.
 *
 * Made out of one table (openapi.c): a row for each path and method with its
 * parameters and the schema of its answer. The routes that really are served
 * stand beside it ("x-routes"), so that a test finds one that was forgotten. */
#ifndef MO_WEB_OPENAPI_H
#define MO_WEB_OPENAPI_H

#include "web/site.h"

int mo_openapi_route(struct mo_site *s);
/* The document itself; s: whose routes, or NULL. */
int mo_openapi_write(const struct mo_site *s, struct mo_buf *out);

#endif
