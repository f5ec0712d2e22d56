/* TLS streams: against themselves, through a relay that slices, cuts and
 * corrupts, and against the openssl command. */
#include <fcntl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "loop/tls.h"

#include "mo_net.h"

static struct certs files;

static struct mo_tls_ctx *server_ctx(void)
{
    struct mo_err e;
    struct mo_tls_ctx *c = mo_tls_server_new(files.cert, files.key, &e);

    if (!c)
        fail_msg("%s", e.msg);
    return c;
}

static struct mo_tls_ctx *client_ctx(const char *ca)
{
    struct mo_tls_client_opts o = {.ca = ca};
    struct mo_err e;
    struct mo_tls_ctx *c = mo_tls_client_new(&o, &e);

    if (!c)
        fail_msg("%s", e.msg);
    return c;
}

/* --- certificate and key files ------------------------------------------- */

static void bad_files_are_named(void **state)
{
    const struct {
        const char *name, *cert, *key, *says;
        int rc;
    } rows[] = {
        {"good", files.cert, files.key, NULL, 0},
        {"no such certificate", files.none, files.key, "none.pem", MO_EIO},
        {"certificate is junk", files.junk, files.key,
         "junk.pem is not a PEM certificate", MO_ETLS},
        {"certificate is a key", files.key, files.key,
         "is not a PEM certificate", MO_ETLS},
        {"no such key", files.cert, files.none, "TLS key", MO_EIO},
        {"key is junk", files.cert, files.junk, "not a PEM private key",
         MO_ETLS},
        {"key is a certificate", files.cert, files.cert,
         "not a PEM private key", MO_ETLS},
        {"key of another kind", files.cert, files.other_key,
         "does not belong to", MO_ETLS},
        {"key is locked", files.cert, files.locked_key, "has a passphrase",
         MO_ETLS},
    };

    (void)state;
    for (size_t i = 0; i < MO_COUNT(rows); i++) {
        struct mo_err e = {.code = 0};
        struct mo_tls_ctx *c = mo_tls_server_new(rows[i].cert, rows[i].key, &e);

        check_row(rows[i].name, (c != NULL) == (rows[i].rc == 0));
        check_row(rows[i].name, e.code == rows[i].rc);
        check_row(rows[i].name, !rows[i].says || strstr(e.msg, rows[i].says));
        mo_tls_free(c);
    }
}

static void bad_client_files_are_named(void **state)
{
    const struct {
        const char *name;
        struct mo_tls_client_opts o;
        const char *says;
    } rows[] = {
        {"system", {NULL, NULL, NULL}, NULL},
        {"with a certificate", {files.cert, files.cert, files.key}, NULL},
        {"no authorities", {files.none, NULL, NULL}, "none.pem"},
        {"junk authorities", {files.junk, NULL, NULL}, "no PEM certificate"},
        {"key alone", {NULL, NULL, files.key}, "needs its key"},
        {"key of another", {NULL, files.cert, files.other_key}, "not belong"},
    };

    (void)state;
    for (size_t i = 0; i < MO_COUNT(rows); i++) {
        struct mo_err e = {.code = 0};
        struct mo_tls_ctx *c = mo_tls_client_new(&rows[i].o, &e);

        check_row(rows[i].name, (c != NULL) == (rows[i].says == NULL));
        check_row(rows[i].name, c || strstr(e.msg, rows[i].says));
        mo_tls_free(c);
    }
}

/* --- a relay in the middle: byte by byte, corrupting, or cutting --------- */

struct relay {
    struct mo_loop *l;
    struct side {
        struct relay *r;
        struct mo_stream *s;
        struct mo_buf wait; /* to be written to the other side */
        bool eof;           /* passed on once wait is empty */
        size_t passed;
    } side[2];
    struct mo_later turn;
    bool slice;
    size_t spoil_at; /* flip a bit in this byte from side 0; 0: none */
};

static struct side *other(struct side *d)
{
    return &d->r->side[d == &d->r->side[0]];
}

static void pass(struct side *d)
{
    size_t n = d->r->slice && d->wait.len ? 1 : d->wait.len;
    struct side *to = other(d);

    if (to->s && n) {
        size_t at = d->r->spoil_at;

        if (d == &d->r->side[0] && at > d->passed && at <= d->passed + n)
            d->wait.p[at - d->passed - 1] ^= 1;
        (void)mo_stream_write(to->s, mo_span(d->wait.p, n));
    }
    d->passed += n;
    mo_buf_drop(&d->wait, n);
    if (d->wait.len == 0 && d->eof && to->s) {
        d->eof = false;
        mo_stream_shutdown(to->s);
    }
}

