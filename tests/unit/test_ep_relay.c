/* The endpoint under a handler that passes things on: another server's
 * messages as the bytes they were, what all clients want, calls that wait. */
#include "ep_talk.h"
#include "mcp/server/endpoint.h"

static struct mo_json json(const char *text)
{
    return (struct mo_json){text, strlen(text)};
}

static struct mo_buf *news_of(void *ctx)
{
    return ((struct kit *)ctx)->news;
}

static void on_watch(void *ctx, struct mo_span uri, bool on)
{
    (void)mo_buf_printf(news_of(ctx), "%c%.*s ", on ? '+' : '-', (int)uri.n,
                        uri.p);
}

static void on_level(void *ctx, enum mo_mcp_level lv)
{
    (void)mo_buf_printf(news_of(ctx), "level%d ", (int)lv);
}

static void on_session_gone(void *ctx, uint64_t peer)
{
    (void)mo_buf_puts(news_of(ctx), peer ? "gone " : "nobody ");
}

static void on_abandoned(void *ctx, struct mo_span state)
{
    (void)mo_buf_printf(news_of(ctx), "abandoned:%.*s ", (int)state.n, state.p);
}

static void relay(struct mo_ep_call *c)
{
    mo_ep_call_progress_raw(
        c, json("{\"progressToken\": 99,\"progress\":1.50,\"x\":[ 1 ]}"));
    mo_ep_call_progress_raw(c, json("{\"progressToken\":99,\"progress\":1}"));
    mo_ep_call_log_raw(c, json("{\"level\":\"debug\",\"data\":1}"));
    mo_ep_call_log_raw(c, json("{\"level\":\"no such\",\"data\":1}"));
    mo_ep_call_log_raw(c,
                       json("{\"level\":\"error\",\"data\": {\"a\":1.0},\"z\":"
                            "null}"));
    mo_ep_call_result(c, MO_SPAN(TEXT("ok")));
}

static void waits(struct mo_ep_call *c)
{
    struct mo_json in = mo_ep_call_input(c, "k");
    struct mo_json no = mo_ep_call_refusal(c, "k");
    struct mo_json v = in.p ? in : no;

    assert_false(in.p && no.p);
    if (v.p || mo_ep_call_state(c).n) {
        mo_ep_call_result(c, v.p ? mo_json_text(v) : MO_SPAN("{\"woken\":1}"));
        return;
    }
    mo_ep_call_set_state(c, MO_SPAN("s1"));
    mo_ep_call_need(c, "k", "elicitation/create",
                    MO_SPAN("{\"message\":\"\"}"));
    if (mo_ep_call_wait(c) == MO_EP_WAITS)
        mo_ep_call_progress_raw(c, json("{\"progress\":7}"));
}

static void handler(void *ctx, struct mo_ep_call *c)
{
    struct kit *k = ctx;
    struct mo_json e = mo_json_get(c->arguments, "error");

    assert_ptr_equal(mo_ep_call_endpoint(c), k->ep);
    assert_true(c->peer != 0);
    if (mo_span_is(c->name, "relay"))
        relay(c);
    else if (mo_span_is(c->name, "waits"))
        waits(c);
    else if (e.p)
        mo_ep_call_error_raw(c, e);
    else
        mo_ep_call_error_raw(c, json("{\"code\":-32602,\"message\":\"m\","
                                     "\"data\":{\"uri\": \"a:b\"}}"));
}

static void tune(struct mo_endpoint_opts *o)
{
    o->handler = handler;
    o->watch = on_watch;
    o->level = on_level;
    o->session_gone = on_session_gone;
    o->abandoned = on_abandoned;
    o->refusals = true;
}

#define FAIL(code)                                                             \
    MCALL("1", "fail",                                                         \
          "\"arguments\":{\"error\":{\"a\": 1.0,\"code\": " code               \
          ",\"message\":\"\\/\",\"data\":[ ]}}")
#define MFAIL(code)                                                            \
    MCALL("1", "fail",                                                         \
          META ",\"arguments\":{\"error\":{\"code\":" code                     \
               ",\"message\":\"m\"}}")
#define FAILED(code)                                                           \
    "{\"jsonrpc\":\"2.0\",\"id\":1,\"error\":{\"a\": 1.0,\"code\":" code       \
    ",\"message\":\"\\/\",\"data\":[ ]}}\n"
#define READ(more)                                                             \
    "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"resources/read\",\"params\":"  \
    "{\"uri\":\"a:b\"" more "}}\n"

