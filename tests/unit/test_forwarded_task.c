/* A legacy server's task for a modern client, questions without a call, and
 * missing capabilities. */
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
#define EXT     "{\"elicitation\":{},\"extensions\":{\"" P "tasks\":{}}}"
#define RELATED "\"_meta\":{\"" P "related-task\":{\"taskId\":\"t1\"}}"
#define TASK                                                                   \
    "\"taskId\":\"t1\",\"createdAt\":\"2026-01-01T00:00:00Z\","                \
    "\"lastUpdatedAt\":\"2026-01-01T00:00:00Z\",\"ttl\":9000,"                 \
    "\"pollInterval\":50"
#define OPENS                                                                  \
    INIT_OK("{\"tools\":{},\"tasks\":{\"requests\":{\"tools\":{\"call\":{}"    \
            "}}}}"),                                                           \
        LIST("tools/list", "tools",                                            \
             TOOL("long", ",\"execution\":{\"taskSupport\":\"required\"}")),   \
    {                                                                          \
        "tools/call", RES("$id", "{\"task\":{" TASK ",\"status\":\"working\""  \
                                 "}}")                                         \
    }

static const struct mo_gw_server one[] = {
    {.name = "one", .digest = "1", .mode = MO_CONN_LEGACY},
};

static void begin(struct world *w, const struct rule *rules)
{
    memset(w, 0, sizeof(*w));
    w->rules[0] = rules;
    assert_int_equal(world_open(w, loop_new(), one, 1), 0);
}

static void end(struct world *w)
{
    struct mo_loop *l = w->l;

    world_close(w);
    mo_loop_free(l);
}

/* --- tasks --------------------------------------------------------------- */

static const struct rule tasking[] = {
    OPENS,
    {"tasks/get", RES("$id", "{" TASK ",\"status\":\"completed\"}")},
    {"tasks/result", RES("$id", "{\"content\":[ 1.0 ]," RELATED "}")},
    {NULL, NULL},
};

static const struct rule asking[] = {
    OPENS,
    {"tasks/get", RES("$id", "{" TASK ",\"status\":\"input_required\"}")},
    {"tasks/result",
     REQ("7", "elicitation/create", "\"message\":\"m\"," RELATED)},
    {NULL, NULL},
};

/* Calls the tool; returns the exposed task id. */
static void start_task(struct client *c, char id[64])
{
    const char *at = NULL;

    tell(c, REQ("1", "tools/call", "\"name\":\"long\"," META(EXT)));
    hears(c, "\"resultType\":\"task\"");
    at = strstr(mo_buf_cstr(&c->me.got), "\"taskId\":\"");
    assert_non_null(at);
    assert_int_equal(sscanf(at + 10, "%63[^\"]", id), 1);
    assert_string_not_equal(id, "t1");
    mo_buf_reset(&c->me.got);
}

static void about(struct client *c, const char *method, const char *id,
                  const char *more)
{
    char line[1024];

    (void)snprintf(line, sizeof(line),
                   "{\"jsonrpc\":\"2.0\",\"id\":2,\"method\":\"%s\",\"params\":"
                   "{\"taskId\":\"%s\"%s," META(EXT) "}}",
                   method, id, more);
    tell(c, line);
}

/* Polls until the answer contains the text; the deadline only ends a failed
 * test. */
static void comes_to(struct client *c, const char *id, const char *what)
{
    uint64_t end = mo_now_ns() + 30 * MO_S;

    while (mo_now_ns() < end) {
        mo_buf_reset(&c->me.got);
        about(c, "tasks/get", id, "");
        hears(c, "\"id\":2,");
        if (heard(c, what))
            return;
    }
    fail_msg("'%s' did not come; got: %s", what, mo_buf_cstr(&c->me.got));
}

static void test_outcome(void **state)
{
    struct world w;
    struct client *c = &w.clients[0], *other = &w.clients[1];
    char id[64];

    (void)state;
    begin(&w, tasking);
    start_task(c, id);
    comes_to(c, id, "\"status\":\"completed\"");
    assert_true(heard(c, "\"result\":{\"content\":[ 1.0 ]}"));
    assert_false(heard(c, "related-task"));
    about(other, "tasks/get", id, "");
    hears(other, "\"error\":{\"code\":-32602");
    about(c, "tasks/cancel", id, "");
    comes_to(c, id, "\"status\":\"completed\"");
    end(&w);
}

