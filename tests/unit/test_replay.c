/* A recorded server: what it knows again, what it says, and to whom. */
#include "connect/replay.h"

#include "mo_test.h"

#define HEAD "{\"recording\":1}\n"
#define ROW(child, to, m)                                                      \
    "{\"ms\":1,\"server\":\"s\",\"child\":" child ",\"to\":\"" to              \
    "\",\"message\":" m "}\n"
#define ASKED(child, m) ROW(child, "server", m)
#define SAID(child, m)  ROW(child, "client", m)
#define CALL(id, args)                                                         \
    "{\"jsonrpc\":\"2.0\",\"id\":" id ",\"method\":\"tools/call\","            \
    "\"params\":{\"name\":\"t\",\"arguments\":" args                           \
    ",\"_meta\":{\"progressToken\":" id "}}}"
#define RES(id, r) "{\"jsonrpc\":\"2.0\",\"id\":" id ",\"result\":" r "}"

/* Two calls that overlap on one connection, one question, one without end. */
static const char recording[] =
    HEAD ASKED("1", "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"initialize\","
                    "\"params\":{\"protocolVersion\":\"2025-11-25\"}}")
        SAID("1", RES("1", "{\"a\": 1.0}")) ASKED("1", CALL("2", "{\"x\":1}"))
            ASKED("1", CALL("3", "{\"x\":2}")) SAID(
                "1", "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/"
                     "progress\",\"params\":{\"progressToken\":2,\"p\":7}}")
                SAID("1", RES("3", "{\"n\":\"three\"}"))
                    SAID("1", "{\"jsonrpc\":\"2.0\",\"id\":\"q\",\"method\":"
                              "\"roots/list\"}") ASKED("1", RES("\"q\"", "{}"))
                        SAID("1", RES("2", "{\"n\":\"two\"}"))
                            ASKED("2", CALL("2", "{\"x\":2}"))
                                SAID("2", RES("2", "{\"n\":\"again\"}"))
                                    ASKED("2", CALL("4", "{\"x\":4}"));

struct heard {
    struct mo_buf b;
};

static void on_said(void *ctx, struct mo_span line)
{
    struct heard *h = ctx;

    (void)mo_buf_span(&h->b, line);
    (void)mo_buf_putc(&h->b, '\n');
}

static const struct {
    const char *name, *take, *says; /* of one player, in order */
} rows[] = {
    {"other params of the first message",
     "{\"jsonrpc\":\"2.0\",\"id\":9,\"method\":\"initialize\",\"params\":{}}",
     "{\"jsonrpc\":\"2.0\",\"id\":9,\"result\":{\"a\": 1.0}}\n"},
    {"by meaning, its token, its question", CALL("\"k\"", "{ \"x\": 1.0 }"),
     "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/progress\",\"params\":"
     "{\"progressToken\":\"k\",\"p\":7}}\n"
     "{\"jsonrpc\":\"2.0\",\"id\":\"replay-1\",\"method\":\"roots/list\"}\n"},
    {"another meanwhile", CALL("5", "{\"x\":2}"),
     RES("5", "{\"n\":\"three\"}") "\n"},
    {"not its answer", RES("\"replay-2\"", "{}"), ""},
    {"its answer", RES("\"replay-1\"", "{}"),
     RES("\"k\"", "{\"n\":\"two\"}") "\n"},
    {"the second time", CALL("6", "{\"x\":2}"),
     RES("6", "{\"n\":\"again\"}") "\n"},
    {"and ever after", CALL("7", "{\"x\":2}"),
     RES("7", "{\"n\":\"again\"}") "\n"},
    {"never asked", CALL("8", "{\"x\":3}"),
     "{\"jsonrpc\":\"2.0\",\"id\":8,\"error\":{\"code\":-32602,\"message\":"
     "\"nothing was recorded for these params\"}}\n"},
    {"no such method", "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"x\"}",
     "{\"jsonrpc\":\"2.0\",\"id\":1,\"error\":{\"code\":-32601,\"message\":"
     "\"nothing was recorded for this method\"}}\n"},
    {"never answered", CALL("9", "{\"x\":4}"),
     "{\"jsonrpc\":\"2.0\",\"id\":9,\"error\":{\"code\":-32603,\"message\":"
     "\"the recording ends before the answer\"}}\n"},
    {"ping", "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"}",
     "{\"jsonrpc\":\"2.0\",\"result\":{},\"id\":1}\n"},
    {"no JSON", "{",
     "{\"jsonrpc\":\"2.0\",\"id\":null,\"error\":{\"code\":-32700,"
     "\"message\":\"not JSON\"}}\n"},
    {"no message", "[]",
     "{\"jsonrpc\":\"2.0\",\"id\":null,\"error\":{\"code\":-32600,"
     "\"message\":\"not an MCP message\"}}\n"},
};

