/* Approval of calls: allowed, refused, asked through the client or held, and
 * what the owner is told of each. */
#include "gw_kit.h"
#include "policy/exact.h"

#define P "io.modelcontextprotocol/"
#define TOOL(name)                                                             \
    "{\"name\":\"" name "\",\"inputSchema\":{\"type\":\"object\"}}"
#define REQ(id, method, params)                                                \
    "{\"jsonrpc\":\"2.0\",\"id\":" id ",\"method\":\"" method                  \
    "\",\"params\":{" params "}}"
#define RES(id, r) "{\"jsonrpc\":\"2.0\",\"id\":" id ",\"result\":" r "}"
#define CALL(id)                                                               \
    REQ(id, "tools/call", "\"name\":\"work\",\"arguments\":{\"a\":1}")
#define TRACE "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"

static const struct rule plain[] = {
    INIT_OK("{\"tools\":{}}"),
    LIST("tools/list", "tools", TOOL("work") "," TOOL("quick")),
    {NULL, NULL},
};

static const struct mo_gw_server one[] = {
    {.name = "one", .digest = "1", .mode = MO_CONN_LEGACY},
};

/* --- a scripted judge ---------------------------------------------------- */

static struct {
    enum mo_gw_ruling ruling, other; /* of the fallback server */
    const char *question;
    bool slow; /* agreed() waits */
    uint64_t wait_ms;
    const char *too_late; /* again() refuses with it */
    unsigned agains;
    struct mo_gw_case *held, *agreed;
    unsigned rules, helds, agrees, dones, leaves;
    bool disk_full;         /* leaves() fails */
    struct mo_gw_case last; /* copied in done(); spans are no longer valid */
    char tool[32], trace[64];
} desk;

static enum mo_gw_ruling on_rule(void *ctx, struct mo_gw_case *k,
                                 struct mo_buf *question)
{
    (void)ctx;
    desk.rules++;
    k->wait_ms = desk.wait_ms;
    if (mo_span_is(k->server, "b"))
        return desk.other;
    if (desk.question)
        (void)mo_buf_puts(question, desk.question);
    if (desk.ruling == MO_GW_REFUSE)
        (void)snprintf(k->reason, sizeof(k->reason), "not on Sundays");
    return desk.ruling;
}

/* It gets the bytes that would be sent. */
static bool on_again(void *ctx, struct mo_gw_case *k)
{
    (void)ctx;
    desk.agains++;
    assert_non_null(k->item.p);
    if (desk.too_late)
        (void)snprintf(k->reason, sizeof(k->reason), "%s", desk.too_late);
    return !desk.too_late;
}

static void on_held(void *ctx, struct mo_gw_case *k)
{
    (void)ctx;
    desk.helds++;
    desk.held = k;
}

static void on_agreed(void *ctx, struct mo_gw_case *k)
{
    (void)ctx;
    desk.agrees++;
    desk.agreed = k;
    if (!desk.slow)
        mo_gw_run(k, NULL);
}

static void on_done_case(void *ctx, struct mo_gw_case *k)
{
    (void)ctx;
    desk.dones++;
    desk.held = NULL;
    desk.agreed = NULL;
    desk.last = *k;
    (void)snprintf(desk.tool, sizeof(desk.tool), "%.*s", (int)k->tool.n,
                   k->tool.p);
    (void)snprintf(desk.trace, sizeof(desk.trace), "%.*s", (int)k->trace.n,
                   k->trace.p ? k->trace.p : "");
}

static const struct mo_approval_hooks judge = {
    .rule = on_rule,
    .again = on_again,
    .held = on_held,
    .agreed = on_agreed,
    .done = on_done_case,
};

static void begin(struct world *w, enum mo_gw_ruling ruling,
                  const char *question, uint64_t wait_ms)
{
    memset(w, 0, sizeof(*w));
    memset(&desk, 0, sizeof(desk));
    desk.ruling = ruling;
    desk.question = question;
    w->rules[0] = plain;
    w->judge = judge;
    desk.wait_ms = wait_ms;
    assert_int_equal(world_open(w, loop_new(), one, 1), 0);
}

