/* Calls through the gateway: unchanged bytes, owners of messages, questions,
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
    assert_int_equal(w.npeers, 0); /* nothing is started before it is needed */
    tell(c, "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/list\"}");
    hears(c, "\"name\":\"quick\"");
    assert_int_equal(w.npeers, 1);
    tell(c, REQ("\"x\\u0031\"", "tools/call",
                "\"name\":\"work\",\"zz\":1.50e+00,\"arguments\":{\"a\": "
                "\"\\u00e9\\/\" ,\"a\":18446744073709551616}"));
    arrives(&w, &w.peers[0],
            "\"method\":\"tools/call\",\"params\":{\"name\":\"work\","
            "\"zz\":1.50e+00,\"arguments\":{\"a\": \"\\u00e9\\/\" ,"
            "\"a\":18446744073709551616}}}");
    peer_say(
        &w.peers[0],
        MO_SPAN(RES("$id", "{ \"content\":[],\"n\": 0.10,\"s\":\"\\/\"}")));
    hears(c,
          RES("\"x\\u0031\"", "{ \"content\":[],\"n\": 0.10,\"s\":\"\\/\"}"));
    end(&w);
}

static void test_unknown(void **state)
{
    struct world w;
    struct client *c = &w.clients[0];

    (void)state;
    begin(&w, one, 1, plain);
    hello(c, HELLO("{}"));
    tell(c, REQ("1", "tools/call", "\"name\":\"nope\""));
    hears(c, "\"id\":1,\"error\":{\"code\":-32602,"
             "\"message\":\"no such tool: nope\"}");
    tell(c, REQ("2", "resources/read", "\"uri\":\"a:b\""));
    hears(c, "\"id\":2,\"error\":{\"code\":-32002,\"message\":\"no such "
             "resource: a:b\",\"data\":{\"uri\":\"a:b\"}}");
    tell(c, REQ("3", "tools/list", "\"cursor\":\"what?\""));
    hears(c, "\"id\":3,\"error\":{\"code\":-32602");
    end(&w);
}

/* Two servers with the same tools: prefixed, and each gets its own name. */
static void test_two_servers(void **state)
{
    struct world w;
    struct client *c = &w.clients[0];
    bool first;

    (void)state;
    begin(&w, always, 2, plain);
    hello(c, HELLO("{}"));
    tell(c, REQ("1", "tools/list", ""));
    hears(c, "\"name\":\"two_quick\"");
    assert_int_equal(w.npeers, 2);
    tell(c, REQ("2", "tools/call",
                "\"name\":\"two_work\",\"arguments\":{\"x\":[1, 2]}"));
    tell(c, REQ("3", "tools/call", "\"name\":\"one_work\""));
    arrives(&w, &w.peers[0], "tools/call");
    arrives(&w, &w.peers[1], "tools/call");
    first = peer_saw(&w.peers[1], "\"arguments\"");
    assert_true(peer_saw(&w.peers[first],
                         "{\"name\":\"work\",\"arguments\":{\"x\":[1, 2]}}"));
    assert_true(peer_saw(&w.peers[!first], "\"params\":{\"name\":\"work\"}}"));
    peer_say(&w.peers[first], MO_SPAN(RES("$id", "{\"content\":[]}")));
    hears(c, RES("2", "{\"content\":[]}"));
    end(&w);
}

static void test_error_crosses(void **state)
{
    struct world w;
    struct client *c = &w.clients[0];

    (void)state;
    begin(&w, one, 1, plain);
    hello(c, HELLO("{}"));
    tell(c, REQ("1", "tools/call", "\"name\":\"work\""));
    arrives(&w, &w.peers[0], "tools/call");
    peer_say(&w.peers[0],
             MO_SPAN("{\"jsonrpc\":\"2.0\",\"id\":$id,\"error\":{\"x\":1.0,"
                     "\"code\":-7,\"message\":\"no\\/t\",\"data\":[1e2]}}"));
    hears(c, "\"id\":1,\"error\":{\"x\":1.0,\"code\":-7,\"message\":"
             "\"no\\/t\",\"data\":[1e2]}}");
    tell(c, REQ("2", "tools/call", "\"name\":\"quick\""));
    arrives(&w, &w.peers[0], "quick");
    peer_say(&w.peers[0], MO_SPAN("{\"jsonrpc\":\"2.0\",\"id\":$id,\"error\":{"
                                  "\"code\":-32021,\"message\":\"m\"}}"));
    hears(c, "\"id\":2,\"error\":{\"code\":-32603,\"message\":\"m\"}}");
    end(&w);
}

