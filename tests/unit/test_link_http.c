/* The HTTP link against a scripted server on our own httpd.
 *
 * A row is a little play: what the client does, what the server answers to
 * which request, and what both have seen in the end. */
#include "loop/httpd.h"
#include "mcp/link/link_http.h"
#include "mo_net.h"

#define SEEN_MAX ((size_t)1 << 20)

enum then { DONE, STAY, CUT };

struct answer {
    const char *on; /* "POST 1", "POST -", "GET last-id", "GET -", "DELETE" */
    int status;
    const char *ctype, *body; /* ' is written as " */
    const char *header, *value;
    enum then then; /* what follows the body of a stream */
};

struct row {
    const char *name;
    /* rN/mN: legacy/modern request N; n: a message without answer; o: opened;
     * fN: forget; cN, sN: until the client, the server saw N lines; w: until
     * an authorizer was asked */
    const char *acts;
    struct answer answers[8];
    const char *server, *client;
};

struct rig {
    struct mo_loop *l;
    struct mo_httpd *d;
    struct mo_httpc *c;
    struct mo_link *k;
    const struct row *row;
    bool used[8];
    struct mo_buf server, client;
    struct mo_buf text;
    bool closed;
    unsigned inside; /* a call on the link is under way */
    size_t want;
    unsigned fds;
    unsigned *refused;  /* counted by an authorizer, or NULL */
    uint64_t forget_on; /* this message makes the owner forget its stream */
};

static void put_json(struct mo_buf *b, const char *s)
{
    for (; *s; s++)
        mo_buf_putc(b, *s == '\'' ? '"' : *s);
}

static size_t lines_in(const struct mo_buf *b)
{
    size_t n = 0;

    for (size_t i = 0; i < b->len; i++)
        n += b->p[i] == '\n';
    return n;
}

/* --- the server ---------------------------------------------------------- */

static const struct answer *find_answer(struct rig *g, struct mo_span key)
{
    for (size_t i = 0; i < MO_COUNT(g->used) && g->row->answers[i].on; i++) {
        if (g->used[i] || !mo_span_is(key, g->row->answers[i].on))
            continue;
        g->used[i] = true;
        return &g->row->answers[i];
    }
    return NULL;
}

static void put_header(struct rig *g, struct mo_req *rq, const char *name,
                       const char *tag)
{
    struct mo_span v = mo_http_get(rq->head, name);

    if (v.p)
        mo_buf_printf(&g->server, " %s=%.*s", tag, (int)v.n, v.p);
}

static void reply(struct rig *g, struct mo_req *rq, struct mo_span key)
{
    const struct answer *a = find_answer(g, key);
    struct mo_buf b;

    mo_buf_span(&g->server, key);
    put_header(g, rq, "mcp-session-id", "s");
    put_header(g, rq, "mcp-protocol-version", "v");
    put_header(g, rq, "mcp-method", "method");
    put_header(g, rq, "mcp-name", "name");
    put_header(g, rq, "mcp-param-region", "region");
    put_header(g, rq, "authorization", "auth");
    mo_buf_puts(&g->server, "\n");
    if (!a) {
        mo_req_reply(rq, 405, "text/plain", MO_SPAN("no"));
        return;
    }
    if (a->header)
        mo_req_header(rq, a->header, mo_span_cstr(a->value));
    mo_buf_init(&b, SEEN_MAX);
    put_json(&b, a->body ? a->body : "");
    if (a->ctype && strcmp(a->ctype, "text/event-stream") == 0) {
        mo_req_start(rq, a->status, a->ctype);
        if (b.len)
            (void)mo_req_write(rq, mo_buf_view(&b)); /* it may be gone */
        if (a->then == DONE)
            mo_req_end(rq);
        else if (a->then == CUT)
            mo_req_abort(rq);
    } else {
        mo_req_reply(rq, a->status, a->ctype, mo_buf_view(&b));
    }
    mo_buf_fini(&b);
}

static void on_body(struct mo_req *rq, struct mo_span body)
{
    struct rig *g = rq->data;
    struct mo_rpc m;
    char key[64];

    assert_int_equal(mo_rpc_parse(body, &m, NULL), 0);
    assert_true(
        mo_span_is(mo_http_get(rq->head, "content-type"), "application/json"));
    assert_true(mo_span_is(mo_http_get(rq->head, "accept"),
                           "application/json, text/event-stream"));
    (void)snprintf(key, sizeof(key), "POST %.*s", m.id.p ? (int)m.id.n : 1,
                   m.id.p ? m.id.p : "-");
    reply(g, rq, mo_span_cstr(key));
}