static void end(struct world *w)
{
    struct mo_loop *l = w->l;

    world_close(w);
    mo_loop_free(l);
}

static bool case_done(void *ctx)
{
    return desk.dones >= *(unsigned *)ctx;
}

static void wait_done(struct world *w, unsigned n)
{
    assert_true(mo_loop_until(w->l, case_done, &n, WAIT_MS));
}

static bool is_held(void *ctx)
{
    (void)ctx;
    return desk.held != NULL;
}

static bool has_agreed(void *ctx)
{
    (void)ctx;
    return desk.agreed != NULL;
}

/* --- let and refused ----------------------------------------------------- */

static void test_let(void **state)
{
    struct world w;
    struct client *c = &w.clients[0];

    (void)state;
    begin(&w, MO_GW_LET, NULL, 0);
    hello(c, HELLO("{}"));
    tell(c, REQ("1", "tools/call",
                "\"name\":\"work\",\"arguments\":{\"a\":1},\"_meta\":{"
                "\"traceparent\":\"" TRACE "\"}"));
    arrives(&w, &w.peers[0], "\"work\"");
    assert_true(peer_saw(&w.peers[0], TRACE)); /* it is sent unchanged */
    peer_say(&w.peers[0], MO_SPAN(RES("$id", "{\"content\":[]}")));
    hears(c, RES("1", "{\"content\":[]}"));
    wait_done(&w, 1);
    assert_int_equal(desk.last.outcome, MO_GW_OK);
    assert_string_equal(desk.tool, "work");
    assert_string_equal(desk.trace, TRACE);
    assert_int_equal(desk.last.args_bytes, 7);
    assert_string_equal(
        desk.last.digest,
        "015abd7f5cc57a2dd94b7590f04ad8084273905ee33ec5cebeae62276a97f862");
    assert_int_equal(desk.last.bytes, 14);
    mo_buf_reset(&w.peers[0].log);
    tell(c, CALL("2"));
    arrives(&w, &w.peers[0], "\"work\"");
    peer_say(&w.peers[0], MO_SPAN(RES("$id", "{\"content\":[],\"isError\":"
                                             "true}")));
    hears(c, "\"id\":2,\"result\"");
    wait_done(&w, 2);
    assert_int_equal(desk.last.outcome, MO_GW_TOOL_ERROR);
    assert_int_equal(desk.helds, 0);
    end(&w);
}

static int on_leaving(void *ctx, struct mo_gw_case *k, struct mo_err *e)
{
    (void)ctx;
    (void)k;
    desk.leaves++;
    return desk.disk_full ? mo_fail(e, MO_EIO, "the disk is full") : 0;
}

/* A call is recorded before it is sent, and not sent if that fails. */
static void test_record_first(void **state)
{
    struct world w;
    struct client *c = &w.clients[0];

    (void)state;
    begin(&w, MO_GW_LET, NULL, 0);
    end(&w);
    memset(&w, 0, sizeof(w));
    w.rules[0] = plain;
    w.judge = judge;
    w.judge.leaves = on_leaving;
    assert_int_equal(world_open(&w, loop_new(), one, 1), 0);
    hello(c, HELLO("{}"));
    tell(c, CALL("1"));
    arrives(&w, &w.peers[0], "\"work\"");
    assert_int_equal(desk.leaves, 1);
    peer_say(&w.peers[0], MO_SPAN(RES("$id", "{\"content\":[]}")));
    hears(c, RES("1", "{\"content\":[]}"));
    wait_done(&w, 1);
    mo_buf_reset(&w.peers[0].log);
    desk.disk_full = true;
    tell(c, CALL("2"));
    hears(c, "cannot be written, so the call was not run: the disk is full");
    wait_done(&w, 2);
    assert_int_equal(desk.last.outcome, MO_GW_ERROR);
    assert_false(peer_saw(&w.peers[0], "\"work\""));
    end(&w);
}

