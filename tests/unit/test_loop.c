/* Loop, timers, streams, listening and dialling on real sockets. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include "loop/net.h"
#include "mo_test.h"

static struct mo_loop *loop_new(void)
{
    struct mo_err e;
    struct mo_loop *l = mo_loop_new(NULL, &e);

    assert_non_null(l);
    return l;
}

static unsigned fds_open(void)
{
    DIR *d = opendir("/proc/self/fd");
    unsigned n = 0;

    assert_non_null(d);
    while (readdir(d))
        n++;
    (void)closedir(d);
    return n;
}

/* --- timers -------------------------------------------------------------- */

struct tick {
    struct mo_timer t;
    struct mo_loop *l;
    int *order, *n, id;
    struct tick *stop; /* another timer to stop when firing */
};

static void on_tick(struct mo_timer *t)
{
    struct tick *k = mo_container_of(t, struct tick, t);

    k->order[(*k->n)++] = k->id;
    if (k->stop)
        mo_timer_stop(k->l, &k->stop->t);
}

static void timers_fire_in_order(void **state)
{
    enum { N = 200 };
    struct mo_loop *l = loop_new();
    int order[N], n = 0;
    struct tick k[N];
    uint64_t due[N], last = 0;

    (void)state;
    for (int i = 0; i < N; i++) {
        k[i] = (struct tick){.l = l, .order = order, .n = &n, .id = i};
        mo_timer_init(&k[i].t, on_tick);
        mo_timer_start(l, &k[i].t, (uint64_t)((i * 37) % 50));
        due[i] = k[i].t.at; /* the clock may go on between two starts */
    }
    for (int i = 0; i < N; i += 3)
        mo_timer_stop(l, &k[i].t);
    mo_loop_run(l);
    assert_int_equal(n, N - (N + 2) / 3);
    for (int i = 0; i < n; i++) {
        assert_true(order[i] % 3 != 0);
        assert_true(due[order[i]] >= last);
        last = due[order[i]];
    }
    assert_int_equal(mo_loop_stats(l).timers, 0);
    mo_loop_free(l);
}

static void a_timer_may_stop_another(void **state)
{
    struct mo_loop *l = loop_new();
    int order[4], n = 0;
    struct tick a = {.l = l, .order = order, .n = &n, .id = 1};
    struct tick b = {.l = l, .order = order, .n = &n, .id = 2};

    (void)state;
    a.stop = &b;
    mo_timer_init(&a.t, on_tick);
    mo_timer_init(&b.t, on_tick);
    mo_timer_start(l, &a.t, 1);
    mo_timer_start(l, &b.t, 1);
    mo_timer_start(l, &b.t, 2); /* restarting moves its time */
    mo_loop_run(l);
    assert_int_equal(n, 1);
    assert_false(mo_timer_on(&b.t));
    mo_loop_free(l);
}

/* --- later --------------------------------------------------------------- */

struct chore {
    struct mo_later d;
    struct mo_loop *l;
    int runs, again;
    struct chore *cancel;
    bool soon; /* again, when it is due */
};

static void on_chore(struct mo_later *d)
{
    struct chore *c = mo_container_of(d, struct chore, d);

    c->runs++;
    if (c->cancel)
        mo_later_cancel(&c->cancel->d);
    if (c->runs > c->again)
        return;
    if (c->soon)
        mo_loop_soon(c->l, &c->d);
    else
        mo_loop_defer(c->l, &c->d);
}

static void deferred_runs_once_and_later(void **state)
{
    struct mo_loop *l = loop_new();
    struct chore a = {.l = l, .again = 3};
    struct chore b = {.l = l};
    struct chore c = {.l = l};

    (void)state;
    mo_later_init(&a.d, on_chore);
    mo_later_init(&b.d, on_chore);
    mo_later_init(&c.d, on_chore);
    a.cancel = &c;
    mo_loop_defer(l, &a.d);
    mo_loop_defer(l, &b.d);
    mo_loop_defer(l, &b.d);
    mo_loop_defer(l, &c.d);
    assert_int_equal(a.runs, 0);
    mo_loop_run(l);
    assert_int_equal(a.runs, 4);
    assert_int_equal(b.runs, 1);
    assert_int_equal(c.runs, 0);
    mo_loop_free(l);
}

