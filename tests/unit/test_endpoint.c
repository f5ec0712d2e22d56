/* The endpoint on a stream of lines: requests in, answers out, both eras,
 * byte for byte. */
#include <sys/socket.h>
#include <unistd.h>

#include "ep_talk.h"

#define INFO                                                                   \
    "\"_meta\":{\"" P "serverInfo\":{\"name\":\"kit\",\"version\":\"1\"}}"

#define LACKS                                                                  \
    "the client lacks a capability that this call needs\",\"data\":"           \
    "{\"requiredCapabilities\":"

/* version: what was negotiated before, NULL: nothing. */
static const struct row {
    const char *name, *version, *in, *out;
} rows[] = {
    {"not JSON", NULL, "nonsense\n", NULL},
    {"no envelope", NULL, "{\"id\":7}\n", NULL},
    {"empty lines", NULL, "\n \n\r\n", ""},
    {"before initialize", NULL, CALL("1", "now"),
     ERR("1", "-32600", "the first request must be initialize")},
    {"a call", "2025-11-25", CALL("1", "now"), RES("1", TEXT("ok"))},
    {"the id keeps its spelling", "2025-11-25", CALL("\"\\u0031\"", "now"),
     RES("\"\\u0031\"", TEXT("ok"))},
    {"unknown method", "2025-11-25",
     "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"x\"}\n",
     ERR("1", "-32601", "no such method")},
    {"undeclared capability", "2025-11-25",
     "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"prompts/list\"}\n",
     ERR("1", "-32601", "no such method")},
    {"modern method on a legacy session", "2025-11-25",
     "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"server/discover\"}\n",
     ERR("1", "-32601", "no such method")},
    {"unknown notification", "2025-11-25",
     "{\"jsonrpc\":\"2.0\",\"method\":\"x\"}\n", ""},
    {"stray response", "2025-11-25", RES("99", "{}"), ""},
    {"no name", "2025-11-25",
     "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/call\","
     "\"params\":{}}\n",
     ERR("1", "-32602", "params must name the thing asked for, as a string")},
    {"arguments are no object", "2025-11-25",
     MCALL("1", "now", "\"arguments\":[]"),
     ERR("1", "-32602", "params.arguments must be an object")},
    {"initialize twice", "2025-11-25",
     "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"initialize\",\"params\":"
     "{\"protocolVersion\":\"2025-11-25\"}}\n",
     ERR("1", "-32600", "already initialized")},
    {"batch refused", "2025-11-25",
     "["
     "{\"jsonrpc\":\"2.0\",\"id\":1,"
     "\"method\":\"ping\"}]\n",
     ERR("null", "-32600", "batches are not spoken here")},
    {"batch of 2025-03-26", "2025-03-26",
     "[{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"},7]\n",
     RES("1", "{}") ERR("null", "-32600", "no JSON-RPC message")},
    {"bad level", "2025-11-25",
     "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"logging/setLevel\","
     "\"params\":{\"level\":\"loud\"}}\n",
     ERR("1", "-32602", "no such level")},
    {"structured number is wrapped", "2025-06-18", CALL("1", "number"),
     RES("1", "{\"content\":[],\"structuredContent\":{\"result\":42}}")},
    {"structured number is dropped", "2025-03-26", CALL("1", "number"),
     RES("1", "{\"content\":[]}")},
    {"kinds become text", "2024-11-05", CALL("1", "kinds"),
     RES("1", "{\"content\":[{\"type\":\"text\",\"text\":\"[audio]\"},"
              "{\"type\":\"text\",\"text\":\"a:b\"}]}")},
    {"list for 2025-11-25", "2025-11-25",
     "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/list\"}\n",
     RES("1", "{\"tools\":[{\"name\":\"now\",\"title\":\"Now\","
              "\"inputSchema\":{\"type\":\"object\"},\"outputSchema\":"
              "{\"type\":\"object\",\"required\":[\"result\"],"
              "\"properties\":{\"result\":{\"type\":\"integer\"}}},"
              "\"icons\":[]}]}")},
    {"list for 2024-11-05", "2024-11-05",
     "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/list\"}\n",
     RES("1", "{\"tools\":[{\"name\":\"now\","
              "\"inputSchema\":{\"type\":\"object\"}}]}")},
    {"resource not found, legacy", "2025-11-25",
     "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"resources/read\","
     "\"params\":{\"uri\":\"a:b\"}}\n",
     ERRD("1", "-32002", "gone\",\"data\":{\"uri\":\"a:b\"}")},
    {"progress without a token, log above info", "2025-11-25",
     CALL("1", "talk"),
     "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/message\",\"params\":"
     "{\"level\":\"warning\",\"logger\":\"kit\",\"data\":\"loud\"}}\n" RES(
         "1", TEXT("ok"))},
    {"progress once for one step", "2025-11-25",
     MCALL("1", "talk", "\"_meta\":{\"progressToken\":\"p\"}"),
     "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/progress\",\"params\":"
     "{\"progressToken\":\"p\",\"progress\":1,\"total\":2,"
     "\"message\":\"half\"}}\n"
     "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/message\",\"params\":"
     "{\"level\":\"warning\",\"logger\":\"kit\",\"data\":\"loud\"}}\n" RES(
         "1", TEXT("ok"))},
    {"modern call", NULL, MCALL("1", "now", META),
     RES("1", "{\"resultType\":\"complete\",\"content\":[{\"type\":\"text\","
              "\"text\":\"ok\"}]," INFO "}")},
    {"modern list keeps its hints", NULL,
     "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/list\",\"params\":{" META
     "}}\n",
     RES("1", "{\"resultType\":\"complete\",\"tools\":[{\"name\":\"now\","
              "\"title\":\"Now\",\"inputSchema\":{\"type\":\"object\"},"
              "\"outputSchema\":{\"type\":\"integer\"},\"icons\":[]}],"
              "\"ttlMs\":5,\"cacheScope\":\"private\"," INFO "}")},
    {"modern: no logs unless asked for", NULL, MCALL("1", "talk", META),
     RES("1", "{\"resultType\":\"complete\",\"content\":[{\"type\":\"text\","
              "\"text\":\"ok\"}]," INFO "}")},
    {"modern: ping is gone", NULL,
     "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\",\"params\":{" META
     "}}\n",
     ERR("1", "-32601", "no such method")},
    {"modern: initialize is gone", NULL,
     "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"initialize\",\"params\":{" META
     "}}\n",
     ERR("1", "-32601", "no such method")},
    {"modern: no capabilities", NULL,
     MCALL("1", "now", "\"_meta\":{\"" P "protocolVersion\":\"2026-07-28\"}"),
     ERR("1", "-32602",
         "_meta[\\\"" P "clientCapabilities\\\"] must be an object")},
    {"modern: unknown version", NULL,
     MCALL("1", "now",
           "\"_meta\":{\"" P "protocolVersion\":\"2027-01-01\",\"" P
           "clientCapabilities\":{}}"),
     ERRD("1", "-32022",
          "this protocol version is not spoken here\",\"data\":{\"supported\":"
          "[\"2026-07-28\"],\"requested\":\"2027-01-01\"}")},
    {"modern: resource not found", NULL,
     "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"resources/read\",\"params\":"
     "{\"uri\":\"a:b\"," META "}}\n",
     ERRD("1", "-32602", "gone\",\"data\":{\"uri\":\"a:b\"}")},
    {"modern: a question without the capability", NULL, MCALL("1", "ask", META),
     ERRD("1", "-32021", LACKS "{\"elicitation\":{}}}")},
    {"modern: a page without the capability", NULL,
     MCALL("1", "page", META_CAPS("{\"elicitation\":{}}")),
     ERRD("1", "-32021", LACKS "{\"elicitation\":{\"url\":{}}}}")},
    {"modern: a form for one who wants pages only", NULL,
     MCALL("1", "ask", META_CAPS("{\"elicitation\":{\"url\":{}}}")),
     ERRD("1", "-32021", LACKS "{\"elicitation\":{\"form\":{}}}}")},
    {"modern: a question that does not exist", NULL,
     MCALL("1", "nonsense", META_CAPS("{\"elicitation\":{}}")),
     ERRD("1", "-32021", LACKS "{}}")},
    {"a page without the capability", "2025-11-25", CALL("1", "page"),
     RES("1", "{\"content\":[{\"type\":\"text\",\"text\":\"this needs a client "
              "that supports sampling, elicitation or roots; this client does "
              "not\"}],\"isError\":true}")},
    {"modern: a foreign state", NULL,
     MCALL("1", "ask", "\"requestState\":\"AAAA\"," META),
     ERR("1", "-32602",
         "params.requestState is not one we gave for this call")},
};