/* --- owners of messages -------------------------------------------------- */

#define LOGGED(text)                                                           \
    "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/message\",\"params\":"    \
    "{\"level\":\"warning\",\"data\": \"" text "\",\"q\":1.0}}"

static void test_whose(void **state)
{
    struct world w;
    struct client *a = &w.clients[0], *b = &w.clients[1];
    struct peer *p = &w.peers[0];
    char id_a[64];

    (void)state;
    begin(&w, one, 1, plain);
    hello(a, HELLO("{\"elicitation\":{}}"));
    hello(b, HELLO("{\"elicitation\":{}}"));
    tell(a, REQ("1", "tools/call",
                "\"name\":\"work\",\"_meta\":{\"progressToken\":\"pa\"}"));
    arrives(&w, p, "\"work\"");
    memcpy(id_a, p->id, sizeof(id_a));
    /* one call: its client is the owner */
    peer_say(p, MO_SPAN(LOGGED("for a")));
    hears(a, LOGGED("for a"));
    tell(b, REQ("1", "tools/call",
                "\"name\":\"quick\",\"_meta\":{\"progressToken\":7}"));
    arrives(&w, p, "\"quick\"");
    /* two clients: unknown owner; progress has its token */
    peer_say(p, MO_SPAN(LOGGED("for nobody")));
    peer_say(p, MO_SPAN("{\"jsonrpc\":\"2.0\",\"id\":\"q\",\"method\":"
                        "\"elicitation/create\",\"params\":{\"message\":"
                        "\"?\"}}"));
    arrives(&w, p, "\"id\":\"q\",\"error\":{\"code\":-32603");
    peer_say(p, MO_SPAN("{\"jsonrpc\":\"2.0\",\"method\":"
                        "\"notifications/progress\",\"params\":"
                        "{\"progress\":0.10,\"progressToken\":$id,\"z\":1}}"));
    hears(b, "\"params\":{\"progress\":0.10,\"progressToken\":7,\"z\":1}}");
    memcpy(p->id, id_a, sizeof(id_a));
    peer_say(p, MO_SPAN("{\"jsonrpc\":\"2.0\",\"method\":"
                        "\"notifications/progress\",\"params\":"
                        "{\"progress\":1,\"progressToken\":$id}}"));
    peer_say(p, MO_SPAN(RES("$id", "{\"content\":[\"a\"]}")));
    hears(a, "\"params\":{\"progress\":1,\"progressToken\":\"pa\"}}");
    hears(a, RES("1", "{\"content\":[\"a\"]}"));
    settle(a);
    settle(b);
    assert_false(heard(a, "nobody"));
    assert_false(heard(b, "for"));
    end(&w);
}

/* --- questions ----------------------------------------------------------- */

#define ASK                                                                    \
    "{\"jsonrpc\":\"2.0\",\"id\":\"q1\",\"method\":\"elicitation/create\","    \
    "\"params\":{\"message\":\"name?\",\"requestedSchema\":{\"type\":"         \
    "\"object\", \"properties\":{}}}}"