static void relay_turn(struct mo_later *later)
{
    struct relay *r = mo_container_of(later, struct relay, turn);

    for (int i = 0; i < 2; i++)
        pass(&r->side[i]);
    if (r->side[0].wait.len || r->side[1].wait.len)
        mo_loop_defer(r->l, &r->turn);
}

static void relay_read(void *ctx, char *p, size_t n)
{
    struct side *d = ctx;

    (void)mo_buf_put(&d->wait, p, n);
    mo_loop_defer(d->r->l, &d->r->turn);
}

static void relay_eof(void *ctx)
{
    struct side *d = ctx;

    d->eof = true;
    mo_loop_defer(d->r->l, &d->r->turn);
}

static void relay_close(void *ctx, const struct mo_err *why)
{
    (void)why;
    ((struct side *)ctx)->s = NULL;
}

static const struct mo_stream_cb relay_cb = {relay_read, relay_eof, NULL,
                                             relay_close};

static void relay_init(struct relay *r, struct mo_loop *l, struct mo_stream *a,
                       struct mo_stream *b)
{
    struct mo_stream *s[2] = {a, b};

    *r = (struct relay){.l = l};
    mo_later_init(&r->turn, relay_turn);
    for (int i = 0; i < 2; i++) {
        r->side[i].r = r;
        r->side[i].s = s[i];
        mo_buf_init(&r->side[i].wait, GOT_MAX);
        mo_stream_attach(s[i], &relay_cb, &r->side[i]);
    }
}

static void relay_cut(struct relay *r)
{
    mo_later_cancel(&r->turn);
    for (int i = 0; i < 2; i++)
        if (r->side[i].s)
            mo_stream_close(r->side[i].s, NULL);
}

/* --- a client and a server ----------------------------------------------- */

struct meet {
    struct mo_loop *l;
    struct mo_tls_ctx *sctx, *cctx;
    struct relay r;
    struct end c, s;
    unsigned fds;
};

static void meet_ctx(struct meet *m, struct mo_tls_ctx *sctx,
                     struct mo_tls_ctx *cctx, const char *name)
{
    struct mo_stream *left[2], *right[2], *s, *c;
    struct mo_err e;

    m->fds = fds_open();
    m->l = loop_new();
    m->sctx = sctx;
    m->cctx = cctx;
    stream_pair(m->l, left);
    stream_pair(m->l, right);
    relay_init(&m->r, m->l, left[1], right[0]);
    end_init(&m->c);
    end_init(&m->s);
    assert_int_equal(mo_tls_wrap(cctx, left[0], false, name, &c, &e), 0);
    assert_int_equal(mo_tls_wrap(sctx, right[1], true, NULL, &s, &e), 0);
    assert_true(mo_stream_is_tls(c));
    /* Streams keep their context alive. */
    mo_tls_free(sctx);
    mo_tls_free(cctx);
    end_attach(&m->c, c);
    end_attach(&m->s, s);
}

static void meet(struct meet *m)
{
    meet_ctx(m, server_ctx(), client_ctx(files.cert), "localhost");
}

static void part(struct meet *m)
{
    if (m->c.s)
        mo_stream_close(m->c.s, NULL);
    if (m->s.s)
        mo_stream_close(m->s.s, NULL);
    relay_cut(&m->r);
    mo_loop_run(m->l);
    assert_int_equal(m->c.closes, 1);
    assert_int_equal(m->s.closes, 1);
    for (int i = 0; i < 2; i++)
        mo_buf_fini(&m->r.side[i].wait);
    mo_buf_fini(&m->c.got);
    mo_buf_fini(&m->s.got);
    mo_loop_free(m->l);
    assert_int_equal(fds_open(), m->fds);
}

static void echo(struct end *me)
{
    assert_int_equal(mo_stream_write(me->s, mo_buf_view(&me->got)), 0);
    mo_buf_reset(&me->got);
}

static bool client_has_4(void *ctx)
{
    return ((struct meet *)ctx)->c.got.len >= 4;
}

static void ping(struct meet *m)
{
    m->s.saw = echo;
    mo_buf_reset(&m->c.got);
    assert_int_equal(mo_stream_write(m->c.s, MO_SPAN("ping")), 0);
    wait_for(m->l, client_has_4, m);
    assert_memory_equal(m->c.got.p, "ping", 4);
}

