#include "base/nearest.h"

#include "mo_test.h"

static const struct {
    const char *a, *b;
    unsigned d;
} distances[] = {
    {"", "", 0},          {"a", "", 1},
    {"", "abc", 3},       {"port", "port", 0},
    {"prot", "port", 1},  {"memoryMB", "memoryMb", 0},
    {"serv", "serve", 1}, {"kitten", "sitting", 3},
    {"ab", "ba", 1},      {"abc", "xyz", 3},
};

static void test_distance(void **state)
{
    (void)state;
    for (size_t i = 0; i < MO_COUNT(distances); i++) {
        struct mo_span a = mo_span_cstr(distances[i].a);
        struct mo_span b = mo_span_cstr(distances[i].b);

        check_row(distances[i].a, mo_nearest_distance(a, b) == distances[i].d);
        check_row(distances[i].b, mo_nearest_distance(b, a) == distances[i].d);
    }
}

static void test_too_long(void **state)
{
    char word[MO_NEAREST_MAX + 2];

    (void)state;
    memset(word, 'a', sizeof(word));
    assert_int_equal(mo_nearest_distance(mo_span(word, MO_NEAREST_MAX),
                                         mo_span(word, MO_NEAREST_MAX)),
                     0);
    assert_int_equal(mo_nearest_distance(mo_span(word, MO_NEAREST_MAX + 1),
                                         mo_span(word, 1)),
                     MO_NEAREST_MAX + 1);
}

static const struct {
    const char *word, *best; /* among the list below */
} guesses[] = {
    {"sevre", "serve"},   {"SERVE", "serve"},    {"conf", "config"},
    {"docter", "doctor"}, {"x", NULL},           {"", NULL},
    {"elephant", NULL},   {"verson", "version"}, {"se", NULL},
};

static void test_guess(void **state)
{
    static const char *const list[] = {"serve", "config", "doctor", "version"};

    (void)state;
    for (size_t i = 0; i < MO_COUNT(guesses); i++) {
        struct mo_nearest near;

        mo_nearest_init(&near, mo_span_cstr(guesses[i].word));
        for (size_t j = 0; j < MO_COUNT(list); j++)
            mo_nearest_offer(&near, list[j]);
        if (guesses[i].best)
            check_row(guesses[i].word,
                      near.best && strcmp(near.best, guesses[i].best) == 0);
        else
            check_row(guesses[i].word, !near.best);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_distance),
        cmocka_unit_test(test_too_long),
        cmocka_unit_test(test_guess),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
