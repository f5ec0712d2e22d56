/* Tool pins: stored when first seen, compared afterwards. */
#include "policy/tool_pins.h"

#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/file.h"
#include "base/log.h"
#include "mo_test.h"

static char dir[] = "/tmp/mo-pins-XXXXXX";
static char path[64];

static struct mo_tool tool(const char *server, const char *name,
                           const char *description)
{
    struct mo_tool t = {
        .def = {.server = mo_span_cstr(server),
                .name = mo_span_cstr(name),
                .description = mo_span_cstr(description),
                .schema = MO_SPAN("{\"type\":\"object\"}")},
    };

    mo_exact_tool(&t.def, t.digest);
    return t;
}

static struct mo_tool_pins *must_open(void)
{
    struct mo_tool_pins *p = NULL;
    struct mo_err e;

    if (mo_tool_pins_open(NULL, dir, &p, &e) < 0)
        fail_msg("%s", e.msg);
    return p;
}

static bool look(struct mo_tool_pins *p, const struct mo_tool *t, char *was,
                 size_t cap)
{
    struct mo_buf before;
    bool same = false;

    mo_buf_init(&before, 65536);
    same = mo_tool_pins_look(p, t, &before);
    if (was)
        (void)snprintf(was, cap, "%s", mo_buf_cstr(&before));
    mo_buf_fini(&before);
    return same;
}

static void flush(struct mo_tool_pins *p)
{
    mo_tool_pins_flush(p);
}

static void test_change(void **state)
{
    struct mo_tool a = tool("s", "t", "one"), b = tool("s", "t", "two");
    struct mo_tool other = tool("s2", "t", "two"), split = tool("st", "", "x");
    struct mo_tool_pins *p = must_open();
    char was[512];

    (void)state;
    assert_true(look(p, &a, NULL, 0)); /* new: kept */
    assert_true(look(p, &a, NULL, 0));
    assert_false(look(p, &b, was, sizeof(was)));
    assert_non_null(strstr(was, "\"description\":\"one\""));
    assert_true(look(p, &other, NULL, 0)); /* of another server */
    assert_true(look(p, &split, NULL, 0)); /* "st" and "" are not "s", "t" */
    flush(p);
    mo_tool_pins_close(p);

    p = must_open(); /* the next day */
    assert_true(look(p, &a, NULL, 0));
    assert_false(look(p, &b, NULL, 0));
    assert_int_equal(mo_tool_pins_accept(p, &b), 0);
    assert_true(look(p, &b, NULL, 0));
    assert_false(look(p, &a, NULL, 0)); /* back is a change, too */
    flush(p);
    mo_tool_pins_close(p);

    p = must_open();
    assert_true(look(p, &b, NULL, 0));
    mo_tool_pins_close(p);
}

static void test_file(void **state)
{
    static const struct {
        const char *name, *text;
        int rc;
    } rows[] = {
        {"none", NULL, 0},
        {"empty list", "{\"version\":1,\"tools\":[]}", 0},
        {"cut", "{\"version\":1,\"tools\":[", MO_EINVAL},
        {"nothing in it", "", MO_EINVAL},
        {"no digest", "{\"tools\":[{\"server\":\"s\",\"tool\":\"t\"}]}",
         MO_EINVAL},
        {"a digest too long",
         "{\"tools\":[{\"server\":\"s\",\"tool\":\"t\",\"digest\":\""
         "0123456789012345678901234567890123456789012345678901234567890123456"
         "789\"}]}",
         MO_EINVAL},
        {"a name that is a number",
         "{\"tools\":[{\"server\":1,\"tool\":\"t\",\"digest\":\"0\"}]}",
         MO_EINVAL},
    };

    (void)state;
    for (size_t i = 0; i < MO_COUNT(rows); i++) {
        struct mo_tool_pins *p = NULL;
        struct mo_err e = {0};
        int rc = 0;

        (void)unlink(path);
        if (rows[i].text)
            assert_int_equal(
                mo_file_replace(path, mo_span_cstr(rows[i].text), &e), 0);
        rc = mo_tool_pins_open(NULL, dir, &p, &e);
        check_row(rows[i].name, rc == rows[i].rc);
        if (rc < 0)
            check_row(rows[i].name, strstr(e.msg, MO_TOOL_PINS_FILE) != NULL);
        else
            mo_tool_pins_close(p);
    }
    (void)unlink(path);
}

