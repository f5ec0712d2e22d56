/* The channel of a script: lines in, notifications out, answers back; over a
 * real socket, with the toolbox's own server and loop. */
#include "mo_test.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "toolbox/channel.h"
#include "toolbox/server.h"

#define SAID_MAX ((size_t)4 * 1024 * 1024)

struct kit {
    struct tb_server server;
    struct tb_loop loop;
    struct tb_channel *ch;
    struct tb_call *call;
    struct mo_buf said;
    int script; /* its end of the socket */
    unsigned notes;
    bool closed;
};

static void on_send(void *to, struct mo_span m)
{
    struct kit *k = to;

    if (mo_span_search(m, MO_SPAN(TB_NOTE)) < 0)
        return;
    assert_null(memchr(m.p, '\n', m.n));
    k->notes++;
    k->closed |= mo_span_search(m, MO_SPAN("\"closed\":true")) >= 0;
    (void)mo_buf_span(&k->said, m);
    (void)mo_buf_putc(&k->said, '\n');
}

static void on_cancel(struct tb_call *c)
{
    struct kit *k = c->job;

    k->call = NULL;
    if (k->ch)
        tb_channel_close(k->ch);
}

static int run_park(void *ctx, struct tb_call *c, struct mo_json args,
                    struct mo_err *e)
{
    struct kit *k = ctx;

    (void)args;
    (void)e;
    c->job = k;
    c->cancel = on_cancel;
    k->call = c;
    return 0;
}

static const struct tb_field none[] = {{0}};
static const struct tb_tool park = {"park", "Park", "Waits.", 0,
                                    none,   none,   run_park};
static const struct tb_tool *const tools[] = {&park, NULL};

/* False: no memory for it. */
static bool kit_open(struct kit *k)
{
    int pair[2];

    *k = (struct kit){.server = {.tools = tools,
                                 .instructions = "",
                                 .ctx = k,
                                 .send = on_send,
                                 .to = k}};
    mo_buf_init(&k->said, SAID_MAX);
    tb_server_init(&k->server);
    tb_loop_init(&k->loop);
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, pair), 0);
    k->script = pair[1];
    (void)fcntl(pair[1], F_SETFL, O_NONBLOCK);
    tb_server_line(&k->server, MO_SPAN("{\"jsonrpc\":\"2.0\",\"id\":0,"
                                       "\"method\":\"initialize\",\"params\":{"
                                       "\"protocolVersion\":\"2025-11-25\"}}"));
    tb_server_line(&k->server,
                   MO_SPAN("{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":"
                           "\"tools/call\",\"params\":{\"name\":\"park\","
                           "\"_meta\":{\"progressToken\":\"T\"}}}"));
    if (k->call)
        k->ch = tb_channel_open(&k->loop, k->call, pair[0]);
    else
        (void)close(pair[0]);
    return k->ch != NULL;
}

static void kit_close(struct kit *k)
{
    tb_server_fini(&k->server);
    if (k->ch)
        tb_channel_free(k->ch);
    mo_buf_fini(&k->said);
    mo_close_fd(&k->script);
}

/* Rounds until nothing is left to do; a timer ends the last wait. */
static void on_nothing(struct tb_timer *t)
{
    (void)t;
}

static void turn(struct kit *k)
{
    struct tb_timer t;
    struct mo_err e = {0};

    tb_timer_init(&t, on_nothing);
    for (int i = 0; i < 6; i++) {
        tb_timer_start(&k->loop, &t, 0);
        assert_int_equal(tb_loop_round(&k->loop, &e), 0);
    }
    tb_timer_stop(&t);
}

static void type(struct kit *k, struct mo_span s)
{
    assert_int_equal(send(k->script, s.p, s.n, MSG_NOSIGNAL), (ssize_t)s.n);
    turn(k);
}

/* --- lines --------------------------------------------------------------- */

