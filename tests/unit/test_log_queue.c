/* Lines of the log that wait for an export: every field, no secret, a limit. */
#include <fcntl.h>
#include <pthread.h>

#include "base/log_queue.h"
#include "mo_test.h"

struct rig {
    struct mo_log log;
    struct mo_log_queue *q;
};

static void rig_open(struct rig *r)
{
    mo_log_init(&r->log, open("/dev/null", O_WRONLY | O_CLOEXEC));
    r->log.json = true;
    r->q = mo_log_queue_start(&r->log);
    assert_non_null(r->q);
    assert_ptr_equal(mo_log_queue_start(&r->log), r->q);
}

static void rig_close(struct rig *r)
{
    mo_log_fini(&r->log);
    mo_close_fd(&r->log.fd);
}

static void is_text(const struct mo_log_record *r,
                    enum mo_log_record_text which, const char *want)
{
    struct mo_span s = mo_log_record_text(r, which);

    if (!mo_span_is(s, want))
        fail_msg("'%.*s' is not '%s'", (int)s.n, s.p, want);
}

static void records_have_every_field(void **state)
{
    const struct mo_log_trace mark = {.trace = {1, 2}, .span = {3}};
    struct mo_err e = {MO_EIO, 2, "gone"};
    const struct mo_log_facts about = {
        .request = 7,
        .session = "s-1",
        .turn = "t-1",
        .who = "ann",
        .from = "10.0.0.1:5",
        .call = MO_SPAN("c-1"),
        .server = MO_SPAN("files"),
        .tool = MO_SPAN("read"),
        .status = 500,
        .ns = 1500,
        .err = &e,
        .trace = &mark,
    };
    const struct mo_log_record *r;
    struct rig g;

    (void)state;
    rig_open(&g);
    g.log.worker = 2;
    mo_log_about(&g.log, MO_WARN, "agent", &about, "a \"quoted\"\n word");
    r = mo_log_queue_take(g.q);
    assert_non_null(r);
    assert_int_equal(r->level, MO_WARN);
    assert_true(r->wall_ms > 0);
    is_text(r, MO_LOG_ROOM, "agent");
    is_text(r, MO_LOG_MESSAGE, "a \"quoted\"\\u000a word: gone");
    is_text(r, MO_LOG_SESSION, "s-1");
    is_text(r, MO_LOG_TURN, "t-1");
    is_text(r, MO_LOG_CALL, "c-1");
    is_text(r, MO_LOG_SERVER, "files");
    is_text(r, MO_LOG_TOOL, "read");
    is_text(r, MO_LOG_WHO, "ann");
    is_text(r, MO_LOG_FROM, "10.0.0.1:5");
    assert_int_equal(r->request, 7);
    assert_int_equal(r->status, 500);
    assert_int_equal(r->ns, 1500);
    assert_int_equal(r->worker, 2);
    assert_int_equal(r->code, MO_EIO);
    assert_int_equal(r->sys, 2);
    assert_true(r->traced);
    assert_memory_equal(&r->trace, &mark, sizeof(mark));
    assert_null(mo_log_queue_take(g.q));
    mo_log(&g.log, MO_INFO, "app", "plain");
    r = mo_log_queue_take(g.q);
    is_text(r, MO_LOG_MESSAGE, "plain");
    is_text(r, MO_LOG_WHO, "");
    assert_false(r->traced);
    assert_int_equal(r->code, 0);
    rig_close(&g);
}

/* Lines that are formatted later keep their time, their span and their order.
 */
static void collected_lines_are_queued(void **state)
{
    const struct mo_log_trace mark = {.trace = {9}, .span = {8}};
    const struct mo_log_facts about = {.who = "ann", .trace = &mark};
    const struct mo_log_record *r;
    struct rig g;

    (void)state;
    rig_open(&g);
    mo_log_collect(&g.log);
    mo_log_text(&g.log, MO_INFO, "access", &about, MO_SPAN("GET /"));
    assert_null(mo_log_queue_take(g.q));
    mo_log(&g.log, MO_ERROR, "app", "second");
    r = mo_log_queue_take(g.q);
    is_text(r, MO_LOG_MESSAGE, "GET /");
    is_text(r, MO_LOG_WHO, "ann");
    assert_true(r->traced);
    assert_memory_equal(&r->trace, &mark, sizeof(mark));
    is_text(mo_log_queue_take(g.q), MO_LOG_MESSAGE, "second");
    rig_close(&g);
}

