/* The libcurl client, against a scripted peer. */
#include <fcntl.h>

#include "loop/httpc.h"

#include "loop/dso.h"
#include "mo_peer.h"

static struct certs files;

struct rig {
    struct mo_loop *l;
    struct peer p;
    struct mo_httpc *c;
    unsigned fds;
    char url[PATH_LEN + 32];
};

static void rig_on(struct rig *r, struct mo_httpc_opts o)
{
    struct mo_err e;

    r->fds = fds_open();
    r->l = loop_new();
    peer_open(&r->p, r->l, "127.0.0.1:0");
    (void)snprintf(r->url, sizeof(r->url), "http%s://%s/x?key=TOPSECRET",
                   r->p.tls ? "s" : "", r->p.addr);
    r->c = mo_httpc_new(r->l, &o, &e);
    assert_non_null(r->c);
}

static void rig_up(struct rig *r, struct peer script)
{
    *r = (struct rig){.p = script};
    rig_on(r, (struct mo_httpc_opts){.active = 0});
}

static void rig_down(struct rig *r)
{
    bool gone = false;

    mo_httpc_close(r->c, set_flag, &gone);
    assert_false(gone);
    wait_for(r->l, flag_set, &gone);
    peer_close(&r->p);
    mo_loop_run(r->l);
    mo_loop_free(r->l);
    assert_int_equal(fds_open(), r->fds);
}

static void begin(struct rig *r, struct seen *me, struct mo_http_call c)
{
    struct mo_httpc_x *x;
    struct mo_err e;

    if (!c.url)
        c.url = r->url;
    me->starting = true;
    if (mo_httpc_start(r->c, &c, &seen_cb, me, &x, &e) < 0)
        fail_msg("%s", e.msg);
    me->starting = false;
    me->x = x;
}

static void ask(struct rig *r, struct seen *me, struct mo_http_call c)
{
    begin(r, me, c);
    wait_for(r->l, seen_all, me);
    assert_int_equal(me->dones, 1);
    assert_null(strstr(me->err.msg, "TOPSECRET"));
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
        {"chunked, with a trailer", "GET",
         "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
         "3\r\nabc\r\n4\r\ndefg\r\n0\r\nX-Late: 1\r\n\r\n",
         STAY, 0, 200, "abcdefg", NULL},
        {"until close", "GET", "HTTP/1.1 200 OK\r\n\r\nall of it", END, 0, 200,
         "all of it", NULL},
        {"HEAD", "HEAD", "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n", STAY,
         0, 200, "", NULL},
        {"a redirect is an answer", "GET",
         "HTTP/1.1 302 Found\r\nLocation: /y\r\nContent-Length: 0\r\n\r\n",
         STAY, 0, 302, "", NULL},
        {"100 first", "POST", "HTTP/1.1 100 Continue\r\n\r\n" OK2, STAY, 0, 200,
         "hi", NULL},
        {"401 asks in vain", "GET",
         "HTTP/1.1 401 No\r\nWWW-Authenticate: Basic realm=x\r\n"
         "Content-Length: 2\r\n\r\nno",
         STAY, 0, 401, "no", NULL},
        {"dies at once", "GET", "", END, MO_ECLOSED, 0, "",
         "closed without an answer"},
        {"dies in the body", "GET",
         "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhalf", END, MO_ECLOSED,
         200, "half", "middle of its answer"},
        {"dies in a chunk", "GET",
         "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n9\r\nhalf", END,
         MO_ECLOSED, 200, "half", NULL},
        {"not HTTP", "GET", "220 mail.test ESMTP ready and waiting\r\n", END,
         MO_EPROTO, 0, "", "does not speak HTTP"},
    };

    (void)state;
    for (size_t i = 0; i < MO_COUNT(rows); i++)
        for (size_t piece = 0; piece < 2; piece++) {
            struct rig r;
            struct seen me;

            rig_up(&r, (struct peer){.reply = mo_span_cstr(rows[i].reply),
                                     .piece = piece,
                                     .then = rows[i].then});
            seen_init(&me);
            ask(&r, &me, (struct mo_http_call){.method = rows[i].method});
            check_row(rows[i].name, me.err.code == rows[i].rc);
            check_row(rows[i].name, me.status == rows[i].status);
            check_row(rows[i].name,
                      mo_span_is(mo_buf_view(&me.body), rows[i].body));
            check_row(rows[i].name,
                      !rows[i].says || strstr(me.err.msg, rows[i].says));
            check_row(rows[i].name, r.p.requests == 1);
            mo_buf_fini(&me.body);
            rig_down(&r);
        }
}

