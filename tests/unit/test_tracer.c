/* The tracer: who is sampled, what is kept, and what a collector that takes,
 * refuses or hangs costs. */
#include "mo_peer.h"
#include "trace/trace.h"

#define PARENT   "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
#define UNPICKED "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-00"
#define OK2      "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}"
#define NO       "HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n"

struct rig {
    struct mo_loop *l;
    struct peer p;
    struct mo_tracer *t;
    char url[PATH_LEN + 32];
};

static void rig_up(struct rig *r, const char *reply, double sample)
{
    static const struct mo_http_header key[] = {
        {MO_SPAN("X-Key"), MO_SPAN("k1")}};
    struct mo_tracer_opts o = {
        .to = {.encoding = MO_OTLP_JSON,
               .headers = key,
               .nheaders = 1,
               .service = "here",
               .attributes = "team=a, team=b,empty=,service.name=no,x=1"},
        .sample = sample,
        .forced = 3,
        .pause_ms = 10,
    };
    struct mo_err e;

    *r = (struct rig){.p = {.reply = mo_span_cstr(reply)}};
    r->l = loop_new();
    peer_open(&r->p, r->l, "127.0.0.1:0");
    (void)snprintf(r->url, sizeof(r->url), "http://%s/", r->p.addr);
    o.to.loop = r->l;
    o.to.endpoint = r->url;
    assert_int_equal(mo_tracer_open(&o, &r->t, &e), 0);
    assert_ptr_equal(mo_loop_tracer(r->l), r->t);
}

static void rig_down(struct rig *r)
{
    bool gone = false;

    mo_tracer_close(r->t, set_flag, &gone);
    assert_false(gone);
    assert_null(mo_loop_tracer(r->l));
    wait_for(r->l, flag_set, &gone);
    peer_close(&r->p);
    mo_loop_run(r->l);
    mo_loop_free(r->l);
}

static struct mo_trace_span *begin(struct rig *r, const char *parent, bool ours)
{
    struct mo_trace in = {.v = {mo_span_cstr(parent ? parent : "")}};

    return mo_trace_begin(r->t, MO_TRACE_SERVER, "work", parent ? &in : NULL,
                          ours);
}

static void test_off(void **state)
{
    struct mo_trace out = {.v = {MO_SPAN("as it was")}};
    char room[MO_TRACE_PARENT_LEN + 1];

    (void)state;
    assert_null(mo_trace_begin(NULL, MO_TRACE_SERVER, "x", NULL, false));
    assert_null(mo_trace_child(NULL, MO_TRACE_CLIENT, "x"));
    assert_null(mo_trace_child_since(NULL, "x", 1));
    mo_trace_rename(NULL, MO_SPAN("x"), MO_SPAN("y"));
    mo_trace_text(NULL, "k", MO_SPAN("v"));
    mo_trace_int(NULL, "k", 1);
    mo_trace_one(NULL, "k", MO_SPAN("v"));
    mo_trace_fail(NULL, "bad");
    mo_trace_send(NULL, &out, room);
    assert_true(mo_span_is(out.v[MO_TRACE_PARENT], "as it was"));
    mo_trace_end(NULL);
}

static unsigned count_sampled(struct rig *r, unsigned n, const char *parent,
                              bool ours)
{
    unsigned got = 0;

    for (unsigned i = 0; i < n; i++) {
        struct mo_trace_span *s = begin(r, parent, ours);

        got += s != NULL;
        mo_trace_end(s);
    }
    return got;
}

