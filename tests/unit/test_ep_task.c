/* Tasks on the server side: 2025-11-25's, which the endpoint keeps for a call
 * that knows nothing of it, and what a modern listen hears of the handler's. */
#include <sys/socket.h>
#include <unistd.h>

#include "ep_talk.h"

#define REQ(id, m, p)                                                          \
    "{\"jsonrpc\":\"2.0\",\"id\":" id ",\"method\":\"" m "\",\"params\":{" p   \
    "}}\n"
#define TASK(id, name) MCALL(id, name, "\"task\":{}")

struct id {
    char text[64];
};

/* The name in the first taskId that was heard. */
static struct id heard_id(struct talk *t)
{
    const char *p = strstr(mo_buf_cstr(&t->me.got), "\"taskId\":\"");
    struct id out = {""};

    assert_non_null(p);
    assert_int_equal(sscanf(p, "\"taskId\":\"%63[^\"]\"", out.text), 1);
    assert_true(strlen(out.text) >= 22); /* nobody guesses it */
    return out;
}

static void open_it(struct talk *t, struct mo_loop *l,
                    const struct mo_endpoint_limits *limits)
{
    assert_int_equal(talk_open(t, l, limits), 0);
    say(t, INIT("2025-11-25"));
    assert_non_null(strstr(hear(t), "\"tasks\":{\"list\":{},\"cancel\":{},"
                                    "\"requests\":{\"tools\":{\"call\":{}}}}"));
    assert_null(strstr(t->me.got.p, "extensions"));
    mo_buf_reset(&t->me.got);
}

static struct id start(struct talk *t, const char *call)
{
    struct id id;

    mo_buf_reset(&t->me.got);
    say(t, call);
    assert_non_null(strstr(hear(t), "\"result\":{\"task\":{\"taskId\":"));
    id = heard_id(t);
    mo_buf_reset(&t->me.got);
    return id;
}

/* tasks/WHAT of a task, as request no. */
static void send_about(struct talk *t, int no, const char *what, struct id id)
{
    char line[256];

    (void)snprintf(line, sizeof(line),
                   REQ("%d", "tasks/%s", "\"taskId\":\"%s\""), no, what,
                   id.text);
    say(t, line);
}

static const char *about(struct talk *t, const char *what, struct id id)
{
    mo_buf_reset(&t->me.got);
    send_about(t, 9, what, id);
    return hear(t);
}

static void wants(struct talk *t, const char *what)
{
    if (!strstr(hear(t), what))
        fail_msg("no '%s' in: %s", what, mo_buf_cstr(&t->me.got));
    mo_buf_reset(&t->me.got);
}

static void quit(struct talk *t)
{
    struct mo_loop *l = t->k.l;

    talk_close(t);
    mo_loop_free(l);
}

#define TEXT_OF(id, s)                                                         \
    "\"id\":" id ",\"result\":{\"content\":[{\"type\":\"text\",\"text\":\"" s  \
    "\"}],\"_meta\":{\"" P "related-task\":{\"taskId\":\""

static void test_life(void **state)
{
    struct talk t;
    struct id id;

    (void)state;
    open_it(&t, loop_new(), NULL);
    say(&t, TASK("1", "now"));
    assert_non_null(strstr(hear(&t), "{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":"
                                     "{\"task\":{\"taskId\":"));
    assert_non_null(strstr(t.me.got.p, "\"status\":\"working\",\"createdAt\""));
    assert_non_null(strstr(t.me.got.p, "\"method\":\"notifications/tasks/"
                                       "status\",\"params\":{\"taskId\":"));
    id = heard_id(&t);
    assert_non_null(strstr(about(&t, "get", id), "\"status\":\"completed\""));
    assert_non_null(strstr(t.me.got.p, "\"ttl\":3600000,\"pollInterval\":"));
    assert_non_null(strstr(about(&t, "result", id), TEXT_OF("9", "ok")));
    assert_non_null(strstr(about(&t, "result", id), TEXT_OF("9", "ok")));
    assert_non_null(strstr(about(&t, "cancel", id), "-32602"));
    mo_buf_reset(&t.me.got);
    say(&t, REQ("2", "tasks/list", ""));
    wants(&t, id.text);
    quit(&t);
}