static bool has(const struct mo_buf *b, const char *what)
{
    return mo_span_search(mo_buf_view(b), mo_span_cstr(what)) >= 0;
}

static void the_request_is_what_was_asked(void **state)
{
    static const struct {
        const char *method, *line;
        struct mo_span body;
    } rows[] = {
        {NULL, "GET /x?key=TOPSECRET HTTP/1.1\r\n", {NULL, 0}},
        {"POST", "POST /x?key=TOPSECRET HTTP/1.1\r\n", MO_SPAN("{\"a\":\0}")},
        {"POST", "Content-Length: 0\r\n", {NULL, 0}},
        {"PUT", "PUT /x", MO_SPAN("abc")},
        {"DELETE", "DELETE /x", {NULL, 0}},
        {"PATCH", "Content-Length: 0\r\n", MO_SPAN("")},
    };
    const struct mo_http_header h[] = {{MO_SPAN("x-api-key"), MO_SPAN("sk-1")},
                                       {MO_SPAN("X-Empty"), MO_SPAN("")},
                                       {MO_SPAN("X-Two"), MO_SPAN("a: b; c")}};

    (void)state;
    for (size_t i = 0; i < MO_COUNT(rows); i++) {
        struct rig r;
        struct seen me;

        rig_up(&r, (struct peer){.reply = MO_SPAN(OK2)});
        seen_init(&me);
        ask(&r, &me,
            (struct mo_http_call){.method = rows[i].method,
                                  .headers = h,
                                  .nheaders = MO_COUNT(h),
                                  .body = rows[i].body});
        assert_int_equal(me.err.code, 0);
        assert_true(has(&r.p.last, rows[i].line));
        assert_true(has(&r.p.last, "\r\nx-api-key: sk-1\r\n"));
        assert_true(has(&r.p.last, "\r\nX-Empty:\r\n"));
        assert_true(has(&r.p.last, "\r\nX-Two: a: b; c\r\n"));
        assert_true(has(&r.p.last, "User-Agent: mcp-orchestrator/"));
        assert_false(has(&r.p.last, "Content-Type"));
        assert_false(has(&r.p.last, "Expect"));
        assert_false(has(&r.p.last, "Cookie"));
        assert_true(mo_span_ends(mo_buf_view(&r.p.last), MO_SPAN("\r\n\r\n")) ||
                    mo_span_ends(mo_buf_view(&r.p.last), rows[i].body));
        mo_buf_fini(&me.body);
        rig_down(&r);
    }
}

static void bad_requests_are_refused(void **state)
{
    static const struct {
        const char *name;
        struct mo_http_call c;
        struct mo_http_header h;
    } rows[] = {
        {"file", {.url = "file:///etc/passwd"}, {MO_SPAN("A"), MO_SPAN("b")}},
        {"ftp", {.url = "ftp://x.test/"}, {MO_SPAN("A"), MO_SPAN("b")}},
        {"no scheme", {.url = "x.test/y"}, {MO_SPAN("A"), MO_SPAN("b")}},
        {"empty", {.url = ""}, {MO_SPAN("A"), MO_SPAN("b")}},
        {"method",
         {.url = "http://x.test/", .method = "GET /evil HTTP/1.1\r\nX:"},
         {MO_SPAN("A"), MO_SPAN("b")}},
        {"newline in a value",
         {.url = "http://x.test/"},
         {MO_SPAN("A"), MO_SPAN("b\r\nC: d")}},
        {"NUL in a value",
         {.url = "http://x.test/"},
         {MO_SPAN("A"), MO_SPAN("b\0c")}},
        {"blank in a name",
         {.url = "http://x.test/"},
         {MO_SPAN("A B"), MO_SPAN("b")}},
    };
    struct rig r;

    (void)state;
    rig_up(&r, (struct peer){.reply = MO_SPAN(OK2)});
    for (size_t i = 0; i < MO_COUNT(rows); i++) {
        struct mo_http_call c = rows[i].c;
        struct mo_err e = {.code = 0};
        struct mo_httpc_x *x;

        c.headers = &rows[i].h;
        c.nheaders = 1;
        check_row(rows[i].name,
                  mo_httpc_start(r.c, &c, &seen_cb, NULL, &x, &e) == MO_EINVAL);
        check_row(rows[i].name, e.code == MO_EINVAL);
    }
    rig_down(&r);
}

