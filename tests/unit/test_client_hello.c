/* The host name in a ClientHello, whole and in pieces. */
#include "codec/client_hello.h"

#include "mo_test.h"

static void put16(struct mo_buf *b, size_t v)
{
    mo_buf_putc(b, (char)(v >> 8));
    mo_buf_putc(b, (char)v);
}

static void put_extension(struct mo_buf *b, unsigned type, struct mo_span body)
{
    put16(b, type);
    put16(b, body.n);
    mo_buf_span(b, body);
}

static void put_name(struct mo_buf *b, struct mo_span name)
{
    mo_autobuf struct mo_buf body = {.max = 4096};

    put16(&body, name.n + 3);
    mo_buf_putc(&body, 0);
    put16(&body, name.n);
    mo_buf_span(&body, name);
    put_extension(b, 0, mo_buf_view(&body));
}

/* A handshake message of that type with these extensions. */
static void put_message(struct mo_buf *b, char type, struct mo_span extensions)
{
    static const char fixed[34] = {3, 3};
    size_t n = sizeof(fixed) + 1 + 4 + 2 + 2 + extensions.n;

    mo_buf_putc(b, type);
    mo_buf_putc(b, 0);
    put16(b, n);
    mo_buf_put(b, fixed, sizeof(fixed));
    mo_buf_putc(b, 0);                    /* session */
    mo_buf_put(b, "\x00\x02\x13\x01", 4); /* ciphers */
    mo_buf_put(b, "\x01\x00", 2);         /* compression */
    put16(b, extensions.n);
    mo_buf_span(b, extensions);
}

/* As records of at most `size` bytes. */
static void put_records(struct mo_buf *b, struct mo_span message, size_t size)
{
    while (message.n) {
        struct mo_span part = mo_span_take(&message, size);

        mo_buf_put(b, "\x16\x03\x01", 3);
        put16(b, part.n);
        mo_buf_span(b, part);
    }
}

static void make_hello(struct mo_buf *b, struct mo_span extensions,
                       size_t record)
{
    mo_autobuf struct mo_buf m = {.max = 1 << 20};

    mo_buf_reset(b);
    put_message(&m, 1, extensions);
    put_records(b, mo_buf_view(&m), record);
}

/* Every cut asks for more, the whole is read. */
static void check_pieces(const struct mo_buf *b, int rc, const char *name)
{
    struct mo_hello h;

    for (size_t n = 0; n < b->len; n++)
        assert_int_equal(mo_hello_read(mo_span(b->p, n), &h), 0);
    assert_int_equal(mo_hello_read(mo_buf_view(b), &h), rc);
    assert_int_equal(h.name_len, strlen(name));
    if (*name)
        assert_string_equal(h.name, name);
}

static void test_good(void **state)
{
    mo_autobuf struct mo_buf ext = {.max = 4096}, b = {.max = 8192};

    (void)state;
    put_extension(&ext, 43, MO_SPAN("\x02\x03\x04"));
    make_hello(&b, mo_buf_view(&ext), 4096);
    check_pieces(&b, 1, "");
    put_name(&ext, MO_SPAN("api.test"));
    put_extension(&ext, 16, MO_SPAN("\x00\x03\x02h2"));
    make_hello(&b, mo_buf_view(&ext), 4096);
    check_pieces(&b, 1, "api.test");
    make_hello(&b, mo_buf_view(&ext), 7);
    check_pieces(&b, 1, "api.test");
    make_hello(&b, mo_buf_view(&ext), 1);
    check_pieces(&b, 1, "api.test");
}

static void check_bad(struct mo_span extensions, int rc)
{
    mo_autobuf struct mo_buf b = {.max = 1 << 20};
    struct mo_hello h;

    make_hello(&b, extensions, 4096);
    assert_int_equal(mo_hello_read(mo_buf_view(&b), &h), rc);
}

static void test_bad(void **state)
{
    mo_autobuf struct mo_buf ext = {.max = 1 << 20};
    char name[300];

    (void)state;
    memset(name, 'a', sizeof(name));
    put_name(&ext, MO_SPAN("api.test"));
    put_name(&ext, MO_SPAN("other.test"));
    check_bad(mo_buf_view(&ext), MO_EPROTO); /* two */
    mo_buf_reset(&ext);
    put_name(&ext, MO_SPAN("api\0.test"));
    check_bad(mo_buf_view(&ext), MO_EPROTO);
    mo_buf_reset(&ext);
    put_name(&ext, mo_span(name, MO_HELLO_NAME_MAX + 1));
    check_bad(mo_buf_view(&ext), MO_EPROTO);
    mo_buf_reset(&ext);
    put_name(&ext, MO_SPAN(""));
    check_bad(mo_buf_view(&ext), MO_EPROTO);
    check_bad(MO_SPAN("\x00\x00\x00\x00"), MO_EPROTO); /* no list */
    check_bad(MO_SPAN("\x00\x00\x00\x09"), MO_EPROTO); /* cut */
    check_bad(MO_SPAN("\x00"), MO_EPROTO);
    mo_buf_reset(&ext);
    while (ext.len < MO_HELLO_MAX)
        put_extension(&ext, 21, mo_span(name, sizeof(name)));
    check_bad(mo_buf_view(&ext), MO_ETOOBIG);
}

static void test_not_tls(void **state)
{
    mo_autobuf struct mo_buf m = {.max = 4096}, b = {.max = 8192};
    struct mo_hello h;

    (void)state;
    assert_true(mo_hello_starts(MO_SPAN("")));
    assert_true(mo_hello_starts(MO_SPAN("\x16")));
    assert_true(mo_hello_starts(MO_SPAN("\x16\x03")));
    assert_false(mo_hello_starts(MO_SPAN("\x16\x02")));
    assert_false(mo_hello_starts(MO_SPAN("GET / HTTP/1.1")));
    assert_int_equal(mo_hello_read(MO_SPAN("GET /"), &h), MO_EPROTO);
    put_message(&m, 2, MO_SPAN("")); /* ServerHello */
    put_records(&b, mo_buf_view(&m), 4096);
    assert_int_equal(mo_hello_read(mo_buf_view(&b), &h), MO_EPROTO);
    assert_int_equal(mo_hello_read(MO_SPAN("\x16\x03\x01\x00\x00"), &h),
                     MO_EPROTO); /* an empty record */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_good),
        cmocka_unit_test(test_bad),
        cmocka_unit_test(test_not_tls),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
