/* Requests with headers set, and those that are refused. Each row is fed as a
 * whole, byte by byte and cut in two: pieces must not matter. */
#include "egress/http_edge.h"

#include "mo_test.h"

static const struct mo_http_edge_header set[] = {
    {"Authorization", {"Bearer S", 8}},
    {"X-Key", {"K", 1}},
};

#define SET "Authorization: Bearer S\r\nX-Key: K\r\n"

static struct mo_http_edge *edge_new(bool h2)
{
    struct mo_http_edge_opts o = {.host = "api.test",
                                  .port = 8443,
                                  .h2 = h2,
                                  .headers = set,
                                  .n = MO_COUNT(set)};
    struct mo_http_edge *x = mo_http_edge_new(&o);

    assert_non_null(x);
    return x;
}

/* Feeds it in pieces of n bytes, the first one of `first`. */
static int feed(struct mo_span in, size_t first, size_t n, struct mo_buf *out,
                struct mo_err *e)
{
    struct mo_http_edge *x = edge_new(false);
    int rc = 0;

    mo_buf_reset(out);
    for (size_t take = first; rc == 0 && in.n; take = n)
        rc = mo_http_edge_feed(x, mo_span_take(&in, take < in.n ? take : in.n),
                               out, e);
    mo_http_edge_free(x);
    return rc;
}

#define H "Host: api.test:8443\r\n"