static void play(struct talk *t, const struct row *r, size_t cut)
{
    static const struct {
        const char *version, *init;
    } inits[] = {
        {"2024-11-05", INIT("2024-11-05")},
        {"2025-03-26", INIT("2025-03-26")},
        {"2025-06-18", INIT("2025-06-18")},
        {"2025-11-25", INIT("2025-11-25")},
    };
    const char *got;

    for (size_t i = 0; r->version && i < MO_COUNT(inits); i++) {
        if (strcmp(inits[i].version, r->version) == 0)
            say(t, inits[i].init);
    }
    if (r->version) {
        check_row(r->name, strstr(hear(t), r->version));
        mo_buf_reset(&t->me.got);
    }
    assert_int_equal(mo_stream_write(t->me.s, mo_span(r->in, cut)), 0);
    (void)mo_loop_until(t->k.l, end_closed, &t->me, 0);
    say(t, r->in + cut);
    got = hear(t);
    if (r->out && strcmp(got, r->out) != 0)
        fail_msg("row '%s':\n%swanted\n%s", r->name, got, r->out);
}

static void test_rows(void **state)
{
    struct mo_loop *l = loop_new();
    struct talk t;

    (void)state;
    for (size_t i = 0; i < MO_COUNT(rows); i++) {
        assert_int_equal(talk_open(&t, l, NULL), 0);
        play(&t, &rows[i], 0);
        if (!rows[i].out)
            assert_non_null(strstr(t.me.got.p, "\"error\""));
        talk_close(&t);
    }
    mo_loop_free(l);
}

