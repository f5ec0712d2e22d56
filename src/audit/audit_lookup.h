/* audit_lookup.h - audit rows about router queries that run no tool: `find`,
 * GET /api/route.
 *
 * The gateway writes the rows of execute and find_tool itself
 * (mo_audit_routing). Here the row is made from the JSON answer: the best
 * candidates with their scores, the excluded tools with the reasons, and
 * "acted":false.
 *
 * Limit: CANDIDATES_MAX candidates of each kind. */
#ifndef MO_AUDIT_AUDIT_LOOKUP_H
#define MO_AUDIT_AUDIT_LOOKUP_H

#include "audit/audit.h"

struct mo_audit_lookup {
    const char *via; /* "find", "/api/route" */
    struct mo_span who, words;
    struct mo_span answer; /* of mo_gateway_find() */
};

void mo_audit_lookup(struct mo_audit *a, const struct mo_audit_lookup *l);

#endif
