#include "codec/http/sse.h"
#include "mo_test.h"

#define MAX 32 /* small, so that rows can reach it */

/* The events a reader got: "event#id[data]" for each event, "data<event#id>"
 * for one that was skipped, then "r=..", "!" for an error, "last=" at the end.
 */
struct player {
    struct mo_sse s;
    struct mo_buf log;
    bool failed, skips;
};

/* A '?' in the data ends it. */
static bool on_skip(void *ctx, struct mo_span data)
{
    struct player *p = ctx;

    mo_buf_span(&p->log, data);
    return mo_span_find(data, '?') < 0;
}

static void play(struct player *p, struct mo_span piece)
{
    char *copy = mo_strndup(piece.p, piece.n);
    struct mo_span in = mo_span(copy, piece.n);
    enum mo_sse_result r = MO_SSE_EVENT;
    struct mo_sse_event ev;
    struct mo_err e;

    while (r >= MO_SSE_EVENT && !p->failed) {
        r = mo_sse_next(&p->s, &in, &ev, &e);
        if (r == MO_SSE_ERROR) {
            mo_buf_puts(&p->log, e.code == MO_ETOOBIG ? "!" : "?");
            p->failed = true;
        }
        if (r == MO_SSE_MORE)
            assert_int_equal(in.n, 0);
        if (r < MO_SSE_EVENT)
            break;
        if (r == MO_SSE_SKIPPED)
            mo_buf_putc(&p->log, '<');
        mo_buf_span(&p->log, ev.event);
        mo_buf_putc(&p->log, '#');
        mo_buf_span(&p->log, ev.id);
        mo_buf_putc(&p->log, r == MO_SSE_SKIPPED ? '>' : '[');
        mo_buf_span(&p->log, ev.data);
        if (r == MO_SSE_EVENT)
            mo_buf_putc(&p->log, ']');
    }
    mo_free(copy);
}

static void run(struct player *p, struct mo_span in, size_t cut, size_t step)
{
    p->failed = false;
    mo_sse_init(&p->s, MAX);
    if (p->skips)
        mo_sse_skip(&p->s, on_skip, p);
    mo_buf_init(&p->log, 4096);
    if (step == 0) {
        play(p, mo_span_head(in, cut));
        play(p, mo_span_skip(in, cut));
    } else {
        for (; in.n; in = mo_span_skip(in, step))
            play(p, mo_span_head(in, step));
    }
    if (p->s.retry_ms >= 0)
        mo_buf_printf(&p->log, " r=%lld", (long long)p->s.retry_ms);
    if (p->s.last_id.len) {
        mo_buf_puts(&p->log, " last=");
        mo_buf_span(&p->log, mo_buf_view(&p->s.last_id));
    }
    mo_sse_fini(&p->s);
}

#define ROW(name, in, want)                                                    \
    {                                                                          \
        name, {in, sizeof(in) - 1}, want                                       \
    }

