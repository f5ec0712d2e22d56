/* The endpoint over HTTP on real sockets: what is refused and how, sessions
 * and their end, streams that break and are taken up again. */
#include <errno.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include "ep_kit.h"
#include "loop/httpd.h"
#include "mcp/server/ep_http.h"

struct site {
    struct kit k;
    struct mo_httpd *httpd;
    struct mo_ep_http *http;
    char addr[32];
    bool closed;
};

static void on_request(void *ctx, struct mo_req *rq)
{
    mo_ep_http_handle(((struct site *)ctx)->http, rq);
}

/* The caller is what X-Caller says; "evil" is not let in. */
static bool gate(void *ctx, struct mo_req *rq, char caller[MO_EP_CALLER_MAX])
{
    struct mo_span who = mo_http_get(rq->head, "X-Caller");

    (void)ctx;
    (void)snprintf(caller, MO_EP_CALLER_MAX, "%.*s", (int)who.n, who.p);
    if (!mo_span_is(who, "evil"))
        return true;
    mo_req_problem(rq, 401, "no", "go away");
    return false;
}

static void site_open(struct site *t, const struct mo_endpoint_limits *limits,
                      bool gated)
{
    struct mo_httpd_opts ho = {.handler = on_request,
                               .ctx = t,
                               .limits = {.queue = (size_t)256 * 1024}};
    struct mo_ep_http_opts eo = {.gate = gated ? gate : NULL, .body = 4096};
    struct mo_listen_opts lo = {.addr = "127.0.0.1:0"};

    *t = (struct site){.closed = false};
    assert_int_equal(kit_open(&t->k, loop_new(), limits), 0);
    t->http = mo_ep_http_new(t->k.ep, &eo, NULL);
    t->httpd = mo_httpd_new(t->k.l, &ho, NULL);
    assert_non_null(t->http);
    assert_non_null(t->httpd);
    assert_int_equal(mo_httpd_listen(t->httpd, &lo, NULL), 0);
    (void)snprintf(t->addr, sizeof(t->addr), "127.0.0.1:%u",
                   mo_httpd_port(t->httpd));
}

static void on_closed(void *ctx)
{
    *(bool *)ctx = true;
}

static bool flag_up(void *ctx)
{
    return *(bool *)ctx;
}

static void site_close(struct site *t)
{
    mo_ep_http_free(t->http);
    mo_httpd_close(t->httpd, 0, on_closed, &t->closed);
    wait_for(t->k.l, flag_up, &t->closed);
    mo_endpoint_free(t->k.ep);
    mo_loop_free(t->k.l);
}

/* --- a client ------------------------------------------------------------ */

static void on_dialled(void *ctx, struct mo_stream *s, const struct mo_err *why)
{
    (void)why;
    assert_non_null(s);
    end_attach(ctx, s);
}

static bool is_up(void *ctx)
{
    return ((struct end *)ctx)->s != NULL;
}

/* Send a request and leave the connection open. */
static void ask(struct site *t, struct end *me, const char *method,
                const char *headers, const char *body)
{
    char text[8192];
    struct mo_dial *d;
    int n = snprintf(text, sizeof(text),
                     "%s /mcp HTTP/1.1\r\nHost: %s\r\n%sContent-Length: "
                     "%zu\r\n\r\n%s",
                     method, t->addr, headers, strlen(body), body);

    end_init(me);
    assert_int_equal(
        mo_dial(t->k.l, t->addr, WAIT_MS, on_dialled, me, &d, NULL), 0);
    wait_for(t->k.l, is_up, me);
    assert_int_equal(mo_stream_write(me->s, mo_span(text, (size_t)n)), 0);
}

static void hang_up(struct site *t, struct end *me)
{
    if (me->s) {
        mo_stream_close(me->s, NULL);
        wait_for(t->k.l, end_closed, me);
    }
    mo_buf_fini(&me->got);
}

struct until {
    struct end *me;
    const char *what;
};

static bool has_come(void *ctx)
{
    struct until *u = ctx;

    return strstr(mo_buf_cstr(&u->me->got), u->what) != NULL;
}

static void expect(struct site *t, struct end *me, const char *what)
{
    struct until u = {me, what};

    if (!mo_loop_until(t->k.l, has_come, &u, WAIT_MS))
        fail_msg("no '%s' in: %s", what, mo_buf_cstr(&me->got));
}

#define JSON  "Content-Type: application/json\r\n"
#define BOTH  JSON "Accept: application/json, text/event-stream\r\n"
#define SSE   "Accept: text/event-stream\r\n"
#define CLOSE "Connection: close\r\n"
#define INIT(v)                                                                \
    "{\"jsonrpc\":\"2.0\",\"id\":0,\"method\":\"initialize\",\"params\":"      \
    "{\"protocolVersion\":\"" v "\",\"capabilities\":{\"elicitation\":{}}}}"
