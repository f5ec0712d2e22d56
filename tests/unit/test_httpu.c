/* The client on our own streams, against a scripted daemon. */
#include <fcntl.h>

#include "loop/httpu.h"

#include "mo_peer.h"

static struct certs files;
static char sock[PATH_LEN];

/* A loop, a peer, a client; everything counted before and after. */
struct rig {
    struct mo_loop *l;
    struct peer p;
    struct mo_httpu *u;
    unsigned fds;
};

static void rig_on(struct rig *r, const char *addr, struct mo_httpu_opts o)
{
    struct mo_err e;

    r->fds = fds_open();
    r->l = loop_new();
    peer_open(&r->p, r->l, addr);
    o.addr = r->p.addr;
    r->u = mo_httpu_new(r->l, &o, &e);
    assert_non_null(r->u);
}

static void rig_up(struct rig *r, struct peer script)
{
    *r = (struct rig){.p = script};
    rig_on(r, sock, (struct mo_httpu_opts){.addr = NULL});
}

static void rig_down(struct rig *r)
{
    bool gone = false;

    mo_httpu_close(r->u, set_flag, &gone);
    assert_false(gone);
    wait_for(r->l, flag_set, &gone);
    peer_close(&r->p);
    mo_loop_run(r->l);
    mo_loop_free(r->l);
    assert_int_equal(fds_open(), r->fds);
}

static void begin(struct rig *r, struct seen *me, struct mo_http_call c)
{
    struct mo_httpu_x *x;
    struct mo_err e;

    if (!c.url)
        c.url = "/x";
    me->starting = true;
    if (mo_httpu_start(r->u, &c, &seen_cb, me, &x, &e) < 0)
        fail_msg("%s", e.msg);
    me->starting = false;
    me->x = x;
    me->data = r;
}

static void ask(struct rig *r, struct seen *me, struct mo_http_call c)
{
    begin(r, me, c);
    wait_for(r->l, seen_all, me);
    assert_int_equal(me->dones, 1);
}

#define OK2 "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi"

static void answers(void **state)
{
    static const struct {
        const char *name, *method, *reply;
        enum peer_then then;
        int rc, status;
        const char *body, *says;
    } rows[] = {
        {"length", "GET", OK2, STAY, 0, 200, "hi", NULL},
        {"no body", "POST", "HTTP/1.1 204 No Content\r\n\r\n", STAY, 0, 204, "",
         NULL},
        {"chunked", "GET",
         "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
         "3\r\nabc\r\n4\r\ndefg\r\n0\r\n\r\n",
         STAY, 0, 200, "abcdefg", NULL},
        {"until close", "GET", "HTTP/1.1 200 OK\r\n\r\nall of it", END, 0, 200,
         "all of it", NULL},
        {"HEAD", "HEAD", "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n", STAY,
         0, 200, "", NULL},
        {"redirect is an answer", "GET",
         "HTTP/1.1 302 Found\r\nLocation: /y\r\nContent-Length: 0\r\n\r\n",
         STAY, 0, 302, "", NULL},
        {"100 first", "POST",
         "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early\r\n\r\n" OK2, STAY, 0,
         200, "hi", NULL},
        {"100 before HEAD", "HEAD",
         "HTTP/1.1 100 Continue\r\n\r\n"
         "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n",
         STAY, 0, 200, "", NULL},
        {"bytes behind the answer", "GET", OK2 "HTTP/1.1 200 OK\r\n", STAY, 0,
         200, "hi", NULL},
        {"error status", "DELETE",
         "HTTP/1.1 500 Oops\r\nContent-Length: 4\r\n\r\noops", STAY, 0, 500,
         "oops", NULL},
        {"dies at once", "GET", "", END, MO_ECLOSED, 0, "",
         "closed without an answer"},
        {"dies in the head", "GET", "HTTP/1.1 200 OK\r\nContent-", END,
         MO_ECLOSED, 0, "", "middle"},
        {"dies in the body", "GET",
         "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhalf", END, MO_ECLOSED,
         200, "half", "middle"},
        {"dies in a chunk", "GET",
         "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n9\r\nhalf", END,
         MO_ECLOSED, 200, "half", "middle"},
        {"two lengths", "GET",
         "HTTP/1.1 200 OK\r\nContent-Length: 2\r\nContent-Length: 3\r\n\r\nhi",
         STAY, MO_EPROTO, 0, "", "answer of"},
        {"not HTTP", "GET", "220 mail.test ESMTP\r\n\r\n", STAY, MO_EPROTO, 0,
         "", "answer of"},
        {"bad chunk", "GET",
         "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n", STAY,
         MO_EPROTO, 200, "", "answer of"},
    };

    (void)state;
    for (size_t i = 0; i < MO_COUNT(rows); i++)
        for (int slice = 0; slice < 2; slice++) {
            struct rig r;
            struct seen me;

            rig_up(&r, (struct peer){.reply = mo_span_cstr(rows[i].reply),
                                     .piece = (size_t)slice,
                                     .then = rows[i].then});
            seen_init(&me);
            ask(&r, &me, (struct mo_http_call){.method = rows[i].method});
            check_row(rows[i].name, me.err.code == rows[i].rc);
            check_row(rows[i].name, me.status == rows[i].status);
            check_row(rows[i].name,
                      mo_span_is(mo_buf_view(&me.body), rows[i].body));
            check_row(rows[i].name,
                      !rows[i].says || strstr(me.err.msg, rows[i].says));
            mo_buf_fini(&me.body);
            rig_down(&r);
        }
}

