/* Header blocks: the examples of RFC 7541, blocks that are not valid, and what
 * is written. */
#include "codec/http/hpack.h"

#include "mo_test.h"

static int on_field(void *ctx, struct mo_span name, struct mo_span value,
                    struct mo_err *e)
{
    (void)e;
    mo_buf_span(ctx, name);
    mo_buf_puts(ctx, ": ");
    mo_buf_span(ctx, value);
    return mo_buf_puts(ctx, "\n");
}

static unsigned digit(char c)
{
    return c <= '9' ? (unsigned)(c - '0') : (unsigned)(c - 'a') + 10;
}

static int read_hex(struct mo_hpack *h, const char *hex, struct mo_buf *out)
{
    mo_autobuf struct mo_buf block = {.max = 1 << 16};

    for (; *hex; hex += 2)
        mo_buf_putc(&block, (char)(digit(hex[0]) << 4 | digit(hex[1])));
    mo_buf_reset(out);
    return mo_hpack_read(h, mo_buf_view(&block), on_field, out, NULL);
}

/* RFC 7541, C.3 (plain) and C.4 (Huffman): three requests of one connection. */
static void test_examples(void **state)
{
    static const char *const blocks[][3] = {
        {"828684410f7777772e6578616d706c652e636f6d",
         "828684be58086e6f2d6361636865",
         "828785bf400a637573746f6d2d6b65790c637573746f6d2d76616c7565"},
        {"828684418cf1e3c2e5f23a6ba0ab90f4ff", "828684be5886a8eb10649cbf",
         "828785bf408825a849e95ba97d7f8925a849e95bb8e8b4bf"},
    };
    static const char *const want[] = {
        ":method: GET\n:scheme: http\n:path: /\n:authority: www.example.com\n",
        ":method: GET\n:scheme: http\n:path: /\n:authority: www.example.com\n"
        "cache-control: no-cache\n",
        ":method: GET\n:scheme: https\n:path: /index.html\n"
        ":authority: www.example.com\ncustom-key: custom-value\n",
    };
    mo_autobuf struct mo_buf out = {.max = 4096};

    (void)state;
    for (size_t k = 0; k < 2; k++) {
        struct mo_hpack *h = mo_hpack_new();

        for (size_t i = 0; i < 3; i++) {
            assert_int_equal(read_hex(h, blocks[k][i], &out), 0);
            assert_string_equal(mo_buf_cstr(&out), want[i]);
        }
        mo_hpack_free(h);
    }
}

static void test_bad(void **state)
{
    static const struct {
        const char *name, *hex;
    } rows[] = {
        {"index 0", "80"},
        {"index behind the table", "be"},
        {"name behind the table", "7e0161"},
        {"no value", "4001"},
        {"a short value", "40016103"},
        {"a number without end", "ffffffffffffff"},
        {"a number that is cut", "ff"},
        {"a large number", "ffffffff7f"},
        {"padding of zeros", "0001618100"},
        {"padding of a byte", "0001618318ffff"},
        {"the end symbol", "00016184ffffffff"},
        {"a table that is too large", "3fe2ff03"},
        {"a size in the middle", "8220"},
    };
    mo_autobuf struct mo_buf out = {.max = 4096};

    (void)state;
    for (size_t i = 0; i < MO_COUNT(rows); i++) {
        struct mo_hpack *h = mo_hpack_new();

        check_row(rows[i].name, read_hex(h, rows[i].hex, &out) < 0);
        mo_hpack_free(h);
    }
}

/* The oldest entries go first; an entry that is too large empties it. */
static void test_table(void **state)
{
    mo_autobuf struct mo_buf out = {.max = 4096};
    struct mo_hpack *h = mo_hpack_new();

    (void)state;
    /* size 102: three entries of 34 bytes */
    assert_int_equal(read_hex(h,
                              "3f47"
                              "4001610131"
                              "4001620132"
                              "4001630133"
                              "bebfc0",
                              &out),
                     0);
    assert_string_equal(mo_buf_cstr(&out),
                        "a: 1\nb: 2\nc: 3\nc: 3\nb: 2\na: 1\n");
    /* the name of the entry that goes is used for the new one */
    assert_int_equal(read_hex(h, "7f010134bebfc0", &out), 0);
    assert_string_equal(mo_buf_cstr(&out), "a: 4\na: 4\nc: 3\nb: 2\n");
    assert_true(read_hex(h, "c1", &out) < 0);
    assert_int_equal(read_hex(h, "203f47", &out), 0);
    assert_true(read_hex(h, "be", &out) < 0);
    mo_hpack_free(h);
}

/* Many fields of one byte each that stand for long ones. */
static void test_bomb(void **state)
{
    mo_autobuf struct mo_buf block = {.max = 1 << 16};
    mo_autobuf struct mo_buf out = {.max = 1 << 20};
    struct mo_hpack *h = mo_hpack_new();
    struct mo_err e = {0};

    (void)state;
    mo_buf_put(&block, "\x40\x01x\x7f\xa1\x1e", 6); /* 4000 bytes */
    for (size_t i = 0; i < 4000; i++)
        mo_buf_putc(&block, 'v');
    for (size_t i = 0; i < 40; i++)
        mo_buf_putc(&block, (char)0xBE);
    assert_int_equal(mo_hpack_read(h, mo_buf_view(&block), on_field, &out, &e),
                     MO_ETOOBIG);
    mo_hpack_free(h);
}

static void test_writing(void **state)
{
    mo_autobuf struct mo_buf block = {.max = 1 << 16}, out = {.max = 1 << 16},
                             value = {.max = 1 << 16};
    struct mo_hpack *h = mo_hpack_new();

    (void)state;
    for (size_t n = 0; n < 300; n++)
        mo_buf_putc(&value, (char)('a' + n % 26));
    mo_hpack_put_start(&block);
    mo_hpack_put(&block, MO_SPAN("a"), MO_SPAN(""), false);
    mo_hpack_put(&block, MO_SPAN("b"), mo_buf_view(&value), true);
    assert_int_equal(
        mo_hpack_read(h, mo_buf_view(&block), on_field, &out, NULL), 0);
    assert_true(mo_span_starts(mo_buf_view(&out), MO_SPAN("a: \nb: abcdef")));
    assert_int_equal(out.len, 4 + 3 + 300 + 1);
    mo_hpack_free(h);
}

static void read_all(void *ctx)
{
    mo_autobuf struct mo_buf out = {.max = 4096};
    struct mo_hpack *h = mo_hpack_new();

    (void)ctx;
    if (h)
        (void)read_hex(h, "828785418cf1e3c2e5f23a6ba0ab90f4ff4001610131", &out);
    mo_hpack_free(h);
}

static void test_torture(void **state)
{
    (void)state;
    torture(read_all, NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_examples), cmocka_unit_test(test_bad),
        cmocka_unit_test(test_table),    cmocka_unit_test(test_bomb),
        cmocka_unit_test(test_writing),  cmocka_unit_test(test_torture),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