#define REQ(id, m, p)                                                          \
    "{\"jsonrpc\":\"2.0\",\"id\":" id ",\"method\":\"" m "\",\"params\":{" p   \
    "}}"
#define CALL(name, more) REQ("1", "tools/call", "\"name\":\"" name "\"" more)
#define MODERN(m, name)                                                        \
    BOTH "MCP-Protocol-Version: 2026-07-28\r\nMcp-Method: " m                  \
         "\r\nMcp-Name: " name "\r\n"

static const struct row {
    const char *name, *method, *headers, *body;
    int status;
    const char *holds; /* NULL: no body */
} rows[] = {
    {"wrong content type", "POST",
     "Accept: */*\r\nContent-Type: text/plain\r\n", "{}", 415, "Content-Type"},
    {"accepts no stream", "POST", JSON "Accept: application/json\r\n", "{}",
     406, "must accept"},
    {"accepts nothing", "POST", JSON, "{}", 406, "must accept"},
    {"accepts all, with charset", "POST",
     "Accept: */*\r\nContent-Type: application/json; charset=utf-8\r\n",
     INIT("2025-11-25"), 200, "2025-11-25"},
    {"no JSON", "POST", BOTH, "{", 400, "-32700"},
    {"no JSON-RPC", "POST", BOTH, "{}", 400, "-32600"},
    {"no session", "POST", BOTH, REQ("1", "ping", ""), 400, "Mcp-Session-Id"},
    {"unknown session", "POST", BOTH "Mcp-Session-Id: x\r\n",
     REQ("1", "ping", ""), 404, "Session not found"},
    {"batch without a session", "POST", BOTH, "[" REQ("1", "ping", "") "]", 400,
     "Mcp-Session-Id"},
    {"initialize", "POST", BOTH, INIT("2025-06-18"), 200,
     "\"protocolVersion\":\"2025-06-18\""},
    {"initialize, version from the future", "POST", BOTH, INIT("2099-01-01"),
     200, "\"protocolVersion\":\"2025-11-25\""},
    {"initialize without a version", "POST", BOTH, REQ("1", "initialize", ""),
     400, "-32602"},
    {"initialize with a modern header", "POST",
     BOTH "MCP-Protocol-Version: 2026-07-28\r\n", INIT("2025-11-25"), 400,
     "-32020"},
    {"GET without a session", "GET", SSE, "", 400, "Mcp-Session-Id"},
    {"GET of a page", "GET", "Accept: text/html\r\n", "", 406, "must accept"},
    {"modern GET", "GET", SSE "MCP-Protocol-Version: 2026-07-28\r\n", "", 405,
     "POST"},
    {"DELETE of nothing", "DELETE", "Mcp-Session-Id: x\r\n", "", 404,
     "Session not found"},
    {"PUT", "PUT", BOTH, "{}", 405, "method_not_allowed"},
    {"foreign page", "POST", BOTH "Origin: http://evil.example\r\n",
     INIT("2025-11-25"), 403, "origin_refused"},
    {"null origin", "POST", BOTH "Origin: null\r\n", INIT("2025-11-25"), 403,
     "origin_refused"},
    {"no envelope, modern header", "POST",
     BOTH "MCP-Protocol-Version: 2026-07-28\r\n", REQ("1", "tools/list", ""),
     400, "-32602"},
    {"modern", "POST", MODERN("tools/call", "now"), CALL("now", "," META), 200,
     "\"resultType\":\"complete\""},
    {"modern, encoded name", "POST", MODERN("tools/call", "=?base64?bm93?="),
     CALL("now", "," META), 200, "\"resultType\":\"complete\""},
    {"modern, name in bad base64", "POST",
     MODERN("tools/call", "=?base64?bm9=?="), CALL("now", "," META), 400,
     "-32020"},
    {"modern, another name", "POST", MODERN("tools/call", "Now"),
     CALL("now", "," META), 400, "-32020"},
    {"modern, another method", "POST", MODERN("tools/list", "now"),
     CALL("now", "," META), 400, "-32020"},
    {"modern, no version header", "POST", BOTH, CALL("now", "," META), 400,
     "-32020"},
    {"modern, unknown method", "POST", MODERN("ping", "x"),
     REQ("1", "ping", META), 404, "-32601"},
    {"modern, a parameter without its header", "POST",
     MODERN("tools/call", "now"),
     CALL("now", ",\"arguments\":{\"where\":\"x\"}," META), 400, "-32020"},
    {"modern, a parameter and its header", "POST",
     MODERN("tools/call", "now") "mcp-param-where:  x \r\n",
     CALL("now", ",\"arguments\":{\"where\":\"x\"}," META), 200, "complete"},
    {"modern, a header without its parameter", "POST",
     MODERN("tools/call", "now") "Mcp-Param-Where: x\r\n",
     CALL("now", "," META), 400, "-32020"},
    {"modern, a header twice", "POST",
     MODERN("tools/call", "now") "Mcp-Name: now\r\n", CALL("now", "," META),
     400, "-32020"},
    {"modern, a question too many", "POST", MODERN("tools/call", "ask"),
     CALL("ask", "," META), 400, "-32021"},
    {"modern, unknown tool", "POST", MODERN("tools/call", "x"),
     CALL("x", "," META), 200, "-32602"},
    {"modern notification", "POST", BOTH,
     "{\"jsonrpc\":\"2.0\",\"method\":\"x\",\"params\":{" META "}}", 202, NULL},
    {"modern stream", "POST", MODERN("tools/call", "talk"),
     CALL("talk", "," META_CAPS("{},\"progressToken\":4")), 200,
     "event: message\ndata: {\"jsonrpc\":\"2.0\",\"method\":"
     "\"notifications/progress\",\"params\":{\"progressToken\":4"},
};