static void test_errors(void **state)
{
    struct world w;
    struct client *c = &w.clients[0];

    (void)state;
    begin(&w, MO_GW_LET, NULL, 0);
    hello(c, HELLO("{}"));
    tell(c, CALL("1"));
    arrives(&w, &w.peers[0], "\"work\"");
    peer_say(&w.peers[0], MO_SPAN("{\"jsonrpc\":\"2.0\",\"id\":$id,\"error\":"
                                  "{\"code\":-7,\"message\":\"no\"}}"));
    hears(c, "\"id\":1,\"error\"");
    wait_done(&w, 1);
    assert_int_equal(desk.last.outcome, MO_GW_ERROR);
    /* the server dies during it */
    tell(c, REQ("2", "tools/call", "\"name\":\"quick\""));
    arrives(&w, &w.peers[0], "\"quick\"");
    mo_stream_close(w.peers[0].s, NULL);
    hears(c, "\"id\":2,\"error\"");
    wait_done(&w, 2);
    assert_int_equal(desk.last.outcome, MO_GW_LOST);
    /* the client cancels it */
    tell(c, REQ("3", "tools/call", "\"name\":\"quick\""));
    arrives(&w, &w.peers[1], "\"quick\"");
    tell(c, "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/cancelled\","
            "\"params\":{\"requestId\":3}}");
    wait_done(&w, 3);
    assert_int_equal(desk.last.outcome, MO_GW_CANCELED);
    end(&w);
}

static void test_refused(void **state)
{
    struct world w;
    struct client *c = &w.clients[0];

    (void)state;
    begin(&w, MO_GW_REFUSE, NULL, 0);
    hello(c, HELLO("{\"elicitation\":{}}"));
    tell(c, CALL("1"));
    hears(c, "\"text\":\"This call is not allowed here: not on Sundays.\"}],"
             "\"isError\":true}");
    wait_done(&w, 1);
    assert_int_equal(desk.last.outcome, MO_GW_DENIED);
    assert_string_equal(desk.last.by, "rule");
    assert_false(w.npeers && peer_saw(&w.peers[0], "tools/call"));
    /* requests other than tools/call are not judged */
    tell(c, REQ("2", "prompts/get", "\"name\":\"x\""));
    hears(c, "\"id\":2,\"error\"");
    assert_int_equal(desk.dones, 1);
    end(&w);
}

/* --- held ---------------------------------------------------------------- */

static void test_held(void **state)
{
    struct world w;
    struct client *c = &w.clients[0];

    (void)state;
    begin(&w, MO_GW_ASK, "run it?", 0);
    hello(c, HELLO("{}"));
    tell(c, REQ("1", "tools/call",
                "\"name\":\"work\",\"_meta\":{\"progressToken\":5}"));
    assert_true(mo_loop_until(w.l, is_held, NULL, WAIT_MS));
    assert_false(desk.held->by_client);
    assert_int_equal(strlen(desk.held->id), MO_GW_CASE_ID_LEN);
    hears(c, "\"progressToken\":5,\"progress\":1e-06,\"message\":");
    assert_false(peer_saw(&w.peers[0], "tools/call"));
    desk.slow = true;
    assert_true(mo_gw_decide(desk.held, true, "person"));
    assert_false(mo_gw_decide(desk.held, false, "person")); /* once */
    assert_true(mo_loop_until(w.l, has_agreed, NULL, WAIT_MS));
    settle(c);
    assert_false(peer_saw(&w.peers[0], "tools/call")); /* not written yet */
    mo_gw_run(desk.agreed, NULL);
    arrives(&w, &w.peers[0], "tools/call");
    peer_say(&w.peers[0], MO_SPAN(RES("$id", "{\"content\":[]}")));
    hears(c, "\"id\":1,\"result\":{\"content\":[]}");
    wait_done(&w, 1);
    assert_int_equal(desk.last.outcome, MO_GW_OK);
    assert_string_equal(desk.last.by, "person");
    /* a no */
    tell(c, CALL("2"));
    assert_true(mo_loop_until(w.l, is_held, NULL, WAIT_MS));
    (void)snprintf(desk.held->reason, MO_GW_REASON_MAX, "too dear");
    assert_true(mo_gw_decide(desk.held, false, "person"));
    hears(c, "A person did not allow this call: too dear.");
    wait_done(&w, 2);
    assert_int_equal(desk.last.outcome, MO_GW_DENIED);
    end(&w);
}

