/* The site on a real socket: routes, headers, health, and changes at run
 * time. */
#include "web/site.h"

#include "mo_test.h"

#define WAIT_MS 5000

struct place {
    struct mo_loop *l;
    struct mo_site *s;
    char addr[32];
    bool closed;
    uint64_t patience_ms; /* out of memory that long; 0: never */
};

struct client {
    struct mo_stream *s;
    struct mo_buf got;
    bool failed, closed;
};

/* --- a site -------------------------------------------------------------- */

static int open_site(struct place *p, const struct mo_site_opts *o)
{
    struct mo_listen_opts lo = {.addr = "127.0.0.1:0"};
    struct mo_err e;

    *p = (struct place){.l = mo_loop_new(NULL, &e)};
    if (!p->l)
        return e.code;
    p->s = mo_site_new(p->l, o, &e);
    if (p->s && mo_httpd_listen(mo_site_httpd(p->s), &lo, &e) < 0)
        return e.code;
    if (p->s)
        (void)snprintf(p->addr, sizeof(p->addr), "127.0.0.1:%u",
                       mo_httpd_port(mo_site_httpd(p->s)));
    return p->s ? 0 : e.code;
}

static void on_gone(void *ctx)
{
    ((struct place *)ctx)->closed = true;
}

static bool is_gone(void *ctx)
{
    return ((struct place *)ctx)->closed;
}

static void close_site(struct place *p)
{
    if (p->s)
        mo_site_close(p->s, 0, on_gone, p);
    if (p->s)
        assert_true(mo_loop_until(p->l, is_gone, p, WAIT_MS));
    if (p->l)
        mo_loop_run(p->l);
    mo_loop_free(p->l);
}

/* --- a client: sends one text, reads to the end -------------------------- */

static void c_read(void *ctx, char *p, size_t n)
{
    (void)mo_buf_put(&((struct client *)ctx)->got, p, n);
}

static void c_close(void *ctx, const struct mo_err *why)
{
    (void)why;
    ((struct client *)ctx)->closed = true;
}

static const struct mo_stream_cb c_cb = {c_read, NULL, NULL, c_close};

static void c_dialled(void *ctx, struct mo_stream *s, const struct mo_err *why)
{
    struct client *c = ctx;

    c->s = s;
    c->failed = why != NULL;
    if (s)
        mo_stream_attach(s, &c_cb, c);
}

static bool c_settled(void *ctx)
{
    struct client *c = ctx;

    return c->s || c->failed;
}

static bool c_closed(void *ctx)
{
    return ((struct client *)ctx)->closed;
}

/* The whole answer, or "". Freed with the client's buffer. */
static const char *talk(struct place *p, struct client *c, const char *text)
{
    struct mo_err e;

    *c = (struct client){0};
    mo_buf_init(&c->got, 256 * 1024);
    if (mo_dial(p->l, p->addr, WAIT_MS, c_dialled, c, NULL, &e) < 0)
        return "";
    assert_true(mo_loop_until(p->l, c_settled, c, WAIT_MS));
    if (!c->s)
        return "";
    if (mo_stream_write(c->s, mo_span_cstr(text)) < 0)
        mo_stream_close(c->s, NULL);
    if (p->patience_ms && !mo_loop_until(p->l, c_closed, c, p->patience_ms))
        mo_mem_fail_at(0, false); /* memory is back: now it must go on */
    assert_true(mo_loop_until(p->l, c_closed, c, WAIT_MS));
    return mo_buf_cstr(&c->got);
}

#define REQ(line, rows)                                                        \
    line " HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n" rows "\r\n"

/* --- routes of others ---------------------------------------------------- */

static void on_hello(void *ctx, struct mo_req *rq)
{
    mo_req_reply(rq, 200, "text/plain", mo_span_cstr(ctx));
}

static void on_body(struct mo_req *rq, struct mo_span body)
{
    mo_req_reply(rq, 200, "text/plain", body);
}