static const struct {
    const char *name;
    struct mo_span in;
    const char *want;
} rows[] = {
    ROW("nothing", "", ""),
    ROW("one", "data: x\n\n", "message#[x]"),
    ROW("no blank after colon", "data:x\n\n", "message#[x]"),
    ROW("only one blank goes", "data:  x \n\n", "message#[ x ]"),
    ROW("tab stays", "data:\tx\n\n", "message#[\tx]"),
    ROW("CR", "data: x\r\rdata: y\r\r", "message#[x]message#[y]"),
    ROW("CRLF", "data: x\r\n\r\ndata: y\r\n\r\n", "message#[x]message#[y]"),
    ROW("mixed", "data: x\r\ndata: y\rdata: z\n\r\n", "message#[x\ny\nz]"),
    ROW("LF CR is two ends", "data: x\n\rdata: y\n\r",
        "message#[x]message#[y]"),
    ROW("CR CR LF is two ends", "data: x\r\r\ndata: y\n\n",
        "message#[x]message#[y]"),
    ROW("lines", "data: a\ndata\ndata:\ndata: b\n\n", "message#[a\n\n\nb]"),
    ROW("empty data", "data\n\n", "message#[]"),
    ROW("two empty lines", "data\ndata\n\n", "message#[\n]"),
    ROW("no data, no event", "event: x\n\ndata: y\n\n", "message#[y]"),
    ROW("empty lines", "\n\n\r\r\ndata: y\n\n\n\n", "message#[y]"),
    ROW("event name", "event: e\ndata: y\n\ndata: z\n\n", "e#[y]message#[z]"),
    ROW("last event name wins", "event: e\nevent: f\ndata: y\n\n", "f#[y]"),
    ROW("empty event name", "event: e\nevent\ndata: y\n\n", "message#[y]"),
    ROW("id stays", "id: 1\ndata: a\n\ndata: b\n\nid\ndata: c\n\n",
        "message#1[a]message#1[b]message#[c]"),
    ROW("id without data", "id: 7\n\ndata: a\n\n", "message#7[a] last=7"),
    ROW("id with NUL", "id: 1\n\nid: a\0b\ndata: a\n\n", "message#1[a] last=1"),
    ROW("id of a cut event", "id: 1\n\nid: 2\ndata: a\n", " last=1"),
    ROW("control in data", "data: a\1b\n\n", "message#[a\1b]"),
    ROW("comment", ": hi\n:\ndata: x\n: data: y\n\n", "message#[x]"),
    ROW("unknown fields", "foo: x\nDATA: y\n data: z\ndata : z\nbar\n\n", ""),
    ROW("colon in value", "data: a: b\n\n", "message#[a: b]"),
    ROW("retry", "retry: 250\n", " r=250"),
    ROW("bad retries",
        "retry: -1\nretry: 1x\nretry: 1.5\nretry:\nretry\n"
        "retry: 99999999999999999999\n",
        ""),
    ROW("retry after bad", "retry: 10\nretry: x\n", " r=10"),
    ROW("BOM",
        "\xef\xbb\xbf"
        "data: x\n\n",
        "message#[x]"),
    ROW("BOM only once",
        "\xef\xbb\xbf\xef\xbb\xbf"
        "data: x\n\n",
        ""),
    ROW("BOM only first",
        "\n\xef\xbb\xbf"
        "data: x\n\n",
        ""),
    ROW("BOM and empty line",
        "\xef\xbb\xbf\n"
        "data: x\n\n",
        "message#[x]"),
    ROW("half a BOM",
        "\xef\xbb"
        "data: x\n\n",
        ""),
    ROW("cut off", "data: x\n", ""),
    ROW("cut off in a line", "data: x\n\ndata: y", "message#[x]"),
    ROW("UTF-8", "data: \xc3\xa9\xf0\x9f\x98\x80\n\n",
        "message#[\xc3\xa9\xf0\x9f\x98\x80]"),
    ROW("line of max", "data: 45678901234567890123456789\n\n",
        "message#[45678901234567890123456789]"),
    ROW("line over max", "data: 0\n\ndata: 456789012345678901234567890\n\n",
        "message#[0]!"),
    ROW("comment over max", ": 3456789012345678901234567890123\n", "!"),
    ROW("endless line", "data: 4567890123456789012345678901234567890", "!"),
    ROW("data of max", "data: 01234567890123456789\ndata: 12345678901\n\n",
        "message#[01234567890123456789\n12345678901]"),
    ROW("data over max", "data: 01234567890123456789\ndata: 123456789012\n\n",
        "!"),
    ROW("sum over two events is fine",
        "data: 01234567890123456789\n\ndata: 01234567890123456789\n\n",
        "message#[01234567890123456789]message#[01234567890123456789]"),
};

#define D30 "012345678901234567890123456789"

/* The same when events that are too long are skipped. */
static const struct {
    const char *name;
    struct mo_span in;
    const char *want;
} skips[] = {
    ROW("fits", "data: x\n\n", "message#[x]"),
    ROW("line of max", "data: 45678901234567890123456789\n\n",
        "message#[45678901234567890123456789]"),
    ROW("line over max", "data: 0\n\ndata: " D30 "\n\ndata: 1\n\n",
        "message#[0]" D30 "\n<message#>message#[1]"),
    ROW("no blank after the colon", "data:" D30 "\n\ndata: 1\n\n",
        D30 "\n<message#>message#[1]"),
    ROW("CRLF", "data: " D30 "\r\n\r\ndata: 1\r\n\r\n",
        D30 "\n<message#>message#[1]"),
    ROW("two in a row", "data: " D30 "\n\ndata: " D30 "\n\n",
        D30 "\n<message#>" D30 "\n<message#>"),
    ROW("data over max", "data: 01234567890123456789\ndata: 123456789012\n\n",
        "01234567890123456789\n123456789012\n<message#>"),
    ROW("more lines", "data: " D30 "\ndata: a\ndata:b\ndata\ndata:\n: c\nx\n\n",
        D30 "\na\nb\n\n\n<message#>"),
    ROW("name and id", "event: e\nid: 3\ndata: " D30 "\n\ndata: 1\n\n",
        D30 "\n<e#3>message#3[1] last=3"),
    ROW("fields behind it", "data: " D30 "\nid: 3\nevent: e\n\n",
        D30 "\n<message#>"),
    ROW("database is another field", "data: " D30 "\ndatabase: 1\ndat\n\n",
        D30 "\n<message#>"),
    ROW("comment over max", ": " D30 D30 "\ndata: 1\n\n", "!"),
    ROW("endless comment", ": " D30 D30, "!"),
    ROW("32 bytes of others", "data: " D30 "\n: " D30 "\n\n",
        D30 "\n<message#>"),
    ROW("33 bytes of others", "data: " D30 "\n:: " D30 "\n\n", D30 "\n!"),
    ROW("too many others", "data: " D30 "\n: " D30 "\n:\n\n", D30 "\n!"),
    ROW("has not ended", "data: " D30 "\n", D30 "\n"),
    ROW("refused", "data: " D30 "\ndata: ?\n\ndata: 1\n\n", D30 "\n?!"),
    ROW("refused at once", "data: ?\ndata: " D30 "\n", "?\n!"),
};

