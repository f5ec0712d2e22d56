/* HTTP/2 requests with headers set, and those that are refused. Each row is fed
 * as a whole and byte by byte. */
#include "codec/http/hpack.h"
#include "egress/http_edge.h"
#include "mo_test.h"

static const struct mo_http_edge_header set[] = {
    {"Authorization", {"Bearer S", 8}},
    {"X-Key", {"K", 1}},
};

#define SET     "authorization: Bearer S\nx-key: K\n"
#define PREFACE "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
#define START                                                                  \
    ":method: POST\n:scheme: https\n:authority: api.test:8443\n:path: /\n"

enum { END_STREAM = 1, END_HEADERS = 4, PADDED = 8, WITH_PRIORITY = 32 };

static struct mo_http_edge *edge_new(void)
{
    struct mo_http_edge_opts o = {.host = "api.test",
                                  .port = 8443,
                                  .h2 = true,
                                  .headers = set,
                                  .n = MO_COUNT(set)};
    struct mo_http_edge *x = mo_http_edge_new(&o);

    assert_non_null(x);
    return x;
}

static void put_frame(struct mo_buf *b, unsigned type, unsigned flags,
                      unsigned stream, struct mo_span payload)
{
    const char head[9] = {
        (char)(payload.n >> 16),
        (char)(payload.n >> 8),
        (char)payload.n,
        (char)type,
        (char)flags,
        (char)(stream >> 24),
        (char)(stream >> 16),
        (char)(stream >> 8),
        (char)stream,
    };

    mo_buf_put(b, head, sizeof(head));
    mo_buf_span(b, payload);
}

/* "name: value\n..." as a block */
static void put_fields(struct mo_buf *b, const char *text)
{
    struct mo_span rest = mo_span_cstr(text);

    while (rest.n) {
        struct mo_span value = mo_span_cut(&rest, '\n');
        ptrdiff_t at = mo_span_search(value, MO_SPAN(": "));

        assert_true(at >= 0);
        mo_hpack_put(b, mo_span_head(value, (size_t)at),
                     mo_span_skip(value, (size_t)at + 2), false);
    }
}

static void put_headers(struct mo_buf *b, unsigned stream, unsigned flags,
                        const char *text)
{
    mo_autobuf struct mo_buf block = {.max = 1 << 16};

    put_fields(&block, text);
    put_frame(b, 1, flags | END_HEADERS, stream, mo_buf_view(&block));
}

/* --- what came out, as text ---------------------------------------------- */

static int on_field(void *ctx, struct mo_span name, struct mo_span value,
                    struct mo_err *e)
{
    (void)e;
    mo_buf_span(ctx, name);
    mo_buf_puts(ctx, ": ");
    mo_buf_span(ctx, value);
    return mo_buf_puts(ctx, "\n");
}

static void show_frames(struct mo_span in, struct mo_buf *out)
{
    struct mo_hpack *h = mo_hpack_new();
    mo_autobuf struct mo_buf block = {.max = 1 << 20};

    assert_true(mo_span_starts(in, MO_SPAN(PREFACE)));
    in = mo_span_skip(in, sizeof(PREFACE) - 1);
    while (in.n) {
        const unsigned char *p = (const unsigned char *)in.p;
        size_t n = (size_t)p[0] << 16 | (size_t)p[1] << 8 | p[2];
        struct mo_span payload;

        assert_true(in.n >= 9 + n);
        mo_buf_printf(out, "[%u %u %u]\n", p[3], p[4], p[8]);
        in = mo_span_skip(in, 9);
        payload = mo_span_take(&in, n);
        if (p[3] != 1 && p[3] != 9) {
            mo_buf_span(out, payload);
            continue;
        }
        mo_buf_span(&block, payload);
        if (!(p[4] & END_HEADERS))
            continue;
        assert_int_equal(
            mo_hpack_read(h, mo_buf_view(&block), on_field, out, NULL), 0);
        mo_buf_reset(&block);
    }
    mo_hpack_free(h);
}

/* --- good requests ------------------------------------------------------- */

static int feed(struct mo_span in, size_t piece, struct mo_buf *out,
                struct mo_err *e)
{
    struct mo_http_edge *x = edge_new();
    int rc = 0;