static void test_ask_legacy_both(void **state)
{
    struct world w;
    struct client *c = &w.clients[0];
    struct peer *p = &w.peers[0];
    char id[64];

    (void)state;
    begin(&w, one, 1, plain);
    hello(c, HELLO("{\"elicitation\":{}}"));
    tell(c, REQ("1", "tools/call", "\"name\":\"work\""));
    arrives(&w, p, "\"work\"");
    memcpy(id, p->id, sizeof(id));
    peer_say(p, MO_SPAN(ASK));
    hears(c, "\"method\":\"elicitation/create\",\"params\":{\"message\":"
             "\"name?\",\"requestedSchema\":{\"type\":\"object\", "
             "\"properties\":{}}}}");
    tell(c, RES("1", "{\"action\":\"accept\",\"content\":{\"n\": 1.0}}"));
    arrives(&w, p,
            "\"id\":\"q1\",\"result\":{\"action\":\"accept\","
            "\"content\":{\"n\": 1.0}}}");
    /* a second one, which the client refuses; the server continues */
    peer_say(p, MO_SPAN("{\"jsonrpc\":\"2.0\",\"id\":8,\"method\":"
                        "\"elicitation/create\",\"params\":{\"message\":"
                        "\"again\"}}"));
    hears(c, "again");
    tell(c, "{\"jsonrpc\":\"2.0\",\"id\":2,\"error\":{\"code\":-1,"
            "\"message\":\"no!\"}}");
    arrives(&w, p, "\"id\":8,\"error\":{\"code\":-1,\"message\":\"no!\"}}");
    /* a third one, which the client does not support */
    peer_say(p, MO_SPAN("{\"jsonrpc\":\"2.0\",\"id\":9,\"method\":"
                        "\"roots/list\"}"));
    arrives(&w, p, "\"id\":9,\"error\":{\"code\":-32601");
    memcpy(p->id, id, sizeof(id));
    peer_say(p, MO_SPAN(RES("$id", "{\"content\":[]}")));
    hears(c, RES("1", "{\"content\":[]}"));
    end(&w);
}

/* The server ends its question, then the call, while the client is asked. */
static void test_ask_gone(void **state)
{
    struct world w;
    struct client *c = &w.clients[0];
    struct peer *p = &w.peers[0];
    char id[64];

    (void)state;
    begin(&w, one, 1, plain);
    hello(c, HELLO("{\"elicitation\":{}}"));
    tell(c, REQ("1", "tools/call", "\"name\":\"work\""));
    arrives(&w, p, "\"work\"");
    memcpy(id, p->id, sizeof(id));
    peer_say(p, MO_SPAN(ASK));
    hears(c, "name?");
    peer_say(p, MO_SPAN("{\"jsonrpc\":\"2.0\",\"method\":"
                        "\"notifications/cancelled\",\"params\":"
                        "{\"requestId\":\"q1\"}}"));
    hears(c, "\"method\":\"notifications/cancelled\",\"params\":"
             "{\"requestId\":1}}");
    peer_say(p, MO_SPAN("{\"jsonrpc\":\"2.0\",\"id\":\"q2\",\"method\":"
                        "\"elicitation/create\",\"params\":{\"message\":"
                        "\"other\"}}"));
    hears(c, "other");
    memcpy(p->id, id, sizeof(id));
    peer_say(p, MO_SPAN(RES("$id", "{\"content\":[7]}")));
    hears(c, "\"params\":{\"requestId\":2}}");
    hears(c, RES("1", "{\"content\":[7]}"));
    arrives(&w, p, "\"id\":\"q2\",\"error\"");
    end(&w);
}

/* The text between two texts of a client's lines. */
static void cut_out(const struct client *c, const char *before, char *out,
                    size_t max)
{
    struct mo_span s = mo_buf_view(&c->me.got);
    ptrdiff_t at = mo_span_search(s, mo_span_cstr(before));

    assert_true(at >= 0);
    s = mo_span_skip(s, (size_t)at + strlen(before));
    at = mo_span_find(s, '"');
    assert_true(at >= 0 && (size_t)at < max);
    (void)snprintf(out, max, "%.*s", (int)at, s.p);
}

static void modern_call(struct client *c, const char *id, const char *tool,
                        const char *caps, const char *more)
{
    char line[4096];

    (void)snprintf(line, sizeof(line),
                   "{\"jsonrpc\":\"2.0\",\"id\":%s,\"method\":\"tools/call\","
                   "\"params\":{\"name\":\"%s\",\"_meta\":{\"" P
                   "protocolVersion\":\"2026-07-28\",\"" P
                   "clientCapabilities\":%s}%s}}",
                   id, tool, caps, more);
    tell(c, line);
}

static void retry(struct client *c, const char *id, const char *answers)
{
    char st[2048], more[3000];

    cut_out(c, "\"requestState\":\"", st, sizeof(st));
    mo_buf_reset(&c->me.got);
    (void)snprintf(more, sizeof(more),
                   ",\"requestState\":\"%s\",\"inputResponses\":{%s}", st,
                   answers);
    modern_call(c, id, "work", "{\"elicitation\":{}}", more);
}