static void handler(void *ctx, struct mo_req *rq)
{
    struct mo_span last;
    char key[64];

    rq->data = ctx;
    if (rq->head->method == MO_HTTP_POST) {
        mo_req_body(rq, 0, on_body);
        return;
    }
    if (rq->head->method == MO_HTTP_DELETE) {
        reply(ctx, rq, MO_SPAN("DELETE"));
        return;
    }
    last = mo_http_get(rq->head, "last-event-id");
    (void)snprintf(key, sizeof(key), "GET %.*s", last.p ? (int)last.n : 1,
                   last.p ? last.p : "-");
    reply(ctx, rq, mo_span_cstr(key));
}

/* --- the client ---------------------------------------------------------- */

static void on_message(void *ctx, const struct mo_rpc *m, uint64_t stream_of)
{
    struct rig *g = ctx;

    assert_false(g->closed);
    assert_int_equal(g->inside, 0);
    mo_buf_printf(&g->client, "%llu %.*s\n", (unsigned long long)stream_of,
                  m->root.n < 200 ? (int)m->root.n : 200, m->root.p);
    if (g->forget_on && stream_of == g->forget_on)
        mo_link_forget(g->k, stream_of);
}

static void on_failed(void *ctx, uint64_t id, int status, struct mo_span body,
                      const struct mo_err *why)
{
    struct rig *g = ctx;

    assert_false(g->closed);
    assert_int_equal(g->inside, 0);
    mo_buf_printf(&g->client, "%llu failed %d %s", (unsigned long long)id,
                  status, mo_err_name(why->code));
    if (body.n)
        mo_buf_printf(&g->client, " %.*s", (int)body.n, body.p);
    mo_buf_puts(&g->client, "\n");
}

static void on_noise(void *ctx, struct mo_span line)
{
    struct rig *g = ctx;

    mo_buf_printf(&g->client, "noise %.*s\n", (int)(line.n < 20 ? line.n : 20),
                  line.p);
}

static void on_close(void *ctx, const struct mo_err *why)
{
    struct rig *g = ctx;

    (void)why;
    assert_false(g->closed);
    assert_int_equal(g->inside, 0);
    g->closed = true;
}

static const struct mo_link_cb link_cb = {on_message, on_failed, on_noise,
                                          on_close};

static void set_true(void *ctx)
{
    *(bool *)ctx = true;
}

static bool is_true(void *ctx)
{
    return *(bool *)ctx;
}

static bool client_saw(void *ctx)
{
    struct rig *g = ctx;

    return lines_in(&g->client) >= g->want;
}

static bool client_failed(void *ctx)
{
    struct rig *g = ctx;

    return mo_span_search(mo_buf_view(&g->client), MO_SPAN("failed")) >= 0;
}

static bool server_saw(void *ctx)
{
    struct rig *g = ctx;

    return lines_in(&g->server) >= g->want;
}

static bool is_refused(void *ctx)
{
    return *((struct rig *)ctx)->refused > 0;
}

static int send_msg(struct rig *g, uint64_t id, bool modern)
{
    static const struct mo_link_param params[] = {
        {{"Region", 6}, {"M\xc3\xbcnchen", 8}}};
    struct mo_link_msg m = {.id = id, .method = "tools/call"};
    int rc;

    mo_buf_reset(&g->text);
    if (id)
        mo_buf_printf(&g->text,
                      "{\"jsonrpc\":\"2.0\",\"id\":%llu,\"method\":\"m\"}",
                      (unsigned long long)id);
    else
        mo_buf_puts(&g->text, "{\"jsonrpc\":\"2.0\",\"method\":\"n\"}");
    m.text = mo_buf_view(&g->text);
    if (modern) {
        m.modern = true;
        m.version = "2026-07-28";
        m.name = MO_SPAN("add");
        m.params = params;
        m.nparams = 1;
    }
    g->inside++;
    rc = mo_link_send(g->k, &m);
    g->inside--;
    return rc;
}

static void act(struct rig *g, char what, uint64_t n)
{
    g->want = (size_t)n;
    g->inside += !strchr("csw", what);
    if (what == 'r' || what == 'm' || what == 'n')
        assert_int_equal(send_msg(g, what == 'n' ? 0 : n, what == 'm'), 0);
    else if (what == 'o')
        mo_link_opened(g->k, "2025-11-25");
    else if (what == 'f')
        mo_link_forget(g->k, n);
    else if (what == 'F')
        g->forget_on = n;
    g->inside -= !strchr("csw", what);
    if (what == 'w')
        wait_for(g->l, is_refused, g);
    if (what == 'c' && !mo_loop_until(g->l, client_saw, g, WAIT_MS))
        fail_msg("row '%s': the client saw only:\n%s", g->row->name,
                 mo_buf_cstr(&g->client));
    if (what == 's' && !mo_loop_until(g->l, server_saw, g, WAIT_MS))
        fail_msg("row '%s': the server saw only:\n%s", g->row->name,
                 mo_buf_cstr(&g->server));
}