static void talk_whole_and_sliced(void **state)
{
    (void)state;
    for (int slice = 0; slice < 2; slice++) {
        struct meet m;

        meet(&m);
        m.r.slice = slice;
        ping(&m);
        ping(&m);
        mo_stream_finish(m.s.s, WAIT_MS);
        wait_for(m.l, end_at_eof, &m.c);
        mo_stream_finish(m.c.s, WAIT_MS);
        wait_for(m.l, end_closed, &m.c);
        wait_for(m.l, end_closed, &m.s);
        assert_int_equal(m.c.why.code, 0);
        assert_int_equal(m.s.why.code, 0);
        part(&m);
    }
}

static void half_close_still_reads(void **state)
{
    enum { N = 300000 };
    struct meet m;
    char *big = mo_zalloc(N);

    (void)state;
    meet(&m);
    assert_int_equal(mo_stream_write(m.c.s, MO_SPAN("q")), 0);
    mo_stream_shutdown(m.c.s); /* before the handshake: it is queued */
    assert_int_equal(mo_stream_write(m.c.s, MO_SPAN("r")), MO_ECLOSED);
    wait_for(m.l, end_at_eof, &m.s);
    assert_int_equal(m.s.got.len, 1);
    assert_int_equal(mo_stream_write(m.s.s, mo_span(big, N)), 0);
    mo_stream_shutdown(m.s.s);
    wait_for(m.l, end_at_eof, &m.c);
    assert_int_equal(m.c.got.len, N);
    mo_free(big);
    part(&m);
}

/* --- back-pressure ------------------------------------------------------- */

static bool drained(void *ctx)
{
    return ((struct end *)ctx)->drains > 0;
}

static void a_paused_reader_stops_the_writer(void **state)
{
    enum { PIECE = 50000, MAX = 1000000 };
    struct meet m;
    char *piece = mo_alloc(PIECE);
    size_t sent = 0;
    int rc = 0;

    (void)state;
    meet(&m);
    ping(&m);
    mo_stream_pause(m.c.s);
    mo_stream_limit(m.s.s, MAX);
    memset(piece, 'a', PIECE);
    while (rc == 0) {
        rc = mo_stream_write(m.s.s, mo_span(piece, PIECE));
        if (rc == 0)
            sent += PIECE;
        assert_true(mo_stream_queued(m.s.s) <= MAX + MAX / 50);
    }
    assert_int_equal(rc, MO_EBUSY);
    assert_true(sent >= MAX - PIECE);
    assert_int_equal(m.c.got.len, 4);
    mo_stream_resume(m.c.s);
    m.s.drains = 0;
    wait_for(m.l, drained, &m.s);
    assert_int_equal(mo_stream_queued(m.s.s), 0);
    mo_stream_shutdown(m.s.s);
    wait_for(m.l, end_at_eof, &m.c);
    assert_int_equal(m.c.got.len, 4 + sent);
    mo_free(piece);
    part(&m);
}

static void pause_now(struct end *me)
{
    mo_stream_pause(me->s);
}

static bool stopped_reading(void *ctx)
{
    struct meet *m = ctx;

    return m->c.reads > 0;
}

/* Pausing in on_read holds back data that is already decrypted; nothing is lost
 * and nothing is delivered meanwhile. */
static void pause_inside_read_holds_the_rest(void **state)
{
    enum { N = 200000 };
    struct meet m;
    char *big = mo_alloc(N);

    (void)state;
    for (int i = 0; i < N; i++)
        big[i] = (char)(i * 7 >> 3);
    meet(&m);
    m.c.saw = pause_now;
    assert_int_equal(mo_stream_write(m.s.s, mo_span(big, N)), 0);
    mo_stream_shutdown(m.s.s);
    while (!m.c.eof) {
        m.c.reads = 0;
        wait_for(m.l, stopped_reading, &m);
        for (int i = 0; i < 5; i++)
            (void)mo_loop_until(m.l, end_at_eof, &m.c, 0);
        assert_int_equal(m.c.reads, 1);
        mo_stream_resume(m.c.s);
        if (m.c.got.len == N)
            wait_for(m.l, end_at_eof, &m.c);
    }
    assert_int_equal(m.c.got.len, N);
    assert_memory_equal(m.c.got.p, big, N);
    mo_free(big);
    part(&m);
}

/* --- failures ------------------------------------------------------------ */

