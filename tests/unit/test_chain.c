/* Lines that cannot be changed, taken out or moved unnoticed. */
#include "codec/chain.h"

#include "mo_test.h"

#define LINES 5

static struct mo_hmac key; /* of the test */

static void make(struct mo_buf *b, size_t n, const struct mo_hmac *with)
{
    struct mo_chain c;
    struct mo_err e;
    char row[64];

    mo_chain_init(&c, with);
    for (size_t i = 0; i < n; i++) {
        (void)snprintf(row, sizeof(row), "\"n\":%zu,\"t\":\"a\\nb\"", i);
        assert_int_equal(mo_chain_put(&c, mo_span_cstr(row), b, &e), 0);
    }
}

/* How many lines are good, from the first on. */
static size_t good_with(struct mo_span text, const struct mo_hmac *with)
{
    struct mo_chain c;
    struct mo_err e;
    size_t n = 0;

    mo_chain_init(&c, with);
    while (text.n) {
        struct mo_span line = mo_span_cut(&text, '\n');

        if (!text.p || mo_chain_check(&c, line, &e) < 0)
            break;
        n++;
    }
    return n;
}

static size_t good(struct mo_span text)
{
    return good_with(text, &key);
}

static void test_known(void **state)
{
    static const char want[] =
        "{\"seq\":1,\"prev\":"
        "\"0000000000000000000000000000000000000000000000000000000000000000\","
        "\"a\":1,\"hash\":"
        "\"79d849221fb23cd49e2bc95431e155e121723309f579af3db1cc2677c5ec6407\"}"
        "\n";
    struct mo_chain c, again = {.key = NULL};
    struct mo_err e;
    struct mo_buf b;

    (void)state;
    mo_buf_init(&b, 4096);
    mo_chain_init(&c, NULL);
    assert_int_equal(mo_chain_put(&c, MO_SPAN("\"a\":1"), &b, &e), 0);
    assert_int_equal(b.len, sizeof(want) - 1);
    assert_memory_equal(b.p, want, b.len);
    assert_int_equal(mo_chain_resume(&again, mo_span(b.p, b.len - 1), &e), 0);
    assert_int_equal(again.seq, 1);
    assert_string_equal(again.hash, c.hash);
    assert_int_equal(mo_chain_put(&c, MO_SPAN("\"a\":\n1"), &b, &e), MO_EINVAL);
    assert_int_equal(mo_chain_put(&c, MO_SPAN(""), &b, &e), MO_EINVAL);
    assert_int_equal(c.seq, 1);
    mo_buf_fini(&b);
}

/* Every byte, every bit, and every other value of it. */
static void test_any_byte(void **state)
{
    struct mo_buf b;

    (void)state;
    mo_buf_init(&b, 65536);
    make(&b, LINES, &key);
    assert_int_equal(good(mo_buf_view(&b)), LINES);
    for (size_t i = 0; i < b.len; i++) {
        for (unsigned x = 1; x < 256; x++) {
            b.p[i] = (char)((unsigned char)b.p[i] ^ x);
            if (good(mo_buf_view(&b)) >= LINES)
                fail_msg("byte %zu ^ %u goes unnoticed", i, x);
            b.p[i] = (char)((unsigned char)b.p[i] ^ x);
        }
    }
    mo_buf_fini(&b);
}

static void test_lines(void **state)
{
    static const struct {
        const char *name;
        unsigned order[LINES + 1];
        size_t n, good;
    } rows[] = {
        {"as they are", {0, 1, 2, 3, 4}, 5, 5},
        {"the first is gone", {1, 2, 3, 4}, 4, 0},
        {"one is gone", {0, 1, 3, 4}, 4, 2},
        {"two are swapped", {0, 2, 1, 3, 4}, 5, 1},
        {"one is there twice", {0, 1, 1, 2, 3, 4}, 6, 2},
        {"backwards", {4, 3, 2, 1, 0}, 5, 0},
    };
    struct mo_span lines[LINES], rest;
    struct mo_buf b, other;

    (void)state;
    mo_buf_init(&b, 65536);
    mo_buf_init(&other, 65536);
    make(&b, LINES, &key);
    rest = mo_buf_view(&b);
    for (size_t i = 0; i < LINES; i++)
        lines[i] = mo_span_cut(&rest, '\n');
    for (size_t i = 0; i < MO_COUNT(rows); i++) {
        mo_buf_reset(&other);
        for (size_t k = 0; k < rows[i].n; k++) {
            (void)mo_buf_span(&other, lines[rows[i].order[k]]);
            (void)mo_buf_putc(&other, '\n');
        }
        check_row(rows[i].name, good(mo_buf_view(&other)) == rows[i].good);
    }
    mo_buf_fini(&other);
    mo_buf_fini(&b);
}

static void test_bad(void **state)
{
    static const char *const rows[] = {
        "",
        "{}",
        "{\"seq\":1}",
        "not JSON at all",
        "{\"seq\":0,\"prev\":\"\",\"hash\":\"\"}",
    };
    struct mo_chain c;
    struct mo_err e;

    (void)state;
    mo_chain_init(&c, NULL);
    c.open = true;
    for (size_t i = 0; i < MO_COUNT(rows); i++)
        check_row(rows[i],
                  mo_chain_check(&c, mo_span_cstr(rows[i]), &e) == MO_EPROTO);
    assert_true(c.open);
}

/* Whoever has no key, or another one, can neither check nor write. */
static void test_keys(void **state)
{
    struct mo_hmac other;
    struct mo_chain c;
    struct mo_err e;
    struct mo_buf b;

    (void)state;
    mo_buf_init(&b, 65536);
    mo_hmac_init(&other, MO_SPAN("another key"));
    make(&b, LINES, &key);
    assert_int_equal(good_with(mo_buf_view(&b), &other), 0);
    assert_int_equal(good_with(mo_buf_view(&b), NULL), 0);
    mo_buf_reset(&b); /* unkeyed lines, then a keyed one, then none */
    mo_chain_init(&c, NULL);
    assert_int_equal(mo_chain_put(&c, MO_SPAN("\"a\":1"), &b, &e), 0);
    c.key = &key;
    assert_int_equal(mo_chain_put(&c, MO_SPAN("\"a\":2"), &b, &e), 0);
    assert_int_equal(good(mo_buf_view(&b)), 2);
    c.key = NULL;
    assert_int_equal(mo_chain_put(&c, MO_SPAN("\"a\":3"), &b, &e), 0);
    assert_int_equal(good(mo_buf_view(&b)), 2);
    mo_buf_fini(&b);
}

static void body(void *ctx)
{
    struct mo_chain c;
    struct mo_err e;
    struct mo_buf b;

    (void)ctx;
    mo_buf_init(&b, 4096);
    mo_chain_init(&c, NULL);
    if (mo_chain_put(&c, MO_SPAN("\"a\":1"), &b, &e) < 0)
        assert_int_equal(c.seq, 0);
    mo_buf_fini(&b);
}

static void test_torture(void **state)
{
    (void)state;
    torture(body, NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_known),   cmocka_unit_test(test_any_byte),
        cmocka_unit_test(test_lines),   cmocka_unit_test(test_bad),
        cmocka_unit_test(test_torture), cmocka_unit_test(test_keys),
    };

    mo_hmac_init(&key, MO_SPAN("the key of this test"));
    return cmocka_run_group_tests(tests, NULL, NULL);
}
