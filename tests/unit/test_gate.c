/* Access control: every header that matters, alone and combined. */
#include "web/gate.h"

#include "loop/httpd_priv.h"
#include "mo_test.h"

/* A request as httpd.c would pass it, without a socket. */
struct asked {
    struct mo_http1 *parser;
    struct mo_stream stream;
    struct conn conn;
};

static void ask(struct asked *a, bool tls, const char *rows)
{
    static const struct mo_stream_ops ops[] = {{.tls = false}, {.tls = true}};
    struct mo_buf text;
    struct mo_span in, body;
    struct mo_err e;

    mo_buf_init(&text, 4096);
    (void)mo_buf_printf(&text, "GET / HTTP/1.1\r\n%s\r\n", rows);
    in = mo_buf_view(&text);
    *a = (struct asked){.stream = {.ops = &ops[tls]}};
    a->parser = mo_http1_new(MO_HTTP1_REQUEST);
    assert_non_null(a->parser);
    if (mo_http1_next(a->parser, &in, &body, &e) != MO_HTTP1_HEAD)
        fail_msg("'%s' is no request: %s", rows, e.msg);
    a->conn.s = &a->stream;
    a->conn.rq.head = mo_http1_head(a->parser);
    mo_buf_fini(&text);
}

static void asked_fini(struct asked *a)
{
    mo_http1_free(a->parser);
}

static const char *const origins[] = {"https://chat.example", "not an origin",
                                      "http://dev.example:8080"};

/* --- loopback, no token -------------------------------------------------- */

#define LOCAL "Host: localhost:3000\r\n"

static const struct {
    const char *rows;
    bool tls;
    int status;
} open_rows[] = {
    {"Host: localhost\r\n", false, 0},
    {LOCAL, false, 0},
    {"Host: LocalHost.:3000\r\n", false, 0},
    {"Host: 127.0.0.1:3000\r\n", false, 0},
    {"Host: 127.255.255.254\r\n", false, 0},
    {"Host: [::1]:3000\r\n", false, 0},
    {"Host: a.b.localhost\r\n", false, 0},
    {"Host: evil.example\r\n", false, 403},
    {"Host: 127.0.0.1.evil\r\n", false, 403},
    {"Host: localhost.evil\r\n", false, 403},
    {"Host: notlocalhost\r\n", false, 403},
    {"Host: 128.0.0.1\r\n", false, 403},
    {"Host: [::2]\r\n", false, 403},
    {"Host: [::ffff:127.0.0.1]\r\n", false, 403},
    {"Host:\r\n", false, 400},
    {"Host: [::1\r\n", false, 400},
    {"Host: localhost:x\r\n", false, 400},
    {"Host: 0x7f.1\r\n", false, 400},
    /* an Origin must be ours */
    {LOCAL "Origin: http://localhost:3000\r\n", false, 0},
    {LOCAL "Origin: HTTP://LOCALHOST:3000\r\n", false, 0},
    {LOCAL "Origin: https://localhost:3000\r\n", true, 0},
    {"Host: localhost\r\nOrigin: http://localhost\r\n", false, 0},
    {"Host: localhost\r\nOrigin: http://localhost:80\r\n", false, 0},
    {"Host: localhost\r\nOrigin: https://localhost:443\r\n", true, 0},
    {LOCAL "Origin: https://localhost:3000\r\n", false, 403},
    {LOCAL "Origin: http://localhost:3000\r\n", true, 403},
    {LOCAL "Origin: http://localhost:3001\r\n", false, 403},
    {LOCAL "Origin: http://localhost\r\n", false, 403},
    {LOCAL "Origin: http://127.0.0.1:3000\r\n", false, 403},
    {LOCAL "Origin: http://evil.example\r\n", false, 403},
    {LOCAL "Origin: http://localhost:3000.evil\r\n", false, 403},
    {LOCAL "Origin: http://evil@localhost:3000\r\n", false, 403},
    {LOCAL "Origin: http://localhost:3000/\r\n", false, 403},
    {LOCAL "Origin: null\r\n", false, 403},
    {LOCAL "Origin:\r\n", false, 403},
    {LOCAL "Origin: *\r\n", false, 403},
    /* or listed */
    {LOCAL "Origin: https://chat.example\r\n", false, 0},
    {LOCAL "Origin: https://CHAT.example:443\r\n", false, 0},
    {LOCAL "Origin: http://dev.example:8080\r\n", false, 0},
    {LOCAL "Origin: http://chat.example\r\n", false, 403},
    {LOCAL "Origin: https://chat.example:444\r\n", false, 403},
    {LOCAL "Origin: https://x.chat.example\r\n", false, 403},
    {LOCAL "Origin: not an origin\r\n", false, 403},
    /* and the Host counts even then */
    {"Host: evil.example\r\nOrigin: https://chat.example\r\n", false, 403},
    /* what a browser says about pages that tell no origin */
    {LOCAL "Sec-Fetch-Site: cross-site\r\n", false, 403},
    {LOCAL "Sec-Fetch-Site: same-site\r\nSec-Fetch-Mode: no-cors\r\n", false,
     403},
    {LOCAL "Sec-Fetch-Site: cross-site\r\nSec-Fetch-Mode: navigate\r\n", false,
     0},
    {LOCAL "Sec-Fetch-Site: same-origin\r\n", false, 0},
    {LOCAL "Sec-Fetch-Site: none\r\nSec-Fetch-Mode: navigate\r\n", false, 0},
    {LOCAL "Sec-Fetch-Site: cross-site\r\nOrigin: https://chat.example\r\n",
     false, 0},
};