static bool has_run(void *ctx)
{
    return ((struct chore *)ctx)->runs > 0;
}

/* Runs although nothing else is to do, many times over, but not after a cancel;
 * the loop ends after it. */
static void soon_runs_before_the_loop_waits(void **state)
{
    struct mo_loop *l = loop_new();
    struct chore a = {.l = l, .again = 100, .soon = true};
    struct chore b = {.l = l};
    struct chore c = {.l = l};

    (void)state;
    mo_later_init(&a.d, on_chore);
    mo_later_init(&b.d, on_chore);
    mo_later_init(&c.d, on_chore);
    mo_loop_soon(l, &a.d);
    mo_loop_soon(l, &b.d);
    mo_loop_soon(l, &b.d);
    mo_loop_soon(l, &c.d);
    mo_later_cancel(&c.d);
    assert_int_equal(a.runs, 0);
    mo_loop_run(l);
    assert_int_equal(a.runs, 101);
    assert_int_equal(b.runs, 1);
    assert_int_equal(c.runs, 0);
    mo_loop_soon(l, &c.d);
    mo_later_cancel(&c.d);
    mo_loop_run(l); /* comes back */
    mo_loop_soon(l, &c.d);
    assert_true(mo_loop_until(l, has_run, &c, 60000));
    mo_loop_free(l);
}

/* --- streams ------------------------------------------------------------- */

struct end {
    struct mo_stream *s;
    struct mo_buf got;
    int closed, eofs, drains, inside;
    int why;
    bool keep_on_eof, echo;
    size_t read_calls;
};

static void end_read(void *ctx, char *p, size_t n)
{
    struct end *x = ctx;

    assert_int_equal(x->inside, 0);
    x->read_calls++;
    assert_int_equal(mo_buf_put(&x->got, p, n), 0);
    if (x->echo)
        assert_int_equal(mo_stream_write(x->s, mo_span(p, n)), 0);
}

static void end_eof(void *ctx)
{
    struct end *x = ctx;

    x->eofs++;
    if (!x->keep_on_eof)
        mo_stream_close(x->s, NULL);
}

static void end_drain(void *ctx)
{
    ((struct end *)ctx)->drains++;
}

static void end_close(void *ctx, const struct mo_err *why)
{
    struct end *x = ctx;

    assert_int_equal(x->inside, 0);
    x->closed++;
    x->why = why ? why->code : 0;
    x->s = NULL;
}

static const struct mo_stream_cb end_cb = {end_read, end_eof, end_drain,
                                           end_close};

static void end_init(struct end *x, struct mo_stream *s)
{
    *x = (struct end){.s = s};
    mo_buf_init(&x->got, (size_t)64 << 20);
    mo_stream_attach(s, &end_cb, x);
}

static void socket_pair(struct mo_loop *l, struct end *a, struct end *b)
{
    struct mo_stream *s;
    struct mo_err e;
    int fd[2];

    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fd), 0);
    assert_int_equal(mo_stream_from_fds(l, fd[0], fd[0], &s, &e), 0);
    end_init(a, s);
    assert_int_equal(mo_stream_from_fds(l, fd[1], fd[1], &s, &e), 0);
    end_init(b, s);
}

static bool both_closed(void *ctx)
{
    struct end **x = ctx;

    return x[0]->closed && x[1]->closed;
}

