/* Forwarded calls: per-session servers, tasks of both kinds, listens, many
 * calls at once, servers that come and go. */
#include "gw_kit.h"

#define P "io.modelcontextprotocol/"
#define TOOL(name, more)                                                       \
    "{\"name\":\"" name "\",\"inputSchema\":{\"type\":\"object\"}" more "}"
#define REQ(id, method, params)                                                \
    "{\"jsonrpc\":\"2.0\",\"id\":" id ",\"method\":\"" method                  \
    "\",\"params\":{" params "}}"
#define RES(id, r) "{\"jsonrpc\":\"2.0\",\"id\":" id ",\"result\":" r "}"
#define META(caps)                                                             \
    "\"_meta\":{\"" P "protocolVersion\":\"2026-07-28\",\"" P                  \
    "clientCapabilities\":" caps "}"

static void begin(struct world *w, const struct mo_gw_server *v, size_t n,
                  const struct rule *rules)
{
    memset(w, 0, sizeof(*w));
    w->rules[0] = rules;
    assert_int_equal(world_open(w, loop_new(), v, n), 0);
}

static void end(struct world *w)
{
    struct mo_loop *l = w->l;

    world_close(w);
    mo_loop_free(l);
}

static const struct rule plain[] = {
    INIT_OK("{\"tools\":{},\"logging\":{}}"),
    LIST("tools/list", "tools", TOOL("work", "")),
    {NULL, NULL},
};

static const struct mo_gw_server shared[] = {
    {.name = "one", .digest = "1", .mode = MO_CONN_LEGACY},
};

/* --- a child for each session -------------------------------------------- */

static bool two_peers(void *ctx)
{
    return ((struct world *)ctx)->npeers == 2;
}

static bool second_gone(void *ctx)
{
    return !((struct world *)ctx)->peers[1].s;
}

static void test_per_session(void **state)
{
    static const struct mo_gw_server own[] = {
        {.name = "one",
         .digest = "1",
         .mode = MO_CONN_LEGACY,
         .per_session = true},
    };
    struct world w;
    struct client *a = &w.clients[0], *b = &w.clients[1];

    (void)state;
    begin(&w, own, 1, plain);
    hello(a, HELLO("{\"roots\":{}}"));
    hello(b, HELLO("{\"elicitation\":{}}"));
    tell(a, REQ("1", "tools/call", "\"name\":\"work\""));
    arrives(&w, &w.peers[0], "tools/call");
    assert_true(peer_saw(&w.peers[0], "\"capabilities\":{\"roots\":{}}"));
    tell(b, REQ("1", "tools/call", "\"name\":\"work\""));
    wait_for(w.l, two_peers, &w);
    arrives(&w, &w.peers[1], "tools/call");
    assert_true(peer_saw(&w.peers[1], "\"capabilities\":{\"elicitation\":{}}"));
    tell(b, REQ("2", "tools/call", "\"name\":\"work\""));
    settle(b);
    peer_say(
        &w.peers[1],
        MO_SPAN("{\"jsonrpc\":\"2.0\",\"id\":\"q\",\"method\":"
                "\"elicitation/create\",\"params\":{\"message\":\"b?\"}}"));
    hears(b, "b?");
    settle(a);
    assert_false(heard(a, "b?"));
    client_close(b);
    wait_for(w.l, second_gone, &w);
    assert_non_null(w.peers[0].s);
    peer_say(&w.peers[0], MO_SPAN(RES("$id", "{\"content\":[]}")));
    hears(a, RES("1", "{\"content\":[]}"));
    end(&w);
}

/* A log message outside of any call goes to the session of the child;
 * changed roots are sent to it. */
static void test_session_news(void **state)
{
    static const struct mo_gw_server own[] = {
        {.name = "one",
         .digest = "1",
         .mode = MO_CONN_LEGACY,
         .per_session = true},
    };
    struct world w;
    struct client *a = &w.clients[0], *b = &w.clients[1];
    struct peer *p = &w.peers[0];

    (void)state;
    begin(&w, own, 1, plain);
    hello(a, HELLO("{\"roots\":{\"listChanged\":true}}"));
    hello(b, HELLO("{}"));
    tell(a, REQ("1", "tools/list", ""));
    hears(a, "\"work\"");
    peer_say(p, MO_SPAN("{\"jsonrpc\":\"2.0\",\"method\":\"notifications/"
                        "message\",\"params\":{\"level\":\"info\","
                        "\"data\":\"psst\"}}"));
    hears(a, "psst");
    tell(a, "{\"jsonrpc\":\"2.0\",\"method\":"
            "\"notifications/roots/list_changed\"}");
    arrives(&w, p, "notifications/roots/list_changed");
    settle(b);
    assert_false(heard(b, "psst"));
    end(&w);
}