static void rig_up_with(struct rig *g, const struct row *row,
                        struct mo_auth *auth)
{
    static const struct mo_http_header own[] = {
        {{"Authorization", 13}, {"Bearer x", 8}}};
    struct mo_httpd_opts d = {.handler = handler, .ctx = g};
    struct mo_listen_opts at = {.addr = "127.0.0.1:0"};
    struct mo_httpc_opts c = {.active = 64};
    struct mo_link_http_opts o = {
        .headers = own, .nheaders = 1, .message_max = 4096};
    char url[64];
    struct mo_err e;

    *g = (struct rig){.row = row, .fds = fds_open()};
    mo_buf_init(&g->server, SEEN_MAX);
    mo_buf_init(&g->client, SEEN_MAX);
    mo_buf_init(&g->text, SEEN_MAX);
    g->l = loop_new();
    g->d = mo_httpd_new(g->l, &d, &e);
    assert_non_null(g->d);
    assert_int_equal(mo_httpd_listen(g->d, &at, &e), 0);
    g->c = mo_httpc_new(g->l, &c, &e);
    assert_non_null(g->c);
    (void)snprintf(url, sizeof(url), "http://127.0.0.1:%u/mcp",
                   mo_httpd_port(g->d));
    o.http = g->c;
    o.url = url;
    o.auth = auth;
    o.nheaders = auth ? 0 : 1;
    assert_int_equal(mo_link_http(g->l, &o, &g->k, &e), 0);
    assert_true(mo_link_is_http(g->k));
    mo_link_attach(g->k, &link_cb, g);
}

static void rig_up(struct rig *g, const struct row *row)
{
    rig_up_with(g, row, NULL);
}

static void rig_down(struct rig *g)
{
    bool http = false, httpd = false;

    if (!g->closed) {
        g->inside++;
        mo_link_close(g->k, NULL);
        g->inside--;
        assert_false(g->closed);
        wait_for(g->l, is_true, &g->closed);
    }
    mo_httpc_close(g->c, set_true, &http);
    wait_for(g->l, is_true, &http);
    mo_httpd_close(g->d, 0, set_true, &httpd);
    wait_for(g->l, is_true, &httpd);
    mo_loop_run(g->l);
    mo_loop_free(g->l);
    assert_int_equal(fds_open(), g->fds);
    mo_buf_fini(&g->server);
    mo_buf_fini(&g->client);
    mo_buf_fini(&g->text);
}

/* Every line of the server ends in the same credentials: not compared. */
static void strip_auth(struct mo_buf *b)
{
    static const struct mo_span auth = {" auth=Bearer x", 14};
    struct mo_span s = mo_buf_view(b);
    ptrdiff_t at = mo_span_search(s, auth);

    while (at >= 0) {
        memmove(b->p + at, b->p + at + auth.n, b->len - (size_t)at - auth.n);
        b->len -= auth.n;
        s = mo_buf_view(b);
        at = mo_span_search(s, auth);
    }
}

/* What every modern request of ours has, in short. */
static void strip_modern(struct mo_buf *b)
{
    static const char all[] = " v=2026-07-28 method=tools/call name=add "
                              "region==?base64?TcO8bmNoZW4=?=";
    size_t n = sizeof(all) - 1, to = sizeof(" MODERN") - 1;
    ptrdiff_t at = mo_span_search(mo_buf_view(b), mo_span(all, n));

    while (at >= 0) {
        char *p = b->p + at;

        memcpy(p, " MODERN", to);
        memmove(p + to, p + n, b->len - (size_t)at - n);
        b->len -= n - to;
        at = mo_span_search(mo_buf_view(b), mo_span(all, n));
    }
}

static void play_with(const struct row *row, struct mo_auth *auth,
                      struct mo_loop **l, unsigned *refused)
{
    struct rig g;
    struct mo_buf want;