    mo_buf_reset(out);
    while (rc == 0 && in.n)
        rc = mo_http_edge_feed(
            x, mo_span_take(&in, piece < in.n ? piece : in.n), out, e);
    mo_http_edge_free(x);
    return rc;
}

static void expect(struct mo_span in, const char *want)
{
    for (size_t piece = 1; piece < 20; piece += 3) {
        mo_autobuf struct mo_buf out = {.max = 1 << 20},
                                 text = {.max = 1 << 20};
        struct mo_err e = {0};

        if (feed(in, piece == 19 ? in.n : piece, &out, &e) < 0)
            fail_msg("%s: %s", want, e.msg);
        show_frames(mo_buf_view(&out), &text);
        assert_string_equal(mo_buf_cstr(&text), want);
    }
}

static void test_requests(void **state)
{
    mo_autobuf struct mo_buf in = {.max = 1 << 16};

    (void)state;
    mo_buf_puts(&in, PREFACE);
    put_frame(&in, 4, 0, 0, MO_SPAN("\0\1\0\0\0\0"));
    put_headers(&in, 1, END_STREAM,
                START "x-key: mine\nx-key-2: stays\nauthorization: mine\n");
    put_headers(&in, 3, 0, START "content-length: 5\nhost: API.test\n");
    put_frame(&in, 0, 0, 3, MO_SPAN("hel"));
    put_frame(&in, 99, 0, 3, MO_SPAN("unknown"));
    put_frame(&in, 0, PADDED | END_STREAM, 3, MO_SPAN("\2lo\0\0"));
    put_frame(&in, 8, 0, 3, MO_SPAN("\0\0\0\1"));
    put_headers(&in, 5, 0, START);
    put_frame(&in, 0, 0, 5, MO_SPAN("any"));
    put_headers(&in, 5, END_STREAM, "x-key: no\nx-sum: 1\n");
    /* the payload of SETTINGS begins with NUL, where the text ends */
    {
        mo_autobuf struct mo_buf out = {.max = 1 << 20},
                                 text = {.max = 1 << 20};
        struct mo_err e = {0};

        for (size_t piece = 1; piece <= in.len; piece += in.len - 1) {
            assert_int_equal(feed(mo_buf_view(&in), piece, &out, &e), 0);
            mo_buf_reset(&text);
            show_frames(mo_buf_view(&out), &text);
            for (size_t i = 0; i < text.len; i++)
                text.p[i] = text.p[i] ? text.p[i] : '0';
            assert_string_equal(
                mo_buf_cstr(&text),
                "[4 0 0]\n0\1"
                "0000[1 5 1]\n" START "x-key-2: stays\n" SET "[1 4 3]\n" START
                "content-length: 5\nhost: API.test\n" SET "[0 0 3]\nhel"
                "[0 9 3]\n\2lo00[8 0 3]\n000\1"
                "[1 4 5]\n" START SET "[0 0 5]\nany[1 5 5]\nx-sum: 1\n");
        }
    }
}

/* Padding, priority and pieces of a block. */
static void test_shapes(void **state)
{
    mo_autobuf struct mo_buf in = {.max = 1 << 16}, block = {.max = 1 << 16},
                             padded = {.max = 1 << 16};

    (void)state;
    put_fields(&block, START);
    mo_buf_put(&padded, "\3\0\0\0\0\7", 6);
    mo_buf_span(&padded, mo_buf_view(&block));
    mo_buf_put(&padded, "\0\0\0", 3);
    mo_buf_puts(&in, PREFACE);
    put_frame(&in, 1, END_STREAM | END_HEADERS | PADDED | WITH_PRIORITY, 1,
              mo_buf_view(&padded));
    put_frame(&in, 1, END_STREAM, 3, mo_span_head(mo_buf_view(&block), 7));
    put_frame(&in, 9, 0, 3, MO_SPAN(""));
    put_frame(&in, 9, END_HEADERS, 3, mo_span_skip(mo_buf_view(&block), 7));
    expect(mo_buf_view(&in), "[1 5 1]\n" START SET "[1 5 3]\n" START SET);
}

