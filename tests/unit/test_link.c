#include "proc_kit.h"

#include <fcntl.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "mcp/link/link_child.h"

#define LINE_MAX_ 256 /* small, so that rows can reach it */

/* --- an owner that writes down what it hears ----------------------------- */

struct owner {
    struct mo_loop *l;
    struct mo_link *k;
    struct mo_buf log; /* "[text]" a message */
    int messages, noise, closed;
    struct mo_err why;
    bool close_at_first;
    unsigned timers; /* most that ran: holding back needs one */
};

static void got_message(void *ctx, const struct mo_rpc *m, uint64_t stream_of)
{
    struct owner *o = ctx;

    assert_int_equal(stream_of, 0);
    assert_int_equal(o->closed, 0);
    o->messages++;
    if (mo_loop_stats(o->l).timers > o->timers)
        o->timers = mo_loop_stats(o->l).timers;
    mo_buf_putc(&o->log, '[');
    mo_buf_span(&o->log, mo_json_text(m->root));
    mo_buf_putc(&o->log, ']');
    if (o->close_at_first)
        mo_link_close(o->k, NULL);
}

/* Logged as "(id)". A byte stream fails a request for one reason only. */
static void got_failed(void *ctx, uint64_t id, int status, struct mo_span body,
                       const struct mo_err *why)
{
    struct owner *o = ctx;

    assert_int_equal(o->closed, 0);
    assert_int_equal(status, 0);
    assert_int_equal(body.n, 0);
    assert_int_equal(why->code, MO_ETOOBIG);
    assert_non_null(strstr(why->msg, "the answer is longer than"));
    mo_buf_printf(&o->log, "(%llu)", (unsigned long long)id);
    if (o->close_at_first)
        mo_link_close(o->k, NULL);
}

static void got_noise(void *ctx, struct mo_span line)
{
    (void)line;
    ((struct owner *)ctx)->noise++;
}

static void got_close(void *ctx, const struct mo_err *why)
{
    struct owner *o = ctx;

    o->closed++;
    o->k = NULL;
    if (why)
        o->why = *why;
}

static const struct mo_link_cb owner_cb = {
    .on_message = got_message,
    .on_failed = got_failed,
    .on_noise = got_noise,
    .on_close = got_close,
};

static bool owner_closed(void *ctx)
{
    return ((struct owner *)ctx)->closed > 0;
}

struct enough {
    struct owner *o;
    int messages;
};

static bool has_enough(void *ctx)
{
    struct enough *n = ctx;

    return n->o->messages >= n->messages || n->o->closed;
}

/* --- lines over a socket pair -------------------------------------------- */

struct pair {
    struct owner o;
    int fd; /* the other end; blocking */
};

static int pair_open(struct pair *p, size_t line_max)
{
    struct mo_stream *s;
    struct mo_err e;
    int v[2], rc;

    memset(p, 0, sizeof(*p));
    mo_buf_init(&p->o.log, 64 << 20);
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, v), 0);
    p->fd = v[1];
    p->o.l = mo_loop_new(NULL, &e);
    if (!p->o.l) {
        (void)close(v[0]);
        return MO_ENOMEM;
    }
    rc = mo_stream_from_fds(p->o.l, v[0], v[0], &s, &e);
    if (rc == 0)
        rc = mo_link_lines(p->o.l, s, line_max, &p->o.k, &e);
    if (rc == 0)
        mo_link_attach(p->o.k, &owner_cb, &p->o);
    return rc;
}

static void say(struct pair *p, struct mo_span text)
{
    while (text.n) {
        ssize_t n = write(p->fd, text.p, text.n);

        if (n <= 0)
            return;
        text = mo_span_skip(text, (size_t)n);
    }
}

struct turns {
    int left;
};

static bool few_turns(void *ctx)
{
    struct turns *t = ctx;

    return t->left-- <= 0;
}

static void settle(struct mo_loop *l)
{
    struct turns t = {10};

    while (t.left > 0)
        (void)mo_loop_until(l, few_turns, &t, 1);
}

static void pair_close(struct pair *p)
{
    if (p->o.k)
        mo_link_close(p->o.k, NULL);
    mo_close_fd(&p->fd);
    if (p->o.k)
        assert_true(mo_loop_until(p->o.l, owner_closed, &p->o, LONG));
    if (p->o.l)
        mo_loop_run(p->o.l);
    mo_loop_free(p->o.l);
    mo_buf_fini(&p->o.log);
}