static const struct rule picky[] = {
    INIT_OK("{\"tools\":{}}"),
    LIST("tools/list", "tools",
         "{\"name\":\"work\",\"inputSchema\":{\"type\":\"object\","
         "\"properties\":{\"a\":{\"type\":\"integer\"}}}}"),
    {NULL, NULL},
};

/* A person runs it with other arguments. */
static void test_edited(void **state)
{
    static const struct {
        const char *args;
        int rc;
    } rows[] = {
        {"[1]", MO_EINVAL}, {"{", MO_EINVAL}, {"{\"a\":\"x\"}", MO_EINVAL},
        {"{\"a\":2}", 0},   {"{\"a\":3}", 0}, /* the last one counts */
    };
    struct world w;
    struct client *c = &w.clients[0];
    struct mo_gw_case *k;
    char was[MO_EXACT_DIGEST];
    struct mo_err e;

    (void)state;
    begin(&w, MO_GW_ASK, NULL, 0);
    w.rules[0] = picky;
    hello(c, HELLO("{}"));
    tell(c, CALL("1"));
    assert_true(mo_loop_until(w.l, is_held, NULL, WAIT_MS));
    k = desk.held;
    (void)snprintf(was, sizeof(was), "%s", k->digest);
    for (size_t i = 0; i < MO_COUNT(rows); i++)
        check_row(rows[i].args,
                  mo_gw_edit(k, mo_span_cstr(rows[i].args), &e) == rows[i].rc);
    assert_string_equal(k->before, was);
    assert_string_not_equal(k->digest, was);
    assert_true(mo_gw_decide(k, true, "person"));
    assert_int_equal(mo_gw_edit(k, MO_SPAN("{}"), &e), MO_ENOTFOUND);
    arrives(&w, &w.peers[0], "\"arguments\":{\"a\":3}");
    peer_say(&w.peers[0], MO_SPAN(RES("$id", "{\"content\":[]}")));
    hears(c, "\"editedArguments\":{\"a\":3}");
    wait_done(&w, 1);
    assert_int_equal(desk.last.outcome, MO_GW_OK);
    assert_string_equal(desk.last.before, was);
    end(&w);
}

/* The judge has the last word, after the person's yes and without one. */
static void test_too_late(void **state)
{
    static const enum mo_gw_ruling rulings[] = {MO_GW_ASK, MO_GW_LET};

    (void)state;
    for (size_t i = 0; i < MO_COUNT(rulings); i++) {
        struct world w;
        struct client *c = &w.clients[0];

        begin(&w, rulings[i], NULL, 0);
        desk.too_late = "not any more";
        hello(c, HELLO("{}"));
        tell(c, CALL("1"));
        if (rulings[i] == MO_GW_ASK) {
            assert_true(mo_loop_until(w.l, is_held, NULL, WAIT_MS));
            assert_true(mo_gw_decide(desk.held, true, "person"));
        }
        hears(c, "not any more");
        wait_done(&w, 1);
        assert_int_equal(desk.agains, 1);
        assert_int_equal(desk.last.outcome, MO_GW_DENIED);
        assert_false(peer_saw(&w.peers[0], "tools/call"));
        end(&w);
    }
}

static void test_not_written(void **state)
{
    struct world w;
    struct client *c = &w.clients[0];
    struct mo_err why;

    (void)state;
    begin(&w, MO_GW_ASK, NULL, 0);
    desk.slow = true;
    hello(c, HELLO("{}"));
    tell(c, CALL("1"));
    assert_true(mo_loop_until(w.l, is_held, NULL, WAIT_MS));
    assert_true(mo_gw_decide(desk.held, true, "person"));
    assert_true(mo_loop_until(w.l, has_agreed, NULL, WAIT_MS));
    (void)mo_fail(&why, MO_EIO, "disk full");
    mo_gw_run(desk.agreed, &why);
    hears(c, "it could not be written down (disk full)");
    wait_done(&w, 1);
    assert_int_equal(desk.last.outcome, MO_GW_DENIED);
    assert_false(peer_saw(&w.peers[0], "tools/call"));
    end(&w);
}

