/* keys_tools.c - the keys of mcpServers.NAME.tools.TOOL.
 *
 * TOOL is the name its server gives it. A change of any of these is taken
 * over without a restart of the server. */
#include "config/rows.h"

#define DAY_MS 86400000.0

static const char *check_not_empty(const char *s)
{
    return *s ? NULL : "must not be empty";
}

static const struct mo_key rows[] = {
    {.name = "rename",
     STR(mo_config_tool, rename),
     .check = check_not_empty,
     .doc = "What it is called instead of the name its server gives it"},
    {.name = "describe",
     STR(mo_config_tool, describe),
     .check = check_not_empty,
     .doc = "What is said of it instead of its server's description; the "
            "router reads it, too"},
    {.name = "hide",
     BOOL(mo_config_tool, hide),
     .def = "false",
     .doc = "`true`: neither listed, found nor callable"},
    {.name = "timeoutMs",
     INT(mo_config_tool, timeout_ms, 0, DAY_MS),
     .def = "0",
     .doc = "Longest wait for its answer; 0: as its server's"},
    {.name = "idempotent",
     BOOL(mo_config_tool, idempotent),
     .def = "false",
     .doc = "`true`: doing it twice does no harm, so that it may be repeated "
            "when no answer came; without it the server's `readOnlyHint` and "
            "`idempotentHint` count"},
    {.name = "retries",
     INT(mo_config_tool, retries, -1, MO_KEY_RETRIES_MAX),
     .def = "-1",
     .doc = "How often it is repeated, if it may be; -1: as its server's"},
    {.name = "resultBytes",
     INT(mo_config_tool, result_bytes, -1, 1e9),
     .def = "-1",
     .doc = "Text of a result beyond so many bytes is kept for `read_result`; "
            "0: never; -1: as its server's"},
    {.name = "fallback",
     LIST(mo_config_tool, fallback),
     .check = check_not_empty,
     .doc = "Who takes over while its server is down, instead of the server's "
            "`fallback`: `SERVER`, or `SERVER/TOOL` where it has another "
            "name"},
};
const struct mo_keys mo_config_tools_keys = KEYS(rows, struct mo_config_tool);
