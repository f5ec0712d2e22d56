#include "up_kit.h"

#define MANY 50

/* --- choosing a child ---------------------------------------------------- */

static void test_single_flight(void **state)
{
    struct kit k;
    struct want v[MANY];

    (void)state;
    kit_init(&k, kit_server());
    assert_int_equal(kit_status(&k).state, MO_UPSTREAM_COLD);
    kit_settle(&k);
    assert_int_equal(k.dials, 0); /* not requested */
    k.mood = HANG;
    for (int i = 0; i < MANY; i++)
        want(&k, &v[i]);
    kit_settle(&k);
    assert_int_equal(kit_status(&k).state, MO_UPSTREAM_STARTING);
    assert_int_equal(kit_status(&k).waiting, MANY);
    kit_release(&k);
    kit_settle(&k);
    assert_int_equal(k.dials, 1);
    assert_int_equal(k.opens, 1);
    assert_int_equal(kit_status(&k).state, MO_UPSTREAM_OK);
    assert_int_equal(kit_status(&k).calls, MANY);
    for (int i = 0; i < MANY; i++) {
        assert_int_equal(v[i].ready, 1);
        assert_ptr_equal(v[i].c, v[0].c);
        assert_int_equal(mo_child_who(v[i].c).n, 0);
    }
    for (int i = 0; i < MANY; i++)
        let_go(&v[i]);
    assert_int_equal(kit_status(&k).calls, 0);
    kit_fini(&k);
}

static void test_balance(void **state)
{
    struct mo_gw_server s = kit_server();
    struct kit k;
    struct want v[6];

    (void)state;
    s.instances = 3;
    kit_init(&k, s);
    want_now(&k, &v[0]);
    let_go(&v[0]);
    want_now(&k, &v[0]); /* idle: no second one */
    assert_int_equal(k.dials, 1);
    for (int i = 1; i < 3; i++)
        want_now(&k, &v[i]);
    assert_int_equal(k.dials, 3);
    assert_true(v[0].c != v[1].c && v[1].c != v[2].c && v[0].c != v[2].c);
    want_now(&k, &v[3]); /* all have one: the first */
    assert_int_equal(k.dials, 3);
    let_go(&v[2]);
    want_now(&k, &v[2]); /* the only one without */
    assert_true(v[2].c != v[0].c && v[2].c != v[1].c);
    want_now(&k, &v[4]);
    want_now(&k, &v[5]);
    for (int i = 0; i < 6; i++)
        assert_int_equal(v[i].c->calls, 2);
    for (int i = 0; i < 6; i++)
        let_go(&v[i]);
    kit_fini(&k);
}

/* A burst on a cold server is spread, too. */
static void test_burst(void **state)
{
    struct mo_gw_server s = kit_server();
    struct kit k;
    struct want v[9];

    (void)state;
    s.instances = 3;
    kit_init(&k, s);
    for (int i = 0; i < 9; i++)
        want(&k, &v[i]);
    kit_settle(&k);
    kit_settle(&k);
    assert_int_equal(k.dials, 3);
    for (int i = 0; i < 9; i++) {
        assert_int_equal(v[i].ready, 1);
        assert_int_equal(v[i].c->calls, 3);
    }
    for (int i = 0; i < 9; i++)
        let_go(&v[i]);
    kit_fini(&k);
}

/* While the second child starts, the first may become idle. */
static void test_first_idle(void **state)
{
    struct mo_gw_server s = kit_server();
    struct kit k;
    struct want a, b;

    (void)state;
    s.instances = 2;
    kit_init(&k, s);
    want_now(&k, &a);
    k.mood = HANG;
    want(&k, &b);
    kit_settle(&k);
    assert_int_equal(k.dials, 2);
    assert_int_equal(b.ready, 0);
    let_go(&a);
    kit_settle(&k);
    assert_int_equal(b.ready, 1);
    kit_release(&k);
    kit_settle(&k);
    assert_int_equal(kit_status(&k).children, 2);
    let_go(&b);
    kit_fini(&k);
}