static const struct {
    const char *name, *in, *out, *wrong;
} rows[] = {
    {"plain", "GET / HTTP/1.1\r\n" H "\r\n", "GET / HTTP/1.1\r\n" H SET "\r\n",
     NULL},
    {"without a port", "GET / HTTP/1.1\r\nHost: API.Test.\r\n\r\n",
     "GET / HTTP/1.1\r\nHost: API.Test.\r\n" SET "\r\n", NULL},
    {"HTTP/1.0", "GET / HTTP/1.0\r\n" H "\r\n",
     "GET / HTTP/1.0\r\n" H SET "\r\n", NULL},
    {"replaced",
     "GET / HTTP/1.1\r\nauthorization: mine\r\n" H
     "x-KEY:\r\nX-Key-2: stays\r\nAUTHORIZATION: two\r\n\r\n",
     "GET / HTTP/1.1\r\n" H "X-Key-2: stays\r\n" SET "\r\n", NULL},
    {"a body with a length",
     "POST /a HTTP/1.1\r\n" H
     "Content-Length: 5\r\n\r\nhelloGET / HTTP/1.1\r\n" H "\r\n",
     "POST /a HTTP/1.1\r\n" H "Content-Length: 5\r\n" SET
     "\r\nhelloGET / HTTP/1.1\r\n" H SET "\r\n",
     NULL},
    {"WebSocket",
     "GET / HTTP/1.1\r\n" H
     "Connection: Upgrade\r\nUpgrade: websocket\r\n\r\nGET / HTTP/1.1\r\n\r\n",
     "GET / HTTP/1.1\r\n" H "Connection: Upgrade\r\nUpgrade: websocket\r\n" SET
     "\r\nGET / HTTP/1.1\r\n\r\n",
     NULL},
    {"Upgrade without Connection",
     "GET / HTTP/1.1\r\n" H "Upgrade: x\r\n\r\nGET / HTTP/1.1\r\n" H "\r\n",
     "GET / HTTP/1.1\r\n" H "Upgrade: x\r\n" SET "\r\nGET / HTTP/1.1\r\n" H
     "\r\n",
     NULL},
    {"another host", "GET / HTTP/1.1\r\nHost: b.test\r\n\r\n", NULL,
     "names another host"},
    {"another port", "GET / HTTP/1.1\r\nHost: api.test:1\r\n\r\n", NULL,
     "names another host"},
    {"no port", "GET / HTTP/1.1\r\nHost: api.test:\r\n\r\n", NULL, ""},
    {"a host below", "GET / HTTP/1.1\r\nHost: x.api.test\r\n\r\n", NULL,
     "names another host"},
    {"no host", "GET / HTTP/1.1\r\n\r\n", NULL, ""},
    {"no host in 1.0", "GET / HTTP/1.0\r\n\r\n", NULL, "names no host"},
    {"two hosts", "GET / HTTP/1.1\r\n" H H "\r\n", NULL, ""},
    {"absolute form", "GET http://b.test/ HTTP/1.1\r\n" H "\r\n", NULL, ""},
    {"absolute form, own", "GET https://api.test:8443/ HTTP/1.1\r\n" H "\r\n",
     NULL, ""},
    {"CONNECT", "CONNECT api.test:8443 HTTP/1.1\r\n" H "\r\n", NULL, ""},
    {"TRACE", "TRACE / HTTP/1.1\r\n" H "\r\n", NULL, "TRACE"},
    {"both framings",
     "POST / HTTP/1.1\r\n" H
     "Content-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
     NULL, ""},
    {"two lengths",
     "POST / HTTP/1.1\r\n" H
     "Content-Length: 4\r\nContent-Length: 4\r\n\r\nabcd",
     NULL, ""},
    {"a length with a sign",
     "POST / HTTP/1.1\r\n" H "Content-Length: +4\r\n\r\nabcd", NULL, ""},
    {"another coding",
     "POST / HTTP/1.1\r\n" H "Transfer-Encoding: gzip, chunked\r\n\r\n", NULL,
     ""},
    {"a coding in disguise",
     "POST / HTTP/1.1\r\n" H "Transfer-Encoding : chunked\r\n\r\n0\r\n\r\n",
     NULL, ""},
    {"a coding in 1.0",
     "POST / HTTP/1.0\r\n" H "Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
     NULL, ""},
    {"a folded line",
     "POST / HTTP/1.1\r\n" H "X: a\r\n Transfer-Encoding: chunked\r\n\r\n",
     NULL, ""},
    {"LF only", "GET / HTTP/1.1\n" H "\n", NULL, ""},
    {"a bare CR", "GET / HTTP/1.1\r\n" H "X: a\rAuthorization: b\r\n\r\n", NULL,
     ""},
    {"a trailer",
     "POST / HTTP/1.1\r\n" H
     "Transfer-Encoding: chunked\r\n\r\n0\r\nA: b\r\n\r\n",
     NULL, ""},
    {"a chunk that is longer",
     "POST / HTTP/1.1\r\n" H "Transfer-Encoding: chunked\r\n\r\n2\r\nabc\r\n",
     NULL, ""},
    {"a chunk size in disguise",
     "POST / HTTP/1.1\r\n" H "Transfer-Encoding: chunked\r\n\r\n0x2\r\nab\r\n",
     NULL, ""},
    {"HTTP/2 without ALPN", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", NULL, ""},
    {"not HTTP", "hello\r\n\r\n", NULL, ""},
};

static void check_one(size_t i, size_t first, size_t n)
{
    mo_autobuf struct mo_buf out = {.max = 1 << 16};
    struct mo_err e = {0};
    int rc = feed(mo_span_cstr(rows[i].in), first, n, &out, &e);

    if (rows[i].out) {
        if (rc < 0)
            fail_msg("%s: %s", rows[i].name, e.msg);
        assert_string_equal(mo_buf_cstr(&out), rows[i].out);
    } else {
        check_row(rows[i].name, rc < 0);
        if (!strstr(e.msg, rows[i].wrong))
            fail_msg("%s: %s", rows[i].name, e.msg);
        check_row(rows[i].name, !strstr(mo_buf_cstr(&out), "Bearer S") ||
                                    strstr(rows[i].in, "chunked"));
    }
}

static void requests(void **state)
{
    (void)state;
    for (size_t i = 0; i < MO_COUNT(rows); i++) {
        size_t all = strlen(rows[i].in);

        check_one(i, all, all);
        check_one(i, 1, 1);
        for (size_t cut = 1; cut < all; cut++)
            check_one(i, cut, all);
    }
}

/* Chunks are written anew, so their borders follow the pieces. */
static void chunks(void **state)
{
    static const char in[] =
        "POST / HTTP/1.1\r\n" H "Transfer-Encoding: chunked\r\n\r\n"
        "05;a=b\r\nhello\r\n006\r\n world\r\n0\r\n\r\nGET / HTTP/1.1\r\n" H
        "\r\n";
    static const char head[] =
        "POST / HTTP/1.1\r\n" H "Transfer-Encoding: chunked\r\n" SET "\r\n";
    mo_autobuf struct mo_buf out = {.max = 1 << 16};
    struct mo_err e;

    (void)state;
    assert_int_equal(feed(mo_span_cstr(in), sizeof(in), 1, &out, &e), 0);
    assert_true(mo_span_starts(mo_buf_view(&out), mo_span_cstr(head)));
    assert_string_equal(mo_buf_cstr(&out) + sizeof(head) - 1,
                        "5\r\nhello\r\n6\r\n world\r\n0\r\n\r\n"
                        "GET / HTTP/1.1\r\n" H SET "\r\n");
    assert_int_equal(feed(mo_span_cstr(in), 1, 1, &out, &e), 0);
    assert_string_equal(mo_buf_cstr(&out) + sizeof(head) - 1,
                        "1\r\nh\r\n1\r\ne\r\n1\r\nl\r\n1\r\nl\r\n1\r\no\r\n"
                        "1\r\n \r\n1\r\nw\r\n1\r\no\r\n1\r\nr\r\n1\r\nl\r\n"
                        "1\r\nd\r\n0\r\n\r\nGET / HTTP/1.1\r\n" H SET "\r\n");
}

static void failed_is_final(void **state)
{
    static const char good[] = "GET / HTTP/1.1\r\n" H "\r\n";
    mo_autobuf struct mo_buf out = {.max = 1 << 16};
    struct mo_http_edge *x = edge_new(false);
    struct mo_err e = {0};

    (void)state;
    assert_int_equal(mo_http_edge_feed(x, mo_span_cstr(good), &out, &e), 0);
    assert_int_equal(mo_http_edge_count(x), 1);
    assert_true(mo_http_edge_feed(x, MO_SPAN("no\r\n\r\n"), &out, &e) < 0);
    mo_buf_reset(&out);
    assert_true(mo_http_edge_feed(x, mo_span_cstr(good), &out, &e) < 0);
    assert_int_equal(out.len, 0);
    assert_int_equal(mo_http_edge_count(x), 1);
    mo_http_edge_free(x);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(requests),
        cmocka_unit_test(chunks),
        cmocka_unit_test(failed_is_final),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