/* A URL elicitation that is completed after the call has ended. */
static void test_visit(void **state)
{
    struct world w;
    struct client *a = &w.clients[0], *b = &w.clients[1];
    struct peer *p = &w.peers[0];
    char id[64];

    (void)state;
    begin(&w, shared, 1, plain);
    hello(a, HELLO("{\"elicitation\":{\"url\":{}}}"));
    hello(b, HELLO("{\"elicitation\":{\"url\":{}}}"));
    tell(a, REQ("1", "tools/call", "\"name\":\"work\""));
    arrives(&w, p, "tools/call");
    memcpy(id, p->id, sizeof(id));
    peer_say(p, MO_SPAN("{\"jsonrpc\":\"2.0\",\"id\":\"q\",\"method\":"
                        "\"elicitation/create\",\"params\":{\"mode\":"
                        "\"url\",\"url\":\"https://a.example/\","
                        "\"elicitationId\":\"e1\",\"message\":\"go\"}}"));
    hears(a, "\"elicitationId\":\"e1\"");
    tell(a, RES("1", "{\"action\":\"accept\"}"));
    arrives(&w, p, "\"id\":\"q\",\"result\"");
    memcpy(p->id, id, sizeof(id));
    peer_say(p, MO_SPAN(RES("$id", "{\"content\":[]}")));
    hears(a, RES("1", "{\"content\":[]}"));
    peer_say(p, MO_SPAN("{\"jsonrpc\":\"2.0\",\"method\":\"notifications/"
                        "elicitation/complete\",\"params\":"
                        "{\"elicitationId\": \"e1\"}}"));
    hears(a, "notifications/elicitation/complete\",\"params\":"
             "{\"elicitationId\": \"e1\"}}");
    settle(b);
    assert_false(heard(b, "e1"));
    end(&w);
}

/* --- tasks --------------------------------------------------------------- */

#define TASK                                                                   \
    "\"taskId\":\"t1\",\"createdAt\":\"2026-01-01T00:00:00Z\","                \
    "\"lastUpdatedAt\":\"2026-01-01T00:00:00Z\""

static const struct rule tasking[] = {
    INIT_OK("{\"tools\":{},\"tasks\":{\"requests\":{\"tools\":{\"call\":{}}}}"
            "}"),
    LIST("tools/list", "tools",
         TOOL("long", ",\"execution\":{\"taskSupport\":\"required\"}")),
    {"tools/call",
     RES("$id", "{\"task\":{" TASK ",\"status\":\"working\",\"ttl\":null,"
                "\"pollInterval\":50}}")},
    {"tasks/get",
     RES("$id", "{" TASK ",\"status\":\"completed\",\"ttl\":null}")},
    {"tasks/result", RES("$id", "{\"content\":[ \"done\" ]}")},
    {NULL, NULL},
};

/* The tool requires a task, and the client does not see it. */
static void test_task_required(void **state)
{
    struct world w;
    struct client *c = &w.clients[0];

    (void)state;
    begin(&w, shared, 1, tasking);
    hello(c, HELLO("{}"));
    tell(c, REQ("1", "tools/call", "\"name\":\"long\",\"arguments\":{}"));
    hears(c, RES("1", "{\"content\":[ \"done\" ]}"));
    assert_true(peer_saw(&w.peers[0], "\"params\":{\"name\":\"long\","
                                      "\"arguments\":{},\"task\":{}}"));
    end(&w);
}

/* The client asks for a task of an ordinary tool: the endpoint keeps it. */
static void test_task_down(void **state)
{
    struct world w;
    struct client *c = &w.clients[0];

    (void)state;
    begin(&w, shared, 1, plain);
    hello(c, HELLO("{}"));
    tell(c,
         REQ("1", "tools/call", "\"name\":\"work\",\"task\":{\"ttl\":9000}"));
    hears(c, "\"taskId\"");
    arrives(&w, &w.peers[0], "\"params\":{\"name\":\"work\"}}");
    peer_say(&w.peers[0], MO_SPAN(RES("$id", "{\"content\":[]}")));
    hears(c, "\"status\":\"completed\"");
    end(&w);
}