/* --- streaming ----------------------------------------------------------- */

/* One event per loop iteration is one callback: nothing is held back. */
static void events_come_one_by_one(void **state)
{
    enum { EVENTS = 100 };
    static const char head[] = "HTTP/1.1 200 OK\r\n"
                               "Content-Type: text/event-stream\r\n\r\n";
    const size_t len = sizeof(head) - 1;

    (void)state;
    for (int tls = 0; tls < 2; tls++) {
        struct rig r = {.p = {.piece = len, .then = END}};
        struct mo_buf reply;
        struct seen me;

        mo_buf_init(&reply, GOT_MAX);
        (void)mo_buf_puts(&reply, head);
        for (int i = 0; i < EVENTS; i++)
            (void)mo_buf_printf(&reply, "data: %*d\n\n", (int)len - 8, i);
        r.p.reply = mo_buf_view(&reply);
        if (tls)
            r.p.tls = mo_tls_server_new(files.cert, files.key, NULL);
        rig_on(&r, (struct mo_httpc_opts){.ca = files.cert});
        seen_init(&me);
        ask(&r, &me, (struct mo_http_call){.method = "POST"});
        assert_int_equal(me.err.code, 0);
        assert_string_equal(me.type, "text/event-stream");
        assert_int_equal(me.body.len, EVENTS * len);
        assert_int_equal(me.datas, EVENTS);
        rig_down(&r);
        mo_tls_free(r.p.tls);
        mo_buf_fini(&me.body);
        mo_buf_fini(&reply);
    }
}

static bool has_data(void *ctx)
{
    return ((struct seen *)ctx)->datas > 0;
}

static bool nothing(void *ctx)
{
    (void)ctx;
    return false;
}

static void pause_me(struct seen *me)
{
    mo_httpc_pause(me->x);
}

static void a_paused_answer_waits(void **state)
{
    enum { N = 300000 };
    struct mo_buf reply;
    struct seen me;
    struct rig r;

    (void)state;
    mo_buf_init(&reply, GOT_MAX);
    (void)mo_buf_printf(&reply, "HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n",
                        N);
    for (int i = 0; i < N; i++)
        (void)mo_buf_putc(&reply, (char)('a' + i % 26));
    rig_up(&r, (struct peer){.reply = mo_buf_view(&reply)});
    seen_init(&me);
    me.at_head = pause_me;
    me.at_data = pause_me;
    begin(&r, &me, (struct mo_http_call){.idle_ms = 40});
    (void)mo_loop_until(r.l, has_data, &me, 100); /* idle_ms is off */
    assert_int_equal(me.heads, 1);
    assert_int_equal(me.datas, 0);
    while (!me.dones) {
        me.datas = 0;
        mo_httpc_resume(me.x);
        assert_int_equal(me.datas, 0);
        if (me.body.len < N)
            wait_for(r.l, has_data, &me);
        else
            wait_for(r.l, seen_all, &me);
        (void)mo_loop_until(r.l, nothing, NULL, 0);
        assert_true(me.datas <= 1);
    }
    assert_int_equal(me.err.code, 0);
    assert_int_equal(me.body.len, N);
    for (int i = 0; i < N; i++)
        assert_int_equal(me.body.p[i], 'a' + i % 26);
    mo_buf_fini(&me.body);
    mo_buf_fini(&reply);
    rig_down(&r);
}