#define NOTE(x)    "{\"jsonrpc\":\"2.0\",\"method\":\"" x "\"}"
#define TENFOLD(x) x x x x x x x x x x
#define NOISE_100  TENFOLD(TENFOLD("x\n"))

/* Cut in two at every byte, and once byte by byte: pieces do not matter. */
static void test_lines(void **state)
{
    static const struct {
        const char *name, *in, *log;
        int noise, code; /* why it closed by itself, or 0 */
    } rows[] = {
        {"one", NOTE("a") "\n", "[" NOTE("a") "]", 0, 0},
        {"crlf", NOTE("a") "\r\n", "[" NOTE("a") "]", 0, 0},
        {"blank lines are nothing", "\n\r\n" NOTE("a") "\n\n",
         "[" NOTE("a") "]", 0, 0},
        {"utf-8", NOTE("\xc3\xa9") "\n", "[" NOTE("\xc3\xa9") "]", 0, 0},
        {"two", NOTE("a") "\n" NOTE("b") "\n", "[" NOTE("a") "][" NOTE("b") "]",
         0, 0},
        {"unfinished", NOTE("a"), "", 0, 0},
        {"noise", "hello\n" NOTE("a") "\n{\"half\":\n", "[" NOTE("a") "]", 2,
         0},
        {"json that is no message goes up", "17\n", "[17]", 0, 0},
        {"99 lines of noise", &NOISE_100[2], "", 99, 0},
        {"a banner of 99 lines, then a message", &(NOISE_100 NOTE("a") "\n")[2],
         "[" NOTE("a") "]", 99, 0},
        {"100 lines of noise and no message", NOISE_100 NOTE("a") "\n", "", 100,
         MO_EPROTO},
        {"noise after a message is harmless",
         NOTE("a") "\n" NOISE_100 NOISE_100 NOTE("b") "\n",
         "[" NOTE("a") "][" NOTE("b") "]", 200, 0},
    };

    (void)state;
    for (size_t i = 0; i < MO_COUNT(rows); i++) {
        struct mo_span in = mo_span_cstr(rows[i].in);

        for (size_t cut = 0; cut <= in.n; cut++) {
            struct pair p;

            assert_int_equal(pair_open(&p, LINE_MAX_), 0);
            say(&p, mo_span_head(in, cut));
            settle(p.o.l);
            say(&p, mo_span_skip(in, cut));
            settle(p.o.l);
            check_row(rows[i].name,
                      mo_span_is(mo_buf_view(&p.o.log), rows[i].log));
            check_row(rows[i].name, p.o.noise == rows[i].noise);
            check_row(rows[i].name, p.o.why.code == rows[i].code);
            pair_close(&p);
            check_row(rows[i].name, p.o.closed == 1);
        }
    }
}

static void test_too_long(void **state)
{
    char big[LINE_MAX_ + 1];
    struct pair p;

    (void)state;
    memset(big, ' ', sizeof(big));
    assert_int_equal(pair_open(&p, LINE_MAX_), 0);
    say(&p, mo_span(big, sizeof(big)));
    assert_true(mo_loop_until(p.o.l, owner_closed, &p.o, LONG));
    assert_int_equal(p.o.why.code, MO_ETOOBIG);
    assert_non_null(strstr(p.o.why.msg, "line too long"));
    pair_close(&p);
    assert_int_equal(p.o.closed, 1);
}

/* --- answers that are too long ------------------------------------------- */

#define SHORT_MAX 72 /* bytes of a line here */
#define V         "\"jsonrpc\":\"2.0\""
#define TEN       "xxxxxxxxxx"
#define PAD       TEN TEN TEN TEN TEN
#define ANSWER(n) "{" V ",\"id\":" n ",\"result\":\"\"}"
#define LONG1     "{" V ",\"id\":1,\"result\":\"" PAD "\"}"
#define ID_LAST   "{\"result\":\"" PAD "\"," V ",\"id\":2}"

/* Everything that was said has been read, or will never be. */
static bool is_read(void *ctx)
{
    struct pair *p = ctx;
    int waits = 0;

    return p->o.closed || (ioctl(p->fd, TIOCOUTQ, &waits) == 0 && waits == 0);
}

static void say_and_wait(struct pair *p, struct mo_span text)
{
    say(p, text);
    assert_true(mo_loop_until(p->o.l, is_read, p, LONG));
}

