/* openapi.h - GET /api/openapi.json: the description of the HTTP API.
 *
 * The document is data/openapi.json, embedded at build time, with the
 * program's version in `info`. `x-routes` lists the routes that are served, so
 * that a test finds one that is not described. */
#ifndef MO_WEB_OPENAPI_H
#define MO_WEB_OPENAPI_H

#include "web/site.h"

int mo_openapi_route(struct mo_site *s);

#endif