#define DISCOVERED                                                             \
    {                                                                          \
        "server/discover",                                                     \
            RES("$id", "{\"resultType\":\"complete\",\"supportedVersions\":"   \
                       "[\"2026-07-28\"],\"capabilities\":{\"tools\":{},"      \
                       "\"resources\":{\"subscribe\":true},"                   \
                       "\"extensions\":{\"" P "tasks\":{}}}}")                 \
    }

static const struct rule modern[] = {
    DISCOVERED,
    LIST("tools/list", "tools", TOOL("work", "")),
    LIST("resources/list", "resources", "{\"uri\":\"a:1\",\"name\":\"a\"}"),
    LIST("resources/templates/list", "resourceTemplates", ""),
    {"tools/call",
     RES("$id", "{\"resultType\":\"task\"," TASK ",\"status\":\"working\","
                "\"ttlMs\":null,\"pollIntervalMs\":50}")},
    {"tasks/get",
     RES("$id", "{\"resultType\":\"complete\"," TASK ",\"status\":"
                "\"completed\",\"ttlMs\":null,\"result\":{\"content\":[ 5 ]}"
                "}")},
    {NULL, NULL},
};

static const struct mo_gw_server modern_one[] = {
    {.name = "one", .digest = "1", .mode = MO_CONN_MODERN},
};

#define EXT "{\"extensions\":{\"" P "tasks\":{}}}"

/* A call that becomes a task, and the exposed task id. */
static void call_task(struct client *c, char id[256])
{
    const char *at;

    tell(c, REQ("1", "tools/call", "\"name\":\"work\"," META(EXT)));
    hears(c, "\"resultType\":\"task\"");
    at = strstr(mo_buf_cstr(&c->me.got), "\"taskId\":\"");
    assert_non_null(at);
    assert_int_equal(sscanf(at + 10, "%255[^\"]", id), 1);
}

static void test_task_passed(void **state)
{
    struct world w;
    struct client *c = &w.clients[0], *other = &w.clients[1];
    char id[256], line[1024];

    (void)state;
    begin(&w, modern_one, 1, modern);
    call_task(c, id);
    assert_string_not_equal(id, "t1");
    (void)snprintf(line, sizeof(line),
                   REQ("2", "tasks/get", "\"taskId\":\"%s\"," META(EXT)), id);
    tell(c, line);
    hears(c, "\"id\":2,\"result\":");
    hears(c, "\"result\":{\"content\":[ 5 ]}");
    assert_true(peer_saw(&w.peers[0], "{\"taskId\":\"t1\""));
    (void)snprintf(line, sizeof(line), "\"taskId\":\"%s\"", id);
    assert_true(heard(c, line));
    /* other clients do not find it */
    (void)snprintf(line, sizeof(line),
                   REQ("2", "tasks/get", "\"taskId\":\"%s\"," META(EXT)), id);
    tell(other, line);
    hears(other, "\"id\":2,\"error\":{\"code\":-32602");
    end(&w);
}

#define X16  "xxxxxxxxxxxxxxxx"
#define X256 X16 X16 X16 X16 X16 X16 X16 X16 X16 X16 X16 X16 X16 X16 X16 X16

static const struct rule lengthy[] = {
    {"server/discover",
     RES("$id", "{\"resultType\":\"complete\",\"supportedVersions\":"
                "[\"2026-07-28\"],\"capabilities\":{\"tools\":{},"
                "\"extensions\":{\"" P "tasks\":{}}},"
                "\"serverInfo\":{\"name\":\"s\",\"version\":\"1\"}}")},
    LIST("tools/list", "tools", TOOL("work", "")),
    {"tools/call",
     RES("$id", "{\"resultType\":\"task\"," TASK ",\"status\":\"working\","
                "\"ttlMs\":null,\"pollIntervalMs\":50}")},
    {"tasks/get",
     RES("$id", "{\"resultType\":\"complete\"," TASK ",\"status\":"
                "\"completed\",\"ttlMs\":null,\"result\":{\"content\":["
                "{\"type\":\"text\",\"text\":\"" X256 X256 "\"}]}}")},
    {NULL, NULL},
};

