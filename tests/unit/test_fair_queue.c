/* max_calls: the order of waiting requests, and their timeout. Also
 * latency.h. */
#include "up_kit.h"

#include "gateway/upstream/latency.h"

#define MANY 12

/* A request that counts. */
static void call(struct kit *k, struct want *v, const char *who)
{
    *v = (struct want){.k = k, .w = {.ready = want_ready, .counts = true}};
    k->wanting = true;
    mo_upstream_request_child(k->u, mo_span_cstr(who), MO_SPAN("{}"), &v->w);
    k->wanting = false;
}

static void over(struct want *v)
{
    assert_non_null(v->c);
    mo_child_release_call(v->c);
    v->c = NULL;
}

/* ann requests ten, then bob and cid one each: they do not wait behind all
 * of hers. */
static void test_turns(void **state)
{
    struct mo_gw_server s = kit_server();
    struct want v[MANY];
    struct kit k;

    (void)state;
    s.max_calls = 1;
    kit_init(&k, s);
    for (int i = 0; i < MANY; i++)
        call(&k, &v[i], i < MANY - 2 ? "ann" : i == MANY - 2 ? "bob" : "cid");
    for (int i = 0; i < MANY; i++) {
        static const int order[] = {0, 10, 11, 1, 2, 3, 4, 5, 6, 7, 8, 9};
        int ready = 0;

        kit_settle(&k);
        for (int j = 0; j < MANY; j++)
            ready += v[j].ready;
        assert_int_equal(ready, i + 1);
        assert_int_equal(v[order[i]].ready, 1);
        over(&v[order[i]]);
    }
    kit_fini(&k);
}

/* Uncounted requests neither wait nor block others. */
static void test_not_counted(void **state)
{
    struct mo_gw_server s = kit_server();
    struct want a, b, c, d;
    struct kit k;

    (void)state;
    s.max_calls = 1;
    kit_init(&k, s);
    want_now(&k, &a);
    call(&k, &b, "ann");
    call(&k, &c, "ann");
    want_now(&k, &d);
    assert_int_equal(b.ready, 1);
    assert_int_equal(c.ready, 0);
    let_go(&a);
    let_go(&d);
    kit_settle(&k);
    assert_int_equal(c.ready, 0);
    over(&b);
    kit_settle(&k);
    assert_int_equal(c.ready, 1);
    over(&c);
    kit_fini(&k);
}

/* Cancelled while it waits, and after it was granted. */
static void test_given_up(void **state)
{
    struct mo_gw_server s = kit_server();
    struct want a, b, c;
    struct kit k;

    (void)state;
    s.max_calls = 1;
    kit_init(&k, s);
    call(&k, &a, "ann");
    call(&k, &b, "bob");
    call(&k, &c, "cid");
    kit_settle(&k);
    mo_upstream_cancel_request(&b.w);
    over(&a);
    kit_settle(&k);
    assert_int_equal(b.ready, 0);
    assert_int_equal(c.ready, 1);
    over(&c);
    kit_fini(&k);
}

static bool is_ready(void *ctx)
{
    return ((struct want *)ctx)->ready > 0;
}

static void test_queue_timeout(void **state)
{
    struct mo_gw_server s = kit_server();
    struct want a, b;
    struct kit k;

    (void)state;
    s.max_calls = 1;
    s.call_ms = 30;
    kit_init(&k, s);
    call(&k, &a, "ann");
    kit_settle(&k);
    call(&k, &b, "bob");
    assert_true(mo_loop_until(k.l, is_ready, &b, LONG));
    assert_null(b.c);
    assert_int_equal(b.why.code, MO_EBUSY);
    assert_non_null(
        strstr(b.why.msg, "srv: the server is busy (1 calls under way"));
    over(&a);
    kit_fini(&k);
}

/* --- latency ------------------------------------------------------------- */

static void test_pace(void **state)
{
    struct mo_latency p;
    struct mo_latency_stats seen;
    struct mo_latency_row *r;

    (void)state;
    mo_latency_init(&p);
    assert_false(mo_latency_get(&p, "a", MO_SPAN("t"), &seen));
    r = mo_latency_row(&p, "a", MO_SPAN("t"));
    assert_non_null(r);
    assert_ptr_equal(r, mo_latency_row(&p, "a", MO_SPAN("t")));
    assert_ptr_not_equal(r, mo_latency_row(&p, "at", MO_SPAN("")));
    assert_false(mo_latency_get(&p, "a", MO_SPAN("t"), &seen));
    for (int i = 0; i < 90; i++)
        mo_latency_add(r, 900, false);
    for (int i = 0; i < 10; i++)
        mo_latency_add(r, 7000, true);
    assert_true(mo_latency_get(&p, "a", MO_SPAN("t"), &seen));
    assert_int_equal(seen.calls, 100);
    assert_int_equal(seen.failed, 10);
    assert_int_equal(seen.p50_us, 1000);
    assert_int_equal(seen.p95_us, 8000);
    /* old calls fade, however many there were */
    for (int i = 0; i < 20000; i++)
        mo_latency_add(r, 3000000, false);
    assert_true(mo_latency_get(&p, "a", MO_SPAN("t"), &seen));
    assert_true(seen.calls <= LATENCY_FULL);
    assert_int_equal(seen.p50_us, 4096000);
    mo_latency_add(r, UINT64_MAX, false);
    mo_latency_add(NULL, 1, false);
    mo_latency_fini(&p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_turns),    cmocka_unit_test(test_not_counted),
        cmocka_unit_test(test_given_up), cmocka_unit_test(test_queue_timeout),
        cmocka_unit_test(test_pace),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