/* Each row again, cut in two: here and there, pieces must not matter. */
static void test_cut(void **state)
{
    struct mo_loop *l = loop_new();
    struct talk t;

    (void)state;
    for (size_t i = 0; i < MO_COUNT(rows); i++) {
        for (size_t cut = 1; cut < strlen(rows[i].in); cut += 17) {
            assert_int_equal(talk_open(&t, l, NULL), 0);
            play(&t, &rows[i], cut);
            talk_close(&t);
        }
    }
    mo_loop_free(l);
}

/* --- conversations ------------------------------------------------------- */

static void test_cancel(void **state)
{
    struct mo_loop *l = loop_new();
    struct talk t;

    (void)state;
    assert_int_equal(talk_open(&t, l, NULL), 0);
    say(&t, INIT("2025-11-25") CALL("1", "park"));
    (void)hear(&t);
    mo_buf_reset(&t.me.got);
    assert_non_null(t.k.parked);
    say(&t, CALL("1", "now"));
    assert_non_null(strstr(hear(&t), "this id is in use"));
    mo_buf_reset(&t.me.got);
    say(&t, "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/cancelled\","
            "\"params\":{\"requestId\":1}}\n");
    assert_string_equal(hear(&t), "");
    assert_int_equal(t.k.cancels, 1);
    assert_null(t.k.parked);
    say(&t, CALL("1", "now"));
    assert_string_equal(hear(&t), RES("1", TEXT("ok")));
    talk_close(&t);
    mo_loop_free(l);
}

