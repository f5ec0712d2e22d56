#include "mo_test.h"

#include "codec/mux.h"

#define ROW(name, in, trace, edge)                                             \
    {                                                                          \
        name, {"" in, sizeof(in) - 1}, trace, edge                             \
    }

/* Trace: the bytes of each stream joined, "1:...|2:..."; "!" on an error. */
static const struct row {
    const char *name;
    struct mo_span in;
    const char *trace;
    bool edge;
} rows[] = {
    ROW("nothing", "", "1:|2:", true),
    ROW("one frame", "\x01\0\0\0\0\0\0\x02hi", "1:hi|2:", true),
    ROW("stderr",
        "\x02\0\0\0\0\0\0\x03"
        "err",
        "1:|2:err", true),
    ROW("both, in turns",
        "\x01\0\0\0\0\0\0\x02hi\x02\0\0\0\0\0\0\x01"
        "e\x01\0\0\0\0\0\0\x01!",
        "1:hi!|2:e", true),
    ROW("empty frame", "\x01\0\0\0\0\0\0\0", "1:|2:", true),
    ROW("empty frames between",
        "\x01\0\0\0\0\0\0\0\x02\0\0\0\0\0\0\0\x01\0\0\0\0\0\0\x01"
        "a\x02\0\0\0\0\0\0\0",
        "1:a|2:", true),
    ROW("character cut by a frame",
        "\x01\0\0\0\0\0\0\x01\xc3\x01\0\0\0\0\0\0\x01\xa9",
        "1:\xc3\xa9|2:", true),
    ROW("half a header", "\x01\0\0\0", "1:|2:", false),
    ROW("half a frame",
        "\x01\0\0\0\0\0\0\x05"
        "abc",
        "1:abc|2:", false),
    ROW("frame of the greatest length", "\x01\0\0\0\0\x10\0\0x",
        "1:x|2:", false),
    ROW("stdin",
        "\0\0\0\0\0\0\0\x01"
        "a",
        "1:|2:!", false),
    ROW("stream 3",
        "\x03\0\0\0\0\0\0\x01"
        "a",
        "1:|2:!", false),
    ROW("stream 255",
        "\xff\0\0\0\0\0\0\x01"
        "a",
        "1:|2:!", false),
    ROW("filler 1",
        "\x01\x01\0\0\0\0\0\x01"
        "a",
        "1:|2:!", false),
    ROW("filler 2",
        "\x01\0\x01\0\0\0\0\x01"
        "a",
        "1:|2:!", false),
    ROW("filler 3",
        "\x01\0\0\x80\0\0\0\x01"
        "a",
        "1:|2:!", false),
    ROW("one over the limit",
        "\x01\0\0\0\0\x10\0\x01"
        "a",
        "1:|2:!", false),
    ROW("4 GiB",
        "\x01\0\0\0\xff\xff\xff\xff"
        "a",
        "1:|2:!", false),
    ROW("good, then bad",
        "\x01\0\0\0\0\0\0\x01"
        "a\x07\0\0\0\0\0\0\x01",
        "1:a|2:!", false),
    ROW("no way back",
        "\x07\0\0\0\0\0\0\0\x01\0\0\0\0\0\0\x01"
        "a",
        "1:|2:!", false),
    ROW("not frames at all", "a line of text\n", "1:|2:!", false),
};

struct seen {
    struct mo_buf out[3]; /* by stream */
    bool error;
};

/* From a heap block of exactly that size, so that a byte too far is seen. */
static void feed(struct mo_mux *m, struct mo_span piece, struct seen *s)
{
    char *copy = test_malloc(piece.n ? piece.n : 1);
    struct mo_span in = mo_span(copy, piece.n), data;
    enum mo_mux_stream stream;
    struct mo_err e = {0};
    int rc;

    if (piece.n)
        memcpy(copy, piece.p, piece.n);
    do {
        rc = mo_mux_next(m, &in, &stream, &data, &e);
        if (rc == 1) {
            assert_true(stream == MO_MUX_STDOUT || stream == MO_MUX_STDERR);
            assert_true(data.n > 0);
            assert_true(data.p >= copy && data.p + data.n <= copy + piece.n);
            mo_buf_span(&s->out[stream], data);
        }
    } while (rc == 1);
    if (rc == 0)
        assert_int_equal(in.n, 0);
    assert_int_equal(rc < 0 ? rc : 0, e.code);
    assert_true(rc == 0 || rc == MO_EPROTO);
    s->error = s->error || rc < 0;
    test_free(copy);
}

static void run(const struct row *r, size_t cut, size_t step)
{
    struct seen s = {0};
    struct mo_buf t;
    struct mo_mux m;

    mo_buf_init(&s.out[1], 1000);
    mo_buf_init(&s.out[2], 1000);
    mo_buf_init(&t, 1000);
    mo_mux_init(&m);
    feed(&m, mo_span_head(r->in, cut), &s);
    for (size_t i = cut; i < r->in.n; i += step)
        feed(&m, mo_span_head(mo_span_skip(r->in, i), step), &s);
    mo_buf_puts(&t, "1:");
    mo_buf_span(&t, mo_buf_view(&s.out[1]));
    mo_buf_puts(&t, "|2:");
    mo_buf_span(&t, mo_buf_view(&s.out[2]));
    if (s.error)
        mo_buf_putc(&t, '!');
    check_row(r->name, strcmp(mo_buf_cstr(&t), r->trace) == 0);
    check_row(r->name, mo_mux_at_edge(&m) == r->edge);
    mo_buf_fini(&t);
    mo_buf_fini(&s.out[1]);
    mo_buf_fini(&s.out[2]);
}

static void test_rows(void **state)
{
    (void)state;
    for (size_t i = 0; i < MO_COUNT(rows); i++) {
        for (size_t cut = 0; cut <= rows[i].in.n; cut++)
            run(&rows[i], cut, rows[i].in.n + 1);
        run(&rows[i], 0, 1);
    }
}

/* The tests above count no allocation because there is none to count. */
static void test_never_allocates(void **state)
{
    struct mo_span in = MO_SPAN("\x01\0\0\0\0\0\x80\0abc"), data;
    enum mo_mux_stream stream;
    struct mo_mux m;

    (void)state;
    mo_mux_init(&m);
    mo_mem_fail_at(0, false);
    assert_int_equal(mo_mux_next(&m, &in, &stream, &data, NULL), 1);
    assert_true(mo_span_is(data, "abc"));
    assert_int_equal(mo_mux_next(&m, &in, &stream, &data, NULL), 0);
    assert_int_equal(mo_mem_count(), 0);
    assert_true(sizeof(m) <= 16);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_rows),
        cmocka_unit_test(test_never_allocates),
    };

    return cmocka_run_group_tests_name("mux", tests, NULL, NULL);
}
