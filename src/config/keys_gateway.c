/* keys_gateway.c - the keys of `gateway` and of `audit`. */
#include "config/rows.h"

const struct mo_key_word mo_config_exposures[] = {
    {"all", MO_GW_ALL, false},
    {"search", MO_GW_SEARCH, false},
    {"auto", MO_GW_AUTO, false},
};
static const struct mo_key_word prefixes[] = {
    {"collision", MO_GW_PREFIX_COLLISION, false},
    {"always", MO_GW_PREFIX_ALWAYS, false},
    {"never", MO_GW_PREFIX_NEVER, false},
};
static const struct mo_key_word approvals[] = {
    {"rules", MO_GW_BY_RULES, false},
    {"ask", MO_GW_ASK_REST, false},
    {"off", MO_GW_NO_RULES, false},
};

static const struct mo_key gateway_rows[] = {
    {.name = "expose",
     WORD(mo_config_gateway, expose, mo_config_exposures),
     .flags = MO_KEY_RESTART,
     .def = "all",
     .doc = "Tools that a client of the gateway sees; `all`: every tool of "
            "every server; `search`: four tools that find and run the others; "
            "`auto`: all if there are at most `few`, else `search`. Resources "
            "and prompts are always visible"},
    {.name = "few",
     INT(mo_config_gateway, few, 1, 10000),
     .flags = MO_KEY_RESTART,
     .def = "25",
     .doc = "Largest number of tools for which `auto` shows all of them"},
    {.name = "processes",
     INT(mo_config_gateway, processes, 1, 10000),
     .flags = MO_KEY_RESTART,
     .def = "256",
     .doc = "Servers that may run at once, each instance and session counted; "
            "at the limit the server that is idle for longest is stopped"},
    {.name = "prefix",
     WORD(mo_config_gateway, prefix, prefixes),
     .flags = MO_KEY_RESTART,
     .def = "collision",
     .doc = "When tool names get the server's name as a prefix; `collision`: "
            "only names that two servers have; `never`: the first server's "
            "tool wins"},
    {.name = "approvals",
     WORD(mo_config_gateway, approvals, approvals),
     .def = "rules",
     .doc = "Which calls of the gateway's clients a person must approve; "
            "`rules`: those for which a rule of `approvals` says so, all "
            "others run (most clients ask their own user); `ask`: all but "
            "those that a rule allows; `off`: rules do not apply, and changed "
            "tools are not blocked"},
};
const struct mo_keys mo_config_gateway_keys =
    KEYS(gateway_rows, struct mo_config_gateway);

static const struct mo_key audit_rows[] = {
    {.name = "arguments",
     BOOL(mo_config_audit, arguments),
     .def = "false",
     .doc = "Whether the audit log has the arguments of calls, instead of "
            "their digest only"},
    {.name = "maxMb",
     INT(mo_config_audit, max_mb, 1, 4096),
     .flags = MO_KEY_RESTART,
     .def = "64",
     .doc = "Size of a log file at which the next one is started"},
    {.name = "files",
     INT(mo_config_audit, files, 2, 1000),
     .flags = MO_KEY_RESTART,
     .def = "16",
     .doc = "Number of log files that are kept; the oldest is removed first"},
};
const struct mo_keys mo_config_audit_keys =
    KEYS(audit_rows, struct mo_config_audit);