    rig_up_with(&g, row, auth);
    g.refused = refused;
    if (l)
        *l = g.l;
    for (const char *p = row->acts; *p;) {
        char what = *p++, *end;
        uint64_t n = strtoull(p, &end, 10);

        act(&g, what, n);
        p = *end == ' ' ? end + 1 : end;
    }
    if (!g.closed) {
        mo_link_close(g.k, NULL);
        wait_for(g.l, is_true, &g.closed);
    }
    strip_auth(&g.server);
    if (auth)
        strip_modern(&g.server);
    mo_buf_init(&want, SEEN_MAX);
    put_json(&want, row->server);
    if (!mo_span_eq(mo_buf_view(&want), mo_buf_view(&g.server)))
        fail_msg("row '%s': the server saw\n%s", row->name,
                 mo_buf_cstr(&g.server));
    mo_buf_reset(&want);
    put_json(&want, row->client);
    if (!mo_span_eq(mo_buf_view(&want), mo_buf_view(&g.client)))
        fail_msg("row '%s': the client saw\n%s", row->name,
                 mo_buf_cstr(&g.client));
    mo_buf_fini(&want);
    rig_down(&g);
}

static void play(const struct row *row)
{
    play_with(row, NULL, NULL, NULL);
}

#define J     "application/json"
#define S     "text/event-stream"
#define R1    "{'jsonrpc':'2.0','id':1,'result':{}}"
#define R2    "{'jsonrpc':'2.0','id':2,'result':{}}"
#define N     "{'jsonrpc':'2.0','method':'n'}"
#define EV(x) "data: " x "\n\n"