static void test_loopback(void **state)
{
    struct mo_gate g = {.origins = origins, .norigins = MO_COUNT(origins)};

    (void)state;
    for (size_t i = 0; i < MO_COUNT(open_rows); i++) {
        struct asked a;
        struct mo_refusal no;

        ask(&a, open_rows[i].tls, open_rows[i].rows);
        no = mo_gate_check(&g, &a.conn.rq, NULL);
        check_row(open_rows[i].rows, no.status == open_rows[i].status);
        check_row(open_rows[i].rows, !no.status || (no.code && no.detail));
        /* without a token there is nothing else to check */
        no = mo_gate_check_page(&g, &a.conn.rq);
        check_row(open_rows[i].rows, no.status == open_rows[i].status);
        asked_fini(&a);
    }
}

/* --- with a token -------------------------------------------------------- */

#define T    "0123456789abcdef"
#define HOST "Host: box.example\r\n"

static const struct {
    const char *rows;
    int status;
} token_rows[] = {
    {HOST, 401},
    {"Host: localhost\r\n", 401},
    {HOST "Authorization: Bearer " T "\r\n", 0},
    {HOST "authorization: bearer   " T "\r\n", 0},
    {HOST "Authorization: Bearer\r\n", 401},
    {HOST "Authorization: Bearer x\r\n", 401},
    {HOST "Authorization: Bearer " T "0\r\n", 401},
    {HOST "Authorization: Bearer 0" T "\r\n", 401},
    {HOST "Authorization: Basic " T "\r\n", 401},
    {HOST "Authorization: " T "\r\n", 401},
    {HOST "Cookie: mo_80=" T "\r\n", 401}, /* the token itself is no cookie */
    /* the page is checked first */
    {HOST "Origin: http://evil.example\r\n", 403},
    {HOST "Origin: http://evil.example\r\nAuthorization: Bearer " T "\r\n",
     403},
    {HOST "Origin: http://box.example\r\nAuthorization: Bearer " T "\r\n", 0},
    {HOST "Origin: http://box.example\r\n", 401},
    {HOST "Origin: https://chat.example\r\n", 401},
    {"Host: [::1\r\nAuthorization: Bearer " T "\r\n", 400},
};

static void test_token(void **state)
{
    struct mo_gate g = {
        .token = T, .origins = origins, .norigins = MO_COUNT(origins)};

    (void)state;
    for (size_t i = 0; i < MO_COUNT(token_rows); i++) {
        struct asked a;

        ask(&a, false, token_rows[i].rows);
        check_row(token_rows[i].rows,
                  mo_gate_check(&g, &a.conn.rq, NULL).status ==
                      token_rows[i].status);
        asked_fini(&a);
    }
}

