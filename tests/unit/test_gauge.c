/* test_gauge.c - what boxes take: all that are in use, none that is not, and
 * nobody waits for one that does not answer. */
#include "session/gauge.h"

#include "session_kit.h"

struct told {
    unsigned times;
    size_t n;
    struct mo_gauge v[4];
    uint64_t limit;
};

static void on_told(void *ctx, const struct mo_gateway_metrics *g)
{
    struct told *t = ctx;

    t->times++;
    t->n = g->n;
    t->limit = g->memory_limit;
    for (size_t i = 0; i < g->n && i < MO_COUNT(t->v); i++)
        t->v[i] = g->v[i];
}

static bool is_told(void *ctx)
{
    return ((struct told *)ctx)->times > 0;
}

static struct told look(struct world *w)
{
    struct told t = {.times = 0};

    assert_int_equal(mo_sessions_gauge(w->ss, on_told, &t, NULL), 0);
    assert_int_equal(t.times, 0);
    assert_true(mo_loop_until(w->l, is_told, &t, LONG));
    return t;
}

static void test_boxes(void **state)
{
    struct user u, v;
    struct told t;
    struct world w;

    (void)state;
    world_open(&w);
    assert_int_equal(look(&w).n, 0);
    hold_ready(&w, &u, "s1");
    hold_ready(&w, &v, "s2");
    t = look(&w);
    assert_int_equal(t.n, 2);
    assert_int_equal(t.limit, mo_box_limits_default.memory);
    assert_string_equal(t.v[0].session, "s1");
    assert_string_equal(t.v[1].session, "s2");
    assert_string_equal(t.v[0].box, u.box);
    assert_string_equal(t.v[0].driver, "fake");
    assert_int_equal(t.v[0].stats.memory, 4096);
    assert_int_equal(t.v[0].stats.cpu_us, 77);
    assert_true(t.v[0].at > 0);
    mo_session_release(v.h);
    w.no_stats = true;
    t = look(&w);
    assert_int_equal(t.times, 1);
    assert_int_equal(t.n, 0);
    world_close(&w);
}

/* The answer comes when everything else is gone. */
static void test_late(void **state)
{
    struct told t = {.times = 0};
    struct user u;
    struct world w;

    (void)state;
    world_open(&w);
    hold_ready(&w, &u, "s1");
    w.slow_stats = true;
    t = look(&w); /* over by time */
    assert_int_equal(t.n, 0);
    assert_int_equal(t.times, 1);
    world_close_sessions(&w);
    weigh(&w);
    assert_int_equal(t.times, 1);
    world_fini(&w);
}

static void body(void *ctx)
{
    struct told t = {.times = 0};
    struct world *w = ctx;

    if (mo_sessions_gauge(w->ss, on_told, &t, NULL) == 0)
        assert_true(mo_loop_until(w->l, is_told, &t, LONG));
}

static void test_memory(void **state)
{
    struct user u;
    struct world w;

    (void)state;
    world_open(&w);
    hold_ready(&w, &u, "s1");
    torture(body, &w);
    world_close(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_boxes),
        cmocka_unit_test(test_late),
        cmocka_unit_test(test_memory),
    };

    return cmocka_run_group_tests_name("gauge", tests, NULL, NULL);
}
