/* box: the life of a box and the warm pool, with a driver made of timers. */
#include "mo_test.h"

#include "box/driver.h"

/* --- a driver that does as the test says --------------------------------- */

struct fake {
    struct mo_boxes bs;
    int refuse;            /* start returns this */
    enum mo_box_cause end; /* how a start ends; MO_BOX_STOPPED: it comes up */
    unsigned started, warmed, parked, claimed, stopped, let_go;
    bool closed;
    char claimed_for[32];
};

struct fake_box {
    struct mo_box box;
    struct mo_timer up, down;
    enum mo_box_cause cause;
    unsigned number;
};

static struct fake *fake_of(struct mo_box *b)
{
    return mo_container_of(b->bs, struct fake, bs);
}

static struct mo_loop *loop_of(struct mo_box *b)
{
    return b->bs->loop;
}

static void go_down(struct mo_box *b, enum mo_box_cause cause)
{
    struct fake_box *f = mo_container_of(b, struct fake_box, box);

    mo_timer_stop(loop_of(b), &f->up);
    f->cause = cause;
    mo_timer_start(loop_of(b), &f->down, 1);
}

static void on_down(struct mo_timer *t)
{
    struct fake_box *f = mo_container_of(t, struct fake_box, down);
    struct mo_box_end end = {.cause = f->cause, .code = -1};

    mo_box_down(&f->box, &end);
}

static void on_up(struct mo_timer *t)
{
    struct fake_box *f = mo_container_of(t, struct fake_box, up);
    struct mo_box_io io = {NULL, NULL};
    char id[16];

    snprintf(id, sizeof(id), "b%u", f->number);
    if (fake_of(&f->box)->end == MO_BOX_STOPPED)
        mo_box_up(&f->box, id, &io);
    else
        go_down(&f->box, fake_of(&f->box)->end);
}

static int fake_start(struct mo_box *b, const struct mo_box_spec *spec,
                      bool warm, struct mo_err *e)
{
    struct fake_box *f = mo_container_of(b, struct fake_box, box);
    struct fake *k = fake_of(b);

    assert_true(!warm || spec->session[0] == '\0');
    if (k->refuse < 0)
        return mo_fail(e, k->refuse, "refused");
    k->warmed += warm;
    f->number = ++k->started;
    mo_timer_init(&f->up, on_up);
    mo_timer_init(&f->down, on_down);
    mo_timer_start(b->bs->loop, &f->up, 1);
    return 0;
}

static int fake_adopt(struct mo_box *b, const char *id, const char *session,
                      struct mo_err *e)
{
    struct mo_box_spec spec = {.session = id};

    (void)session;
    return fake_start(b, &spec, false, e);
}

static void fake_stop(struct mo_box *b)
{
    fake_of(b)->stopped++;
    go_down(b, MO_BOX_STOPPED);
}

static void fake_let_go(struct mo_box *b)
{
    fake_of(b)->let_go++;
    go_down(b, MO_BOX_LET_GO);
}

static void fake_park(struct mo_box *b)
{
    fake_of(b)->parked++;
}

static void fake_claim(struct mo_box *b, const struct mo_box_spec *spec)
{
    struct fake *k = fake_of(b);

    k->claimed++;
    snprintf(k->claimed_for, sizeof(k->claimed_for), "%s", spec->session);
}

static void fake_close(struct mo_boxes *bs)
{
    struct fake *k = mo_container_of(bs, struct fake, bs);

    assert_int_equal(bs->n, 0);
    k->closed = true;
    mo_gone_fire(bs->gone);
}

static const struct mo_box_ops fake_ops = {
    .name = "fake",
    .box_size = sizeof(struct fake_box),
    .start = fake_start,
    .adopt = fake_adopt,
    .stop = fake_stop,
    .let_go = fake_let_go,
    .park = fake_park,
    .claim = fake_claim,
    .close = fake_close,
};

/* --- an owner that counts ------------------------------------------------ */

struct owner {
    struct mo_box *box;
    unsigned ready, gone;
    enum mo_box_cause cause;
    char id[MO_BOX_ID_MAX];
};

static void owner_ready(void *ctx, struct mo_box *b, const struct mo_box_io *io)
{
    struct owner *o = ctx;

    (void)io;
    assert_int_equal(o->gone, 0);
    o->ready++;
    snprintf(o->id, sizeof(o->id), "%s", mo_box_id(b));
}

static void owner_gone(void *ctx, const struct mo_box_end *end)
{
    struct owner *o = ctx;

    o->gone++;
    o->cause = end->cause;
    o->box = NULL;
}