/* A legacy server asks a modern client: the call is parked. */
static void test_ask_parked(void **state)
{
    struct world w;
    struct client *c = &w.clients[0], *other = &w.clients[1];
    struct peer *p = &w.peers[0];
    char id[64];

    (void)state;
    begin(&w, one, 1, plain);
    modern_call(c, "1", "work", "{\"elicitation\":{}}", "");
    arrives(&w, p, "\"params\":{\"name\":\"work\"");
    memcpy(id, p->id, sizeof(id));
    peer_say(p, MO_SPAN(ASK));
    hears(c, "\"inputRequests\":{\"a1\":{\"method\":\"elicitation/create\","
             "\"params\":{\"message\":\"name?\"");
    /* another client sends it: not its state */
    (void)mo_buf_span(&other->me.got, mo_buf_view(&c->me.got));
    retry(other, "5", "\"a1\":{\"action\":\"accept\"}");
    hears(other, "\"id\":5,\"error\":{\"code\":-32602");
    assert_false(peer_saw(p, "\"id\":\"q1\""));
    /* without the answer: asked again */
    retry(c, "2", "");
    hears(c, "\"a1\"");
    retry(c, "3", "\"a1\":{\"action\":\"accept\",\"content\":{\"x\": 0.0}}");
    arrives(&w, p,
            "\"id\":\"q1\",\"result\":{\"action\":\"accept\",\"content\":"
            "{\"x\": 0.0}}}");
    memcpy(p->id, id, sizeof(id));
    peer_say(p, MO_SPAN(RES("$id", "{\"content\":[]}")));
    hears(c, "\"id\":3,\"result\":{\"resultType\":\"complete\",\"content\":[]");
    end(&w);
}

/* The answer comes while the client is away. */
static void test_over_while_away(void **state)
{
    struct world w;
    struct client *c = &w.clients[0];
    struct peer *p = &w.peers[0];
    char id[64];

    (void)state;
    begin(&w, one, 1, plain);
    modern_call(c, "1", "work", "{\"elicitation\":{}}", "");
    arrives(&w, p, "\"params\":{\"name\":\"work\"");
    memcpy(id, p->id, sizeof(id));
    peer_say(p, MO_SPAN(ASK));
    hears(c, "requestState");
    memcpy(p->id, id, sizeof(id));
    peer_say(p, MO_SPAN(RES("$id", "{\"content\":[\"late\"]}")));
    arrives(&w, p, "\"id\":\"q1\",\"error\"");
    retry(c, "2", "\"a1\":{\"action\":\"accept\"}");
    hears(c, "\"id\":2,\"result\":{\"resultType\":\"complete\",\"content\":["
             "\"late\"]");
    end(&w);
}

/* The client never returns: the call is given up. */
static void test_away_too_long(void **state)
{
    struct world w;
    struct client *c = &w.clients[0];
    struct peer *p = &w.peers[0];

    (void)state;
    memset(&w, 0, sizeof(w));
    w.rules[0] = plain;
    w.away_ms = 5;
    assert_int_equal(world_open(&w, loop_new(), one, 1), 0);
    modern_call(c, "1", "work", "{\"elicitation\":{}}", "");
    arrives(&w, p, "\"params\":{\"name\":\"work\"");
    peer_say(p, MO_SPAN(ASK));
    hears(c, "requestState");
    arrives(&w, p, "\"id\":\"q1\",\"error\"");
    arrives(&w, p, "notifications/cancelled");
    retry(c, "2", "\"a1\":{\"action\":\"accept\"}");
    hears(c, "\"id\":2,\"error\":{\"code\":-32602");
    end(&w);
}

static const struct rule modern[] = {
    {"server/discover",
     RES("$id", "{\"resultType\":\"complete\",\"supportedVersions\":"
                "[\"2026-07-28\"],\"capabilities\":{\"tools\":{}},\"_meta\":"
                "{\"" P "serverInfo\":{\"name\":\"m\",\"version\":\"1\"}}}")},
    LIST("tools/list", "tools", TOOL("work")),
    {NULL, NULL},
};

