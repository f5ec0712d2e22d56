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
 * This room knows paths, queries and bodies; what is done is behind struct
 * mo_api_manage. */
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
