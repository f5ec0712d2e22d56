/* era.h - the revisions of MCP and the features of each.
 *
 * Legacy peers start with `initialize`; from 2026-07-28 on every request
 * describes itself in params._meta. Features newer than the peer's revision are
 * left out of messages to it. */
#ifndef TB_ERA_H
#define TB_ERA_H

#include "codec/json/json.h"

enum tb_version {
    TB_NO_VERSION,
    TB_2024_10_07,
    TB_2024_11_05,
    TB_2025_03_26,
    TB_2025_06_18,
    TB_2025_11_25, /* the newest that initialize can negotiate */
    TB_2026_07_28,
    TB_VERSIONS,
};

static inline const char *tb_version_text(enum tb_version v)
{
    static const char *const text[TB_VERSIONS] = {
        "",           "2024-10-07", "2024-11-05", "2025-03-26",
        "2025-06-18", "2025-11-25", "2026-07-28",
    };

    return text[v];
}

static inline enum tb_version tb_version(struct mo_json text)
{
    for (int v = TB_2024_10_07; v < TB_VERSIONS; v++) {
        const char *name = tb_version_text((enum tb_version)v);

        if (mo_json_str_eq(text, mo_span_cstr(name)))
            return (enum tb_version)v;
    }
    return TB_NO_VERSION;
}

static inline bool tb_is_modern(enum tb_version v)
{
    return v >= TB_2026_07_28;
}

static inline bool tb_has_annotations(enum tb_version v)
{
    return v >= TB_2025_03_26;
}

static inline bool tb_has_structured(enum tb_version v)
{
    return v >= TB_2025_06_18;
}

/* Keys of the modern envelope. */
#define TB_P         "io.modelcontextprotocol/"
#define TB_P_VERSION TB_P "protocolVersion"
#define TB_P_CAPS    TB_P "clientCapabilities"
#define TB_P_SERVER  TB_P "serverInfo"
#define TB_P_LOG     TB_P "logLevel"

#define TB_UNSUPPORTED_VERSION (-32022)

#endif
