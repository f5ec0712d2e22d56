/* The HTTP server on real sockets: refused and accepted requests, cut into
 * every number of pieces. */
#include <unistd.h>

#include "loop/httpd.h"
#include "loop/peers.h"
#include "mo_test.h"

struct site {
    struct mo_loop *l;
    struct mo_httpd *h;
    char addr[32];
    int handled, gone, hangups;
    struct mo_req *parked;
    struct mo_stream *up;
    struct mo_buf parts; /* of a body that was asked for in parts */
    struct mo_req *paused;
    struct mo_later resume;
    bool closed;
};

struct client {
    struct mo_stream *s;
    struct mo_buf got;
    bool dialled, closed, eof;
};

/* --- the handler --------------------------------------------------------- */

static void on_gone(struct mo_req *rq)
{
    struct site *t = rq->data;

    t->gone++;
    if (t->parked == rq)
        t->parked = NULL;
    if (t->paused == rq)
        t->paused = NULL;
    mo_buf_fini(&t->parts);
}

static void on_hangup(struct mo_req *rq)
{
    ((struct site *)rq->data)->hangups++;
}

static void on_body(struct mo_req *rq, struct mo_span body)
{
    mo_req_reply(rq, 200, "text/plain", body);
}

/* Every part pauses the body until the next round of the loop. */
static void on_resume(struct mo_later *d)
{
    struct site *t = mo_container_of(d, struct site, resume);

    if (t->paused)
        mo_req_body_pause(mo_take_ptr(&t->paused), false);
}

static void on_part(struct mo_req *rq, struct mo_span part, bool last)
{
    struct site *t = rq->data;

    assert_null(t->paused);
    assert_int_equal(mo_buf_span(&t->parts, part), 0);
    if (!last) {
        mo_req_body_pause(rq, true);
        t->paused = rq;
        mo_loop_defer(t->l, &t->resume);
        return;
    }
    mo_req_header(rq, "Content-Security-Policy", MO_SPAN("sandbox"));
    mo_req_start_sized(rq, 200, "text/plain", t->parts.len);
    assert_int_equal(mo_req_write(rq, mo_buf_view(&t->parts)), 0);
    mo_req_end(rq);
}

static void up_read(void *ctx, char *p, size_t n)
{
    struct site *t = ctx;

    assert_int_equal(mo_stream_write(t->up, mo_span(p, n)), 0);
}

static void up_close(void *ctx, const struct mo_err *why)
{
    (void)why;
    ((struct site *)ctx)->up = NULL;
}

static const struct mo_stream_cb up_cb = {up_read, NULL, NULL, up_close};

static void upgrade(struct site *t, struct mo_req *rq)
{
    struct mo_span early;
    struct mo_err e;

    assert_int_equal(mo_req_upgrade(rq, "echo", &t->up, &early, &e), 0);
    mo_stream_attach(t->up, &up_cb, t);
    if (early.n)
        assert_int_equal(mo_stream_write(t->up, early), 0);
}

static void stream_three(struct mo_req *rq)
{
    mo_req_header(rq, "X-Kind", MO_SPAN("stream"));
    mo_req_start(rq, 200, "text/plain");
    assert_int_equal(mo_req_write(rq, MO_SPAN("one")), 0);
    assert_int_equal(mo_req_write(rq, MO_SPAN("")), 0);
    assert_int_equal(mo_req_write(rq, MO_SPAN("two two")), 0);
    mo_req_end(rq);
}

static void reply_own(struct mo_req *rq)
{
    mo_req_header(rq, "Content-Security-Policy", MO_SPAN("own"));
    mo_req_reply(rq, 200, "text/plain", rq->query);
}

static void handler(void *ctx, struct mo_req *rq)
{
    struct site *t = ctx;

    t->handled++;
    rq->data = t;
    rq->gone = on_gone;
    rq->hangup = on_hangup;
    if (mo_span_is(rq->path, "/echo"))
        mo_req_body(rq, 0, on_body);
    else if (mo_span_is(rq->path, "/small"))
        mo_req_body(rq, 8, on_body);
    else if (mo_span_is(rq->path, "/parts"))
        mo_req_body_parts(rq, 8, on_part);
    else if (mo_span_is(rq->path, "/stream"))
        stream_three(rq);
    else if (mo_span_is(rq->path, "/park"))
        t->parked = rq;
    else if (mo_span_is(rq->path, "/up"))
        upgrade(t, rq);
    else if (mo_span_is(rq->path, "/404"))
        mo_req_problem(rq, 404, "not_found", "no \"such\" thing");
    else if (mo_span_is(rq->path, "/own"))
        reply_own(rq);
    else
        mo_req_reply(rq, 200, "text/plain", rq->query);
}

