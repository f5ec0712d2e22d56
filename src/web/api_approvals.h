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

#include "web/site.h"

struct mo_api_decision {
    struct mo_span id, digest, reason;
    struct mo_json args; /* to run it with; none: as they are */
    bool approved;
    const char *who;
};

struct mo_api_accept {
    struct mo_span server, tool, digest;
    const char *who;
};

struct mo_api_approvals {
    int (*list)(void *ctx, struct mo_buf *out);
    /* MO_ENOTFOUND: it does not wait (any more); MO_EPOLICY: it is not what
     * was shown; MO_EINVAL: those arguments are not for this tool. */
    int (*decide)(void *ctx, const struct mo_api_decision *d, struct mo_err *e);
    int (*accept)(void *ctx, const struct mo_api_accept *a, struct mo_err *e);
    /* The report as JSON, later. */
    int (*verify)(void *ctx,
                  void (*done)(void *arg, struct mo_span json,
                               const struct mo_err *why),
                  void *arg, struct mo_err *e);
    void *ctx;
};

/* a is borrowed as long as the site lives. */
int mo_api_approvals_routes(struct mo_site *s, struct mo_api_approvals *a);
/* One request of any of them; what is not ours is a 404. */
void mo_api_approvals_handle(struct mo_api_approvals *a, struct mo_req *rq);

#endif
