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
 * This file handles paths, queries and bodies; struct mo_api_manage does the
 * work. */
#ifndef MO_WEB_API_MCP_H
#define MO_WEB_API_MCP_H

#include "web/api_servers.h"

#define MO_API_MCP_MAX ((size_t)1024 * 1024) /* of a body */

enum mo_api_verb {
    MO_API_ADD,
    MO_API_PATCH,
    MO_API_REMOVE,
    MO_API_IMPORT,
    MO_API_TEST,
};

struct mo_api_change {
    enum mo_api_verb verb;
    struct mo_span server; /* empty: the body names it */
    struct mo_span body;
    struct mo_span who; /* for the audit */
    bool test, dry, replace;
    bool clear; /* import: keys stay in the file */
};

struct mo_api_where { /* as the client sees us */
    struct mo_span host;
    bool tls;
};

/* ctx NULL: not there (yet). The synchronous ones append JSON. */
struct mo_api_manage {
    int (*list)(void *ctx, struct mo_buf *out);
    int (*one)(void *ctx, struct mo_span server, struct mo_buf *out,
               struct mo_err *e); /* MO_ENOTFOUND */
    int (*health)(void *ctx, struct mo_buf *out);
    int (*snippets)(void *ctx, const struct mo_api_where *w,
                    struct mo_buf *out);
    /* done() once, from the loop; everything given is copied. MO_EPOLICY: the
     * operator does not want it; MO_EEXISTS: the name is taken; MO_EUNAVAIL:
     * it was tested and does not work. */
    int (*change)(void *ctx, const struct mo_api_change *c,
                  mo_api_json_fn *done, void *arg, struct mo_err *e);
    void *ctx;
};

int mo_api_mcp_routes(struct mo_site *s, struct mo_api *api);

#endif
