/* api_approvals.h - calls of the gateway that wait for approval, and the check
 * of the audit log.
 *
 *   GET  /api/approvals        {"approvals":[...],"changed":[...]}
 *   POST /api/approvals/ID     {approved, digest, reason?, args?}: approve or
 *                              reject; args replaces the arguments
 *   POST /api/approvals/tools  {server, tool, digest}: accept the changed
 *                              definition of a tool
 *   GET  /api/audit/verify     check that the audit log is unchanged
 *
 * Approving needs the digest of what was shown; rejecting does not. The same
 * requests are served on a local socket (web/approvals_socket.h). The owner of
 * the pending calls is behind ctx; NULL: not ready yet (503). */
#ifndef MO_WEB_API_APPROVALS_H
#define MO_WEB_API_APPROVALS_H

#include "policy/approvals.h"
#include "web/site.h"

struct mo_api_approvals {
    struct mo_approvals *approvals; /* NULL: not there yet */
};

/* a is borrowed as long as the site lives. */
int mo_api_approvals_routes(struct mo_site *s, struct mo_api_approvals *a);
/* One request of any of them; what is not ours is a 404. */
void mo_api_approvals_handle(struct mo_api_approvals *a, struct mo_req *rq);

#endif
