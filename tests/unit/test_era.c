#include "mcp/era.h"
#include "mo_test.h"

static void versions_go_both_ways(void **state)
{
    (void)state;
    for (int v = MO_MCP_UNKNOWN + 1; v < MO_MCP_VERSIONS; v++) {
        const char *text = mo_mcp_version_text((enum mo_mcp_version)v);

        assert_int_equal(mo_mcp_version(mo_span_cstr(text)), v);
        assert_int_equal(mo_mcp_is_modern((enum mo_mcp_version)v),
                         mo_mcp_text_is_modern(mo_span_cstr(text)));
    }
    assert_int_equal(mo_mcp_version(MO_SPAN("2025-11-2")), MO_MCP_UNKNOWN);
    assert_string_equal(mo_mcp_version_text(MO_MCP_VERSIONS), "unknown");
}

static void only_dates_are_compared(void **state)
{
    static const struct {
        const char *text;
        bool modern;
    } rows[] = {
        {"2026-07-28", true},   {"2026-07-27", false}, {"2026-07-29", true},
        {"2099-01-01", true},   {"2025-11-25", false}, {"", false},
        {"9", false},           {"draft", false},      {"2026-07-28x", false},
        {"zzzz-zz-zz", false},  {"2026/07/28", false}, {"2026-7-28", false},
        {" 2026-07-28", false},
    };

    (void)state;
    for (size_t i = 0; i < MO_COUNT(rows); i++)
        check_row(rows[i].text, mo_mcp_text_is_modern(mo_span_cstr(
                                    rows[i].text)) == rows[i].modern);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(versions_go_both_ways),
        cmocka_unit_test(only_dates_are_compared),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
