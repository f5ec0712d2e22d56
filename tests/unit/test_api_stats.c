/* What a box used of the processor between two looks. */
#include "web/api_stats.h"

#include "base/clock.h"
#include "mo_test.h"

static void test_compare(void **state)
{
    static const struct {
        const char *name;
        uint64_t cpu0, at0;
        int known0;
        uint64_t cpu1, at1;
        int permille;
    } rows[] = {
        {"half a core", 100, 1, -1, 1000100, 2 * MO_S + 1, 500},
        {"two cores", 0, 1, -1, 10000000, 5 * MO_S + 1, 2000},
        {"nothing", 5, 1, 700, 5, 5 * MO_S, 0},
        {"another box of that name", 500, 1, -1, 10, 5 * MO_S, -1},
        {"no time between", 5, 9, -1, 6, 9, -1},
        {"at the same time: as told", 5, 1, 250, 900000, MO_S / 2, 250},
        {"the same, not told yet", 0, 1, -1, 250000, MO_S / 2 + 1, 500},
    };

    (void)state;
    for (size_t i = 0; i < MO_COUNT(rows); i++) {
        const struct mo_stats_sample last = {.cpu_us = rows[i].cpu0,
                                             .at = rows[i].at0,
                                             .permille = rows[i].known0};

        check_row(
            rows[i].name,
            mo_stats_compare(&last, "b", rows[i].cpu1, rows[i].at1).permille ==
                rows[i].permille);
    }
    assert_int_equal(mo_stats_compare(NULL, "b", 1, 1).permille, -1);
    assert_string_equal(mo_stats_compare(NULL, "b", 1, 1).box, "b");
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_compare)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
