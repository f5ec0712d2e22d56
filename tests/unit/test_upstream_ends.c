/* Per-session children, limits, and the end at every moment. */
#include "up_kit.h"

static struct mo_gw_server own_server(void)
{
    struct mo_gw_server s = kit_server();

    s.per_session = true;
    return s;
}

/* --- one child for each session ------------------------------------------ */

static void test_per_session(void **state)
{
    struct kit k;
    struct want a, b, c;

    (void)state;
    kit_init(&k, own_server());
    want_as(&k, &a, "alice");
    want_as(&k, &b, "bob");
    want_as(&k, &c, "alice");
    kit_settle(&k);
    assert_int_equal(k.dials, 2);
    assert_ptr_equal(a.c, c.c);
    assert_true(a.c != b.c);
    assert_true(mo_span_is(mo_child_who(a.c), "alice"));
    assert_true(mo_span_is(mo_child_who(b.c), "bob"));
    assert_string_equal(k.links[0]->who, "alice");
    assert_string_equal(k.links[1]->who, "bob");
    assert_true(kit_saw(&k, "\"capabilities\":{\"experimental\":{\"alice\""));
    assert_true(kit_saw(&k, "\"capabilities\":{\"experimental\":{\"bob\""));
    assert_false(kit_saw(&k, "sampling"));
    assert_false(kit_saw(&k, MO_MCP_EXT_TASKS));

    mo_upstream_session_gone(k.u, MO_SPAN("nobody"));
    mo_upstream_session_gone(k.u, MO_SPAN("alice")); /* has calls */
    kit_settle(&k);
    assert_int_equal(k.losts, 0);
    let_go(&a);
    kit_settle(&k);
    assert_int_equal(k.losts, 0);
    let_go(&c);
    kit_settle(&k);
    assert_int_equal(k.losts, 1);
    assert_non_null(mo_child_conn(b.c));
    let_go(&b);
    mo_upstream_session_gone(k.u, MO_SPAN("bob")); /* has none */
    kit_settle(&k);
    assert_int_equal(k.losts, 2);
    assert_int_equal(kit_status(&k).state, MO_UPSTREAM_COLD);
    kit_fini(&k);
}

/* A session that returns keeps its child, or waits until it is gone. */
static void test_session_comes_back(void **state)
{
    struct kit k;
    struct want a, b;

    (void)state;
    kit_init(&k, own_server());
    want_as(&k, &a, "alice");
    kit_settle(&k);
    mo_upstream_session_gone(k.u, MO_SPAN("alice"));
    want_as(&k, &b, "alice");
    kit_settle(&k);
    assert_ptr_equal(a.c, b.c);
    let_go(&a);
    let_go(&b);
    kit_settle(&k);
    assert_int_equal(k.losts, 0);
    k.slow_close = true;
    mo_upstream_session_gone(k.u, MO_SPAN("alice"));
    want_as(&k, &a, "alice");
    want_as(&k, &b, "bob"); /* is not affected */
    kit_settle(&k);
    assert_int_equal(a.ready, 0);
    assert_int_equal(b.ready, 1);
    assert_int_equal(k.dials, 2);
    kit_release(&k);
    kit_settle(&k);
    assert_int_equal(a.ready, 1);
    assert_non_null(a.c);
    assert_int_equal(k.dials, 3);
    let_go(&a);
    let_go(&b);
    kit_fini(&k);
}

/* A session that ends while its child starts. */
static void test_session_gone_early(void **state)
{
    struct kit k;
    struct want a;

    (void)state;
    kit_init(&k, own_server());
    k.mood = HANG;
    want_as(&k, &a, "alice");
    kit_settle(&k);
    mo_upstream_session_gone(k.u, MO_SPAN("alice"));
    kit_settle(&k);
    assert_int_equal(kit_status(&k).waiting, 1); /* a request still waits */
    mo_upstream_cancel_request(&a.w);
    kit_settle(&k);
    assert_int_equal(a.ready, 0);
    assert_int_equal(k.opens, 0);
    assert_null(k.links[0]);
    assert_int_equal(kit_status(&k).state, MO_UPSTREAM_COLD);
    kit_fini(&k);
}