static void test_no_second(void **state)
{
    struct mo_gw_server s = kit_server();
    struct kit k;
    struct want a, b, c;

    (void)state;
    s.instances = 2;
    kit_init(&k, s);
    want_now(&k, &a);
    k.mood = DIE;
    want_now(&k, &b); /* cannot be started: the busy one takes it */
    want_now(&k, &c); /* and it is not retried at once */
    assert_int_equal(k.dials, 2);
    assert_ptr_equal(b.c, a.c);
    assert_ptr_equal(c.c, a.c);
    assert_int_equal(kit_status(&k).state, MO_UPSTREAM_OK);
    assert_int_equal(kit_status(&k).retry_ms, 0);
    let_go(&a);
    let_go(&b);
    let_go(&c);
    kit_fini(&k);
}

/* --- idle ---------------------------------------------------------------- */

static bool has_lost(void *ctx)
{
    return ((struct kit *)ctx)->losts > 0;
}

static void test_idle_stop(void **state)
{
    struct mo_gw_server s = kit_server();
    struct kit k;
    struct want v;

    (void)state;
    s.stop_ms = 1;
    kit_init(&k, s);
    for (int round = 1; round <= 3; round++) {
        want_now(&k, &v);
        assert_int_equal(k.dials, round);
        assert_int_equal(k.losts, 0);
        assert_false(mo_loop_until(k.l, has_lost, &k, 20)); /* has a call */
        let_go(&v);
        assert_true(mo_loop_until(k.l, has_lost, &k, LONG));
        kit_settle(&k);
        assert_int_equal(k.losts, 1);
        assert_int_equal(k.why.code, MO_ECANCELED);
        assert_int_equal(kit_status(&k).state, MO_UPSTREAM_COLD);
        assert_int_equal(kit_status(&k).why.code, 0);
        k.losts = k.opens = 0;
    }
    kit_fini(&k);
}

/* Requested while the child is closing: another one, after it. */
static void test_wanted_while_closing(void **state)
{
    struct mo_gw_server s = kit_server();
    struct kit k;
    struct want v;

    (void)state;
    kit_init(&k, s);
    want_now(&k, &v);
    k.slow_close = true;
    mo_upstream_child_close(v.c, MO_ECANCELED, "as if idle");
    assert_null(mo_child_conn(v.c));
    let_go(&v);
    want(&k, &v);
    kit_settle(&k);
    assert_int_equal(k.dials, 1);
    assert_int_equal(v.ready, 0);
    kit_release(&k);
    kit_settle(&k);
    assert_int_equal(k.dials, 2);
    assert_int_equal(v.ready, 1);
    let_go(&v);
    kit_fini(&k);
}

/* A hold keeps a child like a call does. */
static void test_hold(void **state)
{
    struct mo_gw_server s = kit_server();
    struct kit k;
    struct want v;
    struct mo_child *c;

    (void)state;
    s.stop_ms = 1;
    kit_init(&k, s);
    want_now(&k, &v);
    c = v.c;
    mo_child_hold(c);
    let_go(&v);
    assert_false(mo_loop_until(k.l, has_lost, &k, 20));
    mo_child_release(c);
    assert_true(mo_loop_until(k.l, has_lost, &k, LONG));
    kit_fini(&k);
}

/* --- failures ------------------------------------------------------------ */

static void test_pause(void **state)
{
    static const struct {
        enum mood mood;
        const char *says;
        int code;
    } rows[] = {
        {DIE, "boom", MO_ECLOSED},
        {NO_DIAL, "no such program", MO_EPOLICY},
    };
    struct kit k;
    struct want v[3];

    (void)state;
    for (size_t i = 0; i < MO_COUNT(rows); i++) {
        const char *name = rows[i].says;

        kit_init(&k, kit_server());
        k.mood = rows[i].mood;
        for (int n = 0; n < 3; n++)
            want(&k, &v[n]);
        kit_settle(&k);
        for (int n = 0; n < 3; n++) {
            check_row(name, v[n].ready == 1 && v[n].c == NULL);
            check_row(name, v[n].why.code == rows[i].code);
            check_row(name, strstr(v[n].why.msg, rows[i].says));
        }
        check_row(name, kit_status(&k).starts == 1);
        check_row(name, kit_status(&k).fails == 1);
        check_row(name, kit_status(&k).state == MO_UPSTREAM_FAILED);
        check_row(name, kit_status(&k).retry_ms > 0);
        k.mood = FINE;
        want(&k, &v[0]); /* the pause holds */
        kit_settle(&k);
        check_row(name, v[0].ready == 1 && v[0].why.code == MO_EUNAVAIL);
        check_row(name, strstr(v[0].why.msg, "tried again in 1 s"));
        check_row(name, strstr(v[0].why.msg, rows[i].says));
        check_row(name, kit_status(&k).starts == 1);
        k.u->backoff.until = 0; /* it is over */
        want_now(&k, &v[0]);
        check_row(name, kit_status(&k).state == MO_UPSTREAM_OK);
        check_row(name, kit_status(&k).why.code == 0);
        check_row(name, k.u->backoff.fails == 0);
        let_go(&v[0]);
        kit_fini(&k);
    }
}

