#include "codec/http/http1.h"
#include "mo_test.h"

/* A transcript is what a caller saw, in one line per thing: pieces of one
 * body are joined, so the same bytes must give the same transcript however
 * they were cut. */
struct player {
    struct mo_http1 *h;
    struct mo_buf log;
    bool in_body, over, switched, head_only;
};

static void log_flags(struct player *p, const struct mo_http_head *hd)
{
    mo_buf_printf(&p->log, " 1.%d %lld %s%s%s%s", hd->minor,
                  (long long)hd->content_length, hd->keep_alive ? "k" : "",
                  hd->chunked ? "c" : "", hd->upgrade ? "u" : "",
                  hd->expect_continue ? "x" : "");
}

static void log_head(struct player *p)
{
    const struct mo_http_head *hd = mo_http1_head(p->h);

    if (hd->status) {
        mo_buf_printf(&p->log, "%d '%.*s'", hd->status, (int)hd->reason.n,
                      hd->reason.p);
    } else {
        mo_buf_printf(&p->log, "%.*s(%s) ", (int)hd->method_text.n,
                      hd->method_text.p, mo_http_method_name(hd->method));
        mo_buf_span(&p->log, hd->target);
    }
    log_flags(p, hd);
    for (size_t i = 0; i < hd->nheaders; i++) {
        mo_buf_putc(&p->log, '|');
        mo_buf_span(&p->log, hd->headers[i].name);
        mo_buf_putc(&p->log, '=');
        mo_buf_span(&p->log, hd->headers[i].value);
    }
    mo_buf_putc(&p->log, '\n');
    p->switched = hd->status == 101;
}

static void log_body(struct player *p, struct mo_span body)
{
    assert_true(body.n > 0);
    if (!p->in_body)
        mo_buf_putc(&p->log, '"');
    p->in_body = true;
    mo_buf_span(&p->log, body);
}

static void end_body(struct player *p)
{
    if (p->in_body)
        mo_buf_puts(&p->log, "\"\n");
    p->in_body = false;
}

static void play_done(struct player *p, struct mo_span in)
{
    struct mo_span before = in;
    struct mo_err e;

    end_body(p);
    mo_buf_puts(&p->log, "done\n");
    /* DONE stays DONE and takes nothing until reset. */
    assert_int_equal(mo_http1_next(p->h, &in, NULL, &e), MO_HTTP1_DONE);
    assert_true(in.p == before.p && in.n == before.n);
    if (p->switched) {
        mo_buf_puts(&p->log, "rest:");
        mo_buf_span(&p->log, in);
        p->over = true;
        return;
    }
    mo_http1_reset(p->h);
    assert_false(mo_http1_begun(p->h));
}

static void play_error(struct player *p, const struct mo_err *e)
{
    struct mo_span none = {0};
    struct mo_err again;

    end_body(p);
    mo_buf_printf(&p->log, "error %d\n", mo_http1_status(p->h));
    assert_true(e->code < 0);
    assert_int_equal(mo_http1_next(p->h, &none, NULL, &again), MO_HTTP1_ERROR);
    assert_int_equal(again.code, e->code);
    p->over = true;
}

/* Feed one piece from a block of exactly its size: ASan sees a step over. */
static void play(struct player *p, struct mo_span s)
{
    char *copy = mo_strndup(s.p, s.n);
    struct mo_span in = mo_span(copy, s.n), body;
    struct mo_err e;
    enum mo_http1_event ev;

    assert_non_null(copy);
    if (p->over && p->switched)
        mo_buf_span(&p->log, s);
    while (!p->over) {
        ev = mo_http1_next(p->h, &in, &body, &e);
        if (ev == MO_HTTP1_MORE) {
            assert_int_equal(in.n, 0);
            break;
        }
        if (ev == MO_HTTP1_HEAD)
            log_head(p);
        if (ev == MO_HTTP1_BODY)
            log_body(p, body);
        if (ev == MO_HTTP1_DONE)
            play_done(p, in);
        if (ev == MO_HTTP1_ERROR)
            play_error(p, &e);
    }
    mo_free(copy);
}

static void play_eof(struct player *p)
{
    enum mo_http1_event ev;
    struct mo_err e;

    if (p->over)
        return;
    ev = mo_http1_eof(p->h, &e);
    end_body(p);
    if (ev == MO_HTTP1_DONE)
        mo_buf_puts(&p->log, "done\n");
    if (ev == MO_HTTP1_ERROR)
        mo_buf_puts(&p->log, "cut short\n");
}

/* step 0: two pieces, cut at `cut`; else pieces of `step` bytes. */
static void run(struct player *p, enum mo_http1_kind kind, struct mo_span in,
                size_t cut, size_t step)
{
    *p = (struct player){.head_only = p->head_only};
    p->h = mo_http1_new(kind);
    assert_non_null(p->h);
    mo_buf_init(&p->log, 4 << 20);
    if (p->head_only)
        mo_http1_expect_no_body(p->h);
    if (step == 0) {
        play(p, mo_span_head(in, cut));
        play(p, mo_span_skip(in, cut));
    } else {
        for (; in.n; in = mo_span_skip(in, step))
            play(p, mo_span_head(in, step));
    }
    play_eof(p);
    mo_http1_free(p->h);
}