static const struct mo_box_cb owner_cb = {owner_ready, owner_gone};

struct bench {
    struct mo_loop *loop;
    struct fake fake;
};

static void setup(struct bench *t)
{
    struct mo_err e;

    memset(t, 0, sizeof(*t));
    t->loop = mo_loop_new(NULL, &e);
    assert_non_null(t->loop);
    mo_boxes_setup(&t->fake.bs, t->loop, &fake_ops);
}

static bool is_closed(void *ctx)
{
    return ((struct fake *)ctx)->closed;
}

static void teardown(struct bench *t)
{
    mo_boxes_close(&t->fake.bs, NULL, NULL);
    assert_true(mo_loop_until(t->loop, is_closed, &t->fake, 10000));
    mo_loop_free(t->loop);
}

static struct mo_box_spec spec_for(const char *session)
{
    return (struct mo_box_spec){.limits = mo_box_limits_default,
                                .session = session};
}

static bool is_ready(void *ctx)
{
    return ((struct owner *)ctx)->ready > 0;
}

static bool is_gone(void *ctx)
{
    return ((struct owner *)ctx)->gone > 0;
}

static int begin(struct bench *t, struct owner *o, const char *session)
{
    struct mo_box_spec spec = spec_for(session);
    struct mo_err e;

    return mo_box_start(&t->fake.bs, &spec, &owner_cb, o, &o->box, &e);
}

/* --- one box ------------------------------------------------------------- */

static void test_life(void **state)
{
    struct owner o = {0};
    struct bench t;

    (void)state;
    setup(&t);
    assert_int_equal(begin(&t, &o, "s1"), 0);
    assert_int_equal(o.ready, 0);
    assert_true(mo_loop_until(t.loop, is_ready, &o, 10000));
    assert_string_equal(o.id, "b1");
    mo_box_stop(o.box);
    mo_box_stop(o.box);
    assert_int_equal(o.gone, 0);
    assert_true(mo_loop_until(t.loop, is_gone, &o, 10000));
    assert_int_equal(o.cause, MO_BOX_STOPPED);
    teardown(&t);
    assert_int_equal(o.gone, 1);
}

static void test_stop_while_starting(void **state)
{
    struct owner o = {0};
    struct bench t;

    (void)state;
    setup(&t);
    assert_int_equal(begin(&t, &o, "s1"), 0);
    mo_box_stop(o.box);
    assert_true(mo_loop_until(t.loop, is_gone, &o, 10000));
    assert_int_equal(o.ready, 0);
    teardown(&t);
}

/* The driver says "up" after it was asked to stop: nobody hears of it. */
static void test_up_too_late(void **state)
{
    struct mo_box_io io = {NULL, NULL};
    struct owner o = {0};
    struct bench t;

    (void)state;
    setup(&t);
    assert_int_equal(begin(&t, &o, "s1"), 0);
    mo_box_stop(o.box);
    mo_box_up(o.box, "late", &io);
    assert_true(mo_loop_until(t.loop, is_gone, &o, 10000));
    assert_int_equal(o.ready, 0);
    teardown(&t);
}

static void test_refused(void **state)
{
    struct owner o = {0};
    struct bench t;

    (void)state;
    setup(&t);
    t.fake.refuse = MO_EPOLICY;
    assert_int_equal(begin(&t, &o, "s1"), MO_EPOLICY);
    assert_int_equal(t.fake.bs.n, 0);
    t.fake.refuse = 0;
    t.fake.end = MO_BOX_REFUSED;
    assert_int_equal(begin(&t, &o, "s1"), 0);
    assert_true(mo_loop_until(t.loop, is_gone, &o, 10000));
    assert_int_equal(o.cause, MO_BOX_REFUSED);
    assert_int_equal(o.ready, 0);
    teardown(&t);
}

static void test_close_lets_go(void **state)
{
    struct owner ready = {0}, starting = {0};
    struct bench t;

    (void)state;
    setup(&t);
    assert_int_equal(begin(&t, &ready, "s1"), 0);
    assert_true(mo_loop_until(t.loop, is_ready, &ready, 10000));
    assert_int_equal(begin(&t, &starting, "s2"), 0);
    teardown(&t);
    assert_int_equal(ready.cause, MO_BOX_LET_GO);
    assert_int_equal(starting.cause, MO_BOX_STOPPED);
    assert_int_equal(t.fake.let_go, 1);
}

