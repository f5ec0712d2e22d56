/* The toolbox's protocol without a process: a line in, messages out, with test
 * tools. */
#include "mo_test.h"

#include "toolbox/server.h"

#define SAID_MAX 65536

struct kit {
    struct tb_server server;
    char said[SAID_MAX];
    size_t len;
    struct tb_call *open; /* a call of "wait" */
    unsigned canceled;
};

static void on_send(void *to, struct mo_span m)
{
    struct kit *k = to;

    assert_null(memchr(m.p, '\n', m.n));
    assert_true(k->len + m.n + 2 < SAID_MAX);
    memcpy(k->said + k->len, m.p, m.n);
    k->len += m.n;
    k->said[k->len++] = '\n';
    k->said[k->len] = '\0';
}

/* --- tools --------------------------------------------------------------- */

static int run_echo(void *ctx, struct tb_call *c, struct mo_json args,
                    struct mo_err *e)
{
    struct tb_result r;

    (void)ctx;
    (void)e;
    tb_result_init(&r);
    (void)mo_buf_puts(&r.text, "echo");
    (void)mo_buf_span(&r.data, args.p ? mo_json_text(args) : MO_SPAN("{}"));
    tb_call_done(c, &r);
    tb_result_fini(&r);
    return 0;
}

static int run_fail(void *ctx, struct tb_call *c, struct mo_json args,
                    struct mo_err *e)
{
    (void)ctx;
    (void)c;
    (void)args;
    return mo_fail(e, MO_EPATH, "no such way");
}

static int run_big(void *ctx, struct tb_call *c, struct mo_json args,
                   struct mo_err *e)
{
    struct tb_result r;

    (void)ctx;
    (void)args;
    (void)e;
    tb_result_init(&r);
    for (size_t i = 0; i < TB_RESULT_MAX / 8; i++)
        (void)mo_buf_puts(&r.text, "\x01\x01\x01\x01\x01\x01\x01\x01");
    tb_call_done(c, &r);
    tb_result_fini(&r);
    return 0;
}

static void on_cancel(struct tb_call *c)
{
    struct kit *k = c->job;

    k->open = NULL;
    k->canceled++;
}

static int run_wait(void *ctx, struct tb_call *c, struct mo_json args,
                    struct mo_err *e)
{
    struct kit *k = ctx;

    (void)args;
    (void)e;
    c->job = k;
    c->cancel = on_cancel;
    k->open = c;
    return 0;
}

static const struct tb_field none[] = {{0}};
static const struct tb_tool echo = {
    "echo", "Echo", "Says it back.", TB_READ_ONLY, none, none, run_echo};
static const struct tb_tool fails = {"fail", "Fail", "Fails.", 0,
                                     none,   none,   run_fail};
static const struct tb_tool big = {"big", "Big", "Too big.", 0,
                                   none,  none,  run_big};
static const struct tb_tool waits = {"wait", "Wait", "Waits.", 0,
                                     none,   none,   run_wait};
static const struct tb_tool *const tools[] = {&echo, &fails, &big, &waits,
                                              NULL};

static void kit_init(struct kit *k)
{
    k->len = 0;
    k->said[0] = '\0';
    k->open = NULL;
    k->canceled = 0;
    k->server = (struct tb_server){.tools = tools,
                                   .instructions = "how",
                                   .ctx = k,
                                   .send = on_send,
                                   .to = k};
    tb_server_init(&k->server);
}

static const char *say(struct kit *k, const char *line)
{
    k->len = 0;
    k->said[0] = '\0';
    tb_server_line(&k->server, mo_span_cstr(line));
    return k->said;
}

#define INIT(v)                                                                \
    "{\"jsonrpc\":\"2.0\",\"id\":0,\"method\":\"initialize\",\"params\":"      \
    "{\"protocolVersion\":\"" v "\",\"capabilities\":{}}}"
#define RQ(method, params)                                                     \
    "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"" method                       \
    "\",\"params\":" params "}"
#define META(more)                                                             \
    "\"_meta\":{\"io.modelcontextprotocol/protocolVersion\":\"2026-07-28\","   \
    "\"io.modelcontextprotocol/clientCapabilities\":{}" more "}"

/* --- rows ---------------------------------------------------------------- */

