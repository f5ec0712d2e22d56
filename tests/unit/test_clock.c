/* The two clocks, and the two time formats. */
#include <time.h>

#include "base/clock.h"
#include "mo_test.h"

static void monotonic_never_goes_back(void **s)
{
    uint64_t last = mo_now_ns();

    (void)s;
    for (int i = 0; i < 10000; i++) {
        uint64_t now = mo_now_ns();

        assert_true(now >= last);
        last = now;
    }
}

/* Between two readings of the C library's clock. */
static void wall_is_the_wall(void **s)
{
    uint64_t before = (uint64_t)time(NULL);
    uint64_t ms = mo_wall_ms();
    uint64_t after = (uint64_t)time(NULL) + 1;

    (void)s;
    assert_true(ms / 1000 + 1 >= before && ms / 1000 <= after);
}

static void times_are_written(void **s)
{
    static const struct {
        uint64_t ms;
        const char *iso, *http;
    } rows[] = {
        {0, "1970-01-01T00:00:00.000Z", "Thu, 01 Jan 1970 00:00:00 GMT"},
        {999, "1970-01-01T00:00:00.999Z", "Thu, 01 Jan 1970 00:00:00 GMT"},
        {784111777000, "1994-11-06T08:49:37.000Z",
         "Sun, 06 Nov 1994 08:49:37 GMT"},
        {951782400001, "2000-02-29T00:00:00.001Z",
         "Tue, 29 Feb 2000 00:00:00 GMT"},
        {1794704523456, "2026-11-15T01:02:03.456Z",
         "Sun, 15 Nov 2026 01:02:03 GMT"},
        {4102444799999, "2099-12-31T23:59:59.999Z",
         "Thu, 31 Dec 2099 23:59:59 GMT"},
    };
    char iso[MO_ISO8601_MAX], http[MO_HTTPDATE_MAX];

    (void)s;
    for (size_t i = 0; i < MO_COUNT(rows); i++) {
        mo_wall_format(rows[i].ms, iso);
        mo_wall_httpdate(rows[i].ms, http);
        check_row(rows[i].iso, strcmp(iso, rows[i].iso) == 0);
        check_row(rows[i].http, strcmp(http, rows[i].http) == 0);
    }
}

/* Years beyond four digits are truncated, not written past the end. */
static void absurd_times_fit(void **s)
{
    char iso[MO_ISO8601_MAX], http[MO_HTTPDATE_MAX];

    (void)s;
    mo_wall_format(UINT64_MAX, iso);
    mo_wall_httpdate(UINT64_MAX, http);
    assert_true(strlen(iso) < sizeof(iso));
    assert_true(strlen(http) < sizeof(http));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(monotonic_never_goes_back),
        cmocka_unit_test(wall_is_the_wall),
        cmocka_unit_test(times_are_written),
        cmocka_unit_test(absurd_times_fit),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