static void a_cut_is_not_an_eof(void **state)
{
    struct meet m;

    (void)state;
    meet(&m);
    ping(&m);
    relay_cut(&m.r);
    wait_for(m.l, end_closed, &m.c);
    wait_for(m.l, end_closed, &m.s);
    assert_false(m.c.eof);
    assert_int_equal(m.c.why.code, MO_ETLS);
    assert_non_null(strstr(m.c.why.msg, "truncated"));
    assert_int_equal(m.s.why.code, MO_ETLS);
    part(&m);
}

static void a_close_with_a_reason_looks_cut(void **state)
{
    struct mo_err why;
    struct meet m;

    (void)state;
    meet(&m);
    ping(&m);
    (void)mo_fail(&why, MO_EPROTO, "enough");
    mo_stream_close(m.s.s, &why);
    wait_for(m.l, end_closed, &m.c);
    assert_int_equal(m.s.why.code, MO_EPROTO);
    assert_int_equal(m.c.why.code, MO_ETLS);
    part(&m);
}

static void a_clean_close_is_an_eof(void **state)
{
    struct meet m;

    (void)state;
    meet(&m);
    ping(&m);
    mo_stream_close(m.s.s, NULL);
    wait_for(m.l, end_at_eof, &m.c);
    assert_int_equal(m.c.closes, 0);
    part(&m);
}

static void a_spoilt_record_ends_it(void **state)
{
    struct meet m;

    (void)state;
    meet(&m);
    ping(&m);
    m.r.spoil_at = m.r.side[0].passed + 20;
    assert_int_equal(mo_stream_write(m.c.s, MO_SPAN("0123456789abcdef")), 0);
    wait_for(m.l, end_closed, &m.s);
    assert_int_equal(m.s.why.code, MO_ETLS);
    assert_int_equal(m.s.got.len, 0);
    part(&m);
}

static void certificates_are_checked(void **state)
{
    const struct {
        const char *name, *ca, *host, *says;
    } rows[] = {
        {"by address", files.cert, "127.0.0.1", NULL},
        {"chain only", files.cert, NULL, NULL},
        {"unknown issuer", files.other_cert, "localhost", "self-signed"},
        {"another name", files.cert, "elsewhere.test", "hostname mismatch"},
        {"another address", files.cert, "127.0.0.2", "IP address mismatch"},
    };

    (void)state;
    for (size_t i = 0; i < MO_COUNT(rows); i++) {
        struct meet m;

        meet_ctx(&m, server_ctx(), client_ctx(rows[i].ca), rows[i].host);
        if (!rows[i].says) {
            ping(&m);
            part(&m);
            continue;
        }
        assert_int_equal(mo_stream_write(m.c.s, MO_SPAN("secret")), 0);
        wait_for(m.l, end_closed, &m.c);
        wait_for(m.l, end_closed, &m.s);
        check_row(rows[i].name, m.c.why.code == MO_ETLS);
        check_row(rows[i].name, strstr(m.c.why.msg, rows[i].says));
        check_row(rows[i].name, strstr(m.c.why.msg, rows[i].host));
        check_row(rows[i].name, m.s.why.code == MO_ETLS);
        check_row(rows[i].name, m.s.got.len == 0);
        part(&m);
    }
}

/* A raw peer sends these bytes to our server (or to our client) and then does
 * nothing. */
