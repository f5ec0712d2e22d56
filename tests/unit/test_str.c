/* Spans and capped buffers. */
#include "mo_test.h"

#define S MO_SPAN

/* A span of a literal, which may contain NULs. */
#define T(lit)                                                                 \
    {                                                                          \
        "" lit, sizeof(lit) - 1                                                \
    }

static void spans_of_strings(void **s)
{
    (void)s;
    assert_int_equal(mo_span_cstr(NULL).n, 0);
    assert_int_equal(mo_span_cstr("abc").n, 3);
    assert_true(mo_span_is(S("abc"), "abc"));
    assert_false(mo_span_is(S("abc"), "ab"));
    assert_true(mo_span_eq(mo_span(NULL, 0), S("")));
    assert_false(mo_span_eq(S("a\0b"), S("a\0c")));
}

static void skip_and_head_clamp(void **s)
{
    (void)s;
    assert_true(mo_span_is(mo_span_skip(S("hello"), 2), "llo"));
    assert_true(mo_span_is(mo_span_skip(S("hello"), 0), "hello"));
    assert_int_equal(mo_span_skip(S("hello"), 99).n, 0);
    assert_int_equal(mo_span_skip(mo_span(NULL, 0), 5).n, 0);
    assert_true(mo_span_is(mo_span_head(S("hello"), 2), "he"));
    assert_true(mo_span_is(mo_span_head(S("hello"), 99), "hello"));
}

static void trim_takes_blanks_only(void **s)
{
    static const struct {
        const char *in, *out;
    } rows[] = {
        {"", ""},          {"   ", ""},    {" a ", "a"},
        {"\t a b", "a b"}, {"a\n", "a\n"}, {"a \t ", "a"},
    };

    (void)s;
    for (size_t i = 0; i < MO_COUNT(rows); i++)
        check_row(rows[i].in, mo_span_is(mo_span_trim(mo_span_cstr(rows[i].in)),
                                         rows[i].out));
}

static void comparisons(void **s)
{
    static const struct {
        struct mo_span a, b;
        bool eq, ieq, starts, ends;
    } rows[] = {
        {T(""), T(""), 1, 1, 1, 1},         {T("a"), T(""), 0, 0, 1, 1},
        {T(""), T("a"), 0, 0, 0, 0},        {T("Host"), T("hOST"), 0, 1, 0, 0},
        {T("abc"), T("abc"), 1, 1, 1, 1},   {T("abc"), T("ab"), 0, 0, 1, 0},
        {T("abc"), T("bc"), 0, 0, 0, 1},    {T("a\0b"), T("A\0B"), 0, 1, 0, 0},
        {T("[@`{"), T("{`@["), 0, 0, 0, 0}, {T("@"), T("`"), 0, 0, 0, 0},
        {T("["), T("{"), 0, 0, 0, 0},       {T("\xc4"), T("\xe4"), 0, 0, 0, 0},
    };

    (void)s;
    for (size_t i = 0; i < MO_COUNT(rows); i++) {
        struct mo_span a = rows[i].a, b = rows[i].b;

        check_row(a.p, mo_span_eq(a, b) == rows[i].eq);
        check_row(a.p, mo_span_eq_ct(a, b) == rows[i].eq);
        check_row(a.p, mo_span_ieq(a, b) == rows[i].ieq);
        check_row(a.p, mo_span_starts(a, b) == rows[i].starts);
        check_row(a.p, mo_span_ends(a, b) == rows[i].ends);
    }
}

static void find_and_search(void **s)
{
    (void)s;
    assert_int_equal(mo_span_find(S("a=b=c"), '='), 1);
    assert_int_equal(mo_span_find(S("abc"), '='), -1);
    assert_int_equal(mo_span_find(S("a\0b"), '\0'), 1);
    assert_int_equal(mo_span_find(mo_span(NULL, 0), 'x'), -1);
    assert_int_equal(mo_span_search(S("ababc"), S("abc")), 2);
    assert_int_equal(mo_span_search(S("ab"), S("abc")), -1);
    assert_int_equal(mo_span_search(S("ab"), S("")), 0);
    assert_int_equal(mo_span_search(mo_span(NULL, 0), S("a")), -1);
}

/* Cut until the end and join with '|' to see the pieces. */
static void cut_gives_every_piece(void **s)
{
    static const struct {
        const char *in, *out;
    } rows[] = {
        {"", "|"},   {"a", "a|"},         {"a,b", "a|b|"},
        {",", "||"}, {"a,,b,", "a||b||"},
    };

    (void)s;
    for (size_t i = 0; i < MO_COUNT(rows); i++) {
        struct mo_span rest = mo_span_cstr(rows[i].in);
        struct mo_buf b;

        mo_buf_init(&b, 100);
        while (rest.p) {
            mo_buf_span(&b, mo_span_cut(&rest, ','));
            mo_buf_putc(&b, '|');
        }
        check_row(rows[i].in, strcmp(mo_buf_cstr(&b), rows[i].out) == 0);
        mo_buf_fini(&b);
    }
}

