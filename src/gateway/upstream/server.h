/* server.h - a configured MCP server and the overrides of its tools.
 *
 * Plain data, filled in by the configuration. Whoever takes one of these
 * copies the texts it keeps. */
#ifndef MO_GATEWAY_UPSTREAM_SERVER_H
#define MO_GATEWAY_UPSTREAM_SERVER_H

#include "mcp/client/conn.h"

#define MO_GW_SERVERS_MAX 1024
#define MO_GW_TOOLS_MAX   10000 /* tools with overrides, of one server */
#define MO_GW_RETRIES     1     /* default of mo_gw_server.retries */

struct mo_gw_texts {
    const char *const *v;
    size_t n;
};

/* Overrides of one tool (gateway/upstream/server_overrides.h). */
struct mo_gw_tool {
    const char *name;            /* the server's name for it */
    const char *rename;          /* exposed under this name; NULL: `name` */
    const char *describe;        /* replaces its description; NULL: keep it */
    struct mo_gw_texts fallback; /* "server" or "server/tool"; empty: the
                                  * server's fallbacks */
    bool hide;                   /* neither listed, found nor callable */
    bool idempotent;             /* may be repeated, whatever its hints say */
    uint64_t call_ms;            /* 0: the server's */
    int retries;                 /* -1: the server's */
    int64_t result_bytes;        /* -1: the server's; 0: no limit */
};

struct mo_gw_server {
    const char *name;
    const char *prefix;                 /* NULL: the name; "": never prefixed */
    const char *description, *keywords; /* for the router; may be NULL */
    const char *categories;             /* and tags, one a line; may be NULL */
    char digest[65];    /* of its settings; a reload restarts a server
                         * whose digest has changed */
    bool per_session;   /* one child per client session; else shared */
    unsigned instances; /* shared: most children at once; 0: 1 */
    uint64_t start_ms;  /* 0: MO_CONN_OPEN_MS */
    uint64_t call_ms;   /* without progress; 0: MO_CONN_IDLE_MS */
    uint64_t stop_ms;   /* stopped after this idle time; 0: never */
    enum mo_conn_mode mode;
    unsigned max_calls; /* shared: calls at once, others queue; 0: as many as
                         * its connections take */
    bool off;           /* disabled: known only to say why it is not used */
    /* A change of these needs no restart (server_overrides.h). */
    struct mo_gw_texts fallback; /* servers that replace it */
    int retries;          /* of calls that may be repeated; -1: MO_GW_RETRIES */
    int64_t result_bytes; /* -1: default of the caller; 0: no limit */
    const struct mo_gw_tool *tools;
    size_t ntools;
};

#endif
