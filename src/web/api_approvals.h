/* api_approvals.h - calls of the gateway that wait for a person, and the state
 * of the audit log.
 *
 *   GET  /api/approvals        {"approvals":[...],"changed":[...]}
 *   POST /api/approvals/ID     {approved, digest, reason?, args?}: yes or no;
 *                              args: with these arguments instead
 *   POST /api/approvals/tools  {server, tool, digest}: a changed tool may be
 *                              used as it is now
 *   GET  /api/audit/verify     is the audit log what was written?
 *
 * A yes needs the digest of what was shown; a no does not. The same requests
 * are answered on a socket beside the state (web/approvals_socket.h). Who keeps
 * the calls is not known here. ctx NULL: they are not there yet (503). */
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