static void numbers_are_read_whole_or_not(void **s)
{
    static const struct {
        const char *in;
        int u_rc;
        uint64_t u;
        int i_rc;
        int64_t i;
    } rows[] = {
        {"0", 0, 0, 0, 0},
        {"007", 0, 7, 0, 7},
        {"9223372036854775807", 0, INT64_MAX, 0, INT64_MAX},
        {"9223372036854775808", 0, (uint64_t)INT64_MAX + 1, MO_EINVAL, 0},
        {"18446744073709551615", 0, UINT64_MAX, MO_EINVAL, 0},
        {"18446744073709551616", MO_EINVAL, 0, MO_EINVAL, 0},
        {"99999999999999999999", MO_EINVAL, 0, MO_EINVAL, 0},
        {"-1", MO_EINVAL, 0, 0, -1},
        {"-0", MO_EINVAL, 0, 0, 0},
        {"-9223372036854775808", MO_EINVAL, 0, 0, INT64_MIN},
        {"-9223372036854775809", MO_EINVAL, 0, MO_EINVAL, 0},
        {"", MO_EINVAL, 0, MO_EINVAL, 0},
        {"-", MO_EINVAL, 0, MO_EINVAL, 0},
        {"--1", MO_EINVAL, 0, MO_EINVAL, 0},
        {"+1", MO_EINVAL, 0, MO_EINVAL, 0},
        {" 1", MO_EINVAL, 0, MO_EINVAL, 0},
        {"1 ", MO_EINVAL, 0, MO_EINVAL, 0},
        {"1a", MO_EINVAL, 0, MO_EINVAL, 0},
        {"0x1", MO_EINVAL, 0, MO_EINVAL, 0},
        {"1.0", MO_EINVAL, 0, MO_EINVAL, 0},
    };

    (void)s;
    for (size_t i = 0; i < MO_COUNT(rows); i++) {
        struct mo_span in = mo_span_cstr(rows[i].in);
        uint64_t u = 0;
        int64_t v = 0;

        check_row(rows[i].in, mo_span_u64(in, &u) == rows[i].u_rc);
        check_row(rows[i].in, u == rows[i].u);
        check_row(rows[i].in, mo_span_i64(in, &v) == rows[i].i_rc);
        check_row(rows[i].in, v == rows[i].i);
    }
}

static void numbers_are_written(void **s)
{
    struct mo_buf b;

    (void)s;
    mo_buf_init(&b, 200);
    mo_buf_u64(&b, 0);
    mo_buf_putc(&b, ' ');
    mo_buf_u64(&b, UINT64_MAX);
    mo_buf_putc(&b, ' ');
    mo_buf_i64(&b, INT64_MIN);
    mo_buf_putc(&b, ' ');
    mo_buf_i64(&b, INT64_MAX);
    mo_buf_printf(&b, " %s-%03d", "x", 7);
    assert_string_equal(mo_buf_cstr(&b),
                        "0 18446744073709551615 -9223372036854775808 "
                        "9223372036854775807 x-007");
    assert_int_equal(mo_buf_err(&b), 0);
    mo_buf_fini(&b);
}

/* For every small maximum: exactly that many bytes fit, whichever function puts
 * them, and the error sticks until the reset. */
static void buffers_end_at_their_maximum(void **s)
{
    (void)s;
    for (size_t max = 0; max < 200; max++) {
        struct mo_buf b;

        mo_buf_init(&b, max);
        for (size_t i = 0; i < max; i++)
            assert_int_equal(mo_buf_putc(&b, 'x'), 0);
        assert_int_equal(strlen(mo_buf_cstr(&b)), max);
        assert_int_equal(mo_buf_puts(&b, ""), 0);
        assert_int_equal(mo_buf_putc(&b, 'x'), MO_ETOOBIG);
        assert_int_equal(mo_buf_puts(&b, ""), MO_ETOOBIG);
        assert_int_equal(mo_buf_printf(&b, "%s", ""), MO_ETOOBIG);
        assert_null(mo_buf_room(&b, 0));
        assert_int_equal(mo_buf_err(&b), MO_ETOOBIG);
        assert_int_equal(mo_buf_view(&b).n, 0);
        assert_string_equal(mo_buf_cstr(&b), "");
        mo_buf_reset(&b);
        assert_int_equal(mo_buf_printf(&b, "%*s", (int)max, ""), 0);
        assert_int_equal(mo_buf_view(&b).n, max);
        assert_int_equal(mo_buf_printf(&b, "y"), MO_ETOOBIG);
        mo_buf_fini(&b);
    }
}

static void absurd_sizes_are_refused(void **s)
{
    struct mo_buf b;

    (void)s;
    mo_buf_init(&b, SIZE_MAX);
    assert_int_equal(mo_buf_puts(&b, "x"), 0);
    assert_null(mo_buf_room(&b, SIZE_MAX - 1));
    assert_int_equal(mo_buf_err(&b), MO_ETOOBIG);
    mo_buf_reset(&b);
    assert_null(mo_buf_room(&b, SIZE_MAX / 2 + 1));
    mo_buf_fini(&b);
}

