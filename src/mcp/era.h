/* era.h - the revisions of MCP and their constants.
 *
 * Legacy revisions open a connection with `initialize`; modern ones (from
 * 2026-07-28 on) describe themselves in every request. Versions are compared as
 * text: they are dates. */
#ifndef MO_MCP_ERA_H
#define MO_MCP_ERA_H

#include "base/str.h"

#define MO_MCP_NEWEST "2026-07-28" /* modern */

enum mo_mcp_version {
    MO_MCP_UNKNOWN,
    MO_MCP_2024_10_07,
    MO_MCP_2024_11_05,
    MO_MCP_2025_03_26,
    MO_MCP_2025_06_18,
    MO_MCP_2025_11_25,
    MO_MCP_2026_07_28,
    MO_MCP_VERSIONS,
};

enum mo_mcp_version mo_mcp_version(struct mo_span text);
const char *mo_mcp_version_text(enum mo_mcp_version v);

static inline bool mo_mcp_is_modern(enum mo_mcp_version v)
{
    return v >= MO_MCP_2026_07_28;
}

/* True if the text is a date at or after the first modern revision, known or
 * not. */
bool mo_mcp_text_is_modern(struct mo_span text);

/* Keys of the modern envelope in params._meta and result._meta. */
#define MO_MCP_P          "io.modelcontextprotocol/"
#define MO_MCP_P_VERSION  MO_MCP_P "protocolVersion"
#define MO_MCP_P_CAPS     MO_MCP_P "clientCapabilities"
#define MO_MCP_P_CLIENT   MO_MCP_P "clientInfo"
#define MO_MCP_P_SERVER   MO_MCP_P "serverInfo"
#define MO_MCP_P_LOG      MO_MCP_P "logLevel"
#define MO_MCP_P_SUB      MO_MCP_P "subscriptionId"
#define MO_MCP_P_TASK     MO_MCP_P "related-task"
/* Extensions, as members of capabilities.extensions. */
#define MO_MCP_EXT_TASKS  MO_MCP_P "tasks"
#define MO_MCP_EXT_SKILLS MO_MCP_P "skills"
#define MO_MCP_EXT_APPS   MO_MCP_P "ui"

/* Error codes beyond JSON-RPC's own (codec/rpc.h). */
enum {
    MO_MCP_RESOURCE_NOT_FOUND = -32002, /* legacy only */
    MO_MCP_HEADER_MISMATCH = -32020,
    MO_MCP_MISSING_CAPABILITY = -32021,
    MO_MCP_UNSUPPORTED_VERSION = -32022,
    MO_MCP_URL_ELICITATION = -32042, /* legacy only */
};

#endif