/* The pause is real time, and it ends. */
static bool pause_over(void *ctx)
{
    return kit_status(ctx).retry_ms == 0;
}

static void test_pause_ends(void **state)
{
    struct kit k;
    struct want v;

    (void)state;
    kit_init(&k, kit_server());
    k.mood = DIE;
    want(&k, &v);
    kit_settle(&k);
    k.mood = FINE;
    for (int i = 0; i < LONG && !pause_over(&k); i++)
        (void)mo_loop_until(k.l, pause_over, &k, 5);
    want_now(&k, &v);
    let_go(&v);
    kit_fini(&k);
}

static void test_sign_in(void **state)
{
    static const enum mo_conn_mode modes[] = {MO_CONN_LEGACY, MO_CONN_AUTO};
    struct kit k;
    struct want v;

    (void)state;
    for (size_t i = 0; i < MO_COUNT(modes); i++) {
        struct mo_gw_server s = kit_server();

        s.mode = modes[i];
        kit_init(&k, s);
        k.mood = SIGN_IN;
        want(&k, &v);
        kit_settle(&k);
        assert_int_equal(v.why.code, MO_EPOLICY);
        assert_int_equal(kit_status(&k).state, MO_UPSTREAM_SIGN_IN);
        k.mood = FINE;
        want(&k, &v);
        kit_settle(&k);
        assert_int_equal(v.why.code, MO_EPOLICY);
        assert_non_null(strstr(v.why.msg, "a person must sign in"));
        assert_int_equal(k.dials, 1);
        mo_upstream_retry_now(k.u); /* a person signed in */
        want_now(&k, &v);
        assert_int_equal(kit_status(&k).state, MO_UPSTREAM_OK);
        let_go(&v);
        kit_fini(&k);
    }
}

/* One person who must sign in, or whose credentials cannot be read, delays and
 * tells nobody else. */
static void test_persons(void **state)
{
    static const enum mood moods[] = {SIGN_IN, NO_DIAL};
    struct kit k;
    struct want a, b, again;

    (void)state;
    for (size_t i = 0; i < MO_COUNT(moods); i++) {
        struct mo_gw_server s = kit_server();

        s.per_person = true;
        kit_init(&k, s);
        k.mood = moods[i];
        want_as(&k, &a, MO_UPSTREAM_PERSON "ann");
        kit_settle(&k);
        assert_int_equal(a.why.code, MO_EPOLICY);
        assert_non_null(strstr(a.why.msg, "connect to it again"));
        k.mood = FINE;
        want_as(&k, &b, MO_UPSTREAM_PERSON "bob");
        want_as(&k, &again, MO_UPSTREAM_PERSON);
        kit_settle(&k);
        assert_non_null(b.c);
        assert_non_null(again.c); /* the operator */
        assert_ptr_not_equal(b.c, again.c);
        assert_string_equal(k.links[0]->who, "bob");
        assert_string_equal(k.links[1]->who, "");
        mo_upstream_close_child_of(k.u, MO_SPAN(MO_UPSTREAM_PERSON "bob"));
        kit_settle(&k);
        assert_null(mo_child_conn(b.c));
        assert_non_null(mo_child_conn(again.c));
        let_go(&b);
        let_go(&again);
        kit_fini(&k);
    }
}

static void faults(struct kit *k, struct mo_child *c, int n)
{
    for (int i = 0; i < n; i++) {
        mo_child_report(c, true);
        mo_child_report(c, true); /* the same turn: the same fault */
        kit_settle(k);
    }
}