static void test_nobody(void **state)
{
    struct world w;
    struct client *c = &w.clients[0];

    (void)state;
    begin(&w, MO_GW_ASK, NULL, 5);
    hello(c, HELLO("{}"));
    tell(c, CALL("1"));
    hears(c, "Nobody allowed this call in time");
    wait_done(&w, 1);
    assert_int_equal(desk.last.outcome, MO_GW_DENIED);
    assert_string_equal(desk.last.by, "time");
    end(&w);
}

/* Cancelled by the client, server removed, gateway closed. */
static void test_held_ends(void **state)
{
    struct world w;
    struct client *c = &w.clients[0];

    (void)state;
    begin(&w, MO_GW_ASK, NULL, 0);
    hello(c, HELLO("{}"));
    tell(c, CALL("1"));
    assert_true(mo_loop_until(w.l, is_held, NULL, WAIT_MS));
    tell(c, "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/cancelled\","
            "\"params\":{\"requestId\":1}}");
    wait_done(&w, 1);
    assert_int_equal(desk.last.outcome, MO_GW_CANCELED);
    tell(c, CALL("2"));
    assert_true(mo_loop_until(w.l, is_held, NULL, WAIT_MS));
    assert_int_equal(mo_gateway_servers(w.g, NULL, 0, NULL), 0);
    hears(c, "Its server has been removed");
    wait_done(&w, 2);
    assert_int_equal(desk.last.outcome, MO_GW_ERROR);
    assert_int_equal(mo_gateway_servers(w.g, one, 1, NULL), 0);
    tell(c, CALL("3"));
    assert_true(mo_loop_until(w.l, is_held, NULL, WAIT_MS));
    end(&w);
    assert_int_equal(desk.dones, 3);
}

/* The definition changed before the approval: it is not run. */
static void test_changed_meanwhile(void **state)
{
    static const struct rule other[] = {
        INIT_OK("{\"tools\":{\"listChanged\":true}}"),
        LIST("tools/list", "tools",
             "{\"name\":\"work\",\"description\":\"now it deletes\","
             "\"inputSchema\":{\"type\":\"object\"}}"),
        {NULL, NULL},
    };
    struct world w;
    struct client *c = &w.clients[0];

    (void)state;
    begin(&w, MO_GW_ASK, NULL, 0);
    hello(c, HELLO("{}"));
    tell(c, CALL("1"));
    assert_true(mo_loop_until(w.l, is_held, NULL, WAIT_MS));
    w.peers[0].rules = other;
    peer_say(&w.peers[0], MO_SPAN("{\"jsonrpc\":\"2.0\",\"method\":"
                                  "\"notifications/tools/list_changed\"}"));
    tell(c, REQ("9", "tools/list", ""));
    hears(c, "work");
    for (int i = 0; i < 50 && !heard(c, "now it deletes"); i++) {
        settle(c);
        tell(c, REQ("10", "tools/list", ""));
        hears(c, "\"id\":10");
    }
    assert_true(heard(c, "now it deletes"));
    assert_true(mo_gw_decide(desk.held, true, "person"));
    hears(c, "is not what was looked at");
    assert_false(peer_saw(&w.peers[0], "tools/call"));
    wait_done(&w, 1);
    assert_int_equal(desk.last.outcome, MO_GW_ERROR);
    end(&w);
}

/* --- asked --------------------------------------------------------------- */