static void test_no_revival(void **state)
{
    struct mo_box_spec spec = spec_for("s1");
    struct owner o = {0};
    struct mo_err e;
    struct bench t;

    (void)state;
    setup(&t);
    assert_int_equal(
        mo_box_revive(&t.fake.bs, "b1", &spec, &owner_cb, &o, &o.box, &e),
        MO_ENOTFOUND);
    assert_int_equal(
        mo_box_adopt(&t.fake.bs, "b7", "s", &owner_cb, &o, &o.box, &e), 0);
    assert_true(mo_loop_until(t.loop, is_ready, &o, 10000));
    teardown(&t);
}

/* --- the pool ------------------------------------------------------------ */

static bool two_warm(void *ctx)
{
    return mo_boxes_warm_now(&((struct fake *)ctx)->bs) == 2;
}

static void warm(struct bench *t, unsigned n)
{
    struct mo_box_spec spec = spec_for("");
    struct mo_err e;

    assert_int_equal(mo_boxes_warm(&t->fake.bs, &spec, n, &e), 0);
}

static void test_pool(void **state)
{
    struct owner o = {0};
    struct bench t;

    (void)state;
    setup(&t);
    warm(&t, 2);
    assert_true(mo_loop_until(t.loop, two_warm, &t.fake, 10000));
    assert_int_equal(t.fake.parked, 2);
    assert_int_equal(begin(&t, &o, "s1"), 0);
    assert_int_equal(o.ready, 0);
    assert_true(mo_loop_until(t.loop, is_ready, &o, 10000));
    assert_string_equal(o.id, "b1");
    assert_string_equal(t.fake.claimed_for, "s1");
    assert_true(mo_loop_until(t.loop, two_warm, &t.fake, 10000));
    assert_int_equal(t.fake.started, 3);
    mo_box_stop(o.box);
    assert_true(mo_loop_until(t.loop, is_gone, &o, 10000));
    assert_int_equal(mo_boxes_warm_now(&t.fake.bs), 2);
    warm(&t, 0);
    assert_int_equal(mo_boxes_warm_now(&t.fake.bs), 0);
    teardown(&t);
}

/* Taken and stopped before it was handed over: on_gone, no on_ready. */
static void test_claim_then_stop(void **state)
{
    struct owner o = {0};
    struct bench t;

    (void)state;
    setup(&t);
    warm(&t, 2);
    assert_true(mo_loop_until(t.loop, two_warm, &t.fake, 10000));
    assert_int_equal(begin(&t, &o, "s1"), 0);
    mo_box_stop(o.box);
    assert_true(mo_loop_until(t.loop, is_gone, &o, 10000));
    assert_int_equal(o.ready, 0);
    teardown(&t);
}

static void test_other_spec_is_cold(void **state)
{
    struct mo_box_spec spec = spec_for("s1");
    struct owner o = {0};
    struct mo_err e;
    struct bench t;

    (void)state;
    setup(&t);
    warm(&t, 2);
    assert_true(mo_loop_until(t.loop, two_warm, &t.fake, 10000));
    spec.limits.pids = 64;
    assert_int_equal(mo_box_start(&t.fake.bs, &spec, &owner_cb, &o, &o.box, &e),
                     0);
    assert_true(mo_loop_until(t.loop, is_ready, &o, 10000));
    assert_int_equal(t.fake.claimed, 0);
    assert_int_equal(mo_boxes_warm_now(&t.fake.bs), 2);
    teardown(&t);
}

static bool tried_twice(void *ctx)
{
    return ((struct fake *)ctx)->started >= 2;
}

/* Boxes that die while starting are tried again, later. */
static void test_pool_backs_off(void **state)
{
    struct bench t;

    (void)state;
    setup(&t);
    t.fake.end = MO_BOX_ENGINE_GONE;
    warm(&t, 2);
    assert_true(mo_loop_until(t.loop, tried_twice, &t.fake, 10000));
    assert_true(t.fake.bs.pool.failures > 0);
    t.fake.end = MO_BOX_STOPPED;
    assert_true(mo_loop_until(t.loop, two_warm, &t.fake, 20000));
    assert_int_equal(t.fake.bs.pool.failures, 0);
    teardown(&t);
}

static void test_warm_one_dies(void **state)
{
    struct mo_box *b = NULL;
    struct bench t;

    (void)state;
    setup(&t);
    warm(&t, 2);
    assert_true(mo_loop_until(t.loop, two_warm, &t.fake, 10000));
    b = mo_list_first(&t.fake.bs.pool.ready, struct mo_box, warm);
    go_down(b, MO_BOX_KILLED);
    assert_true(mo_loop_until(t.loop, tried_twice, &t.fake, 10000));
    assert_true(mo_loop_until(t.loop, two_warm, &t.fake, 20000));
    teardown(&t);
}

/* --- specs --------------------------------------------------------------- */

