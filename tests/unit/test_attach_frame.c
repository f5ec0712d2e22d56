/* An attach of Kubernetes, as the client sees it: every row whole and cut in
 * two at every byte. */
#include "mo_test.h"

#include "codec/attach_frame.h"

#define ROW(name, v5, in, trace)                                               \
    {                                                                          \
        name, v5, {"" in, sizeof(in) - 1}, trace                               \
    }

/* Trace: the bytes of each stream, then how it ended: "." goes on, "$" regular
 * end, "!" error; "p" for each frame that is sent back. */
static const struct row {
    const char *name;
    bool v5;
    struct mo_span in;
    const char *trace;
} rows[] = {
    ROW("nothing", false, "", "1:|2:|."),
    ROW("the first message is empty", false, "\x82\x01\x01", "1:|2:|."),
    ROW("stdout", false, "\x82\x03\x01hi", "1:hi|2:|."),
    ROW("both", false, "\x82\x02\x02x\x82\x03\x01hi\x82\x02\x02y",
        "1:hi|2:xy|."),
    ROW("a message in two frames", false, "\x02\x02\x01h\x80\x01i",
        "1:hi|2:|."),
    ROW("a ping between", false, "\x82\x02\x01h\x89\x01z\x82\x02\x01i",
        "1:hi|2:|p."),
    ROW("a pong", false, "\x8a\x00\x82\x02\x01i", "1:i|2:|."),
    ROW("the status", false, "\x82\x02\x01h\x82\x03\x03{}\x82\x02\x01i",
        "1:h|2:|$"),
    ROW("a close", false, "\x82\x02\x01h\x88\x02\x03\xe8", "1:h|2:|$"),
    ROW("an empty close", false, "\x88\x00", "1:|2:|$"),
    ROW("the end of a channel", true, "\x82\x02\xff\x01\x82\x02\x02x",
        "1:|2:x|."),
    ROW("the end of a channel in v4", false, "\x82\x02\xff\x01", "1:|2:|!"),
    ROW("stdin", false, "\x82\x02\x00x", "1:|2:|!"),
    ROW("resize", false, "\x82\x02\x04x", "1:|2:|!"),
    ROW("an empty message", false, "\x82\x00", "1:|2:|!"),
    ROW("text", false, "\x81\x02\x01x", "1:|2:|!"),
    ROW("a masked frame", false, "\x82\x81\0\0\0\0\x01", "1:|2:|!"),
    ROW("an unknown opcode", false, "\x83\x00", "1:|2:|!"),
    ROW("a message that is too long", false, "\x82\x7f\0\0\0\0\0\x10\0\x01\x01",
        "1:|2:|!"),
};

struct seen {
    struct mo_buf out[3];
    unsigned answers;
    char end;
};

static void feed(struct mo_attach *a, struct seen *s, struct mo_span in)
{
    mo_autobuf struct mo_buf copy = {.max = 4096}, answer = {.max = 4096};
    struct mo_ws_in rest;
    int rc = 1;

    (void)mo_buf_span(&copy, in);
    rest = (struct mo_ws_in){copy.p, copy.len};
    while (rc == 1 && s->end == '.') {
        enum mo_mux_stream which;
        struct mo_span piece;

        mo_buf_reset(&answer);
        rc = mo_attach_next(a, &rest, &which, &piece, &answer, NULL);
        s->answers += answer.len > 0;
        if (rc == 1) {
            assert_true(piece.n > 0);
            (void)mo_buf_span(&s->out[which], piece);
        }
    }
    if (rc < 0)
        s->end = rc == MO_ECLOSED ? '$' : '!';
}

static void check_one(const struct row *r, size_t cut)
{
    struct seen s = {.out = {{.max = 0}, {.max = 99}, {.max = 99}}, .end = '.'};
    struct mo_attach a;
    char trace[200];

    mo_attach_init(&a, r->v5);
    feed(&a, &s, mo_span_head(r->in, cut));
    feed(&a, &s, mo_span_skip(r->in, cut));
    (void)snprintf(trace, sizeof(trace), "1:%s|2:%s|%s%c",
                   mo_buf_cstr(&s.out[1]), mo_buf_cstr(&s.out[2]),
                   s.answers ? "p" : "", s.end);
    if (strcmp(trace, r->trace) != 0)
        fail_msg("%s at %zu: %s", r->name, cut, trace);
    mo_buf_fini(&s.out[1]);
    mo_buf_fini(&s.out[2]);
    mo_attach_fini(&a);
}

static void rows_are_read(void **state)
{
    (void)state;
    for (size_t i = 0; i < MO_COUNT(rows); i++)
        for (size_t cut = 0; cut <= rows[i].in.n; cut++)
            check_one(&rows[i], cut);
}

/* What we send, read by a server's half. */
static void stdin_is_sent(void **state)
{
    mo_autobuf struct mo_buf b = {.max = (size_t)1 << 20},
                             data = {.max = (size_t)1 << 20};
    struct mo_attach v4, v5;
    struct mo_ws ws;
    struct mo_ws_in in;
    struct mo_span m;
    size_t got = 0;

    (void)state;
    for (int i = 0; i < 300000; i++)
        (void)mo_buf_putc(&data, (char)('a' + i % 26));
    mo_attach_init(&v4, false);
    mo_attach_init(&v5, true);
    assert_int_equal(mo_attach_put(&b, mo_buf_view(&data)), 0);
    assert_int_equal(mo_attach_put(&b, MO_SPAN("")), 0);
    assert_int_equal(mo_attach_put_end(&v4, &b), 0);
    assert_int_equal(mo_attach_put_end(&v5, &b), 0);
    assert_int_equal(mo_attach_put_ping(&b), 0);
    mo_ws_init(&ws, MO_WS_SERVER, (size_t)1 << 20);
    in = (struct mo_ws_in){b.p, b.len};
    while (got < data.len) {
        assert_int_equal(mo_ws_next(&ws, &in, &m, NULL), MO_WS_BINARY);
        assert_int_equal(m.p[0], 0);
        assert_true(got + m.n - 1 <= data.len);
        assert_memory_equal(m.p + 1, data.p + got, m.n - 1);
        got += m.n - 1;
    }
    assert_int_equal(mo_ws_next(&ws, &in, &m, NULL), MO_WS_BINARY);
    assert_true(mo_span_eq(m, mo_span("\xff\0", 2)));
    assert_int_equal(mo_ws_next(&ws, &in, &m, NULL), MO_WS_PING);
    assert_int_equal(in.n, 0);
    mo_ws_fini(&ws);
    mo_attach_fini(&v4);
    mo_attach_fini(&v5);
}

static void torture_body(void *ctx)
{
    (void)ctx;
    for (size_t i = 0; i < MO_COUNT(rows); i++) {
        struct seen s = {.out = {{.max = 0}, {.max = 99}, {.max = 99}},
                         .end = '.'};
        mo_autobuf struct mo_buf b = {.max = 99};
        struct mo_attach a;

        mo_attach_init(&a, rows[i].v5);
        feed(&a, &s, mo_span_head(rows[i].in, 2));
        feed(&a, &s, mo_span_skip(rows[i].in, 2));
        (void)mo_attach_put(&b, MO_SPAN("abc"));
        mo_buf_fini(&s.out[1]);
        mo_buf_fini(&s.out[2]);
        mo_attach_fini(&a);
    }
}

static void memory_may_fail(void **state)
{
    (void)state;
    torture(torture_body, NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rows_are_read),
        cmocka_unit_test(stdin_is_sent),
        cmocka_unit_test(memory_may_fail),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
