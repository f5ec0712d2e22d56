/* The old transport against a server on our own httpd: a stream that says
 * what the test tells it to, and a place to post. */
#include "loop/httpd.h"
#include "mcp/link/link_sse.h"
#include "mo_net.h"

#define SEEN_MAX ((size_t)1 << 20)

struct rig {
    struct mo_loop *l;
    struct mo_httpd *d;
    struct mo_httpc *c;
    struct mo_link *k;
    const char *hello; /* what the stream begins with; NULL: it is a 404 */
    bool ends;         /* and ends at once */
    int status;        /* of posts */
    struct mo_req *stream;
    struct mo_buf posted, client;
    bool closed;
    unsigned inside;
    size_t want;
    unsigned fds;
};

static size_t lines_in(const struct mo_buf *b)
{
    size_t n = 0;

    for (size_t i = 0; i < b->len; i++)
        n += b->p[i] == '\n';
    return n;
}

static void stream_gone(struct mo_req *rq)
{
    ((struct rig *)rq->data)->stream = NULL;
}

/* Every request is answered on the stream as soon as it is posted. */
static void on_body(struct mo_req *rq, struct mo_span body)
{
    struct rig *g = rq->data;
    struct mo_rpc m;
    char text[128];

    assert_int_equal(mo_rpc_parse(body, &m, NULL), 0);
    mo_buf_printf(&g->posted, "%.*s %.*s\n", (int)rq->path.n, rq->path.p,
                  m.id.p ? (int)m.id.n : 1, m.id.p ? m.id.p : "-");
    mo_req_reply(rq, g->status, "text/plain", MO_SPAN("so"));
    if (!m.id.p || !g->stream || g->status != 202)
        return;
    (void)snprintf(text, sizeof(text),
                   "event: message\ndata: {\"jsonrpc\":\"2.0\",\"id\":%.*s,"
                   "\"result\":{}}\n\n",
                   (int)m.id.n, m.id.p);
    (void)mo_req_write(g->stream, mo_span_cstr(text)); /* it may be gone */
}

static void handler(void *ctx, struct mo_req *rq)
{
    struct rig *g = ctx;

    rq->data = g;
    if (rq->head->method == MO_HTTP_POST) {
        mo_req_body(rq, 0, on_body);
        return;
    }
    if (!g->hello) {
        mo_req_reply(rq, 404, "text/plain", MO_SPAN("no"));
        return;
    }
    mo_req_start(rq, 200, "text/event-stream");
    (void)mo_req_write(rq, mo_span_cstr(g->hello));
    if (g->ends) {
        mo_req_end(rq);
        return;
    }
    g->stream = rq;
    rq->gone = stream_gone;
}

static void on_message(void *ctx, const struct mo_rpc *m, uint64_t stream_of)
{
    struct rig *g = ctx;

    assert_int_equal(g->inside, 0);
    assert_int_equal(stream_of, 0);
    mo_buf_printf(&g->client, "got %.*s\n", m->id.p ? (int)m->id.n : 1,
                  m->id.p ? m->id.p : "-");
}

static void on_failed(void *ctx, uint64_t id, int status, struct mo_span body,
                      const struct mo_err *why)
{
    struct rig *g = ctx;

    assert_int_equal(g->inside, 0);
    mo_buf_printf(&g->client, "%llu failed %d %s %.*s\n",
                  (unsigned long long)id, status, mo_err_name(why->code),
                  (int)body.n, body.n ? body.p : "");
}

static void on_close(void *ctx, const struct mo_err *why)
{
    struct rig *g = ctx;

    assert_int_equal(g->inside, 0);
    assert_false(g->closed);
    g->closed = true;
    mo_buf_printf(&g->client, "closed %s\n", why ? mo_err_name(why->code) : "");
}