static const struct {
    const char *name, *answer;
    bool yes;
} answers[] = {
    {"yes",
     RES("1", "{\"action\":\"accept\",\"content\":{\"decision\":"
              "\"approve\"}}"),
     true},
    {"no",
     RES("1", "{\"action\":\"accept\",\"content\":{\"decision\":"
              "\"reject\",\"reason\":\"why?\"}}"),
     false},
    {"accepted without a word", RES("1", "{\"action\":\"accept\"}"), false},
    {"another type",
     RES("1", "{\"action\":\"accept\",\"content\":{\"decision\":true}}"),
     false},
    {"declined",
     RES("1", "{\"action\":\"decline\",\"content\":{\"decision\":"
              "\"approve\"}}"),
     false},
    {"cancelled", RES("1", "{\"action\":\"cancel\"}"), false},
    {"an error",
     "{\"jsonrpc\":\"2.0\",\"id\":1,\"error\":{\"code\":-1,"
     "\"message\":\"x\"}}",
     false},
};

static void test_asked_legacy(void **state)
{
    (void)state;
    for (size_t i = 0; i < MO_COUNT(answers); i++) {
        struct world w;
        struct client *c = &w.clients[0];

        begin(&w, MO_GW_ASK, "run \"it\"?", 0);
        hello(c, HELLO("{\"elicitation\":{}}"));
        tell(c, CALL("1"));
        hears(c, "\"method\":\"elicitation/create\",\"params\":{\"message\":"
                 "\"run \\\"it\\\"?\",\"requestedSchema\":{\"type\":"
                 "\"object\"");
        check_row(answers[i].name, desk.held && desk.held->by_client);
        check_row(answers[i].name, !mo_gw_decide(desk.held, true, "person"));
        tell(c, answers[i].answer);
        if (answers[i].yes) {
            arrives(&w, &w.peers[0], "tools/call");
            peer_say(&w.peers[0], MO_SPAN(RES("$id", "{\"content\":[]}")));
            hears(c, RES("1", "{\"content\":[]}"));
        } else {
            hears(c, "The person did not allow this call");
            check_row(answers[i].name, !peer_saw(&w.peers[0], "tools/call"));
        }
        wait_done(&w, 1);
        check_row(answers[i].name,
                  desk.last.outcome ==
                      (answers[i].yes ? MO_GW_OK : MO_GW_DENIED));
        check_row(answers[i].name, strcmp(desk.last.by, "client") == 0);
        end(&w);
    }
}

/* The client does not answer in time: the question is withdrawn. */
static void test_asked_late(void **state)
{
    struct world w;
    struct client *c = &w.clients[0];

    (void)state;
    begin(&w, MO_GW_ASK, "run it?", 30);
    hello(c, HELLO("{\"elicitation\":{}}"));
    tell(c, CALL("1"));
    hears(c, "elicitation/create");
    hears(c, "notifications/cancelled");
    hears(c, "Nobody allowed this call in time");
    tell(c, answers[0].answer); /* too late */
    settle(c);
    assert_false(peer_saw(&w.peers[0], "tools/call"));
    assert_int_equal(desk.dones, 1);
    end(&w);
}

static void cut_state(const struct client *c, char *out, size_t max)
{
    static const char before[] = "\"requestState\":\"";
    struct mo_span s = mo_buf_view(&c->me.got);
    ptrdiff_t at = mo_span_search(s, mo_span_cstr(before));

    assert_true(at >= 0);
    s = mo_span_skip(s, (size_t)at + sizeof(before) - 1);
    at = mo_span_find(s, '"');
    assert_true(at >= 0 && (size_t)at < max);
    (void)snprintf(out, max, "%.*s", (int)at, s.p);
}

static void modern_call(struct client *c, const char *id, const char *args,
                        const char *more)
{
    char line[4096];

    (void)snprintf(line, sizeof(line),
                   "{\"jsonrpc\":\"2.0\",\"id\":%s,\"method\":\"tools/call\","
                   "\"params\":{\"name\":\"work\",\"arguments\":%s,\"_meta\":{"
                   "\"" P "protocolVersion\":\"2026-07-28\",\"" P
                   "clientCapabilities\":{\"elicitation\":{}}}%s}}",
                   id, args, more);
    tell(c, line);
}