/* Only the call that is answered fails; the link goes on. A message that is no
 * answer, or has no id of ours, ends it. */
static void test_overlong(void **state)
{
    static const struct {
        const char *name, *in, *log;
        int code;
    } rows[] = {
        {"id first", LONG1 "\n" NOTE("a") "\n", "(1)[" NOTE("a") "]", 0},
        {"id last, crlf", ID_LAST "\r\n" NOTE("a") "\n", "(2)[" NOTE("a") "]",
         0},
        {"between others", ANSWER("7") "\n" LONG1 "\n" ANSWER("8") "\n",
         "[" ANSWER("7") "](1)[" ANSWER("8") "]", 0},
        {"two in a row", LONG1 "\n" ID_LAST "\n", "(1)(2)", 0},
        {"an error", "{" V ",\"id\":4,\"error\":{\"message\":\"" PAD "\"}}\n",
         "(4)", 0},
        {"has not ended", LONG1, "", 0},
        {"a nested id",
         "{" V ",\"result\":{\"id\":1,\"x\":\"" PAD "\"}}\n" NOTE("a") "\n", "",
         MO_ETOOBIG},
        {"a string as id", "{" V ",\"id\":\"1\",\"result\":\"" PAD "\"}\n", "",
         MO_ETOOBIG},
        {"an error for nobody",
         "{" V ",\"id\":null,\"error\":{\"message\":\"" PAD "\"}}\n", "",
         MO_ETOOBIG},
        {"a request of the server", "{" V ",\"id\":1,\"method\":\"" PAD "\"}\n",
         "", MO_ETOOBIG},
        {"a notification", NOTE(PAD) "\n", "", MO_ETOOBIG},
        {"no JSON", PAD PAD, "", MO_ETOOBIG},
    };

    (void)state;
    for (size_t i = 0; i < MO_COUNT(rows); i++) {
        struct mo_span in = mo_span_cstr(rows[i].in);

        for (size_t cut = 0; cut <= in.n; cut++) {
            struct pair p;

            assert_int_equal(pair_open(&p, SHORT_MAX), 0);
            say_and_wait(&p, mo_span_head(in, cut));
            say_and_wait(&p, mo_span_skip(in, cut));
            if (rows[i].code)
                assert_true(mo_loop_until(p.o.l, owner_closed, &p.o, LONG));
            check_row(rows[i].name,
                      mo_span_is(mo_buf_view(&p.o.log), rows[i].log));
            check_row(rows[i].name, p.o.why.code == rows[i].code);
            check_row(rows[i].name,
                      !rows[i].code || strstr(p.o.why.msg, "line too long"));
            pair_close(&p);
            check_row(rows[i].name, p.o.closed == 1);
        }
    }
}

/* Skipping has a limit, too. */
static void test_overlong_without_end(void **state)
{
    static const size_t max = SHORT_MAX * MO_LINK_SKIP_TIMES;
    struct pair p;

    (void)state;
    assert_int_equal(pair_open(&p, SHORT_MAX), 0);
    say(&p, MO_SPAN("{" V ",\"id\":1,\"result\":\""));
    for (size_t n = 0; n < max - 2 * sizeof(PAD); n += sizeof(PAD) - 1)
        say(&p, MO_SPAN(PAD));
    settle(p.o.l);
    assert_int_equal(p.o.closed, 0);
    for (int i = 0; i < 4; i++)
        say(&p, MO_SPAN(PAD));
    assert_true(mo_loop_until(p.o.l, owner_closed, &p.o, LONG));
    assert_int_equal(p.o.why.code, MO_ETOOBIG);
    assert_int_equal(p.o.log.len, 0);
    pair_close(&p);
}

/* Closing in on_failed, and the stream ending inside a line being skipped. */
static void test_overlong_ends(void **state)
{
    struct pair p;

    (void)state;
    assert_int_equal(pair_open(&p, SHORT_MAX), 0);
    p.o.close_at_first = true;
    say(&p, MO_SPAN(LONG1 "\n" ID_LAST "\n"));
    assert_true(mo_loop_until(p.o.l, owner_closed, &p.o, LONG));
    assert_true(mo_span_is(mo_buf_view(&p.o.log), "(1)"));
    pair_close(&p);
    assert_int_equal(pair_open(&p, SHORT_MAX), 0);
    say(&p, MO_SPAN(LONG1));
    mo_close_fd(&p.fd);
    assert_true(mo_loop_until(p.o.l, owner_closed, &p.o, LONG));
    assert_non_null(strstr(p.o.why.msg, "in the middle of a line"));
    pair_close(&p);
}

