#include "web/access.h"

#define NONE     MO_ROLE_NONE
#define VIEWER   MO_ROLE_VIEWER
#define USER     MO_ROLE_USER
#define OPERATOR MO_ROLE_OPERATOR

static const struct mo_access_row rows[] = {
    {"GET", "/healthz", NONE, ""},
    {"GET", "/readyz", NONE, ""},
    {"GET", "/health", NONE, ""},
    {"GET", "/.well-known/oauth-protected-resource", NONE,
     "where clients sign in"},
    {"GET", "/.well-known/oauth-protected-resource/mcp", NONE, "the same"},
    {"POST", "/sign-in", NONE, "with a token"},
    {"GET", "/sign-in/{provider}", NONE, "with a provider"},
    {"GET", "/sign-in/{provider}/callback", NONE, "the same"},
    {"POST", "/sign-out", VIEWER, ""},
    {"file", "/", VIEWER, "the page; the sign-in page and its files: everyone"},
    {"GET", "/docs", NONE, "the documents"},
    {"GET", "/docs/{page}", NONE, "the same"},
    {"GET", "/docs/", NONE, "the same; other paths below: how to find a page"},
    {"GET", "/metrics", USER, ""},
    {"any", "/socket.io/", VIEWER,
     "conversations; each event has its own row; a viewer: shared ones"},
    {"any", "/mcp", USER, "the gateway"},
    {"any", "/mcp/{name}", VIEWER, "a view, as its `role` and `people` say"},
    {"GET", "/api/openapi.json", VIEWER, ""},
    {"GET", "/api/me", VIEWER, ""},
    {"GET", "/api/tokens", USER, "their own; not with a personal token"},
    {"POST", "/api/tokens", USER,
     "with at most their own role; not with a personal token"},
    {"DELETE", "/api/tokens/{id}", USER,
     "their own; not with a personal token"},
    {"GET", "/api/sessions", VIEWER, "their own and shared ones"},
    {"POST", "/api/sessions", USER,
     "an exported conversation: becomes their own"},
    {"GET", "/api/sessions/{id}", VIEWER, "their own, or shared"},
    {"PATCH", "/api/sessions/{id}", USER, "their own"},
    {"DELETE", "/api/sessions/{id}", USER, "their own"},
    {"GET", "/api/sessions/{id}/calls", VIEWER, "of their own, or shared"},
    {"GET", "/api/sessions/{id}/history", VIEWER, "of their own, or shared"},
    {"GET", "/api/sessions/{id}/offers", USER, "of their own"},
    {"POST", "/api/sessions/{id}/prompt", USER, "of their own"},
    {"POST", "/api/sessions/{id}/resource", USER, "of their own"},
    {"POST", "/api/sessions/{id}/complete", USER, "of their own"},
    {"PUT", "/api/sessions/{id}/tools", USER, "of their own"},
    {"POST", "/api/sessions/{id}/apps/call", USER, "of their own"},
    {"POST", "/api/sessions/{id}/apps/resource", USER, "of their own"},
    {"GET", "/api/sessions/{id}/shares", USER, "of their own"},
    {"PUT", "/api/sessions/{id}/shares", USER, "of their own"},
    {"DELETE", "/api/sessions/{id}/shares", USER, "of their own"},
    {"GET", "/api/sessions/{id}/links", USER, "of their own"},
    {"POST", "/api/sessions/{id}/links", USER,
     "of their own, if `server.shareLinks` permits it"},
    {"DELETE", "/api/sessions/{id}/links/{link}", USER, "of their own"},
    {"GET", "/shared/{token}", NONE,
     "a conversation as its owner's link shows it"},
    {"GET", "/api/sessions/{id}/files", VIEWER, "of their own, or shared"},
    {"GET", "/api/sessions/{id}/files/content", VIEWER,
     "of their own, or shared"},
    {"GET", "/api/sessions/{id}/files/archive", VIEWER,
     "of their own, or shared"},
    {"PUT", "/api/sessions/{id}/files/content", USER, "of their own"},
    {"DELETE", "/api/sessions/{id}/files/content", USER, "of their own"},
    {"GET", "/api/sessions/{id}/grants", USER,
     "of their own, or shared for approving"},
    {"DELETE", "/api/sessions/{id}/grants/{grant}", USER,
     "of their own, or shared for approving"},
    {"PUT", "/api/sessions/{id}/mode", USER, "of their own"},
    {"GET", "/api/sessions/{id}/connections", VIEWER, "of their own"},
    {"GET", "/api/presets", USER, "their own"},
    {"POST", "/api/presets", USER, "their own"},
    {"PATCH", "/api/presets/{id}", USER, "their own"},
    {"DELETE", "/api/presets/{id}", USER, "their own"},
    {"GET", "/api/search", VIEWER, "in their own"},
    {"GET", "/api/audit", VIEWER, "their own rows"},
    {"GET", "/api/audit/verify", OPERATOR, ""},
    {"GET", "/api/spend", VIEWER, "their own; an operator: everybody's"},
    {"GET", "/connections/callback", NONE, "an issuer sends the browser back"},
    {"GET", "/connections/finish", USER, "their own sign-in"},
    {"GET", "/api/connections", USER, "their own"},
    {"POST", "/api/connections/{name}", USER, "their own"},
    {"DELETE", "/api/connections/{name}", USER, "their own"},
    {"GET", "/api/models/available", USER, ""},
    {"GET", "/api/models/check", USER, ""},
    {"PUT", "/api/models/default", OPERATOR, "unless `llm.editable` is false"},
    {"GET", "/api/providers", USER, "addresses: operators only"},
    {"PUT", "/api/providers/{name}", OPERATOR,
     "unless `llm.editable` is false"},
    {"DELETE", "/api/providers/{name}", OPERATOR,
     "unless `llm.editable` is false"},
    {"GET", "/api/approvals", USER, "their own; an approver: everybody's"},
    {"POST", "/api/approvals/{id}", USER,
     "as the rule says; an approver: of others too"},
    {"POST", "/api/approvals/tools", OPERATOR, ""},
    {"GET", "/api/rules", OPERATOR, ""},
    {"POST", "/api/rules", OPERATOR, ""},
    {"POST", "/api/rules/try", OPERATOR, ""},
    {"DELETE", "/api/rules/{id}", OPERATOR, ""},
    {"GET", "/api/route", OPERATOR, ""},
    {"POST", "/api/route/teach", OPERATOR, ""},
    {"DELETE", "/api/route/learnt", OPERATOR, ""},
    {"GET", "/api/stats", OPERATOR, ""},
    {"GET", "/api/tries/{run}", OPERATOR, ""},
    {"POST", "/api/tries/{run}", OPERATOR, ""},
    {"GET", "/api/mcp", OPERATOR, ""},
    {"POST", "/api/mcp", OPERATOR, ""},
    {"POST", "/api/mcp/add", OPERATOR, ""},
    {"POST", "/api/mcp/import", OPERATOR, ""},
    {"GET", "/api/mcp/health", OPERATOR, ""},
    {"GET", "/api/mcp/snippets", OPERATOR, ""},
    {"GET", "/api/mcp/{name}", OPERATOR, ""},
    {"PATCH", "/api/mcp/{name}", OPERATOR, ""},
    {"DELETE", "/api/mcp/{name}", OPERATOR, ""},
    {"POST", "/api/mcp/{name}/test", OPERATOR, ""},
    {"GET", "/api/mcp/{name}/connections", OPERATOR, ""},
    {"GET", "/api/mcp/{name}/tools", OPERATOR, ""},
    {"POST", "/api/mcp/{name}/tools/{tool}/accept", OPERATOR, ""},
    {"POST", "/api/mcp/{name}/tools/{tool}/call", OPERATOR, ""},
    {"GET", "/api/servers", OPERATOR, ""},
    {"POST", "/api/servers/{name}/test", OPERATOR, ""},
    {"GET", "/api/servers/{name}/tools", OPERATOR, ""},
    {"POST", "/api/servers/{name}/tools/{tool}/accept", OPERATOR, ""},
    {"POST", "/api/servers/{name}/tools/{tool}/call", OPERATOR, ""},
    {"GET", "/api/views", OPERATOR, ""},
    {"GET", "/api/views/{name}", OPERATOR, ""},
    {"PUT", "/api/views/{name}", OPERATOR, ""},
    {"DELETE", "/api/views/{name}", OPERATOR, ""},
    {"GET", "/api/registry", OPERATOR, ""},
    {"POST", "/api/registry/plan", OPERATOR, ""},
    {"POST", "/api/registry/install", OPERATOR, ""},
    {"event", "message", USER, ""},
    {"event", "tool:approval", USER,
     "in their own sessions and those shared for approving, as the rule says; "
     "`remember: always` needs the operator"},
    {"event", "agent:cancel", USER, ""},
    {"event", "history:reset", USER, ""},
    {"event", "session:close", USER, ""},
    {"event", "model:change", USER, ""},
    {"event", "turn:regenerate", USER, ""},
    {"event", "turn:continue", USER, ""},
    {"event", "branch:switch", USER, ""},
    {"event", "tool:accept", OPERATOR, ""},
    {"event", "elicitation:response", USER, ""},
};