static void site_open(struct site *t, struct mo_httpd_limits limits)
{
    struct mo_listen_opts lo = {.addr = "127.0.0.1:0"};
    struct mo_httpd_opts o = {.limits = limits,
                              .handler = handler,
                              .ctx = t,
                              .headers =
                                  MO_SPAN("Content-Security-Policy: all\r\n"
                                          "X-Lines: all\r\n")};
    struct mo_err e;

    *t = (struct site){.l = mo_loop_new(NULL, &e)};
    assert_non_null(t->l);
    mo_later_init(&t->resume, on_resume);
    mo_buf_init(&t->parts, 64);
    t->h = mo_httpd_new(t->l, &o, &e);
    assert_non_null(t->h);
    assert_int_equal(mo_httpd_listen(t->h, &lo, &e), 0);
    (void)snprintf(t->addr, sizeof(t->addr), "127.0.0.1:%u",
                   mo_httpd_port(t->h));
}

static void on_site_closed(void *ctx)
{
    ((struct site *)ctx)->closed = true;
}

static bool site_closed(void *ctx)
{
    return ((struct site *)ctx)->closed;
}

static void site_close(struct site *t)
{
    mo_httpd_close(t->h, 0, on_site_closed, t);
    if (t->up)
        mo_stream_close(t->up, NULL);
    assert_true(mo_loop_until(t->l, site_closed, t, 5000));
    assert_int_equal(t->handled, t->gone);
    mo_loop_free(t->l);
}

/* --- a client ------------------------------------------------------------ */

static void c_read(void *ctx, char *p, size_t n)
{
    assert_int_equal(mo_buf_put(&((struct client *)ctx)->got, p, n), 0);
}

static void c_eof(void *ctx)
{
    struct client *c = ctx;

    c->eof = true;
    mo_stream_close(c->s, NULL);
}

static void c_close(void *ctx, const struct mo_err *why)
{
    struct client *c = ctx;

    (void)why;
    c->closed = true;
    c->s = NULL;
}

static const struct mo_stream_cb c_cb = {c_read, c_eof, NULL, c_close};

static void c_dialled(void *ctx, struct mo_stream *s, const struct mo_err *why)
{
    struct client *c = ctx;

    assert_null(why);
    c->s = s;
    c->dialled = true;
    mo_stream_attach(s, &c_cb, c);
}

static bool is_dialled(void *ctx)
{
    return ((struct client *)ctx)->dialled;
}

static bool is_closed(void *ctx)
{
    return ((struct client *)ctx)->closed;
}

static bool never(void *ctx)
{
    (void)ctx;
    return false;
}

static void turn(struct site *t)
{
    (void)mo_loop_until(t->l, never, NULL, 0);
}

static void dial(struct site *t, struct client *c)
{
    struct mo_err e;

    *c = (struct client){.s = NULL};
    mo_buf_init(&c->got, (size_t)16 << 20);
    assert_int_equal(mo_dial(t->l, t->addr, 5000, c_dialled, c, NULL, &e), 0);
    assert_true(mo_loop_until(t->l, is_dialled, c, 5000));
}

static void hang_up(struct site *t, struct client *c)
{
    if (c->s)
        mo_stream_close(c->s, NULL);
    assert_true(mo_loop_until(t->l, is_closed, c, 5000));
    mo_buf_fini(&c->got);
}

static void say(struct client *c, struct mo_span s)
{
    if (c->s)
        (void)mo_stream_write(c->s, s);
}

/* Number of answers, parsed as a client would, and the last status. */
struct tally {
    int answers, status, last_minor;
    bool bad;
    char body[256]; /* of all, joined by '|' */
    bool saw_close;
    bool no_body;
};

static void tally_up(struct mo_span in, struct tally *t)
{
    struct mo_http1 *p = mo_http1_new(MO_HTTP1_RESPONSE);
    struct mo_span body;
    struct mo_err e;
    size_t n = 0;

    if (t->no_body)
        mo_http1_expect_no_body(p);
    for (;;) {
        enum mo_http1_event ev = mo_http1_next(p, &in, &body, &e);

        if (ev == MO_HTTP1_MORE)
            break;
        if (ev == MO_HTTP1_ERROR) {
            t->bad = true;
            break;
        }
        if (ev == MO_HTTP1_HEAD) {
            const struct mo_http_head *h = mo_http1_head(p);

            t->status = h->status;
            t->saw_close = mo_http_has_token(h, "Connection", "close");
        } else if (ev == MO_HTTP1_BODY) {
            n += (size_t)snprintf(t->body + n, sizeof(t->body) - n, "%.*s",
                                  (int)body.n, body.p);
        } else if (ev == MO_HTTP1_DONE) {
            t->answers++;
            n += (size_t)snprintf(t->body + n, sizeof(t->body) - n, "|");
            mo_http1_reset(p);
        }
    }
    mo_http1_free(p);
}

struct want {
    int answers;
    struct client *c;
    bool no_body;
};

static bool has_answers(void *ctx)
{
    struct want *w = ctx;
    struct tally t = {.no_body = w->no_body};

    if (w->c->closed)
        return true;
    tally_up(mo_buf_view(&w->c->got), &t);
    return t.answers >= w->answers;
}

#define H "Host: x\r\n"

