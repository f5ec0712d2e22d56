/* Tasks against a scripted server, in both eras. */
#include "conn_kit.h"

#include "mcp/client/conn_priv.h"
#include "mcp/client/task.h"

#define REPLY(method, body)                                                    \
    {                                                                          \
        method, "{\"jsonrpc\":\"2.0\",\"id\":$id," body "}"                    \
    }
#define RESULT(method, body) REPLY(method, "\"result\":{" body "}")
#define INIT                                                                   \
    RESULT("initialize", "\"protocolVersion\":\"2025-11-25\","                 \
                         "\"capabilities\":{\"tasks\":{}},\"serverInfo\":"     \
                         "{\"name\":\"s\",\"version\":\"1\"}")
#define DISCOVER                                                               \
    RESULT("server/discover",                                                  \
           "\"resultType\":\"complete\",\"supportedVersions\":"                \
           "[\"2026-07-28\"],\"capabilities\":{}")
#define END                                                                    \
    {                                                                          \
        NULL, NULL                                                             \
    }
#define FIELDS(status)                                                         \
    "\"taskId\":\"t-1\",\"status\":\"" status "\",\"pollInterval\":1,"         \
    "\"pollIntervalMs\":1,\"statusMessage\":\"so so\""
#define OLD_TASK RESULT("tools/call", "\"task\":{" FIELDS("working") "}")
#define NEW_TASK                                                               \
    RESULT("tools/call", "\"resultType\":\"task\"," FIELDS("working"))
#define STANDS(status) RESULT("tasks/get", FIELDS(status))
#define STANDS_WITH(status, more)                                              \
    RESULT("tasks/get", "\"resultType\":\"complete\"," FIELDS(status) more)
#define ASKS(keys)                                                             \
    STANDS_WITH("input_required", ",\"inputRequests\":{" keys "}")
#define Q(key)    "\"" key "\":{\"method\":\"roots/list\",\"params\":{}}"
#define TASKS_CAP "{\"extensions\":{\"io.modelcontextprotocol/tasks\":{}}}"

struct play {
    struct fix f;
    struct mo_task *t;
    bool no_input, cancel_on_status, answer;
    int statuses, inputs;
    uint64_t hard_ms, fail_at;
    const struct rule *next; /* the server's from the first question on */
    struct mo_buf asked;
};

static void on_status(void *ctx, enum mo_task_status s, struct mo_json message)
{
    struct play *p = ctx;

    assert_true(s < MO_TASK_STATUSES);
    assert_true(mo_json_str_eq(message, MO_SPAN("so so")));
    p->statuses++;
    if (p->cancel_on_status)
        mo_task_cancel(p->t);
}

static void on_input(void *ctx, struct mo_task *t, struct mo_json requests)
{
    struct play *p = ctx;
    struct mo_json_doc doc;

    assert_ptr_equal(t, p->t);
    assert_int_equal(mo_json_parse(mo_json_text(requests), 0, &doc, NULL), 0);
    p->inputs++;
    mo_buf_span(&p->asked, mo_json_text(requests));
    if (p->next)
        p->f.peers[0].rules = p->next;
    if (p->answer) {
        int rc = mo_task_input(t, MO_SPAN("{\"a\":{\"roots\":[]}}"));

        assert_true(rc == 0 || (p->fail_at && rc == MO_ENOMEM));
    }
}

static void on_done(void *ctx, const struct mo_reply *r)
{
    struct play *p = ctx;

    p->t = NULL;
    fix_done(&p->f, r);
}

/* The answer to tools/call is the promise. */
static void on_promise(void *ctx, const struct mo_reply *r)
{
    struct play *p = ctx;
    struct mo_task_opts o = {
        .hard_ms = p->hard_ms,
        .on_status = on_status,
        .on_input = p->no_input ? NULL : on_input,
        .done = on_done,
        .ctx = p,
    };
    struct mo_err e;

    if (p->next)
        mo_mem_fail_at(p->fail_at, false);
    if (r->err || !mo_task_is(p->f.c, r->result) ||
        mo_task_watch(p->f.c, r->result, &o, &p->t, &e) < 0)
        fix_done(&p->f, r);
}