static const struct {
    const char *ask, *status, *has;
} route_rows[] = {
    {REQ("GET /exact", ""), "200", "\r\n\r\nexact"},
    {REQ("GET /exact?a=b", ""), "200", "\r\n\r\nexact"},
    {REQ("GET /exact/", ""), "404", "\"not_found\""},
    {REQ("GET /exac", ""), "404", "\"not_found\""},
    {REQ("POST /exact", ""), "200", "\r\n\r\nposted"},
    {REQ("PUT /exact", ""), "405", "Allow: GET, HEAD, POST\r\n"},
    {REQ("GET /below/", ""), "200", "\r\n\r\nbelow"},
    {REQ("DELETE /below/a/b", ""), "200", "\r\n\r\nbelow"},
    {REQ("GET /below", ""), "404", "\"not_found\""},
    {REQ("GET /one/x", ""), "200", "\r\n\r\nsegment"},
    {REQ("GET /one/x/calls", ""), "200", "\r\n\r\nbelow it"},
    {REQ("GET /one/fixed", ""), "200", "\r\n\r\nexact"},
    {REQ("DELETE /one/x", ""), "200", "\r\n\r\nsegment"},
    {REQ("DELETE /one/fixed", ""), "405", "Allow: GET, HEAD\r\n"},
    {REQ("PUT /one/x", ""), "405", "Allow: GET, HEAD, DELETE\r\n"},
    {REQ("GET /one/", ""), "404", "\"not_found\""},
    {REQ("GET /one//calls", ""), "404", "\"not_found\""},
    {REQ("GET /one/x/", ""), "404", "\"not_found\""},
    {REQ("GET /one/x/calls/y", ""), "404", "\"not_found\""},
    {REQ("GET /one", ""), "404", "\"not_found\""},
    {REQ("POST /body", "Content-Length: 3\r\n") "abc", "200", "\r\n\r\nabc"},
    {REQ("POST /body", "Content-Length: 5\r\n") "abcde", "413",
     "\"body_too_big\""},
    {REQ("GET /", ""), "200", "MCP Orchestrator"},
    {REQ("HEAD /", ""), "200", "Content-Type: text/html"},
    {REQ("GET /healthz", ""), "200", "\r\n\r\nok\n"},
    {REQ("GET /metrics", ""), "200", "mo_http_connections 1"},
    {REQ("GET /socket.io/", ""), "404", "\"not_found\""}, /* none here */
    {"GET / HTTP/1.1\r\n\r\n", "400", "\"bad_request\""},
};

static void add_routes(struct mo_site *s)
{
    static char exact[] = "exact", posted[] = "posted", below[] = "below";
    static char segment[] = "segment", below_it[] = "below it";
    const struct mo_route rows[] = {
        {MO_HTTP_GET, "/exact", 0, on_hello, exact},
        {MO_HTTP_POST, "/exact", 0, on_hello, posted},
        {MO_HTTP_OTHER, "/below/", MO_ROUTE_PREFIX, on_hello, below},
        {MO_HTTP_GET, "/one/fixed", 0, on_hello, exact},
        {MO_HTTP_GET, "/one/{id}", 0, on_hello, segment},
        {MO_HTTP_DELETE, "/one/{id}", 0, on_hello, segment},
        {MO_HTTP_GET, "/one/{id}/calls", 0, on_hello, below_it},
        {MO_HTTP_POST, "/body", .body = on_body, .max = 4},
    };

    for (size_t i = 0; i < MO_COUNT(rows); i++)
        assert_int_equal(mo_site_route(s, &rows[i]), 0);
}

static bool says(const char *answer, const char *status)
{
    return strncmp(answer, "HTTP/1.1 ", 9) == 0 &&
           strncmp(answer + 9, status, 3) == 0;
}

static void test_routes(void **state)
{
    struct mo_site_opts o = {0};
    struct place p;

    (void)state;
    assert_int_equal(open_site(&p, &o), 0);
    add_routes(p.s);
    for (size_t i = 0; i < MO_COUNT(route_rows); i++) {
        struct client c;
        const char *got = talk(&p, &c, route_rows[i].ask);

        check_row(route_rows[i].ask, says(got, route_rows[i].status));
        check_row(route_rows[i].ask, strstr(got, route_rows[i].has));
        check_row(route_rows[i].ask, strstr(got, "\r\nX-Content-Type-Options: "
                                                 "nosniff\r\n"));
        mo_buf_fini(&c.got);
    }
    close_site(&p);
}

