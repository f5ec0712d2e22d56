/* tools.h - the tools of one conversation, from all its servers, under names
 * a model can use.
 *
 * A catalogue is read from every source at once and replaces the last one
 * when all have answered; a source that fails only lacks its tools, and says
 * why. A source is a connection that is asked, the gateway (what it knows of
 * its servers, each tool under its own server's name), or a list that is there
 * already. Tools are called SERVER_TOOL unless the source is bare (the
 * session's own box); what is not [A-Za-z0-9_-], too long, or taken becomes so
 * by a short hash of the true name, always the same one.
 *
 * It knows catalogues, not calls: who runs a tool finds its source and its
 * own name here. Limits: MO_TOOLS_MAX tools, MO_TOOLS_BYTES_MAX of texts. */
#ifndef MO_SERVERS_TOOLS_H
#define MO_SERVERS_TOOLS_H

#include "mcp/client/conn.h"
#include "policy/tool.h"

#define MO_TOOLS_NAME_MAX    64 /* that every model takes */
#define MO_TOOLS_MAX         2048
#define MO_TOOLS_SOURCES_MAX 64
#define MO_TOOLS_BYTES_MAX   ((size_t)16 * 1024 * 1024)

struct mo_gateway;

struct mo_tool_source {
    struct mo_span name;  /* of the server; the gateway: only this one's tools,
                           * empty: everybody's */
    struct mo_conn *conn; /* or: */
    const struct mo_gateway *gateway; /* or: */
    struct mo_json list;              /* an array of definitions */
    bool bare;
};

struct mo_tools;

struct mo_tools *mo_tools_new(struct mo_loop *l);
void mo_tools_free(struct mo_tools *t); /* no done() any more */

/* done() once, from the loop, even when every source failed (the tools there
 * are may be none). A load that is under way is given up: its done() comes
 * with MO_ECANCELED. Connections must stay open until then. */
int mo_tools_load(struct mo_tools *t, const struct mo_tool_source *v, size_t n,
                  void (*done)(void *ctx, const struct mo_err *why), void *ctx,
                  struct mo_err *e);

size_t mo_tools_count(const struct mo_tools *t);
const struct mo_tool *mo_tools_at(const struct mo_tools *t, size_t i);
const struct mo_tool *mo_tools_find(const struct mo_tools *t,
                                    struct mo_span name);
/* Why source i has no tools; NULL: it answered. */
const char *mo_tools_failed(const struct mo_tools *t, size_t i);

/* One tool as its server's list has it, without a name for the model; texts are
 * in the arena or borrowed. own empty: it is in the item. 0 or MO_ENOMEM. */
int mo_tool_read(struct mo_arena *a, struct mo_span server, struct mo_span own,
                 struct mo_json item, struct mo_tool *out);

/* The name a model gets (pure): at most MO_TOOLS_NAME_MAX - 1 bytes and NUL. */
void mo_tools_name(struct mo_span server, struct mo_span tool, bool bare,
                   bool taken, char out[MO_TOOLS_NAME_MAX]);

#endif