static const struct mo_gw_server modern_one[] = {
    {.name = "one", .digest = "1", .mode = MO_CONN_MODERN},
};

#define INPUT                                                                  \
    RES("$id", "{\"resultType\":\"input_required\",\"inputRequests\":{\"k\":"  \
               "{\"method\":\"elicitation/create\",\"params\":{\"message\":"   \
               "\"name?\"}},\"r\":{\"method\":\"roots/list\"}},"               \
               "\"requestState\":\"their\\/s\"}")

/* A modern server's questions become requests to a legacy client. */
static void test_ask_modern_up(void **state)
{
    struct world w;
    struct client *c = &w.clients[0];
    struct peer *p = &w.peers[0];

    (void)state;
    begin(&w, modern_one, 1, modern);
    hello(c, HELLO("{\"elicitation\":{},\"roots\":{}}"));
    tell(c, REQ("1", "tools/call", "\"name\":\"work\""));
    arrives(&w, p, "\"tools/call\"");
    peer_say(p, MO_SPAN(INPUT));
    hears(c, "\"id\":1,\"method\":\"elicitation/create\"");
    hears(c, "\"id\":2,\"method\":\"roots/list\"");
    tell(c, RES("2", "{\"roots\":[]}"));
    tell(c, RES("1", "{\"action\":\"decline\"}"));
    arrives(&w, p, "\"requestState\":\"their\\/s\"");
    assert_true(peer_saw(p, "\"k\":{\"action\":\"decline\"}"));
    assert_true(peer_saw(p, "\"r\":{\"roots\":[]}"));
    peer_say(p, MO_SPAN(RES("$id", "{\"resultType\":\"complete\","
                                   "\"content\":[]}")));
    hears(c, RES("1", "{\"content\":[]}"));
    end(&w);
}

/* Both modern; and a client without the required capability. */
static void test_ask_modern_both(void **state)
{
    struct world w;
    struct client *c = &w.clients[0];
    struct peer *p = &w.peers[0];

    (void)state;
    begin(&w, modern_one, 1, modern);
    modern_call(c, "1", "work", "{\"elicitation\":{},\"roots\":{}}", "");
    arrives(&w, p, "\"tools/call\"");
    peer_say(p, MO_SPAN(INPUT));
    hears(c, "\"resultType\":\"input_required\"");
    retry(c, "2", "\"k\":{\"action\":\"cancel\"},\"r\":{\"roots\":[1]}");
    arrives(&w, p, "\"r\":{\"roots\":[1]}");
    peer_say(p, MO_SPAN(RES("$id", "{\"resultType\":\"complete\","
                                   "\"content\":[]}")));
    hears(c, "\"id\":2,\"result\":{\"resultType\":\"complete\"");
    mo_buf_reset(&p->log);
    modern_call(c, "3", "work", "{}", "");
    arrives(&w, p, "\"tools/call\"");
    peer_say(p, MO_SPAN(INPUT));
    hears(c, "\"id\":3,\"error\":{\"code\":-32021");
    hears(c, "\"requiredCapabilities\":{\"elicitation\":{},\"roots\":{}}");
    end(&w);
}

/* --- cancellation, loss -------------------------------------------------- */

#define CANCEL                                                                 \
    "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/cancelled\",\"params\":"  \
    "{\"requestId\":1}}"

static const struct rule slow_start[] = {
    {"initialize", NULL},
    {NULL, NULL},
};

/* A call that waits for the lists of a starting server waits for those of its
 * successor if a reload replaces the server meanwhile. */
static void test_reload_while_starting(void **state)
{
    static const struct mo_gw_server changed[] = {
        {.name = "one", .digest = "2", .mode = MO_CONN_LEGACY},
    };
    struct world w;
    struct client *c = &w.clients[0];
    struct mo_err e;

    (void)state;
    begin(&w, one, 1, slow_start);
    hello(c, HELLO("{}"));
    tell(c, REQ("1", "tools/call", "\"name\":\"work\""));
    settle(c);
    assert_int_equal(w.npeers, 1);
    w.rules[1] = plain;
    assert_int_equal(mo_gateway_servers(w.g, changed, 1, &e), 0);
    settle(c);
    arrives(&w, &w.peers[1], "\"method\":\"tools/call\"");
    peer_say(&w.peers[1], MO_SPAN(RES("$id", "{\"content\":[]}")));
    hears(c, RES("1", "{\"content\":[]}"));
    end(&w);
}