static void room_add_drop(void **s)
{
    struct mo_buf b;
    char *at;

    (void)s;
    mo_buf_init(&b, 1000);
    mo_buf_puts(&b, "head");
    at = mo_buf_room(&b, 500);
    assert_non_null(at);
    memcpy(at, "tail", 4);
    mo_buf_add(&b, 4);
    assert_string_equal(mo_buf_cstr(&b), "headtail");
    mo_buf_drop(&b, 3);
    assert_string_equal(mo_buf_cstr(&b), "dtail");
    mo_buf_drop(&b, 0);
    assert_string_equal(mo_buf_cstr(&b), "dtail");
    mo_buf_drop(&b, 999);
    assert_int_equal(mo_buf_view(&b).n, 0);
    mo_buf_fini(&b);
    mo_buf_drop(&b, 1);
    mo_buf_add(&b, 0);
    assert_int_equal(mo_buf_puts(&b, "again"), 0); /* usable again after fini */
    mo_buf_fini(&b);
}

static void buf_body(void *ctx)
{
    struct mo_buf b;

    (void)ctx;
    mo_buf_init(&b, 5000);
    for (int i = 0; i < 100; i++) {
        mo_buf_printf(&b, "line %d ", i);
        mo_buf_u64(&b, UINT64_MAX);
    }
    if (mo_buf_err(&b)) {
        assert_int_equal(mo_buf_err(&b), MO_ENOMEM);
        assert_string_equal(mo_buf_cstr(&b), "");
    } else {
        assert_int_equal(strncmp(mo_buf_cstr(&b), "line 0 1844", 11), 0);
    }
    mo_buf_fini(&b);
    (void)mo_buf_cstr(&b);
    mo_buf_fini(&b);
}

static void buffers_survive_failures(void **s)
{
    (void)s;
    torture(buf_body, NULL);
}

static void buffers_free_themselves(void **s)
{
    int64_t before = mo_mem_live();

    (void)s;
    {
        mo_autobuf struct mo_buf b = {.max = 8};
        mo_autobuf struct mo_buf unused = {.max = 8};
        mo_autowipe struct mo_buf secret = {.max = 8};

        assert_int_equal(mo_buf_puts(&b, "12345678"), 0);
        assert_int_equal(mo_buf_putc(&b, '9'), MO_ETOOBIG);
        assert_int_equal(unused.len, 0);
        assert_int_equal(mo_buf_puts(&secret, "key"), 0);
    }
    assert_int_equal(mo_mem_live(), before);
}

static void test_hex(void **state)
{
    const unsigned char b[] = {0x00, 0x9f, 0xa0, 0xff};
    char out[2 * sizeof(b) + 1];

    (void)state;
    mo_hex(b, sizeof(b), out);
    assert_string_equal(out, "009fa0ff");
    mo_hex(b, 0, out);
    assert_string_equal(out, "");
}

static void only_these_bytes(void **state)
{
    (void)state;
    assert_true(mo_span_only(MO_SPAN("aZ9_"), MO_ALNUM "_"));
    assert_true(mo_span_only(MO_SPAN(""), "x"));
    assert_false(mo_span_only(MO_SPAN("a-"), MO_ALNUM "_"));
    assert_false(mo_span_only(MO_SPAN("a\0"), MO_ALNUM));
    assert_true(mo_span_between(MO_SPAN(" a~"), ' ', '~'));
    assert_true(mo_span_between(MO_SPAN(""), ' ', '~'));
    assert_false(mo_span_between(MO_SPAN("a\n"), ' ', '~'));
    assert_false(mo_span_between(MO_SPAN("\xc3\xa9"), ' ', '~'));
    assert_false(mo_span_between(MO_SPAN("a b"), '!', '~'));
}

static void tails_keep_the_last_bytes(void **state)
{
    static const struct {
        const char *more, *tail;
    } steps[] = {
        {"ab", "ab"},  {"", "ab"},       {"cd", "abcd"},     {"ef", "cdef"},
        {"g", "defg"}, {"hijk", "hijk"}, {"lmnopq", "nopq"},
    };
    char tail[4];
    size_t n = 0;

    (void)state;
    for (size_t i = 0; i < MO_COUNT(steps); i++) {
        n = mo_tail_add(tail, n, sizeof(tail), mo_span_cstr(steps[i].more));
        assert_true(mo_span_is(mo_span(tail, n), steps[i].tail));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(only_these_bytes),
        cmocka_unit_test(tails_keep_the_last_bytes),
        cmocka_unit_test(test_hex),
        cmocka_unit_test(spans_of_strings),
        cmocka_unit_test(skip_and_head_clamp),
        cmocka_unit_test(trim_takes_blanks_only),
        cmocka_unit_test(comparisons),
        cmocka_unit_test(find_and_search),
        cmocka_unit_test(cut_gives_every_piece),
        cmocka_unit_test(numbers_are_read_whole_or_not),
        cmocka_unit_test(numbers_are_written),
        cmocka_unit_test(buffers_end_at_their_maximum),
        cmocka_unit_test(absurd_sizes_are_refused),
        cmocka_unit_test(room_add_drop),
        cmocka_unit_test(buffers_survive_failures),
        cmocka_unit_test(buffers_free_themselves),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