/* The token decides the name; the operator has none. */
static void test_people(void **state)
{
    static const struct mo_gate_person people[] = {
        {"alice", "alice-0123456789abcdef"}, {"bob", "bob-0123456789abcdef"}};
    static const struct {
        const char *rows;
        int status;
        const char *caller;
    } rows[] = {
        {HOST, 401, ""},
        {HOST "Authorization: Bearer alice\r\n", 401, ""},
        {HOST "Authorization: Bearer \r\n", 401, ""},
        {HOST "Authorization: Bearer alice-0123456789abcdef\r\n", 0, "alice"},
        {HOST "Authorization: Bearer bob-0123456789abcdef\r\n", 0, "bob"},
        {HOST "Authorization: Bearer " T "\r\n", 0, ""},
    };
    struct mo_gate g = {
        .token = T, .tokens = people, .ntokens = MO_COUNT(people)};

    (void)state;
    for (size_t i = 0; i < MO_COUNT(rows); i++) {
        struct asked a;

        ask(&a, false, rows[i].rows);
        (void)snprintf(a.conn.rq.caller, sizeof(a.conn.rq.caller), "mallory");
        check_row(rows[i].rows,
                  mo_gate_check(&g, &a.conn.rq, NULL).status == rows[i].status);
        check_row(rows[i].rows, !strcmp(a.conn.rq.caller, rows[i].caller));
        asked_fini(&a);
    }
    g.token = NULL;
    assert_true(mo_gate_has_tokens(&g));
    assert_false(mo_gate_token_ok(&g, MO_SPAN(T)));
    assert_true(mo_gate_token_ok(&g, MO_SPAN("bob-0123456789abcdef")));
}

/* --- the cookie ----------------------------------------------------------- */

/* The name=value part of the cookie for that token at that host. */
static void sign_in(const struct mo_gate *g, const char *host, bool tls,
                    const char *token, char out[256])
{
    struct mo_buf b;
    struct asked a;

    mo_buf_init(&b, 1024);
    ask(&a, tls, host);
    assert_int_equal(mo_gate_cookie(g, &a.conn.rq, mo_span_cstr(token), &b), 0);
    assert_non_null(strstr(mo_buf_cstr(&b), "; HttpOnly; SameSite=Strict"));
    assert_int_equal(!strstr(mo_buf_cstr(&b), "; Secure"), !tls);
    assert_null(strstr(mo_buf_cstr(&b), token));
    (void)snprintf(out, 256, "%.*s", (int)strcspn(mo_buf_cstr(&b), ";"),
                   mo_buf_cstr(&b));
    asked_fini(&a);
    mo_buf_fini(&b);
}

static int status_of(const struct mo_gate *g, const char *host, bool tls,
                     const char *cookie, char caller[MO_REQ_CALLER_MAX])
{
    char rows[1024];
    struct asked a;
    int status;

    (void)snprintf(rows, sizeof(rows), "%sCookie: %s\r\n", host, cookie);
    ask(&a, tls, rows);
    status = mo_gate_check(g, &a.conn.rq, NULL).status;
    (void)snprintf(caller, MO_REQ_CALLER_MAX, "%s", a.conn.rq.caller);
    asked_fini(&a);
    return status;
}

#define BOB "bob-0123456789abcdef"