static void done(struct mo_loop *l, struct end *a, struct end *b)
{
    struct end *both[] = {a, b};

    assert_true(mo_loop_until(l, both_closed, both, 5000));
    assert_int_equal(a->closed, 1);
    assert_int_equal(b->closed, 1);
    mo_buf_fini(&a->got);
    mo_buf_fini(&b->got);
    mo_loop_free(l);
}

static void bytes_cross_in_order(void **state)
{
    unsigned before = fds_open();
    struct mo_loop *l = loop_new();
    struct mo_span v[3] = {MO_SPAN("one "), MO_SPAN(""), MO_SPAN("two")};
    struct end a, b;

    (void)state;
    socket_pair(l, &a, &b);
    assert_int_equal(mo_stream_writev(a.s, v, 3), 0);
    mo_stream_finish(a.s, 1000);
    assert_int_equal(mo_stream_write(a.s, v[0]), MO_ECLOSED);
    b.keep_on_eof = false;
    done(l, &a, &b);
    assert_int_equal(b.eofs, 1);
    assert_int_equal(fds_open(), before);
}

static bool drained(void *ctx)
{
    return ((struct end *)ctx)->drains > 0;
}

static bool never(void *ctx)
{
    (void)ctx;
    return false;
}

static void queue_is_capped_and_drains(void **state)
{
    static char block[256 * 1024];
    struct mo_loop *l = loop_new();
    struct end a, b;
    size_t sent = 0;
    int rc;

    (void)state;
    for (size_t i = 0; i < sizeof(block); i++)
        block[i] = (char)(i * 7);
    socket_pair(l, &a, &b);
    mo_stream_pause(b.s);
    mo_stream_limit(a.s, (size_t)1 << 20);
    for (;;) {
        a.inside = 1;
        rc = mo_stream_write(a.s, mo_span(block, sizeof(block)));
        a.inside = 0;
        if (rc < 0)
            break;
        sent += sizeof(block);
    }
    assert_int_equal(rc, MO_EBUSY);
    assert_true(mo_stream_queued(a.s) <= (size_t)1 << 20);
    mo_stream_resume(b.s);
    assert_true(mo_loop_until(l, drained, &a, 5000));
    assert_int_equal(mo_stream_queued(a.s), 0);
    while (b.got.len < sent)
        (void)mo_loop_until(l, never, NULL, 1);
    for (size_t i = 0; i < sent; i++)
        assert_true(b.got.p[i] == block[i % sizeof(block)]);
    mo_stream_finish(a.s, 1000);
    done(l, &a, &b);
    assert_true(sent >= (size_t)3 * sizeof(block));
}

static bool is_closed(void *ctx)
{
    return ((struct end *)ctx)->closed > 0;
}

/* The peer keeps its end open: everything is sent, nothing is waited for. */
static void leave_sends_the_queue_only(void **state)
{
    static char block[1024 * 1024];
    struct mo_loop *l = loop_new();
    struct end a, b;

    (void)state;
    socket_pair(l, &a, &b);
    b.keep_on_eof = true;
    mo_stream_pause(b.s);
    assert_int_equal(mo_stream_write(a.s, mo_span(block, sizeof(block))), 0);
    assert_true(mo_stream_queued(a.s) > 0);
    mo_stream_leave(a.s, 60000);
    assert_int_equal(mo_stream_write(a.s, MO_SPAN("late")), MO_ECLOSED);
    (void)mo_loop_until(l, never, NULL, 1);
    assert_int_equal(a.closed, 0);
    mo_stream_resume(b.s);
    assert_true(mo_loop_until(l, is_closed, &a, 5000));
    while (!b.eofs)
        (void)mo_loop_until(l, never, NULL, 1);
    assert_int_equal(b.got.len, sizeof(block));
    assert_int_equal(b.closed, 0);
    mo_stream_leave(b.s, 60000); /* nothing is queued: at once */
    done(l, &a, &b);
}