static struct mo_replay *player(struct heard *h, const char *text,
                                const char *server, struct mo_err *e)
{
    struct mo_replay_opts o = {
        .text = mo_span_cstr(text), .server = server, .say = on_said, .ctx = h};
    struct mo_replay *r = NULL;

    mo_buf_init(&h->b, 1 << 20);
    return mo_replay_new(&o, &r, e) == 0 ? r : NULL;
}

static void test_plays(void **state)
{
    struct heard h;
    struct mo_err e;
    struct mo_replay *r = player(&h, recording, NULL, &e);

    (void)state;
    assert_non_null(r);
    for (size_t i = 0; i < MO_COUNT(rows); i++) {
        mo_buf_reset(&h.b);
        mo_replay_take(r, mo_span_cstr(rows[i].take));
        check_row(rows[i].name, strcmp(mo_buf_cstr(&h.b), rows[i].says) == 0);
    }
    mo_replay_free(r);
    mo_buf_fini(&h.b);
}

/* A question that nobody waits for any more is not waited for. */
static void test_cancelled(void **state)
{
    struct heard h;
    struct mo_err e;
    struct mo_replay *r = player(&h, recording, "s", &e);

    (void)state;
    assert_non_null(r);
    mo_replay_take(r, MO_SPAN(CALL("1", "{\"x\":1}")));
    mo_replay_take(r, MO_SPAN("{\"jsonrpc\":\"2.0\",\"method\":"
                              "\"notifications/cancelled\",\"params\":"
                              "{\"requestId\":1}}"));
    mo_buf_reset(&h.b);
    mo_replay_take(r, MO_SPAN(RES("\"replay-1\"", "{}")));
    assert_int_equal(h.b.len, 0);
    mo_replay_take(r, MO_SPAN(CALL("1", "{\"x\":1}"))); /* left waiting */
    mo_replay_free(r);
    mo_buf_fini(&h.b);
}

static const struct {
    const char *name, *text, *server, *why;
} bad[] = {
    {"empty", "", NULL, "no recording"},
    {"other JSON", "{}\n", NULL, "line 1: no recording"},
    {"newer", "{\"recording\":2}\n", NULL,
     "line 1: a recording of a newer version"},
    {"no row", HEAD "{}\n", NULL, "line 2: not a line of a recording"},
    {"no such server", HEAD, "x", "the recording has no server 'x'"},
    {"two servers",
     HEAD ASKED("1", "{}") "{\"server\":\"z\",\"child\":1,\"to\":\"client\","
                           "\"message\":{}}\n",
     NULL,
     "line 3: the recording has several servers ('s', 'z', ...); choose one"},
};

static void test_bad(void **state)
{
    (void)state;
    for (size_t i = 0; i < MO_COUNT(bad); i++) {
        struct heard h;
        struct mo_err e;
        struct mo_replay *r = player(&h, bad[i].text, bad[i].server, &e);

        check_row(bad[i].name, !r && strcmp(e.msg, bad[i].why) == 0);
        mo_buf_fini(&h.b);
    }
}

/* Whatever line it is cut off in: what is before is played. */
static void test_cut(void **state)
{
    char text[sizeof(recording)];

    (void)state;
    for (size_t n = sizeof(HEAD) - 1; n < sizeof(recording); n++) {
        struct mo_replay *r = NULL;
        struct heard h;
        struct mo_err e;

        memcpy(text, recording, n);
        text[n] = '\0';
        r = player(&h, text, NULL, &e);
        assert_non_null(r);
        mo_replay_take(r, mo_span_cstr(rows[0].take));
        assert_true(h.b.len > 0);
        mo_replay_free(r);
        mo_buf_fini(&h.b);
    }
}

static void body(void *ctx)
{
    struct heard h;
    struct mo_err e;
    struct mo_replay *r = player(&h, recording, NULL, &e);

    (void)ctx;
    for (size_t i = 0; r && i < MO_COUNT(rows); i++)
        mo_replay_take(r, mo_span_cstr(rows[i].take));
    mo_replay_free(r);
    mo_buf_fini(&h.b);
}

static void test_memory(void **state)
{
    (void)state;
    torture(body, NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_plays),  cmocka_unit_test(test_cancelled),
        cmocka_unit_test(test_bad),    cmocka_unit_test(test_cut),
        cmocka_unit_test(test_memory),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
