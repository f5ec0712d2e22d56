/* access.h - the table of roles: who may use which route and event.
 *
 * Every route of the web server and every event of a conversation has one row.
 * A route without a row cannot be added, so a new one is never open by
 * accident. docs/roles.md is made from this table (`mcp-orchestrator roles`),
 * and so are the tests. */
#ifndef MO_WEB_ACCESS_H
#define MO_WEB_ACCESS_H

#include "codec/http/http1.h"
#include "people/role.h"

struct mo_access_row {
    const char *kind;   /* a method, "any", "file" or "event" */
    const char *path;   /* of the route, or the event's name */
    enum mo_role least; /* MO_ROLE_NONE: everyone, without signing in */
    const char *note;   /* for the document */
};

size_t mo_access_rows(const struct mo_access_row **out);

/* The lowest role that may use it; -1: there is no row. Paths that are not
 * below /api/ or another address of programs are files of the page. */
int mo_access_route(enum mo_http_method method, const char *path);
int mo_access_event(struct mo_span name);

#endif