static const struct row rows[] = {
    {"JSON answer",
     "r1 c1",
     {{"POST 1", 200, J, R1}},
     "POST 1\n",
     "1 " R1 "\n"},
    {"JSON with a charset",
     "r1 c1",
     {{"POST 1", 200, "application/json; charset=utf-8", R1}},
     "POST 1\n",
     "1 " R1 "\n"},
    {"events, then the answer",
     "r1 c2",
     {{"POST 1", 200, S, EV(N) ": hello\n\n" EV(R1)}},
     "POST 1\n",
     "1 " N "\n1 " R1 "\n"},
    {"two at once",
     "r1 c1 r2 c2",
     {{"POST 1", 200, S, EV(R1), NULL, NULL, STAY}, {"POST 2", 200, J, R2}},
     "POST 1\nPOST 2\n",
     "1 " R1 "\n2 " R2 "\n"},
    {"another event name is not ours",
     "r1 c1",
     {{"POST 1", 200, S, "event: odd\n" EV(N) EV(R1)}},
     "POST 1\n",
     "1 " R1 "\n"},
    {"empty data is no message",
     "r1 c1",
     {{"POST 1", 200, S, "id: a\ndata:\n\n" EV(R1)}},
     "POST 1\n",
     "1 " R1 "\n"},
    {"a note is taken", "n s1", {{"POST -", 202}}, "POST -\n", ""},
    {"a note is not taken", "n s1", {{"POST -", 500}}, "POST -\n", ""},
    {"202 for a request",
     "r1 c1",
     {{"POST 1", 202}},
     "POST 1\n",
     "1 failed 202 protocol\n"},
    {"HTML",
     "r1 c1",
     {{"POST 1", 200, "text/html", "<p>"}},
     "POST 1\n",
     "1 failed 200 protocol\n"},
    {"not JSON",
     "r1 c2",
     {{"POST 1", 200, J, "{oops"}},
     "POST 1\n",
     "noise {oops\n1 failed 200 protocol\n"},
    {"noise among events",
     "r1 c2",
     {{"POST 1", 200, S, EV("oops") EV(R1)}},
     "POST 1\n",
     "noise oops\n1 " R1 "\n"},
    {"an answer to somebody else",
     "r1 c2",
     {{"POST 1", 200, J, R2}},
     "POST 1\n",
     "1 " R2 "\n1 failed 200 protocol\n"},
    {"400 with an error",
     "r1 c1",
     {{"POST 1", 400, J, "{'jsonrpc':'2.0','id':null}"}},
     "POST 1\n",
     "1 failed 400 protocol {'jsonrpc':'2.0','id':null}\n"},
    {"503",
     "r1 c1",
     {{"POST 1", 503, "text/plain", "later"}},
     "POST 1\n",
     "1 failed 503 unavailable later\n"},
    {"302 is not followed",
     "r1 c1",
     {{"POST 1", 302, NULL, NULL, "Location", "http://127.0.0.1:1/"}},
     "POST 1\n",
     "1 failed 302 protocol\n"},
    {"session: taken, echoed, ended",
     "r1 c1 o n s2 s3 r2 c2",
     {{"POST 1", 200, J, R1, "Mcp-Session-Id", "S7"},
      {"POST -", 202},
      {"GET -", 405},
      {"POST 2", 200, J, R2},
      {"DELETE", 200}},
     "POST 1\nPOST - s=S7\nGET - s=S7 v=2025-11-25\nPOST 2 s=S7\n"
     "DELETE s=S7 v=2025-11-25\n",
     "1 " R1 "\n2 " R2 "\n"},
    {"a session id that is none",
     "r1 c1 r2 c2",
     {{"POST 1", 200, J, R1, "Mcp-Session-Id", "two words"},
      {"POST 2", 200, J, R2}},
     "POST 1\nPOST 2\n",
     "1 " R1 "\n2 " R2 "\n"},
    {"session lost",
     "r1 c1 r2 c2 n s3",
     {{"POST 1", 200, J, R1, "Mcp-Session-Id", "S7"},
      {"POST 2", 404, "text/plain", "gone"},
      {"POST -", 202}},
     "POST 1\nPOST 2 s=S7\nPOST -\n",
     "1 " R1 "\n2 failed 404 protocol gone\n"},
    {"stream of no request",
     "o n c1",
     {{"POST -", 202}, {"GET -", 200, S, EV(N), NULL, NULL, STAY}},
     "POST -\nGET - v=2025-11-25\n",
     "0 " N "\n"},
    {"stream of no request, cut",
     "o n c2 s3",
     {{"POST -", 202},
      {"GET -", 200, S, "retry: 1\nid: e1\n" EV(N), NULL, NULL, CUT},
      {"GET e1", 200, S, "id: e2\n" EV(N), NULL, NULL, STAY}},
     "POST -\nGET - v=2025-11-25\nGET e1 v=2025-11-25\n",
     "0 " N "\n0 " N "\n"},
    {"answer after a cut",
     "r1 c1",
     {{"POST 1", 200, S, "id: e1\nretry: 2\ndata:\n\n", NULL, NULL, CUT},
      {"GET e1", 200, S, EV(R1)}},
     "POST 1\nGET e1\n",
     "1 " R1 "\n"},
    {"polling: the server ends, we come again",
     "r1 c2",
     {{"POST 1", 200, S, "id: e1\nretry: 1\ndata:\n\n"},
      {"GET e1", 200, S, "id: e2\n" EV(N)},
      {"GET e2", 200, S, ": nothing yet\n\n"},
      {"GET e2", 200, S, EV(R1)}},
     "POST 1\nGET e1\nGET e2\nGET e2\n",
     "1 " N "\n1 " R1 "\n"},
    {"cut without an id",
     "r1 c2",
     {{"POST 1", 200, S, EV(N), NULL, NULL, CUT}},
     "POST 1\n",
     "1 " N "\n1 failed 200 closed\n"},
    {"ended without an id",
     "r1 c2",
     {{"POST 1", 200, S, EV(N)}},
     "POST 1\n",
     "1 " N "\n1 failed 200 protocol\n"},
    {"cut behind the answer",
     "r1 c1 r2 c2",
     {{"POST 1", 200, S, "id: e1\n" EV(R1), NULL, NULL, CUT},
      {"POST 2", 200, J, R2}},
     "POST 1\nPOST 2\n",
     "1 " R1 "\n2 " R2 "\n"},
    {"no way to take it up",
     "r1 c1",
     {{"POST 1", 200, S, "id: e1\nretry: 1\ndata:\n\n"}, {"GET e1", 405}},
     "POST 1\nGET e1\n",
     "1 failed 405 protocol\n"},
    {"modern streams are not taken up",
     "m1 c1",
     {{"POST 1", 200, S, "id: e1\nretry: 1\ndata:\n\n"}},
     "POST 1 v=2026-07-28 method=tools/call name=add "
     "region==?base64?TcO8bmNoZW4=?=\n",
     "1 failed 200 protocol\n"},
    {"forgotten while it runs",
     "r1 s1 f1 r2 c1",
     {{"POST 1", 200, S, ": wait\n\n", NULL, NULL, STAY},
      {"POST 2", 200, J, R2}},
     "POST 1\nPOST 2\n",
     "2 " R2 "\n"},
    {"forgotten in its own message",
     "F1 r1 c1 r2 c2",
     {{"POST 1", 200, S, EV(N) EV(N) EV(R1)}, {"POST 2", 200, J, R2}},
     "POST 1\nPOST 2\n",
     "1 " N "\n2 " R2 "\n"},
    {"forgotten before it was sent", "r1 f1", {{NULL}}, "", ""},
    {"closed with streams open",
     "r1 c1",
     {{"POST 1", 200, S, EV(N), NULL, NULL, STAY}},
     "POST 1\n",
     "1 " N "\n"},
};

static void plays(void **state)
{
    (void)state;
    for (size_t i = 0; i < MO_COUNT(rows); i++)
        play(&rows[i]);
}

/* --- limits -------------------------------------------------------------- */

