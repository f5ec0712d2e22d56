/* Failed calls: when they are retried, when a fallback server runs them, and
 * when neither is allowed. Each has exactly one outcome. */
#include "gw_kit.h"

#define REQ(id, method, params)                                                \
    "{\"jsonrpc\":\"2.0\",\"id\":" id ",\"method\":\"" method                  \
    "\",\"params\":{" params "}}"
#define RES(id, r) "{\"jsonrpc\":\"2.0\",\"id\":" id ",\"result\":" r "}"
#define TOOLS                                                                  \
    LIST("tools/list", "tools",                                                \
         "{\"name\":\"work\",\"inputSchema\":{\"type\":\"object\"}},"          \
         "{\"name\":\"look\",\"inputSchema\":{\"type\":\"object\"},"           \
         "\"annotations\":{\"readOnlyHint\":true}},"                           \
         "{\"name\":\"set\",\"inputSchema\":{\"type\":\"object\"},"            \
         "\"annotations\":{\"idempotentHint\":true}}")

/* Dies on every call. */
static const struct rule dies[] = {
    INIT_OK("{\"tools\":{},\"prompts\":{}}"),
    TOOLS,
    LIST("prompts/list", "prompts", "{\"name\":\"p\"}"),
    {"tools/call", "CLOSE"},
    {"prompts/get", "CLOSE"},
    {NULL, NULL},
};

static const struct rule works[] = {
    INIT_OK("{\"tools\":{},\"prompts\":{}}"),
    TOOLS,
    LIST("prompts/list", "prompts", "{\"name\":\"p\"}"),
    {"tools/call", RES("$id", "{\"content\":[],\"x\":\"done\"}")},
    {"prompts/get", RES("$id", "{\"messages\":[],\"x\":\"done\"}")},
    {NULL, NULL},
};

/* Takes a call and does not answer. */
static const struct rule hangs[] = {
    INIT_OK("{\"tools\":{}}"),
    TOOLS,
    {NULL, NULL},
};

static void begin(struct world *w, const struct mo_gw_server *v, size_t n,
                  const struct rule *rules)
{
    memset(w, 0, sizeof(*w));
    w->rules[0] = rules;
    assert_int_equal(world_open(w, loop_new(), v, n), 0);
    hello(&w->clients[0], HELLO("{}"));
    tell(&w->clients[0], REQ("\"l\"", "tools/list", ""));
    hears(&w->clients[0], "\"id\":\"l\",\"result\"");
    mo_buf_reset(&w->clients[0].me.got);
}

static void end(struct world *w)
{
    struct mo_loop *l = w->l;

    world_close(w);
    mo_loop_free(l);
}

static size_t count(const struct mo_buf *b, const char *text)
{
    struct mo_span rest = mo_buf_view(b);
    size_t n = 0;

    for (;;) {
        ptrdiff_t at = mo_span_search(rest, mo_span_cstr(text));

        if (at < 0)
            return n;
        n++;
        rest = mo_span_skip(rest, (size_t)at + 1);
    }
}

/* Number of calls of all servers. */
static size_t calls(const struct world *w)
{
    size_t n = 0;

    for (size_t i = 0; i < w->npeers; i++)
        n += count(&w->peers[i].log, "\"method\":\"tools/call\"") +
             count(&w->peers[i].log, "\"method\":\"prompts/get\"");
    return n;
}

/* --- the same server again ----------------------------------------------- */

/* Its first child dies on the call, the next one would run it. */
static const struct {
    const char *name, *method, *what;
    int retries;
    bool says_so; /* the configuration */
    bool again;
} rows[] = {
    {"nobody says that it may", "tools/call", "work", 1, false, false},
    {"it only reads", "tools/call", "look", 1, false, true},
    {"it is idempotent", "tools/call", "set", 1, false, true},
    {"the configuration says so", "tools/call", "work", 1, true, true},
    {"not more often than said", "tools/call", "look", 0, false, false},
    {"a prompt is only read", "prompts/get", "p", 1, false, true},
};

