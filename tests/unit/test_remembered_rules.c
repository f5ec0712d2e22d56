/* Remembered rules: they match exactly the tool and arguments they name. */
#include "policy/remembered_rules.h"

#include <sys/wait.h>
#include <unistd.h>

#include "base/file.h"
#include "mo_test.h"

static char dir[] = "/tmp/mo-rules-XXXXXX";
static char path[64];

static struct mo_remembered_rules *must_open(void)
{
    struct mo_remembered_rules *a = NULL;
    struct mo_err e;

    if (mo_remembered_rules_open(dir, &a, &e) < 0)
        fail_msg("%s", e.msg);
    return a;
}

static int add(struct mo_remembered_rules *a, const char *server,
               const char *name, enum mo_action action, const char *conditions,
               struct mo_err *e)
{
    struct mo_remembered_rule_wish w = {.server = mo_span_cstr(server),
                                        .tool = mo_span_cstr(name),
                                        .action = action,
                                        .conditions = mo_span_cstr(conditions),
                                        .who = "me"};
    char id[MO_REMEMBERED_RULES_ID_MAX];

    return mo_remembered_rules_add(a, &w, id, e);
}

static enum mo_action ask(struct mo_remembered_rules *a, const char *server,
                          const char *name, const char *args)
{
    const struct mo_rules *all = mo_remembered_rules_all(a);
    struct mo_subject s = {.server = mo_span_cstr(server),
                           .tool = mo_span_cstr(name)};
    struct mo_json_doc doc;

    assert_int_equal(mo_json_parse(mo_span_cstr(args), 0, &doc, NULL), 0);
    s.args = doc.root;
    return mo_rules_judge(NULL, &all, 1, MO_ACTION_ASK, &s).action;
}

static void test_exact(void **state)
{
    static const struct {
        const char *server, *tool, *args;
        enum mo_action action;
    } rows[] = {
        {"s", "read", "{}", MO_ACTION_ALLOW},
        {"s", "rea", "{}", MO_ACTION_ASK},
        {"s", "reads", "{}", MO_ACTION_ASK},
        {"t", "read", "{}", MO_ACTION_ASK},
        {"s", "a*b", "{}", MO_ACTION_ALLOW},
        {"s", "axb", "{}", MO_ACTION_ASK},
        {"s", "a|b", "{}", MO_ACTION_DENY},
        {"s", "a", "{}", MO_ACTION_ASK},
        {"s", "write", "{\"path\":\"docs/x\"}", MO_ACTION_ALLOW},
        {"s", "write", "{\"path\":\"src/x\"}", MO_ACTION_ASK},
        {"s", "write", "{}", MO_ACTION_ASK},
    };
    struct mo_remembered_rules *a = must_open();
    struct mo_err e;

    (void)state;
    assert_int_equal(add(a, "s", "read", MO_ACTION_ALLOW, "", &e), 0);
    assert_int_equal(add(a, "s", "a*b", MO_ACTION_ALLOW, "", &e), 0);
    assert_int_equal(add(a, "s", "a|b", MO_ACTION_DENY, "", &e), 0);
    assert_int_equal(
        add(a, "s", "write", MO_ACTION_ALLOW, "{\"path\":\"docs/**\"}", &e), 0);
    for (int day = 0; day < 2; day++) {
        for (size_t i = 0; i < MO_COUNT(rows); i++)
            check_row(rows[i].tool, ask(a, rows[i].server, rows[i].tool,
                                        rows[i].args) == rows[i].action);
        mo_remembered_rules_close(a);
        a = must_open();
    }
    mo_remembered_rules_close(a);
    (void)unlink(path);
}

static void test_refused(void **state)
{
    static const struct {
        const char *name, *conditions;
    } rows[] = {
        {"a number", "{\"n\":5}"},
        {"no object", "[\"x\"]"},
        {"no number", "{\"n\":\"> x\"}"},
        {"no path", "{\"\":\"x\"}"},
    };
    struct mo_remembered_rules *a = must_open();
    struct mo_err e;

    (void)state;
    for (size_t i = 0; i < MO_COUNT(rows); i++)
        check_row(rows[i].name, add(a, "s", "t", MO_ACTION_ALLOW,
                                    rows[i].conditions, &e) < 0);
    assert_int_equal(add(a, "", "t", MO_ACTION_ALLOW, "", &e), MO_EINVAL);
    assert_int_equal(ask(a, "s", "t", "{}"), MO_ACTION_ASK);
    for (int i = 0; i < MO_REMEMBERED_RULES_MAX; i++)
        assert_int_equal(add(a, "s", "t", MO_ACTION_ALLOW, "", &e), 0);
    assert_int_equal(add(a, "s", "t", MO_ACTION_ALLOW, "", &e), MO_EBUSY);
    mo_remembered_rules_close(a);
    (void)unlink(path);
}

