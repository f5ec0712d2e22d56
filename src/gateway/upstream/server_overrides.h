/* server_overrides.h - a configured MCP server, and the overrides of its tools.
 *
 * struct mo_gw_server is plain data, filled in by the configuration. Whoever
 * takes one copies the texts it keeps.
 *
 * Overrides: fallback servers, retries, and for single tools another name,
 * description or limit. No change of these restarts a server: a reload makes a
 * new struct server_overrides and frees the old one.
 *
 * Texts are copied. Looking up a tool never fails: tools without an entry use
 * the server's settings. */
#ifndef MO_GATEWAY_UPSTREAM_SERVER_OVERRIDES_H
#define MO_GATEWAY_UPSTREAM_SERVER_OVERRIDES_H

#include "base/map.h"
#include "config/config.h"
#include "mcp/client/conn.h"

#define MO_GW_SERVERS_MAX 1024
#define MO_GW_TOOLS_MAX   10000 /* tools with overrides, of one server */
#define MO_GW_RETRIES     1     /* default of mo_gw_server.retries */

struct mo_gw_server {
    const char *name;
    const char *prefix;                 /* NULL: the name; "": never prefixed */
    const char *description, *keywords; /* for the router; may be NULL */
    const char *categories;             /* and tags, one a line; may be NULL */
    char digest[65];     /* of its settings; a reload restarts a server
                          * whose digest has changed */
    bool per_session;    /* one child per client session; else shared */
    bool per_person;     /* one child per person, with their credentials */
    unsigned instances;  /* shared: most children at once; 0: 1 */
    uint64_t start_ms;   /* 0: MO_CONN_OPEN_MS */
    uint64_t install_ms; /* 0: MO_CONN_INSTALL_MS */
    uint64_t call_ms;    /* without progress; 0: MO_CONN_IDLE_MS */
    uint64_t stop_ms;    /* stopped after this idle time; 0: never */
    enum mo_conn_mode mode;
    unsigned max_calls; /* shared: calls at once, others queue; 0: as many as
                         * its connections take */
    bool off;           /* disabled: known only to say why it is not used */
    /* A change of these needs no restart. */
    struct mo_config_list fallback; /* servers that replace it */
    int retries;          /* of calls that may be repeated; -1: MO_GW_RETRIES */
    int64_t result_bytes; /* -1: default of the caller; 0: no limit */
    const struct mo_config_tool *tools; /* with overrides; -1: the server's */
    size_t ntools;
};

#define OVERRIDES_TEXT_MAX ((size_t)4 * 1024 * 1024) /* of one server */

struct server_overrides;

/* NULL: out of memory. */
struct server_overrides *mo_overrides_new(const struct mo_gw_server *s);
void mo_overrides_free(struct server_overrides *m); /* may be NULL */

/* The overrides of a tool, by the server's name for it. Never NULL, also if m
 * is NULL. */
const struct mo_config_tool *mo_overrides_tool(const struct server_overrides *m,
                                               struct mo_span own);
/* The i-th fallback of a tool: the server and the tool's name there. False:
 * there are no more. */
bool mo_overrides_fallback(const struct server_overrides *m,
                           struct mo_span tool, size_t i,
                           struct mo_span *server, struct mo_span *own);
/* How often a call of the tool may be repeated. */
unsigned mo_overrides_retries(const struct server_overrides *m,
                              struct mo_span tool);
/* Most bytes of its results that a client gets; 0: no limit. usual: the value
 * if neither the tool nor the server sets one. */
size_t mo_overrides_result_bytes(const struct server_overrides *m,
                                 struct mo_span tool, size_t usual);
/* True if the server or any of its tools has a configured result limit. */
bool mo_overrides_has_limit(const struct server_overrides *m);

#endif