static void test_cookie(void **state)
{
    static const struct mo_gate_person people[] = {{"b.o.b", BOB}};
    static const char at[] = "Host: box.example:3000\r\n";
    const struct mo_gate g = {.token = T, .tokens = people, .ntokens = 1};
    const struct mo_gate later = {.token = T "x"};
    char own[256], bobs[256], text[600], caller[MO_REQ_CALLER_MAX];

    (void)state;
    sign_in(&g, at, false, T, own);
    sign_in(&g, at, false, BOB, bobs);
    assert_memory_equal(own, "mo_3000=", 8);
    assert_int_equal(status_of(&g, at, false, own, caller), 0);
    assert_string_equal(caller, "");
    assert_int_equal(status_of(&g, at, false, bobs, caller), 0);
    assert_string_equal(caller, "b.o.b");
    (void)snprintf(text, sizeof(text), "a=b; %s;c", own);
    assert_int_equal(status_of(&g, at, false, text, caller), 0);
    assert_int_equal(
        status_of(&g, "Host: BOX.example:3000\r\n", false, own, caller), 0);
    /* not at another port or host, nor after the token changed */
    assert_int_equal(
        status_of(&g, "Host: box.example:3001\r\n", false, own, caller), 401);
    assert_int_equal(
        status_of(&g, "Host: box.examplf:3000\r\n", false, own, caller), 401);
    assert_int_equal(status_of(&later, at, false, own, caller), 401);
    assert_int_equal(status_of(&later, at, false, bobs, caller), 401);
    /* for no other person and no other time; every byte counts */
    for (size_t i = 0; i < strlen(bobs); i++) {
        (void)snprintf(text, sizeof(text), "%s", bobs);
        text[i] = text[i] == '1' ? '2' : '1';
        check_row(text, status_of(&g, at, false, text, caller) == 401);
        (void)snprintf(text, sizeof(text), "%.*s", (int)i, bobs);
        check_row(text, status_of(&g, at, false, text, caller) == 401);
    }
}

/* Behind a proxy that ends TLS: Secure only if the page that signs in proves
 * that the browser came to this host by https. */
static void test_secure_cookie(void **state)
{
    static const struct {
        const char *rows;
        bool secure;
    } rows[] = {
        {"Host: chat.example\r\nOrigin: https://chat.example\r\n", true},
        {"Host: chat.example:443\r\nOrigin: https://chat.example\r\n", true},
        {"Host: chat.example\r\nReferer: https://chat.example/a\r\n", true},
        {"Host: chat.example\r\nOrigin: https://chat.example\r\n"
         "Referer: http://chat.example/\r\n",
         true},
        /* by plain http: the browser would drop a Secure cookie */
        {"Host: chat.example\r\n", false},
        {"Host: chat.example\r\nOrigin: http://chat.example\r\n", false},
        {"Host: chat.example\r\nReferer: http://chat.example/\r\n", false},
        {"Host: chat.example\r\nOrigin: http://chat.example\r\n"
         "Referer: https://chat.example/\r\n",
         false},
        {"Host: dev.example:8080\r\nOrigin: http://dev.example:8080\r\n",
         false},
        /* a page of another host, or one that is not listed */
        {LOCAL "Origin: https://chat.example\r\n", false},
        {"Host: chat.example:8443\r\nOrigin: https://chat.example\r\n", false},
        {HOST "Origin: https://box.example\r\n", false},
        {HOST "Referer: https://box.example/\r\n", false},
        {"Host: chat.example\r\nReferer: https://a@chat.example/\r\n", false},
        {"Host: chat.example\r\nOrigin: null\r\n", false},
    };
    const struct mo_gate g = {
        .token = T, .origins = origins, .norigins = MO_COUNT(origins)};

    (void)state;
    for (size_t i = 0; i < MO_COUNT(rows); i++) {
        struct asked a;
        struct mo_buf b;

        mo_buf_init(&b, 1024);
        ask(&a, false, rows[i].rows);
        assert_int_equal(mo_gate_cookie(&g, &a.conn.rq, MO_SPAN(T), &b), 0);
        check_row(rows[i].rows,
                  !!strstr(mo_buf_cstr(&b), "; Secure") == rows[i].secure);
        asked_fini(&a);
        mo_buf_fini(&b);
    }
}