static void compressed_bodies_are_unpacked(void **state)
{
    static const char gz[] = {31, -117, 8,  0,    0,   0,  0,  0,  2,  3,  43,
                              46, 44,   77, 77,   -83, 74, 77, 81, 40, 70, 103,
                              0,  0,    70, -113, -40, 26, 26, 0,  0,  0};
    struct rig r = {.p = {.then = END}};
    struct mo_buf reply;
    struct seen me;

    (void)state;
    mo_buf_init(&reply, GOT_MAX);
    (void)mo_buf_puts(&reply,
                      "HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\n\r\n");
    (void)mo_buf_put(&reply, gz, sizeof(gz));
    r.p.reply = mo_buf_view(&reply);
    rig_on(&r, (struct mo_httpc_opts){.gzip = true});
    seen_init(&me);
    ask(&r, &me, (struct mo_http_call){.method = "GET"});
    assert_int_equal(me.err.code, 0);
    assert_string_equal(mo_buf_cstr(&me.body), "squeezed squeezed squeezed");
    assert_true(has(&r.p.last, "Accept-Encoding: gzip"));
    mo_buf_fini(&me.body);
    /* The limit counts unpacked bytes. */
    seen_init(&me);
    ask(&r, &me, (struct mo_http_call){.max_bytes = 25});
    assert_int_equal(me.err.code, MO_ETOOBIG);
    mo_buf_fini(&me.body);
    rig_down(&r);
    mo_buf_fini(&reply);
}

/* --- limits -------------------------------------------------------------- */

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
         "too big"},
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
        check_row(rows[i].name, !rows[i].rc || strstr(me.err.msg, "127.0.0.1"));
        mo_buf_fini(&me.body);
        rig_down(&r);
    }
}

static void a_head_without_end_is_refused(void **state)
{
    static const struct {
        const char *name;
        int times, width;
    } rows[] = {{"too many", 65, 1}, {"too big", 1200, 100}};
    char pad[100];

    (void)state;
    memset(pad, 'p', sizeof(pad));
    for (size_t i = 0; i < MO_COUNT(rows); i++) {
        struct mo_buf reply;
        struct seen me;
        struct rig r;

        mo_buf_init(&reply, GOT_MAX);
        (void)mo_buf_puts(&reply, "HTTP/1.1 200 OK\r\n");
        for (int n = 0; n < rows[i].times; n++)
            (void)mo_buf_printf(&reply, "X-%d: %.*s\r\n", n, rows[i].width,
                                pad);
        (void)mo_buf_puts(&reply, "Content-Length: 0\r\n\r\n");
        rig_up(&r, (struct peer){.reply = mo_buf_view(&reply)});
        seen_init(&me);
        ask(&r, &me, (struct mo_http_call){.method = "GET"});
        check_row(rows[i].name, me.err.code == MO_ETOOBIG);
        check_row(rows[i].name, me.heads == 0);
        mo_buf_fini(&me.body);
        mo_buf_fini(&reply);
        rig_down(&r);
    }
}

static void the_queue_is_bounded(void **state)
{
    struct rig r = {.p = {.reply = MO_SPAN(OK2)}};
    struct mo_http_call c = {.url = NULL};
    struct seen me[4];
    struct mo_httpc_x *x;
    struct mo_err e;

    (void)state;
    rig_on(&r, (struct mo_httpc_opts){.active = 1, .waiting = 3});
    for (int i = 0; i < 3; i++) {
        seen_init(&me[i]);
        begin(&r, &me[i], c);
    }
    c.url = r.url;
    assert_int_equal(mo_httpc_start(r.c, &c, &seen_cb, &me[3], &x, &e),
                     MO_EBUSY);
    for (int i = 0; i < 3; i++) {
        wait_for(r.l, seen_all, &me[i]);
        assert_int_equal(me[i].err.code, 0);
        mo_buf_fini(&me[i].body);
    }
    assert_int_equal(r.p.accepted, 1); /* and the connection was kept */
    rig_down(&r);
}

/* --- network failures ---------------------------------------------------- */

static void failures_say_what_to_do(void **state)
{
    static const struct {
        const char *name, *url, *says;
        int rc;
    } rows[] = {
        {"refused", "http://user:TOPSECRET@127.0.0.1:1/TOPSECRET?TOPSECRET",
         "cannot connect to http://127.0.0.1:1: Connection refused",
         MO_EUNAVAIL},
        {"unknown name", "https://no-such-host.invalid/",
         "cannot connect to https://no-such-host.invalid: the name is unknown",
         MO_EUNAVAIL},
        {"not a URL", "http://[::::/", "not a URL", MO_EINVAL},
    };

    (void)state;
    for (size_t i = 0; i < MO_COUNT(rows); i++) {
        struct seen me;
        struct rig r;

        rig_up(&r, (struct peer){.reply = MO_SPAN(OK2)});
        seen_init(&me);
        ask(&r, &me, (struct mo_http_call){.url = rows[i].url});
        check_row(rows[i].name, me.err.code == rows[i].rc);
        check_row(rows[i].name, strstr(me.err.msg, rows[i].says));
        mo_buf_fini(&me.body);
        rig_down(&r);
    }
}

