/* Frames between processes: valid ones in pieces, every kind of invalid one. */
#include "codec/peer_frame.h"

#include <stdio.h>

#include "base/mem.h"
#include "mo_test.h"

#define MAX ((size_t)64 * 1024)

static void read_all(struct mo_peer_frames *f, struct mo_span in, size_t step,
                     struct mo_buf *out)
{
    int rc = 0;

    while (in.n && rc == 0) {
        struct mo_span piece = mo_span_take(&in, step);
        struct mo_peer_frame got;

        do {
            rc = mo_peer_frames_next(f, &piece, &got);
            if (rc == 1)
                mo_buf_printf(out, "%d:%.*s;", got.type, (int)got.data.n,
                              got.data.p);
            else if (rc < 0)
                mo_buf_printf(out, "bad %d;", rc);
        } while (rc == 1);
        if (rc == 0)
            assert_int_equal(piece.n, 0);
    }
    if (rc < 0) { /* for good */
        struct mo_span more = MO_SPAN("\x06\0\0\0\0");
        struct mo_peer_frame got;

        assert_int_equal(mo_peer_frames_next(f, &more, &got), rc);
    }
}

static void check(struct mo_span in, size_t max, const char *want)
{
    for (size_t step = 1; step <= in.n; step++) {
        mo_autobuf struct mo_buf out = {.max = MAX};
        struct mo_peer_frames f;

        mo_peer_frames_init(&f, max);
        read_all(&f, in, step, &out);
        assert_string_equal(mo_buf_cstr(&out), want);
        mo_peer_frames_fini(&f);
    }
}

static void test_frames(void **state)
{
    static const struct {
        struct mo_span in;
        size_t max;
        const char *want;
    } rows[] = {
        {MO_SPAN("\x06\0\0\0\0"), 0, "6:;"},
        {MO_SPAN("\x02\0\0\0\3abc\x07\0\0\0\0"), 3, "2:abc;7:;"},
        {MO_SPAN("\x02\0\0\0\4abcd"), 3, "bad -3;"},
        {MO_SPAN("\x02\xff\xff\xff\xff"), 3, "bad -3;"},
        {MO_SPAN("\0"), 3, "bad -4;"},
        {MO_SPAN("\x08"), 3, "bad -4;"},
        {MO_SPAN("\xff"), 3, "bad -4;"},
        {MO_SPAN("\x06\0\0\0\0\x09"), 3, "6:;bad -4;"},
        {MO_SPAN("\x02\0\0\0\3ab"), 3, ""},
        {MO_SPAN("\x02\0\0"), 3, ""},
    };

    (void)state;
    for (size_t i = 0; i < MO_COUNT(rows); i++)
        check(rows[i].in, rows[i].max, rows[i].want);
}

static void test_fields(void **state)
{
    mo_autobuf struct mo_buf b = {.max = MAX};
    size_t at = mo_peer_begin(&b, MO_PEER_COMMAND);
    struct mo_span in, one;
    uint32_t v = 0;
    bool has = false;

    (void)state;
    mo_peer_put_u32(&b, 0x01020304);
    mo_peer_put(&b, MO_SPAN("text"));
    mo_peer_put(&b, MO_SPAN(""));
    mo_peer_put_absent(&b);
    mo_peer_end(&b, at);
    assert_memory_equal(b.p, "\x02\0\0\0\x14\1\2\3\4\0\0\0\4text", 17);
    in = mo_span_skip(mo_buf_view(&b), MO_PEER_HEAD);
    assert_true(mo_peer_u32(&in, &v));
    assert_int_equal(v, 0x01020304);
    assert_true(mo_peer_field(&in, &one, NULL));
    assert_true(mo_span_is(one, "text"));
    assert_true(mo_peer_field(&in, &one, &has));
    assert_true(has && one.n == 0);
    assert_false(mo_peer_field(&in, &one, NULL)); /* there must be one */
    assert_true(mo_peer_field(&in, &one, &has));
    assert_false(has);
    assert_int_equal(in.n, 0);
    assert_false(mo_peer_field(&in, &one, &has));
    in = MO_SPAN("\0\0\0\5four");
    assert_false(mo_peer_field(&in, &one, &has)); /* longer than its frame */
    in = MO_SPAN("\xff\xff\xff\xfe");
    assert_false(mo_peer_field(&in, &one, &has));
    in = MO_SPAN("abc");
    assert_false(mo_peer_u32(&in, &v));
}

static void test_event(void **state)
{
    mo_autobuf struct mo_buf b = {.max = MAX};
    struct mo_peer_frames f;
    struct mo_peer_frame got;
    struct mo_span in, name;

    (void)state;
    mo_peer_put_event(&b, MO_SPAN("agent:delta"), 2);
    mo_buf_puts(&b, "{}");
    mo_peer_frames_init(&f, MAX);
    in = mo_buf_view(&b);
    assert_int_equal(mo_peer_frames_next(&f, &in, &got), 1);
    assert_int_equal(got.type, MO_PEER_EVENT);
    assert_true(mo_peer_field(&got.data, &name, NULL));
    assert_true(mo_span_is(name, "agent:delta"));
    assert_true(mo_span_is(got.data, "{}"));
    mo_peer_frames_fini(&f);
}

/* A head that claims much costs nothing until the bytes are there. */
static void test_memory(void **state)
{
    struct mo_peer_frames f;
    struct mo_span in = MO_SPAN("\x02\0\x80\0\0x");
    struct mo_peer_frame got;

    (void)state;
    mo_peer_frames_init(&f, (size_t)16 * 1024 * 1024);
    assert_int_equal(mo_peer_frames_next(&f, &in, &got), 0);
    assert_true(f.part.cap < 4096);
    mo_peer_frames_fini(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_frames),
        cmocka_unit_test(test_fields),
        cmocka_unit_test(test_event),
        cmocka_unit_test(test_memory),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
