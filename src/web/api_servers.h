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
 * This file handles paths and bodies; struct mo_api_servers owns the
 * servers. */
#ifndef MO_WEB_API_SERVERS_H
#define MO_WEB_API_SERVERS_H

#include "web/site.h"

#define MO_API_TRY_MAX ((size_t)1024 * 1024) /* body of a call */

typedef void mo_api_json_fn(void *arg, struct mo_span json,
                            const struct mo_err *why);

struct mo_api_try {
    struct mo_span server, tool;
    struct mo_span args;   /* object text; empty: none */
    struct mo_span digest; /* of what was asked before; empty: not yet */
    struct mo_span who;    /* for the audit */
};

/* done() once, from the loop, with a JSON object or why not. Everything given
 * is copied before they return. */
struct mo_api_servers {
    int (*list)(void *ctx, struct mo_buf *out); /* NULL: not there yet */
    /* now: also when it is being left alone after a failure. */
    int (*tools)(void *ctx, struct mo_span server, bool now,
                 mo_api_json_fn *done, void *arg, struct mo_err *e);
    int (*call)(void *ctx, const struct mo_api_try *t, mo_api_json_fn *done,
                void *arg, struct mo_err *e);
    int (*accept)(void *ctx, const struct mo_api_try *t, mo_api_json_fn *done,
                  void *arg, struct mo_err *e);
    void *ctx;
};

struct mo_api;

int mo_api_servers_routes(struct mo_site *s, struct mo_api *api);
/* A request below the name of a server; ctx is the struct mo_api. */
void mo_api_servers_one(void *ctx, struct mo_req *rq);

#endif