static void test_cancel_while_starting(void **state)
{
    struct world w;
    struct client *c = &w.clients[0];

    (void)state;
    begin(&w, one, 1, slow_start);
    hello(c, HELLO("{}"));
    tell(c, REQ("1", "tools/call", "\"name\":\"work\""));
    settle(c);
    tell(c, CANCEL);
    settle(c);
    tell(c, REQ("1", "tools/list", ""));
    settle(c);
    tell(c, CANCEL);
    settle(c);
    assert_false(heard(c, "\"id\":1"));
    end(&w);
}

static void test_cancel_under_way(void **state)
{
    struct world w;
    struct client *c = &w.clients[0];
    struct peer *p = &w.peers[0];

    (void)state;
    begin(&w, one, 1, plain);
    hello(c, HELLO("{\"elicitation\":{}}"));
    tell(c, REQ("1", "tools/call", "\"name\":\"work\""));
    arrives(&w, p, "tools/call");
    tell(c, CANCEL);
    arrives(&w, p, "notifications/cancelled");
    mo_buf_reset(&p->log);
    /* and while the client is asked */
    tell(c, REQ("1", "tools/call", "\"name\":\"work\""));
    arrives(&w, p, "tools/call");
    peer_say(p, MO_SPAN(ASK));
    hears(c, "name?");
    tell(c, CANCEL);
    arrives(&w, p, "notifications/cancelled");
    arrives(&w, p, "\"id\":\"q1\",\"error\"");
    settle(c);
    assert_false(heard(c, "\"id\":1,\"re"));
    end(&w);
}

static void test_lost(void **state)
{
    struct world w;
    struct client *c = &w.clients[0];

    (void)state;
    begin(&w, one, 1, plain);
    hello(c, HELLO("{}"));
    tell(c, REQ("1", "tools/call", "\"name\":\"work\""));
    arrives(&w, &w.peers[0], "tools/call");
    mo_stream_close(w.peers[0].s, NULL);
    hears(c, "\"id\":1,\"error\":{\"code\":-32603,\"message\":\"one: ");
    hears(c, "it is not known whether the call was done\",\"data\":{"
             "\"server\":\"one\",\"outcome\":\"unknown\"}}");
    tell(c, REQ("2", "tools/call", "\"name\":\"work\""));
    while (w.npeers < 2)
        (void)mo_loop_until(w.l, flag_is_up, &w.gone, 10);
    arrives(&w, &w.peers[1], "tools/call");
    peer_say(&w.peers[1], MO_SPAN(RES("$id", "{\"content\":[]}")));
    hears(c, RES("2", "{\"content\":[]}"));
    end(&w);
}

static void test_no_server(void **state)
{
    struct world w;
    struct client *c = &w.clients[0];

    (void)state;
    begin(&w, one, 1, plain);
    hello(c, HELLO("{}"));
    tell(c, REQ("1", "tools/list", ""));
    hears(c, "\"quick\"");
    mo_stream_close(w.peers[0].s, NULL);
    settle(c);
    w.no_dial = true;
    tell(c, REQ("2", "tools/call", "\"name\":\"work\""));
    hears(c, "\"id\":2,\"error\":{\"code\":-32603,\"message\":\"one");
    hears(c, "\"outcome\":\"not sent\"");
    end(&w);
}

/* --- subscriptions and log levels ---------------------------------------- */

static const struct rule rich[] = {
    INIT_OK("{\"tools\":{},\"logging\":{},\"resources\":{\"subscribe\":true},"
            "\"prompts\":{},\"completions\":{}}"),
    LIST("tools/list", "tools", TOOL("work")),
    LIST("resources/list", "resources",
         "{\"uri\":\"file:///a\",\"name\":\"a\"}"),
    LIST("resources/templates/list", "resourceTemplates",
         "{\"uriTemplate\":\"file:///{x}\",\"name\":\"x\"}"),
    LIST("prompts/list", "prompts", "{\"name\":\"greet\"}"),
    {"resources/subscribe", RES("$id", "{}")},
    {"resources/unsubscribe", RES("$id", "{}")},
    {"logging/setLevel", RES("$id", "{}")},
    {"resources/read", RES("$id", "{\"contents\":[ 1 ]}")},
    {"prompts/get", RES("$id", "{\"messages\":[]}")},
    {"completion/complete", RES("$id", "{\"completion\":{\"values\":[]}}")},
    {NULL, NULL},
};