static void test_late_answer(void **state)
{
    struct mo_loop *l = loop_new();
    struct talk t;

    (void)state;
    assert_int_equal(talk_open(&t, l, NULL), 0);
    say(&t, INIT("2025-11-25") CALL("1", "park"));
    (void)hear(&t);
    mo_buf_reset(&t.me.got);
    mo_ep_call_result(t.k.parked, MO_SPAN("{\n\"content\":\r\n[]}"));
    assert_string_equal(hear(&t), RES("1", "{\"content\":[]}"));
    talk_close(&t);
    mo_loop_free(l);
}

/* The peer goes away while the handler works: it is told, once. */
static void test_gone(void **state)
{
    struct mo_loop *l = loop_new();
    struct talk t;

    (void)state;
    assert_int_equal(talk_open(&t, l, NULL), 0);
    say(&t, INIT("2025-11-25") CALL("1", "park"));
    (void)hear(&t);
    mo_stream_close(t.me.s, NULL);
    wait_for(l, flag_up, &t.closed);
    mo_loop_run(l);
    assert_int_equal(mo_endpoint_stats(t.k.ep).calls, 0);
    talk_close(&t);
    assert_int_equal(t.k.cancels, 1);
    mo_loop_free(l);
}

static void test_ask_legacy(void **state)
{
    struct mo_loop *l = loop_new();
    struct talk t;

    (void)state;
    assert_int_equal(talk_open(&t, l, NULL), 0);
    say(&t, INIT("2025-11-25") CALL("1", "twice"));
    assert_non_null(strstr(hear(&t), "\"id\":1,\"method\":"
                                     "\"elicitation/create\""));
    mo_buf_reset(&t.me.got);
    say(&t, RES("1", "{\"action\":\"accept\"}"));
    assert_non_null(strstr(hear(&t), "\"id\":2,\"method\":"
                                     "\"elicitation/create\""));
    mo_buf_reset(&t.me.got);
    say(&t, RES("1", "{\"action\":\"again\"}") RES("2", "{\"b\":2}"));
    assert_string_equal(
        hear(&t), RES("1", "{\"content\":[],\"structuredContent\":{\"b\":2}}"));
    mo_buf_reset(&t.me.got);
    say(&t, CALL("2", "ask") ERR("3", "-1", "no"));
    assert_non_null(strstr(hear(&t), "the client refused elicitation/create: "
                                     "no\"}],\"isError\":true"));
    talk_close(&t);
    mo_loop_free(l);
}

static bool saw_late(void *ctx)
{
    struct talk *t = ctx;

    return strstr(mo_buf_cstr(&t->me.got), "in time") != NULL;
}

/* The client never answers our question: it is taken back, the call ends. */
static void test_ask_late(void **state)
{
    struct mo_endpoint_limits brief = {.ask_ms = 5};
    struct mo_loop *l = loop_new();
    struct talk t;

    (void)state;
    assert_int_equal(talk_open(&t, l, &brief), 0);
    say(&t, INIT("2025-11-25") CALL("1", "ask"));
    wait_for(l, saw_late, &t);
    assert_non_null(strstr(t.me.got.p, "\"notifications/cancelled\","
                                       "\"params\":{\"requestId\":1}"));
    assert_int_equal(mo_endpoint_stats(t.k.ep).calls, 0);
    talk_close(&t);
    mo_loop_free(l);
}

/* requestState of the last answer, as it stands between its quotes. */
static void take_state(struct talk *t, char *out, size_t max)
{
    const char *p = strstr(mo_buf_cstr(&t->me.got), "\"requestState\":\"");
    size_t n;

    assert_non_null(p);
    p += strlen("\"requestState\":\"");
    n = strcspn(p, "\"");
    assert_true(n < max);
    memcpy(out, p, n);
    out[n] = '\0';
    mo_buf_reset(&t->me.got);
}

static void say_round(struct talk *t, const char *tool, const char *st,
                      const char *key)
{
    char line[4096];

    (void)snprintf(line, sizeof(line),
                   "{\"jsonrpc\":\"2.0\",\"id\":5,\"method\":\"tools/call\","
                   "\"params\":{\"name\":\"%s\",\"requestState\":\"%s\","
                   "\"inputResponses\":{\"%s\":{\"v\":\"%s\"}}," META_CAPS(
                       "{\"elicitation\":{}}") "}}\n",
                   tool, st, key, key);
    say(t, line);
}

