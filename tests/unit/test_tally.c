/* Usage counters: sums, minutes, and the limit of models. */
#include "agent/chat/tally.h"

#include <stdio.h>

#include "mo_test.h"

#define NOW ((uint64_t)1000 * 60000 + 30000)

static void test_models(void **state)
{
    const struct mo_llm_usage u = {.input = 10, .output = 3, .cache_read = 4};
    struct mo_tally t = {.nmodels = 0};
    char name[200];

    (void)state;
    mo_tally_reply(&t, "a", MO_SPAN("m"), &u, NOW);
    mo_tally_reply(&t, "b", MO_SPAN("m"), &u, NOW);
    mo_tally_reply(&t, "a", MO_SPAN("m"), &u, NOW + 60000);
    assert_int_equal(t.nmodels, 2);
    assert_int_equal(t.models[0].usage.input, 20);
    assert_int_equal(t.models[0].usage.cache_read, 8);
    assert_int_equal(t.models[0].replies, 2);
    assert_int_equal(t.models[1].usage.output, 3);
    assert_int_equal(mo_tally_at(&t, NOW + 60000, 0).tokens, 13);
    assert_int_equal(mo_tally_at(&t, NOW + 60000, 1).tokens, 26);
    for (int i = 0; i < 100; i++) {
        (void)snprintf(name, sizeof(name), "m%0150d", i);
        mo_tally_reply(&t, NULL, mo_span_cstr(name), &u, NOW);
    }
    assert_int_equal(t.nmodels, 3); /* long names are cut to the same name */
    for (int i = 0; i < 100; i++) {
        (void)snprintf(name, sizeof(name), "m%d", i);
        mo_tally_reply(&t, "c", mo_span_cstr(name), &u, NOW);
    }
    assert_int_equal(t.nmodels, MO_TALLY_MODELS + 1);
    assert_string_equal(t.models[MO_TALLY_MODELS].model, "");
    assert_int_equal(t.models[MO_TALLY_MODELS].replies,
                     100 - (MO_TALLY_MODELS - 3));
}

static void test_minutes(void **state)
{
    static const struct {
        const char *name;
        unsigned ago;
        uint64_t calls, failed, ms, longest;
    } rows[] = {
        {"now", 0, 2, 1, 40, 30},
        {"a minute ago", 1, 0, 0, 0, 0},
        {"the last that is known", 59, 1, 0, 5, 5},
        {"beyond", 60, 0, 0, 0, 0},
        {"before the beginning of time", 4000000, 0, 0, 0, 0},
    };
    struct mo_tally t = {.nmodels = 0};

    (void)state;
    mo_tally_call(&t, 7, false, NOW - (uint64_t)60 * 60000);
    mo_tally_call(&t, 5, false, NOW - (uint64_t)59 * 60000);
    mo_tally_call(&t, 10, false, NOW);
    mo_tally_call(&t, 30, true, NOW);
    for (size_t i = 0; i < MO_COUNT(rows); i++) {
        struct mo_tally_minute m = mo_tally_at(&t, NOW, rows[i].ago);

        check_row(rows[i].name,
                  m.calls == rows[i].calls && m.failed == rows[i].failed &&
                      m.ms == rows[i].ms && m.longest_ms == rows[i].longest);
    }
    assert_int_equal(t.calls, 4);
    assert_int_equal(t.failed, 1);
}

static void test_read(void **state)
{
    struct mo_llm_usage sum = {.input = 1};
    struct mo_json_doc doc;

    (void)state;
    mo_usage_read(&sum, (struct mo_json){NULL, 0});
    assert_int_equal(
        mo_json_parse(MO_SPAN("{\"input\":2,\"output\":3,\"cacheRead\":\"x\"}"),
                      0, &doc, NULL),
        0);
    mo_usage_read(&sum, doc.root);
    assert_int_equal(sum.input, 3);
    assert_int_equal(sum.output, 3);
    assert_int_equal(sum.cache_read, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_models),
        cmocka_unit_test(test_minutes),
        cmocka_unit_test(test_read),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