static void test_asked_modern(void **state)
{
    struct world w;
    struct client *c = &w.clients[0];
    char st[2048], more[3000];

    (void)state;
    begin(&w, MO_GW_ASK, "run it?", 0);
    modern_call(c, "1", "{\"a\":1}", "");
    hears(c, "\"inputRequests\":{\"a1\":{\"method\":\"elicitation/create\","
             "\"params\":{\"message\":\"run it?\"");
    hears(c, "requestState");
    cut_state(c, st, sizeof(st));
    mo_buf_reset(&c->me.got);
    (void)snprintf(more, sizeof(more),
                   ",\"requestState\":\"%s\",\"inputResponses\":{\"a1\":{"
                   "\"action\":\"accept\",\"content\":{\"decision\":"
                   "\"approve\"}}}",
                   st);
    /* arguments that differ from the approved ones */
    modern_call(c, "2", "{\"a\":2}", more);
    hears(c, "\"id\":2,\"error\":{\"code\":-32602");
    assert_false(peer_saw(&w.peers[0], "tools/call"));
    modern_call(c, "3", "{\"a\": 1}", more); /* the same value */
    arrives(&w, &w.peers[0], "tools/call");
    peer_say(&w.peers[0], MO_SPAN(RES("$id", "{\"content\":[]}")));
    hears(c, "\"id\":3,\"result\":{\"resultType\":\"complete\"");
    wait_done(&w, 1);
    assert_int_equal(desk.last.outcome, MO_GW_OK);
    /* used up */
    modern_call(c, "4", "{\"a\":1}", more);
    hears(c, "\"id\":4,\"error\":{\"code\":-32602");
    /* the deadline passes while the client is away */
    end(&w);
    begin(&w, MO_GW_ASK, "run it?", 20);
    modern_call(c, "1", "{\"a\":1}", "");
    hears(c, "requestState");
    wait_done(&w, 1);
    cut_state(c, st, sizeof(st));
    (void)snprintf(more, sizeof(more),
                   ",\"requestState\":\"%s\",\"inputResponses\":{\"a1\":{"
                   "\"action\":\"accept\",\"content\":{\"decision\":"
                   "\"approve\"}}}",
                   st);
    modern_call(c, "2", "{\"a\":1}", more);
    hears(c, "Nobody allowed this call in time");
    assert_false(peer_saw(&w.peers[0], "tools/call"));
    end(&w);
}

/* --- fallback servers ---------------------------------------------------- */

#define LOOK                                                                   \
    LIST("tools/list", "tools",                                                \
         "{\"name\":\"look\",\"inputSchema\":{\"type\":\"object\"},"           \
         "\"annotations\":{\"readOnlyHint\":true}}")

static const struct rule dies[] = {
    INIT_OK("{\"tools\":{}}"), LOOK, {"tools/call", "CLOSE"}, {NULL, NULL}};
static const struct rule works[] = {
    INIT_OK("{\"tools\":{}}"),
    LOOK,
    {"tools/call", RES("$id", "{\"content\":[7]}")},
    {NULL, NULL},
};

static const struct rule wants_more[] = {
    INIT_OK("{\"tools\":{}}"),
    LIST("tools/list", "tools",
         "{\"name\":\"look\",\"inputSchema\":{\"type\":\"object\","
         "\"required\":[\"more\"]},\"annotations\":{\"readOnlyHint\":true}}"),
    {NULL, NULL},
};

static void stand_in(enum mo_gw_ruling other, bool strict, const char *want,
                     enum mo_gw_outcome outcome)
{
    static const char *b[] = {"b"};
    const struct mo_gw_server two[] = {
        {.name = "a",
         .digest = "1",
         .mode = MO_CONN_LEGACY,
         .fallback = {b, 1}},
        {.name = "b", .digest = "2", .mode = MO_CONN_LEGACY},
    };
    struct world w;
    struct client *c = &w.clients[0];