static const struct {
    const char *line, *want; /* NULL: the channel ends */
} rows[] = {
    {"{\"id\":1,\"tool\":\"t\",\"arguments\":{\"a\":1},\"line\":3}",
     "\"progressToken\":\"T\",\"id\":1,\"tool\":\"t\",\"arguments\":{\"a\":1},"
     "\"line\":3}"},
    {"{\"tool\":\"t\",\"id\":0}", "\"id\":0,\"tool\":\"t\",\"arguments\":{}}"},
    {"{\"id\":9007199254740992,\"find\":\"w\",\"limit\":2}",
     "\"find\":\"w\",\"limit\":2}"},
    {"{\"id\":1,\"tool\":\"t\",\"more\":[]}\r", "\"tool\":\"t\""},
    {"{\"id\":1,\"tool\":\"a\\n\\\"\"}", "\"tool\":\"a\\n\\\"\""},
    {"", NULL},
    {"x", NULL},
    {"[]", NULL},
    {"{}", NULL},
    {"{\"id\":1}", NULL},
    {"{\"id\":-1,\"tool\":\"t\"}", NULL},
    {"{\"id\":1.0,\"tool\":\"t\"}", NULL},
    {"{\"id\":\"1\",\"tool\":\"t\"}", NULL},
    {"{\"id\":9007199254740993,\"tool\":\"t\"}", NULL},
    {"{\"id\":1,\"tool\":1}", NULL},
    {"{\"id\":1,\"tool\":\"t\",\"find\":\"f\"}", NULL},
    {"{\"id\":1,\"tool\":\"t\",\"arguments\":null}", NULL},
    {"{\"id\":1,\"tool\":\"t\",\"line\":\"1\"}", NULL},
    {"{\"id\":1,\"find\":\"f\",\"limit\":-1}", NULL},
    {"{\"id\":1,\r\"tool\":\"t\"}", NULL},
    {"{\"id\":1,\"tool\":\"\xff\"}", NULL},
    {"{\"id\":1,\"result\":{}}", NULL},
};

/* Each row in one piece, and cut in two at every byte. */
static void a_line_is_an_ask_or_the_end(void **state)
{
    (void)state;
    for (size_t i = 0; i < MO_COUNT(rows); i++) {
        struct mo_span line = mo_span_cstr(rows[i].line);

        for (size_t cut = 0; cut <= line.n; cut++) {
            struct kit k;

            assert_true(kit_open(&k));
            type(&k, mo_span_head(line, cut));
            type(&k, mo_span_skip(line, cut));
            check_row(rows[i].line, k.notes == 0);
            type(&k, MO_SPAN("\n"));
            check_row(rows[i].line, k.notes == 1);
            check_row(rows[i].line, k.closed == !rows[i].want);
            check_row(rows[i].line, (k.ch->why.code != 0) == !rows[i].want);
            if (rows[i].want)
                check_row(rows[i].line,
                          mo_span_search(mo_buf_view(&k.said),
                                         mo_span_cstr(rows[i].want)) >= 0);
            kit_close(&k);
        }
    }
}

static void a_long_line_is_the_end(void **state)
{
    struct mo_buf b;
    struct kit k;

    (void)state;
    assert_true(kit_open(&k));
    mo_buf_init(&b, TB_ASK_MAX * 2);
    while (b.len <= TB_ASK_MAX)
        assert_int_equal(mo_buf_puts(&b, "xxxxxxxxxxxxxxxx"), 0);
    for (size_t at = 0; at < b.len && !k.closed;) {
        ssize_t n = send(k.script, b.p + at, b.len - at, MSG_NOSIGNAL);

        at += n > 0 ? (size_t)n : 0;
        turn(&k);
    }
    for (int i = 0; i < 100 && !k.closed; i++)
        turn(&k);
    assert_true(k.closed);
    assert_int_equal(k.ch->why.code, MO_ETOOBIG);
    mo_buf_fini(&b);
    kit_close(&k);
}

/* --- answers ------------------------------------------------------------- */

static struct mo_json json(const char *s)
{
    return (struct mo_json){s, strlen(s)};
}

