/* audit_lookup.h - rows of the audit log about words that somebody asked the
 * router about without doing anything: `find`, GET /api/route.
 *
 * What execute and find_tool take words for is the gateway's to tell
 * (mo_audit_routing); here the answer is made already, as JSON, and the row is
 * written from that: the surest with their scores, what was ruled out and why,
 * and that nothing was done.
 *
 * Limit: LOOKED_MOST candidates of each kind. */
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