static void test_pause_of_all_sessions(void **state)
{
    struct kit k;
    struct want a, b;

    (void)state;
    kit_init(&k, own_server());
    k.mood = DIE;
    want_as(&k, &a, "alice");
    kit_settle(&k);
    want_as(&k, &b, "bob");
    kit_settle(&k);
    assert_int_equal(k.dials, 1);
    assert_int_equal(a.why.code, MO_ECLOSED);
    assert_int_equal(b.why.code, MO_EUNAVAIL);
    kit_fini(&k);
}

/* --- limits -------------------------------------------------------------- */

static void test_room(void **state)
{
    struct mo_upstream_pool pool;
    struct kit k;
    struct want a, b, c, d;

    (void)state;
    kit_init(&k, own_server());
    mo_upstream_pool_init(&pool, 2);
    mo_upstream_join_pool(k.u, &pool);
    want_as(&k, &a, "a");
    want_as(&k, &b, "b");
    want_as(&k, &c, "c");
    kit_settle(&k);
    assert_int_equal(k.dials, 2);
    assert_int_equal(c.ready, 1);
    assert_int_equal(c.why.code, MO_EBUSY);
    assert_int_equal(kit_status(&k).fails, 0);
    assert_int_equal(kit_status(&k).retry_ms, 0);

    let_go(&b); /* idle: it makes room, for one */
    k.slow_close = true;
    want_as(&k, &c, "c");
    want_as(&k, &d, "d");
    kit_settle(&k);
    assert_int_equal(c.ready, 0);
    assert_int_equal(d.why.code, MO_EBUSY);
    assert_int_equal(pool.running, 2);
    assert_int_equal(k.dials, 2);
    kit_release(&k);
    kit_settle(&k);
    assert_int_equal(k.losts, 1);
    assert_int_equal(c.ready, 1);
    assert_non_null(c.c);
    assert_int_equal(k.dials, 3);
    assert_int_equal(pool.running, 2);
    let_go(&a);
    let_go(&c);
    kit_fini(&k);
    assert_int_equal(pool.running + pool.closing + pool.queued, 0);
}

/* The limit of one server, whatever the pool allows; the oldest goes first. */
static void test_room_of_one(void **state)
{
    struct mo_gw_server s = own_server();
    static struct want v[MO_UPSTREAM_CHILDREN_MAX + 1];
    struct mo_upstream_pool pool;
    struct kit k;
    char who[16];

    (void)state;
    kit_init(&k, s);
    mo_upstream_pool_init(&pool, 1000);
    mo_upstream_join_pool(k.u, &pool);
    k.mood = NO_DIAL; /* 128 links would be a lot: they end at once */
    for (int i = 0; i <= MO_UPSTREAM_CHILDREN_MAX; i++) {
        (void)snprintf(who, sizeof(who), "s%d", i);
        want_as(&k, &v[i], who);
    }
    assert_int_equal(pool.running, MO_UPSTREAM_CHILDREN_MAX);
    kit_settle(&k);
    for (int i = 0; i < MO_UPSTREAM_CHILDREN_MAX; i++)
        assert_int_equal(v[i].why.code, MO_EPOLICY);
    assert_int_equal(v[MO_UPSTREAM_CHILDREN_MAX].why.code, MO_EBUSY);
    assert_int_equal(pool.running, 0);
    kit_fini(&k);
}

/* Two servers in one pool: a place that one frees goes to the other. */
static void test_room_of_two(void **state)
{
    struct mo_gw_server s = kit_server();
    struct mo_upstream_pool pool;
    struct kit k;
    struct want a, b;
    struct mo_upstream *first, *second;
    struct mo_err e;

    (void)state;
    kit_init(&k, s);
    first = k.u;
    second = mo_upstream_new(&k.o, &s, &kit_cb, &k, &e);
    mo_upstream_pool_init(&pool, 1);
    mo_upstream_join_pool(first, &pool);
    mo_upstream_join_pool(second, &pool);
    want_now(&k, &a);
    k.u = second;
    want(&k, &b);
    kit_settle(&k);
    assert_int_equal(b.why.code, MO_EBUSY);
    let_go(&a);
    want(&k, &b);
    kit_settle(&k);
    assert_non_null(b.c);
    assert_int_equal(first->count[CH_OPEN], 0);
    assert_int_equal(pool.running, 1);
    let_go(&b);
    k.u = first;
    mo_upstream_close(second, kit_gone, &k);
    assert_true(mo_loop_until(k.l, is_gone, &k, LONG));
    k.gone = 0;
    kit_fini(&k);
}