static const struct row {
    const char *name, *in;
    int answers, status;
    bool closes;
    const char *body;
} rows[] = {
    {"get", "GET /?a=1 HTTP/1.1\r\n" H "\r\n", 1, 200, false, "a=1|"},
    {"http/1.0 closes", "GET /?a HTTP/1.0\r\n\r\n", 1, 200, true, "a|"},
    {"1.0 keep-alive", "GET /?a HTTP/1.0\r\nConnection: keep-alive\r\n\r\n", 1,
     200, false, "a|"},
    {"asked to close", "GET /?a HTTP/1.1\r\n" H "Connection: close\r\n\r\n", 1,
     200, true, "a|"},
    {"pipelined",
     "GET /?1 HTTP/1.1\r\n" H "\r\nPOST /echo HTTP/1.1\r\n" H
     "Content-Length: 2\r\n\r\nhiGET /?3 HTTP/1.1\r\n" H "\r\n",
     3, 200, false, "1|hi|3|"},
    {"body by length",
     "POST /echo HTTP/1.1\r\n" H "Content-Length: 5\r\n\r\nhello", 1, 200,
     false, "hello|"},
    {"empty body", "POST /echo HTTP/1.1\r\n" H "Content-Length: 0\r\n\r\n", 1,
     200, false, "|"},
    {"chunked body",
     "POST /echo HTTP/1.1\r\n" H "Transfer-Encoding: chunked\r\n\r\n"
     "3\r\nabc\r\n2;x=y\r\nde\r\n0\r\n\r\n",
     1, 200, false, "abcde|"},
    {"body in parts",
     "POST /parts HTTP/1.1\r\n" H "Content-Length: 5\r\n\r\nhello"
     "GET /?next HTTP/1.1\r\n" H "\r\n",
     2, 200, false, "hello|next|"},
    {"chunks in parts",
     "POST /parts HTTP/1.1\r\n" H "Transfer-Encoding: chunked\r\n\r\n"
     "3\r\nabc\r\n2\r\nde\r\n0\r\n\r\nGET /?next HTTP/1.1\r\n" H "\r\n",
     2, 200, false, "abcde|next|"},
    {"no parts", "POST /parts HTTP/1.1\r\n" H "Content-Length: 0\r\n\r\n", 1,
     200, false, "|"},
    {"parts over the limit",
     "POST /parts HTTP/1.1\r\n" H "Content-Length: 9\r\n\r\n123456789", 1, 413,
     true, NULL},
    {"chunks in parts over the limit",
     "POST /parts HTTP/1.1\r\n" H "Transfer-Encoding: chunked\r\n\r\n"
     "5\r\n12345\r\n5\r\n12345\r\n0\r\n\r\n",
     1, 413, true, NULL},
    {"streamed answer", "GET /stream HTTP/1.1\r\n" H "\r\n", 1, 200, false,
     "onetwo two|"},
    {"problem", "GET /404 HTTP/1.1\r\n" H "\r\n", 1, 404, false, NULL},
    {"body over the handler's limit",
     "POST /small HTTP/1.1\r\n" H "Content-Length: 9\r\n\r\n123456789", 1, 413,
     true, NULL},
    {"chunks over the handler's limit",
     "POST /small HTTP/1.1\r\n" H "Transfer-Encoding: chunked\r\n\r\n"
     "5\r\n12345\r\n5\r\n12345\r\n0\r\n\r\n",
     1, 413, true, NULL},
    {"body nobody asked for",
     "POST /?x HTTP/1.1\r\n" H "Content-Length: 5\r\n\r\nhello", 1, 200, true,
     "x|"},
    /* inputs that other parsers were found to accept */
    {"bare CR (CVE-2023-30589)", "GET / HTTP/1.1\r\nHost: x\rX: y\r\n\r\n", 1,
     400, true, NULL},
    {"space before a name (CVE-2024-27982)",
     "POST / HTTP/1.1\r\n" H " Content-Length: 3\r\n\r\nabc", 1, 400, true,
     NULL},
    {"blank before the colon",
     "POST / HTTP/1.1\r\n" H "Transfer-Encoding : chunked\r\n\r\n0\r\n\r\n", 1,
     400, true, NULL},
    {"both framings",
     "POST / HTTP/1.1\r\n" H "Content-Length: 5\r\nTransfer-Encoding: chunked"
     "\r\n\r\n0\r\n\r\n",
     1, 400, true, NULL},
    {"two lengths",
     "POST / HTTP/1.1\r\n" H "Content-Length: 5\r\nContent-Length: 6\r\n\r\n"
     "hello",
     1, 400, true, NULL},
    {"signed length", "POST / HTTP/1.1\r\n" H "Content-Length: +5\r\n\r\nhello",
     1, 400, true, NULL},
    {"LF only", "GET / HTTP/1.1\nHost: x\n\n", 1, 400, true, NULL},
    {"obs-fold", "GET / HTTP/1.1\r\n" H "X: a\r\n b\r\n\r\n", 1, 400, true,
     NULL},
    {"bad chunk size",
     "POST /echo HTTP/1.1\r\n" H "Transfer-Encoding: chunked\r\n\r\nzz\r\n", 1,
     400, true, NULL},
    {"no host", "GET / HTTP/1.1\r\n\r\n", 1, 400, true, NULL},
    {"garbage", "\x16\x03\x01\x02\r\n\r\n", 1, 400, true, NULL},
};