static void half_close_still_reads(void **state)
{
    struct mo_loop *l = loop_new();
    struct end a, b;

    (void)state;
    socket_pair(l, &a, &b);
    b.keep_on_eof = true;
    b.echo = true;
    assert_int_equal(mo_stream_write(a.s, MO_SPAN("ping")), 0);
    mo_stream_shutdown(a.s);
    while (!b.eofs || a.got.len < 4)
        (void)mo_loop_until(l, never, NULL, 1);
    assert_true(mo_span_is(mo_buf_view(&a.got), "ping"));
    assert_int_equal(mo_stream_write(b.s, MO_SPAN("bye")), 0);
    mo_stream_close(b.s, NULL);
    done(l, &a, &b);
}

static void peer_reset_is_reported_once(void **state)
{
    struct linger off = {.l_onoff = 1};
    struct mo_loop *l = loop_new();
    struct mo_stream *s;
    struct mo_err e;
    struct end a;
    int fd[2];

    (void)state;
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fd), 0);
    (void)setsockopt(fd[1], SOL_SOCKET, SO_LINGER, &off, sizeof(off));
    assert_int_equal(mo_stream_from_fds(l, fd[0], fd[0], &s, &e), 0);
    end_init(&a, s);
    mo_stream_pause(a.s);
    assert_int_equal(close(fd[1]), 0);
    a.inside = 1;
    assert_int_equal(mo_stream_write(a.s, MO_SPAN("x")), MO_ECLOSED);
    a.inside = 0;
    mo_loop_run(l);
    assert_int_equal(a.closed, 1);
    assert_int_equal(a.why, MO_ECLOSED);
    mo_buf_fini(&a.got);
    mo_loop_free(l);
}