static const struct mo_gw_server two_rich[] = {
    {.name = "one", .digest = "1", .mode = MO_CONN_LEGACY},
    {.name = "two", .digest = "2", .mode = MO_CONN_LEGACY},
};

static void test_resources(void **state)
{
    struct world w;
    struct client *a = &w.clients[0], *b = &w.clients[1];
    struct peer *p = &w.peers[0], *q = &w.peers[1];

    (void)state;
    begin(&w, two_rich, 2, rich);
    hello(a, HELLO("{}"));
    hello(b, HELLO("{}"));
    tell(a, REQ("1", "resources/list", ""));
    hears(a, "two+file:///a");
    tell(a, REQ("2", "resources/subscribe", "\"uri\":\"one+file:///a\""));
    tell(b, REQ("2", "resources/subscribe", "\"uri\":\"one+file:///a\""));
    hears(a, RES("2", "{}"));
    hears(b, RES("2", "{}"));
    arrives(&w, p, "resources/subscribe\",\"params\":{\"uri\":\"file:///a\"}");
    assert_false(peer_saw(q, "resources/subscribe"));
    mo_buf_reset(&p->log);
    peer_say(p, MO_SPAN("{\"jsonrpc\":\"2.0\",\"method\":\"notifications/"
                        "resources/updated\",\"params\":{\"uri\":"
                        "\"file:///a\"}}"));
    hears(a, "\"params\":{\"uri\":\"one+file:///a\"}}");
    hears(b, "\"params\":{\"uri\":\"one+file:///a\"}}");
    tell(a, REQ("3", "resources/unsubscribe", "\"uri\":\"one+file:///a\""));
    settle(a);
    assert_false(peer_saw(p, "resources/unsubscribe"));
    client_close(b); /* the last one unsubscribes */
    arrives(&w, p, "resources/unsubscribe");
    tell(a, REQ("4", "resources/read", "\"uri\":\"two+file:///a\""));
    hears(a, RES("4", "{\"contents\":[ 1 ]}"));
    assert_true(peer_saw(q, "\"params\":{\"uri\":\"file:///a\"}"));
    tell(a, REQ("5", "completion/complete",
                "\"ref\":{\"type\":\"ref/prompt\",\"name\":\"two_greet\"},"
                "\"argument\":{\"name\":\"n\",\"value\":\"v\"}"));
    hears(a, RES("5", "{\"completion\":{\"values\":[]}}"));
    assert_true(peer_saw(q, "\"ref\":{\"type\":\"ref/prompt\",\"name\":"
                            "\"greet\"},\"argument\":{\"name\":\"n\","));
    tell(a, REQ("6", "prompts/get", "\"name\":\"one_greet\""));
    hears(a, RES("6", "{\"messages\":[]}"));
    end(&w);
}

static void test_level(void **state)
{
    struct world w;
    struct client *a = &w.clients[0], *b = &w.clients[1];
    struct peer *p = &w.peers[0];

    (void)state;
    begin(&w, one, 1, rich);
    hello(a, HELLO("{}"));
    hello(b, HELLO("{}"));
    tell(a, REQ("1", "tools/list", ""));
    hears(a, "work");
    tell(a, REQ("2", "logging/setLevel", "\"level\":\"error\""));
    arrives(&w, p, "\"level\":\"error\"");
    tell(b, REQ("2", "logging/setLevel", "\"level\":\"debug\""));
    arrives(&w, p, "\"level\":\"debug\"");
    end(&w);
}