static void test_rows(void **state)
{
    struct site t;

    (void)state;
    site_open(&t, NULL, false);
    for (size_t i = 0; i < MO_COUNT(rows); i++) {
        char headers[1024], status[32];
        struct end me;

        (void)snprintf(headers, sizeof(headers), "%s" CLOSE, rows[i].headers);
        (void)snprintf(status, sizeof(status), "HTTP/1.1 %d ", rows[i].status);
        ask(&t, &me, rows[i].method, headers, rows[i].body);
        wait_for(t.k.l, end_at_eof, &me);
        if (!strstr(mo_buf_cstr(&me.got), status) ||
            (rows[i].holds && !strstr(me.got.p, rows[i].holds)))
            fail_msg("row '%s': %s", rows[i].name, me.got.p);
        hang_up(&t, &me);
    }
    assert_int_equal(mo_endpoint_stats(t.k.ep).calls, 0);
    site_close(&t);
}

/* --- sessions ------------------------------------------------------------ */

static void open_session(struct site *t, const char *more, char id[64])
{
    char headers[512];
    const char *p;
    struct end me;

    (void)snprintf(headers, sizeof(headers), BOTH CLOSE "%s", more);
    ask(t, &me, "POST", headers, INIT("2025-11-25"));
    wait_for(t->k.l, end_at_eof, &me);
    p = strstr(mo_buf_cstr(&me.got), "Mcp-Session-Id: ");
    assert_non_null(p);
    (void)snprintf(id, 64, "%.*s", (int)strcspn(p + 16, "\r"), p + 16);
    hang_up(t, &me);
}

/* One request on a session; the answer must hold `what`. */
static void on_session(struct site *t, const char *id, const char *method,
                       const char *more, const char *body, const char *what)
{
    char headers[512];
    struct end me;

    (void)snprintf(headers, sizeof(headers),
                   BOTH CLOSE "Mcp-Session-Id: %s\r\n%s", id, more);
    ask(t, &me, method, headers, body);
    wait_for(t->k.l, end_at_eof, &me);
    if (!strstr(mo_buf_cstr(&me.got), what))
        fail_msg("no '%s' in: %s", what, me.got.p);
    hang_up(t, &me);
}

static void test_session(void **state)
{
    char id[64], other[64];
    struct site t;

    (void)state;
    site_open(&t, NULL, true);
    open_session(&t, "X-Caller: ann\r\n", id);
    open_session(&t, "X-Caller: bob\r\n", other);
    assert_int_equal(strlen(id), 32);
    assert_string_not_equal(id, other);
    on_session(&t, id, "POST", "X-Caller: ann\r\n", REQ("1", "ping", ""),
               "\"result\":{}");
    on_session(&t, id, "POST", "X-Caller: bob\r\n", REQ("1", "ping", ""),
               " 404 ");
    on_session(&t, id, "POST", "X-Caller: evil\r\n", REQ("1", "ping", ""),
               " 401 ");
    on_session(&t, id, "POST",
               "X-Caller: ann\r\nMCP-Protocol-Version: 1999-01-01\r\n",
               REQ("1", "ping", ""), " 400 ");
    on_session(&t, id, "DELETE", "X-Caller: bob\r\n", "", " 404 ");
    on_session(&t, id, "DELETE", "X-Caller: ann\r\n", "", " 204 ");
    on_session(&t, id, "POST", "X-Caller: ann\r\n", REQ("1", "ping", ""),
               " 404 ");
    assert_int_equal(mo_endpoint_stats(t.k.ep).sessions, 1);
    site_close(&t);
}