static void run_row(struct site *t, const struct row *r, size_t cut)
{
    struct mo_span in = mo_span_cstr(r->in);
    struct tally got = {.answers = 0};
    struct client c;
    struct want w = {.answers = r->answers, .c = &c};

    dial(t, &c);
    say(&c, mo_span_head(in, cut));
    turn(t);
    say(&c, mo_span_skip(in, cut));
    check_row(r->name, mo_loop_until(t->l, has_answers, &w, 5000));
    if (r->closes)
        check_row(r->name, mo_loop_until(t->l, is_closed, &c, 5000));
    else
        turn(t);
    tally_up(mo_buf_view(&c.got), &got);
    check_row(r->name, !got.bad);
    check_row(r->name, got.answers == r->answers);
    check_row(r->name, got.status == r->status);
    check_row(r->name, c.closed == r->closes);
    check_row(r->name, got.saw_close == r->closes);
    if (r->body)
        check_row(r->name, strcmp(got.body, r->body) == 0);
    hang_up(t, &c);
}

static void every_row_at_every_cut(void **state)
{
    struct site t;

    (void)state;
    site_open(&t, (struct mo_httpd_limits){0});
    for (size_t i = 0; i < MO_COUNT(rows); i++) {
        for (size_t cut = 0; cut <= strlen(rows[i].in); cut++)
            run_row(&t, &rows[i], cut);
    }
    site_close(&t);
}

static void byte_at_a_time(void **state)
{
    struct site t;

    (void)state;
    site_open(&t, (struct mo_httpd_limits){0});
    for (size_t i = 0; i < MO_COUNT(rows); i++) {
        struct mo_span in = mo_span_cstr(rows[i].in);
        struct tally got = {.answers = 0};
        struct client c;
        struct want w = {.answers = rows[i].answers, .c = &c};

        dial(&t, &c);
        for (size_t k = 0; k < in.n; k++) {
            say(&c, mo_span(in.p + k, 1));
            turn(&t);
        }
        check_row(rows[i].name, mo_loop_until(t.l, has_answers, &w, 5000));
        tally_up(mo_buf_view(&c.got), &got);
        check_row(rows[i].name, got.answers == rows[i].answers);
        check_row(rows[i].name, got.status == rows[i].status);
        hang_up(&t, &c);
    }
    site_close(&t);
}

static void huge_heads_are_refused(void **state)
{
    static const char *const parts[] = {
        "GET / HTTP/1.1\r\nHost: x\r\nX: ",
        "GET /",
        ("POST /echo HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n"
         "1;"),
    };
    static const int status[] = {431, 414, 400};
    static char filler[100 * 1024];
    struct site t;

    (void)state;
    memset(filler, 'a', sizeof(filler));
    site_open(&t, (struct mo_httpd_limits){0});
    for (size_t i = 0; i < MO_COUNT(parts); i++) {
        struct tally got = {.answers = 0};
        struct client c;
        struct want w = {.answers = 1, .c = &c};

        dial(&t, &c);
        say(&c, mo_span_cstr(parts[i]));
        for (int k = 0; k < 10; k++)
            say(&c, mo_span(filler, sizeof(filler)));
        assert_true(mo_loop_until(t.l, has_answers, &w, 5000));
        tally_up(mo_buf_view(&c.got), &got);
        assert_int_equal(got.status, status[i]);
        hang_up(&t, &c);
    }
    site_close(&t);
}

static void head_has_no_body(void **state)
{
    static const char *const paths[] = {"/?abc", "/stream"};
    struct site t;

    (void)state;
    site_open(&t, (struct mo_httpd_limits){0});
    for (size_t i = 0; i < MO_COUNT(paths); i++) {
        struct tally got = {.no_body = true};
        struct client c;
        struct want w = {.answers = 1, .c = &c, .no_body = true};
        char req[96];

        dial(&t, &c);
        (void)snprintf(req, sizeof(req), "HEAD %s HTTP/1.1\r\n" H "\r\n",
                       paths[i]);
        say(&c, mo_span_cstr(req));
        assert_true(mo_loop_until(t.l, has_answers, &w, 5000));
        turn(&t);
        tally_up(mo_buf_view(&c.got), &got);
        assert_int_equal(got.answers, 1);
        assert_false(got.bad);
        assert_string_equal(got.body, "|");
        hang_up(&t, &c);
    }
    site_close(&t);
}

static bool has_continue(void *ctx)
{
    struct client *c = ctx;

    return mo_span_starts(mo_buf_view(&c->got), MO_SPAN("HTTP/1.1 100 "));
}

static size_t times(struct mo_span s, struct mo_span what)
{
    size_t n = 0;

    for (ptrdiff_t at = mo_span_search(s, what); at >= 0;
         at = mo_span_search(s, what)) {
        s = mo_span_skip(s, (size_t)at + what.n);
        n++;
    }
    return n;
}

