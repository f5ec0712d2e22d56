/* test_guard.c - ending children: by request, by force, by the guardian.
 *
 * The case that we are killed ourselves is in tests/it/test_kill.c. */
#include <errno.h>
#include <signal.h>

#include "proc_kit.h"

/* --- ending by request --------------------------------------------------- */

static void test_stop_polite(void **state)
{
    struct fix f;
    struct gw_child k;

    (void)state;
    fix_init(&f);
    start_role(&f, &k, "role-echo"); /* exits at EOF */
    mo_proc_stop(k.p, k.s.io);
    mo_proc_stop(k.p, k.s.io);
    assert_int_equal(k.exits, 0);
    assert_true(mo_loop_until(f.l, has_exited, &k, LONG));
    assert_int_equal(k.x.code, 0);
    mo_proc_stop(k.p, k.s.io);
    mo_proc_kill(k.p); /* both too late, both harmless */
    finish(&f, &k);
    assert_int_equal(k.exits, 1);
    fix_fini(&f);
}

/* Ignores EOF, but not SIGTERM. */
static void test_stop_term(void **state)
{
    static const char *const argv[] = {"sleep", "1000", NULL};
    struct mo_proc_opts o = {.file = "sleep",
                             .argv = argv,
                             .env = plain_env,
                             .eof_ms = 20,
                             .term_ms = LONG};
    struct mo_err e;
    struct fix f;
    struct gw_child k;

    (void)state;
    fix_init(&f);
    assert_int_equal(start(&f, &k, &o, &e), 0);
    mo_proc_stop(k.p, k.s.io);
    assert_true(mo_loop_until(f.l, has_exited, &k, LONG));
    assert_int_equal(k.x.signal, SIGTERM);
    finish(&f, &k);
    fix_fini(&f);
}

/* Ignores everything, and so does its child: gone within the required 2 s. */
static void test_stop_stubborn(void **state)
{
    uint64_t asked, took;
    pid_t pids[2];
    struct fix f;
    struct gw_child k;

    (void)state;
    fix_init(&f);
    start_role(&f, &k, "role-stubborn");
    assert_true(mo_loop_until(f.l, has_line, &k, LONG));
    assert_true(pids_of(&k, &pids[0], &pids[1]));
    assert_false(dead(pids[0]) || dead(pids[1]));
    asked = mo_now_ns();
    mo_proc_stop(k.p, k.s.io);
    assert_true(mo_loop_until(f.l, has_exited, &k, LONG));
    assert_true(mo_loop_until(f.l, both_dead, pids, LONG));
    took = mo_now_ns() - asked;
    print_message("stubborn child and grandchild gone after %u ms\n",
                  (unsigned)(took / MO_MS));
    assert_int_equal(k.x.signal, SIGKILL);
    assert_true(took < GONE_S * MO_S);
    finish(&f, &k);
    fix_fini(&f);
}

/* The leader has exited, its child holds stdout: exit is reported, EOF is not.
 * Freeing kills the rest of the group. */
static void test_leftover(void **state)
{
    pid_t pids[2];
    struct fix f;
    struct gw_child k;

    (void)state;
    fix_init(&f);
    start_role(&f, &k, "role-leave");
    assert_true(mo_loop_until(f.l, has_line, &k, LONG));
    assert_true(mo_loop_until(f.l, has_exited, &k, LONG));
    assert_true(pids_of(&k, &pids[0], &pids[1]));
    assert_int_equal(k.x.code, 0);
    assert_int_equal(k.eofs, 0);
    assert_true(dead(pids[0]));
    assert_false(dead(pids[1]));
    mo_proc_free(k.p);
    k.p = NULL;
    assert_true(mo_loop_until(f.l, has_ended, &k, LONG)); /* EOF now */
    assert_true(mo_loop_until(f.l, both_dead, pids, LONG));
    finish(&f, &k);
    fix_fini(&f);
}

