/* The OTLP writer: the same message in both encodings, byte by byte. */
#include "mo_test.h"
#include "trace/otlp.h"

static void put_all(struct mo_otlp *o)
{
    const uint8_t id[] = {0x01, 0xab};

    mo_otlp_text(o, 1, "text", MO_SPAN("h\"i"));
    mo_otlp_id(o, 2, "id", id, sizeof(id));
    mo_otlp_fixed64(o, 3, "at", 0x0102030405060708u);
    mo_otlp_fixed32(o, 4, "flags", 0x101);
    mo_otlp_int64(o, 5, "less", -2);
    mo_otlp_number(o, 16, "kind", 300);
    mo_otlp_flag(o, 7, "is", true);
    mo_otlp_double(o, 8, "half", 0.5);
    mo_otlp_fixed64s(o, 10, "counts", (const uint64_t[]){1, 2}, 2);
    mo_otlp_doubles(o, 11, "bounds", (const double[]){0.5}, 1);
    mo_otlp_list(o, "attributes");
    mo_otlp_attr(o, 9, "k", MO_SPAN("v"));
    mo_otlp_attr_int(o, 9, "n", 7);
    mo_otlp_attr_one(o, 9, "l", MO_SPAN("x"));
    mo_otlp_attr_double(o, 9, "d", 0.5);
    mo_otlp_list_end(o);
}

static void test_protobuf(void **state)
{
    static const char want[] = "\x0a\x03h\"i"
                               "\x12\x02\x01\xab"
                               "\x19\x08\x07\x06\x05\x04\x03\x02\x01"
                               "\x25\x01\x01\x00\x00"
                               "\x28\xfe\xff\xff\xff\xff\xff\xff\xff\xff\x01"
                               "\x80\x01\xac\x02"
                               "\x38\x01"
                               "\x41\x00\x00\x00\x00\x00\x00\xe0\x3f"
                               "\x52\x10\x01\0\0\0\0\0\0\0"
                               "\x02\0\0\0\0\0\0\0"
                               "\x5a\x08\0\0\0\0\0\0\xe0\x3f"
                               "\x4a\x08\x0a\x01k\x12\x03\x0a\x01v"
                               "\x4a\x07\x0a\x01n\x12\x02\x18\x07"
                               "\x4a\x0c\x0a\x01l\x12\x07\x2a\x05\x0a\x03\x0a"
                               "\x01x"
                               "\x4a\x0e\x0a\x01\x64\x12\x09\x21\0\0\0\0\0\0"
                               "\xe0\x3f";
    mo_autobuf struct mo_buf b = {.max = 4096};
    struct mo_otlp o;

    (void)state;
    mo_otlp_init(&o, &b, MO_OTLP_PROTOBUF);
    put_all(&o);
    assert_int_equal(mo_otlp_fini(&o), 0);
    assert_int_equal(b.len, sizeof(want) - 1);
    assert_memory_equal(b.p, want, b.len);
}

static void test_json(void **state)
{
    mo_autobuf struct mo_buf b = {.max = 4096};
    struct mo_otlp o;

    (void)state;
    mo_otlp_init(&o, &b, MO_OTLP_JSON);
    put_all(&o);
    assert_int_equal(mo_otlp_fini(&o), 0);
    assert_string_equal(
        mo_buf_cstr(&b),
        "{\"text\":\"h\\\"i\",\"id\":\"01ab\",\"at\":\"72623859790382856\","
        "\"flags\":257,\"less\":\"-2\",\"kind\":300,\"is\":true,\"half\":0.5,"
        "\"counts\":[\"1\",\"2\"],\"bounds\":[0.5],"
        "\"attributes\":[{\"key\":\"k\",\"value\":{\"stringValue\":\"v\"}},"
        "{\"key\":\"n\",\"value\":{\"intValue\":\"7\"}},"
        "{\"key\":\"l\",\"value\":{\"arrayValue\":{\"values\":["
        "{\"stringValue\":\"x\"}]}}},"
        "{\"key\":\"d\",\"value\":{\"doubleValue\":0.5}}]}");
}

/* A length of one, two or three bytes moves what stands behind it. */
static void test_lengths(void **state)
{
    static const size_t sizes[] = {0, 1, 120, 127, 128, 129, 16383, 16384};
    static char text[20000];

    (void)state;
    memset(text, 'a', sizeof(text));
    for (size_t i = 0; i < MO_COUNT(sizes); i++) {
        mo_autobuf struct mo_buf b = {.max = sizeof(text) + 64};
        struct mo_otlp o;
        size_t at = 1, len = 0;

        mo_otlp_init(&o, &b, MO_OTLP_PROTOBUF);
        mo_otlp_msg(&o, 1, "m");
        mo_otlp_text(&o, 1, "t", mo_span(text, sizes[i]));
        mo_otlp_end(&o);
        assert_int_equal(mo_otlp_fini(&o), 0);
        for (unsigned shift = 0;; shift += 7) {
            len |= (size_t)((unsigned char)b.p[at] & 0x7f) << shift;
            if (!((unsigned char)b.p[at++] & 0x80))
                break;
        }
        assert_int_equal(at + len, b.len);
        assert_int_equal(b.p[at], 0x0a);
    }
}

/* protobuf refuses a text that is not UTF-8. */
static void test_bad_text(void **state)
{
    mo_autobuf struct mo_buf b = {.max = 64};
    struct mo_otlp o;

    (void)state;
    mo_otlp_init(&o, &b, MO_OTLP_PROTOBUF);
    mo_otlp_text(&o, 1, "t", MO_SPAN("a\xff\xc3z"));
    assert_int_equal(mo_otlp_fini(&o), 0);
    assert_string_equal(mo_buf_cstr(&b), "\x0a\x04"
                                         "a??z");
}

static void test_full_buffer(void **state)
{
    size_t full = 0;

    (void)state;
    for (size_t max = 200; max > 0; max--) {
        mo_autobuf struct mo_buf b = {.max = max};
        struct mo_otlp o;
        int rc;

        mo_otlp_init(&o, &b, MO_OTLP_PROTOBUF);
        mo_otlp_msg(&o, 1, "m");
        put_all(&o);
        mo_otlp_end(&o);
        rc = mo_otlp_fini(&o);
        full = full ? full : b.len;
        check_row("a full buffer", rc == (max < full ? MO_ETOOBIG : 0));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_protobuf),    cmocka_unit_test(test_json),
        cmocka_unit_test(test_lengths),     cmocka_unit_test(test_bad_text),
        cmocka_unit_test(test_full_buffer),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