/* k up to n: cut there; beyond: in steps of 1, 2, 3 bytes */
static void check_cut(const char *name, struct mo_span in, const char *want,
                      size_t k, bool skipping)
{
    struct player p = {.skips = skipping};

    run(&p, in, k, k > in.n ? k - in.n : 0);
    if (strcmp(mo_buf_cstr(&p.log), want) != 0)
        fail_msg("row '%s' cut %zu: got %s want %s", name, k,
                 mo_buf_cstr(&p.log), want);
    mo_buf_fini(&p.log);
}

static void test_rows(void **state)
{
    (void)state;
    for (size_t i = 0; i < MO_COUNT(rows); i++) {
        for (size_t k = 0; k <= rows[i].in.n + 3; k++)
            check_cut(rows[i].name, rows[i].in, rows[i].want, k, false);
    }
}

static void test_skips(void **state)
{
    (void)state;
    for (size_t i = 0; i < MO_COUNT(skips); i++) {
        for (size_t k = 0; k <= skips[i].in.n + 3; k++)
            check_cut(skips[i].name, skips[i].in, skips[i].want, k, true);
    }
}

static void test_nul_in_data(void **state)
{
    struct mo_span in = MO_SPAN("data: a\0b\n\n");
    struct mo_sse_event ev;
    struct mo_sse s;
    struct mo_err e;

    (void)state;
    mo_sse_init(&s, MAX);
    assert_int_equal(mo_sse_next(&s, &in, &ev, &e), MO_SSE_EVENT);
    assert_true(mo_span_eq(ev.data, MO_SPAN("a\0b")));
    assert_int_equal(mo_sse_next(&s, &in, &ev, &e), MO_SSE_MORE);
    mo_sse_fini(&s);
}

static void test_restart(void **state)
{
    struct mo_span a = MO_SPAN("id: 5\nretry: 9\n\nid: 6\ndata: lost\nda");
    struct mo_span b = MO_SPAN("\xef\xbb\xbf"
                               "data: x\n\n");
    struct mo_span big = MO_SPAN(": 345678901234567890123456789012345");
    struct mo_sse_event ev;
    struct mo_sse s;
    struct mo_err e;

    (void)state;
    mo_sse_init(&s, MAX);
    assert_int_equal(mo_sse_next(&s, &a, &ev, &e), MO_SSE_MORE);
    mo_sse_restart(&s);
    assert_int_equal(mo_sse_next(&s, &b, &ev, &e), MO_SSE_EVENT);
    assert_true(mo_span_is(ev.data, "x"));
    assert_true(mo_span_is(ev.id, "5"));
    assert_int_equal(s.retry_ms, 9);
    assert_int_equal(mo_sse_next(&s, &big, &ev, &e), MO_SSE_ERROR);
    assert_int_equal(e.code, MO_ETOOBIG);
    assert_int_equal(mo_sse_next(&s, &b, &ev, &e), MO_SSE_ERROR); /* stays */
    mo_sse_restart(&s);
    b = MO_SPAN("data: y\n\n");
    assert_int_equal(mo_sse_next(&s, &b, &ev, &e), MO_SSE_EVENT);
    assert_true(mo_span_is(ev.data, "y"));
    mo_sse_fini(&s);
}