static void strangers_are_refused(void **state)
{
    const struct {
        const char *name;
        struct mo_span bytes;
        const char *says;
        bool server, close;
        int code;
    } rows[] = {
        {"plain HTTP", MO_SPAN("GET / HTTP/1.1\r\nHost: x\r\n\r\n"),
         "plain HTTP", true, false, MO_ETLS},
        {"noise", MO_SPAN("\x01\x02\x03\x04\x05\x06\x07\x08\x09\x10\x11"),
         "not speak", true, false, MO_ETLS},
        {"silence", MO_SPAN(""), "not done in", true, false, MO_ETIMEOUT},
        {"gone at once", MO_SPAN(""), "the peer closed", true, true, MO_ETLS},
        {"half a hello",
         MO_SPAN("\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03"),
         "the peer closed", true, true, MO_ETLS},
        {"half a hello, silent", MO_SPAN("\x16\x03\x01\x02\x00\x01"),
         "not done in", true, false, MO_ETIMEOUT},
        {"client: plain server", MO_SPAN("HTTP/1.1 400 Bad Request\r\n\r\n"),
         "does not speak TLS", false, false, MO_ETLS},
        {"client: silence", MO_SPAN(""), "localhost: not done in", false, false,
         MO_ETIMEOUT},
        {"client: gone", MO_SPAN(""), "localhost: the peer closed", false, true,
         MO_ETLS},
    };

    (void)state;
    for (size_t i = 0; i < MO_COUNT(rows); i++) {
        unsigned fds = fds_open();
        struct mo_loop *l = loop_new();
        struct mo_tls_ctx *c =
            rows[i].server ? server_ctx() : client_ctx(files.cert);
        struct mo_stream *two[2], *s;
        struct end raw, me;
        struct mo_err e;

        mo_tls_handshake_ms(c, rows[i].code == MO_ETIMEOUT ? 20 : WAIT_MS);
        stream_pair(l, two);
        end_init(&raw);
        end_init(&me);
        end_attach(&raw, two[0]);
        assert_int_equal(mo_tls_wrap(c, two[1], rows[i].server,
                                     rows[i].server ? NULL : "localhost", &s,
                                     &e),
                         0);
        mo_tls_free(c);
        end_attach(&me, s);
        (void)mo_stream_write(raw.s, rows[i].bytes);
        if (rows[i].close)
            mo_stream_shutdown(raw.s);
        wait_for(l, end_closed, &me);
        check_row(rows[i].name, me.why.code == rows[i].code);
        check_row(rows[i].name, strstr(me.why.msg, rows[i].says));
        check_row(rows[i].name, me.got.len == 0);
        if (raw.s)
            mo_stream_close(raw.s, NULL);
        mo_loop_run(l);
        assert_int_equal(me.closes, 1);
        mo_buf_fini(&raw.got);
        mo_buf_fini(&me.got);
        mo_loop_free(l);
        assert_int_equal(fds_open(), fds);
    }
}

static bool raw_gone(void *ctx)
{
    return ((struct end *)ctx)->eof || ((struct end *)ctx)->closes;
}

/* A failure is kept until an owner is attached; a close is not. */
static void failure_waits_for_an_owner(void **state)
{
    (void)state;
    for (int attach = 0; attach < 2; attach++) {
        struct mo_loop *l = loop_new();
        struct mo_tls_ctx *c = server_ctx();
        struct mo_stream *two[2], *s;
        struct end raw, me;
        struct mo_err e;

        stream_pair(l, two);
        end_init(&raw);
        end_init(&me);
        end_attach(&raw, two[0]);
        assert_int_equal(mo_tls_wrap(c, two[1], true, NULL, &s, &e), 0);
        mo_tls_free(c);
        (void)mo_stream_write(raw.s, MO_SPAN("GET / HTTP/1.1\r\n\r\n"));
        (void)mo_loop_until(l, raw_gone, &raw, 30);
        if (attach) {
            end_attach(&me, s);
            assert_int_equal(me.closes, 0);
            wait_for(l, end_closed, &me);
            assert_int_equal(me.why.code, MO_ETLS);
        } else {
            mo_stream_close(s, NULL);
        }
        mo_stream_close(raw.s, NULL);
        mo_loop_run(l);
        assert_int_equal(me.closes, attach);
        mo_buf_fini(&raw.got);
        mo_buf_fini(&me.got);
        mo_loop_free(l);
    }
}

/* Every allocation fails once; nothing leaks, nothing hangs. */
static void one_talk(void *ctx)
{
    struct mo_tls_ctx **both = ctx;
    struct mo_loop *l = mo_loop_new(NULL, NULL);
    struct mo_stream *two[2] = {NULL, NULL}, *tls[2] = {NULL, NULL};
    struct end me[2];
    int fd[2];

    if (!l)
        return;
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, fd), 0);
    for (int i = 0; i < 2; i++) {
        struct mo_err e;

        end_init(&me[i]);
        if (mo_stream_from_fds(l, fd[i], fd[i], &two[i], &e) < 0)
            continue;
        if (mo_tls_wrap(both[i], two[i], i == 0, NULL, &tls[i], &e) < 0)
            continue;
        end_attach(&me[i], tls[i]);
        (void)mo_stream_write(tls[i], MO_SPAN("hello"));
        mo_stream_finish(tls[i], 50);
    }
    mo_loop_run(l);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(me[i].closes, tls[i] != NULL);
        mo_buf_fini(&me[i].got);
    }
    mo_loop_free(l);
}

static void no_memory_is_survived(void **state)
{
    struct mo_tls_ctx *both[2] = {server_ctx(), client_ctx(files.cert)};

    (void)state;
    torture(one_talk, both);
    mo_tls_free(both[0]);
    mo_tls_free(both[1]);
}