/* Free at any moment; no callback after it. */
static void test_free_early(void **state)
{
    struct fix f;
    struct gw_child k;

    (void)state;
    fix_init(&f);
    for (int turns = 0; turns < 3; turns++) {
        start_role(&f, &k, "role-stubborn");
        if (turns == 1)
            assert_true(mo_loop_until(f.l, has_line, &k, LONG));
        if (turns == 2)
            mo_proc_stop(k.p, k.s.io);
        finish(&f, &k);
        assert_int_equal(k.exits, 0);
    }
    fix_fini(&f);
    assert_int_equal(k.exits, 0);
}

static void test_kill(void **state)
{
    struct fix f;
    struct gw_child k;

    (void)state;
    fix_init(&f);
    start_role(&f, &k, "role-stubborn");
    mo_proc_kill(k.p);
    mo_proc_kill(k.p);
    assert_int_equal(k.exits, 0);
    assert_true(mo_loop_until(f.l, has_exited, &k, LONG));
    assert_int_equal(k.x.signal, SIGKILL);
    finish(&f, &k);
    fix_fini(&f);
}

/* --- the guardian -------------------------------------------------------- */

struct await {
    struct mo_guard *g;
    pid_t not ;
};

static bool another(void *ctx)
{
    const struct await *a = ctx;
    pid_t pid = mo_guard_pid(a->g);

    return pid > 0 && pid != a->not ;
}

/* A killed guardian is replaced; children live on and new ones can start. */
static void test_guardian_dies(void **state)
{
    static const char *const argv[] = {"cat", NULL};
    struct await a;
    struct fix f;
    struct gw_child k, k2;

    (void)state;
    fix_init(&f);
    assert_int_equal(mo_guard_pid(f.g), 0); /* no child, no guardian */
    start_argv(&f, &k, argv, MO_PROC_ERR_NULL);
    a = (struct await){f.g, mo_guard_pid(f.g)};
    assert_true(a.not > 0);
    assert_int_equal(kill(a.not, SIGTERM), 0); /* it ignores SIGTERM */
    assert_int_equal(kill(a.not, SIGKILL), 0);
    assert_true(mo_loop_until(f.l, another, &a, LONG));
    start_argv(&f, &k2, argv, MO_PROC_ERR_NULL);
    assert_int_equal(k.exits, 0);
    finish(&f, &k);
    finish(&f, &k2);
    fix_fini(&f);
}

/* A guardian that does not read is replaced too, and gets all entries. */
static void test_guardian_stuck(void **state)
{
    static const char *const argv[] = {"true", NULL};
    struct mo_proc_opts o = {.file = "true", .argv = argv, .env = plain_env};
    struct await a;
    struct mo_err e;
    struct fix f;
    struct gw_child k, keep_it;
    int rc = 0;

    (void)state;
    fix_init(&f);
    start_role(&f, &keep_it, "role-echo");
    a = (struct await){f.g, mo_guard_pid(f.g)};
    assert_int_equal(kill(a.not, SIGSTOP), 0);
    for (int i = 0; i < 2000 && rc == 0; i++) {
        rc = start(&f, &k, &o, &e);
        if (rc == 0)
            finish(&f, &k);
    }
    assert_int_equal(rc, MO_EUNAVAIL);
    assert_non_null(strstr(e.msg, "guardian"));
    assert_true(mo_loop_until(f.l, another, &a, LONG));
    assert_int_equal(start(&f, &k, &o, &e), 0);
    finish(&f, &k);
    finish(&f, &keep_it);
    fix_fini(&f);
}