static const struct row {
    const char *name, *in, *out;
    bool modern;
} rows[] = {
    {"progress and log as they were",
     MCALL("1", "relay", "\"_meta\":{\"progressToken\":\"p\\u0031\"}"),
     "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/progress\",\"params\":"
     "{\"progressToken\":\"p\\u0031\",\"progress\":1.50,\"x\":[ 1 ]}}\n"
     "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/message\",\"params\":"
     "{\"level\":\"error\",\"data\": {\"a\":1.0},\"z\":null}}\n" RES(
         "1", TEXT("ok")),
     false},
    {"no token, no progress", CALL("1", "relay"),
     "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/message\",\"params\":"
     "{\"level\":\"error\",\"data\": {\"a\":1.0},\"z\":null}}\n" RES(
         "1", TEXT("ok")),
     false},
    {"an error as it was", FAIL("-7"), FAILED("-7"), false},
    {"URL elicitation stays in its revision", FAIL("-32042"), FAILED("-32042"),
     false},
    {"between server and us: header", FAIL("-32020"), FAILED("-32603"), false},
    {"between server and us: capability", FAIL("-32021"), FAILED("-32603"),
     false},
    {"between server and us: version", FAIL("-32022"), FAILED("-32603"), false},
    {"a code that is none", FAIL("\"x\""), FAILED("-32603"), false},
    {"not found, legacy", READ(""),
     "{\"jsonrpc\":\"2.0\",\"id\":1,\"error\":{\"code\":-32002,\"message\":"
     "\"m\",\"data\":{\"uri\": \"a:b\"}}}\n",
     false},
    {"not found, modern", READ("," META),
     "{\"jsonrpc\":\"2.0\",\"id\":1,\"error\":{\"code\":-32602,\"message\":"
     "\"m\",\"data\":{\"uri\": \"a:b\"}}}\n",
     true},
    {"a legacy server's not found, modern", MFAIL("-32002"),
     ERR("1", "-32602", "m"), true},
    {"URL elicitation, modern", MFAIL("-32042"), ERR("1", "-32603", "m"), true},
};

static void begin(struct talk *t, struct mo_loop *l, struct mo_buf *news)
{
    mo_buf_init(news, 65536);
    assert_int_equal(talk_open(t, l, NULL), 0);
    t->k.news = news;
}

static void end(struct talk *t, struct mo_buf *news)
{
    struct mo_loop *l = t->k.l;

    talk_close(t);
    mo_buf_fini(news);
    mo_loop_free(l);
}

static void settle_in(struct talk *t)
{
    say(t, INIT("2025-11-25"));
    (void)hear(t);
    mo_buf_reset(&t->me.got);
}

static void test_rows(void **state)
{
    (void)state;
    for (size_t i = 0; i < MO_COUNT(rows); i++) {
        struct mo_buf news;
        struct talk t;
        const char *got;

        begin(&t, loop_new(), &news);
        if (!rows[i].modern)
            settle_in(&t);
        say(&t, rows[i].in);
        got = hear(&t);
        if (strcmp(got, rows[i].out) != 0)
            fail_msg("row '%s':\n%swanted\n%s", rows[i].name, got, rows[i].out);
        end(&t, &news);
    }
}

/* As a task: each message says of which. */
static void test_task(void **state)
{
    struct mo_buf news;
    struct talk t;
    const char *got;

    (void)state;
    begin(&t, loop_new(), &news);
    settle_in(&t);
    say(&t, MCALL("1", "relay", "\"task\":{},\"_meta\":{\"progressToken\":1}"));
    got = hear(&t);
    assert_non_null(strstr(got, "\"x\":[ 1 ],\"_meta\":{\"" P
                                "related-task\":{\"taskId\":\""));
    assert_non_null(strstr(got, "\"z\":null,\"_meta\":{\"" P "related-task\""));
    end(&t, &news);
}

#define SUB(what, uri)                                                         \
    "{\"jsonrpc\":\"2.0\",\"id\":5,\"method\":\"resources/" what               \
    "\",\"params\":{\"uri\":\"" uri "\"}}\n"
#define LISTEN(id, uris)                                                       \
    "{\"jsonrpc\":\"2.0\",\"id\":" id ",\"method\":\"subscriptions/listen\","  \
    "\"params\":{\"notifications\":{\"resourceSubscriptions\":[" uris          \
    "]}," META "}}\n"