static void test_failures(void **state)
{
    struct talk t;
    struct id id;

    (void)state;
    open_it(&t, loop_new(), NULL);
    id = start(&t, TASK("1", "none such"));
    assert_non_null(strstr(about(&t, "get", id), "\"status\":\"failed\","
                                                 "\"statusMessage\":"
                                                 "\"no such tool\""));
    assert_non_null(strstr(about(&t, "result", id),
                           "\"id\":9,\"error\":{\"code\":-32602,"
                           "\"message\":\"no such tool\"}"));
    (void)snprintf(id.text, sizeof(id.text), "somebody else's");
    assert_non_null(strstr(about(&t, "get", id), "-32602"));
    assert_non_null(strstr(about(&t, "result", id), "-32602"));
    assert_non_null(strstr(about(&t, "cancel", id), "-32602"));
    mo_buf_reset(&t.me.got);
    say(&t, REQ("2", "tasks/list", "\"cursor\":\"x\""));
    wants(&t, "-32602");
    say(&t, REQ("3", "tasks/list", "\"cursor\":\"77\""));
    wants(&t, "-32602");
    say(&t, MCALL("4", "now", "\"task\":7"));
    wants(&t, "-32602");
    say(&t, MCALL("5", "now", "\"task\":{\"ttl\":-1}"));
    wants(&t, "-32602");
    quit(&t);
}

/* Whether a tool may be a task is said in the list and held against calls;
 * peers of older revisions never hear of it. */
static void test_support(void **state)
{
    static const struct {
        const char *name, *version, *in, *has, *has_not;
    } rows[] = {
        {"listed", "2025-11-25", REQ("1", "tools/list", ""),
         "\"execution\":{\"taskSupport\":\"optional\"}", "\"ttlMs\""},
        {"not listed", "2025-06-18", REQ("1", "tools/list", ""), "\"tools\"",
         "execution"},
        {"forbidden", "2025-11-25", TASK("1", "number"), "-32601", "result"},
        {"required", "2025-11-25", CALL("1", "kinds"), "-32601", "result\":{"},
        {"required, given", "2025-11-25", TASK("1", "kinds"), "\"task\":{",
         "error"},
        {"an old peer calls it all the same", "2025-06-18", CALL("1", "kinds"),
         "content", "error"},
        {"an old peer's task is ignored", "2025-06-18", TASK("1", "now"),
         RES("1", TEXT("ok")), "taskId"},
        {"no tasks/get for it", "2025-06-18",
         REQ("1", "tasks/get", "\"taskId\":\"x\""), "-32601", "result"},
    };
    struct mo_loop *l = loop_new();
    struct talk t;

    (void)state;
    for (size_t i = 0; i < MO_COUNT(rows); i++) {
        assert_int_equal(talk_open(&t, l, NULL), 0);
        say(&t, strcmp(rows[i].version, "2025-11-25") == 0
                    ? INIT("2025-11-25")
                    : INIT("2025-06-18"));
        (void)hear(&t);
        mo_buf_reset(&t.me.got);
        say(&t, rows[i].in);
        check_row(rows[i].name, strstr(hear(&t), rows[i].has));
        check_row(rows[i].name, !strstr(t.me.got.p, rows[i].has_not));
        talk_close(&t);
    }
    mo_loop_free(l);
}

/* Two wait; one of them gives up, the other gets what the call says. The
 * request's id is free again and does not cancel anything. */
