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
     .doc = "Which tools a client of the gateway is shown; `all`: every tool "
            "of every server; `search`: four that find and run the others; "
            "`auto`: all while there are at most `few`. Resources and prompts "
            "are always shown"},
    {.name = "few",
     INT(mo_config_gateway, few, 1, 10000),
     .flags = MO_KEY_RESTART,
     .def = "25",
     .doc = "How many tools `auto` shows before it hides them behind the "
            "four"},
    {.name = "processes",
     INT(mo_config_gateway, processes, 1, 10000),
     .flags = MO_KEY_RESTART,
     .def = "256",
     .doc = "Servers that may run at one time, instances and sessions counted "
            "one by one; at the limit the one that is idle for longest ends"},
    {.name = "prefix",
     WORD(mo_config_gateway, prefix, prefixes),
     .flags = MO_KEY_RESTART,
     .def = "collision",
     .doc = "When a name gets its server's name in front; `collision`: only "
            "where two servers have it; `never`: the first one's counts"},
    {.name = "approvals",
     WORD(mo_config_gateway, approvals, approvals),
     .def = "rules",
     .doc = "Which calls of the gateway's clients need a person's yes; "
            "`rules`: those of which a rule of `approvals` says so, all others "
            "run (most clients ask their own person); `ask`: all but those "
            "that a rule allows; `off`: no rule counts, and changed tools are "
            "not held back"},
};
const struct mo_keys mo_config_gateway_keys =
    KEYS(gateway_rows, struct mo_config_gateway);

static const struct mo_key audit_rows[] = {
    {.name = "arguments",
     BOOL(mo_config_audit, arguments),
     .def = "false",
     .doc = "Whether arguments of calls stand in the audit log as they are, "
            "instead of their digest"},
    {.name = "maxMb",
     INT(mo_config_audit, max_mb, 1, 4096),
     .flags = MO_KEY_RESTART,
     .def = "64",
     .doc = "A file of it that is longer is set aside and the next begun"},
    {.name = "files",
     INT(mo_config_audit, files, 2, 1000),
     .flags = MO_KEY_RESTART,
     .def = "16",
     .doc = "How many files of it are kept; the oldest goes first"},
};
const struct mo_keys mo_config_audit_keys =
    KEYS(audit_rows, struct mo_config_audit);