static void tls_is_verified(void **state)
{
    const struct {
        const char *name, *cert, *key, *ca, *says;
        int rc;
    } rows[] = {
        {"trusted", files.cert, files.key, files.cert, "", 0},
        {"unknown issuer", files.cert, files.key, files.other_cert,
         "certificate of https://127.0.0.1", MO_ETLS},
        {"system's authorities", files.cert, files.key, NULL,
         "certificate of https://127.0.0.1", MO_ETLS},
        {"another name", files.other_cert, files.other_key, files.other_cert,
         "certificate of https://127.0.0.1", MO_ETLS},
        {"no such file", files.cert, files.key, files.none, "none.pem",
         MO_ETLS},
    };

    (void)state;
    for (size_t i = 0; i < MO_COUNT(rows); i++) {
        struct rig r = {.p = {.reply = MO_SPAN(OK2)}};

        r.p.tls = mo_tls_server_new(rows[i].cert, rows[i].key, NULL);
        rig_on(&r, (struct mo_httpc_opts){.ca = rows[i].ca});
        for (int n = 0; n < 2; n++) {
            struct seen me;

            seen_init(&me);
            ask(&r, &me, (struct mo_http_call){.method = "GET"});
            check_row(rows[i].name, me.err.code == rows[i].rc);
            check_row(rows[i].name, strstr(me.err.msg, rows[i].says));
            mo_buf_fini(&me.body);
        }
        check_row(rows[i].name, r.p.requests == (rows[i].rc ? 0 : 2));
        rig_down(&r);
        mo_tls_free(r.p.tls);
    }
}

static void wrong_kind_of_port(void **state)
{
    static const struct {
        const char *name, *scheme;
        bool tls;
        int rc;
    } rows[] = {
        {"https to a plain port", "https", false, MO_ETLS},
        {"http to a TLS port", "http", true, MO_ECLOSED},
    };

    (void)state;
    for (size_t i = 0; i < MO_COUNT(rows); i++) {
        struct rig r = {.p = {.greeting = MO_SPAN(OK2), .then = END}};
        struct seen me;

        if (rows[i].tls)
            r.p.tls = mo_tls_server_new(files.cert, files.key, NULL);
        rig_on(&r, (struct mo_httpc_opts){.ca = files.cert});
        (void)snprintf(r.url, sizeof(r.url), "%s://%s/", rows[i].scheme,
                       r.p.addr);
        seen_init(&me);
        ask(&r, &me, (struct mo_http_call){.method = "GET"});
        check_row(rows[i].name, me.err.code == rows[i].rc);
        check_row(rows[i].name, me.heads == 0);
        mo_buf_fini(&me.body);
        rig_down(&r);
        mo_tls_free(r.p.tls);
    }
}

static void proxies_come_from_the_environment(void **state)
{
    char proxy[PATH_LEN + 16];
    struct seen me;
    struct rig r;

    (void)state;
    rig_up(&r, (struct peer){.reply = MO_SPAN(OK2)});
    (void)snprintf(proxy, sizeof(proxy), "http://%s", r.p.addr);
    assert_int_equal(setenv("http_proxy", proxy, 1), 0);
    seen_init(&me);
    ask(&r, &me, (struct mo_http_call){.url = "http://nowhere.invalid/a"});
    assert_int_equal(unsetenv("http_proxy"), 0);
    assert_int_equal(me.err.code, 0);
    assert_true(has(&r.p.last, "GET http://nowhere.invalid/a HTTP/1.1\r\n"));
    mo_buf_fini(&me.body);
    rig_down(&r);
}

/* The address counts, not how it is written. Each request is made twice,
 * because a kept connection must not help either. */