size_t mo_access_rows(const struct mo_access_row **out)
{
    *out = rows;
    return MO_COUNT(rows);
}

static int find(const char *kind, struct mo_span path)
{
    for (size_t i = 0; i < MO_COUNT(rows); i++)
        if (strcmp(rows[i].kind, kind) == 0 && mo_span_is(path, rows[i].path))
            return (int)rows[i].least;
    return -1;
}

/* True for a path that is not a file of the page. */
static bool is_for_programs(const char *path)
{
    static const char *const starts[] = {
        "/api/",     "/mcp",          "/metrics", "/socket.io",
        "/sign-in/", "/.well-known/", "/shared/",
    };

    for (size_t i = 0; i < MO_COUNT(starts); i++)
        if (mo_span_starts(mo_span_cstr(path), mo_span_cstr(starts[i])))
            return true;
    return strcmp(path, "/sign-in") == 0 || strcmp(path, "/sign-out") == 0;
}

int mo_access_route(enum mo_http_method method, const char *path)
{
    const char *kind =
        method == MO_HTTP_OTHER ? "any" : mo_http_method_name(method);
    int least = find(kind, mo_span_cstr(path));

    if (least >= 0 || is_for_programs(path))
        return least;
    return find("file", MO_SPAN("/"));
}

int mo_access_event(struct mo_span name)
{
    return find("event", name);
}