static void huge(void **state)
{
    static char event[8192], json[8192];
    struct row big = {
        .name = "huge",
        .answers = {{"POST 1", 200, S, event}, {"POST 2", 200, J, json}},
    };
    struct rig g;

    (void)state;
    memset(event, 'x', sizeof(event) - 1);
    memcpy(event, "data: ", 6);
    memset(json, ' ', sizeof(json) - 1);
    rig_up(&g, &big);
    act(&g, 'r', 1);
    act(&g, 'c', 1);
    act(&g, 'r', 2);
    act(&g, 'c', 2);
    assert_string_equal(mo_buf_cstr(&g.client),
                        "1 failed 200 too_big\n2 failed 200 too_big\n");
    rig_down(&g);
}

/* 5000 messages are held back but all arrive; 12000 are a flood. */
static void flood(void **state)
{
    static const struct {
        unsigned n;
        bool all;
    } cases[] = {{5000, true}, {12000, false}};

    (void)state;
    for (size_t i = 0; i < MO_COUNT(cases); i++) {
        struct row row = {.name = "flood"};
        struct mo_span got;
        struct mo_buf b;
        struct rig g;

        mo_buf_init(&b, SEEN_MAX);
        for (unsigned k = 0; k < cases[i].n; k++)
            mo_buf_puts(&b, EV(N));
        mo_buf_puts(&b, EV(R1));
        row.answers[0] = (struct answer){"POST 1", 200, S, mo_buf_cstr(&b)};
        rig_up(&g, &row);
        act(&g, 'r', 1);
        g.want = cases[i].n + 1;
        if (cases[i].all)
            wait_for(g.l, client_saw, &g);
        else
            wait_for(g.l, client_failed, &g);
        got = mo_buf_view(&g.client);
        assert_true(lines_in(&g.client) <= cases[i].n + 1);
        assert_true(mo_span_ends(got, cases[i].all
                                          ? MO_SPAN("\"result\":{}}\n")
                                          : MO_SPAN("failed 200 protocol\n")));
        mo_buf_fini(&b);
        rig_down(&g);
    }
}

static void many(void **state)
{
    static const struct row silent = {.name = "many"};
    struct rig g;

    (void)state;
    rig_up(&g, &silent);
    for (uint64_t i = 1; i <= MO_LINK_HTTP_STREAMS; i++)
        assert_int_equal(send_msg(&g, i, false), 0);
    assert_int_equal(send_msg(&g, 99, false), MO_EBUSY);
    assert_int_equal(send_msg(&g, 0, false), 0);
    rig_down(&g);
}

static void challenge(void **state)
{
    static const struct row barred = {
        .name = "401",
        .answers = {{"POST 1", 401, NULL, NULL, "WWW-Authenticate",
                     "Bearer resource_metadata=\"https://a/b\""}},
    };
    struct rig g;

    (void)state;
    rig_up(&g, &barred);
    act(&g, 'r', 1);
    act(&g, 'c', 1);
    assert_string_equal(mo_buf_cstr(&g.client), "1 failed 401 policy\n");
    rig_down(&g);
}

static void nobody_there(void **state)
{
    static const struct row none = {.name = "nobody"};
    bool gone = false;
    struct rig g;

    (void)state;
    rig_up(&g, &none);
    mo_httpd_close(g.d, 0, set_true, &gone);
    wait_for(g.l, is_true, &gone);
    act(&g, 'r', 1);
    act(&g, 'c', 1);
    assert_string_equal(mo_buf_cstr(&g.client), "1 failed 0 unavailable\n");
    g.d = mo_httpd_new(
        g.l, &(struct mo_httpd_opts){.handler = handler, .ctx = &g}, NULL);
    assert_non_null(g.d);
    rig_down(&g);
}

/* Messages behind the gate wait until the server has taken it. */
static void gate(void **state)
{
    static const struct row order = {
        .name = "gate",
        .answers = {{"POST -", 202},
                    {"GET -", 405},
                    {"POST 1", 200, J, R1},
                    {"POST 2", 200, J, R2}},
    };
    struct rig g;

    (void)state;
    rig_up(&g, &order);
    act(&g, 'o', 0);
    act(&g, 'n', 0);
    act(&g, 'r', 1);
    act(&g, 'r', 2);
    act(&g, 'r', 3);
    act(&g, 'f', 3);
    act(&g, 'c', 2);
    assert_true(mo_span_starts(mo_buf_view(&g.server), MO_SPAN("POST - ")));
    assert_true(mo_span_search(mo_buf_view(&g.server), MO_SPAN("POST 3")) < 0);
    rig_down(&g);
}

/* --- an authorizer ------------------------------------------------------- */

enum verdict { GIVE, GIVE_UP, REFUSE, SILENT };