static void private_addresses(void **state)
{
    static const char *const hosts[] = {"127.0.0.1", "localhost", "127.1",
                                        "2130706433", "0x7f.0.0.1"};

    (void)state;
    for (size_t i = 0; i < MO_COUNT(hosts); i++) {
        struct seen me;
        char url[PATH_LEN + 32];
        struct rig r;

        rig_up(&r, (struct peer){.reply = MO_SPAN(OK2)});
        (void)snprintf(url, sizeof(url), "http://%s%s/", hosts[i],
                       strchr(r.p.addr, ':'));
        for (unsigned round = 0; round < 3; round++) {
            bool open = round == 1;

            seen_init(&me);
            ask(&r, &me,
                (struct mo_http_call){.url = url, .public_only = !open});
            check_row(hosts[i], me.err.code == (open ? 0 : MO_EPOLICY));
            check_row(hosts[i],
                      open || strstr(me.err.msg, "at a private address"));
            check_row(hosts[i], r.p.accepted == (round > 0));
            mo_buf_fini(&me.body);
        }
        rig_down(&r);
    }
}

/* A proxy in our network is allowed; the proxy decides where it connects. */
static void a_proxy_may_be_private(void **state)
{
    char proxy[PATH_LEN + 16];
    struct seen me;
    struct rig r;

    (void)state;
    rig_up(&r, (struct peer){.reply = MO_SPAN(OK2)});
    (void)snprintf(proxy, sizeof(proxy), "http://%s", r.p.addr);
    assert_int_equal(setenv("http_proxy", proxy, 1), 0);
    seen_init(&me);
    ask(&r, &me,
        (struct mo_http_call){.url = "http://nowhere.invalid/a",
                              .public_only = true});
    assert_int_equal(unsetenv("http_proxy"), 0);
    assert_int_equal(me.err.code, 0);
    mo_buf_fini(&me.body);
    rig_down(&r);
}

/* Sets the proxy variables for one request that wants public addresses only. */
static void ask_by(struct rig *r, struct seen *me, const char *proxy,
                   const char *no_proxy, const char *url)
{
    assert_int_equal(setenv("http_proxy", proxy, 1), 0);
    assert_int_equal(setenv("no_proxy", no_proxy, 1), 0);
    seen_init(me);
    ask(r, me, (struct mo_http_call){.url = url, .public_only = true});
    assert_int_equal(unsetenv("http_proxy"), 0);
    assert_int_equal(unsetenv("no_proxy"), 0);
    mo_buf_fini(&me->body);
}

/* A host of NO_PROXY is reached directly: its address is checked. */
static void no_proxy_is_direct(void **state)
{
    static const struct {
        const char *no_proxy, *host;
        bool direct;
    } rows[] = {
        {"localhost", "localhost", true},
        {"a.example, localhost", "LOCALHOST", true},
        {"*", "127.0.0.1", true},
        {"127.0.0.0/8", "127.1", true},
        {"127.0.0.1", "2130706433", true},
        {"127.0.0.1", "nowhere.invalid", false},
        {"invalid", "nowhere.invalid", true},
        {".invalid", "nowhere.invalid", true},
        {"here.invalid", "nowhere.invalid", false},
        {"0.0.0.0/33,::/0", "9.9.9.9", false},
    };
    char proxy[PATH_LEN + 16], url[PATH_LEN + 64];

    (void)state;
    for (size_t i = 0; i < MO_COUNT(rows); i++) {
        bool name = strstr(rows[i].host, "invalid") != NULL;
        struct seen me;
        struct rig r;
        int want = rows[i].direct ? name ? MO_EUNAVAIL : MO_EPOLICY : 0;

        rig_up(&r, (struct peer){.reply = MO_SPAN(OK2)});
        (void)snprintf(proxy, sizeof(proxy), "http://%s", r.p.addr);
        (void)snprintf(url, sizeof(url), "http://%s%s/", rows[i].host,
                       strchr(r.p.addr, ':'));
        ask_by(&r, &me, proxy, rows[i].no_proxy, url);
        check_row(rows[i].no_proxy, me.err.code == want);
        check_row(rows[i].no_proxy, r.p.accepted == !rows[i].direct);
        rig_down(&r);
    }
}

/* The proxy is not even asked for an address that is plainly private. */
static void private_addresses_by_proxy(void **state)
{
    static const char *const hosts[] = {
        "127.0.0.1",         "127.1",           "0x7f.0.0.1",   "2130706433",
        "10.0.0.1",          "localhost",       "a.localhost.", "[::1]",
        "[::ffff:10.0.0.1]", "169.254.169.254",
    };
    char proxy[PATH_LEN + 16], url[128];

    (void)state;
    for (size_t i = 0; i < MO_COUNT(hosts); i++) {
        struct seen me;
        struct rig r;

        rig_up(&r, (struct peer){.reply = MO_SPAN(OK2)});
        (void)snprintf(proxy, sizeof(proxy), "http://%s", r.p.addr);
        (void)snprintf(url, sizeof(url), "http://%s/", hosts[i]);
        ask_by(&r, &me, proxy, "", url);
        check_row(hosts[i], me.err.code == MO_EPOLICY);
        check_row(hosts[i], strstr(me.err.msg, "at a private address"));
        check_row(hosts[i], r.p.accepted == 0);
        rig_down(&r);
    }
}