static void test_eof(void **state)
{
    static const struct {
        const char *in, *says;
    } rows[] = {{NOTE("a") "\n", "closed the stream"},
                {"{\"jso", "in the middle of a line"}};

    (void)state;
    for (size_t i = 0; i < MO_COUNT(rows); i++) {
        struct pair p;

        assert_int_equal(pair_open(&p, 0), 0);
        say(&p, mo_span_cstr(rows[i].in));
        mo_close_fd(&p.fd);
        assert_true(mo_loop_until(p.o.l, owner_closed, &p.o, LONG));
        assert_int_equal(p.o.why.code, MO_ECLOSED);
        assert_non_null(strstr(p.o.why.msg, rows[i].says));
        pair_close(&p);
    }
}

/* Closing in the middle of a read: what follows is not delivered. */
static void test_close_inside(void **state)
{
    struct mo_link_msg m = {.text = MO_SPAN("{}")};
    struct pair p;

    (void)state;
    assert_int_equal(pair_open(&p, 0), 0);
    p.o.close_at_first = true;
    say(&p, MO_SPAN(NOTE("a") "\n" NOTE("b") "\n"));
    settle(p.o.l);
    assert_int_equal(p.o.messages, 1);
    if (p.o.k)
        assert_int_equal(mo_link_send(p.o.k, &m), MO_ECLOSED);
    pair_close(&p);
}

static void test_close_before_attach(void **state)
{
    struct mo_stream *s;
    struct mo_link *k;
    struct mo_err e;
    struct mo_loop *l = mo_loop_new(NULL, &e);
    int v[2];

    (void)state;
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, v), 0);
    assert_int_equal(mo_stream_from_fds(l, v[0], v[0], &s, &e), 0);
    assert_int_equal(mo_link_lines(l, s, 0, &k, &e), 0);
    assert_false(mo_link_is_http(k));
    mo_link_close(k, NULL);
    mo_link_close(k, NULL);
    (void)close(v[1]);
    mo_loop_run(l);
    mo_loop_free(l);
}

/* A burst is taken, then the reading stops; all of it arrives in the end. */
static void test_burst(void **state)
{
    int n = MO_LINK_BURST + 300;
    struct mo_buf b;
    struct pair p;
    struct enough all = {&p.o, n};
    struct enough burst = {&p.o, MO_LINK_BURST};

    (void)state;
    mo_buf_init(&b, 8 << 20);
    for (int i = 0; i < n; i++)
        mo_buf_puts(&b, NOTE("a") "\n");
    assert_int_equal(pair_open(&p, 0), 0);
    mo_buf_fini(&p.o.log);
    assert_int_equal(fcntl(p.fd, F_SETFL, O_NONBLOCK), 0);
    for (size_t at = 0; at < b.len;) {
        ssize_t w = write(p.fd, b.p + at, b.len - at);

        if (w > 0)
            at += (size_t)w;
        settle(p.o.l);
        if (p.o.messages >= MO_LINK_BURST && at < b.len)
            (void)mo_loop_until(p.o.l, has_enough, &all, MO_LINK_BREATH_MS);
    }
    assert_true(mo_loop_until(p.o.l, has_enough, &burst, LONG));
    assert_true(mo_loop_until(p.o.l, has_enough, &all, LONG));
    assert_int_equal(p.o.messages, n);
    assert_int_equal(p.o.closed, 0);
    assert_int_equal(p.o.timers, 2); /* the waiting itself has one */
    mo_buf_fini(&b);
    pair_close(&p);
}

/* Answers to what we asked are not charged, however many at once. */
static void test_answers_are_free(void **state)
{
    struct mo_link_msg m = {.text = MO_SPAN("{}"), .id = 1, .method = "m"};
    int n = MO_LINK_BURST + 1000;
    struct pair p;
    struct enough all = {&p.o, n};
    char sink[65536];

    (void)state;
    assert_int_equal(pair_open(&p, 0), 0);
    assert_int_equal(fcntl(p.fd, F_SETFL, O_NONBLOCK), 0);
    for (int i = 0; i < n; i++) {
        assert_int_equal(mo_link_send(p.o.k, &m), 0);
        while (read(p.fd, sink, sizeof(sink)) > 0)
            ;
    }
    assert_int_equal(fcntl(p.fd, F_SETFL, 0), 0);
    for (int i = 0; i < n; i++) {
        say(&p, MO_SPAN("{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{}}\n"));
        if (i % 50 == 49)
            settle(p.o.l);
    }
    assert_true(mo_loop_until(p.o.l, has_enough, &all, LONG));
    assert_int_equal(p.o.messages, n);
    assert_int_equal(p.o.timers, 1); /* never held back */
    pair_close(&p);
}