/* The longest unused gives way; one that is in use does not. */
static void test_session_cap(void **state)
{
    struct mo_endpoint_limits two = {.sessions = 2};
    char id[3][64], headers[256];
    struct site t;
    struct end get;

    (void)state;
    site_open(&t, &two, false);
    open_session(&t, "", id[0]);
    open_session(&t, "", id[1]);
    (void)snprintf(headers, sizeof(headers), SSE "Mcp-Session-Id: %s\r\n",
                   id[0]);
    ask(&t, &get, "GET", headers, "");
    expect(&t, &get, "retry: 1000\n");
    open_session(&t, "", id[2]);
    on_session(&t, id[1], "POST", "", REQ("1", "ping", ""), " 404 ");
    on_session(&t, id[0], "POST", "", REQ("1", "ping", ""), " 200 ");
    on_session(&t, id[0], "DELETE", "", "", " 204 ");
    expect(&t, &get, "\r\n0\r\n\r\n"); /* its stream ends with it */
    hang_up(&t, &get);
    site_close(&t);
}

static bool no_sessions(void *ctx)
{
    return mo_endpoint_stats(((struct site *)ctx)->k.ep).sessions == 0;
}

static void test_session_idle(void **state)
{
    struct mo_endpoint_limits brief = {.session_ms = 20, .keepalive_ms = 10};
    struct site t;
    char id[64];

    (void)state;
    site_open(&t, &brief, false);
    for (unsigned i = 0; i < 50; i++)
        open_session(&t, "", id);
    wait_for(t.k.l, no_sessions, &t);
    on_session(&t, id, "POST", "", REQ("1", "ping", ""), " 404 ");
    site_close(&t);
}

/* --- streams ------------------------------------------------------------- */

static void test_push(void **state)
{
    char id[64], headers[256];
    struct site t;
    struct end get;

    (void)state;
    site_open(&t, NULL, false);
    open_session(&t, "", id);
    on_session(&t, id, "POST", "",
               "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/initialized\"}",
               " 202 ");
    /* nobody listens yet: told when somebody does, once */
    mo_endpoint_changed(t.k.ep, MO_EP_CH_TOOLS);
    mo_endpoint_changed(t.k.ep, MO_EP_CH_TOOLS);
    assert_int_equal(mo_endpoint_stats(t.k.ep).replay, 0);
    (void)snprintf(headers, sizeof(headers), SSE "Mcp-Session-Id: %s\r\n", id);
    ask(&t, &get, "GET", headers, "");
    expect(&t, &get, "id: 0-0\n");
    expect(&t, &get, "id: 0-1\n");
    mo_endpoint_changed(t.k.ep, MO_EP_CH_TOOLS);
    expect(&t, &get, "id: 0-2\n");
    hang_up(&t, &get);
    mo_endpoint_changed(t.k.ep, MO_EP_CH_RESOURCES); /* while it is away */
    (void)snprintf(headers, sizeof(headers),
                   SSE "Mcp-Session-Id: %s\r\nLast-Event-ID: 0-2\r\n", id);
    ask(&t, &get, "GET", headers, "");
    expect(&t, &get, "notifications/resources/list_changed");
    assert_null(strstr(get.got.p, "notifications/tools"));
    hang_up(&t, &get);
    site_close(&t);
    assert_int_equal(t.k.cancels, 0);
}

static void reply_to(struct site *t, const char *id, const char *no)
{
    char body[128];

    (void)snprintf(body, sizeof(body),
                   "{\"jsonrpc\":\"2.0\",\"id\":%s,\"result\":{}}", no);
    on_session(t, id, "POST", "", body, " 202 ");
}

static void on_asked(void *ctx, struct mo_json result, struct mo_json error)
{
    unsigned *answers = ctx;

    assert_null(error.p);
    *answers += result.p != NULL;
}

static bool is_deaf(void *ctx)
{
    struct mo_endpoint *ep = ((struct site *)ctx)->k.ep;

    return !mo_endpoint_hears(ep, mo_endpoint_only(ep));
}