static void the_request_is_what_was_asked(void **state)
{
    const struct mo_http_header h[] = {{MO_SPAN("X-One"), MO_SPAN("1")},
                                       {MO_SPAN("X-Two"), MO_SPAN("zwei")}};
    struct rig r;
    struct seen me;

    (void)state;
    rig_up(&r, (struct peer){.reply = MO_SPAN(OK2)});
    seen_init(&me);
    ask(&r, &me,
        (struct mo_http_call){.method = "POST",
                              .url = "/containers/create?name=x",
                              .headers = h,
                              .nheaders = 2,
                              .body = MO_SPAN("{}")});
    assert_string_equal(mo_buf_cstr(&r.p.last),
                        "POST /containers/create?name=x HTTP/1.1\r\n"
                        "Host: localhost\r\nX-One: 1\r\nX-Two: zwei\r\n"
                        "Content-Length: 2\r\n\r\n{}");
    mo_buf_fini(&me.body);
    rig_down(&r);
}

static void bad_requests_are_refused(void **state)
{
    static const struct {
        const char *name, *url;
        struct mo_http_header h;
    } rows[] = {
        {"newline in the target", "/a\r\nX: y", {MO_SPAN("A"), MO_SPAN("b")}},
        {"newline in a value", "/", {MO_SPAN("A"), MO_SPAN("b\r\nC: d")}},
        {"blank in a name", "/", {MO_SPAN("A B"), MO_SPAN("b")}},
        {"our framing", "/", {MO_SPAN("content-length"), MO_SPAN("7")}},
        {"our host", "/", {MO_SPAN("HOST"), MO_SPAN("x")}},
    };
    struct rig r;

    (void)state;
    rig_up(&r, (struct peer){.reply = MO_SPAN(OK2)});
    for (size_t i = 0; i < MO_COUNT(rows); i++) {
        struct mo_http_call c = {
            .url = rows[i].url, .headers = &rows[i].h, .nheaders = 1};
        struct mo_httpu_x *x;
        struct mo_err e = {.code = 0};

        check_row(rows[i].name,
                  mo_httpu_start(r.u, &c, &seen_cb, NULL, &x, &e) == MO_EINVAL);
        check_row(rows[i].name, e.code == MO_EINVAL);
    }
    rig_down(&r);
}

/* --- kept connections, and their loss ------------------------------------ */

static void one_connection_serves_many(void **state)
{
    struct rig r;

    (void)state;
    rig_up(&r, (struct peer){.reply = MO_SPAN(OK2)});
    for (int i = 0; i < 5; i++) {
        struct seen me;

        seen_init(&me);
        ask(&r, &me, (struct mo_http_call){.method = i % 2 ? "POST" : "GET"});
        assert_int_equal(me.err.code, 0);
        mo_buf_fini(&me.body);
    }
    assert_int_equal(r.p.requests, 5);
    assert_int_equal(r.p.accepted, 1);
    rig_down(&r);
}