/* The peer does not read. Our requests do not stop our reading, or two who
 * both write would wait for each other; unread answers do. */
static void test_queue(void **state)
{
    static const struct {
        const char *name, *method;
        int delivered;
    } rows[] = {{"requests", "m", 2}, {"answers", NULL, 1}};
    size_t n = (size_t)1024 * 1024;
    char *big = mo_zalloc(n);

    (void)state;
    memset(big, ' ', n);
    for (size_t i = 0; i < MO_COUNT(rows); i++) {
        struct mo_link_msg m = {.text = mo_span(big, n),
                                .method = rows[i].method};
        struct enough both = {NULL, 2};
        struct pair p;

        assert_int_equal(pair_open(&p, 0), 0);
        both.o = &p.o;
        assert_int_equal(mo_link_send(p.o.k, &m), 0);
        assert_int_equal(mo_link_send(p.o.k, &m), 0);
        say(&p, MO_SPAN(NOTE("a") "\n" NOTE("b") "\n"));
        settle(p.o.l);
        check_row(rows[i].name, p.o.messages == rows[i].delivered);
        /* the peer reads at last */
        assert_int_equal(fcntl(p.fd, F_SETFL, O_NONBLOCK), 0);
        for (size_t got = 0; got < 2 * n + 2;) {
            ssize_t r = read(p.fd, big, n);

            got += r > 0 ? (size_t)r : 0;
            settle(p.o.l);
        }
        memset(big, ' ', n);
        assert_true(mo_loop_until(p.o.l, has_enough, &both, LONG));
        check_row(rows[i].name, p.o.messages == 2);
        pair_close(&p);
    }
    mo_free(big);
}

static void lines_life(void *ctx)
{
    struct pair p;

    (void)ctx;
    if (pair_open(&p, 0) == 0) {
        struct mo_link_msg m = {.text = MO_SPAN("{}")};

        (void)mo_link_send(p.o.k, &m);
        say(&p, MO_SPAN("{\"jsonrpc\":\"2.0\","));
        settle(p.o.l);
        say(&p, MO_SPAN("\"method\":\"x\"}\nnoise\n"));
        settle(p.o.l);
    }
    if (p.o.l)
        pair_close(&p);
    else
        mo_close_fd(&p.fd);
}

static size_t hear(int fd, char *to, size_t size)
{
    ssize_t n = recv(fd, to, size, MSG_DONTWAIT);

    return n > 0 ? (size_t)n : 0;
}

/* The first goes at once, the others when the loop comes by, in order; closing
 * does not lose them. Long ones do not gather, and stay behind what does. */
static void test_gather(void **state)
{
    static const struct {
        const char *name;
        bool close;
        size_t pad; /* of the fourth */
    } rows[] = {{"settled", false, 0},
                {"closed", true, 0},
                {"long", false, (size_t)40 * 1024},
                {"long and closed", true, (size_t)40 * 1024}};
    static const char *const text[] = {"1", "2", "3", "4", "5"};
    char *room = mo_zalloc(128 << 10), *want = mo_zalloc(128 << 10);

    (void)state;
    for (size_t i = 0; i < MO_COUNT(rows); i++) {
        size_t got = 0, n = 0;
        struct pair p;

        assert_int_equal(pair_open(&p, 0), 0);
        for (size_t k = 0; k < MO_COUNT(text); k++) {
            size_t len = 1 + (k == 3 ? rows[i].pad : 0);
            struct mo_link_msg m = {.text = mo_span(want + n, len),
                                    .method = "m"};

            memset(want + n, text[k][0], len);
            want[n + len] = '\n';
            assert_int_equal(mo_link_send(p.o.k, &m), 0);
            n += len + 1;
            if (k == 1) /* the second waits */
                got = hear(p.fd, room, 128 << 10);
        }
        check_row(rows[i].name, got == 2 && memcmp(room, want, 2) == 0);
        if (rows[i].close)
            mo_link_close(p.o.k, NULL);
        while (got < n) {
            settle(p.o.l);
            got += hear(p.fd, room + got, (128 << 10) - got);
        }
        check_row(rows[i].name, got == n && memcmp(room, want, n) == 0);
        pair_close(&p);
    }
    mo_free(room);
    mo_free(want);
}