/* --- a foreign client ---------------------------------------------------- */

static bool child_said(void *ctx)
{
    return ((struct end *)ctx)->got.len >= 6 || ((struct end *)ctx)->eof;
}

static void accept_tls(void *ctx, struct mo_stream *s)
{
    struct meet *m = ctx;
    struct mo_err e;

    assert_int_equal(mo_tls_wrap(m->sctx, s, true, NULL, &s, &e), 0);
    end_attach(&m->s, s);
    m->s.saw = echo;
}

/* True if s_client with these options gets its "hello\n" back. */
static bool s_client(const char *opts)
{
    struct mo_listen_opts o = {.addr = "127.0.0.1:0"};
    struct meet m = {.l = loop_new(), .sctx = server_ctx()};
    char line[512], *argv[32];
    struct mo_listener *ls;
    int in[2], out[2], st;
    struct mo_stream *s;
    struct mo_err e;
    bool heard;
    pid_t pid;

    end_init(&m.c);
    end_init(&m.s);
    assert_int_equal(mo_listen(m.l, &o, accept_tls, &m, &ls, &e), 0);
    (void)snprintf(line, sizeof(line),
                   "openssl s_client -quiet -verify_return_error -CAfile %s "
                   "-connect 127.0.0.1:%u %s",
                   files.cert, mo_listener_port(ls), opts);
    split_words(line, argv, MO_COUNT(argv));
    assert_int_equal(pipe2(in, O_CLOEXEC), 0);
    assert_int_equal(pipe2(out, O_CLOEXEC), 0);
    pid = run_argv(argv, in[0], out[1]);
    (void)close(in[0]);
    (void)close(out[1]);
    assert_int_equal(mo_stream_from_fds(m.l, out[0], in[1], &s, &e), 0);
    end_attach(&m.c, s);
    assert_int_equal(mo_stream_write(s, MO_SPAN("hello\n")), 0);
    wait_for(m.l, child_said, &m.c);
    heard = mo_span_is(mo_buf_view(&m.c.got), "hello\n");
    mo_listener_close(ls);
    if (m.c.s)
        mo_stream_close(m.c.s, NULL);
    if (m.s.s)
        mo_stream_finish(m.s.s, WAIT_MS);
    mo_loop_run(m.l);
    assert_true(waitpid(pid, &st, 0) == pid);
    mo_buf_fini(&m.c.got);
    mo_buf_fini(&m.s.got);
    mo_tls_free(m.sctx);
    mo_loop_free(m.l);
    return heard;
}

static void the_openssl_command_agrees(void **state)
{
    static const struct {
        const char *opts;
        bool ok;
    } rows[] = {
        {"-tls1_3", true},
        {"-tls1_2", true},
        {"-servername localhost -alpn h2,http/1.1", true},
        {"-alpn h2", false},
        {"-tls1_1 -cipher DEFAULT:@SECLEVEL=0", false},
        {"-tls1_2 -cipher AES128-SHA", false},
        {"-tls1_2 -cipher ECDHE-ECDSA-AES128-SHA", false},
    };

    (void)state;
    for (size_t i = 0; i < MO_COUNT(rows); i++) {
        unsigned fds = fds_open();

        check_row(rows[i].opts, s_client(rows[i].opts) == rows[i].ok);
        check_row(rows[i].opts, fds_open() == fds);
    }
}

static int make_files(void **state)
{
    (void)state;
    certs_make(&files);
    return 0;
}

static int drop_files(void **state)
{
    (void)state;
    certs_drop(&files);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bad_files_are_named),
        cmocka_unit_test(bad_client_files_are_named),
        cmocka_unit_test(talk_whole_and_sliced),
        cmocka_unit_test(half_close_still_reads),
        cmocka_unit_test(a_paused_reader_stops_the_writer),
        cmocka_unit_test(pause_inside_read_holds_the_rest),
        cmocka_unit_test(a_cut_is_not_an_eof),
        cmocka_unit_test(a_close_with_a_reason_looks_cut),
        cmocka_unit_test(a_clean_close_is_an_eof),
        cmocka_unit_test(a_spoilt_record_ends_it),
        cmocka_unit_test(certificates_are_checked),
        cmocka_unit_test(strangers_are_refused),
        cmocka_unit_test(failure_waits_for_an_owner),
        cmocka_unit_test(no_memory_is_survived),
        cmocka_unit_test(the_openssl_command_agrees),
    };

    return cmocka_run_group_tests(tests, make_files, drop_files);
}
