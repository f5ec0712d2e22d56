/* api.h - the HTTP API, beside the conversations themselves.
 *
 * Answers are JSON, errors application/problem+json with a stable code. Parts
 * that are not ready when the server starts (the store, the models) are
 * answered with 503 and the reason. data/openapi.json describes every request.
 *
 *   GET    /api/sessions              all sessions, last used first
 *   POST   /api/sessions              import one (api_import.c)
 *   GET    /api/sessions/ID           one session
 *   DELETE /api/sessions/ID           end it; ?forget=true deletes its history
 *   PATCH  /api/sessions/ID           {title?, pinned?, archived?, tags?,
 * system?} GET    /api/sessions/ID/calls     its calls, who decided them and
 * how long they took; not their results GET    /api/sessions/ID/connections
 * which hosts its box talked to GET    /api/sessions/ID/history   its
 * conversation; ?format= markdown, html or json: all of it, as a document
 * (api_export.h) GET    /api/sessions/ID/shares    with whom it is shared
 * (api_shares.c) PUT    /api/sessions/ID/shares    {with, may}: share it, or
 * withdraw DELETE /api/sessions/ID/shares    withdraw all GET
 * /api/sessions/ID/offers    prompts and resources of the servers
 *                                     (api_offers.c)
 *   GET    /api/sessions/ID/links     its links for everybody (api_links.c)
 *   POST   /api/sessions/ID/links     {days?}: make one
 *   DELETE /api/sessions/ID/links/LINK    withdraw it
 *   GET    /shared/TOKEN              what such a link shows, to everybody
 *   POST   /api/sessions/ID/prompt    {name, arguments?}: get a prompt
 *   POST   /api/sessions/ID/resource  {uri, subscribe?}: read a resource
 *   POST   /api/sessions/ID/complete  {ref, argument, context?}: complete
 *   PUT    /api/sessions/ID/tools     {off}: switch servers and tools off
 *   GET    /api/sessions/ID/files     path: list its files (api_files.c)
 *   GET    .../files/content          path: download one
 *   PUT    .../files/content          path: upload one
 *   DELETE .../files/content          path: remove one, or a directory
 *   GET    .../files/archive          all of them as tar
 *   GET    /api/sessions/ID/grants    what runs without asking (api_grants.c)
 *   DELETE /api/sessions/ID/grants/GRANT  revoke one answer
 *   PUT    /api/sessions/ID/mode      {mode}: ask, reads or box
 *   GET    /api/presets               one's own presets (api_presets.c)
 *   POST   /api/presets               {name, model?, system?, toolsOff?, mode?}
 *   PATCH  /api/presets/ID            the same: change some of it
 *   DELETE /api/presets/ID            delete it
 *   GET    /api/search?q=             search all conversations
 *   GET    /api/audit                 calls, approvals and results
 *   GET    /api/models/available      models that can be selected
 *   GET    /api/models/check          the same by id, for older clients
 *   GET    /api/providers             which providers have a key
 *   PUT    /api/providers/NAME        {key?, baseUrl?}: set them; ?test=true
 *                                     asks for the models first, ?dryRun=true
 *                                     does not save (api_providers.c)
 *   DELETE /api/providers/NAME        remove key and address
 *   PUT    /api/models/default        {provider?, model}: of new conversations
 *   GET    /api/spend                 ago=N: what models have cost on that day
 *                                     (api_spend.c)
 *   GET    /api/stats                 current figures (api_stats.h)
 *   GET    /api/openapi.json          this API as a document (openapi.c)
 *
 * Personal tokens (api_tokens.c), not with a personal token:
 *   GET    /api/tokens                one's own; the operator: all
 *   POST   /api/tokens                {name, role?, views?, days?, person?}:
 * the answer has the token, this once DELETE /api/tokens/ID             revoke
 * it
 *
 * Approval rules (api_approvals.c):
 *   GET    /api/rules                 {"rules":[{id, server, tool, action,
 *                                     args?, at, who}], "operator", "default"}
 *   POST   /api/rules                 {server, tool, action, args?}: add a rule
 *                                     of the person, by exact names
 *   POST   /api/rules/try             {server, tool, args?, annotations?,
 *                                     draft?}: which rule would decide, and why
 *                                     not the others
 *   DELETE /api/rules/ID              remove it: the call needs approval again
 *
 * A person's own sign-ins at servers (api_connections.c):
 *   GET    /api/connections           servers that want them, and the state
 *   POST   /api/connections/NAME      begin: the address to open
 *   DELETE /api/connections/NAME      end: forget and revoke the tokens
 *
 * Servers (api_servers.c; servers/try_tool.h and servers/manage.h do the work):
 *   GET    /api/servers               all of them and their state
 *   POST   /api/servers/NAME/test     connect now and report
 *   GET    /api/servers/NAME/tools    its tools
 *   POST   .../NAME/tools/TOOL/call   {args, digest?}: try a tool
 *   POST   .../NAME/tools/TOOL/accept {digest}: accept a changed tool
 *   GET    /api/mcp                   all configured servers and their state
 *   POST   /api/mcp                   {name, command|url|image, ...}: add one
 *   POST   /api/mcp/add               the same, for older clients
 *   GET    /api/mcp/health            their state, as counts and one by one
 *   GET    /api/mcp/snippets          configuration for clients that connect
 *   POST   /api/mcp/import            import another client's file
 *   GET    /api/mcp/NAME/connections  which hosts its boxes talked to
 *   GET    /api/mcp/NAME              one server, with its entry of the file
 *   PATCH  /api/mcp/NAME              {enabled, ...}; null removes a key
 *   DELETE /api/mcp/NAME              remove it from the file
 *   POST   /api/mcp/NAME/test         connect now, beside a running connection
 *   ...    /api/mcp/NAME/tools/...    as below /api/servers/NAME
 *   GET    /api/views                 the views of the gateway
 *   GET    /api/views/NAME            what a client of the view sees
 *   PUT    /api/views/NAME            {servers, tools, ...}: add or replace it
 *   DELETE /api/views/NAME            remove it from the file
 *   GET    /api/registry              q: servers by name (servers/by_name.h)
 *   POST   /api/registry/plan         {server, ...}: what would be installed
 *   POST   /api/registry/install      {server, agreed, ...}: install that plan
 *
 * Trying a tool obeys the operator's approval rules. If approval is needed, the
 * first request is answered with {"state":"ask","digest"} and runs nothing. The
 * same request with that digest is the approval, for exactly these bytes, once.
 *
 * POST and PATCH of /api/mcp: test=true connects first and saves only if that
 * works; dryRun=true saves nothing. Both may be in the query or in the body.
 * Adding a command means running it: a client that may write there may run
 * programs as this user. gate.h decides who may, and the operator whether it is
 * possible at all (server.manage). Servers named add, health, import or
 * snippets cannot be addressed there.
 *
 * The gateway (api_approvals.c, api_route.c):
 *   GET    /api/approvals             {"approvals":[...],"changed":[...]}
 *   POST   /api/approvals/ID          {approved, digest, reason?, args?}:
 * approve or reject; args replaces the arguments POST   /api/approvals/tools
 * {server, tool, digest}: accept the changed definition of a tool GET
 * /api/audit/verify          check that the audit log is unchanged GET
 * /api/route?q=WORDS         [&limit=N][&threshold=X]: the same as `find
 * --json`; starts nothing POST   /api/route/teach           {words, server,
 * tool, right}: these words mean that tool, or do not: counts like one choice
 *   DELETE /api/route/learnt          forget everything learnt
 *
 * Approving needs the digest of what was shown; rejecting does not. Calls that
 * wait in other processes of the store are listed and decided too
 * (api_everywhere.h). The same approvals are served on a local socket
 * (approvals_socket.h). */
