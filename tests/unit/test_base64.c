#include "codec/text/base64.h"
#include "mo_test.h"

#define MAX 4096

static const struct {
    struct mo_span plain;
    const char *std, *url;
} pairs[] = {
    {MO_SPAN(""), "", ""},
    {MO_SPAN("f"), "Zg==", "Zg"},
    {MO_SPAN("fo"), "Zm8=", "Zm8"},
    {MO_SPAN("foo"), "Zm9v", "Zm9v"},
    {MO_SPAN("foob"), "Zm9vYg==", "Zm9vYg"},
    {MO_SPAN("fooba"), "Zm9vYmE=", "Zm9vYmE"},
    {MO_SPAN("foobar"), "Zm9vYmFy", "Zm9vYmFy"},
    {MO_SPAN("\xff\xff\xff"), "////", "____"},
    {MO_SPAN("\xfb\xef\xbe"), "++++", "----"},
    {MO_SPAN("\0\0\0"), "AAAA", "AAAA"},
    {MO_SPAN("\xff"), "/w==", "_w"},
};

static const struct {
    const char *name, *in;
    bool url;
} bad[] = {
    {"no padding", "Zg", false},
    {"half padding", "Zg=", false},
    {"one character", "Z", false},
    {"padding only", "====", false},
    {"two paddings only", "==", false},
    {"three paddings", "Z===", false},
    {"padding inside", "Zg==Zg==", false},
    {"padding in front", "=Zg=", false},
    {"padding third of four", "Zm=v", false},
    {"too much padding", "Zm9v====", false},
    {"blank", "Zm 9v", false},
    {"blank of full length", "Zm 9", false},
    {"newline", "Zm9v\n", false},
    {"newline of full length", "Zm9\n", false},
    {"spare bit 1 of one byte", "Zh==", false},
    {"spare bit 2 of one byte", "Zi==", false},
    {"spare bit 4 of one byte", "Zk==", false},
    {"spare bit 8 of one byte", "Zo==", false},
    {"spare bit 1 of two bytes", "Zm9=", false},
    {"spare bit 2 of two bytes", "Zm+=", false},
    {"url character", "-_-_", false},
    {"high byte", "Zm9\xc3", false},
    {"url: padded", "Zg==", true},
    {"url: one character", "Z", true},
    {"url: five characters", "Zm9vZ", true},
    {"url: spare bits", "Zh", true},
    {"url: spare bits of two bytes", "Zm9", true},
    {"url: standard character", "++++", true},
    {"url: slash", "Zm9/", true},
    {"url: blank", "Zm 9", true},
};

static void test_pairs(void **state)
{
    struct mo_buf b;

    (void)state;
    mo_buf_init(&b, MAX);
    for (size_t i = 0; i < MO_COUNT(pairs); i++) {
        mo_buf_reset(&b);
        assert_int_equal(mo_base64_put(&b, pairs[i].plain), 0);
        check_row(pairs[i].std, mo_span_is(mo_buf_view(&b), pairs[i].std));
        mo_buf_reset(&b);
        assert_int_equal(mo_base64url_put(&b, pairs[i].plain), 0);
        check_row(pairs[i].url, mo_span_is(mo_buf_view(&b), pairs[i].url));
        mo_buf_reset(&b);
        assert_int_equal(mo_base64_decode(mo_span_cstr(pairs[i].std), &b), 0);
        check_row(pairs[i].std, mo_span_eq(mo_buf_view(&b), pairs[i].plain));
        mo_buf_reset(&b);
        assert_int_equal(mo_base64url_decode(mo_span_cstr(pairs[i].url), &b),
                         0);
        check_row(pairs[i].url, mo_span_eq(mo_buf_view(&b), pairs[i].plain));
    }
    mo_buf_fini(&b);
}

static void test_bad(void **state)
{
    struct mo_buf b;

    (void)state;
    mo_buf_init(&b, MAX);
    mo_buf_puts(&b, "kept");
    for (size_t i = 0; i < MO_COUNT(bad); i++) {
        struct mo_span in = mo_span_cstr(bad[i].in);
        int rc =
            bad[i].url ? mo_base64url_decode(in, &b) : mo_base64_decode(in, &b);

        check_row(bad[i].name, rc == MO_EPROTO);
        check_row(bad[i].name, mo_span_is(mo_buf_view(&b), "kept"));
    }
    mo_buf_fini(&b);
}

/* Every byte that is not in the alphabet is refused in every place. */
static void test_every_byte(void **state)
{
    struct mo_buf b;
    int good = 0;

    (void)state;
    mo_buf_init(&b, MAX);
    for (int c = 0; c < 256; c++) {
        for (size_t at = 0; at < 4; at++) {
            char in[8] = "AAAAAAAA";

            in[at] = (char)c;
            mo_buf_reset(&b);
            good += mo_base64_decode(mo_span(in, 8), &b) == 0;
        }
    }
    assert_int_equal(good, 64 * 4);
    mo_buf_fini(&b);
}

static void test_round_trip(void **state)
{
    struct mo_buf text, back;
    char in[200];

    (void)state;
    mo_buf_init(&text, MAX);
    mo_buf_init(&back, MAX);
    for (size_t n = 0; n <= sizeof(in); n++) {
        for (size_t i = 0; i < n; i++)
            in[i] = (char)(i * 37 + n * 11);
        mo_buf_reset(&text);
        mo_buf_reset(&back);
        assert_int_equal(mo_base64_put(&text, mo_span(in, n)), 0);
        assert_int_equal(mo_base64_decode(mo_buf_view(&text), &back), 0);
        assert_int_equal(mo_base64url_put(&text, mo_span(in, n)), 0);
        assert_true(mo_span_eq(mo_buf_view(&back), mo_span(in, n)));
    }
    mo_buf_fini(&text);
    mo_buf_fini(&back);
}

static void test_limits(void **state)
{
    struct mo_buf b;

    (void)state;
    mo_buf_init(&b, 8);
    assert_int_equal(mo_base64_put(&b, MO_SPAN("foobar")), 0);
    assert_int_equal(mo_base64_put(&b, MO_SPAN("f")), MO_ETOOBIG);
    mo_buf_reset(&b);
    assert_int_equal(mo_base64_decode(MO_SPAN("Zm9vYmFyZm9v"), &b), MO_ETOOBIG);
    assert_int_equal(mo_base64_put(&b, MO_SPAN("")), MO_ETOOBIG);
    mo_buf_fini(&b);
}

static void use_memory(void *ctx)
{
    struct mo_buf text, back;
    int rc;

    (void)ctx;
    mo_buf_init(&text, MAX);
    mo_buf_init(&back, MAX);
    rc = mo_base64_put(&text, MO_SPAN("some bytes to be carried"));
    assert_true(rc == 0 || rc == MO_ENOMEM);
    rc = mo_base64_decode(MO_SPAN("c29tZSBieXRlcw=="), &back);
    assert_true(rc == 0 || rc == MO_ENOMEM);
    mo_buf_fini(&text);
    mo_buf_fini(&back);
}

static void test_no_memory(void **state)
{
    (void)state;
    torture(use_memory, NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_pairs),      cmocka_unit_test(test_bad),
        cmocka_unit_test(test_every_byte), cmocka_unit_test(test_round_trip),
        cmocka_unit_test(test_limits),     cmocka_unit_test(test_no_memory),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