static void messages(void **state)
{
    static const struct {
        const char *version; /* of the session, or NULL */
        const char *in, *want;
    } rows[] = {
        {NULL, "{", "\"code\":-32700"},
        {NULL, "", ""},
        {NULL, " \t", ""},
        {NULL, "[]", "\"code\":-32600"},
        {NULL, "{\"jsonrpc\":\"2.0\",\"id\":7}", "\"id\":7,\"error\""},
        {NULL, "{\"jsonrpc\":\"2.0\",\"id\":7,\"result\":{}}", ""},
        {NULL, "{\"jsonrpc\":\"2.0\",\"method\":\"ping\"}", ""},
        {NULL, RQ("ping", "{}"),
         "{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{}}"},
        {NULL, RQ("tools/list", "{}"), "must be initialize"},
        {NULL, RQ("initialize", "{}"), "protocolVersion must be a string"},
        {NULL, RQ("nothing", "{}"), "\"code\":-32601"},
        {NULL, RQ("server/discover", "{}"), "\"code\":-32601"},
        {"2025-11-25", RQ("tools/list", "[]"), "\"name\":\"echo\""},
        {"2025-11-25", RQ("tools/list", "{\"cursor\":\"1\"}"), "-32602"},
        {"2025-11-25", RQ("tools/call", "{}"), "\"code\":-32602"},
        {"2025-11-25", RQ("tools/call", "{\"name\":\"x\"}"), "-32602"},
        {"2025-11-25", RQ("tools/call", "{\"name\":\"echo\",\"arguments\":[]}"),
         "must be an object"},
        {"2025-11-25", RQ("tools/call", "{\"name\":\"fail\"}"),
         "{\"content\":[{\"type\":\"text\",\"text\":\"no such way\"}],"
         "\"isError\":true,\"_meta\":{\"mo.error\":\"path\"}}"},
        {"2025-11-25", RQ("tools/call", "{\"name\":\"big\"}"),
         "too big to be sent"},
        {"2025-11-25",
         RQ("tools/call", "{\"name\":\"echo\",\"arguments\":{\"a\":1}}"),
         "\"structuredContent\":{\"a\":1},\"isError\":false}"},
        {"2025-03-26",
         RQ("tools/call", "{\"name\":\"echo\",\"arguments\":{\"a\":1}}"),
         "\"text\":\"echo\"}],\"isError\":false}"},
        {"2025-11-25", RQ("logging/setLevel", "{\"level\":\"warning\"}"),
         "\"result\":{}"},
        {"2025-11-25", RQ("logging/setLevel", "{\"level\":\"loud\"}"),
         "-32602"},
        {"2025-11-25", "[" RQ("ping", "{}") "]", "2025-03-26 only"},
        {"2025-03-26", "[" RQ("ping", "{}") ",1,[" RQ("ping", "{}") "]]",
         "no JSON-RPC message in a batch"},
        {NULL, RQ("server/discover", "{" META("") "}"),
         "\"supportedVersions\":[\"2026-07-28\",\"2025-11-25\""},
        {NULL, RQ("tools/call", "{\"name\":\"echo\"," META("") "}"),
         "\"resultType\":\"complete\""},
        {NULL, RQ("ping", "{" META("") "}"), "-32601"},
        {NULL, RQ("initialize", "{" META("") "}"), "-32601"},
        {NULL,
         RQ("tools/list",
            "{" META(",\"io.modelcontextprotocol/logLevel\":1") "}"),
         "is no level"},
        {NULL,
         RQ("tools/list", "{\"_meta\":{\"io.modelcontextprotocol/"
                          "protocolVersion\":\"2026-07-28\"}}"),
         "clientCapabilities"},
        {NULL,
         RQ("tools/list",
            "{\"_meta\":{\"io.modelcontextprotocol/protocolVersion\":"
            "\"2030-01-01\",\"io.modelcontextprotocol/clientCapabilities\":"
            "{}}}"),
         "\"data\":{\"supported\":[\"2026-07-28\"],\"requested\":"
         "\"2030-01-01\"}"},
        {NULL,
         RQ("tools/list", "{\"_meta\":{\"io.modelcontextprotocol/"
                          "protocolVersion\":7}}"),
         "must be a string"},
    };

    (void)state;
    for (size_t i = 0; i < MO_COUNT(rows); i++) {
        struct kit k;
        char init[256];
        const char *got;

        kit_init(&k);
        (void)snprintf(init, sizeof(init), INIT("%s"),
                       rows[i].version ? rows[i].version : "");
        if (rows[i].version)
            assert_non_null(strstr(say(&k, init), rows[i].version));
        got = say(&k, rows[i].in);
        check_row(rows[i].in, strstr(got, rows[i].want) != NULL);
        if (!*rows[i].want)
            check_row(rows[i].in, !*got);
        tb_server_fini(&k.server);
    }
}