static void test_long(void **state)
{
    mo_autobuf struct mo_buf in = {.max = 1 << 20}, block = {.max = 1 << 20},
                             value = {.max = 1 << 20}, out = {.max = 1 << 20},
                             text = {.max = 1 << 20};
    struct mo_span rest;
    unsigned type = 1;
    struct mo_err e;

    (void)state;
    for (size_t i = 0; i < 40000; i++)
        mo_buf_putc(&value, 'v');
    put_fields(&block, START);
    mo_hpack_put(&block, MO_SPAN("long"), mo_buf_view(&value), false);
    mo_buf_puts(&in, PREFACE);
    for (rest = mo_buf_view(&block); rest.n; type = 9) {
        struct mo_span part =
            mo_span_take(&rest, rest.n < 16384 ? rest.n : 16384);

        put_frame(&in, type, rest.n ? 0 : END_HEADERS, 1, part);
    }
    assert_int_equal(feed(mo_buf_view(&in), 1000, &out, &e), 0);
    show_frames(mo_buf_view(&out), &text);
    assert_true(mo_span_starts(mo_buf_view(&text),
                               MO_SPAN("[1 0 1]\n[9 0 1]\n[9 4 1]\n" START)));
    assert_true(mo_span_ends(mo_buf_view(&text), MO_SPAN("v\n" SET)));
}

/* --- refused ------------------------------------------------------------- */

static void test_refused_fields(void **state)
{
    static const char *const rows[] = {
        ":method: GET\n:scheme: https\n:path: /\n",
        ":method: GET\n:scheme: https\n:authority: b.test\n:path: /\n",
        ":method: GET\n:scheme: https\n:authority: api.test:1\n:path: /\n",
        ":method: GET\n:scheme: http\n:authority: api.test\n:path: /\n",
        ":method: GET\n:scheme: https\n:authority: api.test\n",
        ":method: GET\n:scheme: https\n:authority: api.test\n:path: "
        "http://b/\n",
        ":scheme: https\n:authority: api.test\n:path: /\n",
        ":method: TRACE\n:scheme: https\n:authority: api.test\n:path: /\n",
        ":method: CONNECT\n:authority: api.test\n",
        ":method: CONNECT\n:scheme: https\n:authority: api.test\n:path: /\n",
        START ":path: /two\n",
        START ":status: 200\n",
        START "host: b.test\n",
        START "host: api.test\nhost: api.test\n",
        START "a: b\n:protocol: x\n",
        START "Upper: case\n",
        START "bad name: x\n",
        START ": empty\n",
        START "a: b\rc\n",
        START "connection: close\n",
        START "transfer-encoding: chunked\n",
        START "upgrade: websocket\n",
        START "te: gzip\n",
        START "content-length: 1\ncontent-length: 1\n",
        START "content-length: 1, 1\n",
        START "content-length: -1\n",
        START "content-length: 1\n", /* and no body */
        "content-length: 1\n",
        "host: api.test\n",
    };

    (void)state;
    for (size_t i = 0; i < MO_COUNT(rows); i++) {
        mo_autobuf struct mo_buf in = {.max = 1 << 16}, out = {.max = 1 << 16};
        struct mo_err e = {0};

        mo_buf_puts(&in, PREFACE);
        put_headers(&in, 1, END_STREAM, rows[i]);
        check_row(rows[i], feed(mo_buf_view(&in), in.len, &out, &e) < 0);
        check_row(rows[i], feed(mo_buf_view(&in), 1, &out, &e) < 0);
        check_row(rows[i],
                  mo_span_search(mo_buf_view(&out), MO_SPAN("Bearer S")) < 0);
    }
}

static void put_post(struct mo_buf *in)
{
    mo_buf_puts(in, PREFACE);
    put_headers(in, 1, 0, START "content-length: 2\n");
}