/* A task's result has its tool's limit, whoever asks for it; the limit is
 * part of the id, which does not change. */
static void test_task_cut(void **state)
{
    static const struct mo_gw_server limited[] = {
        {.name = "one",
         .digest = "1",
         .mode = MO_CONN_MODERN,
         .result_bytes = 300},
    };
    struct world w;
    struct client *c = &w.clients[0];
    char id[256], line[1024];

    (void)state;
    begin(&w, limited, 1, lengthy);
    call_task(c, id);
    assert_non_null(strstr(id, "-12c.t1"));
    (void)snprintf(line, sizeof(line),
                   REQ("2", "tasks/get", "\"taskId\":\"%s\"," META(EXT)), id);
    tell(c, line);
    hears(c, "\"id\":2,\"result\":");
    hears(c, "read_result");
    assert_false(heard(c, X256 X256));
    assert_true(heard(c, X256));
    (void)snprintf(line, sizeof(line), "\"taskId\":\"%s\"", id);
    assert_true(heard(c, line));
    /* a forged id does not raise the limit */
    (void)snprintf(line, sizeof(line),
                   REQ("3", "tasks/get", "\"taskId\":\"%.16s.t1\"," META(EXT)),
                   id);
    tell(c, line);
    hears(c, "\"id\":3,\"error\":{\"code\":-32602");
    end(&w);
}

static void test_task_watched(void **state)
{
    struct world w;
    struct client *c = &w.clients[0];

    (void)state;
    begin(&w, modern_one, 1, modern);
    tell(c, REQ("1", "tools/call", "\"name\":\"work\"," META("{}")));
    hears(c, "\"content\":[ 5 ]");
    end(&w);
}

/* --- notifications of a modern server ------------------------------------ */

static void test_listen(void **state)
{
    static const struct rule more[] = {
        LIST("tools/list", "tools", TOOL("work", "") "," TOOL("new", "")),
        {NULL, NULL},
    };
    struct world w;
    struct client *c = &w.clients[0];
    struct peer *p = &w.peers[0];

    (void)state;
    begin(&w, modern_one, 1, modern);
    hello(c, HELLO("{}"));
    tell(c, REQ("1", "tools/list", ""));
    hears(c, "\"work\"");
    arrives(&w, p, "\"subscriptions/listen\"");
    assert_true(peer_saw(p, "\"toolsListChanged\":true"));
    tell(c, REQ("2", "resources/subscribe", "\"uri\":\"a:1\""));
    arrives(&w, p, "\"resourceSubscriptions\":[\"a:1\"]");
    arrives(&w, p, "notifications/cancelled"); /* the one before it */
    peer_say(p, MO_SPAN("{\"jsonrpc\":\"2.0\",\"method\":\"notifications/"
                        "resources/updated\",\"params\":{\"uri\":\"a:1\"}}"));
    hears(c, "notifications/resources/updated");
    p->rules = more;
    peer_say(p, MO_SPAN("{\"jsonrpc\":\"2.0\",\"method\":\"notifications/"
                        "tools/list_changed\"}"));
    hears(c, "notifications/tools/list_changed");
    end(&w);
}

/* --- a legacy server with the error number of a header mismatch ---------- */

/* It asks a question after its answer, and never lists its tools again. */
static const struct rule mismatch[] = {
    {"tools/call",
     "{\"jsonrpc\":\"2.0\",\"id\":$id,\"error\":{\"code\":-32020,"
     "\"message\":\"done, in part\"}}\n"
     "{\"jsonrpc\":\"2.0\",\"id\":\"q\",\"method\":\"elicitation/create\","
     "\"params\":{\"message\":\"and now?\",\"requestedSchema\":"
     "{\"type\":\"object\",\"properties\":{}}}}"},
    {NULL, NULL},
};

/* The number is the server's own: the call may have had an effect, and is not
 * repeated. The question belongs to no call. */