static void a_stale_connection_is_replaced_once(void **state)
{
    static const struct {
        const char *method;
        int rc;
        unsigned accepted;
    } rows[] = {
        {"GET", 0, 2}, {"HEAD", 0, 2},          {"DELETE", 0, 2},
        {"PUT", 0, 2}, {"POST", MO_ECLOSED, 1}, {"PATCH", MO_ECLOSED, 1},
    };

    (void)state;
    for (size_t i = 0; i < MO_COUNT(rows); i++) {
        struct seen a, b;
        struct rig r;

        rig_up(&r, (struct peer){.reply = MO_SPAN(OK2), .good = 1});
        seen_init(&a);
        seen_init(&b);
        ask(&r, &a, (struct mo_http_call){.method = "GET"});
        ask(&r, &b, (struct mo_http_call){.method = rows[i].method});
        check_row(rows[i].method, b.err.code == rows[i].rc);
        check_row(rows[i].method, r.p.accepted == rows[i].accepted);
        mo_buf_fini(&a.body);
        mo_buf_fini(&b.body);
        rig_down(&r);
    }
}

static bool nothing(void *ctx)
{
    (void)ctx;
    return false;
}

static void a_connection_closed_while_idle_is_forgotten(void **state)
{
    struct rig r;

    (void)state;
    rig_up(&r, (struct peer){.reply = MO_SPAN(OK2), .then = END});
    for (int i = 0; i < 3; i++) {
        struct seen me;

        seen_init(&me);
        ask(&r, &me, (struct mo_http_call){.method = "POST"});
        assert_int_equal(me.err.code, 0);
        mo_buf_fini(&me.body);
        (void)mo_loop_until(r.l, nothing, NULL, 20);
    }
    assert_int_equal(r.p.accepted, 3);
    rig_down(&r);
}

static void kept_connections_are_let_go(void **state)
{
    struct rig r = {.p = {.reply = MO_SPAN(OK2)}};
    struct seen me[3];

    (void)state;
    rig_on(&r, sock, (struct mo_httpu_opts){.idle = 1, .keep_ms = 5});
    for (int i = 0; i < 3; i++) {
        seen_init(&me[i]);
        begin(&r, &me[i], (struct mo_http_call){.method = "GET"});
    }
    for (int i = 0; i < 3; i++) {
        wait_for(r.l, seen_all, &me[i]);
        mo_buf_fini(&me[i].body);
    }
    assert_int_equal(r.p.accepted, 3);
    (void)mo_loop_until(r.l, nothing, NULL, 50);
    assert_true(mo_list_empty(&r.p.conns));
    rig_down(&r);
}

/* --- limits -------------------------------------------------------------- */

static void the_queue_is_bounded(void **state)
{
    struct rig r = {.p = {.reply = MO_SPAN(OK2)}};
    struct mo_http_call c = {.url = "/x"};
    struct seen me[4];
    struct mo_httpu_x *x;
    struct mo_err e;

    (void)state;
    rig_on(&r, sock, (struct mo_httpu_opts){.conns = 1, .waiting = 3});
    for (int i = 0; i < 3; i++) {
        seen_init(&me[i]);
        begin(&r, &me[i], c);
    }
    assert_int_equal(mo_httpu_start(r.u, &c, &seen_cb, &me[3], &x, &e),
                     MO_EBUSY);
    for (int i = 0; i < 3; i++) {
        wait_for(r.l, seen_all, &me[i]);
        assert_int_equal(me[i].err.code, 0);
        mo_buf_fini(&me[i].body);
    }
    assert_int_equal(r.p.accepted, 1);
    rig_down(&r);
}

static void slow_and_big_end(void **state)
{
    static const struct {
        const char *name, *reply;
        struct mo_http_call c;
        int rc;
        const char *says;
    } rows[] = {
        {"never answers", "", {.total_ms = 20}, MO_ETIMEOUT, "did not answer"},
        {"silent", "", {.idle_ms = 20}, MO_ETIMEOUT, "sent nothing for 20 ms"},
        {"stops in the body",
         "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhalf",
         {.idle_ms = 20},
         MO_ETIMEOUT,
         "sent nothing for 20 ms"},
        {"too big",
         "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nninebytes",
         {.max_bytes = 8},
         MO_ETOOBIG,
         "larger than 8 bytes"},
        {"just fits",
         "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nninebytes",
         {.max_bytes = 9},
         0,
         ""},
    };

    (void)state;
    for (size_t i = 0; i < MO_COUNT(rows); i++) {
        struct rig r;
        struct seen me;

        rig_up(&r, (struct peer){.reply = mo_span_cstr(rows[i].reply)});
        seen_init(&me);
        ask(&r, &me, rows[i].c);
        check_row(rows[i].name, me.err.code == rows[i].rc);
        check_row(rows[i].name, strstr(me.err.msg, rows[i].says));
        mo_buf_fini(&me.body);
        rig_down(&r);
    }
}

