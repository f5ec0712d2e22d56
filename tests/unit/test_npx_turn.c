/* Turns of npx: which packages a command installs, and who has to wait. */
#include "connect/npx_turn.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/mem.h"
#include "codec/sha256.h"
#include "mo_test.h"

static char dir[] = "/tmp/mo-npx-XXXXXX";

static void test_packages(void **state)
{
    static const struct {
        const char *name, *command, *args[6], *want;
    } rows[] = {
        {"plain", "npx", {"a"}, "a\n"},
        {"with a path", "/usr/bin/npx", {"-y", "a@1"}, "a@1\n"},
        {"arguments of the server do not count",
         "npx",
         {"-y", "@x/a", "/data", "-p", "b"},
         "@x/a\n"},
        {"a package and its command", "npx", {"-p", "a", "b"}, "a\n"},
        {"two packages",
         "npx",
         {"--package", "a", "--package=b", "c"},
         "a\nb\n"},
        {"npm exec", "npm", {"exec", "--", "a"}, "a\n"},
        {"npm x", "npm", {"x", "-y", "a"}, "a\n"},
        {"another npm", "npm", {"run", "a"}, ""},
        {"npm alone", "npm", {NULL}, ""},
        {"another command", "node", {"npx", "a"}, ""},
        {"no package", "npx", {"--version"}, ""},
        {"an option without its value", "npx", {"-p"}, ""},
    };

    (void)state;
    for (size_t i = 0; i < MO_COUNT(rows); i++) {
        mo_autobuf struct mo_buf b = {.max = 256};
        size_t n = 0;

        while (n < MO_COUNT(rows[i].args) && rows[i].args[n])
            n++;
        check_row(rows[i].name,
                  mo_npx_turn_packages(rows[i].command, rows[i].args, n, &b) ==
                      (rows[i].want[0] != '\0'));
        check_row(rows[i].name, mo_span_is(mo_buf_view(&b), rows[i].want));
    }
}

static void test_turns(void **state)
{
    int first = 0, second = 0, other = 0;

    (void)state;
    assert_int_equal(mo_npx_turn_take(dir, MO_SPAN("a\n"), &first), 0);
    assert_true(first > 0);
    assert_int_equal(mo_npx_turn_take(dir, MO_SPAN("a\n"), &second), MO_EBUSY);
    assert_int_equal(second, 0);
    assert_int_equal(mo_npx_turn_take(dir, MO_SPAN("b\n"), &other), 0);
    assert_true(other > 0);
    mo_close_fd(&first);
    assert_int_equal(mo_npx_turn_take(dir, MO_SPAN("a\n"), &second), 0);
    assert_true(second > 0);
    mo_close_fd(&second);
    mo_close_fd(&other);
}

static void test_no_directory(void **state)
{
    int fd = 7;

    (void)state;
    assert_int_equal(mo_npx_turn_take("/proc/none", MO_SPAN("a\n"), &fd), 0);
    assert_int_equal(fd, 0);
}

static int make_dir(void **state)
{
    (void)state;
    return mkdtemp(dir) ? 0 : -1;
}

/* Two lock files are all there is. */
static int remove_dir(void **state)
{
    static const char *const packages[] = {"a\n", "b\n"};
    char path[160], sum[MO_SHA256_HEX + 1];

    (void)state;
    for (size_t i = 0; i < MO_COUNT(packages); i++) {
        mo_sha256_hex(mo_span_cstr(packages[i]), sum);
        (void)snprintf(path, sizeof(path), "%s/" MO_NPX_TURN_DIR "/%s", dir,
                       sum);
        (void)unlink(path);
    }
    (void)snprintf(path, sizeof(path), "%s/" MO_NPX_TURN_DIR, dir);
    (void)rmdir(path);
    return rmdir(dir);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_packages),
        cmocka_unit_test(test_turns),
        cmocka_unit_test(test_no_directory),
    };

    return cmocka_run_group_tests(tests, make_dir, remove_dir);
}
