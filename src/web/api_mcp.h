/* api_mcp.h - manage the configured MCP servers over HTTP.
 *
 *   GET    /api/mcp              all configured servers and their state
 *   POST   /api/mcp              {name, command|url|image, ...}: add one
 *   POST   /api/mcp/add          the same, for older clients
 *   GET    /api/mcp/health       their state, as counts and one by one
 *   GET    /api/mcp/snippets     configuration for clients that connect to us
 *   POST   /api/mcp/import       import another client's file
 *   GET    /api/mcp/NAME         one server, with its entry of the file
 *   PATCH  /api/mcp/NAME         {enabled, ...}: change it; null removes a key
 *   DELETE /api/mcp/NAME         remove it from the file
 *   POST   /api/mcp/NAME/test    connect now, beside a running connection
 *   GET    /api/mcp/NAME/tools   its tools
 *   ...    /api/mcp/NAME/tools/TOOL/call and accept, as in api_servers.h
 *
 * POST and PATCH: test=true connects first and saves only if that works;
 * dryRun=true saves nothing. Both may be in the query or in the body.
 *
 * Adding a command means running it: a client that may write here may run
 * programs as this user. gate.h decides who may, and the operator whether it is
 * possible at all (server.manage). Servers named add, health, import or
 * snippets cannot be addressed here.
 *
 * This file knows paths, queries and bodies; servers/manage.h does the work. */
#ifndef MO_WEB_API_MCP_H
#define MO_WEB_API_MCP_H

#include "servers/manage.h"
#include "web/api_servers.h"

int mo_api_mcp_routes(struct mo_site *s, struct mo_api *api);

#endif