static void test_table_has_an_end(void **state)
{
    struct mo_site_opts o = {0};
    struct mo_route r = {MO_HTTP_GET, "/x", 0, on_hello, NULL};
    struct place p;
    int n = 0;

    (void)state;
    assert_int_equal(open_site(&p, &o), 0);
    while (mo_site_route(p.s, &r) == 0)
        n++;
    assert_true(n > 0 && n < MO_SITE_ROUTES_MAX);
    assert_int_equal(mo_site_route(p.s, &r), MO_EBUSY);
    close_site(&p);
}

/* --- readiness ----------------------------------------------------------- */

static const char *check_word(void *ctx)
{
    return *(const char **)ctx;
}

static void test_ready(void **state)
{
    const char *why = NULL;
    struct mo_ready r = {"store", check_word, &why};
    struct mo_site_opts o = {0};
    struct place p;
    struct client c;

    (void)state;
    assert_int_equal(open_site(&p, &o), 0);
    assert_int_equal(mo_site_ready(p.s, &r), 0);
    assert_true(says(talk(&p, &c, REQ("GET /readyz", "")), "200"));
    assert_non_null(strstr(mo_buf_cstr(&c.got), "\"ready\":true"));
    mo_buf_fini(&c.got);
    why = "the disk is \"full\"";
    assert_true(says(talk(&p, &c, REQ("GET /readyz", "")), "503"));
    assert_non_null(strstr(mo_buf_cstr(&c.got), "the disk is \\\"full\\\""));
    assert_non_null(strstr(mo_buf_cstr(&c.got), "\"ready\":false"));
    mo_buf_fini(&c.got);
    why = NULL;
    while (mo_site_ready(p.s, &r) == 0)
        continue;
    assert_int_equal(mo_site_ready(p.s, &r), MO_EBUSY);
    assert_true(says(talk(&p, &c, REQ("GET /readyz", "")), "200"));
    mo_buf_fini(&c.got);
    close_site(&p);
}

/* --- what changes while it runs ------------------------------------------ */

static void expect(struct place *p, const char *ask, const char *status,
                   const char *has)
{
    struct client c;
    const char *got = talk(p, &c, ask);

    check_row(ask, says(got, status));
    check_row(ask, !has || strstr(got, has));
    mo_buf_fini(&c.got);
}