static void test_sampling(void **state)
{
    struct rig r;
    unsigned n;

    (void)state;
    rig_up(&r, OK2, 0);
    assert_int_equal(count_sampled(&r, 100, NULL, false), 0);
    assert_int_equal(count_sampled(&r, 100, UNPICKED, true), 0);
    assert_int_equal(count_sampled(&r, 100, "00-nonsense", false), 0);
    /* A stranger forces `forced` of them; the program itself all. The second
     * may change once meanwhile. */
    n = count_sampled(&r, 100, PARENT, false);
    assert_true(n == 3 || n == 6);
    assert_int_equal(count_sampled(&r, 100, PARENT, true), 100);
    rig_down(&r);

    rig_up(&r, OK2, 1);
    assert_int_equal(count_sampled(&r, 100, NULL, false), 100);
    assert_int_equal(count_sampled(&r, 100, UNPICKED, false), 0);
    rig_down(&r);

    /* One in ten of 2000: nobody sees less than 100 or more than 320. */
    rig_up(&r, OK2, 0.1);
    n = count_sampled(&r, 2000, NULL, false);
    assert_in_range(n, 100, 320);
    rig_down(&r);
}

static bool is_taken(void *ctx)
{
    struct rig *r = ctx;

    return mo_tracer_stats(r->t).sent > 0;
}

static bool is_dropped(void *ctx)
{
    struct rig *r = ctx;

    return mo_tracer_stats(r->t).dropped > 0;
}

static const char *find(struct rig *r, const char *what)
{
    const char *at = strstr(mo_buf_cstr(&r->p.last), what);

    if (!at)
        fail_msg("%s is not in %s", what, mo_buf_cstr(&r->p.last));
    return at;
}

static void test_export(void **state)
{
    struct mo_trace out = {.v = {{NULL, 0}, MO_SPAN("a=b"), MO_SPAN("c=d")}};
    char room[MO_TRACE_PARENT_LEN + 1], id[17], text[64];
    struct mo_trace_span *s, *child;
    struct rig r;

    (void)state;
    rig_up(&r, OK2, 0);
    s = begin(&r, PARENT, false);
    mo_trace_rename(s, MO_SPAN("tools/call"), MO_SPAN("add"));
    mo_trace_text(s, "k", MO_SPAN("v1"));
    mo_trace_text(s, "k", MO_SPAN("v2"));
    mo_trace_text(s, "none", MO_SPAN(""));
    mo_trace_int(s, "n", 12);
    mo_trace_fail(s, "timeout");
    mo_trace_send(s, &out, room);
    assert_int_equal(strlen(room), MO_TRACE_PARENT_LEN);
    assert_true(mo_trace_is(MO_TRACE_PARENT, out.v[MO_TRACE_PARENT]));
    assert_true(mo_span_is(out.v[MO_TRACE_STATE], "a=b"));
    child = mo_trace_child(s, MO_TRACE_CLIENT, "ask");
    mo_trace_end(child);
    mo_trace_end(s);
    wait_for(r.l, is_taken, &r);
    assert_int_equal(mo_tracer_stats(r.t).sent, 2);
    (void)find(&r, "POST /v1/traces HTTP/1.1");
    (void)find(&r, "X-Key: k1");
    (void)find(&r, "Content-Type: application/json");
    (void)find(&r, "{\"key\":\"team\",\"value\":{\"stringValue\":\"a\"}},"
                   "{\"key\":\"x\",\"value\":{\"stringValue\":\"1\"}},"
                   "{\"key\":\"service.name\",\"value\":{\"stringValue\":"
                   "\"here\"}}");
    (void)find(&r,
               "\"parentSpanId\":\"00f067aa0ba902b7\",\"name\":\"tools/call "
               "add\",\"kind\":2,");
    (void)find(&r, "{\"key\":\"k\",\"value\":{\"stringValue\":\"v2\"}},"
                   "{\"key\":\"n\",\"value\":{\"intValue\":\"12\"}},"
                   "{\"key\":\"error.type\",\"value\":{\"stringValue\":"
                   "\"timeout\"}}],\"status\":{\"code\":2},\"flags\":769");
    memcpy(id, room + 36, 16);
    id[16] = '\0';
    (void)snprintf(text, sizeof(text),
                   "\"parentSpanId\":\"%s\",\"name\":\"ask\"", id);
    (void)find(&r, text);
    rig_down(&r);
}