/* A page at another port can plant cookies of our name. */
static void test_planted_cookies(void **state)
{
    static const struct mo_gate_person people[] = {{"bob", BOB}};
    static const char at[] = "Host: localhost:3000\r\n";
    const struct mo_gate g = {.token = T, .tokens = people, .ntokens = 1};
    char own[256], bobs[256], text[900], caller[MO_REQ_CALLER_MAX];
    size_t n = 0;

    (void)state;
    sign_in(&g, at, false, T, own);
    sign_in(&g, at, false, BOB, bobs);
    (void)snprintf(text, sizeof(text), "mo_3000=x; mo_3000; %s; mo_3000=", own);
    assert_int_equal(status_of(&g, at, false, text, caller), 0);
    assert_string_equal(caller, ""); /* not signed out by them */
    (void)snprintf(text, sizeof(text), "%s; %s", own, own);
    assert_int_equal(status_of(&g, at, false, text, caller), 0);
    (void)snprintf(text, sizeof(text), "%s; %s", bobs, own);
    assert_int_equal(status_of(&g, at, false, text, caller), 401);
    (void)snprintf(text, sizeof(text), "%s; %s", own, bobs);
    assert_int_equal(status_of(&g, at, false, text, caller), 401);
    for (int i = 0; i < 40; i++)
        n += (size_t)snprintf(text + n, sizeof(text) - n, "mo_3000=%d;", i);
    (void)snprintf(text + n, sizeof(text) - n, "%s", own);
    assert_int_equal(status_of(&g, at, false, text, caller), 401);
}

/* A process of this user needs no token, unless it speaks for others. */
static void test_own_user(void **state)
{
    static const struct {
        const char *rows;
        int status;
    } rows[] = {
        {LOCAL, 0},
        {"Host: box.example\r\n", 401},
        {LOCAL "X-Forwarded-For: 192.0.2.1\r\n", 401},
        {LOCAL "Forwarded: for=192.0.2.1\r\n", 401},
        {LOCAL "X-Real-IP: 192.0.2.1\r\n", 401},
        {LOCAL "Via: 1.1 proxy\r\n", 401},
        {LOCAL "Cookie: a=b\r\n", 401},
        {LOCAL "Origin: http://localhost:3000\r\n", 401},
        {LOCAL "Sec-Fetch-Site: none\r\n", 401},
        {LOCAL "Via: 1.1 proxy\r\nAuthorization: Bearer " T "\r\n", 0},
    };
    const struct mo_gate g = {.token = T};

    (void)state;
    for (size_t i = 0; i < MO_COUNT(rows); i++) {
        struct asked a;

        ask(&a, false, rows[i].rows);
        a.stream.is_own_user = true;
        check_row(rows[i].rows,
                  mo_gate_check(&g, &a.conn.rq, NULL).status == rows[i].status);
        asked_fini(&a);
    }
}

static void test_token_ok(void **state)
{
    struct mo_gate g = {.token = T};
    struct mo_gate none = {.token = NULL};

    (void)state;
    assert_true(mo_gate_token_ok(&g, MO_SPAN(T)));
    assert_false(mo_gate_token_ok(&g, MO_SPAN("")));
    assert_false(mo_gate_token_ok(&g, mo_span(NULL, 0)));
    assert_false(mo_gate_token_ok(&none, MO_SPAN("")));
    assert_false(mo_gate_token_ok(&none, mo_span(NULL, 0)));
}

static void test_listed(void **state)
{
    struct mo_gate g = {.origins = origins, .norigins = MO_COUNT(origins)};
    struct mo_gate none = {.token = NULL};
    struct asked a;

    (void)state;
    ask(&a, false, LOCAL "Origin: https://chat.example\r\n");
    assert_true(
        mo_span_is(mo_gate_listed(&g, &a.conn.rq), "https://chat.example"));
    assert_null(mo_gate_listed(&none, &a.conn.rq).p);
    asked_fini(&a);
    ask(&a, false, LOCAL "Origin: http://localhost:3000\r\n");
    assert_null(mo_gate_listed(&g, &a.conn.rq).p); /* ours, but not listed */
    asked_fini(&a);
    ask(&a, false, LOCAL);
    assert_null(mo_gate_listed(&g, &a.conn.rq).p);
    asked_fini(&a);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_loopback),        cmocka_unit_test(test_token),
        cmocka_unit_test(test_people),          cmocka_unit_test(test_token_ok),
        cmocka_unit_test(test_planted_cookies), cmocka_unit_test(test_own_user),
        cmocka_unit_test(test_listed),          cmocka_unit_test(test_cookie),
        cmocka_unit_test(test_secure_cookie),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