static void test_ask_modern(void **state)
{
    struct mo_loop *l = loop_new();
    char st[2048];
    struct talk t;

    (void)state;
    assert_int_equal(talk_open(&t, l, NULL), 0);
    say(&t, MCALL("1", "twice", META_CAPS("{\"elicitation\":{}}")));
    assert_non_null(strstr(hear(&t), "\"resultType\":\"input_required\","
                                     "\"inputRequests\":{\"one\":{\"method\":"
                                     "\"elicitation/create\",\"params\":"
                                     "{\"message\":\"?\"}}}"));
    take_state(&t, st, sizeof(st));
    say_round(&t, "ask", st, "one"); /* of another call */
    assert_non_null(strstr(hear(&t), "-32602"));
    mo_buf_reset(&t.me.got);
    say_round(&t, "twice", st, "wrong"); /* asks again */
    assert_non_null(strstr(hear(&t), "\"inputRequests\":{\"one\""));
    mo_buf_reset(&t.me.got);
    say_round(&t, "twice", st, "one");
    assert_non_null(strstr(hear(&t), "\"inputRequests\":{\"two\""));
    take_state(&t, st, sizeof(st));
    say_round(&t, "twice", st, "two"); /* "one" travelled in the state */
    assert_non_null(strstr(hear(&t), "\"structuredContent\":{\"v\":\"two\"}"));
    mo_buf_reset(&t.me.got);
    st[0] = st[0] == 'A' ? 'B' : 'A';
    say_round(&t, "twice", st, "two");
    assert_non_null(strstr(hear(&t), "-32602"));
    talk_close(&t);
    mo_loop_free(l);
}

static void test_rounds_end(void **state)
{
    struct mo_endpoint_limits few = {.rounds = 2};
    struct mo_loop *l = loop_new();
    char st[2048];
    struct talk t;

    (void)state;
    assert_int_equal(talk_open(&t, l, &few), 0);
    say(&t, MCALL("1", "ask", META_CAPS("{\"elicitation\":{}}")));
    (void)hear(&t);
    take_state(&t, st, sizeof(st));
    say_round(&t, "ask", st, "wrong");
    (void)hear(&t);
    take_state(&t, st, sizeof(st));
    say_round(&t, "ask", st, "wrong");
    assert_non_null(strstr(hear(&t), "too many rounds"));
    talk_close(&t);
    mo_loop_free(l);
}

#define NOTE(m, params)                                                        \
    "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/" m "\"" params "}\n"
#define SUB "\"_meta\":{\"" P "subscriptionId\":\"L\"}"

static void test_news(void **state)
{
    /* clang-format off */
    static const char news[] =
        NOTE("prompts/list_changed", "")
        NOTE("tools/list_changed", "")
        NOTE("tools/list_changed", ",\"params\":{" SUB "}")
        NOTE("resources/updated", ",\"params\":{\"uri\":\"a:b\"}")
        NOTE("resources/updated", ",\"params\":{\"uri\":\"c:d\"," SUB "}");
    /* clang-format on */
    struct mo_loop *l = loop_new();
    struct talk t;

    (void)state;
    assert_int_equal(talk_open(&t, l, NULL), 0);
    say(&t,
        INIT("2025-11-25") "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":"
                           "\"resources/subscribe\","
                           "\"params\":{\"uri\":\"a:b\"}}\n"
                           "{\"jsonrpc\":\"2.0\",\"id\":\"L\",\"method\":"
                           "\"subscriptions/"
                           "listen\",\"params\":{\"notifications\":"
                           "{\"promptsListChanged\":true,\"toolsListChanged\":"
                           "true,"
                           "\"resourceSubscriptions\":[\"c:d\"]}," META "}}\n");
    assert_non_null(strstr(
        hear(&t), "{\"jsonrpc\":\"2.0\",\"method\":"
                  "\"notifications/subscriptions/acknowledged\",\"params\":"
                  "{\"notifications\":{\"toolsListChanged\":true,"
                  "\"resourceSubscriptions\":[\"c:d\"]},\"_meta\":{\"" P
                  "subscriptionId\":\"L\"}}}\n"));
    assert_int_equal(mo_endpoint_stats(t.k.ep).listens, 1);
    mo_buf_reset(&t.me.got);
    mo_endpoint_changed(t.k.ep, MO_EP_CH_PROMPTS); /* legacy only */
    mo_endpoint_changed(t.k.ep, MO_EP_CH_TOOLS);   /* both */
    mo_endpoint_updated(t.k.ep, MO_SPAN("a:b"));   /* legacy */
    mo_endpoint_updated(t.k.ep, MO_SPAN("c:d"));   /* the listen */
    mo_endpoint_updated(t.k.ep, MO_SPAN("e:f"));   /* nobody */
    assert_string_equal(hear(&t), news);
    mo_buf_reset(&t.me.got);
    say(&t, "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/cancelled\","
            "\"params\":{\"requestId\":\"L\"}}\n");
    (void)hear(&t);
    assert_int_equal(mo_endpoint_stats(t.k.ep).listens, 0);
    talk_close(&t);
    mo_loop_free(l);
}