#ifndef MO_WEB_API_H
#define MO_WEB_API_H

#include "agent/llm/models.h"
#include "policy/approvals.h"
#include "servers/by_name.h"
#include "servers/manage.h"
#include "servers/try_tool.h"
#include "session/session.h"
#include "web/relay.h"
#include "web/site.h"
#include "web/talk.h"

struct mo_api_import; /* api_import.c */
struct mo_api_link;   /* api_links.c */

#define MO_API_WORKER_MAX 128 /* bytes of a socket's path, with its NUL */

/* The parts that the requests need; NULL: not there (yet). */
struct mo_api {
    struct mo_talk *talk; /* says why not */
    struct mo_loop *loop;
    const struct mo_config_holder *config;
    struct mo_sessions *sessions;
    struct mo_store *store;
    struct mo_agent *agent;
    struct mo_models *models;
    struct mo_try_tool *try_tool;
    struct mo_manage *manage;
    struct mo_by_name *by_name;
    struct mo_policy *policy;
    struct mo_approvals *approvals;
    struct mo_gateway_setup *gateway;
    const struct mo_buf *link; /* signs a browser in, for `open`; empty: none */
    const char *token;         /* the operator's, for snippets; "": none */
    const struct mo_gate *gate;
    struct mo_grants *const *grants; /* NULL: this process has none */
    struct mo_relay *relay;          /* to other processes of the store */
    struct mo_peers *peers;          /* who know them; set with relay */
    const char *instance;            /* this process; the same */
    /* Gives a request about a conversation that is open in another worker to
     * it. True: it answers. NULL: there are no workers. */
    bool (*elsewhere)(void *ctx, struct mo_req *rq, struct mo_span session,
                      struct mo_span body);
    /* Notes that this worker has the thing of that key: elsewhere() finds it.
     */
    void (*here)(void *ctx, struct mo_span key);
    /* A person has connected to a server, or is disconnected: for the others.
     */
    void (*tell)(void *ctx, const char *server, const char *who, bool on);
    /* The i-th worker's socket for other workers (relay.h), from 0; "": it is
     * this one, or not there. False: there are no more. NULL: no workers. */
    bool (*worker)(void *ctx, unsigned i, char path[MO_API_WORKER_MAX]);
    void *elsewhere_ctx;
    struct mo_list sharing; /* changes of shares: api_shares.c */
    struct mo_site *site;   /* set by mo_api_links_routes() */
    unsigned nimports;      /* under way: api_import.c */
};