static void test_no_memory(void **state)
{
    (void)state;
    torture(lines_life, NULL);
}

/* --- children ------------------------------------------------------------ */

static int child(struct fix *f, struct owner *o, const char *sh)
{
    const char *argv[] = {"/bin/sh", "-c", sh, NULL};
    struct mo_child_opts co = {.argv = argv, .env = plain_env};
    struct mo_err e;
    int rc;

    memset(o, 0, sizeof(*o));
    mo_buf_init(&o->log, 1 << 20);
    o->l = f->l;
    rc = mo_link_child(f->g, &co, &o->k, &e);
    if (rc == 0)
        mo_link_attach(o->k, &owner_cb, o);
    return rc;
}

/* How it ends by itself, and what its owner is told. */
static void test_child_ends(void **state)
{
    static const struct {
        const char *name, *sh, *says;
        int messages, code;
    } rows[] = {
        {"exit 0", "exit 0", "the server ended (exit 0)", 0, MO_ECLOSED},
        {"last words", "echo one >&2; echo two >&2; exit 3",
         "the server ended (exit 3); it said: one|two", 0, MO_ECLOSED},
        {"the line with the error",
         "echo 'file:///a.js:3' >&2; echo '  throw new Error(x)' >&2; echo "
         "'Error: no port is free' >&2; for i in 1 2 3 4 5 6 7 8 9; do echo '  "
         "  at some.function (file:///somewhere/else.js)' >&2; done; echo "
         "'Node.js v24' >&2; exit 1",
         "it said: Error: no port is free ... ", 0, MO_ECLOSED},
        {"and its end", "echo 'KeyError: x' >&2; seq 100 >&2; exit 1",
         "|99|100", 0, MO_ECLOSED},
        {"escape sequences are not let out", "printf 'a\\033[2Jb' >&2; exit 1",
         "it said: a [2Jb", 0, MO_ECLOSED},
        {"speaks, then exits",
         "echo '" NOTE("a") "'; echo '" NOTE("b") "'; exit 1",
         "the server ended (exit 1)", 2, MO_ECLOSED},
        {"killed", "kill -9 $$", "killed by signal 9", 0, MO_ECLOSED},
        {"a grandchild holds its output",
         "sleep 1000 & echo '" NOTE("a") "'; exit 4",
         "the server ended (exit 4)", 1, MO_ECLOSED},
        {"closes its output and stays",
         "trap '' TERM; exec >&-; while :; do sleep 1000; done",
         "the server ended (killed by signal 9", 0, MO_ECLOSED},
        {"floods with noise", "while :; do echo noise; done",
         "the first 100 lines on its standard output", 0, MO_EPROTO},
        {"speaks, then floods with noise",
         "echo '" NOTE("a") "'; while :; do echo noise; done",
         "flood: more than", 1, MO_EPROTO},
        {"forges on stderr", "echo '" NOTE("a") "' >&2; exit 0",
         "the server ended", 0, MO_ECLOSED},
    };

    (void)state;
    for (size_t i = 0; i < MO_COUNT(rows); i++) {
        struct owner o;
        struct fix f;

        fix_init(&f);
        assert_int_equal(child(&f, &o, rows[i].sh), 0);
        assert_true(mo_loop_until(f.l, owner_closed, &o, LONG));
        if (!strstr(o.why.msg, rows[i].says))
            fail_msg("row '%s': %s", rows[i].name, o.why.msg);
        check_row(rows[i].name, o.closed == 1);
        check_row(rows[i].name, o.messages == rows[i].messages);
        check_row(rows[i].name, o.why.code == rows[i].code);
        mo_buf_fini(&o.log);
        fix_fini(&f);
    }
}

/* Closing is polite: a server that goes at the end of its input has time to
 * say goodbye; one that does not care is gone all the same. */