/* Long texts, too many attributes, too many spans. */
static void test_limits(void **state)
{
    static const char *const keys[] = {"a", "b", "c", "d", "e", "f", "g", "h",
                                       "i", "j", "k", "l", "m", "n", "o", "p"};
    char text[2 * MO_TRACE_TEXTS_MAX];
    struct mo_trace_span *s;
    struct rig r;

    (void)state;
    memset(text, 'x', sizeof(text));
    rig_up(&r, OK2, 1);
    s = begin(&r, NULL, false);
    mo_trace_rename(s, mo_span(text, sizeof(text)), MO_SPAN("y"));
    mo_trace_rename(s, MO_SPAN("w"), mo_span(text, sizeof(text)));
    for (size_t i = 0; i < MO_COUNT(keys); i++)
        mo_trace_text(s, keys[i], mo_span(text, sizeof(text)));
    mo_trace_end(s);
    wait_for(r.l, is_taken, &r);
    (void)find(&r, "\"droppedAttributesCount\":2");
    for (unsigned i = 0; i < MO_TRACE_SPANS_MAX; i++)
        assert_non_null(begin(&r, NULL, false));
    assert_null(begin(&r, NULL, false));
    assert_int_equal(mo_tracer_stats(r.t).dropped, 1);
    rig_down(&r); /* open spans are dropped */
}

static void test_refused(void **state)
{
    struct rig r;

    (void)state;
    rig_up(&r, NO, 1);
    mo_trace_end(begin(&r, NULL, false));
    wait_for(r.l, is_dropped, &r);
    assert_int_equal(r.p.requests, 1); /* a 400 is not tried again */
    assert_int_equal(mo_tracer_stats(r.t).dropped, 1);
    assert_int_equal(mo_tracer_stats(r.t).failed, 1);
    rig_down(&r);
}

/* The first answer says when to come again, and the batch is sent again. */
static bool came_twice(void *ctx)
{
    return ((struct rig *)ctx)->p.requests >= 2;
}

static void test_again(void **state)
{
    struct rig r;

    (void)state;
    rig_up(&r,
           "HTTP/1.1 503 Busy\r\nRetry-After: 1\r\nContent-Length: "
           "0\r\n\r\n",
           1);
    mo_trace_end(begin(&r, NULL, false));
    wait_for(r.l, came_twice, &r);
    assert_int_equal(mo_tracer_stats(r.t).dropped, 0);
    r.p.reply = MO_SPAN(OK2);
    rig_down(&r);
}

static bool came(void *ctx)
{
    return ((struct rig *)ctx)->p.requests >= 1;
}

/* The end waits for a collector that hangs, but not long. */
static void test_hangs(void **state)
{
    struct rig r;

    (void)state;
    rig_up(&r, "", 1);
    mo_trace_end(begin(&r, NULL, false));
    wait_for(r.l, came, &r);
    assert_int_equal(mo_tracer_stats(r.t).waiting, 1);
    mo_trace_end(begin(&r, NULL, false));
    assert_int_equal(mo_tracer_stats(r.t).waiting, 2);
    rig_down(&r);
}

/* Spans that wait are sent at the end. */
static void test_flush(void **state)
{
    struct rig r;
    bool gone = false;

    (void)state;
    rig_up(&r, OK2, 1);
    mo_trace_end(begin(&r, NULL, false));
    assert_int_equal(r.p.requests, 0);
    mo_tracer_close(r.t, set_flag, &gone);
    wait_for(r.l, flag_set, &gone);
    assert_int_equal(r.p.requests, 1);
    peer_close(&r.p);
    mo_loop_run(r.l);
    mo_loop_free(r.l);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_off),     cmocka_unit_test(test_sampling),
        cmocka_unit_test(test_export),  cmocka_unit_test(test_limits),
        cmocka_unit_test(test_refused), cmocka_unit_test(test_again),
        cmocka_unit_test(test_hangs),   cmocka_unit_test(test_flush),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