static void test_breaker_of_calls(void **state)
{
    struct kit k;
    struct want a, b;
    struct mo_err e;

    (void)state;
    kit_init(&k, kit_server());
    want_now(&k, &a);
    faults(&k, a.c, MO_BREAKER_ROW - 1);
    assert_int_equal(kit_status(&k).state, MO_UPSTREAM_OK);
    (void)mo_fail(&e, MO_ETIMEOUT, "no answer in 60 s");
    mo_child_report_fault(a.c, &e);
    kit_settle(&k);
    assert_int_equal(kit_status(&k).state, MO_UPSTREAM_BROKEN);
    assert_int_equal(kit_status(&k).breaker, MO_BREAKER_OPEN);
    assert_true(kit_status(&k).retry_ms > 0);
    want(&k, &b);
    kit_settle(&k);
    assert_int_equal(b.why.code, MO_EUNAVAIL);
    assert_non_null(strstr(b.why.msg, "no answer in 60 s"));
    assert_non_null(strstr(b.why.msg, "tried again in 5 s"));

    k.u->breaker.until = 0; /* the pause is over: one trial */
    want_now(&k, &b);
    want(&k, &a); /* a.c is still held; only its request is reused */
    kit_settle(&k);
    assert_int_equal(a.ready, 1);
    assert_null(a.c);
    mo_child_report(b.c, true);
    kit_settle(&k);
    assert_int_equal(kit_status(&k).state, MO_UPSTREAM_BROKEN);

    k.u->breaker.until = 0;
    mo_child_release(b.c);
    want_now(&k, &b);
    mo_child_report(b.c, false);
    kit_settle(&k);
    assert_int_equal(kit_status(&k).state, MO_UPSTREAM_OK);
    assert_int_equal(kit_status(&k).why.code, 0);
    mo_child_release(b.c);
    let_go(&b);
    kit_fini(&k);
}

/* A trial that is cancelled, or released without a report, does not count. */
static void test_trial_not_made(void **state)
{
    struct kit k;
    struct want v;

    (void)state;
    kit_init(&k, kit_server());
    want_now(&k, &v);
    faults(&k, v.c, MO_BREAKER_ROW);
    let_go(&v);
    k.u->breaker.until = 0;
    want(&k, &v);
    mo_upstream_cancel_request(&v.w); /* before it is delivered */
    want_now(&k, &v);
    let_go(&v);
    want(&k, &v);
    kit_settle(&k);
    assert_int_equal(v.ready, 1);
    assert_non_null(v.c);
    mo_child_report(v.c, false);
    assert_int_equal(kit_status(&k).breaker, MO_BREAKER_CLOSED);
    let_go(&v);
    kit_fini(&k);
}

static void test_lost(void **state)
{
    struct kit k;
    struct want v[8];
    struct mo_child *c;

    (void)state;
    kit_init(&k, kit_server());
    for (int i = 0; i < 8; i++)
        want(&k, &v[i]);
    kit_settle(&k);
    c = v[0].c;
    for (int i = 0; i < 8; i++)
        assert_non_null(kit_call(&k, v[i].c, i == 7 ? "die" : "hang"));
    kit_settle(&k);
    assert_int_equal(k.done, 8);
    assert_int_equal(k.losts, 1);
    assert_null(mo_child_conn(c));
    assert_int_equal(k.u->breaker.row, 1); /* one loss is one fault */
    assert_int_equal(kit_status(&k).state, MO_UPSTREAM_FAILED);
    assert_non_null(strstr(kit_status(&k).why.msg, "signal 9"));
    assert_int_equal(kit_status(&k).retry_ms, 0);
    for (int i = 1; i < 8; i++)
        let_go(&v[i]);
    want_now(&k, &v[1]); /* another child, at once; c is still held */
    assert_true(v[1].c != c);
    assert_int_equal(k.dials, 2);
    assert_int_equal(kit_status(&k).state, MO_UPSTREAM_OK);
    let_go(&v[0]);
    let_go(&v[1]);
    kit_fini(&k);
}

static void test_dies_again_and_again(void **state)
{
    struct kit k;
    struct want v;

    (void)state;
    kit_init(&k, kit_server());
    for (int i = 0; i < MO_BREAKER_ROW; i++) {
        want_now(&k, &v);
        (void)kit_call(&k, v.c, "die");
        kit_settle(&k);
        let_go(&v);
    }
    assert_int_equal(kit_status(&k).state, MO_UPSTREAM_BROKEN);
    k.mood = DIE;
    k.u->breaker.until = 0; /* the trial cannot even be started */
    want(&k, &v);
    kit_settle(&k);
    assert_null(v.c);
    assert_int_equal(kit_status(&k).state, MO_UPSTREAM_BROKEN);
    assert_int_equal(k.u->breaker.opens, 2);
    mo_upstream_retry_now(k.u);
    k.mood = FINE;
    want_now(&k, &v);
    let_go(&v);
    kit_fini(&k);
}