static void check(const char *name, enum mo_http1_kind kind, struct mo_span in,
                  const char *want, size_t cut, size_t step, bool head_only)
{
    struct player p = {.head_only = head_only};

    run(&p, kind, in, cut, step);
    if (strcmp(mo_buf_cstr(&p.log), want) != 0)
        fail_msg("row '%s' cut %zu step %zu: got\n%.2000s\nwant\n%.2000s", name,
                 cut, step, mo_buf_cstr(&p.log), want);
    mo_buf_fini(&p.log);
}

static void check_cuts(const char *name, enum mo_http1_kind kind,
                       struct mo_span in, const char *want, bool head_only)
{
    for (size_t cut = 0; cut <= in.n; cut++)
        check(name, kind, in, want, cut, 0, head_only);
    for (size_t step = 1; step <= 5 && step < in.n; step++)
        check(name, kind, in, want, 0, step, head_only);
}

struct row {
    const char *name;
    struct mo_span in;
    const char *want;
};

#define ROW(name, in, want)                                                    \
    {                                                                          \
        name, {in, sizeof(in) - 1}, want                                       \
    }
#define H "Host: a\r\n"

static const struct row good[] = {
    ROW("nothing", "", ""),
    ROW("smallest", "GET / HTTP/1.1\r\nHost:\r\n\r\n",
        "GET(GET) / 1.1 -1 k|Host=\ndone\n"),
    ROW("1.0 needs no host and closes", "GET /a?b=c HTTP/1.0\r\n\r\n",
        "GET(GET) /a?b=c 1.0 -1 \ndone\n"),
    ROW("1.0 keep-alive", "GET / HTTP/1.0\r\nConnection: a, Keep-Alive\r\n\r\n",
        "GET(GET) / 1.0 -1 k|Connection=a, Keep-Alive\ndone\n"),
    ROW("close wins",
        "GET / HTTP/1.1\r\n" H "Connection: keep-alive,close\r\n\r\n",
        "GET(GET) / 1.1 -1 |Host=a|Connection=keep-alive,close\ndone\n"),
    ROW("blanks around values go",
        "GET / HTTP/1.1\r\nHost:\t a:80 \t\r\nX-Y:  b \t c  \r\n\r\n",
        "GET(GET) / 1.1 -1 k|Host=a:80|X-Y=b \t c\ndone\n"),
    ROW("colons and commas in values",
        "GET / HTTP/1.1\r\nhost: [::1]:3000\r\nx: a:b, c\r\n\r\n",
        "GET(GET) / 1.1 -1 k|host=[::1]:3000|x=a:b, c\ndone\n"),
    ROW("high bytes in values are opaque",
        "GET / HTTP/1.1\r\n" H "x: \xc3\xa9\xff\r\n\r\n",
        "GET(GET) / 1.1 -1 k|Host=a|x=\xc3\xa9\xff\ndone\n"),
    ROW("length", "POST /p HTTP/1.1\r\n" H "Content-Length: 5\r\n\r\nhello",
        "POST(POST) /p 1.1 5 k|Host=a|Content-Length=5\n\"hello\"\ndone\n"),
    ROW("length zero", "PUT /p HTTP/1.1\r\n" H "Content-Length: 0\r\n\r\n",
        "PUT(PUT) /p 1.1 0 k|Host=a|Content-Length=0\ndone\n"),
    ROW("length short", "PUT /p HTTP/1.1\r\n" H "Content-Length: 3\r\n\r\nab",
        "PUT(PUT) /p 1.1 3 k|Host=a|Content-Length=3\n\"ab\"\ncut short\n"),
    ROW("largest length",
        "PUT / HTTP/1.1\r\n" H "Content-Length: 9223372036854775807\r\n\r\n",
        "PUT(PUT) / 1.1 9223372036854775807 k|Host=a"
        "|Content-Length=9223372036854775807\ncut short\n"),
    ROW("chunked",
        "POST / HTTP/1.1\r\n" H "Transfer-Encoding: Chunked\r\n\r\n"
        "5\r\nhello\r\n1;ext=\"v \t\"\r\n \r\n00b\r\nlast\r\nof "
        "it\r\n0\r\n\r\n",
        "POST(POST) / 1.1 -1 kc|Host=a|Transfer-Encoding=Chunked\n"
        "\"hello last\r\nof it\"\ndone\n"),
    ROW("chunked and empty",
        "POST / HTTP/1.1\r\n" H
        "Transfer-Encoding: chunked\r\n\r\n000;x\r\n\r\n",
        "POST(POST) / 1.1 -1 kc|Host=a|Transfer-Encoding=chunked\ndone\n"),
    ROW("pipelined",
        "POST /1 HTTP/1.1\r\n" H "Content-Length: 2\r\n\r\nab"
        "GET /2 HTTP/1.1\r\n" H "\r\n"
        "DELETE /3 HTTP/1.1\r\n" H "Transfer-Encoding: chunked\r\n\r\n"
        "1\r\nx\r\n0\r\n\r\n"
        "PATCH /4 HTTP/1.1\r\n" H "\r\n",
        "POST(POST) /1 1.1 2 k|Host=a|Content-Length=2\n\"ab\"\ndone\n"
        "GET(GET) /2 1.1 -1 k|Host=a\ndone\n"
        "DELETE(DELETE) /3 1.1 -1 kc|Host=a|Transfer-Encoding=chunked\n"
        "\"x\"\ndone\n"
        "PATCH(PATCH) /4 1.1 -1 k|Host=a\ndone\n"),
    ROW("options star", "OPTIONS * HTTP/1.1\r\n" H "\r\n",
        "OPTIONS(OPTIONS) * 1.1 -1 k|Host=a\ndone\n"),
    ROW("other method", "PROPFIND / HTTP/1.1\r\n" H "\r\n",
        "PROPFIND(OTHER) / 1.1 -1 k|Host=a\ndone\n"),
    ROW("head", "HEAD / HTTP/1.1\r\n" H "\r\n",
        "HEAD(HEAD) / 1.1 -1 k|Host=a\ndone\n"),
    ROW("expect",
        "POST / HTTP/1.1\r\n" H "Expect: 100-Continue\r\nContent-Length: 1"
        "\r\n\r\nz",
        "POST(POST) / 1.1 1 kx|Host=a|Expect=100-Continue|Content-Length=1\n"
        "\"z\"\ndone\n"),
    ROW("upgrade",
        "GET /ws HTTP/1.1\r\n" H "Connection: keep-alive, Upgrade\r\n"
        "Upgrade: websocket\r\n\r\n",
        "GET(GET) /ws 1.1 -1 ku|Host=a|Connection=keep-alive, Upgrade"
        "|Upgrade=websocket\ndone\n"),
    ROW("upgrade needs both",
        "GET /ws HTTP/1.1\r\n" H "Upgrade: websocket\r\n\r\n",
        "GET(GET) /ws 1.1 -1 k|Host=a|Upgrade=websocket\ndone\n"),
    ROW("no upgrade in 1.0",
        "GET / HTTP/1.0\r\nConnection: upgrade\r\nUpgrade: websocket\r\n\r\n",
        "GET(GET) / 1.0 -1 |Connection=upgrade|Upgrade=websocket\ndone\n"),
    ROW("cut in the head", "GET / HTTP/1.1\r\nHos", "cut short\n"),
};

