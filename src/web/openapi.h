/* openapi.h - GET /api/openapi.json: the HTTP API as a document.
 *
 * Written from one table (openapi.c): a row for each path and method with its
 * parameters and the schema of its answer. The document also lists the routes
 * that are really served ("x-routes"), so a test finds a forgotten one. */
#ifndef MO_WEB_OPENAPI_H
#define MO_WEB_OPENAPI_H

#include "web/site.h"

int mo_openapi_route(struct mo_site *s);
/* The document itself; s: whose routes, or NULL. */
int mo_openapi_write(const struct mo_site *s, struct mo_buf *out);

#endif