static void test_list_changed(void **state)
{
    static const struct rule more[] = {
        LIST("tools/list", "tools", TOOL("work") "," TOOL("new")),
        {NULL, NULL},
    };
    struct world w;
    struct client *c = &w.clients[0];
    struct peer *p = &w.peers[0];

    (void)state;
    begin(&w, one, 1, plain);
    hello(c, HELLO("{}"));
    tell(c, REQ("1", "tools/list", ""));
    hears(c, "quick");
    assert_false(heard(c, "list_changed"));
    p->rules = more;
    peer_say(p, MO_SPAN("{\"jsonrpc\":\"2.0\",\"method\":\"notifications/"
                        "tools/list_changed\"}"));
    hears(c, "notifications/tools/list_changed");
    tell(c, REQ("2", "tools/list", ""));
    hears(c, "\"new\"");
    end(&w);
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

static const struct rule answers[] = {
    INIT_OK("{\"tools\":{}}"),
    LIST("tools/list", "tools", TOOL("work")),
    {"tools/call", ASK "\n" RES("$id", "{\"content\":[]}")},
    {NULL, NULL},
};

static const struct rule asks[] = {
    INIT_OK("{\"tools\":{}}"),
    LIST("tools/list", "tools", TOOL("work")),
    {"tools/call", ASK},
    {NULL, NULL},
};

struct tortured {
    struct mo_loop *l;
    const struct rule *rules;
    const char *call, *reply, *want;
    bool got; /* the last run ended */
};

static void torture_body(void *ctx)
{
    struct tortured *t = ctx;
    struct world w;

    memset(&w, 0, sizeof(w));
    w.rules[0] = t->rules;
    w.l = t->l;
    w.gather_ms = 1;
    t->got = false;
    if (world_open(&w, t->l, one, 1) == 0) {
        struct client *c = &w.clients[0];

        say_if(c, HELLO("{\"elicitation\":{}}"));
        say_if(c, REQ("1", "tools/list", ""));
        turn(&w, 8);
        say_if(c, t->call);
        turn(&w, 8);
        if (t->reply)
            say_if(c, t->reply);
        turn(&w, 4);
        t->got = c->me.got.len && heard(c, t->want);
    }
    world_close(&w);
}

/* Each run must end when nothing fails, and leak nothing whatever fails. */
static void test_torture(void **state)
{
    struct tortured rows[] = {
        {NULL, answers,
         REQ("2", "tools/call",
             "\"name\":\"work\",\"task\":{},\"_meta\":{\"progressToken\":1}"),
         NULL, "\"status\":\"completed\"", false},
        {NULL, asks, REQ("3", "tools/call", "\"name\":\"work\""),
         RES("1", "{\"action\":\"accept\"}"), "elicitation/create", false},
        {NULL, asks, REQ("4", "tools/call", "\"name\":\"work\"," META("{}")),
         NULL, "\"id\":1", false},
        {NULL, asks,
         REQ("5", "tools/call",
             "\"name\":\"work\"," META("{\"elicitation\":{}}")),
         NULL, "\"id\":1", false}, /* GW_GATHER_MS is too long for this */
    };

    (void)state;
    for (size_t i = 0; i < MO_COUNT(rows); i++) {
        rows[i].l = loop_new();
        torture_body(&rows[i]);
        if (!rows[i].got)
            fail_msg("row %zu: '%s' did not come", i, rows[i].want);
        torture(torture_body, &rows[i]);
        mo_loop_free(rows[i].l);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_list_and_call),
        cmocka_unit_test(test_unknown),
        cmocka_unit_test(test_two_servers),
        cmocka_unit_test(test_error_crosses),
        cmocka_unit_test(test_whose),
        cmocka_unit_test(test_ask_legacy_both),
        cmocka_unit_test(test_ask_gone),
        cmocka_unit_test(test_ask_parked),
        cmocka_unit_test(test_over_while_away),
        cmocka_unit_test(test_away_too_long),
        cmocka_unit_test(test_ask_modern_up),
        cmocka_unit_test(test_ask_modern_both),
        cmocka_unit_test(test_reload_while_starting),
        cmocka_unit_test(test_cancel_while_starting),
        cmocka_unit_test(test_cancel_under_way),
        cmocka_unit_test(test_lost),
        cmocka_unit_test(test_no_server),
        cmocka_unit_test(test_resources),
        cmocka_unit_test(test_level),
        cmocka_unit_test(test_list_changed),
        cmocka_unit_test(test_torture),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
