/* test_installed_files.c - which files a boxed server needs. */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "connect/installed_files.h"
#include "mo_test.h"

static char state[] = "/tmp/mo-files-XXXXXX";

static void test_files(void **ctx)
{
    static const struct {
        const char *command, *after; /* after: the state directory */
        const char *dir, *program;   /* NULL: none */
    } rows[] = {
        {"/usr/bin/node", "/servers/a/1-x/node_modules/a/i.js",
         "/servers/a/1-x", NULL},
        {"/opt/n/node", "/servers/a/1-x/i.js", "/servers/a/1-x", "/opt/n/node"},
        {"/usr2/node", "/servers/a/1-x/i.js", "/servers/a/1-x", "/usr2/node"},
        {"node", ".servers/a/1-x/i.js", ".servers/a/1-x", NULL},
        {"/usr/bin/node", "/servers/a/1-x", NULL, NULL},
        {"/usr/bin/node", "/servers/a/1-x/", NULL, NULL},
        {"/usr/bin/node", "/servers//1-x/i.js", NULL, NULL},
        {"/usr/bin/node", "/servers/../secrets/i.js", NULL, NULL},
        {"/usr/bin/node", "/servers/a/../../x/i.js", NULL, NULL},
        {"/usr/bin/node", "/serversx/a/1-x/i.js", NULL, NULL},
        {"/usr/bin/node", "/secrets/a/1-x/i.js", NULL, NULL},
        {NULL, "/servers/a/1-x/i.js", NULL, NULL},
    };

    (void)ctx;
    for (size_t i = 0; i < MO_COUNT(rows); i++) {
        mo_autoarena struct mo_arena a = {.cap = 65536};
        struct mo_config cfg = {.store = {.dir = state}};
        char path[200], want[200];
        const char *args[] = {"--flag", path};
        struct mo_config_mcp s = {.command = rows[i].command};
        const char *const *v;
        struct mo_err e;

        (void)snprintf(path, sizeof(path), "%s%s", state, rows[i].after);
        s.args.v = args;
        s.args.n = 2;
        assert_int_equal(mo_installed_files(&a, &cfg, &s, &v, &e), 0);
        if ((v != NULL) != (rows[i].dir != NULL))
            fail_msg("%s", rows[i].after);
        if (!v)
            continue;
        (void)snprintf(want, sizeof(want), "%s%s", state, rows[i].dir);
        assert_string_equal(v[0], want);
        if (rows[i].program)
            assert_string_equal(v[1], rows[i].program);
        assert_null(v[rows[i].program ? 2 : 1]);
    }
}

static int group_setup(void **ctx)
{
    (void)ctx;
    return mkdtemp(state) ? 0 : -1;
}

static int group_teardown(void **ctx)
{
    (void)ctx;
    return rmdir(state);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_files)};

    return cmocka_run_group_tests(tests, group_setup, group_teardown);
}