static bool got_asked(void *ctx)
{
    struct play *p = ctx;

    return p->f.dones || peer_saw(&p->f.peers[0], "tasks/get");
}

static int play_open(struct play *p, const struct rule *rules, bool modern)
{
    struct mo_conn_opts o = {
        .mode = modern ? MO_CONN_MODERN : MO_CONN_LEGACY,
        .capabilities = MO_SPAN(TASKS_CAP),
    };
    struct mo_call_opts co = {.done = on_promise, .ctx = p};
    struct mo_err e;

    fix_init(&p->f, rules);
    mo_buf_init(&p->asked, 1 << 20);
    if (fix_try_open(&p->f, o) < 0 || !p->f.opened)
        return MO_ECLOSED;
    return mo_conn_request(p->f.c, "tools/call", MO_SPAN("{\"name\":\"x\"}"),
                           &co, &e)
               ? 0
               : e.code;
}

static void play_close(struct play *p)
{
    mo_buf_fini(&p->asked);
    fix_fini(&p->f);
}

static const struct row {
    const char *name;
    bool modern;
    struct rule first[5], then[5]; /* then: after the first tasks/get */
    int rc;
    int64_t code;
    const char *result; /* or the error */
    const char *saw, *not_saw;
} rows[] = {
    {"legacy, done",
     false,
     {INIT, OLD_TASK, STANDS("working"), END},
     {STANDS("completed"), RESULT("tasks/result", "\"content\":[]"), END},
     0,
     0,
     "{\"content\":[]}",
     "\"tasks/result\",\"params\":{\"taskId\":\"t-1\"}",
     "tasks/cancel"},
    {"legacy, done at once",
     false,
     {INIT, OLD_TASK, STANDS("completed"),
      RESULT("tasks/result", "\"content\":[1]"), END},
     {END},
     0,
     0,
     "{\"content\":[1]}",
     "tasks/result",
     NULL},
    {"legacy, failed",
     false,
     {INIT, OLD_TASK, STANDS("failed"),
      REPLY("tasks/result", "\"error\":{\"code\":-5,\"message\":\"no\"}"), END},
     {END},
     0,
     -5,
     "{\"code\":-5,\"message\":\"no\"}",
     NULL,
     NULL},
    {"legacy, input is asked for by waiting",
     false,
     {INIT, OLD_TASK, STANDS("input_required"),
      RESULT("tasks/result", "\"content\":[]"), END},
     {END},
     0,
     0,
     "{\"content\":[]}",
     NULL,
     NULL},
    {"legacy, cancelled there",
     false,
     {INIT, OLD_TASK, STANDS("cancelled"), END},
     {END},
     MO_ECANCELED,
     0,
     "",
     NULL,
     "tasks/result"},
    {"unheard-of status",
     false,
     {INIT, OLD_TASK, STANDS("asleep"), END},
     {END},
     MO_EPROTO,
     0,
     "",
     NULL,
     NULL},
    {"tasks/get is refused",
     false,
     {INIT, OLD_TASK,
      REPLY("tasks/get", "\"error\":{\"code\":-32602,\"message\":\"?\"}"), END},
     {END},
     0,
     -32602,
     "{\"code\":-32602,\"message\":\"?\"}",
     NULL,
     NULL},
    {"the server dies",
     false,
     {INIT, OLD_TASK, {"tasks/get", "CLOSE"}, END},
     {END},
     MO_ECLOSED,
     0,
     "",
     NULL,
     NULL},
    {"modern, done",
     true,
     {DISCOVER, NEW_TASK, STANDS_WITH("working", ""), END},
     {STANDS_WITH("completed", ",\"result\":{\"content\":[2]}"), END},
     0,
     0,
     "{\"content\":[2]}",
     "tasks/get",
     "tasks/result"},
    {"modern, failed",
     true,
     {DISCOVER, NEW_TASK,
      STANDS_WITH("failed", ",\"error\":{\"code\":-7,\"message\":\"x\"}"), END},
     {END},
     0,
     -7,
     "{\"code\":-7,\"message\":\"x\"}",
     NULL,
     NULL},
    {"modern, done with nothing",
     true,
     {DISCOVER, NEW_TASK, STANDS_WITH("completed", ""), END},
     {END},
     MO_EPROTO,
     0,
     "",
     NULL,
     NULL},
    {"modern, cancelled there",
     true,
     {DISCOVER, NEW_TASK, STANDS_WITH("cancelled", ""), END},
     {END},
     MO_ECANCELED,
     0,
     "",
     NULL,
     NULL},
};