static void test_line_too_long(void **state)
{
    struct mo_loop *l = loop_new();
    char piece[65536];
    struct talk t;

    (void)state;
    assert_int_equal(talk_open(&t, l, NULL), 0);
    mo_stream_limit(t.me.s, 2 * MO_EP_LINE_MAX);
    memset(piece, ' ', sizeof(piece));
    for (size_t n = 0; n <= MO_EP_LINE_MAX; n += sizeof(piece))
        assert_int_equal(mo_stream_write(t.me.s, mo_span(piece, sizeof(piece))),
                         0);
    wait_for(l, flag_up, &t.closed);
    talk_close(&t);
    mo_loop_free(l);
}

/* --- calls of a call ------------------------------------------------------ */

struct inner {
    struct mo_ep_within pub;
    unsigned done;
    char text[512]; /* of the result, the error, or "" */
};

static void on_inner(struct mo_ep_within *w, struct mo_json result,
                     struct mo_json error, const struct mo_ep_origin *about)
{
    struct inner *x = mo_container_of(w, struct inner, pub);
    struct mo_span s = mo_json_text(result.p ? result : error);

    assert_int_equal(about != NULL, result.p != NULL);
    x->done++;
    (void)snprintf(x->text, sizeof(x->text), "%.*s", (int)s.n, s.n ? s.p : "");
}

static void call_inner(struct talk *t, struct inner *x, struct mo_span params)
{
    *x = (struct inner){.pub = {.script = "ab", .line = 7, .done = on_inner}};
    assert_int_equal(mo_ep_call_within(t->k.parked, params, &x->pub), 0);
}

#define ASK_IN MO_SPAN("{\"name\":\"ask\"}")

static void test_within(void **state)
{
    struct mo_loop *l = loop_new();
    struct inner x;
    struct talk t;

    (void)state;
    assert_int_equal(talk_open(&t, l, NULL), 0);
    say(&t, INIT("2025-11-25") CALL("1", "park"));
    (void)hear(&t);
    mo_buf_reset(&t.me.got);
    call_inner(&t, &x, MO_SPAN("{\"name\":\"now\"}"));
    assert_int_equal(x.done, 1);
    assert_string_equal(x.text, TEXT("ok"));
    call_inner(&t, &x, MO_SPAN("{\"name\":1}"));
    assert_non_null(strstr(x.text, "as a string"));
    /* its question goes to the client, and comes back */
    call_inner(&t, &x, ASK_IN);
    assert_non_null(strstr(hear(&t), "\"method\":\"elicitation/create\""));
    assert_int_equal(x.done, 0);
    mo_buf_reset(&t.me.got);
    say(&t, RES("1", "{\"action\":\"accept\"}"));
    assert_string_equal(hear(&t), "");
    assert_int_equal(x.done, 1);
    /* cancelled: the question is taken back */
    call_inner(&t, &x, ASK_IN);
    (void)hear(&t);
    mo_buf_reset(&t.me.got);
    mo_ep_within_cancel(&x.pub);
    assert_int_equal(x.done, 1);
    assert_string_equal(x.text, "");
    mo_ep_within_cancel(&x.pub);
    assert_non_null(strstr(hear(&t), "notifications/cancelled"));
    /* it outlives the outer one */
    call_inner(&t, &x, ASK_IN);
    (void)hear(&t);
    mo_ep_call_result(t.k.parked, MO_SPAN("{}"));
    mo_ep_within_cancel(&x.pub);
    assert_int_equal(x.done, 1);
    (void)hear(&t);
    assert_int_equal(mo_endpoint_stats(t.k.ep).calls, 0);
    talk_close(&t);
    mo_loop_free(l);
}