/* Nothing to write: no file. Nobody else may read one. */
static void test_quiet(void **state)
{
    struct mo_tool a = tool("s", "t", "one");
    struct mo_tool_pins *p = must_open();
    struct stat st;

    (void)state;
    flush(p);
    assert_int_equal(stat(path, &st), -1);
    assert_true(look(p, &a, NULL, 0));
    flush(p);
    assert_int_equal(stat(path, &st), 0);
    assert_int_equal(st.st_mode & 0777, 0600);
    mo_tool_pins_close(p);
    (void)unlink(path);
    mo_tool_pins_close(NULL);
}

static void some_of_it(void *ctx)
{
    struct mo_tool a = tool("s", "t", "one"), b = tool("s", "t", "two");
    struct mo_tool_pins *p = NULL;
    struct mo_err e;

    (void)ctx;
    if (mo_tool_pins_open(NULL, dir, &p, &e) < 0)
        return;
    (void)look(p, &a, NULL, 0);
    (void)look(p, &b, NULL, 0);
    (void)mo_tool_pins_accept(p, &b);
    flush(p);
    mo_tool_pins_close(p);
}

static void test_memory(void **state)
{
    (void)state;
    torture(some_of_it, NULL);
    (void)unlink(path);
}

/* Asking whether a tool changed keeps nothing. */
static void test_changed(void **state)
{
    static const struct {
        const char *name, *item;
        bool changed;
    } rows[] = {
        {"t",
         "{\"description\":\"one\",\"inputSchema\":{\"type\":"
         "\"object\"}}",
         false},
        {"t",
         "{\"description\":\"two\",\"inputSchema\":{\"type\":"
         "\"object\"}}",
         true},
        {"t", "{}", true},
        {"never", "{}", false},
    };
    struct mo_tool a = tool("s", "t", "one");
    struct mo_tool_pins *p = must_open();

    (void)state;
    assert_true(look(p, &a, NULL, 0));
    for (int twice = 0; twice < 2; twice++) {
        for (size_t i = 0; i < MO_COUNT(rows); i++) {
            struct mo_json_doc doc;

            assert_int_equal(
                mo_json_parse(mo_span_cstr(rows[i].item), 0, &doc, NULL), 0);
            assert_int_equal(mo_tool_pins_changed(p, MO_SPAN("s"),
                                                  mo_span_cstr(rows[i].name),
                                                  doc.root),
                             rows[i].changed);
        }
    }
    mo_tool_pins_close(p);
}

/* As long as a catalogue takes them; two such tools are two. */
static void test_long_names(void **state)
{
    static char name[4097], other[4097];
    struct mo_tool a, b, c, d;
    struct mo_tool_pins *p = must_open();

    (void)state;
    memset(name, 'n', sizeof(name) - 1);
    memset(other, 'n', sizeof(other) - 1);
    other[4095] = 'm';
    a = tool("s", name, "one");
    b = tool("s", name, "two");
    c = tool("s", other, "one");
    d = tool("s", other, "two");
    for (int day = 0; day < 2; day++) {
        assert_true(look(p, &a, NULL, 0));
        assert_true(look(p, &c, NULL, 0));
        assert_false(look(p, &b, NULL, 0));
        assert_false(look(p, &d, NULL, 0));
        flush(p);
        mo_tool_pins_close(p);
        p = must_open();
    }
    mo_tool_pins_close(p);
    (void)unlink(path);
}

/* Two processes with one file, both started when it was empty. */
static void test_two(void **state)
{
    struct mo_tool a = tool("s", "a", "one"), a2 = tool("s", "a", "two");
    struct mo_tool b = tool("s", "b", "one"), b2 = tool("s", "b", "two");
    struct mo_tool c = tool("s", "c", "one"), d = tool("s", "d", "one");
    struct mo_tool_pins *p = must_open(), *q = must_open();

    (void)state;
    assert_true(look(p, &a, NULL, 0));
    flush(p);
    assert_true(look(q, &b, NULL, 0));
    assert_true(look(q, &a2, NULL, 0)); /* first seen by q, but p was first */
    flush(q);
    assert_false(look(q, &a2, NULL, 0));
    assert_true(look(q, &a, NULL, 0));

    assert_true(look(p, &c, NULL, 0)); /* p learns of b by this */
    flush(p);
    assert_false(look(p, &b2, NULL, 0));
    assert_int_equal(mo_tool_pins_accept(p, &b2), 0);
    flush(p);
    assert_true(look(q, &d, NULL, 0)); /* and q that b was accepted */
    flush(q);
    assert_true(look(q, &b2, NULL, 0));
    mo_tool_pins_close(p);
    mo_tool_pins_close(q);

    p = must_open();
    assert_true(look(p, &a, NULL, 0));
    assert_false(look(p, &a2, NULL, 0));
    assert_true(look(p, &b2, NULL, 0));
    assert_false(look(p, &b, NULL, 0));
    mo_tool_pins_close(p);
    (void)unlink(path);
}