static void test_again(void **state)
{
    (void)state;
    for (size_t i = 0; i < MO_COUNT(rows); i++) {
        struct mo_config_tool tool = {.name = "work",
                                      .idempotent = rows[i].says_so,
                                      .retries = -1,
                                      .result_bytes = -1};
        struct mo_gw_server v = {.name = "a",
                                 .digest = "1",
                                 .mode = MO_CONN_LEGACY,
                                 .retries = rows[i].retries,
                                 .tools = &tool,
                                 .ntools = 1};
        struct world w;
        struct client *c = &w.clients[0];
        char line[256];

        begin(&w, &v, 1, dies);
        w.rules[1] = works;
        (void)snprintf(line, sizeof(line), REQ("1", "%s", "\"name\":\"%s\""),
                       rows[i].method, rows[i].what);
        tell(c, line);
        hears(c, "\"id\":1");
        settle(c);
        assert_int_equal(calls(&w), rows[i].again ? 2 : 1);
        tell(c, line);
        hears(c, "\"done\"");
        assert_int_equal(count(&c->me.got, "\"id\":1"), 1);
        end(&w);
    }
}

/* The error says what is known of the outcome. */
static void test_unknown(void **state)
{
    static const struct mo_gw_server v = {
        .name = "a", .digest = "1", .mode = MO_CONN_LEGACY, .retries = 1};
    struct world w;
    struct client *c = &w.clients[0];

    (void)state;
    begin(&w, &v, 1, dies);
    tell(c, REQ("1", "tools/call", "\"name\":\"work\""));
    hears(c, "\"id\":1,\"error\"");
    assert_true(heard(c, "it is not known whether the call was done"));
    assert_true(heard(c, "\"outcome\":\"unknown\""));
    /* a read is retried once; then its outcome is unknown, too */
    tell(c, REQ("2", "tools/call", "\"name\":\"look\""));
    hears(c, "\"id\":2,\"error\"");
    assert_int_equal(count(&c->me.got, "\"outcome\":\"unknown\""), 2);
    assert_int_equal(calls(&w), 3);
    end(&w);
}

/* --- fallback servers ---------------------------------------------------- */

static const char *just_b[] = {"b"};
static const char *b_set[] = {"nobody", "b/set"};

/* It cannot be started: a fallback runs the call, and the result says so. */
static void test_stands_in(void **state)
{
    static const struct mo_gw_server v[] = {
        {.name = "a",
         .digest = "1",
         .mode = MO_CONN_LEGACY,
         .fallback = {just_b, 1}},
        {.name = "b", .digest = "2", .mode = MO_CONN_LEGACY},
    };
    struct world w;
    struct client *c = &w.clients[0];

    (void)state;
    begin(&w, v, 2, works);
    w.refused = "a";
    mo_stream_close(w.peers[strcmp(w.names[0], "a") ? 1 : 0].s, NULL);
    settle(c);
    tell(c, REQ("1", "tools/call", "\"name\":\"a_work\""));
    hears(c, "\"id\":1,\"result\"");
    assert_true(heard(c, "\"mcp-orchestrator/route\":{\"server\":\"b\","
                         "\"tool\":\"work\",\"insteadOf\":\"a\",\"why\":"));
    assert_true(heard(c, "\"done\""));
    /* calls of b still go to b */
    mo_buf_reset(&c->me.got);
    tell(c, REQ("2", "tools/call", "\"name\":\"b_work\""));
    hears(c, RES("2", "{\"content\":[],\"x\":\"done\"}"));
    /* prompts have no fallback */
    tell(c, REQ("3", "prompts/get", "\"name\":\"a_p\""));
    hears(c, "\"id\":3,\"error\"");
    assert_true(heard(c, "\"outcome\":\"not sent\""));
    w.refused = NULL;
    end(&w);
}

/* After a call may have been run, only harmless ones are repeated. */
static void test_not_after(void **state)
{
    static const struct mo_config_tool map = {
        .name = "look", .fallback = {b_set, 2}, .result_bytes = -1};
    static const struct mo_gw_server v[] = {
        {.name = "a",
         .digest = "1",
         .mode = MO_CONN_LEGACY,
         .fallback = {just_b, 1},
         .tools = &map,
         .ntools = 1},
        {.name = "b", .digest = "2", .mode = MO_CONN_LEGACY},
    };
    struct world w;
    struct client *c = &w.clients[0];

    (void)state;
    begin(&w, v, 2, works);
    for (size_t i = 0; i < 2; i++)
        if (strcmp(w.names[i], "a") == 0)
            w.peers[i].rules = dies;
    w.rules[2] = dies;
    tell(c, REQ("1", "tools/call", "\"name\":\"a_work\""));
    hears(c, "\"id\":1,\"error\"");
    assert_int_equal(calls(&w), 1);
    /* a configured fallback tool with another name */
    tell(c, REQ("2", "tools/call", "\"name\":\"a_look\""));
    hears(c, "\"id\":2,\"result\"");
    assert_true(heard(c, "\"server\":\"b\",\"tool\":\"set\""));
    assert_int_equal(calls(&w), 3);
    end(&w);
}

