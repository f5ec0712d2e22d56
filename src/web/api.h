/* api.h - the HTTP API, beside the conversations themselves.
 *
 *   GET    /api/sessions             all sessions, last used first
 *   GET    /api/sessions/ID          one session
 *   DELETE /api/sessions/ID          end it; ?forget=true deletes its history
 *   PATCH  /api/sessions/ID          rename it (api_session.h)
 *   GET    /api/sessions/ID/calls    its calls and who decided them
 *   GET    /api/sessions/ID/history  its conversation; ?format=markdown
 *   GET    /api/search?q=            search all conversations
 *   GET    /api/audit                calls, approvals and results
 *   GET    /api/models/available     models that can be selected
 *   GET    /api/models/check         the same by id, for older clients
 *   GET    /api/providers            which providers have a key
 *   GET    /api/stats                current figures (api_stats.h)
 *   ...    /api/servers              the MCP servers (api_servers.h)
 *   ...    /api/mcp                  managing them (api_mcp.h)
 *   GET    /api/openapi.json         this API as a document (openapi.h)
 *
 * Answers are JSON, errors application/problem+json with a stable code. Parts
 * that are not ready when the server starts (the store, the models) are
 * answered with 503 and the reason. */
#ifndef MO_WEB_API_H
#define MO_WEB_API_H

#include "session/session.h"
#include "web/api_mcp.h"
#include "web/api_servers.h"

struct mo_agent;

struct mo_api {
    struct mo_sessions *sessions; /* NULL: not there (yet) */
    struct mo_store *store;
    struct mo_agent *agent;
    const char *(*why)(void *ctx); /* why not, in plain words */
    void *why_ctx;
    /* The list of models as a JSON object; done() once, later. */
    int (*models)(void *ctx,
                  void (*done)(void *arg, struct mo_span json,
                               const struct mo_err *why),
                  void *arg, struct mo_err *e);
    void *models_ctx;
    int (*keys)(void *ctx, struct mo_buf *out); /* of providers, as JSON */
    void *keys_ctx;
    struct mo_try_tool *try_tool; /* NULL: not there (yet) */
    struct mo_manage *manage;     /* likewise */
};

/* api is borrowed as long as the site lives. */
int mo_api_routes(struct mo_site *s, struct mo_api *api);

#endif