/* Its own policy replaces that of every answer, on that answer only. */
static void an_answer_has_its_own_policy(void **state)
{
    static const struct {
        const char *path, *has, *lacks;
    } answers_of[] = {
        {"/?1", "\r\nContent-Security-Policy: all\r\n", "Policy: own"},
        {"/own", "\r\nContent-Security-Policy: own\r\n", "Policy: all"},
        {"/?2", "\r\nContent-Security-Policy: all\r\n", "Policy: own"},
    };
    struct client c;
    struct want w = {.answers = 0, .c = &c};
    struct site t;
    size_t from = 0;

    (void)state;
    site_open(&t, (struct mo_httpd_limits){0});
    dial(&t, &c);
    for (size_t i = 0; i < MO_COUNT(answers_of); i++) {
        struct mo_span got;
        char req[96];

        (void)snprintf(req, sizeof(req), "GET %s HTTP/1.1\r\n" H "\r\n",
                       answers_of[i].path);
        say(&c, mo_span_cstr(req));
        w.answers++;
        assert_true(mo_loop_until(t.l, has_answers, &w, 5000));
        got = mo_span_skip(mo_buf_view(&c.got), from);
        assert_int_equal(times(got, mo_span_cstr(answers_of[i].has)), 1);
        assert_int_equal(times(got, mo_span_cstr(answers_of[i].lacks)), 0);
        from = c.got.len;
    }
    hang_up(&t, &c);
    site_close(&t);
}

/* The first lines of an answer are reused for answers of the same kind only. */
static void kinds_of_answers_do_not_mix(void **state)
{
    static const struct {
        const char *path, *status, *ctype;
    } kinds[] = {
        {"/?1", "HTTP/1.1 200 OK\r\n", "\r\nContent-Type: text/plain\r\n"},
        {"/?2", "HTTP/1.1 200 OK\r\n", "\r\nContent-Type: text/plain\r\n"},
        {"/404", "HTTP/1.1 404 Not Found\r\n",
         "\r\nContent-Type: application/problem+json\r\n"},
        {"/stream", "HTTP/1.1 200 OK\r\n", "\r\nContent-Type: text/plain\r\n"},
        {"/up", "HTTP/1.1 101 Switching Protocols\r\n", NULL},
        {"/404", "HTTP/1.1 404 Not Found\r\n",
         "\r\nContent-Type: application/problem+json\r\n"},
    };
    struct site t;

    (void)state;
    site_open(&t, (struct mo_httpd_limits){0});
    for (size_t i = 0; i < MO_COUNT(kinds); i++) {
        struct client c;
        struct want w = {.answers = 1, .c = &c};
        struct mo_span got;
        char req[96];

        dial(&t, &c);
        (void)snprintf(req, sizeof(req), "GET %s HTTP/1.1\r\n" H "\r\n",
                       kinds[i].path);
        say(&c, mo_span_cstr(req));
        assert_true(mo_loop_until(t.l, has_answers, &w, 5000));
        got = mo_buf_view(&c.got);
        assert_true(mo_span_starts(got, mo_span_cstr(kinds[i].status)));
        assert_int_equal(times(got, MO_SPAN("HTTP/1.1 ")), 1);
        assert_int_equal(times(got, MO_SPAN("\r\nDate: ")),
                         kinds[i].ctype ? 1 : 0);
        assert_int_equal(times(got, MO_SPAN("\r\nContent-Type: ")),
                         kinds[i].ctype ? 1 : 0);
        if (kinds[i].ctype)
            assert_int_equal(times(got, mo_span_cstr(kinds[i].ctype)), 1);
        hang_up(&t, &c);
    }
    site_close(&t);
}

struct echo {
    struct client *c;
    struct mo_span body;
};

/* True if exactly the body follows the head. */
static bool has_echo(void *ctx)
{
    struct echo *w = ctx;
    struct mo_span got = mo_buf_view(&w->c->got);
    ptrdiff_t end = mo_span_search(got, MO_SPAN("\r\n\r\n"));

    if (end < 0)
        return w->c->closed;
    return mo_span_eq(mo_span_skip(got, (size_t)end + 4), w->body);
}

/* The stream joins a small body with its head, but not a big one. */
static void bodies_of_any_size_come_back(void **state)
{
    static const size_t sizes[] = {0, 1, 1900, 2000, 2048, 70000};
    struct site t;
    struct client c;

    (void)state;
    site_open(&t, (struct mo_httpd_limits){0});
    dial(&t, &c);
    for (size_t i = 0; i < MO_COUNT(sizes); i++) {
        struct echo w = {.c = &c};
        struct mo_buf b;
        size_t head;

        mo_buf_init(&b, (size_t)1 << 20);
        (void)mo_buf_printf(
            &b, "POST /echo HTTP/1.1\r\n" H "Content-Length: %zu\r\n\r\n",
            sizes[i]);
        head = b.len;
        for (size_t k = 0; k < sizes[i]; k++)
            (void)mo_buf_putc(&b, (char)('a' + k % 23));
        assert_int_equal(mo_buf_err(&b), 0);
        mo_buf_reset(&c.got);
        w.body = mo_span_skip(mo_buf_view(&b), head);
        say(&c, mo_buf_view(&b));
        assert_true(mo_loop_until(t.l, has_echo, &w, 5000));
        assert_false(c.closed);
        mo_buf_fini(&b);
    }
    hang_up(&t, &c);
    site_close(&t);
}