static void put_bad(struct mo_buf *in, unsigned i)
{
    mo_autobuf struct mo_buf block = {.max = 1 << 17};

    switch (i) {
    case 0: /* no preface */
        put_headers(in, 1, END_STREAM, START);
        break;
    case 1: /* a longer body */
        put_post(in);
        put_frame(in, 0, 0, 1, MO_SPAN("abc"));
        break;
    case 2: /* a shorter one */
        put_post(in);
        put_frame(in, 0, END_STREAM, 1, MO_SPAN("a"));
        break;
    case 3: /* ... that ends with trailers */
        put_post(in);
        put_headers(in, 1, END_STREAM, "a: b\n");
        break;
    case 4: /* padding that is no body */
        put_post(in);
        put_frame(in, 0, END_STREAM | PADDED, 1, MO_SPAN("\1a\0"));
        break;
    case 5: /* more padding than payload */
        put_post(in);
        put_frame(in, 0, PADDED, 1, MO_SPAN("\2a"));
        break;
    case 6: /* a push of the client */
        mo_buf_puts(in, PREFACE);
        put_frame(in, 5, END_HEADERS, 1, MO_SPAN("\0\0\0\2\x82"));
        break;
    case 7: /* CONTINUATION of nothing */
        mo_buf_puts(in, PREFACE);
        put_frame(in, 9, END_HEADERS, 1, MO_SPAN("\x82"));
        break;
    case 8: /* another frame in between */
        mo_buf_puts(in, PREFACE);
        put_frame(in, 1, END_STREAM, 1, MO_SPAN("\x82"));
        put_frame(in, 6, 0, 0, MO_SPAN("12345678"));
        break;
    case 9: /* of another stream */
        mo_buf_puts(in, PREFACE);
        put_frame(in, 1, END_STREAM, 1, MO_SPAN("\x82"));
        put_frame(in, 9, END_HEADERS, 3, MO_SPAN("\x82"));
        break;
    case 10: /* too long */
        for (size_t n = 0; n < 70000; n++)
            mo_buf_putc(&block, 'v');
        mo_buf_puts(in, PREFACE);
        put_frame(in, 1, END_STREAM | END_HEADERS, 1, mo_buf_view(&block));
        break;
    case 11: /* stream 0 */
        mo_buf_puts(in, PREFACE);
        put_headers(in, 0, END_STREAM, START);
        break;
    case 12: /* a second request in a stream */
        put_post(in);
        put_headers(in, 1, 0, START "content-length: 2\n");
        break;
    case 13: /* no fields at all */
        mo_buf_puts(in, PREFACE);
        put_frame(in, 1, END_HEADERS, 1, MO_SPAN(""));
        break;
    case 14: /* no room for the padding and the priority */
        mo_buf_puts(in, PREFACE);
        put_frame(in, 1, END_HEADERS | PADDED | WITH_PRIORITY, 1,
                  MO_SPAN("\2\0\0\0\0\0\0"));
        break;
    default: /* trailers that end nothing */
        put_post(in);
        put_headers(in, 1, 0, "a: b\n");
    }
}

static void test_refused_frames(void **state)
{
    (void)state;
    for (unsigned i = 0; i < 16; i++) {
        mo_autobuf struct mo_buf in = {.max = 1 << 17}, out = {.max = 1 << 17};
        struct mo_err e = {0};

        put_bad(&in, i);
        if (feed(mo_buf_view(&in), in.len, &out, &e) == 0 ||
            feed(mo_buf_view(&in), 1, &out, &e) == 0)
            fail_msg("row %u", i);
    }
}

static void feed_one(void *ctx)
{
    mo_autobuf struct mo_buf out = {.max = 1 << 16};
    struct mo_http_edge_opts o = {.host = "api.test",
                                  .port = 8443,
                                  .h2 = true,
                                  .headers = set,
                                  .n = MO_COUNT(set)};
    struct mo_http_edge *x = mo_http_edge_new(&o);
    struct mo_err e = {0};

    if (x && mo_http_edge_feed(x, mo_buf_view(ctx), &out, &e) < 0)
        assert_int_equal(e.code, MO_ENOMEM);
    mo_http_edge_free(x);
}

static void test_torture(void **state)
{
    struct mo_buf in = {.max = 1 << 16};

    (void)state;
    put_post(&in);
    torture(feed_one, &in);
    mo_buf_fini(&in);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_requests),
        cmocka_unit_test(test_shapes),
        cmocka_unit_test(test_long),
        cmocka_unit_test(test_refused_fields),
        cmocka_unit_test(test_refused_frames),
        cmocka_unit_test(test_torture),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