static const char *const one_word[] = {"/bin/sh", NULL};
static const char *const no_word[] = {NULL};
static const char *const good_env[] = {"A=1", "B=", NULL};
static const char *const bad_env[] = {"A=1", "=2", NULL};

static void test_spec_check(void **state)
{
    static const struct {
        const char *name;
        size_t at;
        uint64_t value;
        int rc;
    } rows[] = {
        {"little memory", offsetof(struct mo_box_limits, memory), 1, MO_EINVAL},
        {"enough", offsetof(struct mo_box_limits, memory), 16 << 20, 0},
        {"no workspace", offsetof(struct mo_box_limits, workspace), 0,
         MO_EINVAL},
        {"no file", offsetof(struct mo_box_limits, file_size), 0, MO_EINVAL},
    };
    struct mo_err e;

    (void)state;
    for (size_t i = 0; i < MO_COUNT(rows); i++) {
        struct mo_box_spec s = spec_for("s");

        memcpy((char *)&s.limits + rows[i].at, &rows[i].value,
               sizeof(rows[i].value));
        check_row(rows[i].name, mo_box_spec_check(&s, &e) == rows[i].rc);
    }
    struct mo_box_spec s = spec_for("s");

    s.argv = no_word;
    assert_int_equal(mo_box_spec_check(&s, &e), MO_EINVAL);
    s.argv = one_word;
    s.env = bad_env;
    assert_int_equal(mo_box_spec_check(&s, &e), MO_EINVAL);
    s.env = good_env;
    assert_int_equal(mo_box_spec_check(&s, &e), 0);
    s.network = "{\"allow\":[\"a.org\"]}";
    assert_int_equal(mo_box_spec_check(&s, &e), 0);
    s.network = "{\"allow\":[\"a b\"]}";
    assert_int_equal(mo_box_spec_check(&s, &e), MO_EINVAL);
}

/* Whatever differs in the promise differs in the digest; labels do not. */
static void test_spec_digest(void **state)
{
    struct mo_box_spec v[7];
    char sum[7][MO_BOX_DIGEST_MAX];

    (void)state;
    for (size_t i = 0; i < MO_COUNT(v); i++)
        v[i] = spec_for("s");
    v[1].limits.pids++;
    v[2].image = "x";
    v[3].argv = one_word;
    v[4].env = one_word;
    v[5].limits.memory++;
    v[6].network = "{}";
    for (size_t i = 0; i < MO_COUNT(v); i++) {
        mo_box_spec_digest(&v[i], sum[i]);
        assert_int_equal(strlen(sum[i]), 64);
        for (size_t j = 0; j <= i; j++) {
            bool same = strcmp(sum[i], sum[j]) == 0;

            assert_true(same == (i == j));
            assert_true(same == mo_box_spec_same(&v[i], &v[j]));
        }
    }
    v[1] = spec_for("other");
    v[1].expires = 7;
    v[1].network = "";
    v[1].owner = "server";
    mo_box_spec_digest(&v[1], sum[1]);
    assert_string_equal(sum[0], sum[1]);
    assert_true(mo_box_spec_same(&v[0], &v[1]));
}

static void copy_spec(void *ctx)
{
    struct mo_box_spec s = spec_for("session"), copy;
    struct mo_arena a;

    (void)ctx;
    s.image = "image:1";
    s.network = "{}";
    s.owner = "server";
    s.argv = one_word;
    s.env = good_env;
    mo_arena_init(&a, 65536);
    if (mo_box_spec_copy(&a, &s, &copy) == 0) {
        assert_true(mo_box_spec_same(&s, &copy));
        assert_ptr_not_equal(copy.argv, s.argv);
        assert_string_equal(copy.session, "session");
    }
    mo_arena_fini(&a);
}

static void test_spec_copy(void **state)
{
    (void)state;
    torture(copy_spec, NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_life),
        cmocka_unit_test(test_stop_while_starting),
        cmocka_unit_test(test_up_too_late),
        cmocka_unit_test(test_refused),
        cmocka_unit_test(test_close_lets_go),
        cmocka_unit_test(test_no_revival),
        cmocka_unit_test(test_pool),
        cmocka_unit_test(test_claim_then_stop),
        cmocka_unit_test(test_other_spec_is_cold),
        cmocka_unit_test(test_pool_backs_off),
        cmocka_unit_test(test_warm_one_dies),
        cmocka_unit_test(test_spec_check),
        cmocka_unit_test(test_spec_digest),
        cmocka_unit_test(test_spec_copy),
    };

    return cmocka_run_group_tests_name("box", tests, NULL, NULL);
}