    memset(&w, 0, sizeof(w));
    memset(&desk, 0, sizeof(desk));
    desk.other = other;
    w.rules[0] = dies;
    w.rules[1] = strict ? wants_more : works;
    w.judge = judge;
    assert_int_equal(world_open(&w, loop_new(), two, 2), 0);
    hello(c, HELLO("{}"));
    tell(c, REQ("1", "tools/list", ""));
    hears(c, "b_look");
    tell(c, REQ("2", "tools/call", "\"name\":\"a_look\""));
    hears(c, want);
    wait_done(&w, 2);
    assert_int_equal(desk.last.outcome, outcome);
    assert_int_equal(desk.rules, 2); /* each is judged separately */
    assert_int_equal(desk.helds, 0);
    assert_int_equal(peer_saw(&w.peers[1], "tools/call"), outcome == MO_GW_OK);
    end(&w);
}

static void test_stand_in(void **state)
{
    (void)state;
    stand_in(MO_GW_LET, false, "{\"content\":[7]", MO_GW_OK);
    stand_in(MO_GW_LET, true, "do not fit the tool's schema", MO_GW_DENIED);
    stand_in(MO_GW_REFUSE, false, "This call is not allowed here",
             MO_GW_DENIED);
    stand_in(MO_GW_ASK, false, "b stands in for its server", MO_GW_DENIED);
}

/* --- without memory ------------------------------------------------------ */

static bool few_left(void *ctx)
{
    unsigned *left = ctx;

    return (*left)-- == 0;
}

/* Turns the loop until nothing more can happen. */
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

static const struct rule answering[] = {
    INIT_OK("{\"tools\":{}}"),
    LIST("tools/list", "tools", TOOL("work")),
    {"tools/call", RES("$id", "{\"content\":[7]}")},
    {NULL, NULL},
};

struct tortured {
    struct mo_loop *l;
    const char *caps;
    bool got;
};

static void torture_body(void *ctx)
{
    struct tortured *t = ctx;
    struct world w;
    struct mo_err e;

    memset(&w, 0, sizeof(w));
    memset(&desk, 0, sizeof(desk));
    desk.ruling = MO_GW_ASK;
    desk.question = "run it?";
    w.rules[0] = answering;
    w.l = t->l;
    w.judge = judge;
    t->got = false;
    if (world_open(&w, t->l, one, 1) == 0) {
        struct client *c = &w.clients[0];

        say_if(c, t->caps);
        say_if(c, REQ("1", "tools/list", ""));
        turn(&w, 8);
        say_if(c, CALL("2"));
        turn(&w, 4);
        if (desk.held) {
            (void)mo_gw_edit(desk.held, MO_SPAN("{\"b\":2}"), &e);
            (void)mo_gw_decide(desk.held, true, "person");
        }
        say_if(c, answers[0].answer);
        turn(&w, 6);
        t->got = c->me.got.len && heard(c, "{\"content\":[7]");
    }
    world_close(&w);
    assert_true(desk.dones <= 1);
    assert_null(desk.held);
}

static void test_torture(void **state)
{
    struct tortured rows[] = {
        {.caps = HELLO("{}")},
        {.caps = HELLO("{\"elicitation\":{}}")},
    };

    (void)state;
    for (size_t i = 0; i < MO_COUNT(rows); i++) {
        rows[i].l = loop_new();
        torture_body(&rows[i]);
        assert_true(rows[i].got);
        torture(torture_body, &rows[i]);
        mo_loop_free(rows[i].l);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_let),
        cmocka_unit_test(test_errors),
        cmocka_unit_test(test_record_first),
        cmocka_unit_test(test_refused),
        cmocka_unit_test(test_held),
        cmocka_unit_test(test_edited),
        cmocka_unit_test(test_too_late),
        cmocka_unit_test(test_not_written),
        cmocka_unit_test(test_nobody),
        cmocka_unit_test(test_held_ends),
        cmocka_unit_test(test_changed_meanwhile),
        cmocka_unit_test(test_asked_legacy),
        cmocka_unit_test(test_asked_late),
        cmocka_unit_test(test_asked_modern),
        cmocka_unit_test(test_stand_in),
        cmocka_unit_test(test_torture),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