/* --- time ---------------------------------------------------------------- */

/* A call that has used up its time is not retried. */
static void test_in_time(void **state)
{
    static const struct mo_gw_server v[] = {
        {.name = "a",
         .digest = "1",
         .mode = MO_CONN_LEGACY,
         .call_ms = 50,
         .retries = 3,
         .fallback = {just_b, 1}},
        {.name = "b", .digest = "2", .mode = MO_CONN_LEGACY},
    };
    struct world w;
    struct client *c = &w.clients[0];

    (void)state;
    begin(&w, v, 2, hangs);
    tell(c, REQ("1", "tools/call", "\"name\":\"a_look\""));
    hears(c, "\"id\":1,\"error\"");
    assert_true(heard(c, "no sign of life"));
    assert_int_equal(calls(&w), 1);
    end(&w);
}

/* --- replaced ------------------------------------------------------------ */

static bool third_called(void *ctx)
{
    struct world *w = ctx;

    return w->npeers == 2 && peer_saw(&w->peers[1], "tools/call");
}

/* A call that waits for a server that is replaced goes to the new one; after
 * a removal it waits for new lists. */
static void test_replaced(void **state)
{
    static const struct mo_gw_server before = {
        .name = "a", .digest = "1", .mode = MO_CONN_LEGACY};
    static const struct mo_gw_server after = {
        .name = "a", .digest = "2", .mode = MO_CONN_LEGACY};
    struct world w;
    struct client *c = &w.clients[0];

    (void)state;
    begin(&w, &before, 1, works);
    /* the new server's lists are unknown: it is read while a call waits */
    assert_int_equal(mo_gateway_servers(w.g, &after, 1, NULL), 0);
    tell(c, REQ("1", "tools/call", "\"name\":\"work\""));
    wait_for(w.l, third_called, &w);
    hears(c, "\"done\"");
    assert_int_equal(count(&c->me.got, "\"id\":1,"), 1);
    end(&w);
}

/* --- without memory ------------------------------------------------------ */

struct tortured {
    struct mo_loop *l;
};

static bool few_left(void *ctx)
{
    unsigned *left = ctx;

    return (*left)-- == 0;
}

static void turn(struct world *w, unsigned n)
{
    for (unsigned i = 0; i < n; i++) {
        unsigned left = 3;

        (void)mo_loop_until(w->l, few_left, &left, 1);
    }
}

static void say_if(struct client *c, const char *line)
{
    struct mo_span v[2] = {mo_span_cstr(line), MO_SPAN("\n")};

    if (c->me.s)
        (void)mo_stream_writev(c->me.s, v, 2);
}

static void torture_body(void *arg)
{
    static const struct mo_config_tool tool = {.name = "work",
                                               .rename = "labour",
                                               .describe = "hard",
                                               .idempotent = true,
                                               .retries = 1,
                                               .fallback = {just_b, 1}};
    static const struct mo_gw_server v[] = {
        {.name = "a",
         .digest = "1",
         .mode = MO_CONN_LEGACY,
         .tools = &tool,
         .ntools = 1},
        {.name = "b", .digest = "2", .mode = MO_CONN_LEGACY},
    };
    struct tortured *t = arg;
    struct world w = {.rules = {dies, dies, dies, works}};

    if (world_open(&w, t->l, v, 2) == 0) {
        struct client *c = &w.clients[0];

        say_if(c, HELLO("{}"));
        say_if(c, REQ("1", "tools/list", ""));
        turn(&w, 8);
        say_if(c, REQ("2", "tools/call", "\"name\":\"labour\""));
        turn(&w, 16);
        assert_true(count(&c->me.got, "\"id\":2,") <= 1);
    }
    world_close(&w);
}

static void test_torture(void **state)
{
    struct tortured t = {.l = loop_new()};

    (void)state;
    torture(torture_body, &t);
    mo_loop_free(t.l);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_again),     cmocka_unit_test(test_unknown),
        cmocka_unit_test(test_stands_in), cmocka_unit_test(test_not_after),
        cmocka_unit_test(test_in_time),   cmocka_unit_test(test_replaced),
        cmocka_unit_test(test_torture),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
