/* Randomness: the requested amount, and never the same twice. */
#include "base/rand.h"
#include "mo_test.h"

/* 64 draws of 64 bytes: a byte position that is always the same has a chance
 * of 2^-504. */
static void every_byte_is_drawn(void **s)
{
    unsigned char first[64], next[64], changed[64] = {0};

    (void)s;
    mo_random(first, sizeof(first));
    for (int round = 0; round < 63; round++) {
        mo_random(next, sizeof(next));
        for (size_t i = 0; i < sizeof(next); i++)
            changed[i] |= (unsigned char)(first[i] ^ next[i]);
    }
    for (size_t i = 0; i < sizeof(changed); i++)
        assert_int_not_equal(changed[i], 0);
}

static void only_what_was_asked(void **s)
{
    unsigned char p[10] = {0};

    (void)s;
    mo_random(p + 1, 0);
    for (int i = 0; i < 100; i++)
        mo_random(p + 1, 8);
    assert_int_equal(p[0], 0);
    assert_int_equal(p[9], 0);
    mo_random(NULL, 0);
}

static void large_requests_are_filled(void **s)
{
    size_t n = 1 << 20, zeros = 0;
    unsigned char *p = mo_zalloc(n);

    (void)s;
    mo_random(p, n);
    for (size_t i = n - 4096; i < n; i++)
        zeros += p[i] == 0;
    assert_true(zeros < 256); /* 16 expected */
    mo_free(p);
}

static void numbers_differ(void **s)
{
    (void)s;
    assert_true(mo_random_u64() != mo_random_u64() ||
                mo_random_u64() != mo_random_u64());
}

/* People type ids of calls and sessions as words of commands. */
static void tokens_never_look_like_options(void **s)
{
    char out[MO_TOKEN_LEN(12) + 1];

    (void)s;
    for (int i = 0; i < 20000; i++) {
        mo_random_token(out, 12);
        assert_true(out[0] != '-' && out[0] != '_');
    }
}

static void tokens_have_their_length_and_alphabet(void **s)
{
    char out[MO_TOKEN_LEN(MO_TOKEN_MAX) + 2];

    (void)s;
    for (size_t n = 0; n <= MO_TOKEN_MAX; n++) {
        memset(out, '!', sizeof(out));
        mo_random_token(out, n);
        assert_int_equal(strlen(out), MO_TOKEN_LEN(n));
        assert_int_equal(out[MO_TOKEN_LEN(n) + 1], '!');
        assert_true(MO_TOKEN_LEN(n) * 6 >= n * 8);
        assert_int_equal(
            strspn(out, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
                        "0123456789-_"),
            MO_TOKEN_LEN(n));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_byte_is_drawn),
        cmocka_unit_test(only_what_was_asked),
        cmocka_unit_test(large_requests_are_filled),
        cmocka_unit_test(numbers_differ),
        cmocka_unit_test(tokens_have_their_length_and_alphabet),
        cmocka_unit_test(tokens_never_look_like_options),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