/* What is asked while nobody is connected to hear it waits for that. */
static void test_push_waits(void **state)
{
    char id[64], headers[256], name[16];
    unsigned answers = 0;
    struct mo_ep_ask *last = NULL;
    struct end get;
    struct site t;

    (void)state;
    site_open(&t, NULL, false);
    open_session(&t, "", id);
    on_session(&t, id, "POST", "",
               "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/initialized\"}",
               " 202 ");
    (void)snprintf(headers, sizeof(headers), SSE "Mcp-Session-Id: %s\r\n", id);
    for (unsigned round = 1; round <= 2; round++) {
        wait_for(t.k.l, is_deaf, &t);
        assert_non_null(mo_endpoint_ask(
            t.k.ep, mo_endpoint_only(t.k.ep), "elicitation/create",
            MO_SPAN("{\"message\":\"m\"}"), on_asked, &answers));
        last = mo_endpoint_ask(
            t.k.ep, mo_endpoint_only(t.k.ep), "elicitation/create",
            MO_SPAN("{\"message\":\"unsaid\"}"), on_asked, &answers);
        mo_endpoint_unask(last);
        ask(&t, &get, "GET", headers, "");
        expect(&t, &get, "elicitation/create");
        assert_null(strstr(get.got.p, "unsaid"));
        assert_false(is_deaf(&t));
        (void)snprintf(name, sizeof(name), "%u", 2 * round - 1);
        reply_to(&t, id, name);
        assert_int_equal(answers, round);
        hang_up(&t, &get);
    }
    site_close(&t);
}

/* So many may wait; the end of the session ends them. */
static void test_push_most(void **state)
{
    unsigned answers = 0, n = 0;
    uint64_t peer;
    char id[64];
    struct site t;

    (void)state;
    site_open(&t, NULL, false);
    open_session(&t, "", id);
    on_session(&t, id, "POST", "",
               "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/initialized\"}",
               " 202 ");
    peer = mo_endpoint_only(t.k.ep);
    assert_null(mo_endpoint_ask(t.k.ep, peer, "roots/list", MO_SPAN("{}"),
                                on_asked, &answers)); /* not offered */
    while (mo_endpoint_ask(t.k.ep, peer, "elicitation/create",
                           MO_SPAN("{\"message\":\"m\"}"), on_asked, &answers))
        n++;
    assert_int_equal(n, 16);
    on_session(&t, id, "DELETE", "", "", " 204 ");
    assert_int_equal(answers, 0);
    site_close(&t);
}

static void listen_on(struct site *t, char id[64])
{
    char headers[256];
    struct end get;

    open_session(t, "", id);
    on_session(t, id, "POST", "",
               "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/initialized\"}",
               " 202 ");
    (void)snprintf(headers, sizeof(headers), SSE "Mcp-Session-Id: %s\r\n", id);
    ask(t, &get, "GET", headers, "");
    expect(t, &get, "id: 0-0\n");
    hang_up(t, &get);
}

/* What is kept stays under both caps, however much is said. */
static void test_replay_cap(void **state)
{
    struct mo_endpoint_limits small = {.replay = 1000, .replay_all = 1500};
    char a[64], b[64];
    struct site t;

    (void)state;
    site_open(&t, &small, false);
    listen_on(&t, a);
    for (unsigned i = 0; i < 100; i++)
        mo_endpoint_changed(t.k.ep, MO_EP_CH_TOOLS);
    assert_in_range(mo_endpoint_stats(t.k.ep).replay, 900, 1000);
    listen_on(&t, b);
    for (unsigned i = 0; i < 100; i++)
        mo_endpoint_changed(t.k.ep, MO_EP_CH_TOOLS);
    assert_in_range(mo_endpoint_stats(t.k.ep).replay, 1400, 1500);
    on_session(&t, a, "DELETE", "", "", " 204 ");
    on_session(&t, b, "DELETE", "", "", " 204 ");
    assert_int_equal(mo_endpoint_stats(t.k.ep).replay, 0);
    site_close(&t);
}

/* The connection breaks, the call goes on, the answer is fetched later. */
static void test_resume(void **state)
{
    char id[64], headers[256];
    struct end post, get;
    struct site t;

    (void)state;
    site_open(&t, NULL, false);
    open_session(&t, "", id);
    (void)snprintf(headers, sizeof(headers), BOTH "Mcp-Session-Id: %s\r\n", id);
    ask(&t, &post, "POST", headers, CALL("park", ""));
    expect(&t, &post, "id: 2-0\n"); /* 0: the GET stream, 1: initialize */
    hang_up(&t, &post);
    (void)snprintf(headers, sizeof(headers),
                   SSE "Mcp-Session-Id: %s\r\nLast-Event-ID: 2-0\r\n", id);
    ask(&t, &get, "GET", headers, "");
    expect(&t, &get, "text/event-stream");
    assert_non_null(t.k.parked);
    mo_ep_call_result(t.k.parked, MO_SPAN(TEXT("late")));
    expect(&t, &get, "\r\n0\r\n\r\n");
    hang_up(&t, &get);
    on_session(&t, id, "GET", "Last-Event-ID: 2-0\r\n", "", "late");
    on_session(&t, id, "GET", "Last-Event-ID: x\r\n", "", " 400 ");
    site_close(&t);
    assert_int_equal(t.k.cancels, 0);
}

