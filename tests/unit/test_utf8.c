#include "codec/text/utf8.h"
#include "mo_test.h"

/* good: where the first wrong byte stands; len: all bytes valid. A row that
 * ends inside a character is incomplete: good == length, yet not valid. */
static const struct row {
    const char *name;
    struct mo_span in;
    size_t good;
    bool valid;
} rows[] = {
    {"empty", MO_SPAN(""), 0, true},
    {"ascii", MO_SPAN("hello"), 5, true},
    {"nul is a character", MO_SPAN("a\0b"), 3, true},
    {"long ascii", MO_SPAN("0123456789abcdef0123456789abcdef!"), 33, true},
    {"first of two bytes", MO_SPAN("\xc2\x80"), 2, true},
    {"last of two bytes", MO_SPAN("\xdf\xbf"), 2, true},
    {"first of three bytes", MO_SPAN("\xe0\xa0\x80"), 3, true},
    {"before surrogates", MO_SPAN("\xed\x9f\xbf"), 3, true},
    {"after surrogates", MO_SPAN("\xee\x80\x80"), 3, true},
    {"last of three bytes", MO_SPAN("\xef\xbf\xbf"), 3, true},
    {"first of four bytes", MO_SPAN("\xf0\x90\x80\x80"), 4, true},
    {"U+10FFFF", MO_SPAN("\xf4\x8f\xbf\xbf"), 4, true},
    {"byte order mark", MO_SPAN("\xef\xbb\xbfx"), 4, true},
    {"mixed", MO_SPAN("na\xc3\xafve \xe6\xbc\xa2 \xf0\x9f\x98\x80!"), 16, true},
    {"accent after 15", MO_SPAN("0123456789abcde\xc3\xa9xyz"), 20, true},
    {"accent across 16", MO_SPAN("0123456789abcdef\xc3\xa9 more of it"), 29,
     true},

    {"lone tail", MO_SPAN("\x80"), 0, false},
    {"lone tail BF", MO_SPAN("ab\xbf"), 2, false},
    {"overlong slash C0", MO_SPAN("\xc0\xaf"), 0, false},
    {"overlong C1", MO_SPAN("\xc1\xbf"), 0, false},
    {"overlong three", MO_SPAN("\xe0\x80\xaf"), 1, false},
    {"overlong three, top", MO_SPAN("\xe0\x9f\xbf"), 1, false},
    {"overlong four", MO_SPAN("\xf0\x80\x80\xaf"), 1, false},
    {"overlong four, top", MO_SPAN("\xf0\x8f\xbf\xbf"), 1, false},
    {"first surrogate", MO_SPAN("\xed\xa0\x80"), 1, false},
    {"last surrogate", MO_SPAN("\xed\xbf\xbf"), 1, false},
    {"CESU-8 pair", MO_SPAN("\xed\xa0\xbd\xed\xb8\x80"), 1, false},
    {"U+110000", MO_SPAN("\xf4\x90\x80\x80"), 1, false},
    {"F5", MO_SPAN("\xf5\x80\x80\x80"), 0, false},
    {"F8", MO_SPAN("\xf8\x88\x80\x80\x80"), 0, false},
    {"FE", MO_SPAN("x\xfe"), 1, false},
    {"FF", MO_SPAN("\xff"), 0, false},
    {"two cut, then ascii", MO_SPAN("\xc3x"), 1, false},
    {"three cut, then ascii", MO_SPAN("\xe6\xbcx"), 2, false},
    {"four cut, then ascii", MO_SPAN("\xf0\x9f\x98x"), 3, false},
    {"three cut, then a lead", MO_SPAN("\xe6\xbc\xc3\xa9"), 2, false},
    {"two cut by the end", MO_SPAN("\xc3"), 1, false},
    {"three cut by the end", MO_SPAN("\xe6\xbc"), 2, false},
    {"four cut by the end", MO_SPAN("ab\xf0\x9f\x98"), 5, false},
    {"bad after 16", MO_SPAN("0123456789abcdef\x80"), 16, false},
    {"bad after 31", MO_SPAN("0123456789abcdef0123456789abcde\xff"), 31, false},
};

static void test_table(void **state)
{
    (void)state;
    for (size_t i = 0; i < MO_COUNT(rows); i++) {
        const struct row *r = &rows[i];

        check_row(r->name, mo_utf8_valid(r->in) == r->valid);
        check_row(r->name, mo_utf8_good(r->in) == r->good);
    }
}