/* Its client cannot be asked in the middle of a call. */
static void test_within_modern(void **state)
{
    struct mo_loop *l = loop_new();
    struct inner x;
    struct talk t;

    (void)state;
    assert_int_equal(talk_open(&t, l, NULL), 0);
    say(&t, MCALL("1", "park", META_CAPS("{\"elicitation\":{}}")));
    (void)hear(&t);
    assert_non_null(t.k.parked);
    call_inner(&t, &x, ASK_IN);
    assert_int_equal(x.done, 1);
    assert_non_null(strstr(x.text, "this client does not"));
    mo_ep_call_result(t.k.parked, MO_SPAN("{}"));
    assert_non_null(strstr(hear(&t), "\"id\":1"));
    talk_close(&t);
    mo_loop_free(l);
}

/* --- memory runs out ----------------------------------------------------- */

static void no_memory(void *ctx)
{
    static const char lines[] = INIT("2025-11-25") CALL("1", "now") CALL("2",
                                                                         "talk")
        CALL("3", "ask") CALL("4", "park") RES("1", "{}") MCALL(
            "6", "ask",
            META_CAPS(
                "{\"elicitation\":{}}")) "{\"jsonrpc\":\"2.0\",\"id\":7,"
                                         "\"method\":\"subscriptions/listen\","
                                         "\"params\":{\"notifications\":{"
                                         "\"toolsListChanged\":true,"
                                         "\"resourceSubscriptions\":[\"c:d\"]}"
                                         "," META "}}\n";
    struct mo_loop *l = ctx;
    struct kit k;
    struct talk t = {.closed = false};
    int fd[2];
    struct mo_stream *s;

    if (kit_open(&k, l, NULL) < 0)
        return;
    t.k = k;
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fd), 0);
    assert_int_equal(write(fd[0], lines, sizeof(lines) - 1),
                     (ssize_t)sizeof(lines) - 1);
    assert_int_equal(shutdown(fd[0], SHUT_WR), 0);
    if (mo_stream_from_fds(l, fd[1], fd[1], &s, NULL) == 0 &&
        mo_ep_stdio_open(k.ep, s, talk_closed, &t, &t.x, NULL) == 0) {
        wait_for(l, flag_up, &t.closed);
        mo_endpoint_changed(k.ep, MO_EP_CH_TOOLS);
    }
    mo_loop_run(l);
    mo_endpoint_free(k.ep);
    (void)close(fd[0]);
}

static void test_torture(void **state)
{
    struct mo_loop *l = loop_new();

    (void)state;
    torture(no_memory, l);
    mo_loop_free(l);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_rows),
        cmocka_unit_test(test_cut),
        cmocka_unit_test(test_cancel),
        cmocka_unit_test(test_late_answer),
        cmocka_unit_test(test_gone),
        cmocka_unit_test(test_ask_legacy),
        cmocka_unit_test(test_ask_modern),
        cmocka_unit_test(test_ask_late),
        cmocka_unit_test(test_rounds_end),
        cmocka_unit_test(test_news),
        cmocka_unit_test(test_within),
        cmocka_unit_test(test_within_modern),
        cmocka_unit_test(test_line_too_long),
        cmocka_unit_test(test_torture),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