static bool is_parked(void *ctx)
{
    return ((struct site *)ctx)->k.parked != NULL;
}

/* An answer that comes soon is one piece of JSON, of which nothing is kept. */
static void test_soon(void **state)
{
    struct mo_endpoint_limits patient = {.soon_ms = 3600000};
    char id[64], headers[256];
    struct end post;
    struct site t;

    (void)state;
    site_open(&t, &patient, false);
    open_session(&t, "", id);
    (void)snprintf(headers, sizeof(headers), BOTH "Mcp-Session-Id: %s\r\n", id);
    ask(&t, &post, "POST", headers, CALL("park", ""));
    wait_for(t.k.l, is_parked, &t);
    mo_ep_call_result(t.k.parked, MO_SPAN(TEXT("quick")));
    expect(&t, &post, "quick");
    assert_non_null(strstr(post.got.p, "Content-Type: application/json\r\n"));
    assert_null(strstr(post.got.p, "id: "));
    assert_int_equal(mo_endpoint_stats(t.k.ep).replay, 0);
    hang_up(&t, &post);
    site_close(&t);
}

static bool was_canceled(void *ctx)
{
    return ((struct site *)ctx)->k.cancels > 0;
}

static void test_modern_hangup(void **state)
{
    struct site t;
    struct end me;

    (void)state;
    site_open(&t, NULL, false);
    ask(&t, &me, "POST", MODERN("tools/call", "park"), CALL("park", "," META));
    wait_for(t.k.l, is_parked, &t);
    hang_up(&t, &me);
    wait_for(t.k.l, was_canceled, &t);
    assert_int_equal(mo_endpoint_stats(t.k.ep).calls, 0);
    site_close(&t);
}

static bool no_listens(void *ctx)
{
    return mo_endpoint_stats(((struct site *)ctx)->k.ep).listens == 0;
}

static void test_listen(void **state)
{
    struct mo_endpoint_limits brief = {.keepalive_ms = 10};
    struct site t;
    struct end me;

    (void)state;
    site_open(&t, &brief, false);
    ask(&t, &me, "POST", MODERN("subscriptions/listen", "x"),
        REQ("1", "subscriptions/listen",
            "\"notifications\":{\"toolsListChanged\":true}," META));
    expect(&t, &me, "notifications/subscriptions/acknowledged");
    mo_endpoint_changed(t.k.ep, MO_EP_CH_TOOLS);
    expect(&t, &me, "notifications/tools/list_changed");
    expect(&t, &me, ": keep-alive\n"); /* a comment, for proxies */
    assert_null(strstr(me.got.p, "\nid:"));
    hang_up(&t, &me);
    wait_for(t.k.l, no_listens, &t);
    ask(&t, &me, "POST", MODERN("subscriptions/listen", "x"),
        REQ("5", "subscriptions/listen", "\"notifications\":{}," META));
    expect(&t, &me, "notifications/subscriptions/acknowledged");
    mo_ep_http_free(t.http); /* we end, and say so */
    t.http = NULL;
    expect(&t, &me,
           "\"id\":5,\"result\":{\"resultType\":\"complete\","
           "\"_meta\":{\"" P "subscriptionId\":5}}");
    expect(&t, &me, "\r\n0\r\n\r\n");
    assert_null(strstr(me.got.p, "notifications/cancelled"));
    hang_up(&t, &me);
    site_close(&t);
}

/* A task's question on the stream of tasks/result, which breaks and is taken
 * up again; the outcome comes there, too. */
static void test_task(void **state)
{
    char id[64], headers[256], body[256], task[64] = "";
    struct end post, get;
    struct site t;

    (void)state;
    site_open(&t, NULL, false);
    open_session(&t, "", id);
    (void)snprintf(headers, sizeof(headers), BOTH "Mcp-Session-Id: %s\r\n", id);
    ask(&t, &post, "POST", headers, CALL("ask", ",\"task\":{}"));
    expect(&t, &post, "\"taskId\":\"");
    assert_int_equal(sscanf(strstr(post.got.p, "\"taskId\":\""),
                            "\"taskId\":\"%63[^\"]", task),
                     1);
    assert_non_null(strstr(post.got.p, "Content-Type: application/json"));
    hang_up(&t, &post);
    (void)snprintf(body, sizeof(body),
                   REQ("2", "tasks/result", "\"taskId\":\"%s\""), task);
    ask(&t, &post, "POST", headers, body);
    expect(&t, &post, "\"method\":\"elicitation/create\"");
    expect(&t, &post, task);
    hang_up(&t, &post);
    (void)snprintf(headers, sizeof(headers),
                   SSE "Mcp-Session-Id: %s\r\nLast-Event-ID: 3-0\r\n", id);
    ask(&t, &get, "GET", headers, "");
    expect(&t, &get, "\"method\":\"elicitation/create\""); /* once more */
    on_session(&t, id, "POST", "",
               "{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{\"a\":1}}", " 202 ");
    expect(&t, &get,
           "\"id\":2,\"result\":{\"content\":[],"
           "\"structuredContent\":{\"a\":1},\"_meta\":");
    expect(&t, &get, "\r\n0\r\n\r\n");
    hang_up(&t, &get);
    site_close(&t);
}