static void test_gate_changes(void **state)
{
    static const char *const listed[] = {"https://chat.example"};
    static const char from_chat[] =
        REQ("GET /exact", "Origin: https://chat.example\r\n");
    struct mo_gate list = {.origins = listed, .norigins = 1};
    struct mo_gate token = {.token = "0123456789abcdef"};
    struct mo_site_opts o = {0};
    struct place p;

    (void)state;
    assert_int_equal(open_site(&p, &o), 0);
    add_routes(p.s);
    expect(&p, from_chat, "403", "\"origin_refused\"");
    mo_site_gate(p.s, &list);
    expect(&p, from_chat, "200",
           "Access-Control-Allow-Origin: https://chat.example\r\n");
    expect(&p,
           REQ("OPTIONS /exact", "Origin: https://chat.example\r\n"
                                 "Access-Control-Request-Method: POST\r\n"),
           "204", "Access-Control-Allow-Methods: ");
    expect(&p, REQ("OPTIONS /exact", "Origin: https://chat.example\r\n"), "405",
           "Allow: GET, HEAD, POST\r\n");
    mo_site_gate(p.s, &token);
    expect(&p, REQ("GET /exact", ""), "401", "WWW-Authenticate: Bearer\r\n");
    expect(&p, REQ("GET /?token=0123456789abcdef", ""), "303",
           "; Path=/; Max-Age=2592000; HttpOnly; SameSite=Strict\r\n");
    expect(&p,
           REQ("GET /?token=0123456789abcdef",
               "Sec-Fetch-Site: cross-site\r\nSec-Fetch-Mode: navigate\r\n"),
           "401", NULL);
    expect(&p,
           REQ("GET /?token=0123456789abcdef",
               "Referer: http://localhost:8080/page\r\n"),
           "401", NULL);
    expect(&p,
           REQ("GET /?token=0123456789abcdef",
               "Referer: http://localhost/sign-in.html\r\n"),
           "303", NULL);
    expect(&p,
           "POST /sign-in HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n"
           "Content-Length: 22\r\n\r\ntoken=0123456789abcdef",
           "303", "Set-Cookie: mo_80=");
    expect(&p,
           "POST /sign-in HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n"
           "Sec-Fetch-Site: cross-site\r\nSec-Fetch-Mode: navigate\r\n"
           "Content-Length: 22\r\n\r\ntoken=0123456789abcdef",
           "403", "\"origin_refused\"");
    expect(&p,
           "POST /sign-in HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n"
           "Content-Length: 22\r\n\r\ntoken=0123456789abcdeF",
           "303", "Location: /sign-in.html#wrong\r\n");
    expect(&p,
           "POST /sign-in HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n"
           "Origin: http://evil.example\r\nContent-Length: 22\r\n\r\n"
           "token=0123456789abcdef",
           "403", "\"origin_refused\"");
    expect(&p, REQ("GET /?token=0123456789abcde%66", ""), "303", NULL);
    expect(&p, REQ("GET /?token=0123456789abcdeF", ""), "401", NULL);
    expect(&p, REQ("POST /?token=0123456789abcdef", ""), "401", NULL);
    expect(&p, REQ("GET /healthz", ""), "200", NULL);
    close_site(&p);
}

static void test_limits_change(void **state)
{
    static const char two[] = "GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n"
                              "GET /healthz HTTP/1.1\r\nHost: localhost\r\n"
                              "\r\n" REQ("GET /healthz", "");
    struct mo_httpd_limits one = {.requests = 1};
    struct mo_site_opts o = {0};
    struct client c;
    struct place p;
    const char *got;

    (void)state;
    assert_int_equal(open_site(&p, &o), 0);
    got = talk(&p, &c, two);
    assert_non_null(strstr(strstr(got, "ok\n") + 1, "ok\n"));
    mo_buf_fini(&c.got);
    mo_httpd_limit(mo_site_httpd(p.s), &one);
    got = talk(&p, &c, two);
    assert_non_null(strstr(got, "Connection: close\r\n"));
    assert_null(strstr(strstr(got, "ok\n") + 1, "ok\n"));
    mo_buf_fini(&c.got);
    close_site(&p);
}

/* --- out of memory ------------------------------------------------------- */

#define OUT_OF_MEMORY_MS 30

static void life(void *ctx)
{
    static const char *const asks[] = {
        REQ("GET /metrics", ""), REQ("GET /readyz", ""), REQ("GET /nope", ""),
        REQ("PUT /", ""), REQ("GET /?token=0123456789abcdef", "")};
    struct mo_site_opts o = {.gate = {.token = "0123456789abcdef"}};
    unsigned *runs = ctx;
    struct place p;

    if (open_site(&p, &o) == 0) {
        /* the first run counts allocations and must not be disturbed */
        p.patience_ms = *runs ? OUT_OF_MEMORY_MS : 0;
        for (size_t i = 0; i < MO_COUNT(asks); i++) {
            struct client c;

            (void)talk(&p, &c, asks[i]);
            mo_buf_fini(&c.got);
        }
    }
    ++*runs;
    close_site(&p);
}

static void test_torture(void **state)
{
    unsigned runs = 0;

    (void)state;
    torture(life, &runs);
    assert_true(runs > 100);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_routes),
        cmocka_unit_test(test_table_has_an_end),
        cmocka_unit_test(test_ready),
        cmocka_unit_test(test_gate_changes),
        cmocka_unit_test(test_limits_change),
        cmocka_unit_test(test_torture),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