#define CALL_WAIT                                                              \
    RQ("tools/call", "{\"name\":\"wait\",\"_meta\":{\"progressToken\":\"t\"}"  \
                     "}")

static void a_call_is_ended_once(void **state)
{
    struct kit k;
    struct mo_err e = {MO_EIO, 0, "late"};

    (void)state;
    kit_init(&k);
    (void)say(&k, INIT("2025-11-25"));
    assert_string_equal(say(&k, CALL_WAIT), "");
    assert_non_null(k.open);
    assert_non_null(strstr(say(&k, CALL_WAIT), "this id is in use"));
    assert_int_equal(k.server.ncalls, 1);

    k.len = 0;
    tb_call_live(k.open, "stdout", MO_SPAN("ab"), 2);
    tb_call_live(k.open, "stderr", MO_SPAN("c"), 5);
    assert_string_equal(
        k.said,
        "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/progress\",\"params\":"
        "{\"progressToken\":\"t\",\"progress\":2,\"message\":\"ab\"}}\n"
        "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/progress\",\"params\":"
        "{\"progressToken\":\"t\",\"progress\":7,\"message\":\"c\"}}\n");
    k.len = 0;
    tb_call_fail(k.open, &e);
    assert_non_null(strstr(k.said, "\"text\":\"late\""));
    assert_int_equal(k.server.ncalls, 0);
    assert_int_equal(k.canceled, 0);
    tb_server_fini(&k.server);
}

static void cancelled_calls_say_nothing(void **state)
{
    static const char *const ends[] = {
        "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/cancelled\","
        "\"params\":{\"requestId\":1}}",
        INIT("2024-11-05"),
    };

    (void)state;
    for (size_t i = 0; i < MO_COUNT(ends); i++) {
        struct kit k;

        kit_init(&k);
        (void)say(&k, INIT("2025-11-25"));
        (void)say(&k, CALL_WAIT);
        (void)say(&k, "{\"jsonrpc\":\"2.0\",\"method\":"
                      "\"notifications/cancelled\",\"params\":{\"requestId\":"
                      "\"1\"}}");
        assert_int_equal(k.canceled, 0); /* "1" is not 1 */
        (void)say(&k, ends[i]);
        assert_int_equal(k.canceled, 1);
        assert_null(strstr(k.said, "\"id\":1"));
        assert_int_equal(k.server.ncalls, 0);
        tb_server_fini(&k.server);
    }
}

static void calls_are_bounded(void **state)
{
    struct kit k;

    (void)state;
    kit_init(&k);
    (void)say(&k, INIT("2025-11-25"));
    for (int i = 0; i < TB_CALLS_MAX + 1; i++) {
        char line[128];

        (void)snprintf(line, sizeof(line),
                       "{\"jsonrpc\":\"2.0\",\"id\":%d,\"method\":"
                       "\"tools/call\",\"params\":{\"name\":\"wait\"}}",
                       i);
        (void)say(&k, line);
    }
    assert_non_null(strstr(k.said, "\"mo.error\":\"busy\""));
    tb_server_fini(&k.server);
    assert_int_equal(k.canceled, TB_CALLS_MAX);
}

static void out_of_memory(void *ctx)
{
    struct kit *k = ctx;

    kit_init(k);
    (void)say(k, INIT("2025-11-25"));
    (void)say(k, RQ("tools/list", "{}"));
    (void)say(k,
              RQ("tools/call", "{\"name\":\"echo\",\"arguments\":{\"a\":1}}"));
    (void)say(k, CALL_WAIT);
    if (k->open)
        tb_call_live(k->open, "stdout", MO_SPAN("x"), 1);
    tb_server_fini(&k->server);
}

static void survives_no_memory(void **state)
{
    struct kit k;

    (void)state;
    torture(out_of_memory, &k);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(messages),
        cmocka_unit_test(a_call_is_ended_once),
        cmocka_unit_test(cancelled_calls_say_nothing),
        cmocka_unit_test(calls_are_bounded),
        cmocka_unit_test(survives_no_memory),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