#define CANCEL(id)                                                             \
    "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/cancelled\",\"params\":"  \
    "{\"requestId\":" id "}}\n"

static void test_watch(void **state)
{
    struct mo_buf news;
    struct talk t;

    (void)state;
    begin(&t, loop_new(), &news);
    settle_in(&t);
    say(&t, SUB("subscribe", "a:1") SUB("subscribe", "a:1")
                SUB("unsubscribe", "a:9") SUB("subscribe", "a:2"));
    (void)hear(&t);
    assert_string_equal(mo_buf_cstr(&news), "+a:1 +a:2 ");
    mo_buf_reset(&news);
    say(&t, LISTEN("7", "\"a:1\",\"a:1\"") LISTEN("8", "\"a:3\""));
    (void)hear(&t);
    assert_string_equal(mo_buf_cstr(&news), "+a:3 ");
    mo_buf_reset(&news);
    say(&t, SUB("unsubscribe", "a:1") SUB("unsubscribe", "a:1"));
    (void)hear(&t);
    assert_string_equal(mo_buf_cstr(&news), "");
    say(&t, CANCEL("7"));
    (void)hear(&t);
    assert_string_equal(mo_buf_cstr(&news), "-a:1 ");
    mo_buf_reset(&news);
    mo_stream_close(t.me.s, NULL);
    wait_for(t.k.l, flag_up, &t.closed);
    t.x = NULL;
    assert_non_null(strstr(mo_buf_cstr(&news), "-a:2 "));
    assert_non_null(strstr(mo_buf_cstr(&news), "-a:3 "));
    assert_non_null(strstr(mo_buf_cstr(&news), "gone "));
    end(&t, &news);
}

#define LEVEL(lv)                                                              \
    "{\"jsonrpc\":\"2.0\",\"id\":5,\"method\":\"logging/setLevel\","           \
    "\"params\":{\"level\":\"" lv "\"}}\n"

static void test_level(void **state)
{
    struct mo_buf news;
    struct talk t;

    (void)state;
    begin(&t, loop_new(), &news);
    settle_in(&t);
    assert_int_equal(mo_endpoint_level(t.k.ep), MO_MCP_LEVELS);
    say(&t, LEVEL("error") LEVEL("error") LEVEL("debug") LEVEL("alert"));
    (void)hear(&t);
    /* never quieter in between */
    assert_string_equal(mo_buf_cstr(&news), "level4 level0 level6 ");
    mo_buf_reset(&news);
    say(&t, MCALL("9", "relay",
                  "\"_meta\":{\"" P "protocolVersion\":\"2026-07-28\",\"" P
                  "clientCapabilities\":{},\"" P "logLevel\":\"info\"}"));
    (void)hear(&t);
    assert_string_equal(mo_buf_cstr(&news), "level1 level6 ");
    end(&t, &news);
}

/* A call that waits: refused, woken, abandoned. */
static void test_waits(void **state)
{
    struct mo_buf news;
    struct talk t;

    (void)state;
    begin(&t, loop_new(), &news);
    settle_in(&t);
    say(&t, MCALL("1", "waits", "\"_meta\":{\"progressToken\":3}"));
    assert_non_null(strstr(hear(&t), "{\"progress\":7,\"progressToken\":3}"));
    mo_buf_reset(&t.me.got);
    say(&t, ERR("1", "-5", "no"));
    assert_string_equal(hear(&t), RES("1", "{\"code\":-5,\"message\":\"no\"}"));
    say(&t, CALL("2", "waits"));
    (void)hear(&t);
    mo_buf_reset(&t.me.got);
    assert_false(mo_endpoint_wake(t.k.ep, MO_SPAN("s2")));
    assert_true(mo_endpoint_wake(t.k.ep, MO_SPAN("s1")));
    assert_false(mo_endpoint_wake(t.k.ep, MO_SPAN("s1")));
    assert_string_equal(hear(&t), CANCEL("2") RES("2", "{\"woken\":1}"));
    assert_string_equal(mo_buf_cstr(&news), "");
    say(&t, CALL("3", "waits"));
    (void)hear(&t);
    say(&t, CANCEL("3"));
    (void)hear(&t);
    assert_string_equal(mo_buf_cstr(&news), "abandoned:s1 ");
    end(&t, &news);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_rows),  cmocka_unit_test(test_task),
        cmocka_unit_test(test_watch), cmocka_unit_test(test_level),
        cmocka_unit_test(test_waits),
    };

    kit_setup(MO_EP_CALL_TASKS, tune);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
