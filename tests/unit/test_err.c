/* Errors: filling, wrapping and truncation, as err.h says. */
#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/err.h"
#include "mo_test.h"

static void fail_fills_the_box(void **s)
{
    struct mo_err e = {.sys = 7};

    (void)s;
    assert_int_equal(mo_fail(&e, MO_EPROTO, "bad %s %d", "line", 3), MO_EPROTO);
    assert_int_equal(e.code, MO_EPROTO);
    assert_int_equal(e.sys, 0);
    assert_string_equal(e.msg, "bad line 3");
}

static void an_error_can_be_an_argument(void **s)
{
    const struct mo_err *e = mo_error(MO_EBUSY, "%d calls", 3);

    (void)s;
    assert_int_equal(e->code, MO_EBUSY);
    assert_int_equal(e->sys, 0);
    assert_string_equal(e->msg, "3 calls");
}

static void fail_sys_keeps_errno(void **s)
{
    struct mo_err e;

    (void)s;
    errno = ENOENT;
    assert_int_equal(mo_fail_sys(&e, "open %s", "x"), MO_EIO);
    assert_int_equal(e.code, MO_EIO);
    assert_int_equal(e.sys, ENOENT);
    assert_string_equal(e.msg, "open x: No such file or directory");
}

static void wrap_puts_context_in_front(void **s)
{
    struct mo_err e;

    (void)s;
    mo_fail(&e, MO_ETIMEOUT, "no answer");
    assert_int_equal(mo_wrap(&e, "box %d", 4), MO_ETIMEOUT);
    assert_int_equal(mo_wrap(&e, "session"), MO_ETIMEOUT);
    assert_string_equal(e.msg, "session: box 4: no answer");
}

static void wrap_of_nothing_is_io(void **s)
{
    struct mo_err e = {.code = 0};

    (void)s;
    assert_int_equal(mo_wrap(&e, "reading"), MO_EIO);
    assert_int_equal(e.code, MO_EIO);
    assert_string_equal(e.msg, "reading");
}

/* The outermost context survives; the end is truncated. */
static void long_texts_are_cut(void **s)
{
    struct mo_err e;
    char big[1000];

    (void)s;
    memset(big, 'x', sizeof(big) - 1);
    big[sizeof(big) - 1] = '\0';
    mo_fail(&e, MO_EIO, "%s", big);
    assert_int_equal(strlen(e.msg), sizeof(e.msg) - 1);
    mo_wrap(&e, "outer");
    assert_int_equal(strlen(e.msg), sizeof(e.msg) - 1);
    assert_int_equal(strncmp(e.msg, "outer: xxx", 10), 0);
    errno = EPERM;
    mo_fail_sys(&e, "%s", big);
    assert_int_equal(e.sys, EPERM);
    assert_int_equal(strlen(e.msg), sizeof(e.msg) - 1);
}

static void null_box_is_fine(void **s)
{
    (void)s;
    assert_int_equal(mo_fail(NULL, MO_EBUSY, "x"), MO_EBUSY);
    assert_int_equal(mo_fail_sys(NULL, "x"), MO_EIO);
    assert_int_equal(mo_wrap(NULL, "x"), MO_EIO);
    mo_err_clear(NULL);
}

static void clear_empties(void **s)
{
    struct mo_err e;

    (void)s;
    mo_fail(&e, MO_EIO, "x");
    mo_err_clear(&e);
    assert_int_equal(e.code, 0);
    assert_int_equal(e.sys, 0);
    assert_string_equal(e.msg, "");
}

static void names_are_stable(void **s)
{
    static const struct {
        int code;
        const char *name;
    } rows[] = {
        {0, "ok"},
        {MO_EIO, "io"},
        {MO_ENOMEM, "no_memory"},
        {MO_ETOOBIG, "too_big"},
        {MO_EPROTO, "protocol"},
        {MO_EINVAL, "invalid"},
        {MO_ENOTFOUND, "not_found"},
        {MO_EEXISTS, "exists"},
        {MO_ETIMEOUT, "timeout"},
        {MO_ECANCELED, "canceled"},
        {MO_ECLOSED, "closed"},
        {MO_EBUSY, "busy"},
        {MO_EPOLICY, "policy"},
        {MO_EUNAVAIL, "unavailable"},
        {MO_ETLS, "tls"},
        {MO_EPATH, "path"},
        {1, "unknown"},
        {MO_EPATH - 1, "unknown"},
        {INT_MIN, "unknown"},
        {INT_MAX, "unknown"},
    };

    (void)s;
    for (size_t i = 0; i < MO_COUNT(rows); i++)
        check_row(rows[i].name,
                  strcmp(mo_err_name(rows[i].code), rows[i].name) == 0);
}

/* A child hits the bug; its stderr names the place, and it dies by SIGABRT. */
static void bug_aborts_and_says_where(void **s)
{
    char said[256] = "";
    int status, p[2];
    ssize_t n;
    pid_t pid;

    (void)s;
    assert_int_equal(pipe(p), 0);
    pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        (void)dup2(p[1], 2);
        (void)signal(SIGABRT, SIG_DFL);
        MO_BUG_ON(2 > 1);
        _exit(0);
    }
    (void)close(p[1]);
    n = read(p[0], said, sizeof(said) - 1);
    (void)close(p[0]);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(n > 0);
    assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT);
    assert_non_null(strstr(said, "BUG at "));
    assert_non_null(strstr(said, "test_err.c:"));
    assert_non_null(strstr(said, ": 2 > 1\n"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(fail_fills_the_box),
        cmocka_unit_test(an_error_can_be_an_argument),
        cmocka_unit_test(fail_sys_keeps_errno),
        cmocka_unit_test(wrap_puts_context_in_front),
        cmocka_unit_test(wrap_of_nothing_is_io),
        cmocka_unit_test(long_texts_are_cut),
        cmocka_unit_test(null_box_is_fine),
        cmocka_unit_test(clear_empties),
        cmocka_unit_test(names_are_stable),
        cmocka_unit_test(bug_aborts_and_says_where),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
