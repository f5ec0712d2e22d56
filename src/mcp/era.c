#include "mcp/era.h"

static const char *const texts[MO_MCP_VERSIONS] = {
    [MO_MCP_UNKNOWN] = "unknown",        [MO_MCP_2024_10_07] = "2024-10-07",
    [MO_MCP_2024_11_05] = "2024-11-05",  [MO_MCP_2025_03_26] = "2025-03-26",
    [MO_MCP_2025_06_18] = "2025-06-18",  [MO_MCP_2025_11_25] = "2025-11-25",
    [MO_MCP_2026_07_28] = MO_MCP_NEWEST,
};

enum mo_mcp_version mo_mcp_version(struct mo_span text)
{
    for (int v = MO_MCP_UNKNOWN + 1; v < MO_MCP_VERSIONS; v++) {
        if (mo_span_is(text, texts[v]))
            return (enum mo_mcp_version)v;
    }
    return MO_MCP_UNKNOWN;
}

const char *mo_mcp_version_text(enum mo_mcp_version v)
{
    return v < MO_MCP_VERSIONS ? texts[v] : texts[MO_MCP_UNKNOWN];
}

/* True for "dddd-dd-dd": only then comparing bytes compares dates. */
static bool is_date(struct mo_span s)
{
    static const char form[] = "0000-00-00";

    if (s.n != sizeof(form) - 1)
        return false;
    for (size_t i = 0; i < s.n; i++)
        if (form[i] == '0' ? !mo_is_digit(s.p[i]) : s.p[i] != form[i])
            return false;
    return true;
}

bool mo_mcp_text_is_modern(struct mo_span text)
{
    return is_date(text) && memcmp(text.p, MO_MCP_NEWEST, text.n) >= 0;
}