static void test_rows(void **state)
{
    (void)state;
    for (size_t i = 0; i < MO_COUNT(rows); i++) {
        const struct row *r = &rows[i];
        struct play p = {.statuses = 0};

        check_row(r->name, play_open(&p, r->first, r->modern) == 0);
        check_row(r->name, mo_loop_until(p.f.l, got_asked, &p, LONG));
        if (r->then[0].method)
            p.f.peers[0].rules = r->then;
        check_row(r->name, mo_loop_until(p.f.l, is_done, &p.f, LONG));
        check_row(r->name, p.f.dones == 1 && p.f.err.code == r->rc);
        check_row(r->name, p.f.code == r->code);
        check_row(r->name, mo_span_is(mo_buf_view(&p.f.result), r->result));
        check_row(r->name, !r->saw || peer_saw(&p.f.peers[0], r->saw));
        check_row(r->name, !r->not_saw || !peer_saw(&p.f.peers[0], r->not_saw));
        play_close(&p);
    }
}

static bool got_update(void *ctx)
{
    struct play *p = ctx;

    return peer_saw(&p->f.peers[0], "tasks/update");
}

static bool got_two_inputs(void *ctx)
{
    return ((struct play *)ctx)->inputs == 2;
}

/* Each question comes up once; the answers go out by key. */
static void test_input(void **state)
{
    static const struct rule first[] = {DISCOVER, NEW_TASK, ASKS(Q("a")), END};
    static const struct rule more[] = {ASKS(Q("a") "," Q("b")), END};
    static const struct rule last[] = {
        STANDS_WITH("completed", ",\"result\":{}"), END};
    struct play p = {.answer = true};

    (void)state;
    assert_int_equal(play_open(&p, first, true), 0);
    assert_true(mo_loop_until(p.f.l, got_update, &p, LONG));
    p.f.peers[0].rules = more;
    assert_true(mo_loop_until(p.f.l, got_two_inputs, &p, LONG));
    p.f.peers[0].rules = last;
    assert_true(mo_loop_until(p.f.l, is_done, &p.f, LONG));
    assert_int_equal(p.inputs, 2);
    assert_int_equal(p.statuses, 2);
    assert_true(mo_span_is(mo_buf_view(&p.asked), "{" Q("a") "}{" Q("b") "}"));
    assert_true(peer_saw(&p.f.peers[0],
                         "\"params\":{\"taskId\":\"t-1\",\"inputResponses\":"
                         "{\"a\":{\"roots\":[]}}"));
    play_close(&p);
}

static void test_no_input(void **state)
{
    static const struct rule rules[] = {DISCOVER, NEW_TASK, ASKS(Q("a")), END};
    struct play p = {.no_input = true};

    (void)state;
    assert_int_equal(play_open(&p, rules, true), 0);
    assert_true(mo_loop_until(p.f.l, is_done, &p.f, LONG));
    assert_int_equal(p.f.err.code, MO_EPOLICY);
    fix_settle(&p.f);
    assert_true(peer_saw(&p.f.peers[0], "tasks/cancel"));
    play_close(&p);
}

/* In a pause, while tasks/get is out, and from a callback. */
static void test_cancel(void **state)
{
    static const struct rule idle[] = {INIT, OLD_TASK, STANDS("working"), END};
    static const struct rule mute[] = {INIT, OLD_TASK, END};
    static const struct rule asks[] = {DISCOVER, NEW_TASK, ASKS(Q("a")), END};
    const struct {
        const struct rule *rules;
        bool modern, inside;
    } how[] = {{idle, false, false}, {mute, false, false}, {asks, true, true}};

    (void)state;
    for (size_t i = 0; i < MO_COUNT(how); i++) {
        struct play p = {.cancel_on_status = how[i].inside};

        assert_int_equal(play_open(&p, how[i].rules, how[i].modern), 0);
        assert_true(mo_loop_until(p.f.l, got_asked, &p, LONG));
        if (!how[i].inside) {
            assert_non_null(p.t);
            mo_task_cancel(p.t);
            mo_task_cancel(p.t);
            assert_int_equal(mo_task_input(p.t, MO_SPAN("{}")), MO_ECLOSED);
            assert_int_equal(p.f.dones, 0);
        }
        assert_true(mo_loop_until(p.f.l, is_done, &p.f, LONG));
        assert_int_equal(p.f.err.code, MO_ECANCELED);
        fix_settle(&p.f);
        assert_int_equal(p.f.dones, 1);
        assert_int_equal(p.inputs, 0);
        assert_true(peer_saw(&p.f.peers[0], "tasks/cancel"));
        play_close(&p);
    }
}