static void nobody_listens(void **state)
{
    static const struct {
        const char *addr, *says;
    } rows[] = {
        {"unix:/nonexistent/x.sock", "cannot connect to unix:/nonexistent"},
        {"127.0.0.1:1", "cannot connect to 127.0.0.1:1"},
        {"nonsense", "nonsense"},
    };

    (void)state;
    for (size_t i = 0; i < MO_COUNT(rows); i++) {
        struct rig r = {.fds = fds_open()};
        struct mo_httpu_opts o = {.addr = rows[i].addr};
        bool gone = false;
        struct seen me;

        r.l = loop_new();
        r.u = mo_httpu_new(r.l, &o, NULL);
        seen_init(&me);
        ask(&r, &me, (struct mo_http_call){.method = "GET"});
        check_row(rows[i].addr, me.err.code < 0);
        check_row(rows[i].addr, strstr(me.err.msg, rows[i].says));
        mo_httpu_close(r.u, set_flag, &gone);
        wait_for(r.l, flag_set, &gone);
        mo_loop_run(r.l);
        mo_loop_free(r.l);
        mo_buf_fini(&me.body);
        assert_int_equal(fds_open(), r.fds);
    }
}

/* --- cancel, close ------------------------------------------------------- */

static void cancel_me(struct seen *me)
{
    mo_httpu_cancel(me->x);
    mo_httpu_cancel(me->x); /* twice is once */
}

static bool has_data(void *ctx)
{
    return ((struct seen *)ctx)->datas > 0;
}

static bool asked(void *ctx)
{
    return ((struct rig *)ctx)->p.requests > 0;
}

enum when { AT_ONCE, WHEN_ASKED, IN_HEAD, IN_DATA, AFTER_DATA, BY_CLOSE };

static void cancel_at_any_time(void **state)
{
    (void)state;
    for (enum when w = AT_ONCE; w <= BY_CLOSE; w++) {
        struct rig r;
        struct seen me;

        rig_up(&r,
               (struct peer){
                   .reply = MO_SPAN(
                       "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhalf")});
        seen_init(&me);
        me.at_head = w == IN_HEAD ? cancel_me : NULL;
        me.at_data = w == IN_DATA ? cancel_me : NULL;
        begin(&r, &me, (struct mo_http_call){.method = "GET"});
        if (w == WHEN_ASKED)
            wait_for(r.l, asked, &r);
        if (w >= AFTER_DATA)
            wait_for(r.l, has_data, &me);
        if (w == AT_ONCE || w == WHEN_ASKED || w == AFTER_DATA)
            cancel_me(&me);
        assert_int_equal(me.dones, 0);
        if (w != BY_CLOSE)
            wait_for(r.l, seen_all, &me);
        rig_down(&r);
        assert_int_equal(me.dones, 1);
        assert_int_equal(me.err.code, MO_ECANCELED);
        mo_buf_fini(&me.body);
    }
}

/* --- hijacked connections ------------------------------------------------ */

struct taken {
    struct seen seen;
    struct end end;
    int rc;
};

static void take_it(struct seen *me)
{
    struct taken *t = mo_container_of(me, struct taken, seen);
    struct mo_span early;
    struct mo_stream *s;
    struct mo_err e;

    t->rc = mo_httpu_hijack(me->x, &s, &early, &e);
    if (t->rc < 0)
        return;
    (void)mo_buf_span(&t->end.got, early);
    end_attach(&t->end, s);
}

static bool has_early(void *ctx)
{
    return ((struct end *)ctx)->got.len == 5;
}