/* --- cancel -------------------------------------------------------------- */

static void cancel_me(struct seen *me)
{
    mo_httpc_cancel(me->x);
    mo_httpc_cancel(me->x);
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

/* Start a request from inside every callback: libcurl forbids it, so the client
 * defers. */
struct chain {
    struct seen seen[4];
    struct rig *r;
    int begun;
};

static void begin_next(struct seen *me)
{
    struct chain *ch = me->data;

    if (ch->begun == 4)
        return;
    seen_init(&ch->seen[ch->begun]);
    ch->seen[ch->begun].data = ch;
    ch->seen[ch->begun].at_head = begin_next;
    ch->seen[ch->begun].at_data = begin_next;
    begin(ch->r, &ch->seen[ch->begun], (struct mo_http_call){.method = "GET"});
    ch->begun++;
}

static bool chain_done(void *ctx)
{
    struct chain *ch = ctx;
    int n = 0;

    for (int i = 0; i < ch->begun; i++)
        n += ch->seen[i].dones;
    return n == 4;
}

static void one_request_starts_another(void **state)
{
    struct chain ch = {.begun = 0};
    struct seen root = {.data = &ch};
    struct rig r;

    (void)state;
    rig_up(&r, (struct peer){.reply = MO_SPAN(OK2)});
    ch.r = &r;
    begin_next(&root);
    wait_for(r.l, chain_done, &ch);
    for (int i = 0; i < 4; i++) {
        assert_int_equal(ch.seen[i].err.code, 0);
        mo_buf_fini(&ch.seen[i].body);
    }
    rig_down(&r);
}

/* --- our own server, plain and TLS --------------------------------------- */

static void ask_own(struct rig *r)
{
    static const struct {
        struct mo_http_call c;
        const char *path;
        int status;
        const char *body;
    } rows[] = {
        {{.method = "POST", .body = MO_SPAN("said")}, "/echo", 200, "said"},
        {{.method = "GET"},
         "/stream",
         200,
         "data: x\n\ndata: x\n\ndata: x\n\n"},
        {{.method = "HEAD"}, "/stream", 200, ""},
    };

    for (size_t i = 0; i < MO_COUNT(rows); i++) {
        struct mo_http_call c = rows[i].c;
        char url[2 * PATH_LEN];
        struct seen me;

        (void)snprintf(url, sizeof(url), "%s%s", r->url, rows[i].path);
        c.url = url;
        seen_init(&me);
        ask(r, &me, c);
        check_row(rows[i].path, me.err.code == 0);
        check_row(rows[i].path, me.status == rows[i].status);
        check_row(rows[i].path,
                  mo_span_is(mo_buf_view(&me.body), rows[i].body));
        mo_buf_fini(&me.body);
    }
}

static void our_own_server_agrees(void **state)
{
    (void)state;
    for (int tls = 0; tls < 2; tls++) {
        struct rig r = {.fds = fds_open()};
        struct mo_listen_opts lo = {.addr = "127.0.0.1:0"};
        struct mo_httpc_opts o = {.ca = files.cert};
        struct mo_httpd_opts ho = {.handler = own_handler};
        bool gone = false, down = false;
        struct mo_httpd *h;
        struct mo_err e;

        r.l = loop_new();
        if (tls)
            ho.tls = mo_tls_server_new(files.cert, files.key, &e);
        h = mo_httpd_new(r.l, &ho, &e);
        assert_non_null(h);
        assert_int_equal(mo_httpd_listen(h, &lo, &e), 0);
        (void)snprintf(r.url, sizeof(r.url), "http%s://127.0.0.1:%u",
                       tls ? "s" : "", mo_httpd_port(h));
        r.c = mo_httpc_new(r.l, &o, &e);
        ask_own(&r);
        assert_int_equal(mo_httpd_stats(h).accepted, 1);
        mo_httpc_close(r.c, set_flag, &gone);
        wait_for(r.l, flag_set, &gone);
        mo_httpd_close(h, 0, set_flag, &down);
        wait_for(r.l, flag_set, &down);
        mo_tls_free(ho.tls);
        mo_loop_run(r.l);
        mo_loop_free(r.l);
        assert_int_equal(fds_open(), r.fds);
    }
}

/* --- no memory, no library ----------------------------------------------- */

static void one_exchange(void *ctx)
{
    struct rig *r = ctx;
    struct mo_httpc_opts o = {.ca = files.cert};
    const struct mo_http_header h = {MO_SPAN("A"), MO_SPAN("b")};
    struct mo_http_call c = {.url = r->url,
                             .headers = &h,
                             .nheaders = 1,
                             .body = MO_SPAN("body"),
                             .total_ms = 50};
    struct mo_httpc *cl = mo_httpc_new(r->l, &o, NULL);
    struct mo_httpc_x *x;
    struct seen me;
    bool gone = false;
    int begun;

    if (!cl)
        return;
    seen_init(&me);
    begun = mo_httpc_start(cl, &c, &seen_cb, &me, &x, NULL) == 0;
    if (begun)
        wait_for(r->l, seen_all, &me);
    mo_httpc_close(cl, set_flag, &gone);
    wait_for(r->l, flag_set, &gone);
    assert_int_equal(me.dones, begun);
    mo_buf_fini(&me.body);
}

static void no_memory_is_survived(void **state)
{
    struct rig r;

    (void)state;
    rig_up(&r, (struct peer){.reply = MO_SPAN(OK2)});
    torture(one_exchange, &r);
    rig_down(&r);
}

struct table {
    void (*fn)(void);
};

static void a_missing_library_is_named(void **state)
{
    static const struct {
        const char *so;
        struct mo_dso_sym sym;
        const char *says;
    } rows[] = {
        {"libmo-none.so.9", {"x", 0}, "install the package libmo9"},
        {"libc.so.6", {"mo_no_such", 0}, "has no mo_no_such"},
    };
    struct table t = {.fn = NULL};
    struct mo_err e;

    (void)state;
    for (size_t i = 0; i < MO_COUNT(rows); i++) {
        assert_int_equal(
            mo_dso_load(rows[i].so, "libmo9", &rows[i].sym, 1, &t, &e),
            MO_EUNAVAIL);
        check_row(rows[i].so, strstr(e.msg, rows[i].says));
        check_row(rows[i].so, strstr(e.msg, rows[i].so));
    }
}

static int make_files(void **state)
{
    static const char *const proxies[] = {
        "http_proxy", "https_proxy", "HTTPS_PROXY", "all_proxy",
        "ALL_PROXY",  "no_proxy",    "NO_PROXY",
    };

    (void)state;
    for (size_t i = 0; i < MO_COUNT(proxies); i++)
        (void)unsetenv(proxies[i]);
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
        cmocka_unit_test(answers),
        cmocka_unit_test(the_request_is_what_was_asked),
        cmocka_unit_test(bad_requests_are_refused),
        cmocka_unit_test(events_come_one_by_one),
        cmocka_unit_test(a_paused_answer_waits),
        cmocka_unit_test(compressed_bodies_are_unpacked),
        cmocka_unit_test(slow_and_big_end),
        cmocka_unit_test(a_head_without_end_is_refused),
        cmocka_unit_test(the_queue_is_bounded),
        cmocka_unit_test(failures_say_what_to_do),
        cmocka_unit_test(tls_is_verified),
        cmocka_unit_test(wrong_kind_of_port),
        cmocka_unit_test(proxies_come_from_the_environment),
        cmocka_unit_test(private_addresses),
        cmocka_unit_test(a_proxy_may_be_private),
        cmocka_unit_test(no_proxy_is_direct),
        cmocka_unit_test(private_addresses_by_proxy),
        cmocka_unit_test(cancel_at_any_time),
        cmocka_unit_test(one_request_starts_another),
        cmocka_unit_test(our_own_server_agrees),
        cmocka_unit_test(no_memory_is_survived),
        cmocka_unit_test(a_missing_library_is_named),
    };

    return cmocka_run_group_tests(tests, make_files, drop_files);
}