#define X64 "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx"

static const struct rule talking[] = {
    OPENS,
    {"tasks/get", RES("$id", "{" TASK ",\"status\":\"completed\"}")},
    {"tasks/result",
     RES("$id",
         "{\"content\":[{\"type\":\"text\",\"text\":\"" X64 X64 X64 X64 X64 X64
         "end\"}]," RELATED "}")},
    {NULL, NULL},
};

/* A task's result has its tool's limit. */
static void test_long_outcome(void **state)
{
    static const struct mo_gw_server brief[] = {
        {.name = "one",
         .digest = "1",
         .mode = MO_CONN_LEGACY,
         .result_bytes = 256},
    };
    struct world w;
    struct client *c = &w.clients[0];
    char id[64];

    (void)state;
    memset(&w, 0, sizeof(w));
    w.rules[0] = talking;
    assert_int_equal(world_open(&w, loop_new(), brief, 1), 0);
    start_task(c, id);
    comes_to(c, id, "\"status\":\"completed\"");
    assert_true(heard(c, X64));
    assert_false(heard(c, "end\""));
    assert_true(heard(c, "read_result"));
    end(&w);
}

static void test_questions(void **state)
{
    struct world w;
    struct client *c = &w.clients[0];
    char id[64];

    (void)state;
    begin(&w, asking);
    start_task(c, id);
    comes_to(c, id, "\"status\":\"input_required\"");
    assert_true(heard(c, "\"inputRequests\":{\"a1\":{\"method\":"
                         "\"elicitation/create\",\"params\":{\"message\":"
                         "\"m\""));
    mo_buf_reset(&c->me.got);
    about(c, "tasks/update", id,
          ",\"inputResponses\":{\"a0\":{},\"a1\":{\"action\": \"accept\"}}");
    hears(c, "\"id\":2,\"result\":{\"resultType\":\"complete\",");
    arrives(&w, &w.peers[0], RES("7", "{\"action\": \"accept\"}"));
    comes_to(c, id, "\"status\":\"working\"");
    end(&w);
}

static void test_cancel(void **state)
{
    struct world w;
    struct client *c = &w.clients[0];
    char id[64];

    (void)state;
    begin(&w, asking);
    start_task(c, id);
    comes_to(c, id, "\"status\":\"input_required\"");
    about(c, "tasks/cancel", id, "");
    comes_to(c, id, "\"status\":\"cancelled\"");
    arrives(&w, &w.peers[0], "\"tasks/cancel\"");
    arrives(&w, &w.peers[0], "\"id\":7,\"error\"");
    end(&w);
}

/* --- questions without a call -------------------------------------------- */

static const struct rule plain[] = {
    INIT_OK("{\"tools\":{}}"),
    LIST("tools/list", "tools", TOOL("work", "")),
    {NULL, NULL},
};

static void open_lists(struct client *c, const char *caps)
{
    hello(c, caps);
    tell(c, REQ("1", "tools/list", ""));
    hears(c, "\"work\"");
    mo_buf_reset(&c->me.got);
}

#define ROOTS REQ("9", "roots/list", "")

static void test_push(void **state)
{
    struct world w;
    struct client *c = &w.clients[0];

    (void)state;
    begin(&w, plain);
    mo_gateway_single(w.g);
    open_lists(c, HELLO("{\"roots\":{}}"));
    peer_say(&w.peers[0], MO_SPAN(ROOTS));
    hears(c, "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"roots/list\","
             "\"params\":{}}");
    tell(c, RES("1", "{\"roots\":[ ]}"));
    arrives(&w, &w.peers[0], RES("9", "{\"roots\":[ ]}"));
    /* The client is not asked without the capability. */
    peer_say(&w.peers[0], MO_SPAN(REQ("10", "sampling/createMessage", "")));
    arrives(&w, &w.peers[0], "\"id\":10,\"error\"");
    /* Withdrawn, and open at the end. */
    peer_say(&w.peers[0], MO_SPAN(ROOTS));
    hears(c, "\"id\":2,\"method\":\"roots/list\"");
    peer_say(&w.peers[0], MO_SPAN("{\"jsonrpc\":\"2.0\",\"method\":"
                                  "\"notifications/cancelled\",\"params\":"
                                  "{\"requestId\":9}}"));
    hears(c, "\"notifications/cancelled\",\"params\":{\"requestId\":2}}");
    peer_say(&w.peers[0], MO_SPAN(ROOTS));
    hears(c, "\"id\":3,\"method\":\"roots/list\"");
    end(&w);
}