static void continue_is_said_when_the_body_is_wanted(void **state)
{
    struct tally got = {.answers = 0};
    struct site t;
    struct client c;
    struct want w = {.answers = 2, .c = &c};

    (void)state;
    site_open(&t, (struct mo_httpd_limits){0});
    dial(&t, &c);
    say(&c, MO_SPAN("POST /echo HTTP/1.1\r\n" H "Content-Length: 2\r\n"
                    "Expect: 100-continue\r\n\r\n"));
    assert_true(mo_loop_until(t.l, has_continue, &c, 5000));
    say(&c, MO_SPAN("ok"));
    assert_true(mo_loop_until(t.l, has_answers, &w, 5000));
    tally_up(mo_buf_view(&c.got), &got);
    assert_int_equal(got.status, 200);
    assert_string_equal(got.body, "|ok|");
    hang_up(&t, &c);
    /* refused from the head alone: no 100, so the client need not send it */
    dial(&t, &c);
    w.answers = 1;
    say(&c, MO_SPAN("POST /small HTTP/1.1\r\n" H "Content-Length: 20\r\n"
                    "Expect: 100-continue\r\n\r\n"));
    assert_true(mo_loop_until(t.l, has_answers, &w, 5000));
    got = (struct tally){.answers = 0};
    tally_up(mo_buf_view(&c.got), &got);
    assert_int_equal(got.status, 413);
    hang_up(&t, &c);
    site_close(&t);
}

static void the_last_request_says_close(void **state)
{
    struct tally got = {.answers = 0};
    struct site t;
    struct client c;

    (void)state;
    site_open(&t, (struct mo_httpd_limits){.requests = 2});
    dial(&t, &c);
    for (int i = 0; i < 4; i++)
        say(&c, MO_SPAN("GET /?x HTTP/1.1\r\n" H "\r\n"));
    assert_true(mo_loop_until(t.l, is_closed, &c, 5000));
    tally_up(mo_buf_view(&c.got), &got);
    assert_int_equal(got.answers, 2);
    assert_true(got.saw_close);
    hang_up(&t, &c);
    site_close(&t);
}

static bool is_parked(void *ctx)
{
    return ((struct site *)ctx)->parked != NULL;
}

static bool hung_up(void *ctx)
{
    return ((struct site *)ctx)->hangups > 0;
}

static bool no_one_parked(void *ctx)
{
    return ((struct site *)ctx)->parked == NULL;
}

static void a_parked_request_outlives_nothing(void **state)
{
    struct tally got = {.answers = 0};
    struct site t;
    struct client c;
    struct want w = {.answers = 1, .c = &c};

    (void)state;
    site_open(&t, (struct mo_httpd_limits){0});
    /* answered later, with a pipelined request behind it */
    dial(&t, &c);
    say(&c, MO_SPAN("GET /park HTTP/1.1\r\n" H "\r\nGET /?2 HTTP/1.1\r\n" H
                    "\r\n"));
    assert_true(mo_loop_until(t.l, is_parked, &t, 5000));
    assert_int_equal(t.handled, 1);
    mo_req_reply(t.parked, 200, "text/plain", MO_SPAN("late"));
    assert_int_equal(t.gone, 0); /* never from inside the call */
    w.answers = 2;
    assert_true(mo_loop_until(t.l, has_answers, &w, 5000));
    tally_up(mo_buf_view(&c.got), &got);
    assert_string_equal(got.body, "late|2|");
    hang_up(&t, &c);
    /* the client half-closes: the handler is told and may still answer */
    dial(&t, &c);
    say(&c, MO_SPAN("GET /park HTTP/1.1\r\n" H "\r\n"));
    assert_true(mo_loop_until(t.l, is_parked, &t, 5000));
    mo_stream_shutdown(c.s);
    assert_true(mo_loop_until(t.l, hung_up, &t, 5000));
    mo_req_reply(t.parked, 200, "text/plain", MO_SPAN("still"));
    assert_true(mo_loop_until(t.l, is_closed, &c, 5000));
    got = (struct tally){.answers = 0};
    tally_up(mo_buf_view(&c.got), &got);
    assert_string_equal(got.body, "still|");
    hang_up(&t, &c);
    /* the client disconnects while the answer is being streamed */
    dial(&t, &c);
    say(&c, MO_SPAN("GET /park HTTP/1.1\r\n" H "\r\n"));
    assert_true(mo_loop_until(t.l, is_parked, &t, 5000));
    mo_req_start(t.parked, 200, "text/plain");
    hang_up(&t, &c);
    assert_true(mo_loop_until(t.l, no_one_parked, &t, 5000));
    site_close(&t);
}

static bool got_echo(void *ctx)
{
    struct client *c = ctx;

    return mo_span_ends(mo_buf_view(&c->got), MO_SPAN("\r\n\r\nearlylate"));
}