static void test_name_limits(void **state)
{
    static const char *const names[] = {"id: ", "event: "};
    struct mo_sse_event ev;
    struct mo_buf b;
    struct mo_err e;

    (void)state;
    mo_buf_init(&b, 4096);
    for (size_t i = 0; i < 4; i++) {
        struct mo_sse s;
        struct mo_span in;

        mo_buf_reset(&b);
        mo_buf_puts(&b, names[i / 2]);
        for (size_t k = 0; k < MO_SSE_NAME_MAX + i % 2; k++)
            mo_buf_putc(&b, 'x');
        mo_buf_puts(&b, "\ndata\n\n");
        in = mo_buf_view(&b);
        mo_sse_init(&s, 8192);
        assert_int_equal(mo_sse_next(&s, &in, &ev, &e),
                         i % 2 ? MO_SSE_ERROR : MO_SSE_EVENT);
        mo_sse_fini(&s);
    }
    mo_buf_fini(&b);
}

/* --- writer -------------------------------------------------------------- */

static const struct {
    const char *event, *id, *data;
    int retry;
    const char *want; /* NULL: refused */
} puts_[] = {
    {NULL, NULL, "x", -1, "data: x\n\n"},
    {NULL, NULL, "", -1, "data: \n\n"},
    {"e", "1", "x", 5, "event: e\nid: 1\nretry: 5\ndata: x\n\n"},
    {NULL, "", NULL, 0, "id: \n\n"},
    {NULL, NULL, "a\nb\rc\r\nd", -1, "data: a\ndata: b\ndata: c\ndata: d\n\n"},
    {NULL, NULL, "\n\r\r\n", -1, "data: \ndata: \ndata: \ndata: \n\n"},
    {NULL, NULL, " x", -1, "data:  x\n\n"},
    {NULL, NULL, "a\n\nevent: evil", -1,
     "data: a\ndata: \ndata: event: evil\n\n"},
    {"a\nb", NULL, "x", -1, NULL},
    {"a\r", NULL, "x", -1, NULL},
    {NULL, "a\nb", "x", -1, NULL},
    {NULL, "\r", "x", -1, NULL},
};

static void test_put(void **state)
{
    struct mo_buf b;

    (void)state;
    mo_buf_init(&b, 4096);
    for (size_t i = 0; i < MO_COUNT(puts_); i++) {
        struct mo_sse_event ev = {
            .event = mo_span_cstr(puts_[i].event),
            .id = mo_span_cstr(puts_[i].id),
            .data = mo_span_cstr(puts_[i].data),
            .retry_ms = puts_[i].retry,
        };
        int rc;

        mo_buf_reset(&b);
        rc = mo_sse_put(&b, &ev);
        assert_int_equal(rc, puts_[i].want ? 0 : MO_EINVAL);
        assert_string_equal(mo_buf_cstr(&b),
                            puts_[i].want ? puts_[i].want : "");
    }
    mo_buf_reset(&b);
    assert_int_equal(
        mo_sse_put(&b, &(struct mo_sse_event){.id = MO_SPAN("a\0b")}),
        MO_EINVAL);
    mo_buf_reset(&b);
    assert_int_equal(mo_sse_put_comment(&b, MO_SPAN("ping")), 0);
    assert_string_equal(mo_buf_cstr(&b), ": ping\n\n");
    mo_buf_reset(&b);
    assert_int_equal(mo_sse_put_comment(&b, MO_SPAN("a\ndata: x")), MO_EINVAL);
    mo_buf_fini(&b);
}

static void body_oom(void *ctx)
{
    static const char *const pieces[] = {"id: 1\nevent: e\nda", "ta: x\n",
                                         "\ndata: y\n\n"};
    struct mo_sse_event ev;
    struct mo_sse s;
    struct mo_err e;
    int r = MO_SSE_MORE;

    (void)ctx;
    mo_sse_init(&s, 256);
    for (size_t i = 0; i < MO_COUNT(pieces) && r != MO_SSE_ERROR; i++) {
        struct mo_span in = mo_span_cstr(pieces[i]);

        do
            r = mo_sse_next(&s, &in, &ev, &e);
        while (r == MO_SSE_EVENT);
    }
    if (r == MO_SSE_ERROR)
        assert_int_equal(e.code, MO_ENOMEM);
    mo_sse_restart(&s);
    mo_sse_fini(&s);
}

static void test_oom(void **state)
{
    (void)state;
    torture(body_oom, NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_rows),        cmocka_unit_test(test_skips),
        cmocka_unit_test(test_nul_in_data), cmocka_unit_test(test_restart),
        cmocka_unit_test(test_name_limits), cmocka_unit_test(test_put),
        cmocka_unit_test(test_oom),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