struct keys {
    struct mo_auth auth;
    struct mo_loop *l;
    enum verdict verdict;
    unsigned token, refused;
    int status; /* of the last refusal */
    bool local;
    struct mo_list waiting;
    struct mo_later later;
    char text[32], challenge[64];
};

static struct mo_span keys_header(struct mo_auth *a, uint64_t *serial)
{
    struct keys *k = mo_container_of(a, struct keys, auth);

    *serial = k->token;
    (void)snprintf(k->text, sizeof(k->text), "t%u", k->token);
    return k->token ? mo_span_cstr(k->text) : mo_span(NULL, 0);
}

static int keys_refused(struct mo_auth *a, struct mo_auth_wait *w, int status,
                        struct mo_span challenge, struct mo_err *e)
{
    struct keys *k = mo_container_of(a, struct keys, auth);

    k->refused++;
    k->status = status;
    k->local = w->local;
    (void)snprintf(k->challenge, sizeof(k->challenge), "%.*s", (int)challenge.n,
                   challenge.p ? challenge.p : "");
    if (k->verdict == REFUSE)
        return mo_fail(e, MO_EPOLICY, "no");
    mo_list_push(&k->waiting, &w->node);
    if (k->verdict != SILENT)
        mo_loop_defer(k->l, &k->later);
    return 0;
}

static void keys_tell(struct mo_later *d)
{
    struct keys *k = mo_container_of(d, struct keys, later);
    struct mo_err e;

    (void)mo_fail(&e, MO_ETIMEOUT, "nobody signed in");
    k->token += k->verdict == GIVE;
    while (!mo_list_empty(&k->waiting)) {
        struct mo_auth_wait *w =
            mo_list_first(&k->waiting, struct mo_auth_wait, node);

        mo_list_del(&w->node);
        w->done(w, k->verdict == GIVE ? NULL : &e);
    }
}

static const struct mo_auth_ops keys_ops = {keys_header, keys_refused};

static void keys_init(struct keys *k, enum verdict v)
{
    *k = (struct keys){.auth = {&keys_ops}, .verdict = v};
    mo_list_init(&k->waiting);
    mo_later_init(&k->later, keys_tell);
}

#define NO(on, status)                                                         \
    {                                                                          \
        on, status, NULL, NULL, "WWW-Authenticate", "Bearer a=b"               \
    }

static void authorized(void **state)
{
    static const struct {
        struct row row;
        enum verdict verdict;
        unsigned refused;
    } plays_[] = {
        {{"401, then it knows",
          "r1 c1",
          {NO("POST 1", 401), {"POST 1", 200, J, R1}},
          "POST 1\nPOST 1 auth=t1\n",
          "1 " R1 "\n"},
         GIVE,
         1},
        {{"403, twice",
          "m1 c1",
          {NO("POST 1", 403), NO("POST 1", 403), {"POST 1", 200, S, EV(R1)}},
          "POST 1 MODERN\nPOST 1 MODERN auth=t1\nPOST 1 MODERN auth=t2\n",
          "1 " R1 "\n"},
         GIVE,
         2},
        {{"never content",
          "r1 c1",
          {NO("POST 1", 401),
           NO("POST 1", 401),
           NO("POST 1", 401),
           NO("POST 1", 401),
           NO("POST 1", 401),
           {"POST 1", 200, J, R1}},
          "POST 1\nPOST 1 auth=t1\nPOST 1 auth=t2\nPOST 1 auth=t3\n"
          "POST 1 auth=t4\n",
          "1 failed 401 policy\n"},
         GIVE,
         MO_LINK_HTTP_REFUSALS},
        {{"nothing to be done",
          "r1 c1",
          {NO("POST 1", 401)},
          "POST 1\n",
          "1 failed 401 policy\n"},
         REFUSE,
         1},
        {{"nobody signs in",
          "r1 c1",
          {NO("POST 1", 401)},
          "POST 1\n",
          "1 failed 401 timeout\n"},
         GIVE_UP,
         1},
        {{"a note is said again",
          "n s2",
          {NO("POST -", 401), {"POST -", 202}},
          "POST -\nPOST - auth=t1\n",
          ""},
         GIVE,
         1},
        {{"the stream of no request, too",
          "o n c1",
          {{"POST -", 202},
           NO("GET -", 401),
           {"GET -", 200, S, EV(N), NULL, NULL, STAY}},
          "POST -\nGET - v=2025-11-25\nGET - v=2025-11-25 auth=t1\n",
          "0 " N "\n"},
         GIVE,
         1},
        {{"forgotten while it waits",
          "r1 s1 w f1 r2 c1",
          {NO("POST 1", 401), {"POST 2", 200, J, R2}},
          "POST 1\nPOST 2\n",
          "2 " R2 "\n"},
         SILENT,
         1},
        {{"closed while it waits",
          "r1 s1 w",
          {NO("POST 1", 401)},
          "POST 1\n",
          ""},
         SILENT,
         1},
        {{"404 is not its business",
          "r1 c1",
          {{"POST 1", 404, "text/plain", "gone"}},
          "POST 1\n",
          "1 failed 404 protocol gone\n"},
         GIVE,
         0},
    };

    (void)state;
    for (size_t i = 0; i < MO_COUNT(plays_); i++) {
        struct keys k;

        keys_init(&k, plays_[i].verdict);
        play_with(&plays_[i].row, &k.auth, &k.l, &k.refused);
        check_row(plays_[i].row.name, k.refused == plays_[i].refused);
        check_row(plays_[i].row.name, mo_list_empty(&k.waiting));
        if (!k.refused)
            continue;
        check_row(plays_[i].row.name, k.local);
        check_row(plays_[i].row.name, strcmp(k.challenge, "Bearer a=b") == 0);
    }
}

