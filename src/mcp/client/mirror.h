/* mirror.h - arguments that a modern HTTP request repeats in its head.
 *
 * A tool may mark members of its inputSchema with x-mcp-header: "Name"; who
 * calls it over HTTP in the modern era repeats their values as Mcp-Param-Name,
 * so that a proxy can decide without reading the body. This room reads the
 * marks and makes the headers; how a value is written in a header is the
 * link's business (mo_link_http_value).
 *
 * A mark is good if its name is a token that stands once (whatever the case),
 * if it marks a string, an integer or a boolean, and if only `properties`
 * lead to it. A tool with any other mark must not be offered or called over
 * HTTP: two readers could disagree about what was allowed. */
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

/* What to send with these arguments (may be none). Absent and null ones have
 * no header, nor have those that a header cannot carry. MO_EPROTO: a mark is
 * bad. MO_ENOMEM. The texts are in m or in schema and args; fini in every
 * case. */
int mo_mirror_init(struct mo_mirror *m, struct mo_json schema,
                   struct mo_json args, struct mo_err *e);
void mo_mirror_fini(struct mo_mirror *m);

/* May the tool (an item of tools/list) be shown? Without memory: no. */
bool mo_mirror_keep(struct mo_json tool);

#endif
