/* api_servers.h - the configured MCP servers over HTTP.
 *
 *   GET  /api/servers                        all of them and their state
 *   POST /api/servers/NAME/test              connect now and report
 *   GET  /api/servers/NAME/tools             its tools
 *   POST /api/servers/NAME/tools/TOOL/call   {args, digest?}: try a tool
 *   POST /api/servers/NAME/tools/TOOL/accept {digest}: accept a changed tool
 *
 * Trying a tool obeys the operator's approval rules. If approval is needed, the
 * first request is answered with {"state":"ask","digest"} and runs nothing. The
 * same request with that digest is the approval, for exactly these bytes, once.
 *
 * This file knows paths and bodies; servers/try_tool.h does the work. */
#ifndef MO_WEB_API_SERVERS_H
#define MO_WEB_API_SERVERS_H

#include "servers/try_tool.h"
#include "web/site.h"

struct mo_api;

int mo_api_servers_routes(struct mo_site *s, struct mo_api *api);
/* A request below the name of a server; ctx is the struct mo_api. */
void mo_api_servers_one(void *ctx, struct mo_req *rq);

#endif
