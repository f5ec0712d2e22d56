/* config_gateway.c - the keys of gateway. */
#include "app/config_rows.h"

static const struct mo_key_word exposures[] = {
    {"all", MO_GW_ALL, false},
    {"search", MO_GW_SEARCH, false},
    {"auto", MO_GW_AUTO, false},
};
static const struct mo_key_word prefixes[] = {
    {"collision", MO_GW_PREFIX_COLLISION, false},
    {"always", MO_GW_PREFIX_ALWAYS, false},
    {"never", MO_GW_PREFIX_NEVER, false},
};

static const struct mo_key rows[] = {
    {.name = "expose",
     WORD(mo_config_gateway, expose, exposures),
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
};
const struct mo_keys mo_config_gateway_keys =
    KEYS(rows, struct mo_config_gateway);