#define PROCS 4
#define EACH  20

static void pin_some(int no)
{
    struct mo_tool_pins *p = must_open();

    for (int i = 0; i < EACH; i++) {
        char name[32];
        struct mo_tool t;

        (void)snprintf(name, sizeof(name), "t%d-%d", no, i);
        t = tool("s", name, "one");
        (void)look(p, &t, NULL, 0);
        flush(p);
    }
    mo_tool_pins_close(p);
}

static void test_processes(void **state)
{
    pid_t pids[PROCS];
    struct mo_tool_pins *p = NULL;

    (void)state;
    for (int i = 0; i < PROCS; i++) {
        pids[i] = fork();
        assert_true(pids[i] >= 0);
        if (pids[i] == 0) {
            pin_some(i);
            _exit(0);
        }
    }
    for (int i = 0; i < PROCS; i++) {
        int status = -1;

        assert_int_equal(waitpid(pids[i], &status, 0), pids[i]);
        assert_int_equal(status, 0);
    }
    p = must_open();
    for (int i = 0; i < PROCS * EACH; i++) {
        char name[32];
        struct mo_tool t;

        (void)snprintf(name, sizeof(name), "t%d-%d", i / EACH, i % EACH);
        t = tool("s", name, "two");
        check_row(name, !look(p, &t, NULL, 0));
    }
    mo_tool_pins_close(p);
    (void)unlink(path);
}

/* A file that became unreadable meanwhile is a person's to look at. */
static void test_broken_later(void **state)
{
    struct mo_tool a = tool("s", "t", "one");
    struct mo_tool_pins *p = must_open();
    struct mo_err e;
    struct mo_buf b;

    (void)state;
    assert_int_equal(mo_file_replace(path, MO_SPAN("{"), &e), 0);
    assert_true(look(p, &a, NULL, 0));
    flush(p);
    mo_tool_pins_close(p);
    mo_buf_init(&b, 64);
    assert_int_equal(mo_file_read(path, 64, &b, NULL, &e), 0);
    assert_string_equal(mo_buf_cstr(&b), "{");
    mo_buf_fini(&b);
    (void)unlink(path);
}

static int set_up(void **state)
{
    (void)state;
    if (mkdtemp(dir) == NULL)
        return -1;
    (void)snprintf(path, sizeof(path), "%s/%s", dir, MO_TOOL_PINS_FILE);
    return 0;
}

/* Two workers: one knows at once what the other has accepted. */
static void test_shared(void **state)
{
    struct mo_tool a = tool("shared", "t", "one"),
                   b = tool("shared", "t", "two"),
                   own = tool("shared", "own", "mine");
    struct mo_tool_pins *p = must_open(), *q = must_open();
    atomic_uint changes = 0;

    (void)state;
    mo_tool_pins_share(p, &changes);
    mo_tool_pins_share(q, &changes);
    (void)mo_tool_pins_catch_up(q); /* it was read before it was shared */
    assert_false(mo_tool_pins_catch_up(q));
    assert_true(look(p, &a, NULL, 0));
    flush(p);
    assert_true(mo_tool_pins_catch_up(q));
    assert_false(mo_tool_pins_catch_up(q));
    assert_false(look(q, &b, NULL, 0));
    assert_true(look(p, &own, NULL, 0)); /* not written yet */
    assert_int_equal(mo_tool_pins_accept(q, &b), 0);
    flush(q);
    assert_true(mo_tool_pins_catch_up(p));
    assert_true(look(p, &b, NULL, 0));
    assert_false(look(p, &a, NULL, 0));
    flush(p); /* and what it had seen is kept */
    assert_true(mo_tool_pins_catch_up(q));
    own = tool("shared", "own", "yours");
    assert_false(look(q, &own, NULL, 0));
    mo_tool_pins_close(q);
    mo_tool_pins_close(p);
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
        cmocka_unit_test(test_change),       cmocka_unit_test(test_file),
        cmocka_unit_test(test_quiet),        cmocka_unit_test(test_memory),
        cmocka_unit_test(test_changed),      cmocka_unit_test(test_long_names),
        cmocka_unit_test(test_two),          cmocka_unit_test(test_processes),
        cmocka_unit_test(test_broken_later), cmocka_unit_test(test_shared),
    };

    return cmocka_run_group_tests(tests, set_up, tear_down);
}