/* Two programs beside each other take nothing away from each other. */
static void test_two(void **state)
{
    struct mo_remembered_rules *a = must_open(), *b = must_open();
    struct mo_json_doc doc;
    struct mo_arena arena;
    struct mo_span id;
    struct mo_err e;

    (void)state;
    assert_int_equal(add(a, "s", "one", MO_ACTION_ALLOW, "", &e), 0);
    assert_int_equal(add(b, "s", "two", MO_ACTION_ALLOW, "", &e), 0);
    assert_int_equal(ask(b, "s", "one", "{}"), MO_ACTION_ALLOW);
    mo_arena_init(&arena, 65536);
    assert_int_equal(mo_remembered_rules_all(b)->n, 2);
    assert_int_equal(mo_json_parse(mo_remembered_rules_doc(b, 0), 0, &doc, &e),
                     0);
    assert_int_equal(mo_json_str(mo_json_get(doc.root, "id"), &arena, &id), 0);
    assert_int_equal(mo_remembered_rules_remove(b, MO_SPAN("nobody"), &e),
                     MO_ENOTFOUND);
    assert_int_equal(mo_remembered_rules_remove(b, id, &e), 0);
    assert_int_equal(ask(b, "s", "one", "{}"), MO_ACTION_ASK);
    assert_int_equal(ask(b, "s", "two", "{}"), MO_ACTION_ALLOW);
    mo_arena_fini(&arena);
    mo_remembered_rules_close(a);
    mo_remembered_rules_close(b);
    (void)unlink(path);
}

#define PROCS 4
#define EACH  16

static void add_some(int no)
{
    struct mo_remembered_rules *a = must_open();
    struct mo_err e;

    for (int i = 0; i < EACH; i++) {
        char name[32];

        (void)snprintf(name, sizeof(name), "t%d-%d", no, i);
        if (add(a, "s", name, MO_ACTION_ALLOW, "", &e) < 0)
            fail_msg("%s", e.msg);
    }
    mo_remembered_rules_close(a);
}

/* Four processes at once: every rule of each of them is in the file. */
static void test_processes(void **state)
{
    pid_t pids[PROCS];
    struct mo_remembered_rules *a = NULL;

    (void)state;
    for (int i = 0; i < PROCS; i++) {
        pids[i] = fork();
        assert_true(pids[i] >= 0);
        if (pids[i] == 0) {
            add_some(i);
            _exit(0);
        }
    }
    for (int i = 0; i < PROCS; i++) {
        int status = -1;

        assert_int_equal(waitpid(pids[i], &status, 0), pids[i]);
        assert_int_equal(status, 0);
    }
    a = must_open();
    assert_int_equal(mo_remembered_rules_all(a)->n, PROCS * EACH);
    mo_remembered_rules_close(a);
    (void)unlink(path);
}

/* The longest name that a catalogue takes, of nothing but wildcards. */
static void test_long_name(void **state)
{
    static char name[4097];
    struct mo_remembered_rules *a = must_open();
    struct mo_err e;

    (void)state;
    memset(name, '*', sizeof(name) - 1);
    if (add(a, "s", name, MO_ACTION_DENY, "", &e) < 0)
        fail_msg("%s", e.msg);
    mo_remembered_rules_close(a);
    a = must_open();
    assert_int_equal(ask(a, "s", name, "{}"), MO_ACTION_DENY);
    name[4095] = 'x';
    assert_int_equal(ask(a, "s", name, "{}"), MO_ACTION_ASK);
    mo_remembered_rules_close(a);
    (void)unlink(path);
}

static void test_file(void **state)
{
    static const struct {
        const char *name, *text;
        bool good;
    } rows[] = {
        {"empty", "{\"version\":1,\"rules\":[]}", true},
        {"cut", "{\"version\":1,\"rules\":[", false},
        {"nothing", "", false},
        {"no list", "{}", false},
        {"no server", "{\"rules\":[{\"tool\":\"t\"}]}", false},
        {"an empty tool", "{\"rules\":[{\"server\":\"s\",\"tool\":\"\"}]}",
         false},
        {"a condition of no sense",
         "{\"rules\":[{\"server\":\"s\",\"tool\":\"t\",\"args\":{\"a\":\"> "
         "x\"}}]}",
         false},
    };

    (void)state;
    for (size_t i = 0; i < MO_COUNT(rows); i++) {
        struct mo_remembered_rules *a = NULL;
        struct mo_err e = {0};
        int rc = 0;

        assert_int_equal(mo_file_replace(path, mo_span_cstr(rows[i].text), &e),
                         0);
        rc = mo_remembered_rules_open(dir, &a, &e);
        check_row(rows[i].name, (rc == 0) == rows[i].good);
        if (rc < 0)
            check_row(rows[i].name,
                      strstr(e.msg, MO_REMEMBERED_RULES_FILE) != NULL);
        else
            mo_remembered_rules_close(a);
    }
    (void)unlink(path);
}

static void some_of_it(void *ctx)
{
    struct mo_remembered_rules *a = NULL;
    struct mo_err e;

    (void)ctx;
    (void)unlink(path);
    if (mo_remembered_rules_open(dir, &a, &e) < 0)
        return;
    (void)add(a, "s", "t", MO_ACTION_ALLOW, "{\"path\":\"x\"}", &e);
    (void)mo_remembered_rules_remove(a, MO_SPAN("x"), &e);
    mo_remembered_rules_close(a);
}

static void test_memory(void **state)
{
    (void)state;
    torture(some_of_it, NULL);
    (void)unlink(path);
    mo_remembered_rules_close(NULL);
}

static int set_up(void **state)
{
    (void)state;
    if (mkdtemp(dir) == NULL)
        return -1;
    (void)snprintf(path, sizeof(path), "%s/%s", dir, MO_REMEMBERED_RULES_FILE);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    (void)unlink(path);
    return rmdir(dir);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_exact),     cmocka_unit_test(test_refused),
        cmocka_unit_test(test_two),       cmocka_unit_test(test_file),
        cmocka_unit_test(test_memory),    cmocka_unit_test(test_processes),
        cmocka_unit_test(test_long_name),
    };

    return cmocka_run_group_tests(tests, set_up, tear_down);
}