/* Stop waits for the remaining children and starts no new ones. */
static void test_guard_stop_waits(void **state)
{
    static const char *const argv[] = {"cat", NULL};
    struct mo_proc_opts o = {.file = "cat", .argv = argv, .env = plain_env};
    struct mo_err e;
    struct fix f;
    struct gw_child k, late;

    (void)state;
    fix_init(&f);
    start_argv(&f, &k, argv, MO_PROC_ERR_NULL);
    mo_guard_stop(f.g, on_gone, &f);
    assert_int_equal(start(&f, &late, &o, &e), MO_ECLOSED);
    assert_int_equal(mo_stream_write(k.s.io, MO_SPAN("still here\n")), 0);
    assert_true(mo_loop_until(f.l, has_line, &k, LONG));
    assert_int_equal(f.gone, 0);
    mo_stream_shutdown(k.s.io);
    assert_true(mo_loop_until(f.l, has_ended, &k, LONG));
    assert_int_equal(f.gone, 0); /* it exited, but was not freed */
    finish(&f, &k);
    assert_true(mo_loop_until(f.l, is_gone, &f, LONG));
    mo_loop_free(f.l);
    assert_int_equal(count_fds(), f.fds);
}

/* --- many ---------------------------------------------------------------- */

static void test_thousand(void **state)
{
    static const char *const argv[] = {"true", NULL};
    struct fix f;
    struct gw_child k;
    int fds = 0;

    (void)state;
    fix_init(&f);
    for (int i = 0; i < 1000; i++) {
        start_argv(&f, &k, argv, MO_PROC_ERR_NULL);
        assert_true(mo_loop_until(f.l, has_ended, &k, LONG));
        assert_int_equal(k.x.code, 0);
        finish(&f, &k);
        if (i == 0)
            fds = count_fds();
    }
    assert_int_equal(count_fds(), fds);
    fix_fini(&f);
}

#define TOGETHER 100

static void test_together(void **state)
{
    static struct gw_child k[TOGETHER];
    static const char *const argv[] = {"cat", NULL};
    struct fix f;

    (void)state;
    fix_init(&f);
    for (int i = 0; i < TOGETHER; i++) {
        start_argv(&f, &k[i], argv, MO_PROC_ERR_NULL);
        assert_int_equal(mo_stream_write(k[i].s.io, MO_SPAN("x\n")), 0);
    }
    for (int i = 0; i < TOGETHER; i++)
        assert_true(mo_loop_until(f.l, has_line, &k[i], LONG));
    for (int i = 0; i < TOGETHER; i++)
        mo_proc_stop(k[i].p, k[i].s.io);
    for (int i = 0; i < TOGETHER; i++) {
        assert_true(mo_loop_until(f.l, has_exited, &k[i], LONG));
        finish(&f, &k[i]);
    }
    fix_fini(&f);
}

/* Every allocation fails once; nothing may be left. */
static void life(void *ctx)
{
    static const char *const argv[] = {"cat", NULL};
    struct mo_proc_opts o = {.file = "cat",
                             .argv = argv,
                             .env = plain_env,
                             .err = MO_PROC_ERR_STREAM};
    struct fix f = {.fds = count_fds()};
    struct mo_err e;
    struct gw_child k;

    (void)ctx;
    f.l = mo_loop_new(NULL, &e);
    if (!f.l)
        return;
    f.g = mo_guard_new(f.l, &e);
    if (f.g) {
        if (start(&f, &k, &o, &e) == 0)
            finish(&f, &k);
        else
            assert_int_equal(e.sys == 0 || e.sys == ENOMEM, 1);
        mo_guard_stop(f.g, on_gone, &f);
        assert_true(mo_loop_until(f.l, is_gone, &f, LONG));
    }
    mo_loop_free(f.l);
    assert_int_equal(count_fds(), f.fds);
}

static void test_no_memory(void **state)
{
    (void)state;
    torture(life, NULL);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_stop_polite),
        cmocka_unit_test(test_stop_term),
        cmocka_unit_test(test_stop_stubborn),
        cmocka_unit_test(test_leftover),
        cmocka_unit_test(test_free_early),
        cmocka_unit_test(test_kill),
        cmocka_unit_test(test_guardian_dies),
        cmocka_unit_test(test_guardian_stuck),
        cmocka_unit_test(test_guard_stop_waits),
        cmocka_unit_test(test_thousand),
        cmocka_unit_test(test_together),
        cmocka_unit_test(test_no_memory),
    };

    play_role(argc, argv);
    return cmocka_run_group_tests(tests, warm_up, NULL);
}