static void answers_reach_the_script(void **state)
{
    char got[256];
    struct kit k;
    ssize_t n;

    (void)state;
    assert_true(kit_open(&k));
    type(&k, MO_SPAN("{\"id\":7,\"tool\":\"t\"}\n{\"id\":8,\"tool\":\"t\"}\n"));
    assert_int_equal(k.notes, 2);
    assert_false(tb_channel_answer(k.ch, 9, "result", json("{}")));
    assert_true(tb_channel_answer(k.ch, 8, "result", json("{\"a\":1}")));
    assert_false(tb_channel_answer(k.ch, 8, "result", json("{}")));
    assert_true(tb_channel_answer(k.ch, 7, "error", json("{\"kind\":\"x\"}")));
    n = recv(k.script, got, sizeof(got) - 1, 0);
    assert_true(n > 0);
    got[n] = '\0';
    assert_string_equal(got, "{\"id\":8,\"result\":{\"a\":1}}\n"
                             "{\"id\":7,\"error\":{\"kind\":\"x\"}}\n");
    assert_int_equal(k.ch->asked, 2);
    /* The id is free again. */
    type(&k, MO_SPAN("{\"id\":8,\"tool\":\"t\"}\n"));
    assert_int_equal(k.notes, 3);
    type(&k, MO_SPAN("{\"id\":8,\"tool\":\"t\"}\n"));
    assert_true(k.closed);
    assert_false(tb_channel_answer(k.ch, 8, "result", json("{}")));
    kit_close(&k);
}

static void more_than_64_wait(void **state)
{
    struct kit k;

    (void)state;
    assert_true(kit_open(&k));
    for (int i = 0; i < TB_OPEN_MAX + 3; i++) {
        char line[64];
        int n = snprintf(line, sizeof(line), "{\"id\":%d,\"tool\":\"t\"}\n", i);

        type(&k, mo_span(line, (size_t)n));
    }
    assert_int_equal(k.notes, TB_OPEN_MAX);
    assert_true(tb_channel_answer(k.ch, 5, "result", json("{}")));
    turn(&k);
    assert_int_equal(k.notes, TB_OPEN_MAX + 1);
    tb_channel_pause(k.ch, true);
    assert_true(tb_channel_answer(k.ch, 6, "result", json("{}")));
    turn(&k);
    assert_int_equal(k.notes, TB_OPEN_MAX + 1);
    tb_channel_pause(k.ch, false);
    turn(&k);
    assert_int_equal(k.notes, TB_OPEN_MAX + 2);
    assert_true(tb_channel_held(k.ch) > 0);
    kit_close(&k);
}

static void the_end_is_told_once(void **state)
{
    struct kit k;

    (void)state;
    assert_true(kit_open(&k));
    type(&k, MO_SPAN("{\"id\":1,\"tool\":\"t\"}\n{\"id\":2"));
    mo_close_fd(&k.script);
    turn(&k);
    assert_true(k.closed);
    assert_int_equal(k.notes, 2);
    assert_int_equal(k.ch->why.code, 0);
    assert_false(tb_channel_answer(k.ch, 1, "result", json("{}")));
    tb_channel_close(k.ch);
    turn(&k);
    assert_int_equal(k.notes, 2);
    kit_close(&k);
    /* Nothing after the call is gone. */
    assert_true(kit_open(&k));
    tb_server_cancel_all(&k.server);
    (void)send(k.script, "{\"id\":1,\"tool\":\"t\"}\n", 21, MSG_NOSIGNAL);
    turn(&k);
    assert_int_equal(k.notes, 0);
    kit_close(&k);
}

static void without_memory(void *ctx)
{
    struct kit k;

    (void)ctx;
    if (kit_open(&k)) {
        (void)send(k.script, "{\"id\":1,\"to", 11, MSG_NOSIGNAL);
        turn(&k);
        (void)send(k.script, "ol\":\"t\"}\n", 9, MSG_NOSIGNAL);
        turn(&k);
        if (k.ch->nopen)
            (void)tb_channel_answer(k.ch, 1, "result", json("{\"a\":1}"));
        turn(&k);
    }
    kit_close(&k);
}

static void survives_no_memory(void **state)
{
    (void)state;
    torture(without_memory, NULL);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_line_is_an_ask_or_the_end),
        cmocka_unit_test(a_long_line_is_the_end),
        cmocka_unit_test(answers_reach_the_script),
        cmocka_unit_test(more_than_64_wait),
        cmocka_unit_test(the_end_is_told_once),
        cmocka_unit_test(survives_no_memory),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
