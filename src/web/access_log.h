/* access_log.h - one line in the log for each HTTP request.
 *
 * Room "access": requests below /api and /mcp at level info, those that failed
 * on our side (5xx) at warn, all others (page, Socket.IO, probes) at debug.
 * Requests that another process has passed on are at debug, too: it has a line
 * for them. A line has the path without its query, which may hold a token;
 * never a header or a body. */
#ifndef MO_WEB_ACCESS_LOG_H
#define MO_WEB_ACCESS_LOG_H

#include "loop/httpd.h"

/* The request ended; status 0: nothing was sent. */
void mo_access_log(const struct mo_log *l, const struct mo_req *rq, int status,
                   uint64_t ns);

#endif