static void an_upgrade_takes_the_stream(void **state)
{
    struct want told = {.answers = 1};
    struct site t;
    struct client c, second;

    (void)state;
    site_open(&t, (struct mo_httpd_limits){.per_peer = 1});
    dial(&t, &c);
    say(&c, MO_SPAN("GET /up HTTP/1.1\r\n" H "Connection: Upgrade\r\n"
                    "Upgrade: echo\r\n\r\nearly"));
    turn(&t);
    say(&c, MO_SPAN("late"));
    assert_true(mo_loop_until(t.l, got_echo, &c, 5000));
    assert_true(mo_span_starts(mo_buf_view(&c.got), MO_SPAN("HTTP/1.1 101 ")));
    assert_int_equal(mo_httpd_stats(t.h).open, 0);
    /* it still counts as a connection of its peer */
    dial(&t, &second);
    told.c = &second;
    assert_true(mo_loop_until(t.l, has_answers, &told, 5000));
    assert_true(mo_span_search(mo_buf_view(&second.got), MO_SPAN(" 503 ")) >=
                0);
    hang_up(&t, &second);
    hang_up(&t, &c);
    site_close(&t);
}

/* Slow clients are closed: head, body, idle, not reading. */
static void the_slow_are_cut_off(void **state)
{
    static const struct {
        const char *name, *in;
        int status; /* 0: closed without an answer */
    } slow[] = {
        {"silent", "", 0},
        {"half a head", "GET / HTTP/1.1\r\nHo", 408},
        {"half a body",
         "POST /echo HTTP/1.1\r\n" H "Content-Length: 9\r\n\r\nabc", 408},
    };
    struct site t;

    (void)state;
    site_open(&t, (struct mo_httpd_limits){
                      .head_ms = 30, .body_ms = 30, .idle_ms = 30});
    for (size_t i = 0; i < MO_COUNT(slow); i++) {
        struct tally got = {.answers = 0};
        struct client c;

        dial(&t, &c);
        say(&c, mo_span_cstr(slow[i].in));
        check_row(slow[i].name, mo_loop_until(t.l, is_closed, &c, 5000));
        tally_up(mo_buf_view(&c.got), &got);
        check_row(slow[i].name, got.status == slow[i].status);
        hang_up(&t, &c);
    }
    site_close(&t);
}

static bool server_empty(void *ctx)
{
    return mo_httpd_stats(((struct site *)ctx)->h).open == 0;
}

static void a_deaf_client_is_cut_off(void **state)
{
    static char big[512 * 1024];
    struct site t;
    struct client c;
    int rc = 0;

    (void)state;
    memset(big, 'x', sizeof(big));
    site_open(&t, (struct mo_httpd_limits){.send_ms = 30});
    dial(&t, &c);
    say(&c, MO_SPAN("GET /park HTTP/1.1\r\n" H "\r\n"));
    assert_true(mo_loop_until(t.l, is_parked, &t, 5000));
    mo_stream_pause(c.s);
    mo_req_start(t.parked, 200, "text/plain");
    while (rc == 0)
        rc = mo_req_write(t.parked, mo_span(big, sizeof(big)));
    assert_int_equal(rc, MO_EBUSY);
    assert_true(mo_loop_until(t.l, server_empty, &t, 5000));
    hang_up(&t, &c);
    site_close(&t);
}

/* 200 connections that send their head slowly do not delay another client: it
 * is answered while all of them are open. */
static void slowloris_delays_nobody(void **state)
{
    enum { N = 200 };
    static struct client drip[N];
    struct site t;
    struct client honest;
    struct want w = {.answers = 1, .c = &honest};

    (void)state;
    site_open(&t, (struct mo_httpd_limits){0});
    for (int i = 0; i < N; i++) {
        dial(&t, &drip[i]);
        say(&drip[i], MO_SPAN("GET / HTTP/1.1\r\nX-"));
    }
    for (int i = 0; i < N; i++)
        say(&drip[i], MO_SPAN("a"));
    dial(&t, &honest);
    say(&honest, MO_SPAN("GET /?me HTTP/1.1\r\n" H "\r\n"));
    assert_true(mo_loop_until(t.l, has_answers, &w, 5000));
    assert_int_equal(mo_httpd_stats(t.h).open, N + 1);
    for (int i = 0; i < N; i++)
        hang_up(&t, &drip[i]);
    hang_up(&t, &honest);
    site_close(&t);
}

static void connections_are_limited(void **state)
{
    enum { MAX = 4, N = 10 };
    struct client c[N];
    struct site t;

    (void)state;
    site_open(&t, (struct mo_httpd_limits){.connections = MAX});
    for (int i = 0; i < N; i++)
        dial(&t, &c[i]); /* they wait in the kernel's backlog */
    for (int i = 0; i < N; i++)
        say(&c[i], MO_SPAN("GET /?x HTTP/1.1\r\n" H "\r\n"));
    turn(&t);
    assert_true(mo_httpd_stats(t.h).open <= MAX);
    for (int i = 0; i < N; i++) {
        struct want w = {.answers = 1, .c = &c[i]};

        assert_true(mo_loop_until(t.l, has_answers, &w, 5000));
        assert_false(c[i].closed);
        hang_up(&t, &c[i]);
        assert_true(mo_httpd_stats(t.h).open <= MAX);
    }
    site_close(&t);
}

static bool has_no_connection(void *ctx)
{
    return mo_httpd_stats(((struct site *)ctx)->h).open == 0;
}