static void hijack_and_half_close(void **state)
{
    static const struct {
        const char *name, *reply;
        int rc, done;
    } rows[] = {
        {"101",
         "HTTP/1.1 101 UPGRADED\r\nConnection: Upgrade\r\nUpgrade: tcp\r\n\r\n"
         "early",
         0, 0},
        {"200",
         "HTTP/1.1 200 OK\r\n"
         "Content-Type: application/vnd.docker.raw-stream\r\n\r\nearly",
         0, 0},
        {"200 with a length",
         "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nearly", MO_EINVAL, 0},
        {"404", "HTTP/1.1 404 Not Found\r\nContent-Length: 5\r\n\r\nearly",
         MO_EINVAL, 0},
    };
    const struct mo_http_header up[] = {
        {MO_SPAN("Connection"), MO_SPAN("Upgrade")},
        {MO_SPAN("Upgrade"), MO_SPAN("tcp")}};

    (void)state;
    for (size_t i = 0; i < MO_COUNT(rows); i++)
        for (int slice = 0; slice < 2; slice++) {
            struct taken t = {.rc = 0};
            struct rig r;

            rig_up(&r, (struct peer){.reply = mo_span_cstr(rows[i].reply),
                                     .raw = true,
                                     .piece = (size_t)slice});
            seen_init(&t.seen);
            end_init(&t.end);
            t.seen.at_head = take_it;
            ask(&r, &t.seen,
                (struct mo_http_call){
                    .method = "POST", .headers = up, .nheaders = 2});
            check_row(rows[i].name, t.rc == rows[i].rc);
            check_row(rows[i].name, t.seen.err.code == rows[i].done);
            check_row(rows[i].name, t.seen.datas == 0 || t.rc < 0);
            if (t.rc == 0) {
                wait_for(r.l, has_early, &t.end);
                (void)mo_stream_write(t.end.s, MO_SPAN("+echo+"));
                mo_stream_shutdown(t.end.s);
                wait_for(r.l, end_at_eof, &t.end);
                check_row(rows[i].name, mo_span_is(mo_buf_view(&t.end.got),
                                                   "early+echo+bye"));
                mo_stream_close(t.end.s, NULL);
            }
            mo_buf_fini(&t.seen.body);
            rig_down(&r);
            mo_buf_fini(&t.end.got);
        }
}

/* --- TLS, TCP ------------------------------------------------------------ */

static void over_tls(void **state)
{
    const struct {
        const char *name, *ca, *sni, *says;
        int rc;
    } rows[] = {
        {"trusted", files.cert, "localhost", "", 0},
        {"unknown", files.other_cert, "localhost", "certificate of localhost",
         MO_ETLS},
        {"other name", files.cert, "elsewhere.test", "hostname mismatch",
         MO_ETLS},
    };

    (void)state;
    for (size_t i = 0; i < MO_COUNT(rows); i++) {
        struct mo_tls_client_opts co = {.ca = rows[i].ca};
        struct rig r = {.p = {.reply = MO_SPAN(OK2)}};
        struct mo_httpu_opts o = {.sni = rows[i].sni};
        struct seen me;

        r.p.tls = mo_tls_server_new(files.cert, files.key, NULL);
        o.tls = mo_tls_client_new(&co, NULL);
        rig_on(&r, "127.0.0.1:0", o);
        for (int n = 0; n < 2; n++) {
            seen_init(&me);
            ask(&r, &me, (struct mo_http_call){.method = "GET"});
            check_row(rows[i].name, me.err.code == rows[i].rc);
            check_row(rows[i].name, strstr(me.err.msg, rows[i].says));
            mo_buf_fini(&me.body);
        }
        check_row(rows[i].name, r.p.requests == (rows[i].rc ? 0 : 2));
        rig_down(&r);
        mo_tls_free(r.p.tls);
        mo_tls_free(o.tls);
    }
}

/* --- our own server ------------------------------------------------------ */

static void upgrade_own(struct rig *r, struct end *server)
{
    const struct mo_http_header up[] = {
        {MO_SPAN("Connection"), MO_SPAN("Upgrade")},
        {MO_SPAN("Upgrade"), MO_SPAN("tcp")}};
    struct taken t = {.rc = MO_EINVAL};

    seen_init(&t.seen);
    end_init(&t.end);
    t.seen.at_head = take_it;
    ask(r, &t.seen,
        (struct mo_http_call){
            .method = "POST", .url = "/up", .headers = up, .nheaders = 2});
    assert_int_equal(t.seen.status, 101);
    assert_int_equal(t.rc, 0);
    (void)mo_stream_write(t.end.s, MO_SPAN("over"));
    mo_stream_shutdown(t.end.s);
    wait_for(r->l, end_at_eof, server);
    assert_string_equal(mo_buf_cstr(&server->got), "over");
    mo_stream_close(t.end.s, NULL);
    mo_stream_close(server->s, NULL);
    mo_loop_until(r->l, end_closed, &t.end, WAIT_MS);
    mo_buf_fini(&t.seen.body);
    mo_buf_fini(&t.end.got);
}