/* api is borrowed as long as the site lives. */
int mo_api_routes(struct mo_site *s, struct mo_api *api);
int mo_api_gateway_routes(struct mo_site *s, struct mo_api *api);

#define MO_API_NO_TOKENS 421 /* status: not in this process */

/* False: the request is not about personal tokens. */
bool mo_api_tokens_handle(struct mo_api *api, struct mo_req *rq);
/* One request about approvals; any other is a 404. */
void mo_api_approvals_handle(struct mo_api *api, struct mo_req *rq);

/* Parts of mo_api_routes() and mo_api_gateway_routes(). */
int mo_openapi_route(struct mo_site *s);
int mo_api_servers_routes(struct mo_site *s, struct mo_api *api);
int mo_api_tokens_routes(struct mo_site *s, struct mo_api *api);
/* The gateway, and the other workers, learn that a person has connected to a
 * server, or has disconnected. */
void mo_api_connected(struct mo_api *api, const char *server, const char *who,
                      bool on);
int mo_api_connections_routes(struct mo_site *s, struct mo_api *api);
int mo_api_rules_routes(struct mo_site *s, struct mo_api *api);
int mo_api_shares_routes(struct mo_site *s, struct mo_api *api);
int mo_api_presets_routes(struct mo_site *s, struct mo_api *api);
int mo_api_links_routes(struct mo_site *s, struct mo_api *api);
void mo_api_link_free(struct mo_api_link *l); /* of a job */
int mo_api_import_routes(struct mo_site *s, struct mo_api *api);
void mo_api_import_free(struct mo_api_import *im); /* of a job */
int mo_api_offers_routes(struct mo_site *s, struct mo_api *api);
int mo_api_apps_routes(struct mo_site *s, struct mo_api *api);
int mo_api_files_routes(struct mo_site *s, struct mo_api *api);
int mo_api_grants_routes(struct mo_site *s, struct mo_api *api);
int mo_api_route_routes(struct mo_site *s, struct mo_api *api);
int mo_api_spend_routes(struct mo_site *s, struct mo_api *api);
int mo_api_providers_routes(struct mo_site *s, struct mo_api *api);

#endif