/* --- close in every state ------------------------------------------------ */

/* States of a request when it is cancelled. */
enum moment {
    WANTED,   /* the loop has not turned */
    DIALLING, /* the link is not there yet */
    STARTING, /* initialize is not answered */
    QUEUED,   /* waits for a place */
    AWAITED,  /* another instance is being started for it */
    ON_WAY,   /* granted, not delivered */
    REFUSED,  /* refused, not delivered */
    GRANTED,  /* granted */
    CALLING,  /* and uses it */
    LOST,     /* its child was lost */
    STOPPING, /* its child is closing */
    MOMENTS,
};

struct scene {
    struct kit k;
    struct want a, b; /* b: the request under test */
};

static void want_b(struct scene *s)
{
    want_as(&s->k, &s->b, "b");
}

static void get_a(struct scene *s, const char *who)
{
    want_as(&s->k, &s->a, who);
    kit_settle(&s->k);
    assert_non_null(s->a.c);
}

static void reach_waiting(struct scene *s, enum moment m)
{
    struct kit *k = &s->k;

    k->late_dial = m == DIALLING;
    if (m == STARTING)
        k->mood = HANG;
    if (m == QUEUED) {
        get_a(s, "b");
        k->slow_close = true;
        mo_upstream_child_close(s->a.c, MO_ECANCELED, "x");
        let_go(&s->a);
    }
    if (m == AWAITED) {
        get_a(s, "a");
        k->mood = HANG;
    }
    want_b(s);
    if (m != WANTED)
        kit_settle(k);
}

static void reach_decided(struct scene *s, enum moment m)
{
    struct kit *k = &s->k;

    if (m == REFUSED)
        k->mood = DIE;
    want_b(s);
    kit_settle(k);
    if (m == ON_WAY || m == REFUSED) {
        if (m == ON_WAY)
            let_go(&s->b);
        want_b(s);
    }
    if (m == CALLING)
        assert_non_null(kit_call(k, s->b.c, "hang"));
    if (m == LOST)
        assert_non_null(kit_call(k, s->b.c, "die"));
    if (m == STOPPING) {
        k->slow_close = true;
        mo_upstream_child_close(s->b.c, MO_ECANCELED, "x");
    }
    if (m >= GRANTED)
        kit_settle(k);
}

static void reach(struct scene *s, enum moment m, bool own)
{
    struct mo_gw_server sv = own ? own_server() : kit_server();

    memset(s, 0, sizeof(*s));
    sv.instances = m == AWAITED ? 2 : 1;
    kit_init(&s->k, sv);
    if (m <= AWAITED)
        reach_waiting(s, m);
    else
        reach_decided(s, m);
    assert_int_equal(s->b.ready, m >= GRANTED);
}

/* Holders release their child later. */
static void leave(struct scene *s)
{
    if (s->a.c)
        let_go(&s->a);
    if (s->b.c)
        let_go(&s->b);
}

static void test_unwant(void **state)
{
    (void)state;
    for (int i = 0; i < 2 * MOMENTS; i++) {
        enum moment m = (enum moment)(i / 2);
        struct scene s;

        if (m == AWAITED && i % 2)
            continue; /* a session has but one */
        reach(&s, m, i % 2);
        mo_upstream_cancel_request(&s.b.w);
        mo_upstream_cancel_request(&s.b.w);
        kit_release(&s.k);
        kit_settle(&s.k);
        assert_int_equal(s.b.ready, m >= GRANTED);
        assert_int_equal(kit_status(&s.k).waiting, 0);
        leave(&s);
        assert_int_equal(kit_status(&s.k).calls, 0);
        kit_fini(&s.k);
    }
}