/* A shared server's questions without a call reach no client. */
static void test_nobody(void **state)
{
    struct world w;
    struct client *c = &w.clients[0];

    (void)state;
    begin(&w, plain);
    open_lists(c, HELLO("{\"roots\":{\"listChanged\":true}}"));
    peer_say(&w.peers[0], MO_SPAN(ROOTS));
    arrives(&w, &w.peers[0], "\"id\":9,\"error\"");
    tell(c, "{\"jsonrpc\":\"2.0\",\"method\":"
            "\"notifications/roots/list_changed\"}");
    settle(c);
    assert_false(peer_saw(&w.peers[0], "roots/list_changed"));
    assert_false(heard(c, "roots/list"));
    end(&w);
}

/* --- missing capabilities ------------------------------------------------ */

/* Asked and refused; then the tool fails or succeeds. */
static void lack(const char *outcome, const char *want)
{
    struct world w;
    struct client *c = &w.clients[0];
    char text[256];
    int n = snprintf(text, sizeof(text),
                     "{\"jsonrpc\":\"2.0\",\"id\":$id,\"result\":%s}", outcome);

    begin(&w, plain);
    tell(c, REQ("1", "tools/call", "\"name\":\"work\"," META("{}")));
    arrives(&w, &w.peers[0], "\"tools/call\"");
    peer_say(&w.peers[0], MO_SPAN(REQ("9", "sampling/createMessage", "")));
    arrives(&w, &w.peers[0], "\"id\":9,\"error\"");
    peer_say(&w.peers[0], mo_span(text, (size_t)n));
    hears(c, want);
    end(&w);
}

static void test_lack(void **state)
{
    (void)state;
    lack("{\"content\":[],\"isError\":true}",
         "\"error\":{\"code\":-32021,\"message\":\"the client lacks a "
         "capability that this call needs\",\"data\":{\"requiredCapabilities\":"
         "{\"sampling\":{}}}");
    lack("{\"content\":[ ],\"isError\":false}", "\"content\":[ ],");
}

/* --- no memory ----------------------------------------------------------- */

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

struct tortured {
    struct mo_loop *l;
    bool got;
};

/* A question without a call, and a task. */
static void torture_body(void *ctx)
{
    struct tortured *t = ctx;
    struct world w;

    memset(&w, 0, sizeof(w));
    w.rules[0] = tasking;
    w.l = t->l;
    t->got = false;
    if (world_open(&w, t->l, one, 1) == 0) {
        struct client *c = &w.clients[0];

        mo_gateway_single(w.g);
        say_if(c, HELLO("{\"roots\":{}}"));
        say_if(c, REQ("1", "tools/list", ""));
        turn(&w, 8);
        if (w.npeers && w.peers[0].s)
            peer_say(&w.peers[0], MO_SPAN(ROOTS));
        turn(&w, 4);
        say_if(c, REQ("2", "tools/call", "\"name\":\"long\"," META(EXT)));
        turn(&w, 8);
        t->got = c->me.got.len && heard(c, "\"resultType\":\"task\"") &&
                 heard(c, "roots/list");
    }
    world_close(&w);
}

static void test_torture(void **state)
{
    struct tortured t = {.l = loop_new()};

    (void)state;
    torture_body(&t);
    assert_true(t.got);
    torture(torture_body, &t);
    mo_loop_free(t.l);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_outcome),   cmocka_unit_test(test_long_outcome),
        cmocka_unit_test(test_questions), cmocka_unit_test(test_cancel),
        cmocka_unit_test(test_push),      cmocka_unit_test(test_nobody),
        cmocka_unit_test(test_lack),      cmocka_unit_test(test_torture),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
