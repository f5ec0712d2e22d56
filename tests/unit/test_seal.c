/* Sealed state: what comes back is what went out, or nothing. */
#include "mcp/server/seal.h"
#include "mo_test.h"

#define MAX ((size_t)1024 * 1024)

static const struct {
    const char *name, *put_bind, *open_bind, *plain;
    uint64_t expires, now;
    int rc;
} rows[] = {
    {"round trip", "me", "me", "hello", 100, 50, 0},
    {"empty", "me", "me", "", 100, 50, 0},
    {"longer than a keystream block", "me", "me",
     "0123456789012345678901234567890123456789012345678901234567890123456789",
     100, 50, 0},
    {"the last moment", "me", "me", "x", 100, 100, 0},
    {"too old", "me", "me", "x", 100, 101, MO_ETIMEOUT},
    {"somebody else's", "me", "you", "x", 100, 50, MO_EPROTO},
    {"bind is not moved into the text", "me", "m", "x", 100, 50, MO_EPROTO},
};

static void test_rows(void **state)
{
    struct mo_seal s;

    (void)state;
    mo_seal_init(&s);
    for (size_t i = 0; i < MO_COUNT(rows); i++) {
        struct mo_buf text, plain;
        int rc;

        mo_buf_init(&text, MAX);
        mo_buf_init(&plain, MAX);
        assert_int_equal(mo_seal_put(&s, mo_span_cstr(rows[i].put_bind),
                                     rows[i].expires,
                                     mo_span_cstr(rows[i].plain), &text),
                         0);
        rc = mo_seal_open(&s, mo_span_cstr(rows[i].open_bind), rows[i].now,
                          mo_buf_view(&text), &plain);
        check_row(rows[i].name, rc == rows[i].rc);
        check_row(rows[i].name,
                  mo_span_is(mo_buf_view(&plain), rc ? "" : rows[i].plain));
        mo_buf_fini(&text);
        mo_buf_fini(&plain);
    }
}

/* Every byte of the text changed in turn, every prefix, and one more byte. */
static void test_tampered(void **state)
{
    static const char secret[] = "a secret thing";
    struct mo_buf text, plain;
    struct mo_seal s, other;
    struct mo_span bind = MO_SPAN("b");

    (void)state;
    mo_seal_init(&s);
    mo_seal_init(&other);
    mo_buf_init(&text, MAX);
    mo_buf_init(&plain, MAX);
    assert_int_equal(mo_seal_put(&s, bind, 9, mo_span_cstr(secret), &text), 0);
    assert_true(mo_span_search(mo_buf_view(&text), MO_SPAN("secret")) < 0);
    for (size_t i = 0; i < text.len; i++) {
        char was = text.p[i];

        text.p[i] = was == 'A' ? 'B' : 'A';
        assert_int_equal(mo_seal_open(&s, bind, 1, mo_buf_view(&text), &plain),
                         MO_EPROTO);
        text.p[i] = was;
        assert_int_equal(mo_seal_open(&s, bind, 1, mo_span(text.p, i), &plain),
                         MO_EPROTO);
    }
    assert_int_equal(mo_seal_open(&other, bind, 1, mo_buf_view(&text), &plain),
                     MO_EPROTO);
    assert_int_equal(plain.len, 0);
    assert_int_equal(mo_seal_open(&s, bind, 1, mo_buf_view(&text), &plain), 0);
    assert_int_equal(mo_buf_putc(&text, 'A'), 0);
    assert_int_equal(mo_seal_open(&s, bind, 1, mo_buf_view(&text), &plain),
                     MO_EPROTO);
    mo_buf_fini(&text);
    mo_buf_fini(&plain);
}

static void test_twice_differs(void **state)
{
    struct mo_buf a, b;
    struct mo_seal s;

    (void)state;
    mo_seal_init(&s);
    mo_buf_init(&a, MAX);
    mo_buf_init(&b, MAX);
    assert_int_equal(mo_seal_put(&s, MO_SPAN(""), 1, MO_SPAN("x"), &a), 0);
    assert_int_equal(mo_seal_put(&s, MO_SPAN(""), 1, MO_SPAN("x"), &b), 0);
    assert_int_equal(a.len, b.len);
    assert_memory_not_equal(a.p, b.p, a.len);
    mo_buf_fini(&a);
    mo_buf_fini(&b);
}

static void test_too_big(void **state)
{
    static char big[MO_SEAL_MAX];
    struct mo_buf text;
    struct mo_seal s;

    (void)state;
    mo_seal_init(&s);
    mo_buf_init(&text, MAX);
    assert_int_equal(
        mo_seal_put(&s, MO_SPAN(""), 1, mo_span(big, sizeof(big)), &text),
        MO_ETOOBIG);
    mo_buf_fini(&text);
}

static void no_memory(void *ctx)
{
    struct mo_buf text, plain;
    struct mo_seal s;

    (void)ctx;
    mo_seal_init(&s);
    mo_buf_init(&text, MAX);
    mo_buf_init(&plain, MAX);
    if (mo_seal_put(&s, MO_SPAN("b"), 9, MO_SPAN("plain"), &text) == 0 &&
        mo_seal_open(&s, MO_SPAN("b"), 1, mo_buf_view(&text), &plain) == 0)
        assert_true(mo_span_is(mo_buf_view(&plain), "plain"));
    mo_buf_fini(&text);
    mo_buf_fini(&plain);
}

static void test_torture(void **state)
{
    (void)state;
    torture(no_memory, NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_rows),          cmocka_unit_test(test_tampered),
        cmocka_unit_test(test_twice_differs), cmocka_unit_test(test_too_big),
        cmocka_unit_test(test_torture),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