static void test_hard(void **state)
{
    static const struct rule mute[] = {INIT, OLD_TASK, END};
    struct play p = {.hard_ms = 60};

    (void)state;
    assert_int_equal(play_open(&p, mute, false), 0);
    assert_true(mo_loop_until(p.f.l, is_done, &p.f, LONG));
    assert_int_equal(p.f.err.code, MO_ETIMEOUT);
    play_close(&p);
}

static bool is_watched(void *ctx)
{
    struct play *p = ctx;

    return p->t || p->f.dones;
}

/* The connection is closed while nothing is in flight. */
static void test_closed(void **state)
{
    static const struct rule rules[] = {INIT, OLD_TASK, END};
    struct play p = {.statuses = 0};

    (void)state;
    assert_int_equal(play_open(&p, rules, false), 0);
    assert_true(mo_loop_until(p.f.l, is_watched, &p, LONG));
    assert_non_null(p.t);
    mo_conn_close(p.f.c, NULL);
    assert_true(mo_loop_until(p.f.l, is_closed, &p.f, LONG));
    assert_int_equal(p.f.dones, 1);
    assert_int_equal(p.f.err.code, MO_ECANCELED);
    play_close(&p);
}

static void test_no_task(void **state)
{
    static const struct rule rules[] = {
        INIT, RESULT("tools/call", "\"task\":{\"taskId\":7}"), END};
    struct mo_task_opts o = {.done = on_done};
    struct play p = {.statuses = 0};
    struct mo_json result;
    struct mo_err e;

    (void)state;
    assert_int_equal(play_open(&p, rules, false), 0);
    assert_true(mo_loop_until(p.f.l, is_done, &p.f, LONG));
    assert_int_equal(p.f.err.code, 0);
    result = (struct mo_json){p.f.result.p, p.f.result.len};
    assert_false(mo_task_is(p.f.c, result));
    assert_int_equal(mo_task_watch(p.f.c, result, &o, &p.t, &e), MO_EPROTO);
    play_close(&p);
}

/* From the promise on every allocation fails once; nothing hangs or leaks,
 * and done fires once. The server's own may fail, too: then it is mute and
 * the hard limit ends the task. */
static uint64_t life(uint64_t fail_at)
{
    static const struct rule rules[] = {DISCOVER, NEW_TASK, ASKS(Q("a")), END};
    static const struct rule last[] = {
        STANDS_WITH("completed", ",\"result\":{}"), END};
    struct play p = {.answer = true,
                     .next = last,
                     .hard_ms = fail_at ? 250 : 0,
                     .fail_at = fail_at};
    uint64_t n;

    assert_int_equal(play_open(&p, rules, true), 0);
    assert_true(mo_loop_until(p.f.l, is_done, &p.f, LONG));
    n = mo_mem_count();
    mo_mem_fail_at(0, false);
    assert_int_equal(p.f.dones, 1);
    if (fail_at == 0)
        assert_true(mo_span_is(mo_buf_view(&p.f.result), "{}"));
    play_close(&p);
    return n;
}

static void test_no_memory(void **state)
{
    uint64_t n = life(0);

    (void)state;
    assert_true(n > 5);
    for (uint64_t i = 1; i <= n; i++)
        (void)life(i);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_rows),     cmocka_unit_test(test_input),
        cmocka_unit_test(test_no_input), cmocka_unit_test(test_cancel),
        cmocka_unit_test(test_hard),     cmocka_unit_test(test_closed),
        cmocka_unit_test(test_no_task),  cmocka_unit_test(test_no_memory),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
