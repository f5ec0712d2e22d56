/* api.h - what can be asked over plain HTTP, beside the conversation itself.
 *
 *   GET    /api/sessions             those that are known, last used first
 *   GET    /api/sessions/ID          one of them
 *   DELETE /api/sessions/ID          end it; ?forget=true: its history too
 *   PATCH  /api/sessions/ID          another name (api_session.h)
 *   GET    /api/sessions/ID/calls    who decided its calls
 *   GET    /api/sessions/ID/history  its conversation; ?format=markdown
 *   GET    /api/search?q=            in all conversations
 *   GET    /api/audit                who asked, who approved, what came back
 *   GET    /api/models/available     models that can be picked
 *   GET    /api/models/check         the same by id, as older clients ask
 *   GET    /api/providers            which providers have a key
 *   GET    /api/stats                how all of it is doing (api_stats.h)
 *   ...    /api/servers              the MCP servers (api_servers.h)
 *   ...    /api/mcp                  the same, managed (api_mcp.h)
 *   GET    /api/openapi.json         all of this for programs (openapi.h)
 *
 * Answers are JSON, errors application/problem+json with a stable code. What
 * is not there yet when the server starts (the store, the models) is a 503
 * that says so. */
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