static void test_waits(void **state)
{
    struct talk t;
    struct id id;

    (void)state;
    open_it(&t, loop_new(), NULL);
    id = start(&t, MCALL("1", "park",
                         "\"task\":{\"ttl\":60000.0},\"_meta\":"
                         "{\"progressToken\":\"p\"}"));
    say(&t, "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/cancelled\","
            "\"params\":{\"requestId\":1}}\n" CALL("1", "now"));
    wants(&t, RES("1", TEXT("ok")));
    send_about(&t, 9, "result", id);
    (void)hear(&t);
    send_about(&t, 9, "result", id); /* the same id: refused */
    wants(&t, "this id is in use");
    say(&t, "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/cancelled\","
            "\"params\":{\"requestId\":9}}\n");
    (void)hear(&t);
    send_about(&t, 9, "result", id);
    (void)hear(&t);
    assert_int_equal(t.me.got.len, 0);
    assert_non_null(t.k.parked);
    mo_ep_call_progress(t.k.parked, 1, 2, NULL);
    wants(&t, "\"progressToken\":\"p\",\"progress\":1,\"total\":2,\"_meta\":{"
              "\"" P "related-task\":{\"taskId\":\"");
    mo_ep_call_result(t.k.parked, MO_SPAN("{\"content\":[],\"_meta\":{\"x\":1,"
                                          "\"" P "related-task\":7}}"));
    wants(&t, "\"id\":9,\"result\":{\"content\":[],\"_meta\":{\"x\":1,\"" P
              "related-task\":{\"taskId\":\"");
    assert_int_equal(mo_endpoint_stats(t.k.ep).calls, 0);
    assert_int_equal(t.k.cancels, 0);
    quit(&t);
}

static void test_cancel(void **state)
{
    struct talk t;
    struct id id;

    (void)state;
    open_it(&t, loop_new(), NULL);
    id = start(&t, TASK("1", "park"));
    send_about(&t, 9, "result", id);
    (void)hear(&t);
    send_about(&t, 8, "cancel", id);
    assert_non_null(strstr(hear(&t), "\"id\":9,\"error\":{\"code\":-32603,"
                                     "\"message\":\"the task was cancelled\""));
    assert_non_null(strstr(t.me.got.p, "\"id\":8,\"result\":{\"taskId\":"));
    assert_non_null(strstr(t.me.got.p, "\"status\":\"cancelled\""));
    assert_int_equal(t.k.cancels, 1);
    assert_non_null(strstr(about(&t, "cancel", id), "-32602"));
    assert_non_null(strstr(about(&t, "result", id), "-32603"));
    assert_int_equal(mo_endpoint_stats(t.k.ep).calls, 0);
    quit(&t);
}

/* A question waits for somebody who waits, and says what it is about. */
static void test_asks(void **state)
{
    struct talk t;
    struct id id;

    (void)state;
    open_it(&t, loop_new(), NULL);
    say(&t, TASK("1", "twice"));
    assert_non_null(strstr(hear(&t), "\"status\":\"input_required\""));
    assert_null(strstr(t.me.got.p, "elicitation/create"));
    id = heard_id(&t);
    say(&t, RES("0", "{}") RES("1", "{}")); /* not asked yet */
    assert_non_null(strstr(about(&t, "result", id),
                           "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":"
                           "\"elicitation/create\",\"params\":{\"message\":"
                           "\"?\",\"_meta\":{\"" P
                           "related-task\":{\"taskId\":\""));
    mo_buf_reset(&t.me.got);
    say(&t, RES("1", "{\"a\":1}")); /* and the next one at once */
    assert_non_null(strstr(hear(&t), "\"status\":\"working\""));
    assert_non_null(strstr(t.me.got.p, "\"id\":2,\"method\":\"elicitation/"));
    mo_buf_reset(&t.me.got);
    say(&t, RES("2", "{\"b\":2}"));
    wants(&t, "\"id\":9,\"result\":{\"content\":[],\"structuredContent\":"
              "{\"b\":2},\"_meta\":");
    assert_non_null(strstr(about(&t, "get", id), "\"completed\""));

    id = start(&t, TASK("2", "ask")); /* cancelled while the question is out */
    assert_non_null(strstr(about(&t, "result", id), "\"id\":3,\"method\""));
    assert_non_null(strstr(about(&t, "cancel", id), "in use"));
    mo_buf_reset(&t.me.got);
    send_about(&t, 8, "cancel", id);
    wants(&t, "\"notifications/cancelled\",\"params\":{\"requestId\":3}");
    quit(&t);
}

static bool is_gone(void *ctx)
{
    struct talk *t = ctx;

    return strstr(mo_buf_cstr(&t->me.got), "has expired") != NULL;
}

