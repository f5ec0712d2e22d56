#include "mo_test.h"

#include "gateway/upstream/breaker.h"

#define BEGIN 1000000 /* ms; clocks do not begin at 0 */

/* --- backoff ------------------------------------------------------------- */

static void test_backoff(void **state)
{
    static const uint64_t longest[] = {1000,  2000,  4000,  8000, 16000,
                                       32000, 60000, 60000, 60000};
    static const uint64_t dice[] = {0, 1, 500, 77777, UINT64_MAX};
    struct mo_backoff b;

    (void)state;
    for (size_t d = 0; d < MO_COUNT(dice); d++) {
        mo_backoff_reset(&b);
        assert_int_equal(mo_backoff_wait(&b, BEGIN), 0);
        for (size_t i = 0; i < MO_COUNT(longest); i++) {
            uint64_t now = BEGIN + i * 100000, ms;

            mo_backoff_failed(&b, now, dice[d]);
            ms = mo_backoff_wait(&b, now);
            assert_true(ms >= longest[i] / 2 && ms <= longest[i]);
            assert_int_equal(mo_backoff_wait(&b, now + ms - 1), 1);
            assert_int_equal(mo_backoff_wait(&b, now + ms), 0);
            assert_int_equal(mo_backoff_wait(&b, now + ms + 1000), 0);
            assert_int_equal(b.fails, i + 1);
        }
        mo_backoff_reset(&b);
        assert_int_equal(mo_backoff_wait(&b, BEGIN), 0);
    }
}

static void test_jitter(void **state)
{
    struct mo_backoff low = {0}, high = {0};

    (void)state;
    mo_backoff_failed(&low, BEGIN, 0);
    mo_backoff_failed(&high, BEGIN, MO_BACKOFF_MS / 2);
    assert_int_equal(mo_backoff_wait(&low, BEGIN), MO_BACKOFF_MS / 2);
    assert_int_equal(mo_backoff_wait(&high, BEGIN), MO_BACKOFF_MS);
    mo_backoff_pause(&low, BEGIN, 5000);
    assert_int_equal(mo_backoff_wait(&low, BEGIN), 5000);
    assert_int_equal(low.fails, 1);
}

/* --- breaker ------------------------------------------------------------- */

/* Steps: '+' a good call, '-' a fault, '?' may a call be made (yes), '!' may
 * it (no), 's' the trial was not made, 'p' the first pause goes by, 'P' the
 * longest one, 'w' the window. */
static void play(struct mo_breaker *b, const char *steps, const char *name)
{
    uint64_t now = BEGIN;

    for (const char *s = steps; *s; s++) {
        now += *s == 'p'   ? MO_BREAKER_MS
               : *s == 'P' ? MO_BREAKER_MOST_MS
               : *s == 'w' ? MO_BREAKER_WINDOW_MS
                           : 1;
        if (*s == '+' || *s == '-')
            (void)mo_breaker_report(b, now, *s == '-');
        else if (*s == '?' || *s == '!')
            check_row(name, mo_breaker_allow(b, now) == (*s == '?'));
        else if (*s == 's')
            mo_breaker_cancel_trial(b);
        if (b->state == MO_BREAKER_CLOSED)
            check_row(name, mo_breaker_wait(b, now) == 0);
    }
}

static void test_breaker_table(void **state)
{
    static const struct {
        const char *name, *steps;
        enum mo_breaker_state want;
    } rows[] = {
        {"new", "?", MO_BREAKER_CLOSED},
        {"good calls", "++++++++++?", MO_BREAKER_CLOSED},
        {"one less than a row", "----?", MO_BREAKER_CLOSED},
        {"a row", "-----!", MO_BREAKER_OPEN},
        {"a row that is broken", "----+----?", MO_BREAKER_CLOSED},
        {"the pause is kept", "-----!!!!!", MO_BREAKER_OPEN},
        {"half of them, no row", "+-+-+-+-+-+-+-+-+-+-+-+-?",
         MO_BREAKER_CLOSED},
        {"more than half of enough", "--+--+--+--+--+--+--!", MO_BREAKER_OPEN},
        {"more than half of few", "--+--+--+?", MO_BREAKER_CLOSED},
        {"more than half, long ago", "--+--+--+--+--+w--+--?",
         MO_BREAKER_CLOSED},
        {"half open lets one through", "-----p?!!", MO_BREAKER_HALF},
        {"half open, good", "-----p?+???", MO_BREAKER_CLOSED},
        {"half open, fault", "-----p?-!", MO_BREAKER_OPEN},
        {"the second pause is longer", "-----p?-p!p?", MO_BREAKER_HALF},
        {"a trial that was not made", "-----p?s?!", MO_BREAKER_HALF},
        {"a trial that is forgotten", "-----p?!p?!", MO_BREAKER_HALF},
        {"pauses end at the longest", "-----P?-P?-P?-P?-P?-P?-P?-P?",
         MO_BREAKER_HALF},
        {"a fault from before", "-----p?--p!p?", MO_BREAKER_HALF},
        {"good news from before does not close", "-----+!", MO_BREAKER_OPEN},
        {"what was before it closed is forgotten", "-----p?+----?",
         MO_BREAKER_CLOSED},
        {"skipping what is not half open", "s?-----s!", MO_BREAKER_OPEN},
        {"pauses begin anew after it closed", "-----p?-pp?+-----p?",
         MO_BREAKER_HALF},
    };

    (void)state;
    for (size_t i = 0; i < MO_COUNT(rows); i++) {
        struct mo_breaker b = {0};

        play(&b, rows[i].steps, rows[i].name);
        check_row(rows[i].name, b.state == rows[i].want);
        mo_breaker_reset(&b);
        check_row(rows[i].name, mo_breaker_allow(&b, BEGIN));
    }
}

/* Exactly one report of a row returns that the breaker opened. */
static void test_breaker_says_so(void **state)
{
    struct mo_breaker b = {0};
    int said = 0;

    (void)state;
    for (int i = 0; i < 20; i++)
        said += mo_breaker_report(&b, BEGIN + (uint64_t)i, true);
    assert_int_equal(said, 1);
    assert_int_equal(mo_breaker_wait(&b, BEGIN + MO_BREAKER_ROW - 1),
                     MO_BREAKER_MS);
    assert_string_equal(mo_breaker_name(b.state), "open");
    assert_string_equal(mo_breaker_name(MO_BREAKER_STATES), "?");
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_backoff),
        cmocka_unit_test(test_jitter),
        cmocka_unit_test(test_breaker_table),
        cmocka_unit_test(test_breaker_says_so),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