static void secrets_are_hidden(void **state)
{
    const struct mo_log_facts about = {.who = "x s3cr3t-key y",
                                       .tool = MO_SPAN("s3cr3t-key")};
    const struct mo_log_record *r;
    struct rig g;

    (void)state;
    rig_open(&g);
    assert_int_equal(mo_log_secret(&g.log, MO_SPAN("s3cr3t-key")), 0);
    mo_log_about(&g.log, MO_INFO, "app", &about, "with s3cr3t-key in it");
    r = mo_log_queue_take(g.q);
    is_text(r, MO_LOG_MESSAGE, "with [secret] in it");
    is_text(r, MO_LOG_WHO, "x [secret] y");
    is_text(r, MO_LOG_TOOL, "[secret]");
    rig_close(&g);
}

/* The exporter's own lines would feed themselves. */
static void own_lines_are_left_out(void **state)
{
    struct rig g;

    (void)state;
    rig_open(&g);
    mo_log(&g.log, MO_ERROR, MO_LOG_QUEUE_NOT, "logs cannot be exported");
    mo_log(&g.log, MO_DEBUG, "app", "below the level");
    assert_null(mo_log_queue_take(g.q));
    assert_int_equal(mo_log_queue_stats(g.q).waiting, 0);
    mo_log_queue_stop(g.q);
    mo_log(&g.log, MO_ERROR, "app", "after the end");
    assert_null(mo_log_queue_take(g.q));
    assert_int_equal(mo_log_queue_stats(g.q).dropped, 0);
    rig_close(&g);
}

static void a_full_queue_drops(void **state)
{
    char text[2 * MO_LOG_LINE_MAX];
    struct mo_log_queue_stats s;
    uint64_t n = 0;
    struct rig g;

    (void)state;
    memset(text, 'x', sizeof(text));
    text[sizeof(text) - 1] = '\0';
    rig_open(&g);
    for (unsigned i = 0; i < 1000; i++)
        mo_log(&g.log, MO_INFO, "app", "%s", text);
    s = mo_log_queue_stats(g.q);
    assert_int_equal(s.waiting + s.dropped, 1000);
    assert_true(s.dropped > 0);
    assert_true(s.waiting >= MO_LOG_QUEUE_BYTES / (MO_LOG_LINE_MAX + 512));
    while (mo_log_queue_take(g.q))
        n++;
    assert_int_equal(n, s.waiting);
    mo_log(&g.log, MO_INFO, "app", "room again");
    is_text(mo_log_queue_take(g.q), MO_LOG_MESSAGE, "room again");
    rig_close(&g);
}

static void *log_much(void *ctx)
{
    for (unsigned i = 0; i < 500; i++)
        mo_log(ctx, MO_INFO, "app", "line %u of a thread", i);
    return NULL;
}

/* Each line of other threads is taken or counted, once. */
static void threads_may_log(void **state)
{
    pthread_t threads[3];
    uint64_t n = 0;
    struct rig g;

    (void)state;
    rig_open(&g);
    for (size_t i = 0; i < MO_COUNT(threads); i++)
        assert_int_equal(pthread_create(&threads[i], NULL, log_much, &g.log),
                         0);
    for (unsigned i = 0; i < 1000; i++)
        n += mo_log_queue_take(g.q) != NULL;
    for (size_t i = 0; i < MO_COUNT(threads); i++)
        assert_int_equal(pthread_join(threads[i], NULL), 0);
    while (mo_log_queue_take(g.q))
        n++;
    assert_int_equal(n + mo_log_queue_stats(g.q).dropped, 1500);
    rig_close(&g);
}

static void without_memory(void **state)
{
    struct mo_log l;

    (void)state;
    mo_log_init(&l, -1);
    for (uint64_t i = 1; i <= 3; i++) {
        mo_mem_fail_at(i, true);
        assert_null(mo_log_queue_start(&l));
        mo_mem_fail_at(0, false);
        assert_null(l.queue);
    }
    mo_log_fini(&l);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(records_have_every_field),
        cmocka_unit_test(collected_lines_are_queued),
        cmocka_unit_test(secrets_are_hidden),
        cmocka_unit_test(own_lines_are_left_out),
        cmocka_unit_test(a_full_queue_drops),
        cmocka_unit_test(threads_may_log),
        cmocka_unit_test(without_memory),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
