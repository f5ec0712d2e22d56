/* api_mcp.h - the configured MCP servers managed over plain HTTP.
 *
 *   GET    /api/mcp              all that are configured, and how they are
 *   POST   /api/mcp              {name, command|url|image, ...}: one more
 *   POST   /api/mcp/add          the same, as older clients ask
 *   GET    /api/mcp/health       how they are, by number and one by one
 *   GET    /api/mcp/snippets     what other clients need to connect to us
 *   POST   /api/mcp/import       another client's file, as it is
 *   GET    /api/mcp/NAME         one of them, with its entry of the file
 *   PATCH  /api/mcp/NAME         {enabled, ...}: change it; null takes out
 *   DELETE /api/mcp/NAME         take it out of the file
 *   POST   /api/mcp/NAME/test    connect to it now, beside what runs
 *   GET    /api/mcp/NAME/tools   what it offers
 *   ...    /api/mcp/NAME/tools/TOOL/call and accept, as in api_servers.h
 *
 * POST and PATCH: test=true connects first and saves only what works;
 * dryRun=true saves nothing. Both stand in the query or in the body.
 *
 * Adding a command is running it: whoever may write here may run programs as
 * this user. The gate (gate.h) decides who that is, and the operator whether
 * it is possible at all (server.manage). What a server is called is not looked
 * for behind add, health, import and snippets.
 *
 * This file knows paths, queries and bodies; servers/manage.h does the work. */
#ifndef MO_WEB_API_MCP_H
#define MO_WEB_API_MCP_H

#include "servers/manage.h"
#include "web/api_servers.h"

int mo_api_mcp_routes(struct mo_site *s, struct mo_api *api);

#endif
