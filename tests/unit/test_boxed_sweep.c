/* Whose box it is: the living are known, and strangers are left alone. */
#include "connect/boxed_sweep.h"

#include <sys/wait.h>
#include <unistd.h>

#include "mo_test.h"

static void test_names(void **state)
{
    static const struct {
        const char *name, *instance;
    } alive[] = {
        {"empty", ""},
        {"of a session's server", "i6f2a"},
        {"another machine", "gw.1.1.1"},
        {"words", "gw.a.b.c"},
        {"too few", "gw.1.2"},
        {"too many", "gw.1.2.3.4"},
    };
    char us[MO_BOXED_NAME_MAX], again[MO_BOXED_NAME_MAX];

    (void)state;
    mo_boxed_link_name(us);
    mo_boxed_link_name(again);
    assert_string_equal(us, again);
    assert_false(mo_boxed_link_dead(mo_span_cstr(us)));
    for (size_t i = 0; i < MO_COUNT(alive); i++)
        check_row(alive[i].name,
                  !mo_boxed_link_dead(mo_span_cstr(alive[i].instance)));
}

/* A child tells us its name and dies. */
static void test_dead(void **state)
{
    char name[MO_BOXED_NAME_MAX] = "";
    int ends[2], status = 0;
    pid_t pid;

    (void)state;
    assert_int_equal(pipe(ends), 0);
    pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        mo_boxed_link_name(name);
        _exit(write(ends[1], name, sizeof(name)) != sizeof(name));
    }
    assert_int_equal(read(ends[0], name, sizeof(name)), sizeof(name));
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(status, 0);
    assert_true(mo_boxed_link_dead(mo_span_cstr(name)));
    (void)close(ends[0]);
    (void)close(ends[1]);
}

/* The number was given out again: not the one that is meant. */
static void test_another(void **state)
{
    char us[MO_BOXED_NAME_MAX];
    size_t n;

    (void)state;
    mo_boxed_link_name(us);
    n = strlen(us);
    us[n - 1] = us[n - 1] == '9' ? '1' : (char)(us[n - 1] + 1);
    assert_true(mo_boxed_link_dead(mo_span_cstr(us)));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_names),
        cmocka_unit_test(test_dead),
        cmocka_unit_test(test_another),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
