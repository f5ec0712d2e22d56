/* tools.h - the tools of one conversation, from all its servers, with names for
 * the model.
 *
 * Loading reads all sources at once. The new catalogue replaces the previous
 * one when all sources have answered. If a source fails, only its tools are
 * missing, and mo_tools_failed() says why. A source is a connection, the
 * gateway (each tool under the name of its server), or a list in memory. A tool
 * is named SERVER_TOOL, or TOOL if its source is bare (the box of the session).
 * A name that is too long, taken, or contains characters other than
 * [A-Za-z0-9_-] gets a short hash of the true name, which is always the same.
 *
 * Calls are made elsewhere: a tool holds its source and its original name.
 * Limits: MO_TOOLS_MAX tools, MO_TOOLS_BYTES_MAX of texts. */
#ifndef MO_SERVERS_TOOLS_H
#define MO_SERVERS_TOOLS_H

#include "mcp/client/conn.h"
#include "policy/exact.h"

#define MO_TOOLS_NAME_MAX    64 /* accepted by every model */
#define MO_TOOLS_MAX         2048
#define MO_TOOLS_SOURCES_MAX 64
#define MO_TOOLS_BYTES_MAX   ((size_t)16 * 1024 * 1024)

struct mo_gateway;

struct mo_tool_source {
    struct mo_span name;  /* name of the server; for the gateway: only the tools
                             of this server, empty: of all servers */
    struct mo_conn *conn; /* or: */
    const struct mo_gateway *gateway; /* or: */
    struct mo_json list;              /* an array of definitions */
    bool bare;
};

struct mo_tools;

struct mo_tools *mo_tools_new(struct mo_loop *l);
void mo_tools_free(struct mo_tools *t); /* done() is not called */

/* Calls done() once, from the loop, even if every source failed. A load that is
 * still running is cancelled: its done() gets MO_ECANCELED. Connections must
 * stay open until then. */
int mo_tools_load(struct mo_tools *t, const struct mo_tool_source *v, size_t n,
                  mo_done_fn *done, void *ctx, struct mo_err *e);

size_t mo_tools_count(const struct mo_tools *t);
const struct mo_tool *mo_tools_at(const struct mo_tools *t, size_t i);
const struct mo_tool *mo_tools_find(const struct mo_tools *t,
                                    struct mo_span name);
/* Reason why source i failed; NULL: it answered. */
const char *mo_tools_failed(const struct mo_tools *t, size_t i);

/* Builds the name for the model (pure): at most MO_TOOLS_NAME_MAX - 1 bytes and
 * NUL. */
void mo_tools_name(struct mo_span server, struct mo_span tool, bool bare,
                   bool taken, char out[MO_TOOLS_NAME_MAX]);

#endif