/* Any allocation may fail, ours, the client's or the server's: the link ends
 * all the same, once, and leaves nothing. */
static void short_life(void *ctx)
{
    struct rig *g = ctx;
    const struct mo_http_header own = {MO_SPAN("a"), MO_SPAN("b")};
    char url[64];
    struct mo_link_http_opts o = {
        .http = g->c, .url = url, .headers = &own, .nheaders = 1};

    (void)snprintf(url, sizeof(url), "http://127.0.0.1:%u/mcp",
                   mo_httpd_port(g->d));
    memset(g->used, 0, sizeof(g->used));
    g->closed = false;
    g->k = NULL;
    if (mo_link_http(g->l, &o, &g->k, NULL) < 0)
        return;
    mo_link_attach(g->k, &link_cb, g);
    mo_link_opened(g->k, "2025-11-25");
    (void)send_msg(g, 0, false);
    (void)send_msg(g, 1, false);
    (void)send_msg(g, 2, true);
    g->want = 1000000;
    (void)mo_loop_until(g->l, client_saw, g, 3);
    mo_link_close(g->k, NULL);
    wait_for(g->l, is_true, &g->closed);
}

static void memory(void **state)
{
    static const struct row two = {
        .name = "memory",
        .answers = {{"POST -", 202},
                    {"GET -", 200, S, EV(N), NULL, NULL, STAY},
                    {"POST 1", 200, J, R1},
                    {"POST 2", 200, S, "id: e\n" EV(N)}},
    };
    struct rig g;

    (void)state;
    rig_up(&g, &two);
    mo_link_close(g.k, NULL);
    wait_for(g.l, is_true, &g.closed);
    torture(short_life, &g);
    g.closed = true;
    rig_down(&g);
}

static const struct {
    const char *in, *out;
} values[] = {
    {"plain", "plain"},
    {"", ""},
    {"two words\tand a tab", "two words\tand a tab"},
    {" lead", "=?base64?IGxlYWQ=?="},
    {"trail ", "=?base64?dHJhaWwg?="},
    {"\ttab", "=?base64?CXRhYg==?="},
    {"line\nend", "=?base64?bGluZQplbmQ=?="},
    {"\xc3\xa9", "=?base64?w6k=?="},
    {"=?base64?eA==?=", "=?base64?PT9iYXNlNjQ/ZUE9PT89?="},
    {"=?base64?", "=?base64?"},
    {"x?=", "x?="},
    {"\x7f", "=?base64?fw==?="},
};

static void header_values(void **state)
{
    struct mo_buf b;

    (void)state;
    mo_buf_init(&b, 4096);
    for (size_t i = 0; i < MO_COUNT(values); i++) {
        mo_buf_reset(&b);
        assert_int_equal(mo_link_http_value(&b, mo_span_cstr(values[i].in)), 0);
        check_row(values[i].in, mo_span_is(mo_buf_view(&b), values[i].out));
    }
    mo_buf_fini(&b);
}

/* libuv opens a pipe for signals with the first loop and keeps it. */
static int first_loop(void **state)
{
    (void)state;
    mo_loop_free(loop_new());
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(plays),         cmocka_unit_test(huge),
        cmocka_unit_test(many),          cmocka_unit_test(challenge),
        cmocka_unit_test(gate),          cmocka_unit_test(nobody_there),
        cmocka_unit_test(header_values), cmocka_unit_test(memory),
        cmocka_unit_test(flood),         cmocka_unit_test(authorized),
    };

    return cmocka_run_group_tests(tests, first_loop, NULL);
}