static void test_child_close(void **state)
{
    static const char *const rows[] = {
        "cat >/dev/null",
        "trap '' TERM; while :; do sleep 1000; done",
        "exec sleep 1000",
    };

    (void)state;
    for (size_t i = 0; i < MO_COUNT(rows); i++) {
        struct mo_err why;
        struct owner o;
        struct fix f;

        fix_init(&f);
        assert_int_equal(child(&f, &o, rows[i]), 0);
        settle(f.l);
        (void)mo_fail(&why, MO_ECANCELED, "enough");
        mo_link_close(o.k, &why);
        assert_int_equal(o.closed, 0);
        assert_true(mo_loop_until(f.l, owner_closed, &o, LONG));
        check_row(rows[i], o.why.code == MO_ECANCELED);
        mo_buf_fini(&o.log);
        fix_fini(&f);
    }
}

/* Only the last of a long story is kept. */
static void test_child_tail(void **state)
{
    struct owner o;
    struct fix f;

    (void)state;
    fix_init(&f);
    assert_int_equal(child(&f, &o,
                           "i=0; while [ $i -lt 3000 ]; do echo line $i; "
                           "i=$((i+1)); done >&2; echo END >&2; exit 3"),
                     0);
    assert_true(mo_loop_until(f.l, owner_closed, &o, LONG));
    assert_non_null(strstr(o.why.msg, "|line 2999|END"));
    assert_null(strstr(o.why.msg, "line 1000|"));
    mo_buf_fini(&o.log);
    fix_fini(&f);
}

static void test_child_no_memory(void **state)
{
    struct fix f;

    (void)state;
    fix_init(&f);
    for (uint64_t i = 1, failed = 1; failed; i++) {
        struct owner o;
        int rc;

        mo_mem_fail_at(i, false);
        rc = child(&f, &o, "cat");
        failed = mo_mem_count() >= i;
        mo_mem_fail_at(0, false);
        if (rc == 0) {
            mo_link_close(o.k, NULL);
            assert_true(mo_loop_until(f.l, owner_closed, &o, LONG));
        } else {
            settle(f.l);
        }
        mo_buf_fini(&o.log);
    }
    fix_fini(&f);
}

static void test_child_env(void **state)
{
    char *ours[] = {(char[]){"HOME=/h"}, (char[]){"SECRET=1"},
                    (char[]){"PATH=/p"}, (char[]){"PATHS=/x"},
                    (char[]){"USER=u"},  (char[]){"LANG=C"},
                    (char[]){"LC_X=d"},  (char[]){"no_proxy=x"},
                    (char[]){"TZ=UTC"},  (char[]){"SSL_CERT_FILE=/c"},
                    (char[]){"LCX=1"},   NULL};
    const char *given[] = {"PATH=/q", "TZ=CET"};
    const char *const want[] = {"HOME=/h", "USER=u",     "LANG=C",
                                "LC_X=d",  "no_proxy=x", "SSL_CERT_FILE=/c",
                                "PATH=/q", "TZ=CET"};
    const char *const *got;
    struct mo_arena a;
    struct mo_err e;

    (void)state;
    mo_arena_init(&a, 65536);
    assert_int_equal(mo_child_env(&a, ours, given, 2, &got, &e), 0);
    for (size_t i = 0; i < MO_COUNT(want); i++)
        assert_string_equal(got[i], want[i]);
    assert_null(got[MO_COUNT(want)]);
    assert_int_equal(
        mo_child_env(&a, ours, given, MO_CHILD_ENV_MAX + 1, &got, &e),
        MO_ETOOBIG);
    mo_arena_fini(&a);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_lines),
        cmocka_unit_test(test_too_long),
        cmocka_unit_test(test_overlong),
        cmocka_unit_test(test_overlong_without_end),
        cmocka_unit_test(test_overlong_ends),
        cmocka_unit_test(test_eof),
        cmocka_unit_test(test_close_inside),
        cmocka_unit_test(test_close_before_attach),
        cmocka_unit_test(test_burst),
        cmocka_unit_test(test_answers_are_free),
        cmocka_unit_test(test_queue),
        cmocka_unit_test(test_gather),
        cmocka_unit_test(test_no_memory),
        cmocka_unit_test(test_child_ends),
        cmocka_unit_test(test_child_close),
        cmocka_unit_test(test_child_tail),
        cmocka_unit_test(test_child_no_memory),
        cmocka_unit_test(test_child_env),
    };

    if (mo_guard_wanted(argc, argv))
        mo_guard_main();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