static void test_legacy_mismatch(void **state)
{
    struct world w;
    struct client *a = &w.clients[0], *b = &w.clients[1];
    struct peer *p = &w.peers[0];

    (void)state;
    begin(&w, shared, 1, plain);
    hello(b, HELLO("{}"));
    tell(b, REQ("1", "tools/list", ""));
    hears(b, "\"work\"");
    p->rules = mismatch;
    tell(a, REQ("2", "tools/call",
                "\"name\":\"work\"," META("{\"elicitation\":{}}")));
    hears(a, "\"id\":2");
    peer_say(p, MO_SPAN(RES("$id", "{\"tools\":[" TOOL("work", "") "]}")));
    settle(b);
    arrives(&w, p, "\"id\":\"q\",\"error\"");
    assert_true(heard(a, "done, in part"));
    assert_false(heard(a, "and now?"));
    assert_non_null(strstr(mo_buf_cstr(&p->log), "\"tools/call\""));
    assert_null(strstr(strstr(mo_buf_cstr(&p->log), "\"tools/call\"") + 1,
                       "\"tools/call\""));
    end(&w);
}

/* --- servers that are added, removed, or do not start -------------------- */

static const struct rule silent[] = {
    {"initialize", NULL},
    {NULL, NULL},
};

/* A server that does not start does not block a list. */
static void test_slow_server(void **state)
{
    static const struct mo_gw_server v[] = {
        {.name = "one", .digest = "1", .mode = MO_CONN_LEGACY},
        {.name = "two", .digest = "2", .mode = MO_CONN_LEGACY},
    };
    struct world w;
    struct client *c = &w.clients[0];

    (void)state;
    memset(&w, 0, sizeof(w));
    w.rules[0] = plain;
    w.rules[1] = silent;
    assert_int_equal(world_open(&w, loop_new(), v, 2), 0);
    hello(c, HELLO("{}"));
    tell(c, REQ("1", "tools/list", ""));
    hears(c, "\"id\":1,\"result\":{\"tools\":[{\"name\":\"work\"");
    end(&w);
}

static bool first_gone(void *ctx)
{
    return !((struct world *)ctx)->peers[0].s;
}

static void test_reload(void **state)
{
    static const struct mo_gw_server before[] = {
        {.name = "one", .digest = "1", .mode = MO_CONN_LEGACY},
        {.name = "two", .digest = "2", .mode = MO_CONN_LEGACY},
    };
    static const struct mo_gw_server after[] = {
        {.name = "two", .digest = "2", .mode = MO_CONN_LEGACY},
        {.name = "one", .digest = "other", .mode = MO_CONN_LEGACY},
    };
    struct world w;
    struct client *c = &w.clients[0];

    (void)state;
    begin(&w, before, 2, plain);
    hello(c, HELLO("{}"));
    tell(c, REQ("1", "tools/list", ""));
    hears(c, "two_work");
    tell(c, REQ("2", "tools/call", "\"name\":\"one_work\""));
    tell(c, REQ("3", "tools/call", "\"name\":\"two_work\""));
    arrives(&w, &w.peers[0], "tools/call");
    arrives(&w, &w.peers[1], "tools/call");
    assert_int_equal(mo_gateway_servers(w.g, after, 2, NULL), 0);
    hears(c, "notifications/tools/list_changed");
    peer_say(&w.peers[1], MO_SPAN(RES("$id", "{\"content\":[]}")));
    hears(c, RES("3", "{\"content\":[]}"));
    assert_non_null(w.peers[0].s); /* removed, with a call to finish */
    peer_say(&w.peers[0], MO_SPAN(RES("$id", "{\"content\":[]}")));
    hears(c, RES("2", "{\"content\":[]}"));
    wait_for(w.l, first_gone, &w);
    assert_int_equal(w.npeers, 2);
    assert_int_equal(mo_gateway_servers(w.g, NULL, 0, NULL), 0);
    tell(c, REQ("4", "tools/call", "\"name\":\"two_work\""));
    hears(c, "\"id\":4,\"error\":{\"code\":-32602");
    end(&w);
}

/* --- many at once -------------------------------------------------------- */

#define MANY 400

/* A server that returns the arguments it got, a few calls at a time and the
 * last one first. */
struct echo {
    struct mo_buf held[8];
    size_t n;
};

static void flush(struct peer *p, struct echo *e)
{
    while (e->n) {
        struct mo_buf *b = &e->held[--e->n];

        if (p->s && !mo_buf_err(b))
            (void)mo_stream_write(p->s, mo_buf_view(b));
        mo_buf_fini(b);
    }
}