/* --- an answer longer than the httpd would queue ------------------------- */

static bool was_called(void *ctx)
{
    struct site *t = ctx;

    return t->k.calls > 0 && mo_endpoint_stats(t->k.ep).calls == 0;
}

/* Ask for it and do not read. */
static void ask_big(struct site *t, struct end *me, const char *headers,
                    const char *more)
{
    char body[512];

    (void)snprintf(body, sizeof(body), CALL("big", "%s"), more);
    t->k.calls = 0;
    ask(t, me, "POST", headers, body);
    mo_stream_pause(me->s);
    wait_for(t->k.l, was_called, t);
    assert_true(me->got.len < KIT_BIG / 2);
}

static bool has_all(void *ctx)
{
    return mo_span_ends(mo_buf_view(&((struct end *)ctx)->got),
                        MO_SPAN("\r\n0\r\n\r\n"));
}

static void read_big(struct site *t, struct end *me)
{
    size_t x = 0;

    mo_stream_resume(me->s);
    wait_for(t->k.l, has_all, me);
    for (size_t i = 0; i < me->got.len; i++)
        x += me->got.p[i] == 'x';
    assert_true(x >= KIT_BIG && x < KIT_BIG + 100);
    hang_up(t, me);
}

static void test_long(void **state)
{
    char id[64], headers[256];
    struct end me, late;
    struct site t;

    (void)state;
    site_open(&t, NULL, false);
    ask_big(&t, &me, MODERN("tools/call", "big"), "," META);
    read_big(&t, &me);
    open_session(&t, "", id);
    (void)snprintf(headers, sizeof(headers), BOTH "Mcp-Session-Id: %s\r\n", id);
    ask_big(&t, &me, headers, "");
    on_session(&t, id, "DELETE", "", "", " 204 "); /* which does not cut it */
    ask_big(&t, &late, MODERN("tools/call", "big"), "," META);
    hang_up(&t, &late); /* nobody wants it any more */
    read_big(&t, &me);
    ask_big(&t, &me, MODERN("tools/call", "big"), "," META);
    mo_ep_http_free(t.http); /* we go before it is sent */
    t.http = NULL;
    mo_stream_resume(me.s);
    wait_for(t.k.l, end_at_eof, &me);
    hang_up(&t, &me);
    site_close(&t);
}

/* Everything is still open when the endpoint goes. */
static void test_close_busy(void **state)
{
    char id[64], headers[256];
    struct end get, post, modern;
    struct site t;

    (void)state;
    site_open(&t, NULL, false);
    open_session(&t, "", id);
    (void)snprintf(headers, sizeof(headers), BOTH "Mcp-Session-Id: %s\r\n", id);
    ask(&t, &get, "GET", headers, "");
    expect(&t, &get, "id: 0-0");
    ask(&t, &post, "POST", headers, CALL("ask", ""));
    expect(&t, &post, "elicitation/create");
    ask(&t, &modern, "POST", MODERN("tools/call", "park"),
        CALL("park", "," META));
    wait_for(t.k.l, is_parked, &t);
    mo_ep_http_free(t.http);
    t.http = NULL;
    wait_for(t.k.l, was_canceled, &t);
    expect(&t, &post, "\r\n0\r\n\r\n");
    hang_up(&t, &get);
    hang_up(&t, &post);
    hang_up(&t, &modern);
    site_close(&t);
}

/* --- memory runs out ----------------------------------------------------- */

struct raw { /* a client that needs no memory of the program's */
    int fd;
    char got[32768];
    size_t n;
    bool closed;
};

static void raw_open(struct raw *r, unsigned port)
{
    struct sockaddr_in a = {.sin_family = AF_INET,
                            .sin_port = htons((uint16_t)port),
                            .sin_addr = {htonl(INADDR_LOOPBACK)}};

    *r = (struct raw){.fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)};
    assert_true(r->fd >= 0);
    assert_int_equal(connect(r->fd, (struct sockaddr *)&a, sizeof(a)), 0);
}