/* Lost between grant and delivery: another child. */
static void test_lost_on_the_way(void **state)
{
    struct mo_gw_server s = kit_server();
    struct kit k;
    struct want v;

    (void)state;
    for (int own = 0; own < 2; own++) {
        s.per_session = own;
        kit_init(&k, s);
        want_as(&k, &v, own ? "me" : "");
        kit_settle(&k);
        let_go(&v);
        want_as(&k, &v, own ? "me" : "");
        if (!own)
            mo_upstream_grant(&v.w, k.last);
        mo_upstream_child_close(k.last, MO_ECLOSED, "as if lost");
        kit_settle(&k);
        assert_int_equal(v.ready, 1);
        assert_non_null(v.c);
        assert_int_equal(k.dials, 2);
        let_go(&v);
        kit_fini(&k);
    }
}

/* --- messages ------------------------------------------------------------ */

static void test_news(void **state)
{
    struct kit k;
    struct want v;

    (void)state;
    kit_init(&k, kit_server());
    want_now(&k, &v);
    (void)mo_buf_puts(
        &k.links[0]->in,
        "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/x\"}\n"
        "{\"jsonrpc\":\"2.0\",\"id\":\"q\",\"method\":\"roots/list\"}\n");
    mo_loop_defer(k.l, &k.links[0]->later);
    kit_settle(&k);
    assert_int_equal(k.notes, 1);
    assert_int_equal(k.asks, 1);
    assert_true(kit_saw(&k, "\"roots\":[]"));
    assert_true(kit_saw(&k, "\"roots\":{\"listChanged\":true}"));
    assert_true(kit_saw(&k, "\"elicitation\":{\"form\":{},\"url\":{}}"));
    assert_true(kit_saw(&k, "\"sampling\":{}"));
    let_go(&v);
    kit_fini(&k);
}

static void test_eras(void **state)
{
    struct mo_gw_server s = kit_server();
    struct kit k;
    struct want v;

    (void)state;
    s.mode = MO_CONN_AUTO;
    kit_init(&k, s);
    k.known = (struct mo_conn_verdict){MO_ERA_LEGACY, mo_wall_ms()};
    want_now(&k, &v); /* as it was */
    assert_false(kit_saw(&k, "server/discover"));
    assert_int_equal(k.learns, 0);
    let_go(&v);
    kit_fini(&k);

    kit_init(&k, s);
    k.mood = MODERN;
    k.known = (struct mo_conn_verdict){MO_ERA_LEGACY, mo_wall_ms()};
    want_now(&k, &v); /* the server changed: it closes on initialize and is
                         probed again */
    assert_true(kit_saw(&k, "server/discover"));
    assert_true(kit_saw(&k, MO_MCP_EXT_TASKS));
    assert_int_equal(k.dials, 2);
    assert_int_equal(k.learns, 2); /* unknown, then modern */
    assert_int_equal(k.learnt.era, MO_ERA_MODERN);
    assert_int_equal(kit_status(&k).fails, 0);
    let_go(&v);
    kit_fini(&k);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_single_flight),
        cmocka_unit_test(test_balance),
        cmocka_unit_test(test_burst),
        cmocka_unit_test(test_first_idle),
        cmocka_unit_test(test_no_second),
        cmocka_unit_test(test_idle_stop),
        cmocka_unit_test(test_wanted_while_closing),
        cmocka_unit_test(test_hold),
        cmocka_unit_test(test_pause),
        cmocka_unit_test(test_pause_ends),
        cmocka_unit_test(test_sign_in),
        cmocka_unit_test(test_persons),
        cmocka_unit_test(test_breaker_of_calls),
        cmocka_unit_test(test_trial_not_made),
        cmocka_unit_test(test_lost),
        cmocka_unit_test(test_dies_again_and_again),
        cmocka_unit_test(test_lost_on_the_way),
        cmocka_unit_test(test_news),
        cmocka_unit_test(test_eras),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