static void test_good(void **state)
{
    (void)state;
    for (size_t i = 0; i < MO_COUNT(good); i++)
        check_cuts(good[i].name, MO_HTTP1_REQUEST, good[i].in, good[i].want,
                   false);
}

#define BAD(status, name, in)                                                  \
    {                                                                          \
        name, {in, sizeof(in) - 1}, "error " #status "\n"                      \
    }
#define G "GET / HTTP/1.1\r\n"
#define P "POST / HTTP/1.1\r\n" H

/* Everything two parsers could read in two ways, and what we do not offer. */
static const struct row bad[] = {
    BAD(400, "bare CR ends a line (CVE-2023-30589)",
        G H "X: a\rTransfer-Encoding: chunked\r\n\r\n"),
    BAD(400, "bare CR ends the head", G H "X: a\r\r\n\r\n"),
    BAD(400, "bare CR in the request line", "GET /\r HTTP/1.1\r\n" H "\r\n"),
    BAD(400, "space before a name (CVE-2024-27982)",
        "POST / HTTP/1.1\r\n Content-Length: 5\r\n" H "\r\nhello"),
    BAD(400, "space before a later name", P " Content-Length: 5\r\n\r\nhello"),
    BAD(400, "tab before a name", P "\tContent-Length: 5\r\n\r\nhello"),
    BAD(400, "blank before the colon", P "Transfer-Encoding : chunked\r\n\r\n"),
    BAD(400, "tab before the colon", P "Content-Length\t: 1\r\n\r\n"),
    BAD(400, "blank inside a name", P "Content Length: 1\r\n\r\n"),
    BAD(400, "length and coding",
        P "Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"),
    BAD(400, "coding and length",
        P "Transfer-Encoding: chunked\r\nContent-Length: 5\r\n\r\n0\r\n\r\n"),
    BAD(400, "two lengths differ",
        P "Content-Length: 5\r\nContent-Length: 6\r\n\r\nhello!"),
    BAD(400, "two lengths alike",
        P "Content-Length: 5\r\ncontent-length: 5\r\n\r\nhello"),
    BAD(400, "list of lengths", P "Content-Length: 5, 5\r\n\r\nhello"),
    BAD(400, "empty length", P "Content-Length:\r\n\r\n"),
    BAD(400, "signed length", P "Content-Length: +5\r\n\r\nhello"),
    BAD(400, "negative length", P "Content-Length: -5\r\n\r\nhello"),
    BAD(400, "hex length", P "Content-Length: 0x5\r\n\r\nhello"),
    BAD(400, "length and blank", P "Content-Length: 5 0\r\n\r\nhello"),
    BAD(400, "length over 2^63-1",
        P "Content-Length: 9223372036854775808\r\n\r\n"),
    BAD(400, "length over 2^64",
        P "Content-Length: 18446744073709551617\r\n\r\nh"),
    BAD(400, "LF only", "GET / HTTP/1.1\nHost: a\n\n"),
    BAD(400, "one LF", G "Host: a\n\r\n"),
    BAD(400, "LF ends the head", G H "\n"),
    BAD(400, "obs-fold", G H "X: a\r\n b\r\n\r\n"),
    BAD(400, "obs-fold with tab", G H "X: a\r\n\tb\r\n\r\n"),
    BAD(400, "empty line first", "\r\n" G H "\r\n"),
    BAD(400, "NUL in value", G H "X: a\0b\r\n\r\n"),
    BAD(400, "NUL in name", G H "X\0: b\r\n\r\n"),
    BAD(400, "NUL in target", "GET /\0 HTTP/1.1\r\n" H "\r\n"),
    BAD(400, "no colon", G H "X\r\n\r\n"),
    BAD(400, "empty name", G H ": x\r\n\r\n"),
    BAD(400, "no host", G "\r\n"),
    BAD(400, "two hosts", G H H "\r\n"),
    BAD(400, "two hosts in 1.0", "GET / HTTP/1.0\r\n" H H "\r\n"),
    BAD(400, "host with a path", G "Host: a/b\r\n\r\n"),
    BAD(400, "host with a user", G "Host: b@a\r\n\r\n"),
    BAD(400, "host list", G "Host: a, b\r\n\r\n"),
    BAD(400, "host with blank", G "Host: a b\r\n\r\n"),
    BAD(400, "host not ASCII", G "Host: \xc3\xa9\r\n\r\n"),
    BAD(400, "absolute-form", "GET http://a/ HTTP/1.1\r\n" H "\r\n"),
    BAD(400, "authority-form", "GET a:80 HTTP/1.1\r\n" H "\r\n"),
    BAD(400, "star for GET", "GET * HTTP/1.1\r\n" H "\r\n"),
    BAD(400, "longer star", "OPTIONS *a HTTP/1.1\r\n" H "\r\n"),
    BAD(400, "no target", "GET HTTP/1.1\r\n" H "\r\n"),
    BAD(400, "empty target", "GET  HTTP/1.1\r\n" H "\r\n"),
    BAD(400, "two blanks", "GET  / HTTP/1.1\r\n" H "\r\n"),
    BAD(400, "blank at the end", "GET / HTTP/1.1 \r\n" H "\r\n"),
    BAD(400, "blank in target", "GET /a b HTTP/1.1\r\n" H "\r\n"),
    BAD(400, "tab in target", "GET /a\tb HTTP/1.1\r\n" H "\r\n"),
    BAD(400, "fragment", "GET /a#b HTTP/1.1\r\n" H "\r\n"),
    BAD(400, "target not ASCII", "GET /\xc3\xa9 HTTP/1.1\r\n" H "\r\n"),
    BAD(400, "DEL in target", "GET /\x7f HTTP/1.1\r\n" H "\r\n"),
    BAD(400, "0.9", "GET /\r\n\r\n"),
    BAD(400, "no version", "GET / HTTP\r\n" H "\r\n"),
    BAD(400, "version letters", "GET / HTTP/1.x\r\n" H "\r\n"),
    BAD(400, "lower case http", "GET / http/1.1\r\n" H "\r\n"),
    BAD(400, "other protocol", "GET / ICE/1.0\r\n" H "\r\n"),
    BAD(400, "other protocol, same length", "SETUP / RTSP/1.0\r\n" H "\r\n"),
    BAD(400, "TLS hello, no line yet", "\x16\x03\x01\x02"),
    BAD(400, "TLS hello", "\x16\x03\x01\x02\r\n\r\n"),
    BAD(505, "HTTP/0.9", "GET / HTTP/0.9\r\n" H "\r\n"),
    BAD(505, "HTTP/1.2", "GET / HTTP/1.2\r\n" H "\r\n"),
    BAD(505, "HTTP/2.0", "GET / HTTP/2.0\r\n" H "\r\n"),
    BAD(505, "HTTP/2 preface", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"),
    BAD(501, "CONNECT", "CONNECT a:80 HTTP/1.1\r\n" H "\r\n"),
    BAD(501, "unknown method", "FROB / HTTP/1.1\r\n" H "\r\n"),
    BAD(501, "lower case method", "get / HTTP/1.1\r\n" H "\r\n"),
    BAD(501, "gzip", P "Transfer-Encoding: gzip\r\n\r\n"),
    BAD(501, "gzip, chunked", P "Transfer-Encoding: gzip, chunked\r\n\r\n"),
    BAD(501, "chunked twice", P "Transfer-Encoding: chunked, chunked\r\n\r\n"),
    BAD(501, "identity", P "Transfer-Encoding: identity\r\n\r\n"),
    BAD(501, "chunked with comma", P "Transfer-Encoding: chunked,\r\n\r\n"),
    BAD(501, "xchunked", P "Transfer-Encoding: xchunked\r\n\r\n"),
    BAD(501, "quoted", P "Transfer-Encoding: \"chunked\"\r\n\r\n"),
    BAD(501, "parameter", P "Transfer-Encoding: chunked;a=b\r\n\r\n"),
    BAD(501, "vertical tab", P "Transfer-Encoding: \vchunked\r\n\r\n"),
    BAD(400, "empty coding", P "Transfer-Encoding:\r\n\r\n"),
    BAD(400, "two codings",
        P "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n"),
    BAD(400, "coding in 1.0",
        "POST / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"),
};

static void test_bad(void **state)
{
    (void)state;
    for (size_t i = 0; i < MO_COUNT(bad); i++)
        check_cuts(bad[i].name, MO_HTTP1_REQUEST, bad[i].in, bad[i].want,
                   false);
}

/* The head is fine; the chunks are not. */
static const struct row bad_chunks[] = {
    ROW("no size", "\r\nhello\r\n0\r\n\r\n", ""),
    ROW("no digits", ";a\r\nhello\r\n0\r\n\r\n", ""),
    ROW("letter", "g\r\nhello\r\n0\r\n\r\n", ""),
    ROW("0x", "0x5\r\nhello\r\n0\r\n\r\n", ""),
    ROW("sign", "+5\r\nhello\r\n0\r\n\r\n", ""),
    ROW("minus", "-5\r\nhello\r\n0\r\n\r\n", ""),
    ROW("blank before", " 5\r\nhello\r\n0\r\n\r\n", ""),
    ROW("blank after", "5 \r\nhello\r\n0\r\n\r\n", ""),
    ROW("blank before extension", "5 ;a\r\nhello\r\n0\r\n\r\n", ""),
    ROW("LF only", "5\nhello\r\n0\r\n\r\n", ""),
    ROW("LF in extension", "5;a\nhello\r\n0\r\n\r\n", ""),
    ROW("CR in extension", "5;a\rb\r\nhello\r\n0\r\n\r\n", ""),
    ROW("NUL in extension", "5;\0\r\nhello\r\n0\r\n\r\n", ""),
    ROW("high byte in extension", "5;\xff\r\nhello\r\n0\r\n\r\n", ""),
    ROW("2^63", "8000000000000000\r\n", ""),
    ROW("2^64", "10000000000000000\r\n", ""),
    ROW("2^68 by a leading zero", "0fffffffffffffffff\r\n", ""),
    ROW("17 zeros", "00000000000000000\r\n\r\n", ""),
    ROW("data too long", "2\r\nhello\r\n0\r\n\r\n", "\"he\"\n"),
    ROW("data ends in LF", "5\r\nhello\n0\r\n\r\n", "\"hello\"\n"),
    ROW("data ends in CR", "5\r\nhello\r0\r\n\r\n", "\"hello\"\n"),
    ROW("trailer", "0\r\nX: y\r\n\r\n", ""),
    ROW("LF ends the body", "0\r\n\n", ""),
    ROW("CR CR ends the body", "0\r\n\r\r", ""),
};

static void test_bad_chunks(void **state)
{
    static const char head[] = P "Transfer-Encoding: chunked\r\n\r\n";
    struct mo_buf in, want;

    (void)state;
    mo_buf_init(&in, 4096);
    mo_buf_init(&want, 4096);
    for (size_t i = 0; i < MO_COUNT(bad_chunks); i++) {
        mo_buf_reset(&in);
        mo_buf_reset(&want);
        mo_buf_puts(&in, head);
        mo_buf_span(&in, bad_chunks[i].in);
        mo_buf_puts(&want, "POST(POST) / 1.1 -1 kc|Host=a"
                           "|Transfer-Encoding=chunked\n");
        mo_buf_puts(&want, bad_chunks[i].want);
        mo_buf_puts(&want, "error 400\n");
        check_cuts(bad_chunks[i].name, MO_HTTP1_REQUEST, mo_buf_view(&in),
                   mo_buf_cstr(&want), false);
    }
    mo_buf_fini(&in);
    mo_buf_fini(&want);
}

static const struct row responses[] = {
    ROW("length", "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi",
        "200 'OK' 1.1 2 k|Content-Length=2\n\"hi\"\ndone\n"),
    ROW("no reason", "HTTP/1.1 200 \r\nContent-Length: 0\r\n\r\n",
        "200 '' 1.1 0 k|Content-Length=0\ndone\n"),
    ROW("no blank after the code", "HTTP/1.1 200\r\nContent-Length: 0\r\n\r\n",
        "200 '' 1.1 0 k|Content-Length=0\ndone\n"),
    ROW("long reason",
        "HTTP/1.1 404 no such thing \xff\r\n"
        "Content-Length: 0\r\n\r\n",
        "404 'no such thing \xff' 1.1 0 k|Content-Length=0\ndone\n"),
    ROW("chunked",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nhi\r\n0\r\n"
        "\r\n",
        "200 'OK' 1.1 -1 kc|Transfer-Encoding=chunked\n\"hi\"\ndone\n"),
    ROW("until close", "HTTP/1.1 200 OK\r\n\r\nhi\r\n\r\nthere",
        "200 'OK' 1.1 -1 \n\"hi\r\n\r\nthere\"\ndone\n"),
    ROW("until close, empty", "HTTP/1.0 200 OK\r\n\r\n",
        "200 'OK' 1.0 -1 \ndone\n"),
    ROW("closed too early", "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhi",
        "200 'OK' 1.1 9 k|Content-Length=9\n\"hi\"\ncut short\n"),
    ROW("closed between chunks",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nhi\r\n",
        "200 'OK' 1.1 -1 kc|Transfer-Encoding=chunked\n\"hi\"\ncut short\n"),
    ROW("204 and the next",
        "HTTP/1.1 204 No Content\r\n\r\nHTTP/1.1 304 Not Modified\r\n"
        "Content-Length: 99\r\n\r\nHTTP/1.1 204 No Content\r\n"
        "Content-Length: 0\r\n\r\n",
        "204 'No Content' 1.1 -1 k\ndone\n"
        "304 'Not Modified' 1.1 99 k|Content-Length=99\ndone\n"
        "204 'No Content' 1.1 0 k|Content-Length=0\ndone\n"),
    ROW("interim",
        "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 201 Created\r\n"
        "Content-Length: 1\r\n\r\nx",
        "100 'Continue' 1.1 -1 k\ndone\n"
        "201 'Created' 1.1 1 k|Content-Length=1\n\"x\"\ndone\n"),
    ROW("101 leaves the rest alone",
        "HTTP/1.1 101 UPGRADED\r\nConnection: Upgrade\r\nUpgrade: tcp\r\n\r\n"
        "\1\2\xff GET / HTTP/1.1\r\n\r\n",
        "101 'UPGRADED' 1.1 -1 u|Connection=Upgrade|Upgrade=tcp\ndone\n"
        "rest:\1\2\xff GET / HTTP/1.1\r\n\r\n"),
    ROW("101 without upgrade", "HTTP/1.1 101 X\r\n\r\nabc",
        "101 'X' 1.1 -1 \ndone\nrest:abc"),
    ROW("upgrade offer in a 200",
        "HTTP/1.1 200 OK\r\nConnection: upgrade\r\nUpgrade: h2c\r\n"
        "Content-Length: 1\r\n\r\nx",
        "200 'OK' 1.1 1 k|Connection=upgrade|Upgrade=h2c|Content-Length=1\n"
        "\"x\"\ndone\n"),
    BAD(400, "not a response", "GET / HTTP/1.1\r\n\r\n"),
    BAD(400, "two digits", "HTTP/1.1 20 OK\r\n\r\n"),
    BAD(400, "four digits", "HTTP/1.1 2000 OK\r\n\r\n"),
    BAD(400, "below 100", "HTTP/1.1 099 OK\r\n\r\n"),
    BAD(400, "above 599", "HTTP/1.1 600 OK\r\n\r\n"),
    BAD(400, "no code", "HTTP/1.1\r\n\r\n"),
    BAD(400, "two blanks", "HTTP/1.1  200 OK\r\n\r\n"),
    BAD(400, "control in reason", "HTTP/1.1 200 O\1K\r\n\r\n"),
    BAD(400, "NUL in reason", "HTTP/1.1 200 O\0K\r\n\r\n"),
    BAD(400, "bare CR", "HTTP/1.1 200 OK\rX: y\r\n\r\n"),
    BAD(400, "length and coding",
        "HTTP/1.1 200 OK\r\nContent-Length: 1\r\n"
        "Transfer-Encoding: chunked\r\n\r\n"),
    BAD(400, "two lengths",
        "HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 1\r\n\r\n"),
    BAD(501, "gzip", "HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip\r\n\r\n"),
    BAD(400, "204 with a body",
        "HTTP/1.1 204 OK\r\nContent-Length: 1\r\n\r\nx"),
    BAD(400, "100 chunked",
        "HTTP/1.1 100 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"),
    BAD(505, "version", "HTTP/2.0 200 OK\r\n\r\n"),
};

static void test_responses(void **state)
{
    (void)state;
    for (size_t i = 0; i < MO_COUNT(responses); i++)
        check_cuts(responses[i].name, MO_HTTP1_RESPONSE, responses[i].in,
                   responses[i].want, false);
}

static void test_head_answer(void **state)
{
    (void)state;
    check_cuts("length", MO_HTTP1_RESPONSE,
               MO_SPAN("HTTP/1.1 200 OK\r\nContent-Length: 99\r\n\r\n"),
               "200 'OK' 1.1 99 k|Content-Length=99\ndone\n", true);
    check_cuts("chunked", MO_HTTP1_RESPONSE,
               MO_SPAN("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"),
               "200 'OK' 1.1 -1 kc|Transfer-Encoding=chunked\ndone\n", true);
    check_cuts("neither", MO_HTTP1_RESPONSE, MO_SPAN("HTTP/1.1 200 OK\r\n\r\n"),
               "200 'OK' 1.1 -1 k\ndone\n", true);
}

/* --- limits -------------------------------------------------------------- */

static void fill(struct mo_buf *b, char c, size_t n)
{
    char *at = mo_buf_room(b, n);

    assert_non_null(at);
    memset(at, c, n);
    mo_buf_add(b, n);
}

/* Error status (0 if none) for prefix + n fill bytes + suffix, whole and in
 * odd pieces. */
static int status_of(const char *prefix, char c, size_t n, const char *suffix)
{
    static const size_t steps[] = {SIZE_MAX, 1, 997, 16384};
    struct mo_buf in;
    int got[4];

    mo_buf_init(&in, 4 << 20);
    mo_buf_puts(&in, prefix);
    fill(&in, c, n);
    mo_buf_puts(&in, suffix);
    for (size_t i = 0; i < MO_COUNT(steps); i++) {
        struct player p = {0};
        const char *at;

        run(&p, MO_HTTP1_REQUEST, mo_buf_view(&in), 0, steps[i]);
        at = strstr(mo_buf_cstr(&p.log), "error ");
        got[i] = at ? (int)strtol(at + 6, NULL, 10) : 0;
        mo_buf_fini(&p.log);
        assert_int_equal(got[i], got[0]);
    }
    mo_buf_fini(&in);
    return got[0];
}

static void test_limits(void **state)
{
    static const char line[] = "GET / HTTP/1.1\r\n" H "X: ";
    size_t fits = MO_HTTP_HEAD_MAX - (sizeof(line) - 1) - 4;
    static const char post[] = P "Transfer-Encoding: chunked\r\n\r\n1;";

    (void)state;
    assert_int_equal(status_of(line, 'a', fits, "\r\n\r\n"), 0);
    assert_int_equal(status_of(line, 'a', fits + 1, "\r\n\r\n"), 431);
    assert_int_equal(status_of(line, 'a', 1 << 20, "\r\n\r\n"), 431);
    assert_int_equal(status_of(G "X", 'a', 1 << 20, ": y\r\n\r\n"), 431);
    assert_int_equal(status_of("GET /", 'a', MO_HTTP_TARGET_MAX - 1,
                               " HTTP/1.1\r\n" H "\r\n"),
                     0);
    assert_int_equal(
        status_of("GET /", 'a', MO_HTTP_TARGET_MAX, " HTTP/1.1\r\n" H "\r\n"),
        414);
    assert_int_equal(status_of("GET /", 'a', 1 << 20, " HTTP/1.1\r\n" H "\r\n"),
                     414);
    /* size digit, ';' and CRLF count */
    assert_int_equal(
        status_of(post, 'e', MO_HTTP_CHUNK_LINE_MAX - 4, "\r\nx\r\n0\r\n\r\n"),
        0);
    assert_int_equal(
        status_of(post, 'e', MO_HTTP_CHUNK_LINE_MAX - 3, "\r\nx\r\n0\r\n\r\n"),
        400);
    assert_int_equal(status_of(post, 'e', 100000, "\r\nx\r\n0\r\n\r\n"), 400);
}

/* Many small chunks, each with a long extension. */
static int status_of_exts(size_t chunks, size_t ext)
{
    struct mo_buf b;
    int rc;

    mo_buf_init(&b, 1 << 20);
    mo_buf_puts(&b, P "Transfer-Encoding: chunked\r\n\r\n");
    for (size_t i = 0; i < chunks; i++) {
        mo_buf_puts(&b, "1;");
        fill(&b, 'e', ext);
        mo_buf_puts(&b, "\r\nx\r\n");
    }
    mo_buf_puts(&b, "0\r\n\r\n");
    rc = status_of(mo_buf_cstr(&b), ' ', 0, "");
    mo_buf_fini(&b);
    return rc;
}

static void test_ext_total(void **state)
{
    (void)state;
    assert_int_equal(status_of_exts(MO_HTTP_CHUNK_EXT_MAX / 128, 128), 0);
    assert_int_equal(status_of_exts(MO_HTTP_CHUNK_EXT_MAX / 128 + 1, 128), 400);
}

static int status_of_headers(unsigned n)
{
    struct mo_buf b;
    int rc;

    mo_buf_init(&b, 1 << 16);
    mo_buf_puts(&b, G H);
    for (unsigned i = 1; i < n; i++)
        mo_buf_printf(&b, "X%u: y\r\n", i);
    mo_buf_puts(&b, "\r\n");
    rc = status_of(mo_buf_cstr(&b), ' ', 0, "");
    mo_buf_fini(&b);
    return rc;
}

static void test_header_count(void **state)
{
    (void)state;
    assert_int_equal(status_of_headers(1), 0);
    assert_int_equal(status_of_headers(MO_HTTP_HEADERS_MAX), 0);
    assert_int_equal(status_of_headers(MO_HTTP_HEADERS_MAX + 1), 431);
}

/* Every byte at four places: what is taken must be on the list. */
static bool taken(const char *before, int c, const char *after)
{
    struct player p = {0};
    struct mo_buf b;
    bool ok;

    mo_buf_init(&b, 256);
    mo_buf_puts(&b, before);
    mo_buf_putc(&b, (char)c);
    mo_buf_puts(&b, after);
    run(&p, MO_HTTP1_REQUEST, mo_buf_view(&b), 0, SIZE_MAX);
    ok = strstr(mo_buf_cstr(&p.log), "done\n") != NULL;
    mo_buf_fini(&p.log);
    mo_buf_fini(&b);
    return ok;
}

static void test_every_byte(void **state)
{
    (void)state;
    for (int c = 0; c < 256; c++) {
        bool alnum = (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') ||
                     (c >= 'a' && c <= 'z');
        bool token = alnum || (c && strchr("!#$%&'*+-.^_`|~", c));
        bool value = c == '\t' || (c >= ' ' && c != 0x7f);
        bool target = c > ' ' && c < 0x7f && c != '#';

        assert_int_equal(taken(G H "X", c, "Y: z\r\n\r\n"), token || c == ':');
        assert_int_equal(taken(G H "X: y", c, "z\r\n\r\n"), value);
        assert_int_equal(taken("GET /", c, "x HTTP/1.1\r\n" H "\r\n"), target);
        assert_int_equal(taken("GET ", c, "x HTTP/1.1\r\n" H "\r\n"), c == '/');
        assert_int_equal(taken("GE", c, " / HTTP/1.1\r\n" H "\r\n"), c == 'T');
        assert_int_equal(mo_http_is_token(mo_span((char[]){(char)c}, 1)),
                         token);
    }
}

/* --- lookups and writers ------------------------------------------------- */

static void test_lookup(void **state)
{
    struct mo_span in =
        MO_SPAN(G H "A: 1\r\na: 2\r\nT: x, Y ,z\r\nT: w\r\n\r\n");
    struct mo_http1 *h = mo_http1_new(MO_HTTP1_REQUEST);
    const struct mo_http_head *hd;
    struct mo_err e;

    (void)state;
    assert_int_equal(mo_http1_next(h, &in, NULL, &e), MO_HTTP1_HEAD);
    hd = mo_http1_head(h);
    assert_true(mo_span_is(mo_http_get(hd, "a"), "1"));
    assert_null(mo_http_get(hd, "b").p);
    assert_true(mo_http_has_token(hd, "t", "y"));
    assert_true(mo_http_has_token(hd, "T", "W"));
    assert_true(mo_http_has_token(hd, "a", "2"));
    assert_false(mo_http_has_token(hd, "t", "x, Y"));
    assert_false(mo_http_has_token(hd, "u", "y"));
    mo_http1_free(h);
    mo_http1_free(NULL);
}

static void test_writers(void **state)
{
    struct mo_buf b;

    (void)state;
    mo_buf_init(&b, 4096);
    mo_http1_put_request(&b, "POST", MO_SPAN("/x?y"));
    mo_http1_put_header(&b, "Host", MO_SPAN("a"));
    mo_http1_put_header(&b, "Empty", MO_SPAN(""));
    mo_http1_put_header(&b, "Transfer-Encoding", MO_SPAN("chunked"));
    mo_http1_put_end(&b);
    assert_string_equal(mo_buf_cstr(&b),
                        "POST /x?y HTTP/1.1\r\nHost: a\r\nEmpty: \r\n"
                        "Transfer-Encoding: chunked\r\n\r\n");
    mo_buf_reset(&b);
    mo_http1_put_status(&b, 404);
    mo_http1_put_status(&b, 299);
    assert_string_equal(mo_buf_cstr(&b),
                        "HTTP/1.1 404 Not Found\r\nHTTP/1.1 299 Unknown\r\n");
    mo_buf_fini(&b);
}

static void test_writers_refuse(void **state)
{
    static const struct mo_span values[] = {
        {"a\rb", 3}, {"a\nb", 3}, {"a\0b", 3}, {"\r\n", 2}, {"\x7f", 1},
    };
    static const struct mo_span targets[] = {
        {"", 0}, {"/a b", 4}, {"/\r\n", 3}, {"/\xc3\xa9", 3}, {"/\0", 2},
    };
    static const char *const names[] = {"", "a b", "a:", "a\r\n", "\xc3\xa9"};
    struct mo_buf b;

    (void)state;
    mo_buf_init(&b, 4096);
    for (size_t i = 0; i < MO_COUNT(values); i++) {
        mo_buf_reset(&b);
        assert_int_equal(mo_http1_put_header(&b, "A", values[i]), MO_EINVAL);
        assert_int_equal(mo_http1_put_end(&b), MO_EINVAL); /* sticky */
        assert_int_equal(mo_buf_view(&b).n, 0);
        mo_buf_reset(&b);
        assert_int_equal(mo_http1_put_request(&b, "GET", targets[i]),
                         MO_EINVAL);
        mo_buf_reset(&b);
        assert_int_equal(mo_http1_put_header(&b, names[i], MO_SPAN("a")),
                         MO_EINVAL);
        mo_buf_reset(&b);
        assert_int_equal(mo_http1_put_request(&b, names[i], MO_SPAN("/")),
                         MO_EINVAL);
    }
    mo_buf_reset(&b);
    assert_int_equal(mo_http1_put_status(&b, 99), MO_EINVAL);
    mo_buf_reset(&b);
    assert_int_equal(mo_http1_put_status(&b, 600), MO_EINVAL);
    mo_buf_fini(&b);
}

static void test_tables(void **state)
{
    (void)state;
    assert_string_equal(mo_http_reason(200), "OK");
    assert_string_equal(mo_http_reason(0), "Unknown");
    assert_string_equal(mo_http_reason(-1), "Unknown");
    assert_string_equal(mo_http_reason(9999), "Unknown");
    assert_string_equal(mo_http_method_name(MO_HTTP_PATCH), "PATCH");
    assert_string_equal(mo_http_method_name(MO_HTTP_OTHER), "OTHER");
}

/* --- memory -------------------------------------------------------------- */

/* Whole, and in pieces; a failed allocation must be a clean error. */
static void body_oom(void *ctx)
{
    size_t step = *(size_t *)ctx;
    struct mo_span all =
        MO_SPAN(P "Transfer-Encoding: chunked\r\n\r\n2\r\nhi\r\n0\r\n\r\n");
    struct mo_http1 *h = mo_http1_new(MO_HTTP1_REQUEST);
    enum mo_http1_event ev = MO_HTTP1_MORE;
    struct mo_span body;
    struct mo_err e;

    if (!h)
        return;
    while (all.n && ev != MO_HTTP1_ERROR) {
        struct mo_span in = mo_span_head(all, step);

        do
            ev = mo_http1_next(h, &in, &body, &e);
        while (ev > MO_HTTP1_MORE && ev != MO_HTTP1_DONE);
        all = mo_span_skip(all, step);
    }
    if (ev == MO_HTTP1_ERROR) {
        assert_int_equal(e.code, MO_ENOMEM);
        assert_int_equal(mo_http1_status(h), 503);
    }
    mo_http1_reset(h);
    mo_http1_free(h);
}

static void test_oom(void **state)
{
    size_t steps[] = {SIZE_MAX, 7};

    (void)state;
    torture(body_oom, &steps[0]);
    torture(body_oom, &steps[1]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_good),
        cmocka_unit_test(test_bad),
        cmocka_unit_test(test_bad_chunks),
        cmocka_unit_test(test_responses),
        cmocka_unit_test(test_head_answer),
        cmocka_unit_test(test_limits),
        cmocka_unit_test(test_ext_total),
        cmocka_unit_test(test_header_count),
        cmocka_unit_test(test_every_byte),
        cmocka_unit_test(test_lookup),
        cmocka_unit_test(test_writers),
        cmocka_unit_test(test_writers_refuse),
        cmocka_unit_test(test_tables),
        cmocka_unit_test(test_oom),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
