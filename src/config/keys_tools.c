/* keys_tools.c - the keys of mcpServers.NAME.tools.TOOL.
 *
 * TOOL is the name that the server gives the tool. Changes take effect without
 * a restart of the server. */
#include "config/rows.h"

static const struct mo_key rows[] = {
    {.name = "rename",
     STR(mo_config_tool, rename),
     .check = check_not_empty,
     .doc = "Name of the tool, instead of the name that the server gives it"},
    {.name = "describe",
     STR(mo_config_tool, describe),
     .check = check_not_empty,
     .doc = "Description of the tool, instead of the server's; the router "
            "uses it too"},
    {.name = "hide",
     BOOL(mo_config_tool, hide),
     .def = "false",
     .doc = "`true`: the tool is not listed, not found and not callable"},
    {.name = "timeoutMs",
     INT(mo_config_tool, timeout_ms, 0, DAY_MS),
     .def = "0",
     .doc = "Timeout of one call; 0: that of the server"},
    {.name = "idempotent",
     BOOL(mo_config_tool, idempotent),
     .def = "false",
     .doc = "`true`: the tool is safe to repeat if no answer came; default: "
            "the server's `readOnlyHint` and `idempotentHint` apply"},
    {.name = "retries",
     INT(mo_config_tool, retries, -1, MO_KEY_RETRIES_MAX),
     .def = "-1",
     .doc = "How often a call is repeated, if that is safe; -1: that of the "
            "server"},
    {.name = "resultBytes",
     INT(mo_config_tool, result_bytes, -1, 1e9),
     .def = "-1",
     .doc = "A longer text of a result is cut after so many bytes and the "
            "rest is kept for `read_result`; 0: never; -1: that of the server"},
    {.name = "fallback",
     LIST(mo_config_tool, fallback),
     .check = check_not_empty,
     .doc = "Replacement while its server is down, instead of the server's "
            "`fallback`: `SERVER`, or `SERVER/TOOL` if the tool has another "
            "name there"},
};
const struct mo_keys mo_config_tools_keys = KEYS(rows, struct mo_config_tool);