static void echo_line(struct peer *p, struct echo *e, struct mo_span line)
{
    struct mo_buf *b = &e->held[e->n];
    struct mo_rpc m;

    if (mo_rpc_parse(line, &m, NULL) < 0 ||
        !mo_json_str_eq(m.method, MO_SPAN("tools/call"))) {
        peer_line(p, line);
        return;
    }
    mo_buf_init(b, 1 << 20);
    (void)mo_buf_puts(b, "{\"jsonrpc\":\"2.0\",\"id\":");
    (void)mo_buf_span(b, mo_json_text(m.id));
    (void)mo_buf_puts(b, ",\"result\":{\"content\":[],\"echo\":");
    (void)mo_buf_span(b, mo_json_text(mo_json_get(m.params, "arguments")));
    (void)mo_buf_puts(b, "}}\n");
    if (++e->n == MO_COUNT(e->held))
        flush(p, e);
}

static struct echo echoing;

static void echo_read(void *ctx, char *bytes, size_t n)
{
    struct peer *p = ctx;
    struct mo_span in = mo_span(bytes, n), line;

    while (in.n && p->s && mo_frame_next(&p->f, &in, &line) == 1)
        echo_line(p, &echoing, line);
}

static const struct mo_stream_cb echo_cb = {
    .on_read = echo_read,
    .on_close = peer_closed,
};

/* Varied JSON, different for each number. */
static void put_payload(struct mo_buf *b, unsigned who, unsigned i)
{
    static const char *const odd[] = {
        "1.0",
        "-0",
        "1e400",
        "\"\\ud83d\\ude00\\/\"",
        "[ ]",
        "{\"a\" : null}",
        "123456789012345678901234567890",
        "\"\\u0000\"",
    };

    (void)mo_buf_printf(b, "{\"who\":%u,\"i\": %u,\"x\":%s,\"\\u0078\":[%s]}",
                        who, i, odd[i % MO_COUNT(odd)],
                        odd[(i / 3) % MO_COUNT(odd)]);
}

static void check_heard(struct client *c, unsigned who)
{
    for (unsigned i = 0; i < MANY; i++) {
        struct mo_buf b;

        mo_buf_init(&b, 4096);
        (void)mo_buf_printf(&b,
                            "\"id\":%u,\"result\":{%s\"content\":[],"
                            "\"echo\":",
                            i, who ? "\"resultType\":\"complete\"," : "");
        put_payload(&b, who, i);
        hears(c, mo_buf_cstr(&b));
        mo_buf_fini(&b);
    }
    assert_false(heard(c, who ? "\"who\":0" : "\"who\":1"));
}

/* Two clients, one of each era, and one child that answers out of order:
 * each gets its own results, with unchanged bytes. */
static void test_many(void **state)
{
    struct world w;
    bool never = false;

    (void)state;
    begin(&w, shared, 1, plain);
    hello(&w.clients[0], HELLO("{}"));
    tell(&w.clients[0], REQ("\"l\"", "tools/list", ""));
    hears(&w.clients[0], "\"work\"");
    mo_stream_attach(w.peers[0].s, &echo_cb, &w.peers[0]);
    for (unsigned i = 0; i < 2 * MANY; i++) {
        struct mo_buf b;

        mo_buf_init(&b, 4096);
        (void)mo_buf_printf(&b,
                            "{\"jsonrpc\":\"2.0\",\"id\":%u,\"method\":"
                            "\"tools/call\",\"params\":{\"name\":\"work\","
                            "\"arguments\":",
                            i / 2);
        put_payload(&b, i % 2, i / 2);
        if (i % 2)
            (void)mo_buf_puts(&b, "," META("{}"));
        (void)mo_buf_puts(&b, "}}");
        tell(&w.clients[i % 2], mo_buf_cstr(&b));
        mo_buf_fini(&b);
        if (i % 50 == 49)
            (void)mo_loop_until(w.l, flag_is_up, &never, 1);
    }
    check_heard(&w.clients[0], 0);
    check_heard(&w.clients[1], 1);
    flush(&w.peers[0], &echoing);
    end(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_per_session),
        cmocka_unit_test(test_session_news),
        cmocka_unit_test(test_visit),
        cmocka_unit_test(test_task_required),
        cmocka_unit_test(test_task_down),
        cmocka_unit_test(test_task_passed),
        cmocka_unit_test(test_task_cut),
        cmocka_unit_test(test_task_watched),
        cmocka_unit_test(test_listen),
        cmocka_unit_test(test_legacy_mismatch),
        cmocka_unit_test(test_slow_server),
        cmocka_unit_test(test_reload),
        cmocka_unit_test(test_many),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