static void our_own_server_agrees(void **state)
{
    static const struct {
        struct mo_http_call c;
        int status;
        const char *body;
    } rows[] = {
        {{.method = "POST", .url = "/echo", .body = MO_SPAN("said")},
         200,
         "said"},
        {{.url = "/stream"}, 200, "data: x\n\ndata: x\n\ndata: x\n\n"},
        {{.method = "HEAD", .url = "/stream"}, 200, ""},
        {{.url = "/echo"}, 200, ""},
    };
    struct rig r = {.fds = fds_open()};
    struct mo_listen_opts lo = {.addr = sock};
    struct mo_httpu_opts o = {.addr = sock};
    struct end server;
    struct mo_httpd_opts ho = {.handler = own_handler, .ctx = &server};
    bool gone = false, down = false;
    struct mo_httpd *h;
    struct mo_err e;

    (void)state;
    r.l = loop_new();
    end_init(&server);
    h = mo_httpd_new(r.l, &ho, &e);
    assert_non_null(h);
    assert_int_equal(mo_httpd_listen(h, &lo, &e), 0);
    r.u = mo_httpu_new(r.l, &o, &e);
    for (size_t i = 0; i < MO_COUNT(rows); i++) {
        struct seen me;

        seen_init(&me);
        ask(&r, &me, rows[i].c);
        check_row(rows[i].c.url, me.err.code == 0);
        check_row(rows[i].c.url, me.status == rows[i].status);
        check_row(rows[i].c.url,
                  mo_span_is(mo_buf_view(&me.body), rows[i].body));
        mo_buf_fini(&me.body);
    }
    assert_int_equal(mo_httpd_stats(h).accepted, 1);
    upgrade_own(&r, &server);
    mo_httpu_close(r.u, set_flag, &gone);
    wait_for(r.l, flag_set, &gone);
    mo_httpd_close(h, 0, set_flag, &down);
    wait_for(r.l, flag_set, &down);
    mo_loop_run(r.l);
    mo_loop_free(r.l);
    mo_buf_fini(&server.got);
    assert_int_equal(fds_open(), r.fds);
}

/* --- no memory: the peer lives in this process and suffers too, so an answer
 * may never come; every request must end all the same --- */

static void one_exchange(void *ctx)
{
    struct rig *r = ctx;
    struct mo_httpu_opts o = {.addr = r->p.addr, .sni = "x", .conns = 1};
    struct mo_http_call c = {
        .url = "/x", .body = MO_SPAN("body"), .total_ms = 50};
    struct mo_httpu *u = mo_httpu_new(r->l, &o, NULL);
    struct seen me[2];
    bool gone = false;
    int begun = 0;

    for (int i = 0; i < 2; i++)
        seen_init(&me[i]);
    if (!u)
        return;
    for (int i = 0; i < 2; i++) {
        struct mo_httpu_x *x;

        if (mo_httpu_start(u, &c, &seen_cb, &me[begun], &x, NULL) == 0)
            begun++;
    }
    for (int i = 0; i < begun; i++)
        wait_for(r->l, seen_all, &me[i]);
    mo_httpu_close(u, set_flag, &gone);
    wait_for(r->l, flag_set, &gone);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(me[i].dones, i < begun);
        mo_buf_fini(&me[i].body);
    }
}

static void no_memory_is_survived(void **state)
{
    struct rig r;

    (void)state;
    rig_up(&r, (struct peer){.reply = MO_SPAN(OK2)});
    torture(one_exchange, &r);
    rig_down(&r);
}

static int make_files(void **state)
{
    (void)state;
    certs_make(&files);
    (void)snprintf(sock, sizeof(sock), "unix:%.40s/s", files.dir);
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
        cmocka_unit_test(answers),
        cmocka_unit_test(the_request_is_what_was_asked),
        cmocka_unit_test(bad_requests_are_refused),
        cmocka_unit_test(one_connection_serves_many),
        cmocka_unit_test(a_stale_connection_is_replaced_once),
        cmocka_unit_test(a_connection_closed_while_idle_is_forgotten),
        cmocka_unit_test(kept_connections_are_let_go),
        cmocka_unit_test(the_queue_is_bounded),
        cmocka_unit_test(slow_and_big_end),
        cmocka_unit_test(nobody_listens),
        cmocka_unit_test(cancel_at_any_time),
        cmocka_unit_test(hijack_and_half_close),
        cmocka_unit_test(over_tls),
        cmocka_unit_test(our_own_server_agrees),
        cmocka_unit_test(no_memory_is_survived),
    };

    return cmocka_run_group_tests(tests, make_files, drop_files);
}