static void test_close(void **state)
{
    (void)state;
    for (int i = 0; i < 2 * MOMENTS; i++) {
        enum moment m = (enum moment)(i / 2);
        struct scene s;
        struct want late;

        if (m == AWAITED && i % 2)
            continue;
        reach(&s, m, i % 2);
        mo_upstream_close(s.k.u, kit_gone, &s.k);
        want_as(&s.k, &late, "late");
        assert_int_equal(s.k.gone, 0);
        kit_release(&s.k);
        kit_settle(&s.k);
        assert_int_equal(s.k.gone, 1);
        assert_int_equal(s.b.ready, 1);
        assert_int_equal(late.ready, 1);
        assert_int_equal(late.why.code, MO_ECLOSED);
        if (m < GRANTED && m != REFUSED)
            assert_int_equal(s.b.why.code, MO_ECLOSED);
        if (m == CALLING)
            assert_int_equal(s.k.done, 1);
        if (s.b.c)
            assert_null(mo_child_conn(s.b.c));
        if (s.b.c)
            mo_child_report(s.b.c, true); /* harmless */
        leave(&s);
        s.k.u = NULL;
        kit_fini(&s.k);
    }
}

/* The same, when it is closed from inside a callback. */
static void close_ready(struct mo_child_request *w, struct mo_child *c,
                        const struct mo_err *why)
{
    struct want *v = mo_container_of(w, struct want, w);

    (void)why;
    v->ready++;
    if (!v->k->u->closing)
        mo_upstream_close(v->k->u, kit_gone, v->k);
    if (c)
        mo_child_release(c);
}

static void test_close_when_told(void **state)
{
    static const enum mood moods[] = {FINE, DIE};
    struct kit k;
    struct want v[5];

    (void)state;
    for (int i = 0; i < 4; i++) {
        kit_init(&k, i % 2 ? own_server() : kit_server());
        k.mood = moods[i / 2];
        for (int n = 0; n < 5; n++) {
            want(&k, &v[n]);
            v[n].w.ready = close_ready;
        }
        kit_settle(&k);
        assert_int_equal(k.gone, 1);
        for (int n = 0; n < 5; n++)
            assert_int_equal(v[n].ready, 1);
        k.u = NULL;
        kit_fini(&k);
    }
}

/* --- any order ----------------------------------------------------------- */

#define SLOTS 12

struct mess {
    struct kit k;
    struct mo_upstream_pool pool;
    struct want v[SLOTS];
    bool used[SLOTS]; /* requested, and not yet released or cancelled */
    uint64_t dice;
};

static unsigned roll(struct mess *m, unsigned sides)
{
    m->dice = m->dice * 6364136223846793005u + 1442695040888963407u;
    return (unsigned)(m->dice >> 33) % sides;
}

static void check_mess(const struct mess *m)
{
    unsigned running = 0, count[CH_STATES] = {0};

    mo_list_each (it, &m->k.u->children) {
        const struct mo_child *c = mo_container_of(it, struct mo_child, node);

        count[c->state]++;
        running += c->state >= CH_STARTING && c->state <= CH_CLOSING;
        assert_true((c->conn != NULL) ==
                    (c->state >= CH_STARTING && c->state <= CH_CLOSING));
        assert_true(mo_list_empty(&c->idle_node) ==
                    (c->state != CH_OPEN || c->calls > 0));
        assert_true(mo_list_empty(&c->queue_node) == (c->state != CH_NEW));
    }
    assert_memory_equal(count, m->k.u->count, sizeof(count));
    assert_int_equal(running, m->pool.running);
    assert_true(m->pool.running <= m->pool.max);
    assert_int_equal(m->pool.closing, count[CH_CLOSING]);
    assert_int_equal(m->pool.queued, count[CH_NEW]);
}

/* One random step: request, cancel, use or release. */
static void step_one(struct mess *m)
{
    static const char *const whos[] = {"a", "b", "c", "d", "e"};
    unsigned i = roll(m, SLOTS);
    struct want *v = &m->v[i];

    if (!m->used[i]) {
        want_as(&m->k, v, whos[roll(m, MO_COUNT(whos))]);
        m->used[i] = true;
    } else if (!v->ready) {
        mo_upstream_cancel_request(&v->w);
        m->used[i] = false;
    } else if (!v->c) {
        m->used[i] = false;
    } else if (roll(m, 4) == 0 && mo_child_conn(v->c)) {
        (void)kit_call(&m->k, v->c, roll(m, 4) ? "echo" : "die");
    } else {
        if (roll(m, 2))
            mo_child_report(v->c, roll(m, 3) == 0);
        let_go(v);
        m->used[i] = false;
    }
}