/* Loopback is one peer. Refused ones are told, and room is made again when one
 * of the others ends. */
static void connections_of_a_peer_are_limited(void **state)
{
    enum { MAX = 3, N = 6 };
    struct client c[N], next;
    struct site t;

    (void)state;
    site_open(&t, (struct mo_httpd_limits){.per_peer = MAX});
    for (int i = 0; i < N; i++) {
        struct want w = {.answers = 1, .c = &c[i]};

        dial(&t, &c[i]);
        say(&c[i], MO_SPAN("GET /?x HTTP/1.1\r\n" H "\r\n"));
        assert_true(mo_loop_until(t.l, has_answers, &w, 5000));
        assert_int_equal(
            mo_span_search(mo_buf_view(&c[i].got), MO_SPAN(" 503 ")) >= 0,
            i >= MAX);
    }
    assert_int_equal(mo_httpd_stats(t.h).crowded, N - MAX);
    for (int i = 0; i < N; i++)
        hang_up(&t, &c[i]);
    assert_true(mo_loop_until(t.l, has_no_connection, &t, 5000));
    dial(&t, &next);
    say(&next, MO_SPAN("GET /?x HTTP/1.1\r\n" H "\r\n"));
    assert_true(mo_loop_until(t.l, has_answers,
                              &(struct want){.answers = 1, .c = &next}, 5000));
    assert_true(mo_span_search(mo_buf_view(&next.got), MO_SPAN(" 200 ")) >= 0);
    hang_up(&t, &next);
    site_close(&t);
}

/* One host has all addresses of an IPv6 /64; a mapped address is IPv4. */
static void peers_are_counted(void **state)
{
    static const struct {
        const char *name;
        unsigned n; /* 0: not counted */
    } addrs[] = {
        {"1.2.3.4:5", 1},
        {"1.2.3.4:6", 2},
        {"1.2.3.5:5", 1},
        {"[::ffff:1.2.3.4]:5", 3},
        {"[2001:db8::1]:5", 1},
        {"[2001:db8::2:1]:5", 2},
        {"[2001:db8:0:1::1]:5", 1},
        {"[fe80::1%eth0]:5", 1},
        {"[::1]:5", 1},
        {"unix uid 1000", 0},
        {"pipe", 0},
        {"", 0},
    };
    struct mo_peer *joined[MO_COUNT(addrs)];
    struct mo_peers *peers = mo_peers_new(NULL);

    (void)state;
    assert_non_null(peers);
    for (size_t i = 0; i < MO_COUNT(addrs); i++) {
        joined[i] = mo_peers_join(peers, addrs[i].name);
        check_row(addrs[i].name, (joined[i] ? joined[i]->n : 0) == addrs[i].n);
    }
    for (size_t i = 0; i < MO_COUNT(addrs); i++)
        mo_peers_leave(joined[i]);
    mo_peers_free(peers);
}

static void closing_lets_answers_end(void **state)
{
    struct tally got = {.answers = 0};
    struct site t;
    struct client idle, busy;

    (void)state;
    site_open(&t, (struct mo_httpd_limits){0});
    dial(&t, &idle);
    dial(&t, &busy);
    say(&busy, MO_SPAN("GET /park HTTP/1.1\r\n" H "\r\n"));
    assert_true(mo_loop_until(t.l, is_parked, &t, 5000));
    mo_httpd_close(t.h, 5000, on_site_closed, &t);
    assert_true(mo_loop_until(t.l, is_closed, &idle, 5000));
    assert_false(busy.closed);
    mo_req_reply(t.parked, 200, "text/plain", MO_SPAN("bye"));
    assert_true(mo_loop_until(t.l, is_closed, &busy, 5000));
    tally_up(mo_buf_view(&busy.got), &got);
    assert_string_equal(got.body, "bye|");
    assert_true(got.saw_close);
    assert_true(mo_loop_until(t.l, site_closed, &t, 5000));
    hang_up(&t, &idle);
    hang_up(&t, &busy);
    assert_int_equal(t.handled, t.gone);
    mo_loop_free(t.l);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_row_at_every_cut),
        cmocka_unit_test(byte_at_a_time),
        cmocka_unit_test(huge_heads_are_refused),
        cmocka_unit_test(head_has_no_body),
        cmocka_unit_test(kinds_of_answers_do_not_mix),
        cmocka_unit_test(an_answer_has_its_own_policy),
        cmocka_unit_test(bodies_of_any_size_come_back),
        cmocka_unit_test(continue_is_said_when_the_body_is_wanted),
        cmocka_unit_test(the_last_request_says_close),
        cmocka_unit_test(a_parked_request_outlives_nothing),
        cmocka_unit_test(an_upgrade_takes_the_stream),
        cmocka_unit_test(the_slow_are_cut_off),
        cmocka_unit_test(a_deaf_client_is_cut_off),
        cmocka_unit_test(slowloris_delays_nobody),
        cmocka_unit_test(connections_are_limited),
        cmocka_unit_test(connections_of_a_peer_are_limited),
        cmocka_unit_test(peers_are_counted),
        cmocka_unit_test(closing_lets_answers_end),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