/* Is there something more, or the end? */
static bool raw_heard(void *ctx)
{
    struct raw *r = ctx;
    ssize_t n =
        recv(r->fd, r->got + r->n, sizeof(r->got) - 1 - r->n, MSG_DONTWAIT);

    if (n > 0)
        r->n += (size_t)n;
    r->closed |= n == 0 || (n < 0 && errno != EAGAIN);
    return n > 0 || r->closed;
}

/* Say it and give the server a moment: without memory it may stay silent. */
static void raw_ask(struct site *t, struct raw *r, const char *method,
                    const char *headers, const char *body)
{
    char text[2048];
    int n = snprintf(text, sizeof(text),
                     "%s /mcp HTTP/1.1\r\nHost: localhost\r\n%s"
                     "Content-Length: %zu\r\n\r\n%s",
                     method, headers, strlen(body), body);

    if (r->closed || send(r->fd, text, (size_t)n, MSG_NOSIGNAL) != n)
        return;
    (void)mo_loop_until(t->k.l, raw_heard, r, 20);
}

static void play_scarce(struct site *t)
{
    unsigned port = mo_httpd_port(t->httpd);
    char headers[256];
    struct raw a, b, c;
    const char *sid;

    raw_open(&a, port);
    raw_open(&b, port);
    raw_open(&c, port);
    raw_ask(t, &a, "POST", BOTH, INIT("2025-11-25"));
    sid = strstr(a.got, "Mcp-Session-Id: ");
    if (sid) {
        (void)snprintf(headers, sizeof(headers), BOTH "%.*s\r\n",
                       (int)strcspn(sid, "\r"), sid);
        raw_ask(t, &b, "GET", headers, "");
        raw_ask(t, &a, "POST", headers, CALL("talk", ""));
        raw_ask(t, &a, "POST", headers, CALL("park", ",\"task\":{}"));
        raw_ask(t, &a, "POST", headers, CALL("ask", ""));
        mo_endpoint_changed(t->k.ep, MO_EP_CH_TOOLS);
        (void)shutdown(a.fd, SHUT_RDWR);
        (void)mo_loop_until(t->k.l, raw_heard, &a, 20);
    }
    raw_ask(t, &c, "POST", MODERN("tools/call", "now"), CALL("now", "," META));
    raw_ask(t, &c, "POST", MODERN("subscriptions/listen", "x"),
            REQ("1", "subscriptions/listen",
                "\"notifications\":{\"toolsListChanged\":true}," META));
    mo_endpoint_changed(t->k.ep, MO_EP_CH_TOOLS);
    (void)close(a.fd);
    (void)close(b.fd);
    (void)close(c.fd);
}

static void no_memory(void *ctx)
{
    struct site t = {.closed = false};
    struct mo_httpd_opts ho = {.handler = on_request, .ctx = &t};
    struct mo_ep_http_opts eo = {.body = 4096};
    struct mo_listen_opts lo = {.addr = "127.0.0.1:0"};

    if (kit_open(&t.k, ctx, NULL) < 0)
        return;
    t.http = mo_ep_http_new(t.k.ep, &eo, NULL);
    t.httpd = mo_httpd_new(t.k.l, &ho, NULL);
    if (t.http && t.httpd && mo_httpd_listen(t.httpd, &lo, NULL) == 0)
        play_scarce(&t);
    mo_ep_http_free(t.http);
    if (t.httpd)
        mo_httpd_close(t.httpd, 0, NULL, NULL);
    mo_loop_run(t.k.l);
    mo_endpoint_free(t.k.ep);
}

static void test_torture(void **state)
{
    struct mo_loop *l = loop_new();

    (void)state;
    torture(no_memory, l);
    mo_loop_free(l);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_rows),
        cmocka_unit_test(test_session),
        cmocka_unit_test(test_session_cap),
        cmocka_unit_test(test_session_idle),
        cmocka_unit_test(test_push),
        cmocka_unit_test(test_push_waits),
        cmocka_unit_test(test_push_most),
        cmocka_unit_test(test_replay_cap),
        cmocka_unit_test(test_resume),
        cmocka_unit_test(test_soon),
        cmocka_unit_test(test_modern_hangup),
        cmocka_unit_test(test_listen),
        cmocka_unit_test(test_task),
        cmocka_unit_test(test_long),
        cmocka_unit_test(test_close_busy),
        cmocka_unit_test(test_torture),
    };

    kit_setup(MO_EP_CALL_TASKS, NULL);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