/* Pieces must not matter, and the answer comes with the wrong byte. */
static void check_cut(const struct row *r, size_t cut)
{
    struct mo_span head = mo_span_head(r->in, cut);
    uint32_t st = 0;
    bool ok = mo_utf8_feed(&st, head);

    check_row(r->name, ok == (cut <= r->good));
    ok = mo_utf8_feed(&st, mo_span_skip(r->in, cut));
    check_row(r->name, ok == (r->good == r->in.n));
    check_row(r->name, (ok && mo_utf8_complete(st)) == r->valid);
    if (!ok)
        check_row(r->name, !mo_utf8_feed(&st, MO_SPAN("a")));
}

static void test_pieces(void **state)
{
    (void)state;
    for (size_t i = 0; i < MO_COUNT(rows); i++) {
        uint32_t st = 0;
        bool ok = true;

        for (size_t cut = 0; cut <= rows[i].in.n; cut++)
            check_cut(&rows[i], cut);
        for (size_t k = 0; k < rows[i].in.n; k++)
            ok = mo_utf8_feed(&st, mo_span(rows[i].in.p + k, 1));
        check_row(rows[i].name, (ok && mo_utf8_complete(st)) == rows[i].valid);
    }
}

/* A bad byte is found at every offset, whatever the vector width. */
static void test_every_offset(void **state)
{
    char text[70];

    (void)state;
    for (size_t n = 1; n <= sizeof(text); n++) {
        for (size_t at = 0; at < n; at++) {
            memset(text, 'a', sizeof(text));
            text[at] = (char)0xff;
            assert_false(mo_utf8_valid(mo_span(text, n)));
            assert_int_equal(mo_utf8_good(mo_span(text, n)), at);
            assert_true(mo_utf8_valid(mo_span(text, at)));
        }
    }
}

static void test_all_code_points(void **state)
{
    (void)state;
    for (uint32_t cp = 0; cp <= MO_UTF8_MAX; cp++) {
        char c[4];
        uint32_t back = 0;
        size_t n;

        if (cp >= 0xD800 && cp <= 0xDFFF)
            continue;
        n = mo_utf8_put(c, cp);
        assert_int_equal(mo_utf8_get(mo_span(c, n), &back), n);
        assert_int_equal(back, cp);
        assert_true(mo_utf8_valid(mo_span(c, n)));
        if (n > 1)
            assert_int_equal(mo_utf8_get(mo_span(c, n - 1), &back), -1);
    }
}

static void test_get_refuses(void **state)
{
    uint32_t cp = 7;

    (void)state;
    assert_int_equal(mo_utf8_get(MO_SPAN(""), &cp), -1);
    assert_int_equal(mo_utf8_get(MO_SPAN("\x80"), &cp), -1);
    assert_int_equal(mo_utf8_get(MO_SPAN("\xed\xa0\x80"), &cp), -1);
    assert_int_equal(cp, 7);
}

static void test_cut(void **state)
{
    static const struct {
        const char *name;
        struct mo_span in;
        size_t max, want;
    } cuts[] = {
        {"fits", MO_SPAN("abc"), 3, 3},
        {"longer than needed", MO_SPAN("abc"), 9, 3},
        {"ascii", MO_SPAN("abc"), 2, 2},
        {"none", MO_SPAN("abc"), 0, 0},
        {"two bytes", MO_SPAN("a\xc3\xa9z"), 2, 1},
        {"after two bytes", MO_SPAN("a\xc3\xa9z"), 3, 3},
        {"three bytes, one", MO_SPAN("\xe6\xbc\xa2z"), 1, 0},
        {"three bytes, two", MO_SPAN("\xe6\xbc\xa2z"), 2, 0},
        {"four bytes, three", MO_SPAN("z\xf0\x9f\x98\x80z"), 4, 1},
        {"four bytes, all", MO_SPAN("z\xf0\x9f\x98\x80z"), 5, 5},
        {"no text at all", MO_SPAN("\x80\x80\x80\x80\x80\x80\x80"), 5, 5},
    };

    (void)state;
    for (size_t i = 0; i < MO_COUNT(cuts); i++) {
        size_t n = mo_utf8_cut(cuts[i].in, cuts[i].max);

        check_row(cuts[i].name, n == cuts[i].want);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_table),
        cmocka_unit_test(test_pieces),
        cmocka_unit_test(test_every_offset),
        cmocka_unit_test(test_all_code_points),
        cmocka_unit_test(test_get_refuses),
        cmocka_unit_test(test_cut),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