static void test_limits(void **state)
{
    struct mo_endpoint_limits few = {.tasks = 2, .task_bytes = 60};
    struct talk t;
    struct id id;

    (void)state;
    open_it(&t, loop_new(), &few);
    id = start(&t, TASK("1", "now"));
    assert_int_equal(mo_endpoint_stats(t.k.ep).task_bytes,
                     sizeof(TEXT("ok")) - 1);
    (void)start(&t, TASK("2", "park"));
    (void)start(&t, TASK("3", "now")); /* the first gives way */
    assert_non_null(strstr(about(&t, "get", id), "-32602"));
    id = start(&t, TASK("4", "kinds")); /* too big to be kept */
    assert_non_null(strstr(about(&t, "result", id), "too big to be kept"));
    (void)start(&t, MCALL("5", "ask", "\"task\":{\"ttl\":1}"));
    say(&t, REQ("6", "tasks/list", ""));
    (void)hear(&t);
    quit(&t);

    open_it(&t, loop_new(), &few);
    (void)start(&t, TASK("1", "park"));
    id = start(&t, MCALL("2", "ask", "\"task\":{\"ttl\":300}"));
    say(&t, TASK("3", "now"));
    wants(&t, "too many tasks");
    send_about(&t, 9, "result", id);
    wait_for(t.k.l, is_gone, &t);
    assert_non_null(strstr(t.me.got.p, "\"id\":9,\"error\":{\"code\":-32602"));
    assert_non_null(strstr(about(&t, "get", id), "-32602"));
    assert_int_equal(mo_endpoint_stats(t.k.ep).calls, 1); /* the parked one */
    quit(&t);
}

static void test_pages(void **state)
{
    struct mo_endpoint_limits few = {.tasks = 40};
    unsigned long long cursor;
    char line[128];
    struct talk t;
    const char *p;

    (void)state;
    open_it(&t, loop_new(), &few);
    for (int i = 0; i < 40; i++)
        (void)start(&t, TASK("1", "now"));
    say(&t, REQ("2", "tasks/list", ""));
    p = strstr(hear(&t), "\"nextCursor\":\"");
    assert_non_null(p);
    assert_int_equal(sscanf(p, "\"nextCursor\":\"%llu\"", &cursor), 1);
    mo_buf_reset(&t.me.got);
    (void)snprintf(line, sizeof(line),
                   REQ("3", "tasks/list", "\"cursor\":\"%llu\""), cursor);
    say(&t, line);
    assert_null(strstr(hear(&t), "nextCursor"));
    p = t.me.got.p;
    for (int i = 0; i < 8; i++) {
        p = strstr(p, "\"taskId\"");
        assert_non_null(p);
        p++;
    }
    assert_null(strstr(p, "\"taskId\""));
    quit(&t);
}

/* The session ends with a task running, one asking, and one waited for. */
static void test_session_ends(void **state)
{
    struct talk t;
    struct id id;

    (void)state;
    open_it(&t, loop_new(), NULL);
    (void)start(&t, TASK("1", "ask"));
    id = start(&t, TASK("2", "park"));
    send_about(&t, 9, "result", id);
    (void)hear(&t);
    mo_stream_close(t.me.s, NULL);
    wait_for(t.k.l, flag_up, &t.closed);
    mo_loop_run(t.k.l);
    assert_int_equal(t.k.cancels, 1);
    assert_int_equal(mo_endpoint_stats(t.k.ep).calls, 0);
    assert_int_equal(mo_endpoint_stats(t.k.ep).task_bytes, 0);
    quit(&t);
}

/* --- the modern extension ------------------------------------------------ */

#define LISTEN(id, what, caps)                                                 \
    REQ(id, "subscriptions/listen",                                            \
        "\"notifications\":{" what "}," META_CAPS(caps))
#define EXT "{\"extensions\":{\"" P "tasks\":{}}}"

