/* Calls through the gateway: bytes that cross, whose a message is, questions,
 * cancellation at each point, and the loss of a child. */
#include "gw_kit.h"

#define P "io.modelcontextprotocol/"
#define META(caps)                                                             \
    "\"_meta\":{\"" P "protocolVersion\":\"2026-07-28\",\"" P                  \
    "clientCapabilities\":" caps "}"

#define TOOL(name)                                                             \
    "{\"name\":\"" name "\",\"inputSchema\":{\"type\":\"object\"}}"

static const struct rule plain[] = {
    INIT_OK("{\"tools\":{},\"logging\":{}}"),
    LIST("tools/list", "tools", TOOL("work") "," TOOL("quick")),
    {NULL, NULL},
};

static const struct mo_gw_server one[] = {
    {.name = "one", .digest = "1", .mode = MO_CONN_LEGACY},
};

static const struct mo_gw_server always[] = {
    {.name = "one", .digest = "1", .mode = MO_CONN_LEGACY},
    {.name = "two", .digest = "2", .mode = MO_CONN_LEGACY},
};

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

#define REQ(id, method, params)                                                \
    "{\"jsonrpc\":\"2.0\",\"id\":" id ",\"method\":\"" method                  \
    "\",\"params\":{" params "}}"
#define RES(id, r) "{\"jsonrpc\":\"2.0\",\"id\":" id ",\"result\":" r "}"

/* --- lists and calls ----------------------------------------------------- */

static void test_list_and_call(void **state)
{
    struct world w;
    struct client *c = &w.clients[0];

    (void)state;
    begin(&w, one, 1, plain);
    hello(c, HELLO("{}"));
    assert_int_equal(w.npeers, 0); /* nothing runs before it is wanted */
    tell(c, "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/list\"}");
    hears(c, "\"name\":\"quick\"");
    assert_int_equal(w.npeers, 1);
    tell(c, REQ("\"x\\u0031\"", "tools/call",
                "\"name\":\"work\",\"zz\":1.50e+00,\"arguments\":{\"a\": "
                "\"\\u00e9\\/\" ,\"a\":18446744073709551616}"));
    gets(&w, &w.peers[0],
         "\"method\":\"tools/call\",\"params\":{\"name\":\"work\","
         "\"zz\":1.50e+00,\"arguments\":{\"a\": \"\\u00e9\\/\" ,"
         "\"a\":18446744073709551616}}}");
    peer_say(
        &w.peers[0],
        MO_SPAN(RES("$id", "{ \"content\":[],\"n\": 0.10,\"s\":\"\\/\"}")));
    hears(c, RES("\"x\\u0031\"", "{\"content\":[],\"n\":0.10,\"s\":\"\\/\"}"));
    end(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_list_and_call),
    };

    (void)always;
    return cmocka_run_group_tests(tests, NULL, NULL);
}