/* Two ends of a TCP connection. */
static void tcp_pair(int fd[2])
{
    struct sockaddr_in at = {.sin_family = AF_INET,
                             .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t n = sizeof(at);
    int ls = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    assert_int_equal(bind(ls, (struct sockaddr *)&at, n), 0);
    assert_int_equal(listen(ls, 1), 0);
    assert_int_equal(getsockname(ls, (struct sockaddr *)&at, &n), 0);
    fd[0] = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(connect(fd[0], (struct sockaddr *)&at, n), 0);
    fd[1] = accept4(ls, NULL, NULL, SOCK_CLOEXEC);
    assert_true(fd[1] >= 0);
    assert_int_equal(close(ls), 0);
}

/* How a connection ends for the peer that has not read yet: 0 or an errno. */
static int end_for_peer(bool drops)
{
    struct mo_loop *l = loop_new();
    struct mo_stream *s;
    struct mo_err e;
    struct end a;
    char some[16];
    ssize_t n;
    int fd[2];

    tcp_pair(fd);
    assert_int_equal(mo_stream_from_fds(l, fd[0], fd[0], &s, &e), 0);
    end_init(&a, s);
    if (drops)
        mo_stream_drop_unsent(a.s);
    assert_int_equal(mo_stream_write(a.s, MO_SPAN("x")), 0);
    mo_stream_close(a.s, NULL);
    mo_loop_run(l);
    do
        n = read(fd[1], some, sizeof(some));
    while (n > 0);
    n = n < 0 ? errno : 0;
    assert_int_equal(close(fd[1]), 0);
    mo_buf_fini(&a.got);
    mo_loop_free(l);
    return (int)n;
}

static void unsent_bytes_are_dropped_if_asked(void **state)
{
    (void)state;
    assert_int_equal(end_for_peer(false), 0);
    assert_int_equal(end_for_peer(true), ECONNRESET);
}

static void pipe_pair_is_one_stream(void **state)
{
    unsigned before = fds_open();
    struct mo_loop *l = loop_new();
    struct mo_stream *s;
    struct end a, b;
    int x[2], y[2];
    struct mo_err e;

    (void)state;
    assert_int_equal(pipe2(x, O_CLOEXEC), 0);
    assert_int_equal(pipe2(y, O_CLOEXEC), 0);
    assert_int_equal(mo_stream_from_fds(l, x[0], y[1], &s, &e), 0);
    end_init(&a, s);
    assert_int_equal(mo_stream_from_fds(l, y[0], x[1], &s, &e), 0);
    end_init(&b, s);
    b.echo = true;
    b.keep_on_eof = true;
    assert_int_equal(mo_stream_write(a.s, MO_SPAN("hello")), 0);
    mo_stream_shutdown(a.s);
    while (!b.eofs || a.got.len < 5)
        (void)mo_loop_until(l, never, NULL, 1);
    mo_stream_close(b.s, NULL);
    done(l, &a, &b);
    assert_int_equal(fds_open(), before);
}

/* --- listening and dialling ---------------------------------------------- */

struct meet {
    struct end server, client;
    struct mo_err why;
    int dialled, accepted;
};

static void on_accept(void *ctx, struct mo_stream *s)
{
    struct meet *m = ctx;

    m->accepted++;
    end_init(&m->server, s);
    m->server.echo = true;
}

static void on_dialled(void *ctx, struct mo_stream *s, const struct mo_err *why)
{
    struct meet *m = ctx;

    m->dialled++;
    if (why)
        m->why = *why;
    if (s)
        end_init(&m->client, s);
}

static bool is_dialled(void *ctx)
{
    return ((struct meet *)ctx)->dialled > 0;
}

static bool echoed(void *ctx)
{
    return ((struct meet *)ctx)->client.got.len == 5;
}

static void meet_at(const char *listen_at, const char *dial_at_fmt)
{
    unsigned before = fds_open();
    struct mo_loop *l = loop_new();
    struct mo_listen_opts o = {.addr = listen_at};
    struct mo_listener *ls;
    struct meet m = {.dialled = 0};
    struct end *both[] = {&m.server, &m.client};
    char addr[128];
    struct mo_err e;

    assert_int_equal(mo_listen(l, &o, on_accept, &m, &ls, &e), 0);
    (void)snprintf(addr, sizeof(addr), "%s%.0u", dial_at_fmt,
                   mo_listener_port(ls));
    assert_int_equal(mo_dial(l, addr, 2000, on_dialled, &m, NULL, &e), 0);
    assert_int_equal(m.dialled, 0);
    assert_true(mo_loop_until(l, is_dialled, &m, 5000));
    assert_int_equal(m.why.code, 0);
    assert_int_equal(mo_stream_write(m.client.s, MO_SPAN("hello")), 0);
    assert_true(mo_loop_until(l, echoed, &m, 5000));
    mo_stream_finish(m.client.s, 1000);
    assert_true(mo_loop_until(l, both_closed, both, 5000));
    mo_listener_close(ls);
    mo_buf_fini(&m.server.got);
    mo_buf_fini(&m.client.got);
    mo_loop_free(l);
    assert_int_equal(fds_open(), before);
}

static void tcp_and_unix_meet(void **state)
{
    char path[64], addr[80];

    (void)state;
    meet_at("127.0.0.1:0", "127.0.0.1:");
    meet_at("localhost:0", "localhost:");
    (void)snprintf(path, sizeof(path), "/tmp/mo-test-%d.sock", getpid());
    (void)snprintf(addr, sizeof(addr), "unix:%s", path);
    meet_at(addr, addr);
    assert_int_equal(access(path, F_OK), -1);
}

static void dial_fails_with_a_reason(void **state)
{
    static const struct {
        const char *addr;
        int rc, code;
    } rows[] = {
        {"127.0.0.1:1", 0, MO_EUNAVAIL},
        {"unix:/nonexistent/x.sock", 0, MO_EUNAVAIL},
        {"no port", MO_EINVAL, 0},
        {"::1:80", MO_EINVAL, 0},
        {"a:99999", MO_EINVAL, 0},
        {":80", MO_EINVAL, 0},
    };

    (void)state;
    for (size_t i = 0; i < MO_COUNT(rows); i++) {
        struct mo_loop *l = loop_new();
        struct meet m = {.dialled = 0};
        struct mo_err e;
        int rc = mo_dial(l, rows[i].addr, 2000, on_dialled, &m, NULL, &e);

        check_row(rows[i].addr, rc == rows[i].rc);
        mo_loop_run(l);
        check_row(rows[i].addr, m.dialled == (rc == 0));
        check_row(rows[i].addr, m.why.code == rows[i].code);
        mo_loop_free(l);
    }
}

static void canceled_dial_still_answers_once(void **state)
{
    static const char *const addrs[] = {"127.0.0.1:1", "localhost:1",
                                        "unix:/nonexistent"};

    (void)state;
    for (size_t i = 0; i < MO_COUNT(addrs); i++) {
        struct mo_loop *l = loop_new();
        struct meet m = {.dialled = 0};
        struct mo_dial *d;
        struct mo_err e;

        assert_int_equal(mo_dial(l, addrs[i], 2000, on_dialled, &m, &d, &e), 0);
        mo_dial_cancel(d);
        assert_int_equal(m.dialled, 0);
        mo_loop_run(l);
        assert_int_equal(m.dialled, 1);
        assert_int_equal(m.why.code, MO_ECANCELED);
        mo_loop_free(l);
    }
}

static void listener_refuses_a_taken_port(void **state)
{
    struct mo_loop *l = loop_new();
    struct mo_listen_opts o = {.addr = "127.0.0.1:0"};
    struct mo_listener *ls, *two;
    char addr[32];
    struct mo_err e;
    struct meet m;

    (void)state;
    assert_int_equal(mo_listen(l, &o, on_accept, &m, &ls, &e), 0);
    (void)snprintf(addr, sizeof(addr), "127.0.0.1:%u", mo_listener_port(ls));
    o.addr = addr;
    assert_true(mo_listen(l, &o, on_accept, &m, &two, &e) < 0);
    assert_non_null(strstr(e.msg, "in use"));
    mo_listener_close(ls);
    mo_loop_free(l);
}

/* Descriptors that cannot be polled are refused and closed. */
static void files_are_no_streams(void **state)
{
    static const char *const paths[] = {"/dev/null", "/proc/self/exe"};
    struct mo_loop *l = loop_new();
    unsigned before = fds_open();

    (void)state;
    for (size_t i = 0; i < MO_COUNT(paths); i++) {
        int fd = open(paths[i], O_RDONLY | O_CLOEXEC);
        struct mo_stream *s = NULL;
        struct mo_err e;

        assert_true(fd >= 0);
        assert_int_equal(mo_stream_from_fds(l, fd, -1, &s, &e), MO_EINVAL);
        assert_null(s);
    }
    assert_int_equal(fds_open(), before);
    mo_loop_free(l);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(timers_fire_in_order),
        cmocka_unit_test(a_timer_may_stop_another),
        cmocka_unit_test(deferred_runs_once_and_later),
        cmocka_unit_test(soon_runs_before_the_loop_waits),
        cmocka_unit_test(bytes_cross_in_order),
        cmocka_unit_test(queue_is_capped_and_drains),
        cmocka_unit_test(leave_sends_the_queue_only),
        cmocka_unit_test(half_close_still_reads),
        cmocka_unit_test(peer_reset_is_reported_once),
        cmocka_unit_test(unsent_bytes_are_dropped_if_asked),
        cmocka_unit_test(pipe_pair_is_one_stream),
        cmocka_unit_test(tcp_and_unix_meet),
        cmocka_unit_test(dial_fails_with_a_reason),
        cmocka_unit_test(canceled_dial_still_answers_once),
        cmocka_unit_test(files_are_no_streams),
        cmocka_unit_test(listener_refuses_a_taken_port),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