static void test_listen(void **state)
{
    struct talk t;

    (void)state;
    assert_int_equal(talk_open(&t, loop_new(), NULL), 0);
    say(&t, LISTEN("1", "\"taskIds\":[\"a\"]", "{}"));
    wants(&t, "\"error\":{\"code\":-32021,\"message\":\"the client does not "
              "speak the tasks extension\",\"data\":{\"requiredCapabilities\":"
              "{\"extensions\":{\"" P "tasks\":{}}}}}");
    say(&t, LISTEN("2", "\"taskIds\":{\"a\":\"b\"}", EXT));
    wants(&t, "-32602");
    say(&t, LISTEN("\"L\"", "\"taskIds\":[\"a\",\"b\"]", EXT));
    wants(&t, "{\"notifications\":{\"taskIds\":[\"a\",\"b\"]},\"_meta\":{\"" P
              "subscriptionId\":\"L\"}}");
    mo_endpoint_task(t.k.ep, MO_SPAN(""), MO_SPAN("c"), MO_SPAN("{}"));
    mo_endpoint_task(t.k.ep, MO_SPAN("bob"), MO_SPAN("a"), MO_SPAN("{}"));
    mo_endpoint_task(t.k.ep, MO_SPAN(""), MO_SPAN("b"),
                     MO_SPAN("{\"taskId\":\"b\",\"_meta\":{\"x\":1}}"));
    assert_string_equal(hear(&t),
                        "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/"
                        "tasks\",\"params\":{\"taskId\":\"b\",\"_meta\":{"
                        "\"x\":1,\"" P "subscriptionId\":\"L\"}}}\n");
    quit(&t);
}

/* We end: those who listen are told so, both ways, before the line closes. */
static void test_farewell(void **state)
{
    struct talk t;

    (void)state;
    assert_int_equal(talk_open(&t, loop_new(), NULL), 0);
    say(&t, LISTEN("7", "\"toolsListChanged\":true", "{}"));
    (void)hear(&t);
    mo_buf_reset(&t.me.got);
    mo_ep_stdio_close(t.x);
    wait_for(t.k.l, flag_up, &t.me.eof);
    assert_string_equal(
        mo_buf_cstr(&t.me.got),
        "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/cancelled\","
        "\"params\":{\"requestId\":7,\"reason\":\"the server ends\"}}\n"
        "{\"jsonrpc\":\"2.0\",\"id\":7,\"result\":{\"resultType\":"
        "\"complete\",\"_meta\":{\"" P "subscriptionId\":7}}}\n");
    quit(&t);
}

/* --- memory runs out ----------------------------------------------------- */

static void no_memory(void *ctx)
{
    static const char lines[] =
        INIT("2025-11-25") TASK("1", "now") TASK("2", "ask") TASK("3", "park")
            REQ("4", "tasks/list", "") LISTEN("5", "\"taskIds\":[\"a\"]", EXT);
    struct mo_loop *l = ctx;
    struct talk t = {.closed = false};
    struct mo_stream *s;
    int fd[2];

    if (kit_open(&t.k, l, NULL) < 0)
        return;
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fd), 0);
    assert_int_equal(write(fd[0], lines, sizeof(lines) - 1),
                     (ssize_t)sizeof(lines) - 1);
    if (mo_stream_from_fds(l, fd[1], fd[1], &s, NULL) == 0 &&
        mo_ep_stdio_open(t.k.ep, s, talk_closed, &t, &t.x, NULL) == 0) {
        (void)mo_loop_until(l, flag_up, &t.closed, 2);
        mo_endpoint_task(t.k.ep, MO_SPAN(""), MO_SPAN("a"), MO_SPAN("{}"));
        if (t.k.parked)
            mo_ep_call_result(t.k.parked, MO_SPAN(TEXT("ok")));
        if (!t.closed)
            mo_ep_stdio_close(t.x);
        (void)shutdown(fd[0], SHUT_WR);
        wait_for(l, flag_up, &t.closed);
    }
    mo_loop_run(l);
    mo_endpoint_free(t.k.ep);
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
        cmocka_unit_test(test_life),         cmocka_unit_test(test_failures),
        cmocka_unit_test(test_support),      cmocka_unit_test(test_waits),
        cmocka_unit_test(test_cancel),       cmocka_unit_test(test_asks),
        cmocka_unit_test(test_limits),       cmocka_unit_test(test_pages),
        cmocka_unit_test(test_session_ends), cmocka_unit_test(test_listen),
        cmocka_unit_test(test_farewell),     cmocka_unit_test(test_torture),
    };

    kit_setup(MO_EP_TASKS | MO_EP_CALL_TASKS, NULL);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