static void step(struct mess *m)
{
    struct kit *k = &m->k;

    switch (roll(m, 11)) {
    case 0:
        k->mood = roll(m, 3) ? FINE : (enum mood)roll(m, HANG + 1);
        break;
    case 1:
        k->slow_close = roll(m, 2);
        break;
    case 2:
        kit_release(k);
        break;
    case 3:
        mo_upstream_session_gone(k->u, MO_SPAN("a"));
        break;
    case 4:
        k->u->backoff.until = k->u->breaker.until = 0;
        break;
    default:
        step_one(m);
    }
}

static int play(uint64_t seed, struct mo_gw_server s)
{
    static struct mess m;

    memset(&m, 0, sizeof(m));
    m.dice = seed;
    s.stop_ms = roll(&m, 3);
    kit_init(&m.k, s);
    mo_upstream_pool_init(&m.pool, 1 + roll(&m, 4));
    mo_upstream_join_pool(m.k.u, &m.pool);
    for (int i = 0; i < 400; i++) {
        step(&m);
        check_mess(&m);
        if (roll(&m, 3) == 0)
            kit_settle(&m.k);
    }
    mo_upstream_close(m.k.u, kit_gone, &m.k);
    kit_release(&m.k);
    kit_settle(&m.k);
    for (int i = 0; i < SLOTS; i++) {
        if (!m.used[i])
            continue;
        assert_int_equal(m.v[i].ready, 1);
        if (m.v[i].c)
            let_go(&m.v[i]);
    }
    m.k.u = NULL;
    kit_fini(&m.k);
    assert_int_equal(m.pool.running + m.pool.closing + m.pool.queued, 0);
    return m.k.dials;
}

static void test_any_order(void **state)
{
    struct mo_gw_server s = kit_server();
    int dials = 0;

    (void)state;
    for (uint64_t seed = 1; seed <= 60; seed++) {
        s.per_session = seed % 2;
        s.instances = (unsigned)(seed % 4);
        dials += play(seed, s);
    }
    assert_true(dials > 600); /* the run was not empty */
}

/* --- without memory ------------------------------------------------------ */

static bool all_ready(void *ctx)
{
    struct want *v = ctx;

    return v[0].ready && v[1].ready && v[2].ready;
}

static void tortured(void *ctx)
{
    struct mo_gw_server s = *(const struct mo_gw_server *)ctx;
    struct kit k;
    struct want v[3];

    if (!kit_try(&k, &s))
        return;
    for (int i = 0; i < 3; i++)
        want_as(&k, &v[i], i ? "x" : "y");
    assert_true(mo_loop_until(k.l, all_ready, v, LONG));
    for (int i = 0; i < 3; i++) {
        assert_int_equal(v[i].ready, 1);
        if (v[i].c && mo_child_conn(v[i].c))
            (void)kit_call(&k, v[i].c, i ? "die" : "echo");
    }
    kit_settle(&k);
    for (int i = 0; i < 3; i++) {
        if (v[i].c)
            let_go(&v[i]);
    }
    want_as(&k, &v[0], "y");
    kit_settle(&k);
    if (v[0].c)
        let_go(&v[0]);
    kit_fini(&k);
}

static void test_torture(void **state)
{
    struct mo_gw_server s = {.name = "srv", .prefix = "p"};

    (void)state;
    torture(tortured, &s);
    s.per_session = true;
    torture(tortured, &s);
    s.per_session = false;
    s.instances = 2;
    s.mode = MO_CONN_AUTO;
    torture(tortured, &s);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_per_session),
        cmocka_unit_test(test_session_comes_back),
        cmocka_unit_test(test_session_gone_early),
        cmocka_unit_test(test_pause_of_all_sessions),
        cmocka_unit_test(test_room),
        cmocka_unit_test(test_room_of_one),
        cmocka_unit_test(test_room_of_two),
        cmocka_unit_test(test_unwant),
        cmocka_unit_test(test_close),
        cmocka_unit_test(test_close_when_told),
        cmocka_unit_test(test_any_order),
        cmocka_unit_test(test_torture),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