static const struct mo_link_cb link_cb = {on_message, on_failed, NULL,
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

static int open_link(struct rig *g)
{
    static const struct mo_http_header own[] = {
        {{"Authorization", 13}, {"Bearer x", 8}}};
    struct mo_link_http_opts o = {.http = g->c,
                                  .headers = own,
                                  .nheaders = 1,
                                  .message_max = 4096,
                                  .streams = 4};
    char url[64];
    int rc;

    (void)snprintf(url, sizeof(url), "http://127.0.0.1:%u/a/sse",
                   mo_httpd_port(g->d));
    o.url = url;
    g->closed = false;
    rc = mo_link_sse(g->l, &o, &g->k, NULL);
    if (rc < 0)
        return rc;
    g->inside++;
    mo_link_attach(g->k, &link_cb, g);
    g->inside--;
    return 0;
}

static void rig_up(struct rig *g, const char *hello)
{
    struct mo_httpd_opts d = {.handler = handler, .ctx = g};
    struct mo_listen_opts at = {.addr = "127.0.0.1:0"};
    struct mo_httpc_opts c = {.active = 0};
    struct mo_err e;

    *g = (struct rig){.hello = hello, .status = 202, .fds = fds_open()};
    mo_buf_init(&g->posted, SEEN_MAX);
    mo_buf_init(&g->client, SEEN_MAX);
    g->l = loop_new();
    g->d = mo_httpd_new(g->l, &d, &e);
    assert_non_null(g->d);
    assert_int_equal(mo_httpd_listen(g->d, &at, &e), 0);
    g->c = mo_httpc_new(g->l, &c, &e);
    assert_non_null(g->c);
}

static void close_link(struct rig *g)
{
    g->inside++;
    mo_link_close(g->k, NULL);
    g->inside--;
    wait_for(g->l, is_true, &g->closed);
}

static void rig_down(struct rig *g)
{
    bool http = false, httpd = false;

    mo_httpc_close(g->c, set_true, &http);
    wait_for(g->l, is_true, &http);
    mo_httpd_close(g->d, 0, set_true, &httpd);
    wait_for(g->l, is_true, &httpd);
    mo_loop_run(g->l);
    mo_loop_free(g->l);
    assert_int_equal(fds_open(), g->fds);
    mo_buf_fini(&g->posted);
    mo_buf_fini(&g->client);
}

static int send_msg(struct rig *g, uint64_t id)
{
    struct mo_link_msg m = {.id = id, .version = "2024-11-05"};
    char text[64];
    int rc;

    (void)snprintf(text, sizeof(text),
                   "{\"jsonrpc\":\"2.0\",\"id\":%llu,\"method\":\"m\"}",
                   (unsigned long long)id);
    m.text = id ? mo_span_cstr(text)
                : MO_SPAN("{\"jsonrpc\":\"2.0\",\"method\":\"n\"}");
    g->inside++;
    rc = mo_link_send(g->k, &m);
    g->inside--;
    return rc;
}

static void see(struct rig *g, size_t lines, const char *want)
{
    g->want = lines;
    wait_for(g->l, client_saw, g);
    assert_string_equal(mo_buf_cstr(&g->client), want);
}

#define HELLO "event: endpoint\ndata: /m?s=1\n\n"

/* Sent before the address is known, and after; in order all the same. */
static void talk(void **state)
{
    struct rig g;

    (void)state;
    rig_up(&g, HELLO);
    assert_int_equal(open_link(&g), 0);
    assert_int_equal(send_msg(&g, 1), 0);
    assert_int_equal(send_msg(&g, 0), 0);
    assert_int_equal(send_msg(&g, 2), 0);
    assert_int_equal(send_msg(&g, 3), 0);
    mo_link_forget(g.k, 3);
    see(&g, 2, "got 1\ngot 2\n");
    assert_int_equal(send_msg(&g, 4), 0);
    see(&g, 3, "got 1\ngot 2\ngot 4\n");
    assert_string_equal(mo_buf_cstr(&g.posted), "/m 1\n/m -\n/m 2\n/m 4\n");
    close_link(&g);
    rig_down(&g);
}

static void refused(void **state)
{
    struct rig g;

    (void)state;
    rig_up(&g, HELLO);
    g.status = 400;
    assert_int_equal(open_link(&g), 0);
    assert_int_equal(send_msg(&g, 1), 0);
    assert_int_equal(send_msg(&g, 0), 0);
    assert_int_equal(send_msg(&g, 2), 0);
    see(&g, 2, "1 failed 400 protocol so\n2 failed 400 protocol so\n");
    close_link(&g);
    rig_down(&g);
}

#define N "data: {\"jsonrpc\":\"2.0\",\"method\":\"n\"}\n\n"
#define V "data: {\"jsonrpc\":\"2.0\","

/* Messages over 4096 bytes: an answer fails its call only, others end the
 * link. */
static void overlong(void **state)
{
    static const struct {
        const char *head, *tail, *says;
    } rows[] = {
        {V "\"id\":7,\"result\":\"", "\"}\n\n", "7 failed 0 too_big \n"},
        {V "\"result\":\"", "\",\"id\":8}\n\n", "8 failed 0 too_big \n"},
        {V "\"result\":[\ndata:\"", "\"],\ndata: \"id\":9}\n\n",
         "9 failed 0 too_big \n"},
        {"event: x\n" V "\"id\":7,\"result\":\"", "\"}\n\n",
         "closed too_big\n"},
        {V "\"id\":7,\"method\":\"", "\"}\n\n", "closed too_big\n"},
        {V "\"result\":{\"id\":7,\"x\":\"", "\"}}\n\n", "closed too_big\n"},
    };
    static char big[4096];

    (void)state;
    memset(big, 'x', sizeof(big) - 1);
    for (size_t i = 0; i < MO_COUNT(rows); i++) {
        bool lives = strstr(rows[i].says, "failed");
        struct mo_buf b;
        struct rig g;

        mo_buf_init(&b, SEEN_MAX);
        mo_buf_puts(&b, HELLO);
        mo_buf_puts(&b, rows[i].head);
        mo_buf_puts(&b, big);
        mo_buf_puts(&b, rows[i].tail);
        mo_buf_puts(&b, N);
        rig_up(&g, mo_buf_cstr(&b));
        assert_int_equal(open_link(&g), 0);
        g.want = lives ? 2 : 1;
        wait_for(g.l, client_saw, &g);
        assert_true(
            mo_span_starts(mo_buf_view(&g.client), mo_span_cstr(rows[i].says)));
        if (lives)
            close_link(&g);
        assert_true(g.closed);
        mo_buf_fini(&b);
        rig_down(&g);
    }
}

/* 5000 messages are held back but all arrive; 14000 end the link. */
static void flood(void **state)
{
    static const unsigned counts[] = {5000, 14000};

    (void)state;
    for (size_t i = 0; i < MO_COUNT(counts); i++) {
        struct mo_buf b;
        struct rig g;

        mo_buf_init(&b, SEEN_MAX);
        mo_buf_puts(&b, HELLO);
        for (unsigned k = 0; k < counts[i]; k++)
            mo_buf_puts(&b, N);
        rig_up(&g, mo_buf_cstr(&b));
        assert_int_equal(open_link(&g), 0);
        if (counts[i] == 5000) {
            g.want = counts[i];
            wait_for(g.l, client_saw, &g);
            close_link(&g);
        } else {
            wait_for(g.l, is_true, &g.closed);
            assert_true(mo_span_ends(mo_buf_view(&g.client),
                                     MO_SPAN("closed protocol\n")));
        }
        mo_buf_fini(&b);
        rig_down(&g);
    }
}

static void full(void **state)
{
    struct rig g;

    (void)state;
    rig_up(&g, ": no address yet\n\n");
    assert_int_equal(open_link(&g), 0);
    for (uint64_t i = 1; i <= 4; i++)
        assert_int_equal(send_msg(&g, i), 0);
    assert_int_equal(send_msg(&g, 5), MO_EBUSY);
    assert_int_equal(send_msg(&g, 0), 0);
    close_link(&g);
    assert_string_equal(mo_buf_cstr(&g.client), "closed \n");
    rig_down(&g);
}

static const struct {
    const char *name, *hello, *says;
    bool ends;
} ends[] = {
    {"another origin", "event: endpoint\ndata: http://evil.test/m\n\n",
     "closed protocol\n", false},
    {"the stream ends", HELLO, "closed closed\n", true},
    {"no stream", NULL, "closed protocol\n", false},
    {"an event without end", NULL, "closed too_big\n", false},
};

static void endings(void **state)
{
    static char big[8192];

    (void)state;
    memset(big, 'x', sizeof(big) - 1);
    for (size_t i = 0; i < MO_COUNT(ends); i++) {
        bool huge = strstr(ends[i].says, "too_big");
        struct rig g;

        rig_up(&g, huge ? big : ends[i].hello);
        g.ends = ends[i].ends;
        assert_int_equal(open_link(&g), 0);
        (void)send_msg(&g, 1);
        wait_for(g.l, is_true, &g.closed);
        check_row(ends[i].name, mo_span_ends(mo_buf_view(&g.client),
                                             mo_span_cstr(ends[i].says)));
        rig_down(&g);
    }
}

static const struct {
    const char *base, *text, *out; /* out NULL: refused */
} addresses[] = {
    {"http://a/sse", "/m?s=1", "http://a/m?s=1"},
    {"http://a:81/x/sse?q=1", "/m", "http://a:81/m"},
    {"http://a/x/sse", "m?s=1", "http://a/x/m?s=1"},
    {"http://a", "m", "http://a/m"},
    {"http://a", "/m", "http://a/m"},
    {"http://a/sse", "http://a/m", "http://a/m"},
    {"http://a/sse", "http://A:80/m", "http://A:80/m"},
    {"https://a/sse", "https://a:443/m", "https://a:443/m"},
    {"http://a/sse", "http://b/m", NULL},
    {"http://a/sse", "https://a/m", NULL},
    {"http://a/sse", "http://a:81/m", NULL},
    {"http://a/sse", "http://a@b/m", NULL},
    {"http://a/sse", "http://u:p@a/m", NULL},
    {"http://a/sse", "//b/m", NULL},
    {"http://a/sse", "", NULL},
    {"http://a/sse", "/m\nX: y", NULL},
    {"http://a/sse", "/a b", NULL},
    {"http://a/sse", "\\\\b\\m", NULL},
    {"http://a/sse", "file:///etc/passwd", NULL},
};

static void address_table(void **state)
{
    (void)state;
    for (size_t i = 0; i < MO_COUNT(addresses); i++) {
        struct mo_err e = {0};
        struct mo_buf b;
        int rc;

        mo_buf_init(&b, 4096);
        rc = mo_link_sse_endpoint(&b, addresses[i].base,
                                  mo_span_cstr(addresses[i].text), &e);
        check_row(addresses[i].text, rc == (addresses[i].out ? 0 : MO_EPROTO));
        if (rc == 0)
            check_row(addresses[i].text,
                      mo_span_is(mo_buf_view(&b), addresses[i].out));
        mo_buf_fini(&b);
    }
}

static void short_life(void *ctx)
{
    struct rig *g = ctx;

    mo_buf_reset(&g->client);
    mo_buf_reset(&g->posted);
    if (open_link(g) < 0)
        return;
    (void)send_msg(g, 1);
    (void)send_msg(g, 0);
    g->want = 2;
    (void)mo_loop_until(g->l, client_saw, g, 3);
    if (!g->closed)
        mo_link_close(g->k, NULL);
    wait_for(g->l, is_true, &g->closed);
}

static void memory(void **state)
{
    struct rig g;

    (void)state;
    rig_up(&g, HELLO);
    torture(short_life, &g);
    rig_down(&g);
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
        cmocka_unit_test(talk),          cmocka_unit_test(refused),
        cmocka_unit_test(full),          cmocka_unit_test(endings),
        cmocka_unit_test(address_table), cmocka_unit_test(memory),
        cmocka_unit_test(flood),         cmocka_unit_test(overlong),
    };

    return cmocka_run_group_tests(tests, first_loop, NULL);
}
