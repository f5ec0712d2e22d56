/* mirror.h - arguments that a modern HTTP request repeats in its headers.
 *
 * A tool may mark members of its inputSchema with x-mcp-header: "Name". A
 * caller over modern HTTP repeats their values as Mcp-Param-Name, so that a
 * proxy can decide without reading the body. These functions read the marks and
 * make the headers; mo_link_http_value() encodes the values.
 *
 * A mark is valid if its name is a token used once (ignoring case), if it marks
 * a string, an integer or a boolean, and if only `properties` lead to it. A
 * tool with any other mark must not be offered or called over HTTP: two readers
 * could disagree about which value was allowed. */
#ifndef MO_MCP_CLIENT_MIRROR_H
#define MO_MCP_CLIENT_MIRROR_H

#include "mcp/link/link_http.h"

#define MO_MIRROR_NAME_MAX  100 /* bytes of a mark */
#define MO_MIRROR_BYTES_MAX ((size_t)256 * 1024)

struct mo_mirror {
    struct mo_link_param v[MO_LINK_HTTP_PARAMS];
    size_t n;
    struct mo_arena a; /* the texts */
};

/* Collect the headers for these arguments (may be none). Absent and null
 * arguments get no header, nor do values that a header cannot carry. Returns
 * MO_EPROTO for an invalid mark, or MO_ENOMEM. The texts are in m or in schema
 * and args; call mo_mirror_fini() in every case. */
int mo_mirror_init(struct mo_mirror *m, struct mo_json schema,
                   struct mo_json args, struct mo_err *e);
void mo_mirror_fini(struct mo_mirror *m);

/* True if the tool (an item of tools/list) has only valid marks and may be
 * shown. False when out of memory. */
bool mo_mirror_keep(struct mo_json tool);

#endif
